//! Functions of a binary, by the crate at the start of their names.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};

/// Bytes of functions of each crate. Functions without a crate of `crates` in the name are of `std`, or of C.
pub(super) fn by_crate(binary: &Path, crates: &[String]) -> anyhow::Result<BTreeMap<String, u64>> {
    let output = Command::new("nm")
        .args(["--print-size", "--defined-only", "--demangle"])
        .arg(binary)
        .output()
        .context("nm (binutils)")?;
    if !output.status.success() {
        bail!("nm failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(summed(&String::from_utf8_lossy(&output.stdout), crates))
}

/// Sums sizes in lines like `ADDRESS SIZE t NAME`. Several names at one address, for functions with the same code,
/// count once.
pub(super) fn summed(listing: &str, crates: &[String]) -> BTreeMap<String, u64> {
    let known: BTreeSet<&str> = crates.iter().map(String::as_str).collect();
    let (mut addresses, mut sums) = (BTreeSet::new(), BTreeMap::new());
    for line in listing.lines() {
        let mut fields = line.splitn(4, ' ');
        let (Some(address), Some(size), Some(kind), Some(name)) =
            (fields.next(), fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        let Ok(size) = u64::from_str_radix(size, 16) else {
            continue;
        };
        if !matches!(kind, "t" | "T" | "w" | "W") || !addresses.insert(address) {
            continue;
        }
        *sums.entry(owner(name, &known).to_owned()).or_default() += size;
    }
    sums
}

/// First crate in a name such as `<alloc::vec::Vec<api::Machine> as Clone>::clone`.
fn owner<'a>(name: &'a str, known: &BTreeSet<&str>) -> &'a str {
    let mut rest = name;
    while let Some(at) = rest.find("::") {
        let (before, after) = rest.split_at(at);
        let begin = before
            .rfind(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
            .map_or(0, |at| at + 1);
        let word = before.get(begin..).unwrap_or_default();
        if known.contains(word) {
            return word;
        }
        rest = after.get(2..).unwrap_or_default();
    }
    if name.contains("::") { "std" } else { "C" }
}
