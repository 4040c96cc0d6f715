//! Conversion of a KubeadmConfigSpec, shared with the control plane kinds.

use serde_json::{Map, Value, json};

use crate::conversion::duration;
use crate::conversion::fields::{not_a_duration, seconds_of, within};

/// Components of a ClusterConfiguration with arguments.
const COMPONENTS: [&[&str]; 4] = [
    &["apiServer"],
    &["controllerManager"],
    &["scheduler"],
    &["etcd", "local"],
];
/// Fields with a difference between an empty and an absent list or object.
const MEANINGFUL_WHEN_EMPTY: [&str; 2] = ["taints", "controlPlane"];
/// Fields of a v1beta1 ClusterConfiguration without a place in v1beta2.
const GONE_FROM_CLUSTER: [&str; 5] = [
    "apiVersion",
    "kind",
    "clusterName",
    "kubernetesVersion",
    "networking",
];

/// From v1beta1 to v1beta2.
pub(crate) fn up(spec: &mut Map<String, Value>) -> Result<(), String> {
    let mut timeout = None;
    if let Some(Value::Object(cluster)) = spec.get_mut("clusterConfiguration") {
        GONE_FROM_CLUSTER
            .iter()
            .for_each(|name| drop(cluster.remove(*name)));
        if let Some(Value::Object(server)) = cluster.get_mut("apiServer") {
            timeout = server.remove("timeoutForControlPlane");
        }
        for path in COMPONENTS {
            within(cluster, path, |component| list(component, "extraArgs"))
                .map_err(|problem| format!("clusterConfiguration.{problem}"))?;
        }
    }
    within(spec, &["initConfiguration"], init_up)?;
    within(spec, &["joinConfiguration"], join_up)?;
    if let Some(timeout) = timeout {
        let field = "clusterConfiguration.apiServer.timeoutForControlPlane";
        let seconds = seconds_of(&timeout).ok_or_else(|| not_a_duration(field, &timeout))?;
        // In v1beta2 init and join have separate timeouts, in v1beta1 one in common.
        for name in ["initConfiguration", "joinConfiguration"] {
            let part = spec.entry(name).or_insert_with(|| json!({}));
            if part.is_null() {
                *part = json!({});
            }
            part["timeouts"]["controlPlaneComponentHealthCheckSeconds"] = json!(seconds);
        }
    }
    if let Some(Value::Array(partitions)) = spec.get_mut("diskSetup").and_then(partitions) {
        for partition in partitions.iter_mut().filter_map(Value::as_object_mut) {
            if partition
                .get("diskLayout")
                .is_some_and(|layout| !is_empty(layout))
            {
                partition.remove("layout");
            }
        }
    }
    spec.remove("useExperimentalRetryJoin");
    prune(spec);
    Ok(())
}

/// From v1beta2 to v1beta1.
pub(crate) fn down(spec: &mut Map<String, Value>) -> Result<(), String> {
    let mut timeout = None;
    for name in ["initConfiguration", "joinConfiguration"] {
        let Some(Value::Object(part)) = spec.get_mut(name) else {
            continue;
        };
        let timeouts = part.remove("timeouts").unwrap_or_default();
        let health = timeouts
            .get("controlPlaneComponentHealthCheckSeconds")
            .cloned();
        timeout = timeout.or(health);
        registration_down(part)?;
        if name == "initConfiguration" {
            tokens_down(part);
        } else if let Some(seconds) = timeouts.get("tlsBootstrapSeconds").and_then(Value::as_i64) {
            let discovery = part.entry("discovery").or_insert_with(|| json!({}));
            discovery["timeout"] = json!(duration::text(seconds));
        }
        if part.is_empty() {
            spec.remove(name);
        }
    }
    if let Some(Value::Object(cluster)) = spec.get_mut("clusterConfiguration") {
        for path in COMPONENTS {
            within(cluster, path, |component| map(component, "extraArgs"))
                .map_err(|problem| format!("clusterConfiguration.{problem}"))?;
        }
    }
    if let Some(seconds) = timeout.as_ref().and_then(Value::as_i64) {
        let cluster = spec
            .entry("clusterConfiguration")
            .or_insert_with(|| json!({}));
        cluster["apiServer"]["timeoutForControlPlane"] = json!(duration::text(seconds));
    }
    if let Some(Value::Array(partitions)) = spec.get_mut("diskSetup").and_then(partitions) {
        for partition in partitions.iter_mut().filter_map(Value::as_object_mut) {
            // Required in v1beta1.
            partition.entry("layout").or_insert(json!(true));
        }
    }
    Ok(())
}

/// Removes empty lists and objects: valid in v1beta1, invalid in v1beta2.
pub(crate) fn prune(fields: &mut Map<String, Value>) {
    let names: Vec<_> = fields.keys().cloned().collect();
    for name in names {
        let Some(value) = fields.get_mut(&name) else {
            continue;
        };
        match value {
            Value::Object(inner) => prune(inner),
            Value::Array(items) => {
                items
                    .iter_mut()
                    .filter_map(Value::as_object_mut)
                    .for_each(prune);
            }
            _ => {}
        }
        let meaningful = MEANINGFUL_WHEN_EMPTY.contains(&name.as_str());
        if (is_empty(value) && !meaningful) || value.is_null() {
            fields.remove(&name);
        }
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

fn partitions(setup: &mut Value) -> Option<&mut Value> {
    setup.get_mut("partitions")
}

fn init_up(init: &mut Map<String, Value>) -> Result<(), String> {
    typeless(init);
    for token in init
        .get_mut("bootstrapTokens")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        let Some(token) = token.as_object_mut() else {
            continue;
        };
        if let Some(ttl) = token.remove("ttl") {
            let seconds = seconds_of(&ttl);
            let seconds = seconds.ok_or_else(|| not_a_duration("bootstrapTokens.ttl", &ttl))?;
            token.insert("ttlSeconds".to_owned(), json!(seconds));
        }
    }
    within(init, &["nodeRegistration"], |registration| {
        list(registration, "kubeletExtraArgs")
    })
}

fn tokens_down(init: &mut Map<String, Value>) {
    let tokens = init
        .get_mut("bootstrapTokens")
        .and_then(Value::as_array_mut);
    for token in tokens
        .into_iter()
        .flatten()
        .filter_map(Value::as_object_mut)
    {
        if let Some(seconds) = token.remove("ttlSeconds").as_ref().and_then(Value::as_i64) {
            token.insert("ttl".to_owned(), json!(duration::text(seconds)));
        }
    }
}

fn join_up(join: &mut Map<String, Value>) -> Result<(), String> {
    typeless(join);
    let timeout = join
        .get_mut("discovery")
        .and_then(Value::as_object_mut)
        .and_then(|discovery| discovery.remove("timeout"));
    if let Some(timeout) = timeout {
        let seconds = seconds_of(&timeout);
        let seconds = seconds.ok_or_else(|| not_a_duration("discovery.timeout", &timeout))?;
        let timeouts = join.entry("timeouts").or_insert_with(|| json!({}));
        timeouts["tlsBootstrapSeconds"] = json!(seconds);
    }
    within(join, &["nodeRegistration"], |registration| {
        list(registration, "kubeletExtraArgs")
    })
}

fn registration_down(part: &mut Map<String, Value>) -> Result<(), String> {
    within(part, &["nodeRegistration"], |registration| {
        map(registration, "kubeletExtraArgs")
    })
}

fn typeless(part: &mut Map<String, Value>) {
    part.remove("apiVersion");
    part.remove("kind");
}

/// Converts a map of arguments to a list, sorted by name.
fn list(of: &mut Map<String, Value>, name: &str) -> Result<(), String> {
    match of.get(name) {
        Some(Value::Object(map)) => {
            let mut args: Vec<_> = map.iter().collect();
            args.sort_by_key(|(name, _)| *name);
            let list = args
                .iter()
                .map(|(name, value)| json!({"name": name, "value": value}));
            let list = Value::Array(list.collect());
            of.insert(name.to_owned(), list);
            Ok(())
        }
        None | Some(Value::Null) => Ok(()),
        Some(_) => Err(format!("{name} is not a map")),
    }
}

/// Converts a list of arguments to a map; the last of duplicates wins.
fn map(of: &mut Map<String, Value>, name: &str) -> Result<(), String> {
    match of.get(name) {
        Some(Value::Array(list)) => {
            let pair = |arg: &Value| {
                let name = arg.get("name")?.as_str()?.to_owned();
                Some((name, arg.get("value").cloned().unwrap_or_else(|| json!(""))))
            };
            let map: Map<String, Value> = list.iter().filter_map(pair).collect();
            of.insert(name.to_owned(), Value::Object(map));
            Ok(())
        }
        None | Some(Value::Null) => Ok(()),
        Some(_) => Err(format!("{name} is not a list")),
    }
}
