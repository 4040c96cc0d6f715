//! Parts of objects read by every controller, and writes.

use serde_json::{Map, Value, json};

pub(super) use crate::json::text;

/// Request with a change.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Write {
    Create {
        collection: String,
        body: Value,
    },
    /// JSON merge patch.
    Patch {
        path: String,
        body: Value,
    },
    Delete {
        path: String,
        uid: String,
        /// Seconds; without one the grace period of the object.
        grace: Option<u32>,
    },
}

/// Kind of the objects to write.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kind {
    pub(super) api_version: &'static str,
    pub(super) name: &'static str,
    pub(super) plural: &'static str,
}

pub(super) const POD: Kind = kind("v1", "Pod", "pods");
pub(super) const CLAIM: Kind = kind("v1", "PersistentVolumeClaim", "persistentvolumeclaims");
pub(super) const EVENT: Kind = kind("v1", "Event", "events");
pub(super) const DEPLOYMENT: Kind = kind("apps/v1", "Deployment", "deployments");
pub(super) const REPLICA_SET: Kind = kind("apps/v1", "ReplicaSet", "replicasets");
pub(super) const STATEFUL_SET: Kind = kind("apps/v1", "StatefulSet", "statefulsets");
pub(super) const DAEMON_SET: Kind = kind("apps/v1", "DaemonSet", "daemonsets");
pub(super) const BUDGET: Kind = kind("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets");
pub(super) const JOB: Kind = kind("batch/v1", "Job", "jobs");

const fn kind(api_version: &'static str, name: &'static str, plural: &'static str) -> Kind {
    Kind {
        api_version,
        name,
        plural,
    }
}

impl Kind {
    fn root(self) -> String {
        match self.api_version {
            "v1" => "/api/v1".to_owned(),
            version => format!("/apis/{version}"),
        }
    }

    /// Returns the path of the objects in the namespace of `object`.
    pub(super) fn beside(self, object: &Value) -> String {
        let namespace = text(&object["metadata"]["namespace"]);
        format!("{}/namespaces/{namespace}/{}", self.root(), self.plural)
    }

    /// Returns the path of an object.
    pub(super) fn path(self, object: &Value) -> String {
        format!(
            "{}/{}",
            self.beside(object),
            text(&object["metadata"]["name"])
        )
    }

    /// Returns an owner reference to an object of this kind.
    pub(super) fn owner(self, object: &Value) -> Value {
        json!({
            "apiVersion": self.api_version, "kind": self.name, "name": object["metadata"]["name"],
            "uid": object["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true,
        })
    }

    /// Writes the differing fields of a status; `None` without a difference.
    pub(super) fn status(self, object: &Value, status: Value) -> Option<Write> {
        let differs = !has(&object["status"], &status);
        differs.then(|| Write::Patch {
            path: format!("{}/status", self.path(object)),
            body: json!({"status": status}),
        })
    }

    pub(super) fn delete(self, object: &Value, grace: Option<u32>) -> Write {
        Write::Delete {
            path: self.path(object),
            uid: uid(object).to_owned(),
            grace,
        }
    }

    /// Creates a Pod of a template for an object of this kind.
    pub(super) fn pod(self, object: &Value, name: Name<'_>, labels: &[(&str, &str)]) -> Write {
        let template = &object["spec"]["template"];
        let mut metadata = template["metadata"].clone();
        if !metadata.is_object() {
            metadata = Value::Object(Map::new());
        }
        if let Some(fields) = metadata.as_object_mut() {
            fields.remove("creationTimestamp");
        }
        match name {
            Name::Generated => {
                let owner = text(&object["metadata"]["name"]);
                metadata["generateName"] = format!("{owner}-").into();
            }
            Name::Given(name) => metadata["name"] = name.into(),
        }
        metadata["namespace"] = object["metadata"]["namespace"].clone();
        metadata["ownerReferences"] = json!([self.owner(object)]);
        for (label, value) in labels {
            metadata["labels"][*label] = (*value).into();
        }
        let spec = template["spec"].clone();
        Write::Create {
            collection: POD.beside(object),
            body: json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}),
        }
    }
}

/// True if `there` contains all of `wanted`. The API server may drop empty values, and add defaults.
fn has(there: &Value, wanted: &Value) -> bool {
    let is_empty = |value: &Value| match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(true) => false,
    };
    match (there, wanted) {
        (Value::Object(_), Value::Object(fields)) => {
            fields.iter().all(|(name, value)| has(&there[name], value))
        }
        (Value::Array(there), Value::Array(wanted)) => {
            there.len() == wanted.len() && there.iter().zip(wanted).all(|(one, two)| has(one, two))
        }
        _ => there == wanted || is_empty(there) && is_empty(wanted),
    }
}

/// Name of a new Pod.
pub(super) enum Name<'a> {
    Generated,
    Given(&'a str),
}

pub(super) fn uid(object: &Value) -> &str {
    text(&object["metadata"]["uid"])
}

pub(super) fn items(value: &Value) -> impl Iterator<Item = &Value> + Clone {
    value.as_array().into_iter().flatten()
}

pub(super) fn number(value: &Value, default: u64) -> usize {
    usize::try_from(value.as_u64().unwrap_or(default)).unwrap_or_default()
}

/// True if the object is being deleted.
pub(super) fn is_ending(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

/// True if a condition of the status is `True`.
pub(super) fn holds(object: &Value, condition: &str) -> bool {
    items(&object["status"]["conditions"])
        .any(|it| it["type"] == condition && it["status"] == "True")
}

/// True if a Pod has ended for good.
pub(super) fn has_ended(pod: &Value) -> bool {
    matches!(text(&pod["status"]["phase"]), "Succeeded" | "Failed")
}

/// True if all labels are there.
pub(super) fn has_labels(labels: &Value, wanted: &Value) -> bool {
    let mut wanted = wanted.as_object().into_iter().flatten();
    wanted.all(|(label, value)| labels[label] == *value)
}

/// Returns ten hexadecimal digits of the hash of a content.
pub(super) fn hash(value: &Value) -> String {
    use sha2::Digest as _;
    let digest = sha2::Sha256::digest(value.to_string());
    digest
        .iter()
        .take(5)
        .map(|it| format!("{it:02x}"))
        .collect()
}

/// Returns null for 0, which Kubernetes omits: in a merge patch, null removes the number.
pub(super) fn some(count: usize) -> Option<usize> {
    (count > 0).then_some(count)
}

/// Returns the current time in the form of Kubernetes.
pub(super) fn time() -> String {
    let now = jiff::Timestamp::now();
    now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Returns a condition, with the former time if the status is the same.
pub(super) fn condition(
    object: &Value,
    name: &str,
    status: bool,
    reason: &str,
    message: &str,
) -> Value {
    let status = if status { "True" } else { "False" };
    let mut former = items(&object["status"]["conditions"]);
    let former = former.find(|it| it["type"] == name && it["status"] == status);
    let since = former.map(|it| it["lastTransitionTime"].clone());
    let mut condition = json!({
        "type": name, "status": status,
        "lastTransitionTime": since.unwrap_or_else(|| time().into()),
    });
    for (field, value) in [("reason", reason), ("message", message)] {
        if !value.is_empty() {
            condition[field] = value.into();
        }
    }
    condition
}
