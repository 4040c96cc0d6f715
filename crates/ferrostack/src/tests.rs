//! Objects of clusters for tests.

use std::sync::Arc;

use serde_json::{Value, json};
use status::snapshot::{Item, Kind};

/// An item of `kind` from its JSON.
pub(crate) fn item(kind: Kind, mut object: Value) -> Item {
    object["apiVersion"] = kind.resource().api_version.into();
    object["kind"] = kind.as_str().into();
    Item {
        kind,
        object: Arc::new(serde_json::from_value(object).unwrap()),
    }
}

/// An object of the cluster `demo`, owned by `owner`.
pub(crate) fn of_demo(kind: Kind, name: &str, owner: &str, rest: Value) -> Item {
    let mut object = json!({"metadata": {
        "name": name, "namespace": "default", "uid": name,
        "labels": {"cluster.x-k8s.io/cluster-name": "demo"},
        "ownerReferences": [{"apiVersion": "x/v1", "kind": "X", "name": owner, "uid": owner}],
    }});
    for (key, value) in rest.as_object().cloned().unwrap_or_default() {
        object[key] = value;
    }
    item(kind, object)
}

/// A condition of an object.
pub(crate) fn condition(type_: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({"type": type_, "status": status, "reason": reason, "message": message,
           "lastTransitionTime": "2026-01-01T00:00:00Z"})
}
