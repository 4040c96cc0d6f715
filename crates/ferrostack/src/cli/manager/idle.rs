//! Flags of the Go managers without an effect here, mostly of the provider.

use crate::cli::idle::Takes::{Number, Switch, Text};
use crate::cli::idle::{Idle, ONE_LOG, Program};

/// Managers in Go.
#[derive(Clone, Debug)]
pub(crate) struct GoManagers;

impl Program for GoManagers {
    const FLAGS: &'static [Idle] = FLAGS;
}

const UNLIMITED: &str = "requests to an API server are not limited";
const SERVER: &str = "TLS is at least 1.2, with the cipher suites of rustls";

/// [`Idle`] flags, with their values and the reason.
const FLAGS: &[Idle] = &[
    (
        "openstackmachinetemplate-concurrency",
        Number,
        "OpenStackMachineTemplates are reconciled one at a time: all look at the same lists",
    ),
    ("kube-api-qps", Number, UNLIMITED),
    ("kube-api-burst", Number, UNLIMITED),
    ("clustercache-client-qps", Number, UNLIMITED),
    ("clustercache-client-burst", Number, UNLIMITED),
    (
        "feature-gates",
        Text,
        "there are no gates: what they would turn on is there, or it is not",
    ),
    (
        "lb-provider",
        Text,
        "it changes nothing in the Go manager, either",
    ),
    (
        "scope-cache-max-size",
        Number,
        "objects with the same credentials share a session, of any number of credentials",
    ),
    ("profiler-address", Text, "there are no profiles to fetch"),
    (
        "webhook-port",
        Number,
        "--webhook-addr has address and port of the webhooks",
    ),
    ("tls-min-version", Text, SERVER),
    ("tls-cipher-suites", Text, SERVER),
    ("log-flush-frequency", Text, ONE_LOG),
    ("log-json-info-buffer-size", Text, ONE_LOG),
    ("log-json-split-stream", Switch, ONE_LOG),
    ("log-text-info-buffer-size", Text, ONE_LOG),
    ("log-text-split-stream", Switch, ONE_LOG),
    ("logging-format", Text, ONE_LOG),
    ("vmodule", Text, ONE_LOG),
];

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::idle::{WithoutEffect, without_effect};

    #[derive(Debug, Parser)]
    struct Program {
        #[command(flatten)]
        idle: WithoutEffect<GoManagers>,
    }

    #[test]
    fn flags_that_change_nothing_are_accepted_and_named() {
        let flags = without_effect(FLAGS);
        assert_eq!(flags.len(), FLAGS.len());
        let words = std::iter::once("manager").chain(flags.iter().map(String::as_str));
        let parsed = Program::try_parse_from(words).unwrap();
        let named = parsed.idle.given().iter().map(|(flag, _)| flag.as_str());
        let name = |flag: &String| flag.split('=').next().unwrap().to_owned();
        assert!(named.eq(flags.iter().map(name)));
        let wrong = ["manager", "--kube-api-qps=fast"];
        let error = Program::try_parse_from(wrong).unwrap_err().to_string();
        assert!(error.contains("`fast` is not a number"), "{error}");
    }

    #[test]
    fn the_page_has_each_of_them() {
        let page = include_str!("../../../../../docs/guides/manager.md");
        for (name, ..) in FLAGS {
            assert!(page.contains(&format!("`--{name}`")), "{name}");
        }
    }
}
