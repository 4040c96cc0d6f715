//! Nodes, and Pods and claims on them.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::cache::{Now, ObjectCache};
use super::object::{
    CLAIM, POD, Write, condition, has_ended, has_labels, holds, is_ending, items, text,
};
use super::room;

/// Annotation of a claim with the node of its volume.
const NODE: &str = "volume.kubernetes.io/selected-node";
const HOSTNAME: &str = "kubernetes.io/hostname";
/// Storage class of the simulated cluster, and its default.
const CLASS: &str = "simulated";
/// Annotation of the default class.
const DEFAULT: &str = "storageclass.kubernetes.io/is-default-class";
/// Resources of a node.
const CAPACITY: [(&str, &str); 3] = [("cpu", "16"), ("memory", "64Gi"), ("pods", "250")];

/// Returns the [`Write`]s that register the nodes, and set their readiness.
pub(super) fn register(world: &ObjectCache, now: &Now<'_>) -> Vec<Write> {
    let names = now.options.nodes.iter();
    let names = names.filter(|it| !now.faults().is_removed(it));
    let writes = names.filter_map(|name| {
        let node = world
            .nodes
            .iter()
            .find(|it| it["metadata"]["name"] == name.as_str());
        let Some(node) = node else {
            return Some(Write::Create {
                collection: "/api/v1/nodes".to_owned(),
                body: node_object(name, &now.options.labels),
            });
        };
        let alive = !now.faults().is_gone(name);
        let known = items(&node["status"]["conditions"]).any(|it| it["type"] == "Ready");
        if known && holds(node, "Ready") == alive {
            return None;
        }
        let mut ready = match alive {
            true => condition(
                node,
                "Ready",
                true,
                "KubeletReady",
                "kubelet is posting ready status",
            ),
            false => condition(
                node,
                "Ready",
                false,
                "NodeStatusUnknown",
                "Kubelet stopped posting node status.",
            ),
        };
        if !alive {
            ready["status"] = "Unknown".into();
        }
        Some(Write::Patch {
            path: format!("/api/v1/nodes/{name}/status"),
            body: json!({"status": {"conditions": [ready]}}),
        })
    });
    let mut writes: Vec<Write> = writes.collect();
    if world
        .classes
        .iter()
        .all(|it| it["metadata"]["name"] != CLASS)
    {
        writes.push(Write::Create {
            collection: "/apis/storage.k8s.io/v1/storageclasses".to_owned(),
            body: json!({
                "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
                "metadata": {"name": CLASS, "annotations": {DEFAULT: "true"}},
                "provisioner": "ferrostack.dev/simulated", "reclaimPolicy": "Delete",
                "volumeBindingMode": "WaitForFirstConsumer",
            }),
        });
    }
    writes
}

fn node_object(name: &str, labels: &[(String, String)]) -> Value {
    let mut all = json!({
        HOSTNAME: name, "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux",
    });
    for (label, value) in labels {
        all[label] = value.as_str().into();
    }
    let resources: BTreeMap<&str, &str> = CAPACITY.into();
    json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": all},
        "status": {
            "capacity": resources, "allocatable": resources,
            "addresses": [{"type": "Hostname", "address": name}],
            "nodeInfo": {
                "architecture": "amd64", "bootID": "", "containerRuntimeVersion": "simulated://1",
                "kernelVersion": "", "kubeProxyVersion": "", "kubeletVersion": "v1.34.0",
                "machineID": "", "operatingSystem": "linux", "osImage": "simulated", "systemUUID": "",
            },
        },
    })
}

/// Returns the [`Write`]s that bind Pods to nodes, and claims to volumes of the node of their first Pod.
pub(super) fn schedule(world: &ObjectCache) -> Vec<Write> {
    let mut load: BTreeMap<&str, usize> = BTreeMap::new();
    for node in world.nodes.iter().filter(|it| holds(it, "Ready")) {
        if node["spec"]["unschedulable"] != true {
            load.insert(text(&node["metadata"]["name"]), 0);
        }
    }
    for pod in world.pods.iter().filter(|it| !has_ended(it)) {
        if let Some(count) = load.get_mut(text(&pod["spec"]["nodeName"])) {
            *count += 1;
        }
    }
    let mut writes = Vec::new();
    let waiting = world.pods.iter().filter(|pod| {
        text(&pod["spec"]["nodeName"]).is_empty() && !is_ending(pod) && !has_ended(pod)
    });
    for pod in waiting {
        match place(pod, world, &load) {
            Ok(node) => {
                let volumes = claims(pod, world).filter_map(|claim| bound(claim.ok()?, node));
                let volumes: Vec<Write> = volumes.collect();
                let binds = !volumes.is_empty();
                writes.extend(volumes);
                writes.push(binding(pod, node));
                // The next Pod may have to go where this volume is, or has less room.
                if binds || room::is_reserved(pod) {
                    break;
                }
                if let Some(count) = load.get_mut(node) {
                    *count += 1;
                }
            }
            Err(why) => {
                let unschedulable = condition(pod, "PodScheduled", false, "Unschedulable", &why);
                let status = json!({"phase": "Pending", "conditions": [unschedulable]});
                writes.extend(POD.status(pod, status));
            }
        }
    }
    writes
}

fn binding(pod: &Value, node: &str) -> Write {
    let name = &pod["metadata"]["name"];
    Write::Create {
        collection: format!("{}/binding", POD.path(pod)),
        body: json!({
            "apiVersion": "v1", "kind": "Binding",
            "metadata": {"name": name, "namespace": pod["metadata"]["namespace"]},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }),
    }
}

/// Returns the claims of a Pod; the error is the name of a missing claim.
fn claims<'a>(
    pod: &'a Value,
    world: &'a ObjectCache,
) -> impl Iterator<Item = Result<&'a Value, &'a str>> {
    let names = items(&pod["spec"]["volumes"])
        .filter_map(|it| it["persistentVolumeClaim"]["claimName"].as_str());
    names.map(|name| {
        let mut claims = world.claims.iter();
        let found = claims.find(|it| {
            it["metadata"]["name"] == name
                && it["metadata"]["namespace"] == pod["metadata"]["namespace"]
        });
        found.filter(|it| !is_ending(it)).ok_or(name)
    })
}

/// Binds a claim without a volume.
fn bound(claim: &Value, node: &str) -> Option<Write> {
    if claim["status"]["phase"] == "Bound" {
        return None;
    }
    if claim["spec"]["volumeName"].is_null() {
        let volume = format!("pvc-{}", text(&claim["metadata"]["uid"]));
        return Some(Write::Patch {
            path: CLAIM.path(claim),
            body: json!({
                "metadata": {"annotations": {NODE: node}},
                "spec": {"volumeName": volume},
            }),
        });
    }
    bound_status(claim)
}

/// Writes the status of a claim with a volume.
pub(super) fn bound_status(claim: &Value) -> Option<Write> {
    CLAIM.status(
        claim,
        json!({
            "phase": "Bound",
            "accessModes": claim["spec"]["accessModes"],
            "capacity": claim["spec"]["resources"]["requests"],
        }),
    )
}

/// Returns the node for a Pod, or the reason why there is none.
fn place<'a>(
    pod: &Value,
    world: &'a ObjectCache,
    load: &BTreeMap<&'a str, usize>,
) -> Result<&'a str, String> {
    let mut on = None;
    for claim in claims(pod, world) {
        let claim = claim.map_err(|name| format!("persistentvolumeclaim \"{name}\" not found"))?;
        if claim["spec"]["volumeName"].is_null() && !has_class(claim, world) {
            let all = world.nodes.iter().count();
            return Err(format!(
                "0/{all} nodes are available: pod has unbound immediate PersistentVolumeClaims. preemption: 0/{all} nodes are available: {all} Preemption is not helpful for scheduling."
            ));
        }
        on = on.or_else(|| claim["metadata"]["annotations"][NODE].as_str());
    }
    let selector = &pod["spec"]["nodeSelector"];
    let all = world.nodes.iter().count();
    let mut lacking: BTreeMap<&str, usize> = BTreeMap::new();
    let mut fits = |name: &str| {
        let mut nodes = world.nodes.iter();
        let Some(node) = nodes.find(|it| it["metadata"]["name"] == name) else {
            return false;
        };
        let matches = has_labels(&node["metadata"]["labels"], selector)
            && on.is_none_or(|on| on == name)
            && is_near(pod, name, world);
        match room::lacks(pod, node, world).filter(|_| matches) {
            Some(resource) => *lacking.entry(resource).or_default() += 1,
            None => return matches,
        }
        false
    };
    let best = load.iter().filter(|(name, _)| fits(name));
    let best = best.min_by_key(|(_, count)| **count);
    best.map(|(name, _)| *name).ok_or_else(|| {
        if lacking.is_empty() {
            return format!("0/{all} nodes are available: no ready node matches the Pod's node selector, affinity and volumes");
        }
        let lacking = lacking.iter().map(|(resource, count)| format!("{count} Insufficient {resource}"));
        let lacking: Vec<String> = lacking.collect();
        format!("0/{all} nodes are available: {}.", lacking.join(", "))
    })
}

/// True if the storage class of a claim exists; without a name, a default one.
fn has_class(claim: &Value, world: &ObjectCache) -> bool {
    let is_wanted = |class: &Value| match claim["spec"]["storageClassName"].as_str() {
        Some(name) => class["metadata"]["name"] == name,
        None => class["metadata"]["annotations"][DEFAULT] == "true",
    };
    world.classes.iter().any(is_wanted)
}

/// True if a node has a Pod that this one must be next to; also true if no node has one and the Pod itself would be the
/// first.
fn is_near(pod: &Value, node: &str, world: &ObjectCache) -> bool {
    let terms =
        &pod["spec"]["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    items(terms).all(|term| {
        let wanted = &term["labelSelector"]["matchLabels"];
        let others: Vec<&str> = world
            .pods
            .iter()
            .filter(|it| it["metadata"]["namespace"] == pod["metadata"]["namespace"])
            .filter(|it| !has_ended(it) && has_labels(&it["metadata"]["labels"], wanted))
            .map(|it| text(&it["spec"]["nodeName"]))
            .filter(|name| !name.is_empty())
            .collect();
        match others.as_slice() {
            [] => has_labels(&pod["metadata"]["labels"], wanted),
            others => others.contains(&node),
        }
    })
}
