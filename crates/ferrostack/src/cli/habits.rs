//! Words of clusterctl, kubectl and the `openstack` client with other names here.

use std::ffi::OsString;

/// Replacement for a word of another program, in rejected arguments.
pub(super) fn hint(arguments: &[OsString]) -> Option<String> {
    let words: Vec<String> = arguments
        .iter()
        .skip(1)
        .map(|it| it.to_string_lossy().into_owned())
        .collect();
    let first = words.iter().find(|it| !it.starts_with('-'));
    if first.is_some_and(|it| it == "alpha") {
        let after = words.iter().skip_while(|it| *it != "alpha").nth(1);
        return Some(match after.map(String::as_str) {
            Some(known @ ("rollout" | "topology")) => format!(
                "`clusterctl alpha {known}` is `ferrostack {known}` here: leave the word alpha out"
            ),
            _ => "the commands of `clusterctl alpha` are `ferrostack rollout` and `ferrostack topology` here"
                .to_owned(),
        });
    }
    let is_verbosity = |word: &str| {
        if word == "--verbose" {
            return true;
        }
        let level = ["--v", "-v"].iter().find_map(|it| word.strip_prefix(it));
        level.is_some_and(|it| {
            it.trim_start_matches('=')
                .chars()
                .all(|letter| letter.is_ascii_digit())
        })
    };
    if words.iter().any(|it| is_verbosity(it)) {
        return Some(
            "the verbosity `-v N` of clusterctl and kubectl is `--log FILTER` here, such as --log debug"
                .to_owned(),
        );
    }
    let is_short = |pair: &[String]| matches!(pair, [flag, value] if ["-o", "--output"].contains(&flag.as_str()) && value == "short");
    let joined = ["-oshort", "-o=short", "--output=short"];
    if words.windows(2).any(is_short) || words.iter().any(|it| joined.contains(&it.as_str())) {
        return Some(
            "what clusterctl prints with `-o short` is printed without the flag here".to_owned(),
        );
    }
    let mut plain = words.iter().filter(|it| !it.starts_with('-'));
    let (first, second) = (plain.next()?.as_str(), plain.next().map(String::as_str));
    of_kubectl(first, second).or_else(|| of_openstack(first, second))
}

/// Hint about a word of kubectl.
fn of_kubectl(first: &str, second: Option<&str>) -> Option<String> {
    const KUBECTL: &str = "kubectl, with the kubeconfig that `ferrostack status` prints";
    let is_cluster = matches!(second, Some("cluster" | "clusters" | "cl"));
    Some(match (first, second) {
        ("get" | "describe", Some("cluster" | "clusters" | "kubeconfig")) => return None,
        ("get", Some(kind)) => format!(
            "`ferrostack get` has clusters and kubeconfig; `ferrostack describe cluster` shows the machines, and {KUBECTL}, gets {kind}"
        ),
        ("describe", Some(kind)) => format!(
            "`ferrostack why {kind}/NAME` explains one object, `ferrostack describe cluster` shows all of a cluster"
        ),
        ("delete", Some(_)) if !is_cluster => format!(
            "`ferrostack delete cluster NAME` deletes a cluster; for other objects use {KUBECTL}"
        ),
        ("create", Some("cluster")) | ("create", None) => "`ferrostack up --cluster-name NAME` creates a cluster, or \
             `ferrostack generate cluster NAME | ferrostack apply -f -` in a management cluster that runs"
            .to_owned(),
        ("list" | "ls", _) => "`ferrostack get clusters` lists clusters".to_owned(),
        ("start", _) => "`ferrostack up` starts, with --detach in the background".to_owned(),
        ("stop", _) => "`ferrostack down` stops an `up` in the background".to_owned(),
        ("create" | "scale" | "edit" | "patch" | "label" | "annotate" | "exec" | "port-forward" | "drain" | "cordon", _) => {
            format!("`{first}` is a command of {KUBECTL}")
        }
        _ => return None,
    })
}

/// Hint about a command of the `openstack` client.
fn of_openstack(first: &str, second: Option<&str>) -> Option<String> {
    let nouns = [
        "server",
        "network",
        "subnet",
        "router",
        "port",
        "image",
        "flavor",
        "volume",
        "quota",
        "loadbalancer",
        "keypair",
        "project",
        "user",
        "catalog",
        "endpoint",
        "token",
        "security",
        "floating",
        "hypervisor",
        "service",
    ];
    if first != "openstack" {
        return None;
    }
    match second? {
        "down" | "stop" => {
            return Some("`openstack up` prints how a cloud in the background is stopped: `ferrostack down --data-dir DIR`".to_owned());
        }
        "logs" | "log" | "events" => {
            return Some("`ferrostack openstack why` has the causes; logs of its Pods are those of `kubectl logs --namespace openstack`".to_owned());
        }
        _ => {}
    }
    second.filter(|noun| nouns.contains(noun))?;
    Some(
        "`ferrostack openstack` runs an OpenStack on Kubernetes; its client is the program `openstack`, for which `ferrostack \
         status` and `ferrostack openstack clouds-yaml` print the login"
            .to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_other_programs_get_a_hint() {
        for (command, expected) in [
            ("alpha rollout restart x/y", Some("`ferrostack rollout`")),
            ("alpha topology plan -f x", Some("`ferrostack topology`")),
            ("alpha", Some("`ferrostack topology`")),
            ("describe cluster a -v 5", Some("--log")),
            ("describe cluster a -v5", Some("--log")),
            ("describe cluster a --v=5", Some("--log")),
            ("version -o short", Some("without the flag")),
            ("version --output=short", Some("without the flag")),
            ("--verbose up", Some("--log debug")),
            ("get machines", Some("gets machines")),
            ("get nodes -o wide", Some("kubectl")),
            ("describe machine a", Some("`ferrostack why machine/NAME`")),
            ("delete demo", Some("delete cluster NAME")),
            ("delete machine a", Some("kubectl")),
            ("create cluster a", Some("generate cluster NAME")),
            ("scale md a", Some("kubectl")),
            ("list", Some("get clusters")),
            ("stop", Some("`ferrostack down`")),
            ("openstack server list", Some("clouds-yaml")),
            ("openstack down", Some("`ferrostack down --data-dir DIR`")),
            ("openstack logs", Some("openstack why")),
            ("openstack statu", None),
            ("get clusters --x", None),
            ("delete cluster", None),
            ("describe cluster --versions", None),
            ("get kubeconfig alpha", None),
        ] {
            let words = std::iter::once("ferrostack").chain(command.split(' '));
            let words: Vec<OsString> = words.map(OsString::from).collect();
            let found = hint(&words);
            match expected {
                Some(expected) => assert!(found.unwrap().contains(expected), "{command}"),
                None => assert_eq!(found, None, "{command}"),
            }
        }
    }
}
