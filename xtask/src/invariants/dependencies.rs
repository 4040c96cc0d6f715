//! Rules for the dependencies of crates.

use std::path::Path;

use serde::Deserialize;

use crate::workspace;

/// Rule for a crate of the workspace: permitted dependencies, further dependencies of tests, and forbidden external
/// crates, each in the workspace's names.
struct Rule {
    name: &'static str,
    uses: &'static [&'static str],
    tests_use: &'static [&'static str],
    never: &'static [&'static str],
}

/// Crates that open connections and files.
const IO: &[&str] = &[
    "tokio",
    "tokio-util",
    "reqwest",
    "hyper",
    "hyper-util",
    "axum",
    "rusqlite",
    "rustls",
    "tower",
];
/// Crates that open connections and files, and the ones of Kubernetes.
const IO_AND_KUBERNETES: &[&str] = &[
    "tokio",
    "tokio-util",
    "reqwest",
    "hyper",
    "hyper-util",
    "axum",
    "rusqlite",
    "rustls",
    "tower",
    "kube",
    "kube-*",
    "k8s-openapi",
];
/// Crates by which a controller could reach a service without `openstack` and `kube::Client`.
const CLIENTS: &[&str] = &["reqwest", "hyper", "hyper-util", "rusqlite"];

const RULES: &[Rule] = &[
    Rule {
        name: "api",
        uses: &[],
        tests_use: &["skipped"],
        never: IO,
    },
    Rule {
        name: "apimachinery",
        uses: &[],
        tests_use: &["skipped"],
        never: IO,
    },
    Rule {
        name: "apiserver",
        uses: &["apimachinery"],
        tests_use: &["skipped"],
        never: &["kube"],
    },
    Rule {
        name: "apply",
        uses: &["api", "manifest", "operator"],
        tests_use: &[],
        never: CLIENTS,
    },
    Rule {
        name: "deployer",
        uses: &["keys"],
        tests_use: &["converging"],
        never: IO,
    },
    Rule {
        name: "csi",
        uses: &["csi-spec", "grpc", "openstack"],
        tests_use: &["cloud-conf", "simulator"],
        never: &[
            "kube",
            "kube-*",
            "k8s-openapi",
            "reqwest",
            "hyper",
            "hyper-util",
            "rusqlite",
        ],
    },
    Rule {
        name: "csi-node",
        uses: &["csi-spec", "grpc"],
        tests_use: &["skipped"],
        // A node has no credentials, neither of the cloud nor of the cluster.
        never: &["kube", "kube-*", "k8s-openapi", "reqwest"],
    },
    Rule {
        name: "csi-spec",
        uses: &["grpc"],
        tests_use: &[],
        never: &["kube", "kube-*", "k8s-openapi"],
    },
    Rule {
        name: "etcd",
        uses: &["grpc"],
        tests_use: &[],
        never: &["kube", "kube-*", "k8s-openapi"],
    },
    Rule {
        name: "grpc",
        uses: &[],
        tests_use: &[],
        never: &["kube", "kube-*", "k8s-openapi", "rustls"],
    },
    Rule {
        name: "guests",
        uses: &["openstack", "simulator"],
        tests_use: &[],
        never: &["kube", "kube-*", "k8s-openapi", "reqwest", "rusqlite"],
    },
    Rule {
        name: "heap",
        uses: &[],
        tests_use: &[],
        never: IO,
    },
    Rule {
        name: "keystone-auth",
        uses: &["openstack"],
        tests_use: &["simulator"],
        // The simulator starts without an API server; writing to one is a trait.
        never: &[
            "kube",
            "kube-*",
            "k8s-openapi",
            "reqwest",
            "hyper",
            "hyper-util",
            "rusqlite",
        ],
    },
    Rule {
        name: "installer",
        uses: &["api", "apply", "manifest", "operator", "terminal"],
        tests_use: &["apiserver", "management"],
        never: CLIENTS,
    },
    Rule {
        name: "keys",
        uses: &[],
        tests_use: &[],
        never: IO,
    },
    Rule {
        name: "openstack",
        uses: &[],
        tests_use: &[],
        never: &["kube", "kube-*", "k8s-openapi"],
    },
    Rule {
        name: "operator",
        uses: &["api"],
        tests_use: &[],
        // The client of workload clusters speaks HTTP/2, unlike the one of `kube`.
        never: &["reqwest", "rusqlite"],
    },
    Rule {
        name: "provider",
        uses: &[
            "api",
            "cloud-conf",
            "load-balancing",
            "openstack",
            "operator",
        ],
        tests_use: &["apiserver", "octavia-model", "simulator", "testbed"],
        never: CLIENTS,
    },
    Rule {
        name: "ccm",
        uses: &[
            "api",
            "cloud-conf",
            "load-balancing",
            "openstack",
            "operator",
        ],
        tests_use: &[
            "apiserver",
            "converging",
            "octavia-model",
            "simulator",
            "testbed",
        ],
        never: CLIENTS,
    },
    Rule {
        name: "load-balancing",
        uses: &["openstack"],
        tests_use: &["converging", "octavia-model"],
        never: IO_AND_KUBERNETES,
    },
    Rule {
        name: "octavia-model",
        uses: &["load-balancing", "openstack"],
        tests_use: &[],
        never: IO_AND_KUBERNETES,
    },
    Rule {
        name: "cloud-conf",
        uses: &["openstack"],
        tests_use: &[],
        never: IO,
    },
    Rule {
        name: "manifest",
        uses: &["api"],
        tests_use: &[],
        never: IO,
    },
    Rule {
        name: "clusterapi",
        uses: &["api", "etcd", "keys", "operator", "topology"],
        tests_use: &["apiserver", "converging", "simulator", "skipped", "testbed"],
        never: CLIENTS,
    },
    Rule {
        name: "mover",
        uses: &["api", "operator"],
        tests_use: &[
            "clusterapi",
            "openstack",
            "provider",
            "simulator",
            "testbed",
        ],
        never: CLIENTS,
    },
    Rule {
        name: "rollout",
        uses: &["api", "deployer", "operator"],
        tests_use: &["apiserver", "simulator", "skipped", "testbed"],
        // With hyper, the crate speaks HTTP on ports forwarded by the API server, without connections of its own.
        never: &["reqwest", "rusqlite"],
    },
    Rule {
        name: "simulator",
        uses: &["apimachinery", "apiserver", "etcd"],
        tests_use: &[],
        never: &[],
    },
    Rule {
        name: "status",
        uses: &["api", "operator", "terminal"],
        tests_use: &["apiserver"],
        never: CLIENTS,
    },
    Rule {
        name: "terminal",
        uses: &["api", "apimachinery"],
        tests_use: &[],
        never: IO,
    },
    Rule {
        name: "topology",
        uses: &["api", "apimachinery"],
        tests_use: &["skipped"],
        never: IO,
    },
    Rule {
        name: "management",
        uses: &["api", "apiserver", "deployer", "topology"],
        tests_use: &[],
        never: &[],
    },
    Rule {
        name: "testbed",
        uses: &[
            "api",
            "apimachinery",
            "apiserver",
            "heap",
            "management",
            "openstack",
        ],
        // The tests have the life of a cluster, with all controllers.
        tests_use: &["clusterapi", "provider", "simulator"],
        never: &[],
    },
    Rule {
        name: "converging",
        uses: &[],
        tests_use: &[],
        never: IO,
    },
    Rule {
        name: "skipped",
        uses: &[],
        tests_use: &[],
        never: &[],
    },
    Rule {
        name: "ferrostack",
        uses: &[
            "api",
            "apimachinery",
            "apiserver",
            "apply",
            "ccm",
            "cloud-conf",
            "clusterapi",
            "csi",
            "csi-node",
            "csi-spec",
            "deployer",
            "grpc",
            "guests",
            "heap",
            "installer",
            "keystone-auth",
            "management",
            "manifest",
            "mover",
            "openstack",
            "operator",
            "provider",
            "rollout",
            "simulator",
            "status",
            "terminal",
        ],
        tests_use: &["skipped", "testbed"],
        never: &[],
    },
    Rule {
        name: "xtask",
        uses: &["api", "apiserver", "csi-spec", "grpc"],
        tests_use: &["skipped"],
        never: &[],
    },
];

/// Package in the output of `cargo metadata`.
#[derive(Debug, Deserialize)]
pub(super) struct Package {
    name: String,
    dependencies: Vec<Dependency>,
}

#[derive(Debug, Deserialize)]
struct Dependency {
    name: String,
    /// `dev` or `build`; absent for ordinary dependencies.
    kind: Option<String>,
    /// Directory of a package of the workspace.
    path: Option<String>,
}

/// [`Package`]s of the workspace.
pub(super) fn packages(root: &Path) -> anyhow::Result<Vec<Package>> {
    #[derive(Deserialize)]
    struct Metadata {
        packages: Vec<Package>,
    }
    let metadata: Metadata = serde_json::from_slice(&workspace::metadata(root)?)?;
    Ok(metadata.packages)
}

/// Dependencies without permission, packages without a rule, and rules without a package or dependency.
pub(super) fn broken(packages: &[Package]) -> Vec<String> {
    let mut problems = Vec::new();
    for package in packages {
        let name = short(&package.name);
        match RULES.iter().find(|rule| rule.name == name) {
            Some(rule) => problems.extend(rule.broken_by(package)),
            None => problems.push(format!(
                "crate {name}: say in xtask/src/invariants/dependencies.rs what it may use"
            )),
        }
    }
    problems
}

/// Crates missing in the table of ARCHITECTURE.md.
pub(super) fn undescribed(architecture: &str) -> Vec<String> {
    let described = |name: &str| architecture.contains(&format!("| `{name}` |"));
    RULES
        .iter()
        .filter(|rule| rule.name != "xtask" && !described(rule.name))
        .map(|rule| format!("ARCHITECTURE.md: the table of crates lacks `{}`", rule.name))
        .collect()
}

impl Rule {
    fn broken_by(&self, package: &Package) -> Vec<String> {
        let mut problems = Vec::new();
        let crate_name = self.name;
        for dependency in &package.dependencies {
            let name = short(&dependency.name);
            let test = dependency.kind.as_deref() == Some("dev");
            if dependency.path.is_some() {
                let allowed = self.uses.contains(&name) || test && self.tests_use.contains(&name);
                if !allowed {
                    let by = if test { "the tests of " } else { "" };
                    problems.push(format!(
                        "{by}crate {crate_name} must not use {name} (ARCHITECTURE.md)"
                    ));
                }
            } else if !test && self.never.iter().any(|never| matches(never, name)) {
                problems.push(format!(
                    "crate {crate_name} must not use {name} (ARCHITECTURE.md)"
                ));
            }
        }
        let used = |name: &&&str| {
            let mut dependencies = package.dependencies.iter();
            !dependencies.any(|one| one.path.is_some() && short(&one.name) == **name)
        };
        let unused = self.uses.iter().chain(self.tests_use).filter(used);
        problems.extend(unused.map(|name| {
            format!("crate {crate_name} may use {name} and does not: take it from the rule")
        }));
        problems
    }
}

fn short(name: &str) -> &str {
    name.strip_prefix("ferrostack-").unwrap_or(name)
}

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == pattern,
    }
}

#[cfg(test)]
mod tests;
