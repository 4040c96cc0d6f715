//! Resources of Neutron. A list request asks for exactly the fields below.

use std::collections::BTreeMap;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// Network.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Network {
    /// Id.
    pub id: String,
    /// Name; not unique.
    pub name: String,
    /// `ACTIVE`, `DOWN`, `BUILD` or `ERROR`.
    pub status: String,
    /// True for an external network.
    #[serde(rename = "router:external")]
    pub external: bool,
    /// True if the network is visible to all projects.
    pub shared: bool,
    /// Largest packet, in bytes.
    pub mtu: i64,
    /// Ids of the subnets.
    pub subnets: Vec<String>,
    /// Default port security of the ports on the network.
    pub port_security_enabled: Option<bool>,
    /// False if an administrator or user has switched the network off.
    pub admin_state_up: Option<bool>,
    /// Tags.
    pub tags: Vec<String>,
    /// Free text.
    pub description: String,
    /// Id of the owning project.
    pub project_id: String,
}

impl Network {
    pub(super) const FIELDS: &[&str] = &[
        "id",
        "name",
        "status",
        "router:external",
        "shared",
        "mtu",
        "subnets",
        "port_security_enabled",
        "admin_state_up",
        "tags",
        "description",
        "project_id",
    ];
}

/// Subnet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Subnet {
    /// Id.
    pub id: String,
    /// Name; not unique.
    pub name: String,
    /// Id of the network.
    pub network_id: String,
    /// Address range, for example `10.6.0.0/24`.
    pub cidr: String,
    /// 4 or 6.
    pub ip_version: u8,
    /// Address of the gateway.
    pub gateway_ip: Option<String>,
    /// Name servers announced by DHCP.
    pub dns_nameservers: Vec<String>,
    /// Ranges for allocating addresses.
    pub allocation_pools: Vec<AllocationPool>,
    /// Routes announced by DHCP.
    pub host_routes: Vec<HostRoute>,
    /// True if DHCP is on.
    pub enable_dhcp: bool,
    /// Subnet pool of the range, if it is from one.
    pub subnetpool_id: Option<String>,
    /// Tags.
    pub tags: Vec<String>,
    /// Free text.
    pub description: String,
    /// Id of the owning project.
    pub project_id: String,
}

impl Subnet {
    pub(super) const FIELDS: &[&str] = &[
        "id",
        "name",
        "network_id",
        "cidr",
        "ip_version",
        "gateway_ip",
        "dns_nameservers",
        "allocation_pools",
        "host_routes",
        "enable_dhcp",
        "subnetpool_id",
        "tags",
        "description",
        "project_id",
    ];
}

/// Subnet pool: prefixes out of which subnets get theirs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SubnetPool {
    /// Id.
    pub id: String,
    /// Name; not unique.
    pub name: String,
    /// 4 or 6.
    pub ip_version: u8,
    /// Prefixes (CIDR).
    pub prefixes: Vec<String>,
    /// Prefix length of a subnet that asks for none.
    #[serde(deserialize_with = "length")]
    pub default_prefixlen: u8,
    /// Prefix length of the largest subnet.
    #[serde(deserialize_with = "length")]
    pub min_prefixlen: u8,
    /// Prefix length of the smallest subnet.
    #[serde(deserialize_with = "length")]
    pub max_prefixlen: u8,
    /// True if the pool is visible to all projects.
    pub shared: bool,
    /// Tags.
    pub tags: Vec<String>,
    /// Free text.
    pub description: String,
    /// Id of the owning project.
    pub project_id: String,
}

impl SubnetPool {
    pub(super) const FIELDS: &[&str] = &[
        "id",
        "name",
        "ip_version",
        "prefixes",
        "default_prefixlen",
        "min_prefixlen",
        "max_prefixlen",
        "shared",
        "tags",
        "description",
        "project_id",
    ];
}

/// A prefix length, which Neutron answers as a text, and as a number after a change.
fn length<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u8, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Length {
        Number(u8),
        Text(String),
    }
    match Length::deserialize(deserializer)? {
        Length::Number(number) => Ok(number),
        Length::Text(text) => text.parse().map_err(D::Error::custom),
    }
}

/// Range of addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AllocationPool {
    /// First address.
    pub start: String,
    /// Last address.
    pub end: String,
}

/// Route announced by DHCP.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostRoute {
    /// Destination range.
    pub destination: String,
    /// Next hop.
    pub nexthop: String,
}

/// Port.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Port {
    /// Id.
    pub id: String,
    /// Name; not unique.
    pub name: String,
    /// Id of the network.
    pub network_id: String,
    /// `ACTIVE`, `DOWN`, `BUILD` or `N/A`.
    pub status: String,
    /// Id of the owning device: a server, a router, ...
    pub device_id: String,
    /// Type of the device, for example `compute:nova` or `network:router_interface`.
    pub device_owner: String,
    /// Addresses.
    pub fixed_ips: Vec<FixedIp>,
    /// MAC address.
    pub mac_address: String,
    /// Ids of the security groups.
    pub security_groups: Vec<String>,
    /// Other addresses that the port may send from.
    pub allowed_address_pairs: Vec<AddressPair>,
    /// Port security: security groups and anti-spoofing apply if true.
    pub port_security_enabled: Option<bool>,
    /// Off if false: the port passes nothing.
    pub admin_state_up: Option<bool>,
    /// `normal`, `direct`, ...
    #[serde(rename = "binding:vnic_type")]
    pub vnic_type: String,
    /// Tags.
    pub tags: Vec<String>,
    /// Free text.
    pub description: String,
    /// Id of the owning project.
    pub project_id: String,
}

impl Port {
    pub(super) const FIELDS: &[&str] = &[
        "id",
        "name",
        "network_id",
        "status",
        "device_id",
        "device_owner",
        "fixed_ips",
        "mac_address",
        "security_groups",
        "allowed_address_pairs",
        "port_security_enabled",
        "admin_state_up",
        "binding:vnic_type",
        "tags",
        "description",
        "project_id",
    ];
}

/// Address of a port; in a request, either field may be omitted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FixedIp {
    /// Subnet.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub subnet_id: String,
    /// Address.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ip_address: String,
}

/// Another address that a port may send from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AddressPair {
    /// Address or range.
    pub ip_address: String,
    /// MAC address; the port's own if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mac_address: Option<String>,
}

/// Router.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Router {
    /// Id.
    pub id: String,
    /// Name; not unique.
    pub name: String,
    /// `ACTIVE`, `ALLOCATING` or `ERROR`.
    pub status: String,
    /// External gateway.
    pub external_gateway_info: Option<RouterGateway>,
    /// Extra routes, besides the ones of the router's subnets (extension `extraroute`).
    pub routes: Vec<ExtraRoute>,
    /// False if an administrator or user has switched the router off.
    pub admin_state_up: Option<bool>,
    /// Tags.
    pub tags: Vec<String>,
    /// Free text.
    pub description: String,
    /// Id of the owning project.
    pub project_id: String,
}

impl Router {
    pub(super) const FIELDS: &[&str] = &[
        "id",
        "name",
        "status",
        "external_gateway_info",
        "routes",
        "admin_state_up",
        "tags",
        "description",
        "project_id",
    ];
}

/// Route of a router.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExtraRoute {
    /// Range of addresses.
    pub destination: String,
    /// Address of the next hop.
    pub nexthop: String,
}

/// External gateway of a router.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RouterGateway {
    /// External network.
    pub network_id: String,
    /// Addresses on the external network.
    pub external_fixed_ips: Vec<FixedIp>,
}

/// Security group with its rules.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SecurityGroup {
    /// Id.
    pub id: String,
    /// Name; not unique.
    pub name: String,
    /// Rules. Neutron adds two to a new group: all egress over IPv4 and IPv6.
    #[serde(rename = "security_group_rules")]
    pub rules: Vec<SecurityGroupRule>,
    /// Stateful: replies are allowed implicitly if true.
    pub stateful: Option<bool>,
    /// Tags.
    pub tags: Vec<String>,
    /// Free text.
    pub description: String,
    /// Id of the owning project.
    pub project_id: String,
}

impl SecurityGroup {
    pub(super) const FIELDS: &[&str] = &[
        "id",
        "name",
        "security_group_rules",
        "stateful",
        "tags",
        "description",
        "project_id",
    ];
}

/// Rule of a security group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SecurityGroupRule {
    /// Id.
    pub id: String,
    /// Id of the security group.
    pub security_group_id: String,
    /// `ingress` or `egress`.
    pub direction: String,
    /// `IPv4` or `IPv6`.
    pub ethertype: String,
    /// `tcp`, `udp`, `icmp`, a number, or any.
    pub protocol: Option<String>,
    /// First port, or the ICMP type.
    pub port_range_min: Option<i64>,
    /// Last port, or the ICMP code.
    pub port_range_max: Option<i64>,
    /// Remote side as a range.
    pub remote_ip_prefix: Option<String>,
    /// Remote side as a group.
    pub remote_group_id: Option<String>,
    /// Remote side as a group of addresses.
    pub remote_address_group_id: Option<String>,
    /// Free text.
    pub description: String,
}

/// Floating IP.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FloatingIp {
    /// Id.
    pub id: String,
    /// Address.
    pub floating_ip_address: String,
    /// External network of the address.
    pub floating_network_id: String,
    /// Associated port.
    pub port_id: Option<String>,
    /// Address of the associated port.
    pub fixed_ip_address: Option<String>,
    /// Router that translates the address.
    pub router_id: Option<String>,
    /// `ACTIVE`, `DOWN` or `ERROR`.
    pub status: String,
    /// Tags.
    pub tags: Vec<String>,
    /// Free text.
    pub description: String,
    /// Id of the owning project.
    pub project_id: String,
}

impl FloatingIp {
    pub(super) const FIELDS: &[&str] = &[
        "id",
        "floating_ip_address",
        "floating_network_id",
        "port_id",
        "fixed_ip_address",
        "router_id",
        "status",
        "tags",
        "description",
        "project_id",
    ];
}

/// Trunk: a port that carries other ports as VLANs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Trunk {
    /// Id.
    pub id: String,
    /// Name; not unique.
    pub name: String,
    /// Parent port.
    pub port_id: String,
    /// `ACTIVE`, `DOWN`, `BUILD`, `DEGRADED` or `ERROR`.
    pub status: String,
    /// Subports.
    pub sub_ports: Vec<SubPort>,
    /// Tags.
    pub tags: Vec<String>,
    /// Free text.
    pub description: String,
    /// Id of the owning project.
    pub project_id: String,
}

/// Subport of a trunk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SubPort {
    /// Port.
    pub port_id: String,
    /// `vlan` or `inherit`.
    pub segmentation_type: String,
    /// VLAN.
    pub segmentation_id: i64,
}

/// API extension of the cloud's Neutron.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Extension {
    /// Identifier, for example `standard-attr-tag`.
    pub alias: String,
    /// Name for people.
    pub name: String,
}

/// Quota of one resource; negative for no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NetworkQuota {
    /// Maximum.
    pub limit: i64,
    /// Number of existing objects.
    pub used: i64,
    /// Number of objects under creation.
    pub reserved: i64,
}

/// Quotas by resource (`port`, `network`, `security_group_rule`, ...).
pub(super) type NetworkQuotas = BTreeMap<String, NetworkQuota>;

/// `binding:profile` of a port.
pub(super) type BindingProfile = Map<String, Value>;
