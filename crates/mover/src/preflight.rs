//! Problems that prevent a move, as a list for the user to work through.

use std::collections::BTreeSet;
use std::sync::Arc;

use api::names::{BLOCK_MOVE_ANNOTATION, MOVE_ANNOTATION, PAUSED_ANNOTATION};
use kube::ResourceExt;
use serde_json::Value;

use crate::graph::{Object, Selection};
use crate::kinds::{self, Kind};

/// Reasons why the source is not ready, one line each. A Cluster paused by the move `id` counts as ready.
pub(crate) fn source(selection: &Selection, id: Option<&str>) -> Vec<String> {
    let mut problems = Vec::new();
    for moving in &selection.moves {
        let object = &moving.object;
        if object.object.metadata.deletion_timestamp.is_some() {
            problems.push(format!(
                "{} is being deleted: wait until it is gone",
                object.label()
            ));
        }
        problems.extend(match object.kind.name.as_str() {
            "Cluster" => cluster(object, id),
            "Machine" => machine(object),
            _ => None,
        });
    }
    problems
}

fn cluster(cluster: &Object, id: Option<&str>) -> Option<String> {
    let label = cluster.label();
    let annotations = cluster.object.annotations();
    let ours = id.is_some() && annotations.get(MOVE_ANNOTATION).map(String::as_str) == id;
    let paused =
        cluster.field("/spec/paused") == true || annotations.contains_key(PAUSED_ANNOTATION);
    if paused && !ours {
        return Some(format!(
            "{label} is paused: set spec.paused to false, and remove the annotation {PAUSED_ANNOTATION}"
        ));
    }
    let is = |field: &str, condition: &str| {
        cluster.field(field) == true || cluster.condition(condition) == Some("True")
    };
    if !is(
        "/status/initialization/infrastructureProvisioned",
        "InfrastructureReady",
    ) && cluster.field("/status/infrastructureReady") != true
    {
        return Some(format!(
            "{label} is not provisioned: its infrastructure is not ready"
        ));
    }
    if !is(
        "/status/initialization/controlPlaneInitialized",
        "ControlPlaneInitialized",
    ) {
        return Some(format!(
            "{label} is not provisioned: its control plane is not initialized"
        ));
    }
    None
}

fn machine(machine: &Object) -> Option<String> {
    let node = machine.text("/status/nodeRef/name");
    node.is_empty().then(|| {
        format!(
            "{} has no Node yet: wait until it runs, or delete it",
            machine.label()
        )
    })
}

/// Obstacles to a quiet source: controllers without a confirmation of the pause, and providers with
/// [`BLOCK_MOVE_ANNOTATION`]. Empty if the source is quiet.
pub(crate) fn unquiet(selection: &Selection) -> Vec<String> {
    let mut waits = Vec::new();
    for moving in &selection.moves {
        let object = &moving.object;
        if object
            .condition("Paused")
            .is_some_and(|status| status != "True")
        {
            waits.push(format!(
                "{}: its controller has not confirmed that it is paused",
                object.label()
            ));
        }
        // The controller of topologies reports the pause by its own condition.
        let topology = object.reason("TopologyReconciled");
        if topology.is_some_and(|reason| !reason.ends_with("Paused")) {
            waits.push(format!(
                "{}: the controller of its topology has not confirmed that it is paused",
                object.label()
            ));
        }
        if object
            .object
            .annotations()
            .contains_key(BLOCK_MOVE_ANNOTATION)
        {
            waits.push(format!(
                "{}: its provider keeps the annotation {BLOCK_MOVE_ANNOTATION}",
                object.label()
            ));
        }
    }
    waits
}

/// Reasons why the target cannot take the objects, one line for each [`Kind`].
pub(crate) fn target(selection: &Selection, kinds: &[Arc<Kind>]) -> Vec<String> {
    let mut problems = BTreeSet::new();
    for moving in &selection.moves {
        let object = &moving.object;
        if let Err(problem) = kinds::agree(&object.kind, version(object), kinds) {
            problems.insert(problem);
        }
    }
    problems.into_iter().collect()
}

/// Version in which an object was read.
pub(crate) fn version(object: &Object) -> &str {
    let types = object.object.types.as_ref();
    let named = types.and_then(|types| types.api_version.rsplit('/').next());
    named.unwrap_or_else(|| object.kind.stored())
}

/// Names of the cluster-scoped OpenStackClusterIdentities that objects refer to.
pub(crate) fn shared_identities(selection: &Selection) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for moving in &selection.moves {
        identities_in(moving.object.field("/spec"), &mut names);
    }
    names
}

/// ClusterClasses of other namespaces that Clusters refer to, by namespace and name.
pub(crate) fn shared_classes(selection: &Selection) -> BTreeSet<(String, String)> {
    let mut classes = BTreeSet::new();
    for cluster in selection.of_kind("Cluster") {
        // Paths of v1beta2, and of v1beta1.
        for (namespace, name) in [
            (
                "/spec/topology/classRef/namespace",
                "/spec/topology/classRef/name",
            ),
            ("/spec/topology/classNamespace", "/spec/topology/class"),
        ] {
            let (namespace, name) = (cluster.text(namespace), cluster.text(name));
            if !namespace.is_empty() && !name.is_empty() && namespace != cluster.key().0 {
                classes.insert((namespace.to_owned(), name.to_owned()));
            }
        }
    }
    classes
}

fn identities_in(value: &Value, into: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (field, value) in fields {
                if field == "identityRef" && value["type"] == "ClusterIdentity" {
                    into.extend(value["name"].as_str().map(str::to_owned));
                }
                identities_in(value, into);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| identities_in(item, into)),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
