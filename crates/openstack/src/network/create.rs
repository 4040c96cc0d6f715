//! Requests to Neutron. Creates never contain tags: real clouds reject them (networks) or drop them silently (ports),
//! so they are set by a separate call.

use std::collections::BTreeMap;

use serde::Serialize;

use super::resource::{
    AddressPair, AllocationPool, BindingProfile, ExtraRoute, FixedIp, HostRoute, SubPort,
};

/// A new network.
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
    /// Default of its ports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port_security_enabled: Option<bool>,
}

/// A change of a network.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NetworkUpdate {
    /// Largest packet, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mtu: Option<i64>,
    /// Default of its ports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port_security_enabled: Option<bool>,
    /// True if it forwards packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admin_state_up: Option<bool>,
}

/// A new subnet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SubnetCreate {
    /// Name.
    pub name: String,
    /// Network it belongs to.
    pub network_id: String,
    /// Its range.
    pub cidr: String,
    /// 4 or 6.
    pub ip_version: u8,
    /// Free text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Name servers that DHCP announces.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dns_nameservers: Vec<String>,
    /// Ranges from which addresses are allocated.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allocation_pools: Vec<AllocationPool>,
    /// Routes that DHCP announces.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub host_routes: Vec<HostRoute>,
    /// Address of the gateway; the first of the range if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gateway_ip: Option<String>,
    /// Who announces the router of an IPv6 subnet: `slaac`, `dhcpv6-stateful`, `dhcpv6-stateless`; not Neutron if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ipv6_ra_mode: Option<String>,
    /// Who gives out the addresses of an IPv6 subnet, with the same words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ipv6_address_mode: Option<String>,
}

/// A change of a subnet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SubnetUpdate {
    /// Name servers that DHCP gives out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dns_nameservers: Option<Vec<String>>,
}

/// A new port.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PortCreate {
    /// Name.
    pub name: String,
    /// Network it is on.
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
    /// Ids of its security groups; the project's default group if absent, none if empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub security_groups: Option<Vec<String>>,
    /// Other addresses it may send from.
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
    /// Id of the device that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_id: Option<String>,
    /// Attributes of extensions that have no field here, by name.
    #[serde(flatten)]
    pub others: BTreeMap<String, String>,
}

/// A change of a port.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PortUpdate {
    /// Name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Free text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Ids of its security groups.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub security_groups: Option<Vec<String>>,
    /// Other addresses it may send from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_address_pairs: Option<Vec<AddressPair>>,
    /// Its addresses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fixed_ips: Option<Vec<FixedIp>>,
}

/// A new router.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RouterCreate {
    /// Name.
    pub name: String,
    /// Free text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its external gateway.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external_gateway_info: Option<ExternalGateway>,
}

/// A change of a router.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RouterUpdate {
    /// Its external gateway.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external_gateway_info: Option<ExternalGateway>,
    /// All its routes besides those of its subnets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub routes: Option<Vec<ExtraRoute>>,
    /// True if it forwards packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admin_state_up: Option<bool>,
}

/// A requested external gateway.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ExternalGateway {
    /// External network.
    pub network_id: String,
    /// Requested addresses or subnets on it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub external_fixed_ips: Vec<FixedIp>,
}

/// A new security group.
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

/// A change of a security group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SecurityGroupUpdate {
    /// Name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Free text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// A new rule of a security group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RuleCreate {
    /// Group it belongs to.
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
    /// The remote side as a range.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remote_ip_prefix: Option<String>,
    /// The remote side as a group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remote_group_id: Option<String>,
    /// Free text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// A new floating IP.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FloatingIpCreate {
    /// External network of the address.
    pub floating_network_id: String,
    /// Port to associate it with at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port_id: Option<String>,
    /// Address of that port, if it has several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fixed_ip_address: Option<String>,
    /// Subnet of that network from which the address is allocated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subnet_id: Option<String>,
    /// A specific address; operators only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub floating_ip_address: Option<String>,
    /// Free text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// A change of a floating IP.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FloatingIpUpdate {
    /// Port to associate it with; `None` disassociates it.
    pub port_id: Option<String>,
    /// Address of that port, if it has several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fixed_ip_address: Option<String>,
}

/// A new trunk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TrunkCreate {
    /// Name.
    pub name: String,
    /// Its parent port.
    pub port_id: String,
    /// Free text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its subports.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sub_ports: Vec<SubPort>,
}
