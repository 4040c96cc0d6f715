//! Relaxed schemas of v1beta1: the types of v1beta2, without newer limits.
//!
//! Objects accepted by the Go provider in v1beta1 are accepted here; docs/reference/validation.md lists the
//! differences.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};

/// Strings never empty, even in v1beta1, by the end of their path.
const NOT_EMPTY: &[&str] = &[
    "spec.flavor",
    "spec.flavorID",
    ".identityRef.name",
    ".identityRef.cloudName",
    ".availabilityZone.name",
    ".schedulerHintAdditionalProperties[].name",
    ".value.string",
    // Elements of tag filters.
    "ags[]",
    "agsAny[]",
    ".conditions[].type",
    ".conditions[].reason",
    ".conditions[].message",
];
/// Lists with possible duplicates in v1beta1, in a status and in `remoteManagedGroups`.
const NOT_A_SET: &[&str] = &["tags", "ips", "allowedCIDRs"];

/// Removes the limits of v1beta2 from the schema of a kind.
pub(super) fn relax(schema: &mut JSONSchemaProps) {
    for (name, part) in schema.properties.iter_mut().flatten() {
        walk(part, name, name == "status");
    }
}

fn walk(schema: &mut JSONSchemaProps, path: &str, in_status: bool) {
    if !NOT_EMPTY.iter().any(|end| path.ends_with(end)) {
        schema.min_length = None;
    }
    let name = path.rsplit('.').next().unwrap_or_default();
    let repeats = in_status && NOT_A_SET.contains(&name) && !path.contains(".resolved.");
    if name == "remoteManagedGroups" || repeats {
        schema.x_kubernetes_list_type = None;
    }
    if name == "controlPlaneEndpoint" {
        endpoint(schema);
    }
    for (name, property) in schema.properties.iter_mut().flatten() {
        walk(property, &format!("{path}.{name}"), in_status);
    }
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &mut schema.items {
        walk(items, &format!("{path}[]"), in_status);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &mut schema.additional_properties {
        walk(values, &format!("{path}{{}}"), in_status);
    }
}

/// Allows an empty host and port 0: an unknown endpoint.
fn endpoint(schema: &mut JSONSchemaProps) {
    schema.min_properties = None;
    for property in schema.properties.iter_mut().flat_map(|p| p.values_mut()) {
        property.minimum = None;
        property.maximum = None;
    }
}
