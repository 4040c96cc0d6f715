//! v1alpha1, the only version of [`OpenStackClusterIdentity`], [`OpenStackFloatingIPPool`] and [`OpenStackServer`].

mod pool;
mod server;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use pool::{
    OpenStackFloatingIPPool, OpenStackFloatingIPPoolSpec, OpenStackFloatingIPPoolStatus,
    ReclaimPolicy,
};
pub use server::{OpenStackServer, OpenStackServerSpec, OpenStackServerStatus, UserDataRef};

/// Credentials that objects of several namespaces may use.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "infrastructure.cluster.x-k8s.io",
    version = "v1alpha1",
    kind = "OpenStackClusterIdentity",
    plural = "openstackclusteridentities",
    shortname = "osci",
    category = "cluster-api",
    derive = "PartialEq",
    doc = "Credentials that objects of several namespaces may use."
)]
#[serde(rename_all = "camelCase")]
pub struct OpenStackClusterIdentitySpec {
    /// The Secret with the credentials, in the keys `clouds.yaml` and `cacert`.
    pub secret_ref: SecretRef,
    /// The namespaces whose objects may use it; all when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    #[schemars(with = "Option<crate::shape::LabelSelector>")]
    pub namespace_selector: Option<LabelSelector>,
}

/// Secret in any namespace ([`OpenStackClusterIdentitySpec::secret_ref`]).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SecretRef {
    /// Name of the Secret.
    pub name: String,
    /// Namespace.
    pub namespace: String,
}
