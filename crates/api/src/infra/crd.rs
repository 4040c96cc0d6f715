//! CustomResourceDefinitions of the group.

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use kube::CustomResourceExt;

use super::{v1alpha1, v1beta1, v1beta2};
use crate::names::PROVIDER_LABEL;

mod alpha;
mod older;

/// [`CustomResourceDefinition`]s of the group, with all served versions.
pub fn crds() -> Vec<CustomResourceDefinition> {
    vec![
        finish(served(
            v1beta1::OpenStackCluster::crd(),
            v1beta2::OpenStackCluster::crd(),
        )),
        finish(served(
            v1beta1::OpenStackClusterTemplate::crd(),
            v1beta2::OpenStackClusterTemplate::crd(),
        )),
        finish(served(
            v1beta1::OpenStackMachine::crd(),
            v1beta2::OpenStackMachine::crd(),
        )),
        finish(served(
            v1beta1::OpenStackMachineTemplate::crd(),
            v1beta2::OpenStackMachineTemplate::crd(),
        )),
        finish(v1alpha1::OpenStackClusterIdentity::crd()),
        finish(v1alpha1::OpenStackFloatingIPPool::crd()),
        finish(v1alpha1::OpenStackServer::crd()),
    ]
}

/// [`CustomResourceDefinition`]s of the kinds with versions before v1beta1, with these alone.
pub fn older() -> Vec<CustomResourceDefinition> {
    alpha::definitions(&crds())
}

/// Merges both versions into one [`CustomResourceDefinition`]; the newer one is stored.
fn served(
    old: CustomResourceDefinition,
    new: CustomResourceDefinition,
) -> CustomResourceDefinition {
    let mut merged = new;
    let mut versions = old.spec.versions;
    for version in &mut versions {
        version.storage = false;
    }
    versions.append(&mut merged.spec.versions);
    merged.spec.versions = versions;
    merged
}

/// Adds labels with the contract versions for Cluster API, and removes `nullable`: so an API server drops an explicit
/// null, as with the schemas of the Go types.
fn finish(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    let labels = crd.metadata.labels.get_or_insert_with(BTreeMap::new);
    labels.insert(
        PROVIDER_LABEL.to_owned(),
        "infrastructure-openstack".to_owned(),
    );
    for contract in ["v1beta1", "v1beta2"] {
        labels.insert(format!("cluster.x-k8s.io/{contract}"), contract.to_owned());
    }
    for version in &mut crd.spec.versions {
        if let Some(schema) = version
            .schema
            .as_mut()
            .and_then(|s| s.open_api_v3_schema.as_mut())
        {
            drop_nullable(schema);
            if version.name == "v1beta1" {
                older::relax(schema);
            }
        }
    }
    crd
}

fn drop_nullable(schema: &mut JSONSchemaProps) {
    schema.nullable = None;
    for property in schema.properties.iter_mut().flat_map(BTreeMap::values_mut) {
        drop_nullable(property);
    }
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &mut schema.items {
        drop_nullable(items);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &mut schema.additional_properties {
        drop_nullable(values);
    }
}
