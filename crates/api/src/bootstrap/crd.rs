//! The CustomResourceDefinitions of the group.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{JSON, JSONSchemaProps};
use kube::CustomResourceExt;
use serde_json::json;

use super::v1beta2;

/// The CustomResourceDefinitions of KubeadmConfig and KubeadmConfigTemplate.
pub fn all() -> Vec<CustomResourceDefinition> {
    vec![
        optional_spec(v1beta2::KubeadmConfig::crd()),
        v1beta2::KubeadmConfigTemplate::crd(),
    ]
}

/// Lets an object leave its spec out: the API server stores an empty one.
pub(crate) fn optional_spec(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    for version in &mut crd.spec.versions {
        let Some(root) = version
            .schema
            .as_mut()
            .and_then(|s| s.open_api_v3_schema.as_mut())
        else {
            continue;
        };
        if let Some(required) = &mut root.required {
            required.retain(|name| name != "spec");
        }
        let spec: Option<&mut JSONSchemaProps> = root
            .properties
            .as_mut()
            .and_then(|properties| properties.get_mut("spec"));
        if let Some(spec) = spec {
            spec.default = Some(JSON(json!({})));
        }
    }
    crd
}
