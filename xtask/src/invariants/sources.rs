//! Rules for the content of files.

/// Words that may appear in certain files only.
struct Rule {
    /// The purpose of the words.
    what: &'static str,
    words: &'static [&'static str],
    /// Prefixes of paths where they must not appear.
    within: &'static [&'static str],
    /// Exceptions, with the reason.
    except: &'static [(&'static str, &'static str)],
}

const RULES: &[Rule] = &[
    Rule {
        what: "reads the environment",
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
            ("crates/ferrostack/src/environment.rs", "the one place"),
            (
                "crates/ferrostack/src/manager.rs",
                "the pod's ServiceAccount",
            ),
            ("crates/skipped/", "for tests alone"),
            ("xtask/", "a program of its own"),
        ],
    },
    Rule {
        what: "installs the TLS provider",
        words: &["install_default"],
        within: &["crates/"],
        except: &[("crates/ferrostack/src/main.rs", "the one place")],
    },
    Rule {
        what: "prints",
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
            (
                "crates/ferrostack/src/output",
                "the one place, which escapes what a terminal would interpret",
            ),
            (
                "crates/ferrostack/src/environment.rs",
                "it sees whether there is a terminal",
            ),
            (
                "crates/ferrostack/src/deploy/machine.rs",
                "the output of a program of this checkout",
            ),
            ("crates/skipped/", "for tests alone"),
            ("xtask/", "a program of its own"),
        ],
    },
    Rule {
        what: "waits for a store as kube does, which wakes one of those that wait",
        words: &["wait_until_ready"],
        within: &["crates/"],
        except: &[("crates/operator/src/store.rs", "the one place")],
    },
    Rule {
        what: "does I/O, or reads the clock",
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
        within: &["crates/api/"],
        except: &[],
    },
    Rule {
        what: "knows Kubernetes",
        words: &["kube", "k8s"],
        within: &["crates/openstack/"],
        except: &[],
    },
    Rule {
        what: "knows OpenStack, or our kinds",
        words: &["openstack", "OpenStack", "cluster.x-k8s.io"],
        within: &["crates/apiserver/"],
        except: &[],
    },
    Rule {
        what: "connects past the API server",
        words: &["hyper", "net::Tcp"],
        within: &["crates/rollout/"],
        except: &[(
            "crates/rollout/src/reach.rs",
            "it speaks HTTP on a port that the API server forwards",
        )],
    },
    Rule {
        what: "knows the guests past `World`",
        words: &["crate::guest"],
        within: &["crates/simulator/src/cloud"],
        except: &[],
    },
    Rule {
        what: "knows the cloud past `World`",
        words: &["crate::cloud"],
        within: &["crates/simulator/src/guest"],
        except: &[],
    },
    Rule {
        what: "sleeps, where a wait is a requeue",
        words: &["sleep(", "sleep_until(", "interval("],
        within: &[
            "crates/ccm/",
            "crates/clusterapi/",
            "crates/operator/",
            "crates/provider/",
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
                "crates/operator/src/client/",
                "the interval of a connection's signs of life, which hyper waits for, and the end of an answer",
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
        ],
    },
];

/// Violations, and exceptions that are not needed.
pub(super) fn broken(files: &[(String, String)]) -> Vec<String> {
    RULES
        .iter()
        .flat_map(|rule| rule.broken_by(files))
        .collect()
}

impl Rule {
    fn broken_by(&self, files: &[(String, String)]) -> Vec<String> {
        let mut problems = Vec::new();
        let mut needed = vec![false; self.except.len()];
        let begins = |name: &str, starts: &str| name.starts_with(starts);
        for (name, text) in files {
            if is_test(name) || !self.within.iter().any(|start| begins(name, start)) {
                continue;
            }
            let found = self.found(text);
            let except = self
                .except
                .iter()
                .position(|(start, _)| begins(name, start));
            match except {
                Some(index) => needed[index] |= !found.is_empty(),
                None => problems.extend(found.into_iter().map(|(line, word)| {
                    format!("{name}:{line}: {word}: {} (ARCHITECTURE.md)", self.what)
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

    /// Line numbers, counted from one, and the words in them, outside of comments and tests.
    fn found(&self, text: &str) -> Vec<(usize, &'static str)> {
        let code = text.split("#[cfg(test)]\nmod tests {").next();
        let lines = code.unwrap_or_default().lines().enumerate();
        lines
            .filter(|(_, line)| !line.trim_start().starts_with("//"))
            .filter_map(|(index, line)| {
                let word = self.words.iter().find(|word| line.contains(**word))?;
                Some((index + 1, *word))
            })
            .collect()
    }
}

/// Tests and examples are exempt.
fn is_test(name: &str) -> bool {
    name.ends_with("/tests.rs") || name.contains("/tests/") || name.contains("/examples/")
}

#[cfg(test)]
mod tests;
