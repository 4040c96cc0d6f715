//! All our CustomResourceDefinitions.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

/// Every CustomResourceDefinition of the suite, in the order in which `kubectl apply` should see them.
pub fn all() -> Vec<CustomResourceDefinition> {
    Vec::new()
}
