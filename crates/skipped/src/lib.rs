//! For tests only: a test that cannot run on this machine records why, and returns.
//!
//! The test harness prints the output of a test only when it fails, so that a skipped test looks like one that passed.
//! Therefore a line is also written to a file, `skipped-tests` in the target directory, which `.ci/run` prints and
//! removes.

#![allow(clippy::print_stderr, clippy::expect_used)]

use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The file's name, in the target directory.
const FILE: &str = "skipped-tests";

/// Records that the running test, or a part of it, is skipped, with the reason.
///
/// When the file cannot be written: a skipped test must not go unnoticed.
/// When the file cannot be written: a test that is skipped without a trace is worse than one that fails.
pub fn because(why: impl Display) {
    let program = std::env::current_exe().expect("the test binary has a path");
    let thread = std::thread::current();
    let line = line(&program, thread.name(), &why);
    eprintln!("skipped: {line}");
    append(&file(&program), &line).expect("the skipped test is recorded");
}

/// `suite: pods::logs: why`: test binary, test and reason.
fn line(program: &Path, test: Option<&str>, why: &dyn Display) -> String {
    let name = program.file_stem().unwrap_or_default().to_string_lossy();
    // Cargo adds a hash to the names of test binaries.
    let name = name.rsplit_once('-').map_or(&*name, |(name, _)| name);
    let why = why.to_string().replace('\n', " ");
    format!("{name}: {}: {why}", test.unwrap_or("unknown test"))
}

/// The target directory of `TARGET/PROFILE/deps/BINARY`, regardless of the configuration of cargo.
fn file(program: &Path) -> PathBuf {
    let target = program.ancestors().nth(3).unwrap_or(Path::new(""));
    target.join(FILE)
}

/// A single write at the end of the file, so that lines of concurrent tests are not mixed.
fn append(file: &Path, line: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new().create(true).append(true).open(file)?;
    file.write_all(format!("{line}\n").as_bytes())
}

#[cfg(test)]
mod tests;
