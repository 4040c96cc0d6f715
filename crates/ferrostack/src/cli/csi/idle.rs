//! Flags of the Go driver that change nothing here.

use crate::cli::idle::Takes::{Already, Number, Switch, Text};
use crate::cli::idle::{Idle, ONE_LOG, Program};

const NO_ANNOTATIONS: &str = "scheduler hints from annotations of claims are not built";
const NO_CLUSTER: &str = "nothing is asked of an API server";

/// The Cinder CSI driver in Go.
#[derive(Clone, Debug)]
pub(crate) struct GoDriver;

impl Program for GoDriver {
    const FLAGS: &'static [Idle] = FLAGS;
}

const FLAGS: &[Idle] = &[
    ("pvc-annotations", Already(false), NO_ANNOTATIONS),
    ("kubeconfig", Text, NO_CLUSTER),
    ("context", Text, NO_CLUSTER),
    ("master", Text, NO_CLUSTER),
    ("kube-api-qps", Number, NO_CLUSTER),
    ("kube-api-burst", Number, NO_CLUSTER),
    ("min-resync-period", Text, NO_CLUSTER),
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
        // Off is what it is anyway.
        let off = Program::try_parse_from(["csi", "--pvc-annotations=false"]).unwrap();
        assert!(off.idle.given().is_empty());
    }

    #[test]
    fn the_page_has_each_of_them() {
        let page = include_str!("../../../../../docs/cinder-csi.md");
        for (name, ..) in FLAGS {
            // What clients of Kubernetes call so is no flag of the Go driver.
            if *name != "context" {
                assert!(page.contains(&format!("`--{name}`")), "{name}");
            }
        }
    }
}
