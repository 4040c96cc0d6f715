//! Flags of the Go driver without an effect here.

use crate::cli::idle::Takes::{Number, Switch, Text};
use crate::cli::idle::{Idle, ONE_LOG, Program};

const NO_LIMIT: &str =
    "a claim is read when a volume is made for it, and nothing else is asked of an API server";

/// Cinder CSI driver in Go.
#[derive(Clone, Debug)]
pub(crate) struct GoDriver;

impl Program for GoDriver {
    const FLAGS: &'static [Idle] = FLAGS;
}

const FLAGS: &[Idle] = &[
    ("kube-api-qps", Number, NO_LIMIT),
    ("kube-api-burst", Number, NO_LIMIT),
    ("min-resync-period", Text, NO_LIMIT),
    (
        "nodeid",
        Text,
        "the id of a node is that of its server, from its metadata",
    ),
    (
        "node-service-no-os-client",
        Switch,
        "the node service never asks the cloud",
    ),
    ("log-flush-frequency", Text, ONE_LOG),
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
        idle: WithoutEffect<GoDriver>,
    }

    #[test]
    fn flags_that_change_nothing_are_accepted_and_named() {
        let flags = without_effect(FLAGS);
        assert_eq!(flags.len(), FLAGS.len());
        let words = std::iter::once("csi").chain(flags.iter().map(String::as_str));
        let parsed = Program::try_parse_from(words).unwrap();
        let named = parsed.idle.given().iter().map(|(flag, _)| flag.as_str());
        let name = |flag: &String| flag.split('=').next().unwrap().to_owned();
        assert!(named.eq(flags.iter().map(name)));
    }

    #[test]
    fn the_page_has_each_of_them() {
        let page = include_str!("../../../../../docs/guides/cinder-csi.md");
        for (name, ..) in FLAGS {
            assert!(page.contains(&format!("`--{name}`")), "{name}");
        }
    }
}
