//! Resources of Neutron. The lists of fields below are those that lists request.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A network.
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
    /// Ids of its subnets.
    pub subnets: Vec<String>,
    /// Default of its ports.
    pub port_security_enabled: Option<bool>,
    /// False if an administrator or user has switched it off.
    pub admin_state_up: Option<bool>,
    /// Tags.
    pub tags: Vec<String>,
    /// Free text.
    pub description: String,
    /// Project that owns it.
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

/// A subnet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Subnet {
    /// Id.
    pub id: String,
    /// Name; not unique.
    pub name: String,
    /// Network it belongs to.
    pub network_id: String,
    /// Its range, for example `10.6.0.0/24`.
    pub cidr: String,
    /// 4 or 6.
    pub ip_version: u8,
    /// Address of the gateway.
    pub gateway_ip: Option<String>,
    /// Name servers that DHCP announces.
    pub dns_nameservers: Vec<String>,
    /// Ranges from which addresses are allocated.
    pub allocation_pools: Vec<AllocationPool>,
    /// Routes that DHCP announces.
    pub host_routes: Vec<HostRoute>,
    /// True if DHCP is on.
    pub enable_dhcp: bool,
    /// Tags.
    pub tags: Vec<String>,
    /// Free text.
    pub description: String,
    /// Project that owns it.
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
        "tags",
        "description",
        "project_id",
    ];
}

/// A range of addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AllocationPool {
    /// First address.
    pub start: String,
    /// Last address.
    pub end: String,
}

/// A route that DHCP announces.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostRoute {
    /// Destination range.
    pub destination: String,
    /// Next hop.
    pub nexthop: String,
}

/// A port.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Port {
    /// Id.
    pub id: String,
    /// Name; not unique.
    pub name: String,
    /// Network it is on.
    pub network_id: String,
    /// `ACTIVE`, `DOWN`, `BUILD` or `N/A`.
    pub status: String,
    /// Id of the device that it belongs to: a server, a router, ...
    pub device_id: String,
    /// Type of the device, for example `compute:nova` or `network:router_interface`.
    pub device_owner: String,
    /// Its addresses.
    pub fixed_ips: Vec<FixedIp>,
    /// MAC address.
    pub mac_address: String,
    /// Ids of its security groups.
    pub security_groups: Vec<String>,
    /// Other addresses it may send from.
    pub allowed_address_pairs: Vec<AddressPair>,
    /// Port security: security groups and anti-spoofing apply if true.
    pub port_security_enabled: Option<bool>,
    /// `normal`, `direct`, ...
    #[serde(rename = "binding:vnic_type")]
    pub vnic_type: String,
    /// Tags.
    pub tags: Vec<String>,
    /// Free text.
    pub description: String,
    /// Project that owns it.
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
        "binding:vnic_type",
        "tags",
        "description",
        "project_id",
    ];
}

/// An address of a port; in a request, either field may be omitted.
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
    /// MAC address; that of the port if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mac_address: Option<String>,
}

/// A router.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Router {
    /// Id.
    pub id: String,
    /// Name; not unique.
    pub name: String,
    /// `ACTIVE`, `ALLOCATING` or `ERROR`.
    pub status: String,
    /// Its external gateway.
    pub external_gateway_info: Option<RouterGateway>,
    /// Its routes besides those of its subnets (extension `extraroute`).
    pub routes: Vec<ExtraRoute>,
    /// False if an administrator or user has switched it off.
    pub admin_state_up: Option<bool>,
    /// Tags.
    pub tags: Vec<String>,
    /// Free text.
    pub description: String,
    /// Project that owns it.
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

/// A route of a router.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExtraRoute {
    /// Range of addresses.
    pub destination: String,
    /// Address to which packets to that range are sent.
    pub nexthop: String,
}

/// The external gateway of a router.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RouterGateway {
    /// External network.
    pub network_id: String,
    /// Addresses on it.
    pub external_fixed_ips: Vec<FixedIp>,
}

/// A security group with its rules.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SecurityGroup {
    /// Id.
    pub id: String,
    /// Name; not unique.
    pub name: String,
    /// Its rules. Neutron adds two to a new group: all egress over IPv4 and IPv6.
    #[serde(rename = "security_group_rules")]
    pub rules: Vec<SecurityGroupRule>,
    /// Stateful: replies are allowed implicitly if true.
    pub stateful: Option<bool>,
    /// Tags.
    pub tags: Vec<String>,
    /// Free text.
    pub description: String,
    /// Project that owns it.
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

/// A rule of a security group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SecurityGroupRule {
    /// Id.
    pub id: String,
    /// Group it belongs to.
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
    /// The remote side as a range.
    pub remote_ip_prefix: Option<String>,
    /// The remote side as a group.
    pub remote_group_id: Option<String>,
    /// The remote side as a group of addresses.
    pub remote_address_group_id: Option<String>,
    /// Free text.
    pub description: String,
}

/// A floating IP.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FloatingIp {
    /// Id.
    pub id: String,
    /// The address.
    pub floating_ip_address: String,
    /// External network of the address.
    pub floating_network_id: String,
    /// Port that it is associated with.
    pub port_id: Option<String>,
    /// Address of that port.
    pub fixed_ip_address: Option<String>,
    /// Router that translates the address.
    pub router_id: Option<String>,
    /// `ACTIVE`, `DOWN` or `ERROR`.
    pub status: String,
    /// Tags.
    pub tags: Vec<String>,
    /// Free text.
    pub description: String,
    /// Project that owns it.
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

/// A trunk: a port that carries other ports as VLANs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Trunk {
    /// Id.
    pub id: String,
    /// Name; not unique.
    pub name: String,
    /// Its parent port.
    pub port_id: String,
    /// `ACTIVE`, `DOWN`, `BUILD`, `DEGRADED` or `ERROR`.
    pub status: String,
    /// Its subports.
    pub sub_ports: Vec<SubPort>,
    /// Tags.
    pub tags: Vec<String>,
    /// Free text.
    pub description: String,
    /// Project that owns it.
    pub project_id: String,
}

/// A subport of a trunk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SubPort {
    /// The port.
    pub port_id: String,
    /// `vlan` or `inherit`.
    pub segmentation_type: String,
    /// VLAN.
    pub segmentation_id: i64,
}

/// An API extension of the cloud's Neutron.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Extension {
    /// The identifier, for example `standard-attr-tag`.
    pub alias: String,
    /// For people.
    pub name: String,
}

/// Quota of one resource; negative for no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NetworkQuota {
    /// The maximum.
    pub limit: i64,
    /// The number of existing objects.
    pub used: i64,
    /// The number of objects that are being created.
    pub reserved: i64,
}

/// Quotas by resource (`port`, `network`, `security_group_rule`, ...).
pub(super) type NetworkQuotas = BTreeMap<String, NetworkQuota>;

/// `binding:profile` of a port.
pub(super) type BindingProfile = Map<String, Value>;
