//! Rules for the content of files.

use std::collections::BTreeMap;

use crate::syntax::{self, Names, Source};

/// Paths and words permitted in certain files only.
struct Rule {
    /// Purpose of the paths and words.
    what: &'static str,
    /// Paths that must not be named, however imported; `*` at the end matches any end of a name.
    paths: &'static [&'static str],
    /// Words that must not be in a line: other text than paths, and names importable from several places.
    words: &'static [&'static str],
    /// Prefixes of the files with the restriction.
    within: &'static [&'static str],
    /// Exceptions, with reasons.
    except: &'static [(&'static str, &'static str)],
}

const RULES: &[Rule] = &[
    Rule {
        what: "reads the environment",
        paths: &[
            "std::env::args*",
            "std::env::current_*",
            "std::env::home_dir",
            "std::env::temp_dir",
            "std::env::var*",
            "kube::Client::try_default",
            "kube::Config::incluster*",
            "kube::Config::infer",
        ],
        words: &[
            "env::var",
            "env::args",
            "env::current",
            "env::home_dir",
            "env::temp_dir",
            "option_env!",
            "Config::infer",
            "Config::incluster",
            "Client::try_default",
        ],
        within: &["crates/", "xtask/"],
        except: &[
            ("crates/ferrostack/build.rs", "what cargo says of the build"),
            ("crates/ferrostack/src/environment.rs", "the one place"),
            (
                "crates/ferrostack/src/commands/manager.rs",
                "the pod's ServiceAccount",
            ),
            ("crates/skipped/", "for tests alone"),
            ("xtask/", "a program of its own"),
        ],
    },
    Rule {
        what: "installs the TLS provider",
        paths: &[],
        words: &["install_default"],
        within: &["crates/"],
        except: &[("crates/ferrostack/src/process.rs", "the one place")],
    },
    Rule {
        what: "prints",
        paths: &[
            "std::dbg",
            "std::eprint*",
            "std::io::stderr",
            "std::io::stdout",
            "std::print*",
        ],
        words: &[
            "io::stdout",
            "io::stderr",
            "stdout()",
            "stderr()",
            "print!(",
            "println!(",
            "dbg!(",
        ],
        within: &["crates/", "xtask/"],
        except: &[
            ("crates/ferrostack/build.rs", "cargo reads it"),
            (
                "crates/ferrostack/src/output",
                "the one place, which escapes what a terminal would interpret",
            ),
            (
                "crates/ferrostack/src/environment.rs",
                "it sees whether there is a terminal",
            ),
            (
                "crates/ferrostack/src/commands/openstack/machine.rs",
                "the output of a program of this checkout",
            ),
            ("crates/skipped/", "for tests alone"),
            ("xtask/", "a program of its own"),
        ],
    },
    Rule {
        what: "waits for a store as kube does, which wakes one of those that wait",
        paths: &[],
        words: &["wait_until_ready"],
        within: &["crates/"],
        except: &[("crates/operator/src/store.rs", "the one place")],
    },
    Rule {
        what: "does I/O, or reads the clock",
        paths: &[
            "std::fs",
            "std::io",
            "std::net::Tcp*",
            "std::net::Udp*",
            "std::os",
            "std::process",
            "std::thread",
            "std::time::Instant",
            "std::time::SystemTime",
            "tokio",
            "kube::Api",
            "kube::Client",
        ],
        words: &[
            "std::fs",
            "std::io",
            "std::process",
            "std::thread",
            "net::Tcp",
            "net::Udp",
            "SystemTime",
            "Instant",
            "Timestamp::now",
            "tokio",
            "kube::Client",
            "kube::Api",
            "async fn",
        ],
        within: &[
            "crates/api/",
            "crates/apimachinery/",
            "crates/deployer/",
            "crates/load-balancing/",
            "crates/terminal/",
            "crates/topology/",
        ],
        except: &[],
    },
    Rule {
        what: "knows Kubernetes",
        paths: &[],
        words: &["kube", "k8s"],
        within: &["crates/load-balancing/", "crates/openstack/"],
        except: &[],
    },
    Rule {
        what: "knows OpenStack, or our kinds",
        paths: &[],
        words: &["openstack", "OpenStack", "cluster.x-k8s.io"],
        within: &["crates/apimachinery/", "crates/apiserver/"],
        except: &[],
    },
    Rule {
        what: "connects past the API server",
        paths: &["hyper", "hyper_util", "std::net::Tcp*", "tokio::net"],
        words: &["hyper", "net::Tcp"],
        within: &["crates/rollout/"],
        except: &[(
            "crates/rollout/src/reach.rs",
            "it speaks HTTP on a port that the API server forwards",
        )],
    },
    Rule {
        what: "sleeps, where a wait is a requeue",
        paths: &[
            "std::thread::sleep*",
            "tokio::time::interval*",
            "tokio::time::sleep*",
        ],
        words: &["sleep(", "sleep_until("],
        within: &[
            "crates/ccm/",
            "crates/clusterapi/",
            "crates/mover/",
            "crates/openstack/",
            "crates/operator/",
            "crates/provider/",
            "crates/rollout/",
        ],
        except: &[
            (
                "crates/ccm/src/routes/passes.rs",
                "the passes over all nodes are a task of their own, not a worker",
            ),
            (
                "crates/clusterapi/src/control_plane/etcd/connections.rs",
                "an unused connection is closed by a task of its own, not by a worker",
            ),
            (
                "crates/clusterapi/src/remote/connection.rs",
                "the watch of a workload cluster is a task of its own, not a worker",
            ),
            (
                "crates/mover/src/access.rs",
                "a move is a command, not a worker: a request that failed is repeated",
            ),
            (
                "crates/mover/src/pausing.rs",
                "a move is a command, not a worker: it asks until the controllers of the source have confirmed the pause",
            ),
            (
                "crates/mover/src/removal.rs",
                "a move is a command, not a worker: it asks until an object is gone",
            ),
            (
                "crates/mover/src/transfer.rs",
                "a move is a command, not a worker: it asks until the controllers of the target have confirmed the pause",
            ),
            (
                "crates/openstack/src/inventory.rs",
                "the pace of lists, for which those who ask wait a second at most",
            ),
            (
                "crates/openstack/src/inventory/hints.rs",
                "the inventory follows hints in a task of its own, not in a worker",
            ),
            (
                "crates/openstack/src/inventory/poll.rs",
                "the inventory lists in a task of its own, not in a worker",
            ),
            (
                "crates/openstack/src/session/openid.rs",
                "a login with a browser waits for the person whom it asks, and workers ask nobody",
            ),
            (
                "crates/openstack/src/session/send.rs",
                "a request is repeated twice at most, each time after a second at most",
            ),
            (
                "crates/operator/src/client/",
                "the end of the time that an answer may take",
            ),
            (
                "crates/operator/src/election.rs",
                "leader election is a task of its own, not a worker",
            ),
            (
                "crates/operator/src/store.rs",
                "the first list of a watch, without which nothing can be reconciled",
            ),
            (
                "crates/provider/src/claims.rs",
                "the first list of the watch of identities, before the controllers start",
            ),
            (
                "crates/rollout/src/run.rs",
                "changes in quick succession become one before they reach a worker",
            ),
        ],
    },
];

/// Violations of a [`Rule`], and exceptions without need.
pub(super) fn broken(sources: &[Source], names: &Names) -> Vec<String> {
    let rules = RULES.iter();
    rules
        .flat_map(|rule| rule.broken_by(sources, names))
        .collect()
}

impl Rule {
    fn broken_by(&self, sources: &[Source], names: &Names) -> Vec<String> {
        let mut problems = Vec::new();
        let mut needed = vec![false; self.except.len()];
        for source in sources.iter().filter(|source| !source.is_test()) {
            let begins = |starts: &str| source.name.starts_with(starts);
            if !self.within.iter().any(|start| begins(start)) {
                continue;
            }
            let found = self.found(source, names);
            let except = self.except.iter().position(|(start, _)| begins(start));
            match except {
                Some(index) => needed[index] |= !found.is_empty(),
                None => problems.extend(found.into_iter().map(|(line, found)| {
                    let name = &source.name;
                    format!("{name}:{line}: {found}: {} (ARCHITECTURE.md)", self.what)
                })),
            }
        }
        let unneeded = self.except.iter().zip(needed).filter(|(_, needed)| !needed);
        problems.extend(unneeded.map(|((start, _), _)| {
            format!(
                "{start}: nothing there {}: take it from the rule",
                self.what
            )
        }));
        problems
    }

    /// Lines, counted from one, with the path or word in each, outside of comments and tests.
    fn found(&self, source: &Source, names: &Names) -> BTreeMap<usize, String> {
        let mut found = BTreeMap::new();
        for path in &source.content.paths {
            let mut named = names.named(&path.module, &path.path).into_iter();
            let matches = |name: &[String]| {
                let mut paths = self.paths.iter();
                paths.any(|pattern| names_part(name, path.is_glob, pattern))
            };
            if let Some(name) = named.find(|name| matches(name)) {
                found.insert(path.line, syntax::joined(&name));
            }
        }
        for (index, line) in source.text.lines().enumerate() {
            let is_comment = line.trim_start().starts_with("//");
            if let Some(word) = self.words.iter().find(|word| line.contains(**word))
                && !is_comment
                && !source.is_test_line(index + 1)
            {
                found.insert(index + 1, (*word).to_owned());
            }
        }
        found
    }
}

/// True if the pattern describes the name, a parent of the name, or, for a glob import, something inside.
fn names_part(name: &[String], is_glob: bool, pattern: &str) -> bool {
    let parts: Vec<&str> = pattern.split("::").collect();
    let fits = |part: &&str, segment: &String| match part.strip_suffix('*') {
        Some(start) => segment.starts_with(start),
        None => part == segment,
    };
    let is_long_enough = is_glob || name.len() >= parts.len();
    let mut pairs = parts.iter().zip(name);
    is_long_enough && pairs.all(|(part, segment)| fits(part, segment))
}

#[cfg(test)]
mod tests;
