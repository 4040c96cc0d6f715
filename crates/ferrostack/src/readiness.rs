//! Whether a cluster is ready, and what it waits for.

pub(crate) mod cause;

pub(crate) use cause::cause;

use crate::snapshot::{Item, Kind, Snapshot};

/// An object that is not ready, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pending {
    pub(crate) object: String,
    pub(crate) why: String,
}

/// The objects that are not ready until every Cluster is Available and every Machine Running; empty if all are.
pub(crate) fn pending(snapshot: &Snapshot) -> Vec<Pending> {
    let mut out = Vec::new();
    if snapshot.of_kind(Kind::Cluster).next().is_none() {
        out.push(Pending {
            object: "Cluster".to_owned(),
            why: "there is none".to_owned(),
        });
    }
    for item in &snapshot.items {
        let why = match item.kind {
            Kind::Cluster => cluster(item),
            Kind::KubeadmControlPlane | Kind::MachineDeployment => replicas(item),
            Kind::Machine => machine(item, snapshot),
            Kind::OpenStackCluster | Kind::MachineSet | Kind::OpenStackMachine | Kind::Other => {
                None
            }
        };
        if let Some(why) = why {
            // What fails somewhere below comes before what the object itself waits for.
            let why = match cause(snapshot, item) {
                Some(cause) if cause.failing => cause.text,
                _ => why,
            };
            out.push(Pending {
                object: item.label(),
                why,
            });
        }
    }
    out
}

/// What `item` itself waits for: the message of its first condition that is not true.
pub(crate) fn waits_for(item: &Item) -> Option<String> {
    let order: &[&str] = match item.kind {
        Kind::Cluster => &[
            "TopologyReconciled",
            "InfrastructureReady",
            "ControlPlaneAvailable",
            "Available",
        ],
        Kind::KubeadmControlPlane => &["CertificatesAvailable", "Initialized", "Available"],
        Kind::Machine => &[
            "BootstrapConfigReady",
            "InfrastructureReady",
            "NodeReady",
            "Ready",
        ],
        Kind::MachineDeployment | Kind::MachineSet => &["Available"],
        Kind::OpenStackCluster | Kind::OpenStackMachine => &["Ready"],
        Kind::Other => &["Ready", "Available"],
    };
    order
        .iter()
        .filter_map(|type_| item.condition(type_))
        .find(|c| c.status != "True")
        .map(
            |c| match (c.message.lines().next().unwrap_or_default(), c.reason) {
                ("", "") => format!("{} is {}", c.type_, c.status),
                ("", reason) => reason.to_owned(),
                _ => summary(c.message),
            },
        )
}

/// The first sentence of a condition's message. Messages of summary conditions are lists: a line that ends with a
/// colon, followed by one line for each object.
pub(crate) fn summary(message: &str) -> String {
    let mut out = String::new();
    for line in message.lines() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(line.trim_start().trim_start_matches("* "));
        if !out.ends_with(':') {
            break;
        }
    }
    out
}

fn cluster(item: &Item) -> Option<String> {
    if item.is_deleting() {
        return Some("it is being deleted".to_owned());
    }
    match item.condition("Available") {
        Some(available) if available.status == "True" => None,
        _ => Some(waits_for(item).unwrap_or_else(|| "it is not Available yet".to_owned())),
    }
}

fn replicas(item: &Item) -> Option<String> {
    let wanted = item.field("/spec/replicas").as_i64().unwrap_or(1);
    let count = |field: &str| item.field(field).as_i64().unwrap_or(0);
    let generation = item.object.metadata.generation;
    let observed = item.field("/status/observedGeneration").as_i64();
    if observed
        .zip(generation)
        .is_some_and(|(observed, generation)| observed < generation)
    {
        return Some("its change has not been reconciled yet".to_owned());
    }
    let (all, ready) = (count("/status/replicas"), count("/status/readyReplicas"));
    let current = item
        .field("/status/upToDateReplicas")
        .as_i64()
        .unwrap_or(wanted);
    if all == wanted && ready == wanted && current == wanted {
        return None;
    }
    if all == wanted && ready == wanted {
        return Some(format!("{current} of {wanted} machines are up to date"));
    }
    let counts = format!("{ready} of {wanted} machines are ready");
    Some(match waits_for(item) {
        Some(why) => format!("{counts}; {why}"),
        None => counts,
    })
}

fn machine(item: &Item, snapshot: &Snapshot) -> Option<String> {
    let phase = item.field("/status/phase").as_str().unwrap_or("Pending");
    if phase == "Running" && !item.is_deleting() {
        return None;
    }
    let infrastructure = item.field("/spec/infrastructureRef/name").as_str();
    let infrastructure = infrastructure.and_then(|name| {
        let mut named = snapshot.named(item.namespace(), name);
        named.find(|it| it.kind == Kind::OpenStackMachine)
    });
    let why = waits_for(item).or_else(|| infrastructure.and_then(waits_for));
    Some(match why {
        Some(why) => format!("{phase}: {why}"),
        None => phase.to_owned(),
    })
}

#[cfg(test)]
mod tests;
