//! CustomResourceDefinitions of `addons.cluster.x-k8s.io`.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use serde_json::Value;

use super::v1beta2;
use crate::core::crd::older;
use crate::definition::edit::{property, remove};
use crate::definition::{column, exact, with_v1beta1, without_nullable};

/// [`CustomResourceDefinition`]s of this group: both versions served, v1beta2 stored.
pub fn all() -> Vec<CustomResourceDefinition> {
    let age = column("Age", "date", ".metadata.creationTimestamp");
    let mut set = v1beta2::ClusterResourceSet::crd();
    let mut binding = v1beta2::ClusterResourceSetBinding::crd();
    for crd in [&mut set, &mut binding] {
        without_nullable(crd);
    }
    exact(&mut set);
    vec![
        with_v1beta1(set, vec![age.clone()], older_set),
        with_v1beta1(binding, vec![age], older_binding),
    ]
}

fn older_set(root: &mut Value) {
    no_longer_required(older::spec_of(root), "resources");
    let status = property(root, "status");
    older::former(status, older::new_conditions());
    for name in ["failureReason", "failureMessage"] {
        remove(status, name);
    }
}

fn older_binding(root: &mut Value) {
    no_longer_required(older::spec_of(root), "clusterName");
}

fn no_longer_required(spec: &mut Value, field: &str) {
    let Some(fields) = spec.as_object_mut() else {
        return;
    };
    let required = fields.get_mut("required").and_then(Value::as_array_mut);
    if let Some(required) = required {
        required.retain(|name| name != field);
        if required.is_empty() {
            fields.remove("required");
        }
    }
}
