//! Pods of the add-ons to create and to delete. Pure.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::super::super::objects::node::{self, CONTROL_PLANE};
use super::super::super::pki::hex;
use super::{image, owner};
use crate::json::text;

/// Node, as far as the placement of pods depends on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NodeFacts {
    pub(super) name: String,
    /// Internal address; empty while the Node has none.
    pub(super) address: String,
    pub(super) ready: bool,
    /// Reason why the node refuses pods that tolerate only control plane nodes, in the words of the scheduler.
    pub(super) refusal: Option<String>,
}

impl NodeFacts {
    pub(super) fn new(node: &Value, gone: &BTreeSet<String>) -> Option<Self> {
        let name = node["metadata"]["name"].as_str()?.to_owned();
        let array = |pointer: &str| {
            let found = node.pointer(pointer).and_then(Value::as_array);
            found.map_or(&[][..], Vec::as_slice)
        };
        let ready = node::is_ready(array("/status/conditions")) && !gone.contains(&name);
        let taint = array("/spec/taints").iter().find(|taint| {
            taint["key"] != CONTROL_PLANE
                && matches!(text(&taint["effect"]), "NoSchedule" | "NoExecute")
        });
        let refusal = match taint {
            _ if node["spec"]["unschedulable"] == true => Some("were unschedulable".to_owned()),
            Some(taint) => Some(format!(
                "had untolerated taint {{{}: {}}}",
                text(&taint["key"]),
                text(&taint["value"])
            )),
            None => (!ready).then(|| "were not ready".to_owned()),
        };
        Some(Self {
            name,
            address: node::internal_address(node).to_owned(),
            ready,
            refusal,
        })
    }
}

/// Returns the reason why a pod is not scheduled, in the words of the scheduler.
pub(super) fn unschedulable(nodes: &[NodeFacts]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for refusal in nodes.iter().filter_map(|node| node.refusal.as_deref()) {
        *counts.entry(refusal).or_default() += 1;
    }
    let causes: Vec<String> = counts
        .iter()
        .map(|(refusal, count)| format!("{count} node(s) {refusal}"))
        .collect();
    format!(
        "0/{} nodes are available: {}.",
        nodes.len(),
        causes.join(", ")
    )
}

/// Pod of an add-on.
#[derive(Clone, Debug)]
pub(super) struct PodFacts<'a> {
    pub(super) name: String,
    /// Node of the pod; empty while no node accepts the pod.
    pub(super) node: String,
    pub(super) image: String,
    pub(super) ready: bool,
    pub(super) deleting: bool,
    pub(super) object: &'a Value,
}

impl<'a> PodFacts<'a> {
    pub(super) fn owned_by(owner: &Value, pods: &'a [Value]) -> Vec<Self> {
        pods.iter()
            .filter(|pod| is_controlled_by(pod, owner))
            .map(|pod| Self {
                name: text(&pod["metadata"]["name"]).to_owned(),
                node: text(&pod["spec"]["nodeName"]).to_owned(),
                image: image(pod),
                ready: pod["status"]["conditions"]
                    .as_array()
                    .is_some_and(|conditions| node::is_ready(conditions)),
                deleting: !pod["metadata"]["deletionTimestamp"].is_null(),
                object: pod,
            })
            .collect()
    }
}

/// Names of pods to delete, and of the nodes to create pods on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) delete: Vec<String>,
    pub(super) create_on: Vec<String>,
    /// Number of pods to create that no node accepts yet.
    pub(super) create_pending: usize,
    /// Pods that waited, and their nodes.
    pub(super) bind: Vec<(String, String)>,
}

/// Returns the [`Plan`] for one pod with the current image on every node with a running kubelet.
pub(super) fn daemon_set(nodes: &[NodeFacts], pods: &[PodFacts<'_>], image: &str) -> Plan {
    let mut plan = Plan::default();
    for node in nodes.iter().filter(|node| node.ready) {
        let here: Vec<_> = pods.iter().filter(|pod| pod.node == node.name).collect();
        let old = here
            .iter()
            .filter(|pod| pod.image != image && !pod.deleting);
        plan.delete.extend(old.map(|pod| pod.name.clone()));
        // A replacement is created only after the deletion of the old pod.
        if here.iter().all(|pod| pod.image != image && !pod.deleting) {
            plan.create_on.push(node.name.clone());
        }
    }
    plan
}

/// Returns the [`Plan`] for pods on the nodes with the fewest of them, until there are enough. Pods that no node
/// accepts wait.
pub(super) fn replicas(wanted: usize, nodes: &[NodeFacts], pods: &[PodFacts<'_>]) -> Plan {
    let mut running: Vec<_> = pods.iter().filter(|pod| !pod.deleting).collect();
    // Of too many pods, waiting ones go first.
    running.sort_by_key(|pod| pod.node.is_empty());
    let surplus = running.split_off(wanted.min(running.len()));
    let mut plan = Plan {
        delete: surplus.iter().rev().map(|pod| pod.name.clone()).collect(),
        ..Plan::default()
    };
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for pod in &running {
        *counts.entry(&pod.node).or_default() += 1;
    }
    let mut free = || {
        let accepting = nodes.iter().filter(|node| node.refusal.is_none());
        let count = |node: &&NodeFacts| counts.get(node.name.as_str()).copied().unwrap_or(0);
        let node = accepting.min_by_key(count)?;
        *counts.entry(&node.name).or_default() += 1;
        Some(node.name.clone())
    };
    for pod in running.iter().filter(|pod| pod.node.is_empty()) {
        if let Some(node) = free() {
            plan.bind.push((pod.name.clone(), node));
        }
    }
    for _ in running.len()..wanted {
        match free() {
            Some(node) => plan.create_on.push(node),
            None => plan.create_pending += 1,
        }
    }
    plan
}

/// Returns the ReplicaSet of a Deployment, with the hash of the pod template in the name.
pub(super) fn replica_set(deployment: &Value) -> Value {
    let mut template = deployment["spec"]["template"].clone();
    let hash = hash(&template);
    template["metadata"]["labels"]["pod-template-hash"] = hash.clone().into();
    let mut selector = deployment["spec"]["selector"].clone();
    selector["matchLabels"]["pod-template-hash"] = hash.clone().into();
    json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {
            "name": format!("{}-{hash}", text(&deployment["metadata"]["name"])),
            "namespace": deployment["metadata"]["namespace"],
            "labels": template["metadata"]["labels"],
            "ownerReferences": [owner("Deployment", deployment)],
        },
        "spec": {"replicas": deployment["spec"]["replicas"], "selector": selector, "template": template},
    })
}

/// Returns a pod of a template on a node, if one accepts the pod.
pub(super) fn pod(owner: &Value, template: &Value, node: Option<&str>) -> Value {
    let mut metadata = template["metadata"].clone();
    metadata["generateName"] = format!("{}-", text(&owner["name"])).into();
    metadata["namespace"] = "kube-system".into();
    metadata["ownerReferences"] = json!([owner]);
    if let Some(fields) = metadata.as_object_mut() {
        fields.remove("creationTimestamp");
    }
    let mut spec = template["spec"].clone();
    if let Some(node) = node {
        spec["nodeName"] = node.into();
    }
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
}

pub(super) fn is_controlled_by(object: &Value, owner: &Value) -> bool {
    let mut owners = object["metadata"]["ownerReferences"]
        .as_array()
        .into_iter()
        .flatten();
    owners.any(|found| {
        found["controller"] == true
            && !found["uid"].is_null()
            && found["uid"] == owner["metadata"]["uid"]
    })
}

fn hash(template: &Value) -> String {
    use sha2::Digest as _;
    let digest = sha2::Sha256::digest(template.to_string());
    hex(digest.get(..5).unwrap_or_default())
}
