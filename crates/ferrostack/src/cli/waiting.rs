//! Flags of `wait`, `events` and `logs`.

use std::str::FromStr;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::values::duration;
use super::{ConnectArgs, OutputArg};

#[derive(Debug, Args)]
pub(crate) struct Wait {
    /// Objects: KIND/NAME, as in kubectl, such as machinedeployment/demo-md-0, or the names of clusters.
    #[arg(required = true, value_name = "KIND/NAME")]
    pub(crate) objects: Vec<String>,
    /// State to wait for: `condition=TYPE`, `condition=TYPE=STATUS`, `create` or `delete`.
    #[arg(long = "for", value_name = "STATE")]
    pub(crate) state: Awaited,
    /// Timeout, such as 90s or 20m.
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration)]
    pub(crate) timeout: Duration,
    #[command(flatten)]
    pub(crate) output: OutputArg,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
}

/// Awaited state of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Awaited {
    /// A condition has this status.
    Condition { type_: String, status: String },
    /// The object exists.
    Created,
    /// The object exists no more.
    Deleted,
}

impl FromStr for Awaited {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "create" => return Ok(Self::Created),
            "delete" => return Ok(Self::Deleted),
            _ => {}
        }
        let condition = text.strip_prefix("condition=");
        let (type_, status) = match condition {
            Some(rest) => rest.split_once('=').unwrap_or((rest, "True")),
            None => ("", ""),
        };
        let is_status = |it: &&str| it.eq_ignore_ascii_case(status);
        let status = ["True", "False", "Unknown"].into_iter().find(is_status);
        match status {
            Some(status) if !type_.is_empty() => Ok(Self::Condition {
                type_: type_.to_owned(),
                status: status.to_owned(),
            }),
            _ => Err(
                "it has to be condition=TYPE, condition=TYPE=True|False|Unknown, create or delete"
                    .to_owned(),
            ),
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Events {
    /// Object whose events are listed: KIND/NAME or KIND NAME, as in kubectl, or the name of a cluster [default: all in
    /// the namespace].
    #[arg(num_args = 0..=2)]
    pub(crate) object: Vec<String>,
    /// List events of these types alone.
    #[arg(long, value_enum, value_name = "TYPE", value_delimiter = ',')]
    pub(crate) types: Vec<EventType>,
    /// List the events of all namespaces.
    #[arg(short = 'A', long, conflicts_with_all = ["namespace", "object"])]
    pub(crate) all_namespaces: bool,
    /// Keep running, and print every new event.
    #[arg(short, long)]
    pub(crate) watch: bool,
    #[command(flatten)]
    pub(crate) output: OutputArg,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
}

#[derive(Debug, Args)]
pub(crate) struct Logs {
    /// Machine whose console is printed, as in machine/NAME; an openstackmachine or openstackserver, too [default: the log of
    /// `up --detach`].
    #[arg(num_args = 0..=2)]
    pub(crate) object: Vec<String>,
    /// Keep running, and print every new line of the log, until `up` ends.
    #[arg(short, long, conflicts_with = "object")]
    pub(crate) follow: bool,
    /// Number of lines at the end that are printed [default: all].
    #[arg(long, value_name = "N")]
    pub(crate) tail: Option<usize>,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
}

/// Type of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
pub(crate) enum EventType {
    Normal,
    Warning,
}

impl EventType {
    /// Word in the field `type`.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_written_as_in_kubectl() {
        let condition = |type_: &str, status: &str| Awaited::Condition {
            type_: type_.to_owned(),
            status: status.to_owned(),
        };
        for (text, expected) in [
            ("create", Awaited::Created),
            ("delete", Awaited::Deleted),
            ("condition=Ready", condition("Ready", "True")),
            ("condition=Ready=false", condition("Ready", "False")),
        ] {
            assert_eq!(text.parse(), Ok(expected));
        }
        for text in [
            "",
            "condition=",
            "condition=Ready=x",
            "jsonpath={.a}=b",
            "Ready",
        ] {
            assert!(text.parse::<Awaited>().is_err(), "{text}");
        }
    }
}
