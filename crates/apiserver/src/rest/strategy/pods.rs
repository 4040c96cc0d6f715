//! Changes of pods by admission, and immutable fields of pods.

use apimachinery::schema::FieldError;
use serde_json::{Map, Value, json};

use crate::rest::meta;

/// Mount path of the service account's token in containers.
const TOKEN_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
const TOKEN_VOLUME: &str = "kube-api-access-";
/// Annotation of mirror pods, the copies of a kubelet's pods from files.
const MIRROR: &str = "kubernetes.io/config.mirror";

/// True for a mirror pod: the admission of service accounts leaves mirror pods unchanged.
pub(super) fn is_mirror(pod: &Value) -> bool {
    pod["metadata"]["annotations"].get(MIRROR).is_some()
}

/// Mounts the token of the service account in every container without a mount at [`TOKEN_PATH`] (`ServiceAccount`
/// admission).
pub(super) fn mount(pod: &mut Value) {
    if is_mirror(pod) || pod["spec"]["automountServiceAccountToken"] == false {
        return;
    }
    let Some(spec) = pod.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    let name = meta::generated(TOKEN_VOLUME);
    let mut mounted = false;
    for container in containers(spec) {
        let mounts = container.entry("volumeMounts").or_insert_with(|| json!([]));
        let Some(mounts) = mounts.as_array_mut() else {
            continue;
        };
        if mounts.iter().any(|mount| mount["mountPath"] == TOKEN_PATH) {
            continue;
        }
        mounts.push(json!({"name": name, "readOnly": true, "mountPath": TOKEN_PATH}));
        mounted = true;
    }
    if !mounted {
        return;
    }
    let volumes = spec.entry("volumes").or_insert_with(|| json!([]));
    if let Some(volumes) = volumes.as_array_mut() {
        volumes.push(token_volume(&name));
    }
}

/// Removes the mounts of [`mount`].
pub(super) fn unmount(pod: &mut Value) {
    let Some(spec) = pod.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    let added = |item: &Value| {
        let name = item["name"].as_str().unwrap_or_default();
        let path = &item["mountPath"];
        name.starts_with(TOKEN_VOLUME) && (path.is_null() || path == TOKEN_PATH)
    };
    let without = |fields: &mut Map<String, Value>, list: &str| {
        let Some(items) = fields.get_mut(list).and_then(Value::as_array_mut) else {
            return;
        };
        items.retain(|item| !added(item));
        if items.is_empty() {
            fields.remove(list);
        }
    };
    without(spec, "volumes");
    for container in containers(spec) {
        without(container, "volumeMounts");
    }
}

/// Change of an immutable field of a pod's specification (`ValidatePodUpdate`).
pub(super) fn unchangeable(new: &Value, live: &Value) -> Option<FieldError> {
    let (before, mut after) = (&live["spec"], new["spec"].clone());
    let (Some(fields), Some(old)) = (after.as_object_mut(), before.as_object()) else {
        return None;
    };
    let kept = ["activeDeadlineSeconds", "schedulingGates"];
    for name in kept {
        match old.get(name) {
            Some(value) => fields.insert(name.to_owned(), value.clone()),
            None => fields.remove(name),
        };
    }
    let given = |spec: &Map<String, Value>| {
        let all = spec.get("tolerations").and_then(Value::as_array);
        all.cloned().unwrap_or_default()
    };
    // Tolerations may be added.
    let tolerated = given(fields);
    if given(old)
        .iter()
        .all(|toleration| tolerated.contains(toleration))
    {
        match old.get("tolerations") {
            Some(value) => fields.insert("tolerations".to_owned(), value.clone()),
            None => fields.remove("tolerations"),
        };
    }
    let grace = |spec: &Map<String, Value>| spec.get("terminationGracePeriodSeconds")?.as_i64();
    if grace(old).is_some_and(|before| before < 0) && grace(fields) == Some(1) {
        fields.insert(
            "terminationGracePeriodSeconds".to_owned(),
            json!(grace(old)),
        );
    }
    // The placement of a pod with a scheduling gate may still be narrowed.
    if old
        .get("schedulingGates")
        .is_some_and(|gates| *gates != json!([]))
    {
        for name in ["nodeSelector", "affinity"] {
            match old.get(name) {
                Some(value) => fields.insert(name.to_owned(), value.clone()),
                None => fields.remove(name),
            };
        }
    }
    for list in ["containers", "initContainers"] {
        let old = old.get(list).and_then(Value::as_array);
        let new = fields.get_mut(list).and_then(Value::as_array_mut);
        for (new, old) in new.into_iter().flatten().zip(old.into_iter().flatten()) {
            if let Some(new) = new.as_object_mut()
                && let Some(image) = old.get("image")
            {
                new.insert("image".to_owned(), image.clone());
                // The policy follows the image only when it is defaulted.
                if let Some(policy) = old.get("imagePullPolicy") {
                    new.insert("imagePullPolicy".to_owned(), policy.clone());
                }
            }
        }
    }
    (after != *before).then(|| {
        FieldError::forbidden(
            "spec",
            "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
        )
    })
}

fn containers(spec: &mut Map<String, Value>) -> impl Iterator<Item = &mut Map<String, Value>> {
    spec.iter_mut()
        .filter(|(name, _)| matches!(name.as_str(), "containers" | "initContainers"))
        .filter_map(|(_, list)| list.as_array_mut())
        .flatten()
        .filter_map(Value::as_object_mut)
}

fn token_volume(name: &str) -> Value {
    let sources = json!([
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [
            {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}},
        ]}},
    ]);
    json!({"name": name, "projected": {"sources": sources, "defaultMode": 420}})
}
