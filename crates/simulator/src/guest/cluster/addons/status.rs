//! The status of kube-proxy's DaemonSet, and of CoreDNS's Deployment and ReplicaSet. Pure.

use serde_json::{Value, json};

use super::plan::{NodeFacts, PodFacts};

pub(super) fn daemon_set(
    set: &Value,
    nodes: &[NodeFacts],
    pods: &[PodFacts<'_>],
    image: &str,
) -> Value {
    let ready = ready(nodes, pods);
    let unavailable = nodes.len().saturating_sub(ready);
    json!({
        "currentNumberScheduled": pods.len(),
        "desiredNumberScheduled": nodes.len(),
        "numberAvailable": some(ready),
        "numberMisscheduled": 0,
        "numberReady": ready,
        "numberUnavailable": some(unavailable),
        "observedGeneration": set["metadata"]["generation"],
        "updatedNumberScheduled": some(pods.iter().filter(|pod| pod.image == image).count()),
    })
}

pub(super) fn replica_set(set: &Value, nodes: &[NodeFacts], pods: &[PodFacts<'_>]) -> Value {
    let ready = ready(nodes, pods);
    json!({
        "replicas": pods.len(),
        "fullyLabeledReplicas": some(pods.len()),
        "readyReplicas": some(ready),
        "availableReplicas": some(ready),
        "observedGeneration": set["metadata"]["generation"],
    })
}

pub(super) fn deployment(
    deployment: &Value,
    nodes: &[NodeFacts],
    pods: &[PodFacts<'_>],
    now: &str,
) -> Value {
    let wanted = deployment["spec"]["replicas"].as_u64().unwrap_or(1);
    let ready = ready(nodes, pods);
    let count = u64::try_from(ready).unwrap_or_default();
    let missing = wanted.saturating_sub(count);
    // kubeadm's Deployment has `maxUnavailable: 1`.
    let available = missing <= 1;
    let conditions = [
        if available {
            (
                "Available",
                "True",
                "MinimumReplicasAvailable",
                "Deployment has minimum availability.",
            )
        } else {
            (
                "Available",
                "False",
                "MinimumReplicasUnavailable",
                "Deployment does not have minimum availability.",
            )
        },
        (
            "Progressing",
            "True",
            "NewReplicaSetAvailable",
            "The ReplicaSet is up to date.",
        ),
    ];
    let conditions: Vec<Value> = conditions
        .into_iter()
        .map(|(kind, status, reason, message)| {
            let before = deployment["status"]["conditions"]
                .as_array()
                .into_iter()
                .flatten()
                .find(|before| before["type"] == kind && before["status"] == status);
            match before {
                Some(before) => before.clone(),
                None => json!({
                    "type": kind, "status": status, "reason": reason, "message": message,
                    "lastUpdateTime": now, "lastTransitionTime": now,
                }),
            }
        })
        .collect();
    json!({
        "replicas": some(pods.len()),
        "updatedReplicas": some(pods.len()),
        "readyReplicas": some(ready),
        "availableReplicas": some(ready),
        "unavailableReplicas": some(usize::try_from(missing).unwrap_or_default()),
        "observedGeneration": deployment["metadata"]["generation"],
        "conditions": conditions,
    })
}

/// Returns the number of pods on ready nodes.
fn ready(nodes: &[NodeFacts], pods: &[PodFacts<'_>]) -> usize {
    let on_ready = |pod: &&PodFacts<'_>| {
        !pod.deleting && nodes.iter().any(|node| node.ready && node.name == pod.node)
    };
    pods.iter().filter(on_ready).count()
}

/// Returns null for 0, which Kubernetes omits: in a merge patch, null removes the number.
fn some(count: usize) -> Option<usize> {
    (count > 0).then_some(count)
}
