//! Access between programs: NetworkPolicies, from the addresses in the configuration of the programs of a cloud.
//!
//! Databases, the message broker, the cache and OVN accept connections only from programs with the address in their
//! configuration or with a need of the step; the APIs accept connections from everywhere. The kubelet, whose probes
//! come from the node, and forwarded ports, which begin inside of the Pod, need no policy.

use serde_json::{Value as Json, json};

use super::CONFIGURATION;
use super::names::Names;
use crate::object::{Object, ObjectKind};
use crate::service::definition::{Address, Callers, Content, Definition, Run, Task, Variable};

/// Name of the policy that closes every Pod of the cloud: the others open ports.
const CLOSED: &str = "closed";

/// NetworkPolicies of a cloud.
pub(super) fn policies(names: &Names<'_>, definitions: &[Definition]) -> Vec<Object> {
    let programs = programs(definitions);
    let addresses = definitions.iter().flat_map(|it| &it.addresses);
    let open = addresses
        .filter(|it| !it.ports.is_empty())
        .map(|address| opened(names, address, &programs));
    let all = json!({crate::held::UID: names.held.uid()});
    let closed = policy(names, CLOSED, &all, json!([]));
    std::iter::once(closed).chain(open).collect()
}

/// NetworkPolicies of tasks outside of the definitions, for the addresses in their configuration.
pub(super) fn policies_beside(
    names: &Names<'_>,
    definitions: &[Definition],
    tasks: &[&Task],
    prefix: &str,
) -> Vec<Object> {
    let programs: Vec<Program<'_>> = tasks
        .iter()
        .map(|it| Program {
            name: it.name,
            run: &it.run,
            needs: &[],
        })
        .collect();
    let addresses = definitions.iter().flat_map(|it| &it.addresses);
    let closed = addresses.filter(|it| it.callers == Callers::Readers && !it.ports.is_empty());
    let rule = |address: &Address| {
        let callers = programs.iter().filter(|it| it.connects(address));
        let from: Vec<Json> = callers
            .map(|it| json!({"podSelector": {"matchLabels": names.selector(it.name)}}))
            .collect();
        let numbers = address.ports.iter().map(|(name, _)| json!({"port": name}));
        let ports: Vec<Json> = numbers.collect();
        let selector = names.selector(address.workload);
        let name = format!("{prefix}-{}", address.name);
        let rule = json!([{"ports": ports, "from": from}]);
        (!from.is_empty()).then(|| policy(names, &name, &selector, rule))
    };
    closed.filter_map(rule).collect()
}

/// NetworkPolicy of an [`Address`].
fn opened(names: &Names<'_>, address: &Address, programs: &[Program<'_>]) -> Object {
    let numbers = address.ports.iter().map(|(name, _)| json!({"port": name}));
    let mut rule = json!({"ports": numbers.collect::<Vec<Json>>()});
    if address.callers == Callers::Readers {
        let callers = programs.iter().filter(|it| it.connects(address));
        let from =
            callers.map(|it| json!({"podSelector": {"matchLabels": names.selector(it.name)}}));
        let from: Vec<Json> = from.collect();
        // A rule without sources would be one for everybody.
        if from.is_empty() {
            return policy(
                names,
                address.name,
                &names.selector(address.workload),
                json!([]),
            );
        }
        rule["from"] = from.into();
    }
    let selector = names.selector(address.workload);
    policy(names, address.name, &selector, json!([rule]))
}

fn policy(names: &Names<'_>, name: &str, pods: &Json, ingress: Json) -> Object {
    let spec = json!({
        "podSelector": {"matchLabels": pods},
        "policyTypes": ["Ingress"],
        "ingress": ingress,
    });
    let metadata = names.metadata(CONFIGURATION);
    let fields = json!({"spec": spec});
    Object::new(ObjectKind::NetworkPolicy, name, metadata, fields)
}

/// Program: a [`Task`] or a [`Workload`](crate::service::definition::Workload).
struct Program<'a> {
    name: &'a str,
    run: &'a Run,
    needs: &'a [&'static str],
}

fn programs(definitions: &[Definition]) -> Vec<Program<'_>> {
    let of = |definition| {
        let Definition {
            tasks, workloads, ..
        }: &Definition = definition;
        let tasks = tasks.iter().map(|it| Program {
            name: it.name,
            run: &it.run,
            needs: &it.needs,
        });
        let workloads = workloads.iter().map(|it| Program {
            name: it.name,
            run: &it.run,
            needs: &it.needs,
        });
        tasks.chain(workloads)
    };
    definitions.iter().flat_map(of).collect()
}

impl Program<'_> {
    /// True if the program connects to the [`Address`].
    fn connects(&self, address: &Address) -> bool {
        let run = self.run;
        let files = run.files.iter().map(|file| match &file.content {
            Content::Public(text) => text.as_str(),
            Content::Secret(text) => text.expose(),
        });
        let environment = run.environment.iter().map(|(_, it)| it);
        let mut texts = files.chain(run.command.iter().map(String::as_str)).chain(
            environment.clone().filter_map(|it| match it {
                Variable::Text(text) => Some(text.as_str()),
                Variable::Field(_) | Variable::Account(_) | Variable::Database(..) => None,
            }),
        );
        let database =
            |it: &Variable| matches!(it, Variable::Database(name, _) if *name == address.name);
        self.needs.contains(&address.workload)
            || environment.clone().any(database)
            || texts.any(|text| names_host(text, address))
    }
}

/// True if the text has a host and port of the [`Address`]: `memcached:11211`,
/// `tcp:ovn-nb.openstack.svc.cluster.local:6641`.
fn names_host(text: &str, address: &Address) -> bool {
    let is_of_host = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '.');
    let ends = |(start, name): (usize, &str)| {
        let before = text.get(..start).and_then(|it| it.chars().next_back());
        let rest = text.get(start + name.len()..).unwrap_or_default();
        let port = rest.trim_start_matches(is_of_host).strip_prefix(':')?;
        let is_whole = rest.starts_with([':', '.']) && !before.is_some_and(is_of_host);
        let digits = port.len()
            - port
                .trim_start_matches(|it: char| it.is_ascii_digit())
                .len();
        is_whole
            .then(|| port.get(..digits)?.parse::<u16>().ok())
            .flatten()
    };
    let mut ports = text.match_indices(address.name).filter_map(ends);
    ports.any(|port| address.ports.iter().any(|(_, it)| *it == port))
}

#[cfg(test)]
mod tests;
