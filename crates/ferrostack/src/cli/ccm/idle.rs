//! Flags of the Go manager without an effect here, and refused ones.

use crate::cli::idle::Takes::{Already, Never, Number, Switch, Text};
use crate::cli::idle::{Idle, ONE_LOG, Program};

/// Cloud controller manager in Go.
#[derive(Clone, Debug)]
pub(crate) struct GoManager;

impl Program for GoManager {
    const FLAGS: &'static [Idle] = FLAGS;
}

const NOTHING: &str = "it changes nothing in the Go manager, either";
const UNLIMITED: &str = "requests to the API server are not limited";
const NO_LOGIN: &str =
    "nobody logs in here: /healthz is for everybody, and the rest for processes of this host";
const NO_WEBHOOKS: &str = "there are no webhooks";
const SELF_SIGNED: &str =
    "without --tls-cert-file, the certificate is made at the start and not stored";
const SERVER: &str = "the server has no such setting";
const MIGRATION: &str = "this manager does not take the Lease of the migration, so that another manager that waits for it \
     would work at the same time; remove the flag, there is no provider in the tree of Kubernetes any more";
const NO_MIGRATION: &str = "there is no provider in the tree of Kubernetes to migrate from";

/// [`Idle`] flags, with their values and the reason.
const FLAGS: &[Idle] = &[
    ("allocate-node-cidrs", Switch, NOTHING),
    ("allow-untagged-cloud", Switch, NOTHING),
    ("cidr-allocator-type", Text, NOTHING),
    ("external-cloud-volume-plugin", Text, NOTHING),
    ("node-sync-period", Text, NOTHING),
    (
        "concurrent-node-status-updates",
        Number,
        "addresses are refreshed by the workers of --concurrent-node-syncs",
    ),
    (
        "controller-start-interval",
        Text,
        "all controllers start at once",
    ),
    (
        "feature-gates",
        Text,
        "there are no gates: what they would turn on is there, or it is not",
    ),
    ("emulated-version", Text, "there is one version"),
    ("kube-api-qps", Number, UNLIMITED),
    ("kube-api-burst", Number, UNLIMITED),
    (
        "kube-api-content-type",
        Text,
        "requests to the API server are JSON",
    ),
    (
        "min-resync-period",
        Text,
        "there is no resync of all objects",
    ),
    (
        "use-service-account-credentials",
        Already(false),
        "all controllers use one service account",
    ),
    ("enable-leader-migration", Never(MIGRATION), NO_MIGRATION),
    ("leader-migration-config", Text, NO_MIGRATION),
    (
        "profiling",
        Already(false),
        "there are no profiles to fetch",
    ),
    (
        "contention-profiling",
        Already(false),
        "there are no profiles to fetch",
    ),
    ("authentication-kubeconfig", Text, NO_LOGIN),
    ("authentication-skip-lookup", Switch, NO_LOGIN),
    ("authentication-token-webhook-cache-ttl", Text, NO_LOGIN),
    ("authentication-tolerate-lookup-failure", Switch, NO_LOGIN),
    ("authorization-always-allow-paths", Text, NO_LOGIN),
    ("authorization-kubeconfig", Text, NO_LOGIN),
    ("authorization-webhook-cache-authorized-ttl", Text, NO_LOGIN),
    (
        "authorization-webhook-cache-unauthorized-ttl",
        Text,
        NO_LOGIN,
    ),
    ("client-ca-file", Text, NO_LOGIN),
    ("requestheader-allowed-names", Text, NO_LOGIN),
    ("requestheader-client-ca-file", Text, NO_LOGIN),
    ("requestheader-extra-headers-prefix", Text, NO_LOGIN),
    ("requestheader-group-headers", Text, NO_LOGIN),
    ("requestheader-uid-headers", Text, NO_LOGIN),
    ("requestheader-username-headers", Text, NO_LOGIN),
    ("cert-dir", Text, SELF_SIGNED),
    (
        "tls-sni-cert-key",
        Text,
        "there is one certificate, that of --tls-cert-file",
    ),
    ("disable-http2-serving", Switch, SERVER),
    ("http2-max-streams-per-connection", Number, SERVER),
    ("permit-address-sharing", Switch, SERVER),
    ("permit-port-sharing", Switch, SERVER),
    ("webhooks", Text, NO_WEBHOOKS),
    ("webhook-bind-address", Text, NO_WEBHOOKS),
    ("webhook-cert-dir", Text, NO_WEBHOOKS),
    ("webhook-secure-port", Number, NO_WEBHOOKS),
    ("webhook-tls-cert-file", Text, NO_WEBHOOKS),
    ("webhook-tls-private-key-file", Text, NO_WEBHOOKS),
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
        idle: WithoutEffect<GoManager>,
    }

    fn given(flags: &[&str]) -> Result<Vec<String>, String> {
        let words = std::iter::once(&"ccm").chain(flags);
        let parsed = Program::try_parse_from(words).map_err(|error| error.to_string())?;
        let line = |(flag, why): &(String, &str)| format!("{flag} has no effect: {why}");
        Ok(parsed.idle.given().iter().map(line).collect())
    }

    #[test]
    fn flags_of_a_go_manifest_are_accepted_with_a_line_that_says_why_they_change_nothing() {
        let flags = [
            "--feature-gates=CloudControllerManagerWatchBasedRoutesReconciliation=true",
            "--webhooks=*",
            "--profiling=false",
            "--authentication-kubeconfig=/etc/kubernetes/ccm.conf",
            "--authorization-kubeconfig",
            "/etc/kubernetes/ccm.conf",
            "--use-service-account-credentials",
        ];
        let lines = given(&flags).unwrap();
        assert_eq!(lines.len(), 5, "{lines:?}");
        assert_eq!(
            lines[0],
            "--feature-gates has no effect: there are no gates: what they would turn on is there, or it is not"
        );
        assert!(
            lines
                .iter()
                .any(|line| line.starts_with("--webhooks has no effect: there are"))
        );
        assert!(
            !lines.iter().any(|line| line.contains("profiling")),
            "it is off anyway"
        );
        assert_eq!(given(&[]), Ok(Vec::new()));
        // Each of the table, in the form of Go's flags.
        for flag in without_effect(FLAGS) {
            assert_eq!(given(&[&flag]).unwrap().len(), 1, "{flag}");
        }
        let refused = given(&["--enable-leader-migration"]).unwrap_err();
        assert!(refused.contains("at the same time"), "{refused}");
        assert_eq!(given(&["--enable-leader-migration=false"]), Ok(Vec::new()));
    }

    #[test]
    fn values_that_are_none_are_refused() {
        for (flag, words) in [
            (
                "--kube-api-qps=fast",
                "--kube-api-qps: `fast` is not a number",
            ),
            (
                "--profiling=maybe",
                "--profiling: `maybe`: write true or false",
            ),
            ("--profilling", "unexpected argument '--profilling'"),
        ] {
            let error = given(&[flag]).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn the_page_has_each_of_them() {
        let page = include_str!("../../../../../docs/guides/cloud-controller-manager.md");
        for (name, ..) in FLAGS {
            assert!(page.contains(&format!("`--{name}`")), "{name}");
        }
    }
}
