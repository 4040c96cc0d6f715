//! What admission adds to nodes, volumes and claims, for the collector to take away again.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::crd::seconds;
use crate::rest::meta;

/// Holds a claim until no pod uses it (`StorageObjectInUseProtection`).
pub(crate) const CLAIM_PROTECTION: &str = "kubernetes.io/pvc-protection";
/// Holds a volume until it is bound to no claim.
pub(crate) const VOLUME_PROTECTION: &str = "kubernetes.io/pv-protection";
/// The taint of nodes that have not been ready yet (`TaintNodesByCondition`).
pub(crate) const NOT_READY: &str = "node.kubernetes.io/not-ready";

/// Nothing is scheduled to a node before it is ready.
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

/// Volumes are protected, and tell since when they are in their phase.
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

pub(super) fn protect(object: &mut Value, finalizer: &str) {
    let metadata = meta::of(object);
    let all = metadata.entry("finalizers").or_insert_with(|| json!([]));
    if let Some(all) = all.as_array_mut()
        && !all.iter().any(|name| name == finalizer)
    {
        all.push(Value::from(finalizer));
    }
}
