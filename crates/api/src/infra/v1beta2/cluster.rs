//! [`OpenStackCluster`]: network, security groups and API endpoint of one Cluster.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::balancer::{LoadBalancer, LoadBalancerStatus};
use super::given;
use super::machine::{Initialization, MachineResources, OpenStackMachineSpec, ResolvedMachine};
use super::params::{IdentityRef, NetworkParam, RouterParam, SubnetParam, SubnetPoolParam};
use crate::infra::schema;

/// Network, security groups and API endpoint of one Cluster.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "infrastructure.cluster.x-k8s.io",
    version = "v1beta2",
    kind = "OpenStackCluster",
    plural = "openstackclusters",
    shortname = "osc",
    category = "cluster-api",
    status = "OpenStackClusterStatus",
    derive = "PartialEq",
    namespaced,
    doc = "Network, security groups and API endpoint of one Cluster.",
    printcolumn(
        name = "Cluster",
        type_ = "string",
        json_path = r".metadata.labels.cluster\.x-k8s\.io/cluster-name",
        description = "Cluster to which this OpenStackCluster belongs"
    ),
    printcolumn(
        name = "Network",
        type_ = "string",
        json_path = ".status.network.id",
        description = "Network the cluster is using"
    ),
    printcolumn(
        name = "Endpoint",
        type_ = "string",
        json_path = ".spec.controlPlaneEndpoint.host",
        description = "API Endpoint",
        priority = 1
    ),
    printcolumn(
        name = "Bastion IP",
        type_ = "string",
        json_path = ".status.bastion.floatingIP",
        description = "Bastion address for breakglass access"
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp",
        description = "Time duration since creation of OpenStackCluster"
    )
)]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "has(self.enableExternalNetwork) && !self.enableExternalNetwork ? !has(self.bastion) || !has(self.bastion.floatingIP) : true",
        "message": "bastion floating IP cannot be set when enableExternalNetwork is false",
    },
    {
        "rule": "has(self.enableExternalNetwork) && !self.enableExternalNetwork ? has(self.apiServer) && has(self.apiServer.enableFloatingIP) && !self.apiServer.enableFloatingIP : true",
        "message": "apiServer.enableFloatingIP cannot be true when enableExternalNetwork is false",
    },
]))]
#[serde(rename_all = "camelCase")]
pub struct OpenStackClusterSpec {
    /// The subnets to create, in a network and behind a router created for the cluster: one, or one for each family of
    /// addresses. The first has the addresses of the API and of nodes.
    #[schemars(length(max = 2), extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub managed_subnets: Vec<SubnetSpec>,
    /// The network that is created for the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub managed_network: Option<ManagedNetwork>,
    /// The router that is created for the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub managed_router: Option<ManagedRouter>,
    /// An existing network to use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkParam>,
    /// Existing subnets to use; all of the network when empty.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subnets: Vec<SubnetParam>,
    /// The subnet for addresses of the API and of nodes; the first when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub primary_subnet: Option<SubnetParam>,
    /// The subnets of failure domains, in the network of the cluster: a machine of a failure domain has its ports on these in
    /// place of `subnets`.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["failureDomain"]))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failure_domain_subnets: Vec<FailureDomainSubnets>,
    /// An existing router to use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub router: Option<RouterParam>,
    /// The network that floating IPs come from; the only external one when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external_network: Option<NetworkParam>,
    /// Allows access to the cluster from outside; true when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enable_external_network: Option<bool>,
    /// Access to the API server: port, addresses, floating IP and load balancer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_server: Option<ApiServer>,
    /// Security groups for the nodes; none are created when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub managed_security_groups: Option<ManagedSecurityGroups>,
    /// Tags of all resources that are created for the cluster.
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Host and port of the API server, such as `192.0.2.10` and 6443. Set by the controller unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control_plane_endpoint: Option<ControlPlaneEndpoint>,
    /// The availability zones for control plane machines; all when empty.
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub control_plane_availability_zones: Vec<String>,
    /// Leaves control plane machines without an availability zone; false when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control_plane_omit_availability_zone: Option<bool>,
    /// A server to log in through.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bastion: Option<Bastion>,
    /// The credentials.
    #[serde(default)]
    #[schemars(!default)]
    pub identity_ref: IdentityRef,
}

/// The subnets of a failure domain.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailureDomainSubnets {
    /// The failure domain, an availability zone of Nova.
    #[schemars(length(min = 1))]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(!default, !skip_serializing_if)]
    pub failure_domain: String,
    /// Subnets of the failure domain: one, or one for each family of addresses.
    #[schemars(length(min = 1, max = 2), extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(!default, !skip_serializing_if)]
    pub subnets: Vec<SubnetParam>,
}

/// A subnet to create.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SubnetSpec {
    /// The CIDR; chosen by Neutron when absent, from `subnetPool`.
    #[schemars(length(min = 1))]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cidr: String,
    /// The subnet pool of Neutron that the CIDR is from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subnet_pool: Option<SubnetPoolParam>,
    /// The prefix length of a CIDR that Neutron chooses; the default of the subnet pool when absent.
    #[schemars(range(min = 1, max = 128), extend("format" = null))]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "given::number")]
    pub prefix_length: Option<i32>,
    /// The family of a CIDR that Neutron chooses, 4 or 6; 4 when absent.
    #[schemars(extend("enum" = [4, 6], "format" = null))]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "given::number")]
    pub ip_version: Option<i32>,
    /// Name servers of the servers in this subnet.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dns_nameservers: Vec<String>,
    /// The ranges that addresses are allocated from; the whole subnet when empty.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allocation_pools: Vec<AllocationPool>,
    /// Mode of router advertisements in an IPv6 subnet, by the router of Neutron; with neither mode, both are
    /// `dhcpv6-stateful`.
    #[serde(rename = "ipv6RAMode", skip_serializing_if = "Option::is_none")]
    pub ipv6_ra_mode: Option<Ipv6Mode>,
    /// Mode in which servers in an IPv6 subnet get their addresses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ipv6_address_mode: Option<Ipv6Mode>,
}

impl SubnetSpec {
    /// True for a subnet of IPv6.
    pub fn is_ipv6(&self) -> bool {
        match self.cidr.is_empty() {
            true => self.ip_version == Some(6),
            false => self.cidr.contains(':'),
        }
    }
}

/// A mode of an IPv6 subnet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Ipv6Mode {
    /// Addresses from announced prefix and hardware address.
    Slaac,
    /// Addresses from DHCP.
    Dhcpv6Stateful,
    /// Addresses as in `slaac`, other settings from DHCP.
    Dhcpv6Stateless,
}

impl Ipv6Mode {
    /// Word in Neutron.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Slaac => "slaac",
            Self::Dhcpv6Stateful => "dhcpv6-stateful",
            Self::Dhcpv6Stateless => "dhcpv6-stateless",
        }
    }
}

/// A range of addresses.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AllocationPool {
    /// The first address.
    #[schemars(length(min = 1))]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(!default, !skip_serializing_if)]
    pub start: String,
    /// The last address.
    #[schemars(length(min = 1))]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(!default, !skip_serializing_if)]
    pub end: String,
}

/// The network that is created for a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "self == null || has(self.mtu) || has(self.enablePortSecurity)",
    "message": "managedNetwork must not be empty if set",
}]))]
#[serde(rename_all = "camelCase")]
pub struct ManagedNetwork {
    /// The MTU; the cloud's default when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "given::number")]
    pub mtu: Option<i32>,
    /// Enables port security of the ports; the cloud's default when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enable_port_security: Option<bool>,
}

/// The router that is created for a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "has(self.externalIPs)",
    "message": "managedRouter must not be empty if set",
}]))]
pub struct ManagedRouter {
    /// The router's addresses on the external network.
    #[serde(rename = "externalIPs")]
    #[schemars(length(min = 1), extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub external_ips: Vec<ExternalRouterIp>,
}

/// An address of the router on the external network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExternalRouterIp {
    /// The address; any of the subnet when absent.
    #[serde(rename = "fixedIP")]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "given::text")]
    pub fixed_ip: Option<String>,
    /// The subnet of the external network.
    #[serde(default)]
    #[schemars(!default)]
    pub subnet: SubnetParam,
}

/// Access to the API server: port, addresses, floating IP and load balancer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApiServer {
    /// The port; 6443 when absent.
    #[schemars(range(min = 0, max = 65535), extend("format" = null))]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "given::number")]
    pub port: Option<i32>,
    /// The address inside the cluster's network.
    #[serde(rename = "fixedIP")]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "given::text")]
    pub fixed_ip: Option<String>,
    /// The floating IP; a new one when absent.
    #[serde(rename = "floatingIP")]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "given::text")]
    pub floating_ip: Option<String>,
    /// Gives the API server a floating IP; true when absent.
    #[serde(rename = "enableFloatingIP")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enable_floating_ip: Option<bool>,
    /// A load balancer that is created for the API server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub managed_load_balancer: Option<LoadBalancer>,
}

/// Host and port of the API server ([`OpenStackClusterSpec::control_plane_endpoint`]).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("minProperties" = 1))]
pub struct ControlPlaneEndpoint {
    /// A name or an address.
    #[schemars(length(min = 1, max = 512))]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "given::text")]
    pub host: Option<String>,
    /// The port.
    #[schemars(range(min = 1, max = 65535))]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "given::number")]
    pub port: Option<i32>,
}

/// Security groups created for the nodes of a cluster ([`OpenStackClusterSpec::managed_security_groups`]).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManagedSecurityGroups {
    /// Rules for all nodes.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cluster_nodes_security_group_rules: Vec<SecurityGroupRule>,
    /// Rules for control plane nodes.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub control_plane_nodes_security_group_rules: Vec<SecurityGroupRule>,
    /// Rules for workers.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub worker_nodes_security_group_rules: Vec<SecurityGroupRule>,
    /// Allows traffic between nodes on every port; false when absent.
    #[serde(default)]
    pub allow_all_in_cluster_traffic: bool,
    /// Default rules that are narrowed or left out; all others are there, open to everyone.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub default_rules: Vec<DefaultRule>,
}

/// A default rule of security groups that is narrowed or left out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DefaultRule {
    /// The rule.
    pub name: DefaultRuleName,
    /// The CIDRs that it is for; without any, it is left out.
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cidrs: Vec<String>,
}

/// Default rule of security groups ([`DefaultRule::name`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(clippy::upper_case_acronyms)] // The names are the serialized values.
pub enum DefaultRuleName {
    /// Connections to the API server, and to the additional ports of its load balancer.
    APIServer,
    /// Connections to node ports of workers.
    NodePorts,
    /// Connections to SSH of the bastion.
    SSH,
    /// All traffic sent by nodes and bastion.
    Egress,
}

/// A rule of a security group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecurityGroupRule {
    /// The name of the rule, unique in its list; it is not sent to OpenStack.
    #[schemars(length(min = 1))]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(!default, !skip_serializing_if)]
    pub name: String,
    /// The rule's description.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "given::text")]
    pub description: Option<String>,
    /// Into or out of the nodes.
    pub direction: Direction,
    /// The family of addresses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ether_type: Option<EtherType>,
    /// The first port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port_range_min: Option<i32>,
    /// The last port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port_range_max: Option<i32>,
    /// The protocol, by name or number.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "given::text")]
    pub protocol: Option<String>,
    /// The remote side: members of this security group.
    #[serde(rename = "remoteGroupID")]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "given::text")]
    pub remote_group_id: Option<String>,
    /// The remote side: addresses of this CIDR.
    #[serde(rename = "remoteIPPrefix")]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "given::text")]
    pub remote_ip_prefix: Option<String>,
    /// The remote side: members of these groups, one rule for each.
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remote_managed_groups: Vec<ManagedGroup>,
}

/// Direction of traffic ([`SecurityGroupRule::direction`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Into the node.
    Ingress,
    /// Out of the node.
    Egress,
}

/// A family of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum EtherType {
    /// IPv4.
    IPv4,
    /// IPv6.
    IPv6,
}

/// A security group that is created for a cluster.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum ManagedGroup {
    /// The security group of the bastion.
    Bastion,
    /// The security group of the control plane nodes.
    ControlPlane,
    /// The security group of the workers.
    Worker,
}

/// A server to log in through.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "!self.enabled || has(self.spec)",
    "message": "spec is required if bastion is enabled",
}]))]
#[serde(rename_all = "camelCase")]
pub struct Bastion {
    /// Creates the bastion; true when absent.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// The server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spec: Option<OpenStackMachineSpec>,
    /// Availability zone of the bastion, such as `nova`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "given::text")]
    pub availability_zone: Option<String>,
    /// Floating IP of the bastion, such as `192.0.2.11`; a new one when absent.
    #[serde(rename = "floatingIP")]
    #[schemars(extend("format" = "ipv4"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "given::text")]
    pub floating_ip: Option<String>,
}

/// The observed state of a cluster's resources in the cloud.
///
/// Unlike upstream, everything inside is optional that is not known at once: upstream requires the
/// load balancer's `ip` even where there is no floating IP, and cannot store such a status.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OpenStackClusterStatus {
    /// The conditions of the object.
    #[schemars(schema_with = "schema::conditions")]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// The first provisioning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initialization: Option<Initialization>,
    /// The cluster's network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkStatusWithSubnets>,
    /// The network that floating IPs come from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external_network: Option<NetworkStatus>,
    /// The cluster's router.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub router: Option<RouterStatus>,
    /// The load balancer of the API server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_server_managed_load_balancer: Option<LoadBalancerStatus>,
    /// Load balancers of availability zones: `controlPlaneEndpoint` is a name for their addresses.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub api_server_load_balancers: Vec<LoadBalancerStatus>,
    /// Availability zones, sorted by name.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failure_domains: Vec<FailureDomain>,
    /// The security group of control plane nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control_plane_security_group: Option<SecurityGroupStatus>,
    /// The security group of workers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker_security_group: Option<SecurityGroupStatus>,
    /// The security group of the bastion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bastion_security_group: Option<SecurityGroupStatus>,
    /// The bastion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bastion: Option<BastionStatus>,
}

/// Network, as in [`OpenStackClusterStatus::external_network`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NetworkStatus {
    /// Name in the cloud; absent for an empty one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Id in the cloud.
    #[schemars(length(min = 1))]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(!default, !skip_serializing_if)]
    pub id: String,
    /// Tags in the cloud.
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
}

/// Network with its subnets ([`OpenStackClusterStatus::network`]).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NetworkStatusWithSubnets {
    /// Name in the cloud; absent for an empty one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Id in the cloud.
    #[schemars(length(min = 1))]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(!default, !skip_serializing_if)]
    pub id: String,
    /// Tags in the cloud.
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// The subnets in use.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subnets: Vec<Subnet>,
}

/// A subnet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Subnet {
    /// Name in the cloud; absent for an empty one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Id in the cloud.
    #[schemars(length(min = 1))]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(!default, !skip_serializing_if)]
    pub id: String,
    /// CIDR, such as `10.6.0.0/24`.
    #[schemars(length(min = 1))]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(!default, !skip_serializing_if)]
    pub cidr: String,
    /// Tags in the cloud.
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
}

/// Router of a cluster ([`OpenStackClusterStatus::router`]).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RouterStatus {
    /// Name in the cloud; absent for an empty one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Id in the cloud.
    #[schemars(length(min = 1))]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(!default, !skip_serializing_if)]
    pub id: String,
    /// Tags in the cloud.
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Addresses on the external network.
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ips: Vec<String>,
}

/// An availability zone that machines can be spread over.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailureDomain {
    /// Name in the cloud.
    #[schemars(length(min = 1, max = 256))]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(!default, !skip_serializing_if)]
    pub name: String,
    /// True if control plane machines may run in the zone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control_plane: Option<bool>,
    /// Further attributes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, String>,
}

/// Security group, as in [`OpenStackClusterStatus::control_plane_security_group`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SecurityGroupStatus {
    /// Name in the cloud.
    #[schemars(length(min = 1))]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(!default, !skip_serializing_if)]
    pub name: String,
    /// Id in the cloud.
    #[schemars(length(min = 1))]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(!default, !skip_serializing_if)]
    pub id: String,
}

/// The bastion.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BastionStatus {
    /// The server's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "given::text")]
    pub id: Option<String>,
    /// The server's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "given::text")]
    pub name: Option<String>,
    /// The key pair that may log in.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "given::text")]
    pub ssh_key_name: Option<String>,
    /// The state of the server in Nova.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "given::text")]
    pub state: Option<String>,
    /// Address inside the network.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "given::text")]
    pub ip: Option<String>,
    /// Floating IP.
    #[serde(rename = "floatingIP")]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "given::text")]
    pub floating_ip: Option<String>,
    /// Deprecated: no longer set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolved: Option<ResolvedMachine>,
    /// Deprecated: no longer set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<MachineResources>,
}

fn yes() -> bool {
    true
}
