//! Ports of machines: [`PortOpts`] as specified, [`ResolvedPortSpec`] as resolved.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::given;
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
    #[serde(default, deserialize_with = "given::text")]
    pub description: Option<String>,
    /// The suffix of the port's name after the server's name; the port's index when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "given::text")]
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
    /// Creates a trunk on the port; the machine's setting when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trunk: Option<bool>,
    /// The fields without references.
    #[serde(flatten)]
    pub fields: ResolvedPortFields,
}

/// Fields of a port sent to Neutron without change ([`PortOpts::fields`]).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResolvedPortFields {
    /// Admin state of the port: up if true; true when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admin_state_up: Option<bool>,
    /// The MAC address.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "given::text")]
    pub mac_address: Option<String>,
    /// Further addresses that may send through this port.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed_address_pairs: Vec<AddressPair>,
    /// The host to bind to (admin only).
    #[serde(rename = "hostID")]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "given::text")]
    pub host_id: Option<String>,
    /// The kind of virtual NIC, such as `normal` or `direct`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "given::text")]
    pub vnic_type: Option<String>,
    /// The binding profile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<BindingProfile>,
    /// Enables port security; the network's setting when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enable_port_security: Option<bool>,
    /// Propagates the status of the uplink to the server; the cloud's default when absent.
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
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(!default, !skip_serializing_if)]
    pub ip_address: String,
    /// The MAC address; the port's when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "given::text")]
    pub mac_address: Option<String>,
}

/// Binding profile of a port ([`ResolvedPortFields::profile`]).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BindingProfile {
    /// Hardware offload by Open vSwitch.
    #[serde(rename = "ovsHWOffload")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ovs_hw_offload: Option<bool>,
    /// Trusts the virtual function; false when absent.
    #[serde(rename = "trustedVF")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trusted_vf: Option<bool>,
}

/// A vendor-specific member of a port; only key and value go to Neutron.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ValueSpec {
    /// The name of the entry, unique in its list; it is not sent to Neutron.
    #[schemars(length(min = 1))]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(!default, !skip_serializing_if)]
    pub name: String,
    /// The member's name.
    #[schemars(length(min = 1))]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(!default, !skip_serializing_if)]
    pub key: String,
    /// The member's value.
    #[schemars(length(min = 1))]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(!default, !skip_serializing_if)]
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
    #[serde(default, deserialize_with = "given::text")]
    pub ip_address: Option<String>,
}

/// A port with every reference resolved to an id.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResolvedPortSpec {
    /// The port's name.
    #[schemars(length(min = 1))]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(!default, !skip_serializing_if)]
    pub name: String,
    /// The port's description.
    #[serde(default)]
    #[schemars(extend("default" = null))]
    pub description: String,
    /// The network's id.
    #[serde(rename = "networkID")]
    #[schemars(length(min = 1))]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(!default, !skip_serializing_if)]
    pub network_id: String,
    /// Tags.
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// True if the port has a trunk.
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
    /// The fields without references.
    #[serde(flatten)]
    pub fields: ResolvedPortFields,
}

/// A fixed address with its subnet resolved.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResolvedFixedIp {
    /// The subnet's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "given::text")]
    pub subnet: Option<String>,
    /// The address.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "given::text")]
    pub ip_address: Option<String>,
}
