//! CustomResourceDefinitions of `ipam.cluster.x-k8s.io`.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use serde_json::{Value, json};

use super::v1beta2;
use crate::core::crd::older;
use crate::definition::edit::{forget, property, remove, set};
use crate::definition::{column, exact, with_v1beta1, without_nullable};

/// [`CustomResourceDefinition`]s of this group: both versions served, v1beta2 stored.
pub fn all() -> Vec<CustomResourceDefinition> {
    let columns = [
        column("Address", "string", ".spec.address"),
        column("Pool Name", "string", ".spec.poolRef.name"),
        column("Pool Kind", "string", ".spec.poolRef.kind"),
        column("Age", "date", ".metadata.creationTimestamp"),
    ];
    let mut claim = v1beta2::IPAddressClaim::crd();
    let mut address = v1beta2::IPAddress::crd();
    for crd in [&mut claim, &mut address] {
        without_nullable(crd);
    }
    exact(&mut claim);
    vec![
        with_v1beta1(claim, columns[1..].to_vec(), older_claim),
        with_v1beta1(address, columns.to_vec(), older_address),
    ]
}

fn older_claim(root: &mut Value) {
    older_pool(older::spec_of(root));
    let status = property(root, "status");
    older::former(status, older::new_conditions());
    for name in ["failureReason", "failureMessage"] {
        remove(status, name);
    }
    set(status, "addressRef", older_reference("The IPAddress."));
}

fn older_address(root: &mut Value) {
    let spec = older::spec_of(root);
    older_pool(spec);
    set(spec, "claimRef", older_reference("The IPAddressClaim."));
    for rule in ["minimum", "maximum"] {
        forget(property(spec, "prefix"), rule);
    }
}

/// Relaxes the reference to a pool for v1beta1: names of any length, and an optional group.
fn older_pool(spec: &mut Value) {
    let pool = property(spec, "poolRef");
    pool["required"] = json!(["kind", "name"]);
    for name in ["apiGroup", "kind", "name"] {
        for rule in ["minLength", "maxLength", "pattern"] {
            forget(property(pool, name), rule);
        }
    }
}

fn older_reference(description: &str) -> Value {
    json!({ "type": "object", "description": description, "x-kubernetes-map-type": "atomic",
        "properties": { "name": { "type": "string", "default": "", "description": "Name of the object." } } })
}
