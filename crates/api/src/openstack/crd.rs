//! CustomResourceDefinitions of `ferrostack.dev`.
//!
//! Fields of the design without an implementation have a schema that rejects every value. Otherwise, an API server
//! would drop such fields, and the cloud would differ from its object.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps,
};
use kube::CustomResourceExt;
use serde_json::json;

use super::operation::OpenStackOperation;
use super::v1alpha1::OpenStack;
use crate::definition::edit::conditions;
use crate::definition::without_nullable;

const NOT_BUILT: &str = "is not built yet";
/// Rejected fields: path in the spec, type, and reason.
pub const REJECTED: [(&str, &str, &str); 11] = [
    ("replicas", "integer", NOT_BUILT),
    ("images", "object", NOT_BUILT),
    ("database", "object", NOT_BUILT),
    ("messaging", "object", NOT_BUILT),
    ("identity", "object", NOT_BUILT),
    ("compute.virtType", "string", NOT_BUILT),
    ("compute.groups", "array", NOT_BUILT),
    ("update", "object", NOT_BUILT),
    ("services.memcached", "object", NOT_BUILT),
    (
        "services.searchlight",
        "object",
        "is not served: the project was retired in 2021",
    ),
    (
        "services.elasticsearch",
        "object",
        "is not served: only Searchlight used it",
    ),
];
/// Rejected fields of each service: name and type.
pub const REJECTED_OF_SERVICES: [(&str, &str); 3] = [
    ("replicas", "integer"),
    ("configFrom", "array"),
    ("policy", "object"),
];
/// Services with settings.
const SERVICES: [&str; 8] = [
    "keystone",
    "glance",
    "placement",
    "nova",
    "neutron",
    "cinder",
    "octavia",
    "horizon",
];

/// [`CustomResourceDefinition`]s of this group.
pub fn all() -> Vec<CustomResourceDefinition> {
    let mut crd = OpenStack::crd();
    without_nullable(&mut crd);
    let versions = crd.spec.versions.iter_mut();
    for schema in versions.filter_map(|version| version.schema.as_mut()) {
        if let Some(root) = schema.open_api_v3_schema.as_mut() {
            root.title = None;
            reject(root);
            releases(root);
            describe_conditions(root);
        }
    }
    let mut operation = OpenStackOperation::crd();
    without_nullable(&mut operation);
    let versions = operation.spec.versions.iter_mut();
    for schema in versions.filter_map(|version| version.schema.as_mut()) {
        if let Some(root) = schema.open_api_v3_schema.as_mut() {
            root.title = None;
        }
    }
    vec![crd, operation]
}

/// Adds the rule for changes of the release: one step up, and back before the first program of the new release. A rule
/// on the field alone could not see the progress of an upgrade.
fn releases(root: &mut JSONSchemaProps) {
    let rule = "self.spec.release == oldSelf.spec.release \
        || (oldSelf.spec.release == '2025.1' && self.spec.release == '2026.1') \
        || (has(self.status) && has(self.status.release) && has(self.status.release.phase) \
            && self.status.release.phase in ['Check', 'Backup', 'Infra', 'Expand'] \
            && self.spec.release == self.status.release.current)";
    let rules = json!([{
        "rule": rule,
        "message": "a release goes up by one step, from 2025.1 to 2026.1, and is never lowered; \
            back it goes until the phase Expand of an upgrade is over",
        "fieldPath": ".spec.release",
    }]);
    root.x_kubernetes_validations = serde_json::from_value(rules).ok();
}

/// Adds the [`REJECTED`] fields.
fn reject(root: &mut JSONSchemaProps) {
    for (path, kind, reason) in REJECTED {
        insert(root, path, kind, reason);
    }
    for service in SERVICES {
        for (field, kind) in REJECTED_OF_SERVICES {
            insert(
                root,
                &format!("services.{service}.{field}"),
                kind,
                NOT_BUILT,
            );
        }
    }
}

/// Replaces the schema of a condition by the one of Cluster API's kinds, with descriptions of fields.
fn describe_conditions(root: &mut JSONSchemaProps) {
    let found = ["status", "conditions"]
        .into_iter()
        .try_fold(root, |at, step| at.properties.as_mut()?.get_mut(step));
    let described: Option<JSONSchemaProps> = serde_json::from_value(conditions()).ok();
    if let (Some(field), Some(described)) = (found, described) {
        field.items = described.items;
    }
}

fn insert(root: &mut JSONSchemaProps, path: &str, kind: &str, reason: &str) {
    let (parent, field) = path.rsplit_once('.').unwrap_or(("", path));
    let steps = ["spec"].into_iter().chain(parent.split('.'));
    let found = steps
        .filter(|step| !step.is_empty())
        .try_fold(root, |at, step| at.properties.as_mut()?.get_mut(step));
    let Some(properties) = found.and_then(|at| at.properties.as_mut()) else {
        return;
    };
    let mut schema = json!({
        "type": kind,
        "description": format!("This field {reason}: every value is rejected."),
        "x-kubernetes-validations": [{"rule": "false", "message": reason}],
    });
    match kind {
        "object" => schema["x-kubernetes-preserve-unknown-fields"] = true.into(),
        "array" => {
            schema["items"] =
                json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
            schema["x-kubernetes-list-type"] = "atomic".into();
        }
        _ => {}
    }
    if let Ok(schema) = serde_json::from_value(schema) {
        properties.insert(field.to_owned(), schema);
    }
}

#[cfg(test)]
mod tests;
