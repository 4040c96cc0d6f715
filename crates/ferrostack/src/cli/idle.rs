//! Flags of Go programs that change nothing here: accepted, and named by a line at the start.

use std::marker::PhantomData;

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};

/// Value of a flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Takes {
    Text,
    Number,
    /// `true` or `false`, `true` without a value.
    Switch,
    /// The same, where this value is what holds here anyway.
    Already(bool),
    /// The same, where `true` is refused with this reason.
    Never(&'static str),
}

use Takes::{Already, Never, Number, Switch, Text};

/// A flag without its dashes, what it takes, and why it changes nothing.
pub(crate) type Idle = (&'static str, Takes, &'static str);

/// Why flags of klog change nothing.
pub(super) const ONE_LOG: &str =
    "the log goes to standard error as text; --log and --v choose what is in it";

/// The flags of one program that change nothing.
pub(crate) trait Program: 'static {
    /// Each of them.
    const FLAGS: &'static [Idle];
}

/// The flags of program `P` that change nothing here: those that were given, each with the reason.
#[derive(Clone, Debug)]
pub(crate) struct WithoutEffect<P> {
    given: Vec<(String, &'static str)>,
    program: PhantomData<fn() -> P>,
}

impl<P> WithoutEffect<P> {
    /// The flags that are given, each with the reason why it changes nothing.
    pub(crate) fn given(&self) -> &[(String, &'static str)] {
        &self.given
    }
}

fn read(flags: &[Idle], matches: &ArgMatches) -> Result<Vec<(String, &'static str)>, clap::Error> {
    let mut given = Vec::new();
    for (name, takes, why) in flags {
        if matches.value_source(name) != Some(ValueSource::CommandLine) {
            continue;
        }
        let values: Vec<&String> = matches.get_many(name).into_iter().flatten().collect();
        let value = values.last().map_or("", |value| value.as_str());
        check(name, *takes, value)?;
        let holds = match takes {
            Already(is) => value.parse() == Ok(*is),
            Never(_) => true,
            Text | Number | Switch => false,
        };
        if !holds {
            given.push((format!("--{name}"), *why));
        }
    }
    Ok(given)
}

/// Refuses values that are none, and those that ask for what would be silently missing.
fn check(name: &str, takes: Takes, value: &str) -> Result<(), clap::Error> {
    let problem = match takes {
        Number if value.parse::<f64>().is_err() => format!("`{value}` is not a number"),
        Switch | Already(_) | Never(_) if value.parse::<bool>().is_err() => {
            format!("`{value}`: write true or false")
        }
        Never(reason) if value == "true" => reason.to_owned(),
        _ => return Ok(()),
    };
    Err(clap::Error::raw(
        clap::error::ErrorKind::ValueValidation,
        format!("--{name}: {problem}\n"),
    ))
}

impl<P: Program> clap::FromArgMatches for WithoutEffect<P> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self {
            given: read(P::FLAGS, matches)?,
            program: PhantomData,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.given = read(P::FLAGS, matches)?;
        Ok(())
    }
}

impl<P: Program> clap::Args for WithoutEffect<P> {
    fn augment_args(command: Command) -> Command {
        P::FLAGS
            .iter()
            .fold(command, |command, (name, takes, why)| {
                let flag = Arg::new(*name)
                    .long(*name)
                    .help(format!("No effect: {why}"))
                    .hide(true)
                    .action(ArgAction::Append);
                // Its name in clusterctl.
                let flag = match *name {
                    "context" => flag.visible_alias("kubeconfig-context"),
                    _ => flag,
                };
                command.arg(match takes {
                    Text | Number => flag.value_name("VALUE").num_args(1),
                    Switch | Already(_) | Never(_) => flag
                        .value_name("BOOL")
                        .num_args(0..=1)
                        .require_equals(true)
                        .default_missing_value("true"),
                })
            })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

/// A value of each flag that has no effect, for tests; none where every value holds or is refused.
#[cfg(test)]
pub(super) fn without_effect(flags: &[Idle]) -> Vec<String> {
    let value = |takes: &Takes| match takes {
        Text => Some("x"),
        Number => Some("7"),
        Switch | Already(false) => Some("true"),
        Already(true) => Some("false"),
        Never(_) => None,
    };
    let flag = |(name, takes, _): &Idle| value(takes).map(|value| format!("--{name}={value}"));
    flags.iter().filter_map(flag).collect()
}
