//! [`OpenStackCluster`] in v1beta1: flat fields for network, router and API server, and conditions with a severity.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::machine::{OpenStackMachineSpec, ResolvedMachine};
use crate::infra::schema;
use crate::infra::v1beta2::given;
use crate::infra::v1beta2::{
    ControlPlaneEndpoint, DefaultRule, ExternalRouterIp, FailureDomainSubnets, IdentityRef,
    Initialization, LoadBalancer, LoadBalancerStatus, MachineResources, NetworkParam,
    NetworkStatus, NetworkStatusWithSubnets, RouterParam, RouterStatus, SecurityGroupRule,
    SecurityGroupStatus, SubnetParam, SubnetSpec,
};

/// Network, security groups and API endpoint of one Cluster.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "infrastructure.cluster.x-k8s.io",
    version = "v1beta1",
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
        name = "Ready",
        type_ = "string",
        json_path = ".status.ready",
        description = "Cluster infrastructure is ready for OpenStack instances"
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
        "rule": "has(self.disableExternalNetwork) && self.disableExternalNetwork ? !has(self.bastion) || !has(self.bastion.floatingIP) : true",
        "message": "bastion floating IP cannot be set when disableExternalNetwork is true",
    },
    {
        "rule": "has(self.disableExternalNetwork) && self.disableExternalNetwork ? has(self.disableAPIServerFloatingIP) && self.disableAPIServerFloatingIP : true",
        "message": "disableAPIServerFloatingIP cannot be false when disableExternalNetwork is true",
    },
]))]
#[serde(rename_all = "camelCase")]
pub struct OpenStackClusterSpec {
    /// The subnets to create, in a network and behind a router created for the cluster: one, or one for each family of
    /// addresses. The first has the addresses of the API and of nodes.
    #[schemars(length(max = 2), extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub managed_subnets: Vec<SubnetSpec>,
    /// The MTU of the network that is created for the cluster.
    #[serde(rename = "networkMTU", skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = null))]
    #[serde(default, deserialize_with = "given::number")]
    pub network_mtu: Option<i32>,
    /// Disables port security in the network created for the cluster; the cloud's default when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disable_port_security: Option<bool>,
    /// The addresses, on the external network, of the router that is created for the cluster.
    #[serde(
        rename = "externalRouterIPs",
        default,
        skip_serializing_if = "Vec::is_empty"
    )]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub external_router_ips: Vec<ExternalRouterIp>,
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
    /// Leaves the cluster without access from outside; false when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disable_external_network: Option<bool>,
    /// A load balancer that is created for the API server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_server_load_balancer: Option<LoadBalancer>,
    /// Leaves the API server without a floating IP; false when absent.
    #[serde(
        rename = "disableAPIServerFloatingIP",
        skip_serializing_if = "Option::is_none"
    )]
    pub disable_api_server_floating_ip: Option<bool>,
    /// The floating IP of the API server; a new one when absent.
    #[serde(
        rename = "apiServerFloatingIP",
        skip_serializing_if = "Option::is_none"
    )]
    #[serde(default, deserialize_with = "given::text")]
    pub api_server_floating_ip: Option<String>,
    /// The address of the API server inside the cluster's network.
    #[serde(rename = "apiServerFixedIP", skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "given::text")]
    pub api_server_fixed_ip: Option<String>,
    /// The port of the API server; 6443 when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 65535), extend("format" = null))]
    #[serde(default, deserialize_with = "given::number")]
    pub api_server_port: Option<i32>,
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

/// Security groups created for the nodes of a cluster ([`OpenStackClusterSpec::managed_security_groups`]).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManagedSecurityGroups {
    /// Rules for all nodes.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub all_nodes_security_group_rules: Vec<SecurityGroupRule>,
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
    #[schemars(schema_with = "schema::v1beta1_conditions")]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// True if the cluster's part of the cloud is ready.
    #[serde(default)]
    pub ready: bool,
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
    pub api_server_load_balancer: Option<LoadBalancerStatus>,
    /// Load balancers of availability zones: `controlPlaneEndpoint` is a name for their addresses.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub api_server_load_balancers: Vec<LoadBalancerStatus>,
    /// Availability zones by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub failure_domains: BTreeMap<String, FailureDomain>,
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
    /// Deprecated: no longer set.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "given::text")]
    pub failure_reason: Option<String>,
    /// Deprecated: no longer set.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "given::text")]
    pub failure_message: Option<String>,
}

/// Condition of Cluster API's v1beta1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// The condition's type.
    #[serde(rename = "type")]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(!default, !skip_serializing_if)]
    pub type_: String,
    /// `True`, `False` or `Unknown`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(!default, !skip_serializing_if)]
    pub status: String,
    /// The severity of a condition whose status is False.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub severity: String,
    /// Time of the last change of the status, RFC 3339.
    #[schemars(with = "crate::shape::Time")]
    pub last_transition_time: Time,
    /// The reason of the last transition, in CamelCase.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// A message with details.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// An availability zone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailureDomain {
    /// True if control plane machines may run in the zone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control_plane: Option<bool>,
    /// Further attributes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, String>,
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
