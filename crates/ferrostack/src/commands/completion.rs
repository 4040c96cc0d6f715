//! `completion`: scripts for shells, and the words for these scripts.
//!
//! A script calls `ferrostack -- WORD...` with the name of the shell in [`VARIABLE`]. Commands and flags come from the
//! definition of the command line, names from [`names`].

mod bash;
mod names;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::Command;
use clap_complete::Shell;
use clap_complete::engine::ArgValueCompleter;
use clap_complete::env::Shells;

use self::names::{Names, Source};
use crate::cli::{self, Completion};
use crate::environment::Environment;
use crate::output::print_document;
use crate::process;

/// Runs the command.
pub(super) fn execute(args: &Completion) -> anyhow::Result<()> {
    print_document(&script(args.shell)?)
}

/// Prints words for the shell that completes a line.
pub(crate) fn complete(shell: &str) -> ExitCode {
    // Without it, only the names of API servers would be missing.
    let _ = process::install_tls();
    let words = answer(shell, &Environment::of_process());
    let _ = print_document(&String::from_utf8_lossy(&words));
    ExitCode::SUCCESS
}

/// Variable with the name of the shell that requests words.
pub(crate) const VARIABLE: &str = "FERROSTACK_COMPLETE";
const NAME: &str = "ferrostack";

/// Arguments with names: command (`*` is each), identity of the argument, [`Source`] of the names.
///
/// The first matching row decides.
const SOURCES: [(&str, &str, Source); 25] = [
    ("openstack why", "cloud", Source::Nothing),
    ("openstack config", "explain", Source::Options),
    ("*", "cloud", Source::Clouds),
    ("*", "os_cloud", Source::Clouds),
    ("*", "context", Source::Contexts),
    ("move", "to_kubeconfig_context", Source::TargetContexts),
    ("*", "flavor", Source::Templates),
    ("describe cluster", "name", Source::Clusters),
    ("get clusters", "names", Source::Clusters),
    ("get kubeconfig", "name", Source::Clusters),
    ("delete cluster", "name", Source::Clusters),
    ("adopt cluster", "name", Source::Clusters),
    ("plan cluster", "name", Source::Clusters),
    ("topology plan", "cluster", Source::Clusters),
    ("why", "object", Source::Objects),
    ("events", "object", Source::Objects),
    ("logs", "object", Source::Objects),
    ("wait", "objects", Source::Objects),
    ("wait", "state", Source::States),
    ("rollout undo", "resource", Source::Deployments),
    ("rollout history", "resource", Source::Deployments),
    ("*", "resources", Source::Rollouts),
    ("docs", "page", Source::Pages),
    // Names in the manifests that a command prints are not those of a running API server.
    ("generate", "namespace", Source::Nothing),
    ("*", "namespace", Source::Namespaces),
];

/// Script that registers the completion of `ferrostack` in a [`Shell`].
///
/// # Errors
/// If the shell has no completion with names.
pub(crate) fn script(shell: Shell) -> anyhow::Result<String> {
    if shell == Shell::Bash {
        return Ok(bash::SCRIPT.to_owned());
    }
    let mut script = Vec::new();
    let shells = Shells::builtins();
    let shell = shells.completer(&shell.to_string());
    let shell = shell.ok_or_else(|| anyhow::anyhow!("there is no completion for this shell"))?;
    shell.write_registration(VARIABLE, NAME, NAME, NAME, &mut script)?;
    Ok(String::from_utf8_lossy(&script).into_owned())
}

/// Words for the requesting shell, in the notation of the script; empty if there are none.
///
/// Nothing is an error here: a message would appear in the middle of the user's line.
pub(crate) fn answer(shell: &str, environment: &Environment) -> Vec<u8> {
    let mut words = environment.arguments.clone();
    if words.first().is_some_and(|word| word == "--") {
        words.remove(0);
    }
    let index = environment.non_empty("_CLAP_COMPLETE_INDEX");
    let index = index.and_then(|text| text.parse::<usize>().ok());
    // Fish and others end their words with the one that is completed.
    let end = index.unwrap_or(usize::MAX).saturating_add(1);
    let before = words.get(..end.min(words.len())).unwrap_or_default();
    if before.is_empty() {
        return Vec::new();
    }
    if shell == "bash" {
        return bash::answer(before, environment);
    }
    let mut text = Vec::new();
    let mut command = completing(before, environment);
    let shells = Shells::builtins();
    if let Some(shell) = shells.completer(shell) {
        let directory = Some(environment.working_dir.as_path());
        let complete = shell.write_complete(&mut command, words, directory, &mut text);
        if complete.is_err() {
            text.clear();
        }
    }
    text
}

/// Candidates for the last of `words`, the first of which is the program.
fn candidates(words: &[OsString], environment: &Environment) -> Vec<String> {
    let mut command = completing(words, environment);
    let last = words.len().saturating_sub(1);
    let directory: &Path = &environment.working_dir;
    let found =
        clap_complete::engine::complete(&mut command, words.to_vec(), last, Some(directory));
    let found = found.unwrap_or_default();
    let values = found.iter().filter_map(|it| it.get_value().to_str());
    values.map(str::to_owned).collect()
}

/// [`Command`] of the command line with the sources of names, which see the `words` before the cursor.
fn completing(words: &[OsString], environment: &Environment) -> Command {
    let names = Names::new(words, environment);
    with_names(cli::command(), "", &names)
}

fn with_names(command: Command, path: &str, names: &Names) -> Command {
    let below: Vec<String> = command
        .get_subcommands()
        .map(|below| below.get_name().to_owned())
        .collect();
    let command = below.into_iter().fold(command, |command, name| {
        let path = format!("{path} {name}").trim_start().to_owned();
        command.mut_subcommand(name, |sub| with_names(sub, &path, names))
    });
    command.mut_args(|arg| match source(path, arg.get_id().as_str()) {
        Some(source) if arg.get_action().takes_values() => {
            let names = names.clone();
            arg.add(ArgValueCompleter::new(move |current: &std::ffi::OsStr| {
                names.candidates(source, current)
            }))
        }
        _ => arg,
    })
}

/// [`Source`] of the names for an argument of a command.
fn source(path: &str, argument: &str) -> Option<Source> {
    let is_of = |command: &str| {
        let below = path.strip_prefix(command);
        command == "*" || below.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    };
    let row = SOURCES
        .iter()
        .find(|(command, name, _)| *name == argument && is_of(command));
    row.map(|(_, _, source)| *source)
}

#[cfg(test)]
mod tests;
