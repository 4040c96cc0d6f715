//! Flags of Go programs without an effect here: accepted, and listed in a line at the start.

use std::marker::PhantomData;

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};

/// Type of a flag's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Takes {
    Text,
    Number,
    /// `true` or `false`, `true` without a value.
    Switch,
    /// As [`Takes::Switch`], with this value in effect here anyway.
    Already(bool),
    /// As [`Takes::Switch`], with `true` refused for this reason.
    Never(&'static str),
}

use Takes::{Already, Never, Number, Switch, Text};

/// Flag without its dashes, its type of value, and the reason why nothing changes.
pub(crate) type Idle = (&'static str, Takes, &'static str);

/// Reason for flags of klog.
pub(super) const ONE_LOG: &str =
    "the log goes to standard error as text; --log and --v choose what is in it";

/// Flags of one program without an effect.
pub(crate) trait Program: 'static {
    /// All [`Idle`] flags.
    const FLAGS: &'static [Idle];
}

/// Flags of a [`Program`] without an effect here: the given ones, each with the reason.
#[derive(Clone, Debug)]
pub(crate) struct WithoutEffect<P> {
    given: Vec<(String, &'static str)>,
    program: PhantomData<fn() -> P>,
}

impl<P> WithoutEffect<P> {
    /// Given flags, each with the reason why nothing changes.
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

/// Refuses invalid values, and values with a request that would silently be ignored.
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

/// Value without an effect for each [`Idle`] flag, for tests; none for flags whose values all hold or are refused.
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
