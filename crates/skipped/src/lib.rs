//! For tests alone: a test that cannot run where it is says why, and returns.
//!
//! The test harness shows what a test prints only when it fails, so that a skipped test looks like one that passed.
//! Hence a line in a file as well, `skipped-tests` in the target directory, which `.ci/run` prints and removes.

#![allow(clippy::print_stderr, clippy::expect_used)]

use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The file's name, in the target directory.
const FILE: &str = "skipped-tests";

/// Records that the running test, or a part of it, is skipped, with the reason.
///
/// # Panics
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

/// The target directory of `TARGET/PROFILE/deps/BINARY`, whatever cargo is told that it is.
fn file(program: &Path) -> PathBuf {
    let target = program.ancestors().nth(3).unwrap_or(Path::new(""));
    target.join(FILE)
}

/// One write to the end of the file, so that lines of tests that run at once stay whole.
fn append(file: &Path, line: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new().create(true).append(true).open(file)?;
    file.write_all(format!("{line}\n").as_bytes())
}

#[cfg(test)]
mod tests;
