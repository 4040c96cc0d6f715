//! Marks of admission on nodes, volumes and claims; the controllers remove these marks later.

use apimachinery::time::seconds;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::rest::meta;

/// Keeps a claim until no pod uses the claim (`StorageObjectInUseProtection`).
pub(crate) const CLAIM_PROTECTION: &str = "kubernetes.io/pvc-protection";
/// Keeps a volume while bound to a claim.
pub(crate) const VOLUME_PROTECTION: &str = "kubernetes.io/pv-protection";
/// Taint of nodes that have not been ready yet (`TaintNodesByCondition`).
pub(crate) const NOT_READY: &str = "node.kubernetes.io/not-ready";

/// Sets the [`NOT_READY`] taint: nothing is scheduled to a node that is not ready.
pub(super) fn taint(node: &mut Value) {
    if !node["spec"].is_object() {
        node["spec"] = json!({});
    }
    if !node["spec"]["taints"].is_array() {
        node["spec"]["taints"] = json!([]);
    }
    let Some(taints) = node["spec"]["taints"].as_array_mut() else {
        return;
    };
    let tainted = |taint: &Value| taint["key"] == NOT_READY && taint["effect"] == "NoSchedule";
    if !taints.iter().any(tainted) {
        taints.push(json!({"key": NOT_READY, "effect": "NoSchedule"}));
    }
}

/// Protects a volume, and records the time of the last change of its phase.
pub(super) fn volume(new: &mut Value, live: Option<&Value>, now: Timestamp) {
    const SINCE: &str = "lastPhaseTransitionTime";
    let Some(live) = live else {
        protect(new, VOLUME_PROTECTION);
        new["status"][SINCE] = Value::from(seconds(now));
        return;
    };
    let (before, after) = (&live["status"], &new["status"]);
    let same = after[SINCE].is_null() || after[SINCE] == before[SINCE];
    if after["phase"] != before["phase"] && same {
        new["status"][SINCE] = Value::from(seconds(now));
    }
}

/// Copies `dataSource` and `dataSourceRef` to each other if only one is set, without a namespace.
pub(super) fn same_source(claim: &mut Value) {
    let Some(spec) = claim.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    for (from, to) in [
        ("dataSource", "dataSourceRef"),
        ("dataSourceRef", "dataSource"),
    ] {
        let Some(source) = spec.get(from).filter(|source| source.is_object()) else {
            continue;
        };
        let elsewhere = source["namespace"]
            .as_str()
            .is_some_and(|namespace| !namespace.is_empty());
        if !elsewhere && spec.get(to).is_none_or(Value::is_null) {
            let mut source = source.clone();
            if let Some(fields) = source.as_object_mut() {
                fields.remove("namespace");
            }
            spec.insert(to.to_owned(), source);
        }
    }
}

pub(super) fn protect(object: &mut Value, finalizer: &str) {
    let metadata = meta::of(object);
    let all = metadata.entry("finalizers").or_insert_with(|| json!([]));
    if let Some(all) = all.as_array_mut()
        && !all.iter().any(|name| name == finalizer)
    {
        all.push(Value::from(finalizer));
    }
}
