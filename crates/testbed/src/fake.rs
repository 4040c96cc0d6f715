//! Provider kinds for tests: spec and status accept any fields.

use api::k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::DynamicObject;
use kube::core::GroupVersionKind;
use kube::discovery::ApiResource;
use kube::{Api, Client};
use serde_json::json;

use crate::NAMESPACE;

/// Returns the objects of a kind defined by [`fake_definition`].
#[must_use]
pub fn fake(client: &Client, group: &str, kind: &str) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind));
    Api::namespaced_with(client.clone(), NAMESPACE, &resource)
}

/// Returns a CRD in version `v1` that obeys the contract of Cluster API v1beta2.
///
/// # Panics
/// Never: the definition is valid.
#[must_use]
pub fn fake_definition(group: &str, kind: &str) -> CustomResourceDefinition {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind));
    let anything = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let definition = json!({
        "metadata": {
            "name": format!("{}.{group}", resource.plural),
            "labels": { "cluster.x-k8s.io/v1beta2": "v1" },
        },
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {
                "kind": kind, "plural": resource.plural, "singular": kind.to_lowercase(),
                "listKind": format!("{kind}List"),
            },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": {
                    "type": "object", "properties": { "spec": anything, "status": anything },
                }},
            }],
        },
    });
    serde_json::from_value(definition).unwrap()
}
