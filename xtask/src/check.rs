//! Checks before a commit: the part of `.ci/run` that depends on the changed files.
//!
//! - [`changes`]: changed files
//! - [`selection`]: tests of these files, and of everything that uses them

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, bail};
use clap::Args;

use crate::executables::{self, Executable};
use crate::stopwatch::clock;
use crate::{lints, print};
use selection::Selection;

mod changes;
mod selection;

/// File with the tests that could not run, one on each line (crates/skipped).
const SKIPPED: &str = "target/skipped-tests";

/// Arguments of `check`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Check the changes since this commit and HEAD parted, with uncommitted files [default: origin/main or main].
    #[arg(long, value_name = "REF")]
    since: Option<String>,
    /// Print the selected tests with reasons, and run nothing.
    #[arg(long)]
    list: bool,
    /// Run all tests of the crates that use a changed file, and the whole suite.
    #[arg(long)]
    full: bool,
    /// Root of another workspace.
    #[arg(long, value_name = "DIRECTORY", hide = true)]
    root: Option<PathBuf>,
}

/// Checks the changed files.
///
/// # Errors
///
/// First failed check, with the command that repeats it.
pub(crate) fn run(root: &Path, arguments: &Arguments) -> anyhow::Result<()> {
    let root = arguments.root.as_deref().unwrap_or(root);
    let root = &root.canonicalize().context("the workspace")?;
    let base = changes::base(root, arguments.since.as_deref())?;
    let changed = changes::since(root, &base)?;
    let packages = selection::packages(root)?;
    let selection = selection::select(&packages, &changed, arguments.full);
    print(&format!(
        "{} files changed since {base}\n{selection}",
        changed.len()
    ))?;
    if arguments.list {
        return print(STEPS);
    }
    let mut steps = Steps::new(root);
    let result = checks(&mut steps, root, &selection);
    print(&steps.summary())?;
    result
}

/// Line of `--list` for the steps that do not depend on the changes.
const STEPS: &str = "before: format, build with clippy, generated files, rules\n";

fn checks(steps: &mut Steps<'_>, root: &Path, selection: &Selection) -> anyhow::Result<()> {
    steps.run("format", root, &["cargo", "fmt", "--all", "--check"])?;
    let built = steps.build()?;
    let executables = executables::parse(root, &built)?;
    let xtask = executables::xtask(&built)?;
    steps.run("generated files", root, &[&xtask, "codegen", "--check"])?;
    steps.run("rules", root, &[&xtask, "tidy"])?;
    for (executable, filters) in selection.programs(&executables) {
        steps.test(executable, &filters)?;
    }
    Ok(())
}

/// Finished steps, with their times.
struct Steps<'a> {
    root: &'a Path,
    began: Instant,
    lines: Vec<String>,
}

impl<'a> Steps<'a> {
    fn new(root: &'a Path) -> Self {
        // Left by an earlier run.
        let _ = std::fs::remove_file(root.join(SKIPPED));
        Self {
            root,
            began: Instant::now(),
            lines: Vec::new(),
        }
    }

    /// Builds the whole workspace, since a subset of crates would build dependencies with other features, a second
    /// time. Returns cargo's messages.
    fn build(&mut self) -> anyhow::Result<String> {
        let words = [
            "cargo",
            "build",
            "--workspace",
            "--all-targets",
            "--locked",
            "--message-format=json-render-diagnostics",
        ];
        let mut cargo = command(self.root, &words);
        cargo.stdout(std::process::Stdio::piped());
        let began = self.begin("build with clippy's lints, warnings denied")?;
        let child = cargo.spawn().context("cargo")?;
        let output = child.wait_with_output().context("cargo")?;
        self.end(
            began,
            "build with clippy's lints, warnings denied",
            output.status.success(),
            self.root,
            &words[..5],
        )?;
        String::from_utf8(output.stdout).context("the messages of cargo")
    }

    fn test(&mut self, executable: &Executable, filters: &[String]) -> anyhow::Result<()> {
        let path = executable.path.display().to_string();
        let mut words = vec![path.as_str(), "--quiet"];
        words.extend(filters.iter().map(String::as_str));
        let title = format!("tests: {executable} {}", filters.join(" "));
        let folder = self.root.join(&executable.folder);
        self.run(title.trim(), &folder, &words)
    }

    fn run(&mut self, title: &str, folder: &Path, words: &[&str]) -> anyhow::Result<()> {
        let began = self.begin(title)?;
        let status = command(folder, words).status();
        let status = status.with_context(|| words.join(" "))?;
        self.end(began, title, status.success(), folder, words)
    }

    fn begin(&self, title: &str) -> anyhow::Result<Instant> {
        print(&format!("\n==== {title}\n"))?;
        Ok(Instant::now())
    }

    fn end(
        &mut self,
        began: Instant,
        title: &str,
        is_success: bool,
        folder: &Path,
        words: &[&str],
    ) -> anyhow::Result<()> {
        let line = format!("{}  {title}", clock(began.elapsed()));
        if is_success {
            print(&format!("{line}\n"))?;
            self.lines.push(line);
            return Ok(());
        }
        self.lines.push(format!("{line}: FAILED"));
        bail!("{title}; again: {}", again(folder, words));
    }

    /// Times of all steps, and tests that could not run.
    fn summary(&self) -> String {
        let mut text = String::from("\n==== summary\n");
        for line in &self.lines {
            text.push_str(line);
            text.push('\n');
        }
        text.push_str(&format!("{}  in all\n", clock(self.began.elapsed())));
        let skipped = std::fs::read_to_string(self.root.join(SKIPPED)).unwrap_or_default();
        for line in skipped.lines() {
            text.push_str(&format!("skipped in {line}\n"));
        }
        text
    }
}

/// [`Command`] with the environment of `.ci/run`.
fn command(folder: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(words.first().copied().unwrap_or_default());
    command
        .args(words.get(1..).unwrap_or_default())
        .current_dir(folder)
        .envs(lints::VARIABLES);
    if words.first() != Some(&"cargo") {
        // Under cargo, some tests find their files by this variable.
        command.env("CARGO_MANIFEST_DIR", folder);
    }
    if std::env::var_os("RUST_TEST_THREADS").is_none() {
        // Tests of controllers wait half of the time for clouds and machines.
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        command.env("RUST_TEST_THREADS", (2 * processors).to_string());
    }
    command
}

/// Shell command that repeats a step.
fn again(folder: &Path, words: &[&str]) -> String {
    let mut parts = vec![
        "cd".to_owned(),
        quoted(&folder.display().to_string()),
        "&&".to_owned(),
    ];
    if words.first() == Some(&"cargo") {
        parts.extend(lints::VARIABLES.map(|(name, value)| format!("{name}={value}")));
    }
    parts.extend(words.iter().map(|word| quoted(word)));
    parts.join(" ")
}

fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}
