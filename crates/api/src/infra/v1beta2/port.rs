//! Ports of machines: as asked for, and as resolved.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::params::{NetworkParam, SecurityGroupParam, SubnetParam};

/// A port of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PortOpts {
    /// The network; without it that of the first fixed IP's subnet, or the cluster's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkParam>,
    /// The port's description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What follows the server's name in the port's name; its index when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name_suffix: Option<String>,
    /// Fixed addresses.
    #[serde(rename = "fixedIPs")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fixed_ips: Vec<FixedIp>,
    /// Security groups; without any those of the machine's role.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub security_groups: Vec<SecurityGroupParam>,
    /// Tags, added to those of the machine and the cluster.
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Whether a trunk is made on the port; as the machine says when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trunk: Option<bool>,
    /// The members that need no resolving.
    #[serde(flatten)]
    pub fields: ResolvedPortFields,
}

/// The members of a port that go to Neutron as they are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResolvedPortFields {
    /// Whether the port is up; up when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admin_state_up: Option<bool>,
    /// The MAC address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mac_address: Option<String>,
    /// Further addresses that may send through this port.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed_address_pairs: Vec<AddressPair>,
    /// The host to bind to (admin only).
    #[serde(rename = "hostID")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_id: Option<String>,
    /// The kind of virtual NIC, such as `normal` or `direct`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vnic_type: Option<String>,
    /// What the binding needs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<BindingProfile>,
    /// Whether port security is on; as the network says when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enable_port_security: Option<bool>,
    /// Whether the uplink's status is shown to the guest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub propagate_uplink_status: Option<bool>,
    /// Vendor-specific members of the port.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub value_specs: Vec<ValueSpec>,
}

/// An address, or a CIDR, that may send through a port.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AddressPair {
    /// The address or CIDR.
    #[serde(rename = "ipAddress")]
    #[schemars(length(min = 1))]
    pub ip_address: String,
    /// The MAC address; the port's own when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mac_address: Option<String>,
}

/// What the binding of a port needs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BindingProfile {
    /// Hardware offload by Open vSwitch.
    #[serde(rename = "ovsHWOffload")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ovs_hw_offload: Option<bool>,
    /// Whether the virtual function is trusted.
    #[serde(rename = "trustedVF")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trusted_vf: Option<bool>,
}

/// A vendor-specific member of a port; only key and value go to Neutron.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ValueSpec {
    /// Tells the entries apart.
    #[schemars(length(min = 1))]
    pub name: String,
    /// The member's name.
    #[schemars(length(min = 1))]
    pub key: String,
    /// The member's value.
    #[schemars(length(min = 1))]
    pub value: String,
}

/// A fixed address of a port.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FixedIp {
    /// The subnet to take it from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subnet: Option<SubnetParam>,
    /// The address; any of the subnet when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ip_address: Option<String>,
}

/// A port with every reference resolved to an id.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResolvedPortSpec {
    /// The port's name.
    #[schemars(length(min = 1))]
    pub name: String,
    /// The port's description.
    #[serde(default)]
    #[schemars(extend("default" = null))]
    pub description: String,
    /// The network's id.
    #[serde(rename = "networkID")]
    #[schemars(length(min = 1))]
    pub network_id: String,
    /// Tags.
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Whether a trunk is made on the port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trunk: Option<bool>,
    /// Fixed addresses.
    #[serde(rename = "fixedIPs")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fixed_ips: Vec<ResolvedFixedIp>,
    /// The ids of the security groups.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub security_groups: Vec<String>,
    /// The members that needed no resolving.
    #[serde(flatten)]
    pub fields: ResolvedPortFields,
}

/// A fixed address with its subnet resolved.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResolvedFixedIp {
    /// The subnet's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subnet: Option<String>,
    /// The address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ip_address: Option<String>,
}
