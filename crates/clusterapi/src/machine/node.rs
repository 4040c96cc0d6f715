//! Labels, annotations and taints of a machine on its Node.

mod taints;

use std::collections::{BTreeMap, BTreeSet};

use api::core::v1beta2::{Cluster, Machine};
use api::k8s_openapi::api::core::v1::Node;
use api::kube::ResourceExt;
use api::kube::api::{Patch, PatchParams};
use operator::client::Api;
use regex::Regex;
use serde_json::{Value, json};

use super::facts::{Facts, Seen};
use crate::error::Doing;
use crate::remote::ClusterKey;
use crate::{Context, Error, owners};

/// Annotation: names of labels copied from the machine, so that they can be removed again.
const LABELS_FROM_MACHINE: &str = "cluster.x-k8s.io/labels-from-machine";
/// Annotation: names of annotations copied from the machine.
const ANNOTATIONS_FROM_MACHINE: &str = "cluster.x-k8s.io/annotations-from-machine";

/// Further labels and annotations that machines pass to their Nodes: names with a match of one of the patterns,
/// anywhere in the name.
#[derive(Clone, Debug, Default)]
pub struct Synced {
    /// Patterns for names of labels, besides the domains that are always synchronized.
    pub labels: Vec<Regex>,
    /// Patterns for names of annotations.
    pub annotations: Vec<Regex>,
}

/// Patches labels, annotations and taints of an existing Node with any difference.
pub(super) async fn sync(ctx: &Context, machine: &Machine, facts: &Facts) -> Result<(), Error> {
    let Seen::Found(node) = &facts.node else {
        return Ok(());
    };
    let Some(change) = change(node, machine, &facts.cluster, &ctx.options.synced) else {
        return Ok(());
    };
    let namespace = machine.namespace().unwrap_or_default();
    let client = ctx
        .remote
        .client(&ClusterKey::new(namespace, &machine.spec.cluster_name))?;
    Api::<Node>::all(client)
        .patch(
            &node.name_any(),
            &PatchParams::default(),
            &Patch::Merge(&change),
        )
        .await
        .map(|_| ())
        .doing_remotely(|| format!("labelling Node {}", node.name_any()))
}

/// Merge patch for `node`, with its resourceVersion as a precondition; `None` without a difference.
pub(super) fn change(
    node: &Node,
    machine: &Machine,
    cluster: &Cluster,
    synced: &Synced,
) -> Option<Value> {
    let labels = synced_labels(machine, synced);
    let before = recorded(node, LABELS_FROM_MACHINE);
    let mut label_patch: BTreeMap<&str, Value> = labels
        .iter()
        .filter(|(name, value)| node.labels().get(**name) != Some(**value))
        .map(|(name, value)| (*name, json!(value)))
        .collect();
    for name in before.iter().filter(|name| !labels.contains_key(*name)) {
        if node.labels().contains_key(*name) {
            label_patch.insert(name, Value::Null);
        }
    }
    let annotations = annotations(node, machine, cluster, &labels, synced);
    let mut annotation_patch: BTreeMap<&str, Value> = annotations
        .iter()
        .filter(|(name, value)| node.annotations().get(**name) != Some(*value))
        .map(|(name, value)| (*name, json!(value)))
        .collect();
    for name in recorded(node, ANNOTATIONS_FROM_MACHINE) {
        if node.annotations().contains_key(name) && !annotations.contains_key(name) {
            annotation_patch.insert(name, Value::Null);
        }
    }
    let taints = taints::synced(node, machine);
    let mut patch = json!({});
    if !label_patch.is_empty() {
        patch["metadata"]["labels"] = json!(label_patch);
    }
    if !annotation_patch.is_empty() {
        patch["metadata"]["annotations"] = json!(annotation_patch);
    }
    if taints != taints::existing(node) {
        patch["spec"]["taints"] = json!(taints);
    }
    if patch == json!({}) {
        return None;
    }
    // A concurrently added taint must not be lost.
    patch["metadata"]["resourceVersion"] = json!(node.resource_version());
    Some(patch)
}

/// Names in an annotation of the [`Node`].
fn recorded<'a>(node: &'a Node, annotation: &str) -> BTreeSet<&'a str> {
    let names = node.annotations().get(annotation).map(String::as_str);
    let names = names.unwrap_or_default().split(',');
    names.filter(|name| !name.is_empty()).collect()
}

fn synced_labels<'a>(machine: &'a Machine, synced: &Synced) -> BTreeMap<&'a str, &'a String> {
    let labels = machine.labels().iter();
    labels
        .filter(|(name, _)| is_synced(name) || matches(&synced.labels, name))
        .map(|(name, value)| (name.as_str(), value))
        .collect()
}

/// True if a label of a machine is synchronized to its Node: `node-role.kubernetes.io/*`, and the domains
/// `node-restriction.kubernetes.io` and `node.cluster.x-k8s.io` with their subdomains.
fn is_synced(label: &str) -> bool {
    let Some((domain, _)) = label.split_once('/') else {
        return false;
    };
    let within = |parent: &str| domain == parent || domain.ends_with(&format!(".{parent}"));
    domain == "node-role.kubernetes.io"
        || within("node-restriction.kubernetes.io")
        || within("node.cluster.x-k8s.io")
}

fn matches(patterns: &[Regex], name: &str) -> bool {
    patterns.iter().any(|pattern| pattern.is_match(name))
}

/// Desired annotations of `node`: the machine's, and records about the [`Machine`].
fn annotations<'a>(
    node: &Node,
    machine: &'a Machine,
    cluster: &Cluster,
    labels: &BTreeMap<&str, &String>,
    synced: &Synced,
) -> BTreeMap<&'a str, String> {
    let names: Vec<_> = labels.keys().copied().collect();
    let handed_on = machine.annotations().iter();
    let handed_on: BTreeMap<&str, String> = handed_on
        .filter(|(name, _)| matches(&synced.annotations, name))
        .map(|(name, value)| (name.as_str(), value.clone()))
        .collect();
    let listed = handed_on.keys().copied().collect::<Vec<_>>().join(",");
    let mut annotations = handed_on;
    // A Node without any such annotation so far gets no list.
    if !listed.is_empty() || node.annotations().contains_key(ANNOTATIONS_FROM_MACHINE) {
        annotations.insert(ANNOTATIONS_FROM_MACHINE, listed);
    }
    // Records come last, since a pattern may match any name.
    annotations.extend([
        ("cluster.x-k8s.io/cluster-name", cluster.name_any()),
        (
            "cluster.x-k8s.io/cluster-namespace",
            cluster.namespace().unwrap_or_default(),
        ),
        ("cluster.x-k8s.io/machine", machine.name_any()),
        (LABELS_FROM_MACHINE, names.join(",")),
        (taints::TAINTS_FROM_MACHINE, taints::recorded(machine)),
    ]);
    if let Some(owner) = owners::controller_of(&machine.metadata) {
        annotations.insert("cluster.x-k8s.io/owner-kind", owner.kind.clone());
        annotations.insert("cluster.x-k8s.io/owner-name", owner.name.clone());
    }
    annotations
}

#[cfg(test)]
mod tests;
