//! `ipam.cluster.x-k8s.io/v1beta2`, the stored version.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::core::v1beta2::Deprecated;

/// The `apiVersion` of the objects in this module.
pub const API_VERSION: &str = "ipam.cluster.x-k8s.io/v1beta2";

/// From which pool an address is requested.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[kube(
    group = "ipam.cluster.x-k8s.io",
    version = "v1beta2",
    kind = "IPAddressClaim",
    plural = "ipaddressclaims",
    doc = "A request for an address of a pool, which the provider of the pool answers with an IPAddress.",
    namespaced,
    status = "IPAddressClaimStatus",
    derive = "PartialEq",
    derive = "Default",
    category = "cluster-api",
    label("cluster.x-k8s.io/provider", "cluster-api"),
    label("cluster.x-k8s.io/v1beta1", "v1beta1"),
    label("cluster.x-k8s.io/v1beta2", "v1beta2"),
    printcolumn(name = "Pool Name", type_ = "string", json_path = ".spec.poolRef.name"),
    printcolumn(name = "Pool Kind", type_ = "string", json_path = ".spec.poolRef.kind"),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
pub struct IPAddressClaimSpec {
    /// The Cluster for which the address is.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub cluster_name: Option<String>,
    /// The pool.
    pub pool_ref: PoolReference,
}

/// Pool of addresses in the same namespace ([`IPAddressClaimSpec::pool_ref`]).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PoolReference {
    /// The API group of the pool.
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
    )]
    pub api_group: String,
    /// The kind of the pool.
    #[schemars(
        length(min = 1, max = 63),
        regex(pattern = r"^[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?$")
    )]
    pub kind: String,
    /// The name of the pool.
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
    )]
    pub name: String,
}

/// Object of this group in the same namespace ([`IPAddressSpec::claim_ref`]).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LocalReference {
    /// Name of the object.
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
    )]
    pub name: String,
}

/// The answer to a claim.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct IPAddressClaimStatus {
    /// Observations, one per type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    #[schemars(with = "Vec<crate::shape::Condition>")]
    pub conditions: Vec<Condition>,
    /// The IPAddress that was created for the claim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address_ref: Option<LocalReference>,
    /// Fields of former versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<Deprecated>,
}

/// An address of a pool.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[kube(
    group = "ipam.cluster.x-k8s.io",
    version = "v1beta2",
    kind = "IPAddress",
    plural = "ipaddresses",
    doc = "An address that the provider of a pool has allocated for an IPAddressClaim.",
    namespaced,
    derive = "PartialEq",
    derive = "Default",
    category = "cluster-api",
    label("cluster.x-k8s.io/provider", "cluster-api"),
    label("cluster.x-k8s.io/v1beta1", "v1beta1"),
    label("cluster.x-k8s.io/v1beta2", "v1beta2"),
    printcolumn(name = "Address", type_ = "string", json_path = ".spec.address"),
    printcolumn(name = "Pool Name", type_ = "string", json_path = ".spec.poolRef.name"),
    printcolumn(name = "Pool Kind", type_ = "string", json_path = ".spec.poolRef.kind"),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
pub struct IPAddressSpec {
    /// The claim for which the address was allocated.
    pub claim_ref: LocalReference,
    /// The pool that the address is from.
    pub pool_ref: PoolReference,
    /// The address, of IPv4 or IPv6.
    #[schemars(length(min = 1, max = 39))]
    pub address: String,
    /// The length of the prefix of the network.
    #[schemars(range(min = 0, max = 128))]
    pub prefix: i32,
    /// The gateway of the network.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 39))]
    pub gateway: Option<String>,
}
