//! All our CustomResourceDefinitions.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

/// Every CustomResourceDefinition of the suite, in the order for `kubectl apply`.
pub fn all() -> Vec<CustomResourceDefinition> {
    let mut all = Vec::new();
    all.extend(crate::core::crd::all());
    all.extend(crate::addons::crd::all());
    all.extend(crate::ipam::crd::all());
    all.extend(crate::bootstrap::crd::all());
    all.extend(crate::controlplane::crd::all());
    all.extend(crate::infra::crd::crds());
    all.extend(crate::openstack::crd::all());
    all
}
