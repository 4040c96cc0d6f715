//! Flags of the Go manager that change nothing here, and those that are refused.

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};

/// What the value of a flag is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Takes {
    Text,
    Number,
    /// `true` or `false`, `true` without a value.
    Switch,
    /// The same, where this value is what holds here anyway.
    Already(bool),
}

use Takes::{Already, Number, Switch, Text};

const NOTHING: &str = "it changes nothing in the Go manager, either";
const UNLIMITED: &str = "requests to the API server are not limited";
const NO_LOGIN: &str =
    "nobody logs in here: /healthz is for everybody, and the rest for processes of this host";
const NO_WEBHOOKS: &str = "there are no webhooks";
const SELF_SIGNED: &str =
    "without --tls-cert-file, the certificate is made at the start and not stored";
const SERVER: &str = "the server has no such setting";
const ONE_LOG: &str = "the log goes to standard error as text; --log and --v choose what is in it";
const NO_MIGRATION: &str = "there is no provider in the tree of Kubernetes to migrate from";

/// Each flag, what it takes, and why it changes nothing.
const FLAGS: &[(&str, Takes, &str)] = &[
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
    ("enable-leader-migration", Already(false), NO_MIGRATION),
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

/// Flags of the Go manager that change nothing here: those that were given, each with the reason.
#[derive(Clone, Debug, Default)]
pub(crate) struct WithoutEffect(Vec<(String, &'static str)>);

impl WithoutEffect {
    /// The flags that are given, each with the reason why it changes nothing.
    pub(crate) fn given(&self) -> &[(String, &'static str)] {
        &self.0
    }

    fn read(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut given = Vec::new();
        for (name, takes, why) in FLAGS {
            if matches.value_source(name) != Some(ValueSource::CommandLine) {
                continue;
            }
            let values: Vec<&String> = matches.get_many(name).into_iter().flatten().collect();
            check(
                name,
                *takes,
                values.last().map_or("", |value| value.as_str()),
            )?;
            let holds = |value: &&String| matches!(takes, Already(is) if value.parse() == Ok(*is));
            if !values.last().is_some_and(holds) {
                given.push((format!("--{name}"), *why));
            }
        }
        Ok(Self(given))
    }
}

/// Refuses values that are none, and those that ask for what would be silently missing.
fn check(name: &str, takes: Takes, value: &str) -> Result<(), clap::Error> {
    let refused = |problem: String| {
        let message = format!("--{name}: {problem}\n");
        Err(clap::Error::raw(
            clap::error::ErrorKind::ValueValidation,
            message,
        ))
    };
    match takes {
        Number if value.parse::<f64>().is_err() => refused(format!("`{value}` is not a number")),
        Switch | Already(_) if value.parse::<bool>().is_err() => {
            refused(format!("`{value}`: write true or false"))
        }
        Already(_) if name == "enable-leader-migration" && value == "true" => refused(
            "this manager does not take the Lease of the migration, so that another manager that waits for it would work \
             at the same time; remove the flag, there is no provider in the tree of Kubernetes any more"
                .to_owned(),
        ),
        _ => Ok(()),
    }
}

impl clap::FromArgMatches for WithoutEffect {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Self::read(matches)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::read(matches)?;
        Ok(())
    }
}

impl clap::Args for WithoutEffect {
    fn augment_args(command: Command) -> Command {
        FLAGS.iter().fold(command, |command, (name, takes, why)| {
            let flag = Arg::new(*name)
                .long(*name)
                .help(format!("No effect: {why}"))
                .hide(true)
                .action(ArgAction::Append);
            command.arg(match takes {
                Text | Number => flag.value_name("VALUE").num_args(1),
                Switch | Already(_) => flag
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

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Program {
        #[command(flatten)]
        idle: WithoutEffect,
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
        for (name, takes, _) in FLAGS {
            let value = match takes {
                Text => "x",
                Number => "7",
                Switch => "true",
                Already(is) => {
                    if *is {
                        "false"
                    } else {
                        "true"
                    }
                }
            };
            let result = given(&[&format!("--{name}={value}")]);
            match *name {
                "enable-leader-migration" => {
                    assert!(result.unwrap_err().contains("at the same time"))
                }
                _ => assert_eq!(result.unwrap().len(), 1, "{name}"),
            }
        }
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
        let page = include_str!("../../../../../docs/cloud-controller-manager.md");
        for (name, ..) in FLAGS {
            assert!(page.contains(&format!("`--{name}`")), "{name}");
        }
    }
}
