//! The CustomResourceDefinitions of `cluster.x-k8s.io`, generated from the types.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use kube::CustomResourceExt;

use super::v1beta2;

/// The CustomResourceDefinitions of this group, v1beta2 stored.
pub fn all() -> Vec<CustomResourceDefinition> {
    let mut all = vec![
        v1beta2::Cluster::crd(),
        v1beta2::Machine::crd(),
        v1beta2::MachineSet::crd(),
        v1beta2::MachineDeployment::crd(),
    ];
    all.iter_mut().for_each(without_nullable);
    all
}

/// Takes `nullable` out of every schema of `crd`.
///
/// The derive marks each `Option` as nullable. The CRDs of Cluster API do not, and the difference
/// shows: an API server drops `matchLabels: null` (which upstream's templates contain) from a field
/// that is not nullable, and would store it otherwise.
pub fn without_nullable(crd: &mut CustomResourceDefinition) {
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
