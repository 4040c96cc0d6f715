//! For tests only: records the reason why a test cannot run on this machine; the test then returns.
//!
//! The test harness prints the output of a test only on failure, so a skipped test looks like a passed one. Therefore
//! [`because`] also writes a line to the file `skipped-tests` in the target directory; `.ci/run` prints and removes the
//! file.

#![allow(clippy::print_stderr, clippy::expect_used)]

use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Name of the file in the target directory.
const FILE: &str = "skipped-tests";

/// Records the reason why the running test, or a part of the test, is skipped.
///
/// # Panics
/// The file cannot be written: a skipped test must not go unnoticed.
pub fn because(why: impl Display) {
    let program = std::env::current_exe().expect("the test binary has a path");
    let thread = std::thread::current();
    let line = line(&program, thread.name(), &why);
    eprintln!("skipped: {line}");
    append(&file(&program), &line).expect("the skipped test is recorded");
}

/// Formats `suite: pods::logs: why`: test binary, test and reason.
fn line(program: &Path, test: Option<&str>, why: &dyn Display) -> String {
    let name = program.file_stem().unwrap_or_default().to_string_lossy();
    // Cargo adds a hash to the names of test binaries.
    let name = name.rsplit_once('-').map_or(&*name, |(name, _)| name);
    let why = why.to_string().replace('\n', " ");
    format!("{name}: {}: {why}", test.unwrap_or("unknown test"))
}

/// Returns the path of [`FILE`] in the target directory of `TARGET/PROFILE/deps/BINARY`, whatever the configuration of
/// cargo.
fn file(program: &Path) -> PathBuf {
    let target = program.ancestors().nth(3).unwrap_or(Path::new(""));
    target.join(FILE)
}

/// Appends with a single write, so that lines of concurrent tests are not mixed.
fn append(file: &Path, line: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new().create(true).append(true).open(file)?;
    file.write_all(format!("{line}\n").as_bytes())
}

#[cfg(test)]
mod tests;
