//! Readiness of a cluster, and the cause of its waiting.

pub mod cause;
pub mod reach;

pub use cause::{Cause, cause};

use api::conditions::{Reason, Type};

use crate::snapshot::{Item, Kind, Snapshot};

/// Message for an object with a status of an earlier spec.
const NOT_RECONCILED: &str = "its change has not been reconciled yet";

/// Unready object, with the cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    /// `Kind/name`.
    pub object: String,
    /// Cause in one line.
    pub why: String,
}

/// Unready objects, until every Cluster is Available and every Machine Running; empty if all are.
pub fn pending(snapshot: &Snapshot) -> Vec<Pending> {
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

/// Cause in the [`Item`] itself: the message of its first condition with a status other than true.
pub fn waits_for(item: &Item) -> Option<String> {
    let order: &[Type] = match item.kind {
        Kind::Cluster => &[
            Type::TopologyReconciled,
            Type::InfrastructureReady,
            Type::ControlPlaneAvailable,
            Type::Available,
        ],
        Kind::KubeadmControlPlane => &[
            Type::CertificatesAvailable,
            Type::Initialized,
            Type::Available,
        ],
        Kind::Machine => &[
            Type::BootstrapConfigReady,
            Type::InfrastructureReady,
            Type::NodeReady,
            Type::Ready,
        ],
        Kind::MachineDeployment | Kind::MachineSet => &[Type::Available],
        Kind::OpenStackCluster | Kind::OpenStackMachine => &[Type::Ready],
        Kind::Other => &[Type::Ready, Type::Available],
    };
    order
        .iter()
        .filter_map(|type_| item.condition(*type_))
        .find(|c| c.status != "True")
        .map(
            |c| match (c.message.lines().next().unwrap_or_default(), c.reason) {
                ("", "") => format!("{} is {}", c.type_, c.status),
                ("", reason) => reason.to_owned(),
                _ => summary(c.message),
            },
        )
}

/// First sentence of a condition's message. Messages of summary conditions are lists: a line with a colon at the end,
/// followed by one line for each object.
pub fn summary(message: &str) -> String {
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
    match item.condition(Type::Available) {
        Some(available) if available.status == "True" => topology(item),
        _ => Some(waits_for(item).unwrap_or_else(|| "it is not Available yet".to_owned())),
    }
}

/// Pending work of the topology of a Cluster, whose other conditions are about the objects before the change. Pauses
/// and deferred upgrades are intended, and no cause to wait.
fn topology(item: &Item) -> Option<String> {
    const TYPE: Type = Type::TopologyReconciled;
    const WANTED: [Reason; 2] = [Reason::Paused, Reason::MachineDeploymentsUpgradeDeferred];
    if !item.field("/spec/topology").is_object() {
        return None;
    }
    let conditions = item.field("/status/conditions").as_array();
    let mut conditions = conditions.into_iter().flatten();
    let found = conditions.find(|it| it["type"] == TYPE.as_str());
    if is_behind(item, found.and_then(|it| it["observedGeneration"].as_i64())) {
        return Some(NOT_RECONCILED.to_owned());
    }
    let reconciled = item.condition(TYPE)?;
    match reconciled.status == "True" || WANTED.iter().any(|it| reconciled.reason == *it) {
        true => None,
        false => Some(waits_for(item).unwrap_or_else(|| reconciled.reason.to_owned())),
    }
}

/// True if a status belongs to an earlier spec.
fn is_behind(item: &Item, observed: Option<i64>) -> bool {
    observed
        .zip(item.object.metadata.generation)
        .is_some_and(|(observed, generation)| observed < generation)
}

fn replicas(item: &Item) -> Option<String> {
    let wanted = item.field("/spec/replicas").as_i64().unwrap_or(1);
    let count = |field: &str| item.field(field).as_i64().unwrap_or(0);
    if is_behind(item, item.field("/status/observedGeneration").as_i64()) {
        return Some(NOT_RECONCILED.to_owned());
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
