//! Runs every test of the workspace, with one test program for each processor at a time (docs/adr/0063).
//!
//! `cargo test` runs the programs one by one, although tests of controllers wait half of the time for clouds and
//! machines.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::Args;
use parking_lot::Mutex;

use crate::executables::{self, Executable, Target};
use crate::stopwatch::clock;
use crate::{lints, print};
use queue::Queue;

mod queue;

/// Duration above which the time of a program is printed at the end.
const SLOW: Duration = Duration::from_secs(30);

/// Arguments of `test`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Test programs at a time [default: one for each processor, at most 4].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=64))]
    jobs: Option<u8>,
}

/// Builds and runs every test. Output of a program is printed after its end.
///
/// # Errors
///
/// Programs with a failed test, and the command to repeat the first. All others have run as well.
pub(crate) fn run(root: &Path, arguments: &Arguments) -> anyhow::Result<()> {
    let root = &root.canonicalize().context("the workspace")?;
    let programs = executables::parse(root, &build(root)?)?;
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let jobs = arguments.jobs.map_or(processors.min(4), usize::from);
    let ended = all(root, programs, jobs)?;
    print(&summary(&ended))?;
    let failed: Vec<&Ended> = ended.iter().filter(|it| !it.is_success).collect();
    if let Some(first) = failed.first() {
        let names: Vec<String> = failed.iter().map(|it| it.program.to_string()).collect();
        let (folder, path) = (&first.program.folder, first.program.path.display());
        bail!(
            "{} failed; again: (cd {folder} && {path})",
            names.join(", ")
        );
    }
    examples(root)
}

/// Builds the programs; returns cargo's messages.
fn build(root: &Path) -> anyhow::Result<String> {
    let mut cargo = cargo(
        root,
        &["--no-run", "--message-format=json-render-diagnostics"],
    );
    let child = cargo.stdout(Stdio::piped()).spawn().context("cargo")?;
    let output = child.wait_with_output().context("cargo")?;
    if !output.status.success() {
        bail!("the tests were not built");
    }
    String::from_utf8(output.stdout).context("the messages of cargo")
}

/// Runs the examples in doc comments by cargo.
fn examples(root: &Path) -> anyhow::Result<()> {
    let status = cargo(root, &["--doc", "--quiet"]).status();
    if !status.context("cargo")?.success() {
        bail!("an example in a comment failed; again: cargo test --workspace --locked --doc");
    }
    Ok(())
}

fn cargo(root: &Path, words: &[&str]) -> Command {
    let mut cargo = Command::new("cargo");
    cargo.args(["test", "--workspace", "--locked"]).args(words);
    cargo.current_dir(root).envs(lints::VARIABLES);
    cargo
}

/// Program that has run.
struct Ended {
    program: Executable,
    took: Duration,
    is_success: bool,
}

fn all(root: &Path, programs: Vec<Executable>, jobs: usize) -> anyhow::Result<Vec<Ended>> {
    let outputs = root.join("target/test-output");
    fs::create_dir_all(&outputs).context("the directory of what tests print")?;
    let queue = Mutex::new(Queue::new(programs));
    let ended = Mutex::new(Vec::new());
    let work = || -> anyhow::Result<()> {
        loop {
            let Some(program) = queue.lock().next() else {
                return Ok(());
            };
            let done = one(root, &outputs, program)?;
            queue.lock().done(&done.program);
            ended.lock().push(done);
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            match worker.join() {
                Ok(result) => result?,
                Err(_) => bail!("a thread that runs tests has panicked"),
            }
        }
        Ok(())
    })?;
    Ok(ended.into_inner())
}

/// Runs an [`Executable`] in the directory of its package, as cargo does, and prints its output.
fn one(root: &Path, outputs: &Path, program: Executable) -> anyhow::Result<Ended> {
    let name = program.path.file_name().unwrap_or_default();
    let output = outputs.join(name).with_extension("txt");
    let (out, folder) = (File::create(&output), root.join(&program.folder));
    let out = out.with_context(|| output.display().to_string())?;
    let began = Instant::now();
    let status = Command::new(&program.path)
        .current_dir(&folder)
        // Some tests find their files by this variable.
        .env("CARGO_MANIFEST_DIR", &folder)
        .stderr(out.try_clone()?)
        .stdout(out)
        .stdin(Stdio::null())
        .status()
        .with_context(|| program.path.display().to_string())?;
    let took = began.elapsed();
    let mut stdout = io::stdout().lock();
    let title = format!("\n==== {} {program}", clock(took));
    io::Write::write_all(&mut stdout, title.as_bytes())?;
    io::copy(&mut File::open(&output)?, &mut stdout)?;
    fs::remove_file(&output)?;
    Ok(Ended {
        program,
        took,
        is_success: status.success(),
    })
}

/// Slow programs, longest first, and failed ones.
fn summary(ended: &[Ended]) -> String {
    let mut listed: Vec<&Ended> = ended.iter().collect();
    listed.retain(|it| it.took >= SLOW || !it.is_success);
    listed.sort_by_key(|it| std::cmp::Reverse(it.took));
    let mut text = format!("\n==== {} test programs\n", ended.len());
    for it in listed {
        let failed = if it.is_success { "" } else { ": FAILED" };
        text.push_str(&format!("{}  {}{failed}\n", clock(it.took), it.program));
    }
    text
}
