//! The CustomResourceDefinitions of the group.
//!
//! Schemas of v1beta2 are generated from the types. Those of v1beta1 are derived from them by the edits in [`older`],
//! because v1beta1 exists only as JSON here (see [`super::convert`]).

pub(crate) mod older;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceColumnDefinition, CustomResourceDefinition, JSON, JSONSchemaProps,
};
use kube::CustomResourceExt;
use serde_json::{Value, json};

use super::v1beta2;
use crate::core::crd::without_nullable;
use crate::names::PROVIDER_LABEL;

/// The CustomResourceDefinitions of KubeadmConfig and KubeadmConfigTemplate.
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
            older::relax(template);
            older::bootstrap(&mut template["properties"]["spec"]);
        }),
    ]
}

/// Labels the CRD as part of `provider`, and removes `nullable`.
pub(crate) fn finish(
    mut crd: CustomResourceDefinition,
    provider: &str,
) -> CustomResourceDefinition {
    without_nullable(&mut crd);
    let labels = crd.metadata.labels.get_or_insert_default();
    labels.insert(PROVIDER_LABEL.to_owned(), provider.to_owned());
    crd
}

/// A printer column.
pub(crate) fn column(name: &str, type_: &str, path: &str) -> CustomResourceColumnDefinition {
    CustomResourceColumnDefinition {
        name: name.to_owned(),
        type_: type_.to_owned(),
        json_path: path.to_owned(),
        ..CustomResourceColumnDefinition::default()
    }
}

/// A column that only `kubectl get -o wide` has.
pub(crate) fn wide(name: &str, type_: &str, path: &str) -> CustomResourceColumnDefinition {
    CustomResourceColumnDefinition {
        priority: Some(10),
        ..column(name, type_, path)
    }
}

/// Adds v1beta1, served but not stored; `edit` changes the schema of v1beta2 into that of v1beta1.
pub(crate) fn with_v1beta1(
    mut crd: CustomResourceDefinition,
    columns: Vec<CustomResourceColumnDefinition>,
    edit: impl FnOnce(&mut Value),
) -> CustomResourceDefinition {
    let Some(mut version) = crd.spec.versions.first().cloned() else {
        return crd;
    };
    let schema = version
        .schema
        .as_mut()
        .and_then(|schema| schema.open_api_v3_schema.as_mut());
    if let Some(schema) = schema {
        let mut value = serde_json::to_value(&*schema).unwrap_or_default();
        edit(&mut value);
        // Edits produce valid schemas; a test converts each of them.
        if let Ok(edited) = serde_json::from_value(value) {
            *schema = edited;
        }
    }
    version.name = "v1beta1".to_owned();
    version.storage = false;
    version.additional_printer_columns = Some(columns);
    crd.spec.versions.insert(0, version);
    crd
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
