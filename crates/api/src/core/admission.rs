//! Defaults and validation of the group, with the rules of the upstream webhooks.

use serde_json::{Map, Value, json};

use super::{GROUP, pool};
use crate::change::{Change, FieldError};
use crate::names::{CLUSTER_NAME_LABEL, DEPLOYMENT_NAME_LABEL, SET_NAME_LABEL};

mod check;
mod class;
mod drain;
mod health;
mod taints;
mod topology;

pub(crate) use health::expressions;
pub(crate) use taints::reserved as reserved_taints;

/// Annotations of the cluster autoscaler: bounds for the size of a MachineSet or MachineDeployment.
const AUTOSCALER_MIN: &str = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size";
const AUTOSCALER_MAX: &str = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size";
/// Default of `nodeDeletionTimeoutSeconds`: retries of a Node's deletion for this time.
const NODE_DELETION_TIMEOUT: i32 = 10;

/// Sets the webhook defaults; objects of other groups are unchanged.
pub(crate) fn default_object(object: &mut Value, old: Option<&Value>) {
    let Some(kind) = kind_of(object).map(str::to_owned) else {
        return;
    };
    match kind.as_str() {
        "Cluster" => prefix_version(object, "/spec/topology"),
        "Machine" => machine(object),
        "MachineSet" => {
            group(object, old, SET_NAME_LABEL);
        }
        "MachineDeployment" => {
            group(object, old, DEPLOYMENT_NAME_LABEL);
            strategy(object);
        }
        "MachineHealthCheck" => health::defaults(object),
        _ => {}
    }
}

/// Errors of an object of this group.
pub(crate) fn validate(change: Change<'_>) -> Vec<FieldError> {
    match kind_of(change.object) {
        Some("Cluster") => check::cluster(change),
        Some("Machine") => check::machine(change),
        Some("MachineSet") => check::set(change),
        Some("MachineDeployment") => check::deployment(change),
        Some("MachineHealthCheck") => health::validate(change),
        Some("MachineDrainRule") => drain::validate(change),
        Some("ClusterClass") => class::validate(change),
        Some(pool::KIND) if change.old.is_none() => {
            vec![FieldError::new("kind", pool::NOT_BUILT)]
        }
        _ => Vec::new(),
    }
}

fn kind_of(object: &Value) -> Option<&str> {
    kind_within(GROUP, object)
}

/// Kind of an object of this group; `None` for other groups.
pub(crate) fn kind_within<'a>(group: &str, object: &'a Value) -> Option<&'a str> {
    let version = object.get("apiVersion")?.as_str()?;
    let ours = version
        .strip_prefix(group)
        .is_some_and(|rest| rest.starts_with('/'));
    object.get("kind")?.as_str().filter(|_| ours)
}

fn machine(object: &mut Value) {
    label_with_cluster(object);
    prefix_version(object, "/spec");
    if let Some(spec) = fields(object, "spec") {
        let deletion = entry(spec, "deletion");
        let timeout = json!(NODE_DELETION_TIMEOUT);
        deletion
            .entry("nodeDeletionTimeoutSeconds")
            .or_insert(timeout);
    }
}

/// Sets the common defaults of MachineSets and MachineDeployments; `label` identifies the machines of one object.
fn group(object: &mut Value, old: Option<&Value>, label: &str) {
    label_with_cluster(object);
    prefix_version(object, "/spec/template/spec");
    let name = object
        .pointer("/metadata/name")
        .and_then(Value::as_str)
        .map(str::to_owned);
    let cluster = object
        .pointer("/spec/clusterName")
        .and_then(Value::as_str)
        .map(str::to_owned);
    let replicas = replicas(object, old);
    let Some(spec) = fields(object, "spec") else {
        return;
    };
    if let Some(replicas) = replicas {
        spec.insert("replicas".to_owned(), json!(replicas));
    }
    let selector = entry(spec, "selector");
    let is_empty = |name: &str| {
        selector.get(name).is_none_or(|value| {
            value.is_null()
                || value.as_object().is_some_and(Map::is_empty)
                || value.as_array().is_some_and(Vec::is_empty)
        })
    };
    let mut labels = Map::new();
    if is_empty("matchLabels") && is_empty("matchExpressions") {
        labels.extend(name.map(|name| (label.to_owned(), json!(name))));
    }
    labels.extend(cluster.map(|cluster| (CLUSTER_NAME_LABEL.to_owned(), json!(cluster))));
    entry(selector, "matchLabels").extend(labels.clone());
    let template = entry(spec, "template");
    entry(entry(template, "metadata"), "labels").extend(labels);
}

/// Default of `replicas`: 1, or the size within the autoscaler's bounds; `None` if set.
fn replicas(object: &Value, old: Option<&Value>) -> Option<i64> {
    if object
        .pointer("/spec/replicas")
        .is_some_and(|value| !value.is_null())
    {
        return None;
    }
    let bound = |name: &str| {
        let annotations = object.pointer("/metadata/annotations")?;
        annotations.get(name)?.as_str()?.parse::<i64>().ok()
    };
    let (Some(least), Some(most)) = (bound(AUTOSCALER_MIN), bound(AUTOSCALER_MAX)) else {
        return Some(1);
    };
    let known = old
        .and_then(|old| old.pointer("/spec/replicas"))
        .and_then(Value::as_i64);
    // A new object gets the minimum; an existing one keeps its size within the bounds.
    Some(known.map_or(least, |known| known.max(least).min(most.max(least))))
}

fn strategy(object: &mut Value) {
    let Some(spec) = fields(object, "spec") else {
        return;
    };
    let strategy = entry(entry(spec, "rollout"), "strategy");
    strategy
        .entry("type")
        .or_insert_with(|| json!("RollingUpdate"));
    if strategy.get("type") == Some(&json!("RollingUpdate")) {
        let rolling = entry(strategy, "rollingUpdate");
        rolling.entry("maxSurge").or_insert_with(|| json!(1));
        rolling.entry("maxUnavailable").or_insert_with(|| json!(0));
    }
}

fn label_with_cluster(object: &mut Value) {
    let cluster = object
        .pointer("/spec/clusterName")
        .and_then(Value::as_str)
        .map(str::to_owned);
    if let (Some(cluster), Some(metadata)) = (cluster, fields(object, "metadata")) {
        entry(metadata, "labels").insert(CLUSTER_NAME_LABEL.to_owned(), json!(cluster));
    }
}

/// Adds a missing `v`: `1.34.1` becomes `v1.34.1`.
fn prefix_version(object: &mut Value, at: &str) {
    let version = object
        .pointer_mut(at)
        .and_then(|spec| spec.get_mut("version"));
    if let Some(Value::String(version)) = version
        && version.starts_with(|first: char| first.is_ascii_digit())
    {
        version.insert(0, 'v');
    }
}

fn fields<'a>(object: &'a mut Value, name: &str) -> Option<&'a mut Map<String, Value>> {
    object.get_mut(name).and_then(Value::as_object_mut)
}

/// Object `name` in `fields`, created if absent.
fn entry<'a>(fields: &'a mut Map<String, Value>, name: &str) -> &'a mut Map<String, Value> {
    let value = fields
        .entry(name)
        .or_insert_with(|| Value::Object(Map::new()));
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(inner) => inner,
        _ => unreachable!("the value was set to an object above"),
    }
}

#[cfg(test)]
mod tests;
