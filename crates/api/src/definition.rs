//! Parts of CustomResourceDefinitions, below all groups.
//!
//! Schemas of v1beta2 are generated from the types. v1beta1 exists only as JSON: [`with_v1beta1`] derives the schemas
//! by the edits in [`edit`].

pub(crate) mod edit;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceColumnDefinition, CustomResourceDefinition, JSONSchemaProps,
    JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use serde_json::Value;

use self::edit::conditions;
use crate::names::PROVIDER_LABEL;

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

/// Printer column.
pub(crate) fn column(name: &str, type_: &str, path: &str) -> CustomResourceColumnDefinition {
    CustomResourceColumnDefinition {
        name: name.to_owned(),
        type_: type_.to_owned(),
        json_path: path.to_owned(),
        ..CustomResourceColumnDefinition::default()
    }
}

/// Printer column for `kubectl get -o wide` only.
pub(crate) fn wide(name: &str, type_: &str, path: &str) -> CustomResourceColumnDefinition {
    CustomResourceColumnDefinition {
        priority: Some(10),
        ..column(name, type_, path)
    }
}

/// Adds v1beta1, served but not stored; `edit` turns the schema of v1beta2 into the schema of v1beta1.
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
        // Edits produce valid schemas, as verified by a test for each.
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

/// Removes `nullable` from every schema of `crd`.
///
/// The derive macro marks each `Option` as nullable, unlike the CRDs of Cluster API. The difference matters: an API
/// server drops `matchLabels: null`, as in upstream's templates, from a field without `nullable`, and otherwise stores
/// the null.
pub(crate) fn without_nullable(crd: &mut CustomResourceDefinition) {
    for version in &mut crd.spec.versions {
        if let Some(schema) = version
            .schema
            .as_mut()
            .and_then(|schema| schema.open_api_v3_schema.as_mut())
        {
            strip(schema);
        }
    }
}

/// Replaces the derived schema of conditions by the Go type's, with its limits.
pub(crate) fn exact(crd: &mut CustomResourceDefinition) {
    let schemas = crd
        .spec
        .versions
        .iter_mut()
        .filter_map(|version| version.schema.as_mut());
    for root in schemas.filter_map(|schema| schema.open_api_v3_schema.as_mut()) {
        root.title = None;
        let status = root
            .properties
            .as_mut()
            .and_then(|all| all.get_mut("status"));
        let fields = status.and_then(|status| status.properties.as_mut());
        if let Some(fields) = fields
            && let Ok(conditions) = serde_json::from_value(conditions())
        {
            fields.insert("conditions".to_owned(), conditions);
        }
    }
}

fn strip(schema: &mut JSONSchemaProps) {
    schema.nullable = None;
    for property in schema
        .properties
        .iter_mut()
        .flat_map(|properties| properties.values_mut())
    {
        strip(property);
    }
    match schema.items.as_mut() {
        Some(JSONSchemaPropsOrArray::Schema(item)) => strip(item),
        Some(JSONSchemaPropsOrArray::Schemas(items)) => items.iter_mut().for_each(strip),
        None => {}
    }
    if let Some(JSONSchemaPropsOrBool::Schema(value)) = schema.additional_properties.as_mut() {
        strip(value);
    }
}
