//! The CustomResourceDefinitions of the group.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;

use super::v1beta2;

/// The CustomResourceDefinitions of KubeadmControlPlane and KubeadmControlPlaneTemplate.
pub fn all() -> Vec<CustomResourceDefinition> {
    vec![
        v1beta2::KubeadmControlPlane::crd(),
        v1beta2::KubeadmControlPlaneTemplate::crd(),
    ]
}
