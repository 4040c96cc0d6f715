//! Linker options of the binary; the pages of docs/, and the texts about options of OpenStack, that are in it.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

use flate2::Compression;
use flate2::write::ZlibEncoder;

/// The pages, from the package's directory.
const DOCS: &str = "../../docs";

/// The texts about options, from the package's directory, and the releases in the order of the deployer.
const OPTIONS: &str = "../deployer/options";
const RELEASES: [&str; 3] = ["zed", "2025.1", "2026.1"];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    // Functions of different types often have the same code, of which LLD keeps one. It is the linker of this target in
    // Rust's releases; others do not know the option.
    let target = env::var("TARGET").unwrap_or_default();
    let is_release = env::var("PROFILE").is_ok_and(|profile| profile == "release");
    if is_release && target == "x86_64-unknown-linux-gnu" {
        println!("cargo:rustc-link-arg-bins=-Wl,--icf=all");
    }
    let out = env::var_os("OUT_DIR").ok_or("no OUT_DIR")?;
    fs::write(Path::new(&out).join("docs.z"), packed()?)?;
    fs::write(Path::new(&out).join("options.z"), descriptions()?)?;
    Ok(())
}

/// The pages in the order of their names, each after a line with its folder and name and its size, compressed.
fn packed() -> Result<Vec<u8>, Box<dyn Error>> {
    println!("cargo:rerun-if-changed={DOCS}");
    let mut files = Vec::new();
    collect(Path::new(DOCS), &mut files)?;
    files.sort_by(|one, other| one.file_stem().cmp(&other.file_stem()));
    let mut packing = ZlibEncoder::new(Vec::new(), Compression::best());
    for file in files {
        let name = file.strip_prefix(DOCS)?.with_extension("");
        let (name, text) = (name.to_string_lossy(), fs::read(&file)?);
        writeln!(packing, "{name} {}", text.len())?;
        packing.write_all(&text)?;
    }
    Ok(packing.finish()?)
}

/// Each text once, as a JSON string in a line, and before the text a line for each option with it: the digits of the
/// releases, service, section and name. Compressed.
fn descriptions() -> Result<Vec<u8>, Box<dyn Error>> {
    let mut texts: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    for (digit, release) in RELEASES.iter().enumerate() {
        let file = Path::new(OPTIONS).join(release).join("help.txt");
        println!("cargo:rerun-if-changed={}", file.display());
        for line in fs::read_to_string(&file)?.lines() {
            let (at, _) = line.match_indices(' ').nth(2).ok_or("no text")?;
            let (option, text) = line.split_at(at);
            let options = texts.entry(text.trim_start().to_owned()).or_default();
            let digits = options.entry(option.to_owned()).or_default();
            digits.push_str(&digit.to_string());
        }
    }
    let mut packing = ZlibEncoder::new(Vec::new(), Compression::best());
    for (text, options) in texts {
        for (option, digits) in options {
            writeln!(packing, "{digits} {option}")?;
        }
        writeln!(packing, "{text}")?;
    }
    Ok(packing.finish()?)
}

/// Folders of records, of decisions and of runs, which are for the project's own readers and are not in the program.
const RECORDS: [&str; 2] = ["adr", "runs"];

/// Adds the pages of a folder and of those in it, but for [`RECORDS`].
fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() && !RECORDS.iter().any(|records| path.ends_with(records)) {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|it| it == "md") {
            files.push(path);
        }
    }
    Ok(())
}
