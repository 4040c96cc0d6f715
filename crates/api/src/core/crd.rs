//! CustomResourceDefinitions of `cluster.x-k8s.io`.
//!
//! Schemas of v1beta2 are generated from the types. v1beta1 exists only as JSON (see `convert`): schemas are
//! derived from v1beta2 by the edits in `older`.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceColumnDefinition, CustomResourceDefinition,
};
use kube::CustomResourceExt;

use super::v1beta2;
use crate::definition::{column, exact, wide, with_v1beta1, without_nullable};

pub(crate) mod older;

/// [`CustomResourceDefinition`]s of this group: both versions served, v1beta2 stored.
pub fn all() -> Vec<CustomResourceDefinition> {
    let mut all = vec![
        v1beta2::Cluster::crd(),
        v1beta2::Machine::crd(),
        v1beta2::MachineSet::crd(),
        v1beta2::MachineDeployment::crd(),
        v1beta2::MachineHealthCheck::crd(),
        v1beta2::MachineDrainRule::crd(),
        v1beta2::ClusterClass::crd(),
    ];
    for crd in &mut all {
        without_nullable(crd);
        exact(crd);
    }
    let turns = [
        older::cluster,
        older::machine,
        older::machine_set,
        older::deployment,
        older::health_check,
        older::drain_rule,
        older::cluster_class,
    ];
    all.into_iter()
        .zip(turns)
        .map(|(crd, turn)| {
            let columns = columns(&crd.spec.names.kind);
            with_v1beta1(crd, columns, turn)
        })
        .collect()
}

/// Printer columns of a kind in v1beta1.
fn columns(kind: &str) -> Vec<CustomResourceColumnDefinition> {
    let cluster = column("Cluster", "string", ".spec.clusterName");
    let phase = column("Phase", "string", ".status.phase");
    let age = column("Age", "date", ".metadata.creationTimestamp");
    let version = column("Version", "string", ".spec.template.spec.version");
    let desired = wide("Desired", "integer", ".spec.replicas");
    let replicas = column("Replicas", "integer", ".status.replicas");
    let ready = column("Ready", "integer", ".status.readyReplicas");
    match kind {
        "Cluster" => vec![
            column("ClusterClass", "string", ".spec.topology.class"),
            phase,
            age,
            column("Version", "string", ".spec.topology.version"),
        ],
        "Machine" => vec![
            cluster,
            column("NodeName", "string", ".status.nodeRef.name"),
            column("ProviderID", "string", ".spec.providerID"),
            phase,
            age,
            column("Version", "string", ".spec.version"),
        ],
        "MachineSet" => {
            let available = column("Available", "integer", ".status.availableReplicas");
            vec![cluster, desired, replicas, ready, available, age, version]
        }
        "MachineHealthCheck" => vec![
            cluster,
            column("ExpectedMachines", "integer", ".status.expectedMachines"),
            column("MaxUnhealthy", "string", ".spec.maxUnhealthy"),
            column("CurrentHealthy", "integer", ".status.currentHealthy"),
            age,
        ],
        "ClusterClass" => vec![age],
        "MachineDrainRule" => vec![
            column("Behavior", "string", ".spec.drain.behavior"),
            column("Order", "string", ".spec.drain.order"),
            age,
        ],
        _ => {
            let updated = column("Updated", "integer", ".status.updatedReplicas");
            let missing = column("Unavailable", "integer", ".status.unavailableReplicas");
            vec![
                cluster, desired, replicas, ready, updated, missing, phase, age, version,
            ]
        }
    }
}

#[cfg(test)]
mod tests;
