//! Requests to Neutron. Creates never contain tags: real clouds reject tags (networks) or drop them silently (ports),
//! so a separate call sets the tags.

use std::collections::BTreeMap;

use serde::Serialize;

use super::resource::{
    AddressPair, AllocationPool, BindingProfile, ExtraRoute, FixedIp, HostRoute, SubPort,
};

/// New network.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NetworkCreate {
    /// Name.
    pub name: String,
    /// Free text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Largest packet, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mtu: Option<i64>,
    /// Default port security of the ports on the network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port_security_enabled: Option<bool>,
}

/// Change of a network.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NetworkUpdate {
    /// Largest packet, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mtu: Option<i64>,
    /// Default port security of the ports on the network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port_security_enabled: Option<bool>,
    /// Administrative state: packets are forwarded if true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admin_state_up: Option<bool>,
}

/// New subnet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SubnetCreate {
    /// Name.
    pub name: String,
    /// Id of the network.
    pub network_id: String,
    /// Address range (CIDR); chosen from the subnet pool if empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cidr: String,
    /// 4 or 6.
    pub ip_version: u8,
    /// Subnet pool that the range is from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subnetpool_id: Option<String>,
    /// Prefix length of a range that Neutron chooses; the default of the subnet pool if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefixlen: Option<u8>,
    /// Free text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Name servers announced by DHCP.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dns_nameservers: Vec<String>,
    /// Ranges for allocating addresses.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allocation_pools: Vec<AllocationPool>,
    /// Routes announced by DHCP.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub host_routes: Vec<HostRoute>,
    /// Address of the gateway; the first of the range if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gateway_ip: Option<String>,
    /// Source of router advertisements in an IPv6 subnet: `slaac`, `dhcpv6-stateful`, `dhcpv6-stateless`; not Neutron
    /// if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ipv6_ra_mode: Option<String>,
    /// Source of addresses in an IPv6 subnet, with the same values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ipv6_address_mode: Option<String>,
}

/// Change of a subnet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SubnetUpdate {
    /// Name servers announced by DHCP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dns_nameservers: Option<Vec<String>>,
}

/// New port.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PortCreate {
    /// Name.
    pub name: String,
    /// Id of the network.
    pub network_id: String,
    /// Free text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Requested addresses or subnets.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fixed_ips: Vec<FixedIp>,
    /// Requested MAC address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mac_address: Option<String>,
    /// Ids of security groups; the project's default group if absent, none if empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub security_groups: Option<Vec<String>>,
    /// Other addresses that the port may send from.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_address_pairs: Vec<AddressPair>,
    /// Administrative state: up if true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admin_state_up: Option<bool>,
    /// Port security: security groups and anti-spoofing apply if true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port_security_enabled: Option<bool>,
    /// Propagation of the state of the uplink to the guest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub propagate_uplink_status: Option<bool>,
    /// `normal`, `direct`, ...
    #[serde(rename = "binding:vnic_type", skip_serializing_if = "Option::is_none")]
    pub vnic_type: Option<String>,
    /// Host to bind to; operators only.
    #[serde(rename = "binding:host_id", skip_serializing_if = "Option::is_none")]
    pub host_id: Option<String>,
    /// Details for the driver; operators only.
    #[serde(
        rename = "binding:profile",
        skip_serializing_if = "BindingProfile::is_empty"
    )]
    pub profile: BindingProfile,
    /// Trust in the virtual function (extension `port-trusted-vif`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trusted: Option<bool>,
    /// QoS policy by id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub qos_policy_id: Option<String>,
    /// Id of the owning device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_id: Option<String>,
    /// Attributes of extensions without a field here, by name.
    #[serde(flatten)]
    pub others: BTreeMap<String, String>,
}

/// Change of a port.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PortUpdate {
    /// Name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Free text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Ids of the security groups.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub security_groups: Option<Vec<String>>,
    /// Other addresses that the port may send from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_address_pairs: Option<Vec<AddressPair>>,
    /// Addresses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fixed_ips: Option<Vec<FixedIp>>,
    /// Off if false: the port passes nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admin_state_up: Option<bool>,
    /// Port security: security groups and anti-spoofing apply if true. Off, a port has neither groups nor address pairs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port_security_enabled: Option<bool>,
}

/// New router.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RouterCreate {
    /// Name.
    pub name: String,
    /// Free text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// External gateway.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external_gateway_info: Option<ExternalGateway>,
}

/// Change of a router.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RouterUpdate {
    /// External gateway.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external_gateway_info: Option<ExternalGateway>,
    /// All extra routes, besides the ones of the router's subnets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub routes: Option<Vec<ExtraRoute>>,
    /// Administrative state: packets are forwarded if true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admin_state_up: Option<bool>,
}

/// Requested external gateway.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ExternalGateway {
    /// External network.
    pub network_id: String,
    /// Requested addresses or subnets on the external network.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub external_fixed_ips: Vec<FixedIp>,
}

/// New security group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SecurityGroupCreate {
    /// Name.
    pub name: String,
    /// Free text.
    pub description: String,
    /// Stateful: replies are allowed implicitly if true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stateful: Option<bool>,
}

/// Change of a security group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SecurityGroupUpdate {
    /// Name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Free text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// New rule of a security group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RuleCreate {
    /// Id of the security group.
    pub security_group_id: String,
    /// `ingress` or `egress`.
    pub direction: String,
    /// `IPv4` or `IPv6`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ethertype: Option<String>,
    /// `tcp`, `udp`, `icmp`, a number; any if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// First port, or the ICMP type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port_range_min: Option<i64>,
    /// Last port, or the ICMP code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port_range_max: Option<i64>,
    /// Remote side as a range.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remote_ip_prefix: Option<String>,
    /// Remote side as a group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remote_group_id: Option<String>,
    /// Free text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// New floating IP.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FloatingIpCreate {
    /// External network of the address.
    pub floating_network_id: String,
    /// Port to associate at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port_id: Option<String>,
    /// Address of the port, if several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fixed_ip_address: Option<String>,
    /// Subnet of the external network for the address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subnet_id: Option<String>,
    /// Specific address; operators only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub floating_ip_address: Option<String>,
    /// Free text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// Change of a floating IP.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FloatingIpUpdate {
    /// Port to associate; `None` ends the association.
    pub port_id: Option<String>,
    /// Address of the port, if several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fixed_ip_address: Option<String>,
}

/// New trunk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TrunkCreate {
    /// Name.
    pub name: String,
    /// Parent port.
    pub port_id: String,
    /// Free text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Subports.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sub_ports: Vec<SubPort>,
}
