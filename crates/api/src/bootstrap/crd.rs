//! CustomResourceDefinitions of the group.
//!
//! Schemas of v1beta2 are generated from the types. Schemas of v1beta1 are derived by the edits in `older`: v1beta1
//! exists only as JSON here (see [`super::convert`]).

pub(crate) mod older;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSON, JSONSchemaProps,
};
use kube::CustomResourceExt;
use serde_json::json;

use super::v1beta2;
use crate::definition::edit::relax;
use crate::definition::{column, finish, with_v1beta1};

/// [`CustomResourceDefinition`]s of KubeadmConfig and KubeadmConfigTemplate.
pub fn all() -> Vec<CustomResourceDefinition> {
    let age = column("Age", "date", ".metadata.creationTimestamp");
    let cluster = column(
        "Cluster",
        "string",
        r".metadata.labels['cluster\.x-k8s\.io/cluster-name']",
    );
    let provider = "bootstrap-kubeadm";
    let configs = optional_spec(finish(v1beta2::KubeadmConfig::crd(), provider));
    let templates = finish(v1beta2::KubeadmConfigTemplate::crd(), provider);
    vec![
        with_v1beta1(configs, vec![cluster, age.clone()], |schema| {
            older::bootstrap(&mut schema["properties"]["spec"]);
            schema["properties"]["status"] = older::config_status();
        }),
        with_v1beta1(templates, vec![age], |schema| {
            let template = &mut schema["properties"]["spec"]["properties"]["template"];
            relax(template);
            older::bootstrap(&mut template["properties"]["spec"]);
        }),
    ]
}

/// Makes the spec optional: the API server stores an empty one.
fn optional_spec(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
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

#[cfg(test)]
mod tests;
