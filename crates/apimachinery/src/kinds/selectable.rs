//! Fields for selecting objects: the labels of each kind (`AddFieldLabelConversionFunc` of Kubernetes), and the text
//! behind each label (`ToSelectableFields`).

use serde_json::Value;

use super::{Resource, Version};

const NAME: &str = "metadata.name";
const NAMESPACE: &str = "metadata.namespace";

/// Returns the labels of a built-in kind beyond the name and the namespace.
pub(super) fn labels(group: &str, kind: &str) -> &'static [&'static str] {
    match (group, kind) {
        ("", "Pod") => &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "spec.host",
            "status.phase",
            "status.podIP",
            "status.podIPs",
            "status.nominatedNodeName",
        ],
        ("", "Event") => &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ],
        ("events.k8s.io", "Event") => &[
            "regarding.kind",
            "regarding.namespace",
            "regarding.name",
            "regarding.uid",
            "regarding.apiVersion",
            "regarding.resourceVersion",
            "regarding.fieldPath",
            "reason",
            "reportingController",
            "type",
        ],
        ("", "Node") => &["spec.unschedulable"],
        ("", "Namespace") => &["status.phase"],
        ("", "Secret") => &["type"],
        ("", "ReplicationController") => &["status.replicas"],
        ("", "Service") => &["spec.clusterIP", "spec.type"],
        ("batch", "Job") => &["status.successful"],
        ("certificates.k8s.io", "CertificateSigningRequest") => &["spec.signerName"],
        _ => &[],
    }
}

/// Checks that objects of a [`Resource`] can be selected by a label.
///
/// # Errors
/// The words of kube-apiserver.
pub fn check(resource: &Resource, version: &Version, label: &str) -> Result<(), String> {
    let beyond = &version.selectable;
    // Kinds without labels of their own share a rule that ignores the scope.
    let shared = !resource.is_custom() && beyond.is_empty();
    let supported = match label {
        NAME => true,
        NAMESPACE => resource.namespaced || shared,
        label => beyond.iter().any(|known| known == label),
    };
    match resource.kind.as_str() {
        _ if supported => Ok(()),
        _ if shared => Err(format!(
            "{label:?} is not a known field selector: only {NAME:?}, {NAMESPACE:?}"
        )),
        "Job" if !resource.is_custom() => {
            Err(format!("field label {label:?} not supported for Job"))
        }
        _ => Err(format!("field label not supported: {label}")),
    }
}

/// True if a label names a field other than the name and the namespace.
pub fn is_beyond_metadata(label: &str) -> bool {
    !matches!(label, NAME | NAMESPACE)
}

/// Returns the text of a field of an object in the stored version. Both forms of Event are stored as the older one.
pub fn text(resource: &Resource, object: &Value, label: &str) -> Option<String> {
    if resource.is_custom() {
        return found(object, label);
    }
    let or = |path: &str, default: &str| {
        let text = found(object, path).unwrap_or_default();
        Some(if text.is_empty() {
            default.to_owned()
        } else {
            text
        })
    };
    match (resource.kind.as_str(), label) {
        ("Pod", "spec.hostNetwork") | ("Node", "spec.unschedulable") => or(label, "false"),
        ("Pod", "spec.host") => found(object, "spec.nodeName"),
        ("Pod", "status.podIP") => {
            let first = object.pointer("/status/podIPs/0/ip");
            let first = first.and_then(Value::as_str).map(str::to_owned);
            first.or_else(|| found(object, label))
        }
        ("ReplicationController", "status.replicas") => or(label, "0"),
        ("Job", "status.successful") => or("status.succeeded", "0"),
        ("Event", "source") => {
            let reporter = found(object, "reportingComponent").unwrap_or_default();
            or("source.component", &reporter)
        }
        ("Event", "reportingController") => found(object, "reportingComponent"),
        ("Event", label) => match label.strip_prefix("regarding.") {
            Some(field) => found(object, &format!("involvedObject.{field}")),
            None => found(object, label),
        },
        _ => found(object, label),
    }
}

/// Returns a scalar as text.
fn found(object: &Value, path: &str) -> Option<String> {
    let found = path
        .split('.')
        .try_fold(object, |value, part| value.get(part))?;
    match found {
        Value::String(text) => Some(text.clone()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
        other => Some(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds::Registry;

    #[test]
    fn what_is_left_out_is_selected_by_its_default() {
        let registry = Registry::built_in();
        for (group, plural, object, label, expected) in [
            ("", "nodes", json!({}), "spec.unschedulable", "false"),
            ("", "pods", json!({}), "spec.hostNetwork", "false"),
            (
                "",
                "pods",
                json!({"spec": {"hostNetwork": true}}),
                "spec.hostNetwork",
                "true",
            ),
            (
                "",
                "pods",
                json!({"spec": {"nodeName": "n"}}),
                "spec.host",
                "n",
            ),
            (
                "",
                "pods",
                json!({"status": {"podIPs": [{"ip": "192.0.2.1"}]}}),
                "status.podIP",
                "192.0.2.1",
            ),
            (
                "",
                "replicationcontrollers",
                json!({}),
                "status.replicas",
                "0",
            ),
            ("batch", "jobs", json!({}), "status.successful", "0"),
            (
                "batch",
                "jobs",
                json!({"status": {"succeeded": 2}}),
                "status.successful",
                "2",
            ),
            (
                "",
                "events",
                json!({"reportingComponent": "c"}),
                "source",
                "c",
            ),
            (
                "",
                "events",
                json!({"source": {"component": "s"}, "reportingComponent": "c"}),
                "source",
                "s",
            ),
            (
                "events.k8s.io",
                "events",
                json!({"involvedObject": {"name": "p"}}),
                "regarding.name",
                "p",
            ),
        ] {
            let resource = registry.find(group, plural).unwrap();
            assert_eq!(check(&resource, &resource.versions[0], label), Ok(()));
            let found = text(&resource, &object, label).unwrap_or_default();
            assert_eq!(found, expected, "{plural} {label}");
        }
    }

    #[test]
    fn unknown_labels_are_rejected_as_each_kind_does_it() {
        let registry = Registry::built_in();
        let known = "is not a known field selector: only \"metadata.name\", \"metadata.namespace\"";
        for (group, plural, label, expected) in [
            (
                "",
                "pods",
                "spec.x",
                "field label not supported: spec.x".to_owned(),
            ),
            (
                "",
                "nodes",
                "metadata.namespace",
                "field label not supported: metadata.namespace".to_owned(),
            ),
            (
                "events.k8s.io",
                "events",
                "source",
                "field label not supported: source".to_owned(),
            ),
            (
                "batch",
                "jobs",
                "spec.x",
                "field label \"spec.x\" not supported for Job".to_owned(),
            ),
            ("", "configmaps", "data.k", format!("\"data.k\" {known}")),
            (
                "apps",
                "replicasets",
                "status.replicas",
                format!("\"status.replicas\" {known}"),
            ),
        ] {
            let resource = registry.find(group, plural).unwrap();
            let found = check(&resource, &resource.versions[0], label);
            assert_eq!(found, Err(expected), "{plural}");
        }
        let classes = registry.find("storage.k8s.io", "storageclasses").unwrap();
        assert!(check(&classes, &classes.versions[0], NAMESPACE).is_ok());
    }
}
