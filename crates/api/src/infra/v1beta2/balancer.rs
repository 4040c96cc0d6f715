//! Load balancer of the API server, as wanted and as it is.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::cluster::NetworkStatusWithSubnets;
use super::given;
use super::params::{NetworkParam, SubnetParam};

/// The load balancer of the API server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LoadBalancer {
    /// Creates the load balancer; true when absent.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// Ports besides that of the API server.
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub additional_ports: Vec<i32>,
    /// The addresses and networks that may connect; all when empty.
    #[serde(rename = "allowedCIDRs")]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed_cidrs: Vec<String>,
    /// The Octavia provider; the cloud's default when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "given::text")]
    pub provider: Option<String>,
    /// The network of its address; the cluster's when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkParam>,
    /// The subnets of its address; only the first is used.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subnets: Vec<SubnetParam>,
    /// The availability zone.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "given::text")]
    pub availability_zone: Option<String>,
    /// The name of the Octavia flavor.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "given::text")]
    pub flavor: Option<String>,
    /// The health monitor of the members.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub monitor: Option<LoadBalancerMonitor>,
    /// Availability zones with a load balancer of their own, each with the subnet of its address; a single load balancer when
    /// empty. The host of `controlPlaneEndpoint` is a DNS name with the addresses of all.
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["availabilityZone"]))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub availability_zone_subnets: Vec<AvailabilityZoneSubnet>,
    /// True if each of them leads to the machines of all zones; else to those of its zone as long as that has some.
    #[serde(rename = "allowCrossAZLoadBalancerMembers")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_cross_az_members: Option<bool>,
}

/// Load balancer of an availability zone ([`LoadBalancer::availability_zone_subnets`]).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AvailabilityZoneSubnet {
    /// The availability zone, of Octavia and of Nova.
    #[schemars(length(min = 1, max = 64))]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(!default, !skip_serializing_if)]
    pub availability_zone: String,
    /// The subnet of the address.
    #[serde(default)]
    #[schemars(!default)]
    pub subnet: SubnetParam,
}

impl Default for LoadBalancer {
    fn default() -> Self {
        Self {
            enabled: true,
            additional_ports: Vec::new(),
            allowed_cidrs: Vec::new(),
            provider: None,
            network: None,
            subnets: Vec::new(),
            availability_zone: None,
            flavor: None,
            monitor: None,
            availability_zone_subnets: Vec::new(),
            allow_cross_az_members: None,
        }
    }
}

/// Health monitor of the API server's [`LoadBalancer`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LoadBalancerMonitor {
    /// Seconds between checks; 10 when absent.
    #[schemars(range(min = 0))]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "given::number")]
    pub delay: Option<i32>,
    /// Seconds until a check has failed; 5 when absent.
    #[schemars(range(min = 0))]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "given::number")]
    pub timeout: Option<i32>,
    /// Checks until a member is up; 5 when absent.
    #[schemars(range(min = 0, max = 10))]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "given::number")]
    pub max_retries: Option<i32>,
    /// Checks until a member is down; 3 when absent.
    #[schemars(range(min = 1, max = 10))]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "given::number")]
    pub max_retries_down: Option<i32>,
}

/// The load balancer of the API server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LoadBalancerStatus {
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
    /// Floating IP, if any.
    #[schemars(length(min = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "given::text")]
    pub ip: Option<String>,
    /// Address inside the network.
    #[serde(rename = "internalIP")]
    #[schemars(length(min = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "given::text")]
    pub internal_ip: Option<String>,
    /// The addresses and networks that may connect.
    #[serde(rename = "allowedCIDRs")]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed_cidrs: Vec<String>,
    /// Tags in the cloud.
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// The network of its address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_balancer_network: Option<NetworkStatusWithSubnets>,
    /// Availability zone, if each has a load balancer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "given::text")]
    pub availability_zone: Option<String>,
    /// Operating status in Octavia, which is that of the members: `ONLINE`, `DEGRADED`, `ERROR`, `NO_MONITOR`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "given::text")]
    pub operating_status: Option<String>,
}

fn yes() -> bool {
    true
}
