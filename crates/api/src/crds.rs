//! All our CustomResourceDefinitions.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use crate::providers::Provider;

/// Every CustomResourceDefinition of the suite, in the order for `kubectl apply`.
pub fn all() -> Vec<CustomResourceDefinition> {
    let providers = Provider::ALL.into_iter();
    let mut all: Vec<_> = providers.flat_map(Provider::definitions).collect();
    all.extend(crate::openstack::crd::all());
    all
}
