//! [`OpenStackFloatingIPPool`]: floating IPs for IPAddressClaims.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::infra::schema;
use crate::infra::v1beta2::{IdentityRef, NetworkParam, NetworkStatus};

/// Floating IPs that answer IPAddressClaims.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "infrastructure.cluster.x-k8s.io",
    version = "v1alpha1",
    kind = "OpenStackFloatingIPPool",
    plural = "openstackfloatingippools",
    status = "OpenStackFloatingIPPoolStatus",
    derive = "PartialEq",
    namespaced,
    doc = "Floating IPs that answer IPAddressClaims.",
    printcolumn(
        name = "Network",
        type_ = "string",
        json_path = ".status.floatingIPNetwork.name"
    ),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct OpenStackFloatingIPPoolSpec {
    /// The addresses of floating IPs that are there already. They are given out before others are allocated, and never
    /// deleted.
    #[serde(
        rename = "preAllocatedFloatingIPs",
        default,
        skip_serializing_if = "Vec::is_empty"
    )]
    pub pre_allocated_floating_ips: Vec<String>,
    /// Maximum number of addresses; no limit when absent.
    #[serde(rename = "maxIPs", default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::integer")]
    pub max_ips: Option<i64>,
    /// The credentials.
    pub identity_ref: IdentityRef,
    /// The external network of the addresses; the only one when absent.
    #[serde(rename = "floatingIPNetwork", skip_serializing_if = "Option::is_none")]
    pub floating_ip_network: Option<NetworkParam>,
    /// Fate of an address that is given back.
    pub reclaim_policy: ReclaimPolicy,
}

/// Fate of an address that is given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ReclaimPolicy {
    /// The floating IP serves a later claim, and is deleted with the pool.
    Retain,
    /// The floating IP is deleted, unless older than the pool.
    Delete,
}

/// The addresses of a pool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OpenStackFloatingIPPoolStatus {
    /// The addresses that have been given out.
    #[serde(rename = "claimedIPs", default)]
    pub claimed_ips: Vec<String>,
    /// The addresses that are there and wait for a claim.
    #[serde(rename = "availableIPs", default)]
    pub available_ips: Vec<String>,
    /// The addresses of the spec that cannot be given out.
    #[serde(rename = "failedIPs", default, skip_serializing_if = "Vec::is_empty")]
    pub failed_ips: Vec<String>,
    /// The external network of the addresses.
    #[serde(rename = "floatingIPNetwork", skip_serializing_if = "Option::is_none")]
    pub floating_ip_network: Option<NetworkStatus>,
    /// The conditions of the object.
    #[schemars(schema_with = "schema::conditions")]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}
