//! Examples and pages of the documentation, at the end of the help of every command.

mod entries;

use std::error::Error as _;
use std::ffi::OsString;
use std::fmt::Write;
use std::num::{ParseFloatError, ParseIntError};

use clap::error::ContextKind;
use clap::{Command, CommandFactory, FromArgMatches};

use self::entries::{Entry, all};
use super::groups::grouped;
use super::{Cli, habits, programs};
use crate::output;

/// Command line, with groups, examples and pages.
pub(crate) fn command() -> Command {
    documented(Cli::command(), "")
}

/// Parses arguments into [`Cli`]; help, versions and mistakes end the process.
pub(crate) fn parse(arguments: Vec<OsString>) -> Cli {
    if let Some(cli) = programs::parse(&arguments) {
        return cli;
    }
    let mut command = command();
    let mut matches = match command.clone().try_get_matches_from(&arguments) {
        Ok(matches) => matches,
        Err(error) => {
            let hint = (error.exit_code() != 0)
                .then(|| number_hint(&error).or_else(|| habits::hint(&arguments)));
            let _ = error.print();
            if let Some(hint) = hint.flatten() {
                output::remark(&format!("\nhint: {hint}"));
            }
            std::process::exit(error.exit_code());
        }
    };
    match Cli::from_arg_matches_mut(&mut matches) {
        Ok(cli) => cli,
        Err(error) => error.format(&mut command).exit(),
    }
}

/// Hint for an option with a value that is no number.
fn number_hint(error: &clap::Error) -> Option<String> {
    let option = error.get(ContextKind::InvalidArg)?;
    let mistake = error.source()?;
    let is_number = mistake.is::<ParseIntError>() || mistake.is::<ParseFloatError>();
    is_number.then(|| format!("{option} takes a number, such as 3, that is not below 0"))
}

fn documented(command: Command, path: &str) -> Command {
    let names: Vec<String> = command
        .get_subcommands()
        .map(|below| below.get_name().to_owned())
        .collect();
    let command = names.into_iter().fold(command, |command, name| {
        let below = format!("{path} {name}").trim_start().to_owned();
        command.mut_subcommand(name, |sub| documented(sub, &below))
    });
    let command = grouped(command).mut_args(|arg| {
        // So that the message about `-1` names the option that rejects it.
        let is_option = arg.get_action().takes_values() && !arg.is_positional();
        arg.allow_negative_numbers(is_option)
    });
    match all().find(|entry| entry.command == path) {
        Some(entry) => command
            .after_help(short(entry))
            .after_long_help(long(entry)),
        None => command,
    }
}

fn short(entry: &Entry) -> String {
    let example = entry.examples.first().map_or("", |(_, example)| example);
    let command = format!("ferrostack {}", entry.command);
    format!(
        "Example: {example}\nMore options and examples: {} --help",
        command.trim_end()
    )
}

fn long(entry: &Entry) -> String {
    let mut text = String::from("Examples:\n");
    for (what, example) in entry.examples {
        let _ = writeln!(text, "  # {what}\n  {example}");
    }
    let page = entry.page.replace(".md", "");
    let _ = write!(text, "\nDocumentation: ferrostack docs {page}");
    text
}

#[cfg(test)]
mod tests;
