//! The desired state of a cluster in the cloud: a function of its spec and of facts about the cloud.

use std::collections::BTreeMap;

use api::infra::v1beta2::{
    Bastion, LoadBalancerMonitor, ManagedGroup, OpenStackClusterSpec, OpenStackMachineSpec,
    SubnetSpec,
};
use ipnet::IpNet;
use openstack::network::FixedIp;

use super::facts::Facts;
use super::rules::{self, Rule};
use super::subnet_pools::SubnetPools;
use crate::family::Family;
use crate::identity::Mark;
use crate::names::Names;
use crate::placement::Policies;
pub use crate::spec::balancer_spec;

/// The default port of the API server.
pub const API_PORT: u16 = 6443;

/// The desired state of a cluster in the cloud.
#[derive(Clone, Debug)]
pub struct Desired {
    /// The cluster's mark.
    pub mark: Mark,
    /// The names of its resources.
    pub names: Names,
    /// The tags of its resources, including those of the mark.
    pub tags: Vec<String>,
    /// Whether Neutron supports tags.
    pub tagging: bool,
    /// The network.
    pub network: Network,
    /// The subnet pools of subnets to create.
    pub subnet_pools: SubnetPools,
    /// The router.
    pub router: Router,
    /// The managed security groups with their rules.
    pub groups: BTreeMap<ManagedGroup, Vec<Rule>>,
    /// The policies of the roles that have a server group.
    pub server_groups: Policies,
    /// The load balancer of the API server.
    pub balancer: Option<Balancer>,
    /// The floating IP of the API server.
    pub floating_ip: Option<FloatingIp>,
    /// The control plane machines that serve the API.
    pub control_plane: Vec<ControlPlaneMachine>,
    /// The subnets of failure domains, where these have some.
    pub zone_subnets: Vec<String>,
}

/// The network of a cluster.
#[derive(Clone, Debug, PartialEq)]
pub enum Network {
    /// Created for it.
    Managed {
        /// The MTU; the cloud's default when absent.
        mtu: Option<i64>,
        /// Port security of its ports; the cloud's default when absent.
        port_security: Option<bool>,
        /// The subnets to create in it, one for each family; the first has the addresses of the API and of nodes.
        subnets: Vec<SubnetSpec>,
    },
    /// An existing network.
    Existing {
        /// Its id.
        network: String,
        /// The subnets to use, the primary one (for addresses of the API and of nodes) first.
        subnets: Vec<String>,
    },
    /// None: the ports of the machines select their networks.
    None,
}

/// The router of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Router {
    /// Created for it.
    Managed {
        /// The external network.
        external: String,
        /// Its addresses on the external network; chosen by Neutron when empty.
        addresses: Vec<FixedIp>,
    },
    /// An existing router; the managed subnet is connected to it.
    Existing(String),
    /// None.
    None,
}

impl Desired {
    /// The subnets to create, one for each family; none in an existing network.
    pub fn managed_subnets(&self) -> &[SubnetSpec] {
        match &self.network {
            Network::Managed { subnets, .. } => subnets,
            _ => &[],
        }
    }

    /// The subnet of this family to create.
    pub fn managed_subnet(&self, family: Family) -> Option<&SubnetSpec> {
        let mut all = self.managed_subnets().iter();
        all.find(|subnet| Family::of_subnet(subnet) == family)
    }

    /// The family of the first subnet to create.
    pub fn primary(&self) -> Option<Family> {
        let first = self.managed_subnets().first()?;
        Some(Family::of_subnet(first))
    }
}

/// The load balancer of the API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Balancer {
    /// The API server's port, then the others.
    pub ports: Vec<u16>,
    /// Who may connect besides the cluster itself; everybody if empty.
    pub allowed_cidrs: Vec<String>,
    /// The provider.
    pub provider: Option<String>,
    /// The driver of that provider, or of the existing load balancer.
    pub driver: Driver,
    /// The flavor's id.
    pub flavor_id: Option<String>,
    /// The availability zone.
    pub availability_zone: Option<String>,
    /// The network and subnet of its address, if different from those of the cluster.
    pub network: Option<(String, Option<String>)>,
    /// Its address on that network; chosen by Octavia when absent.
    pub address: Option<String>,
    /// The health monitor of the pools; `None` if the driver has refused one.
    pub monitor: Option<Monitor>,
}

/// A driver of Octavia.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Driver {
    /// That of amphorae, or another one with their options.
    Amphora,
    /// OVN, which has no allowed CIDRs and a single algorithm.
    Ovn,
    /// Octavia's default, which may be either: Octavia tells it with the first load balancer.
    Unknown,
}

impl Driver {
    /// The driver of a provider.
    pub fn of(provider: &str) -> Self {
        match provider {
            "ovn" => Driver::Ovn,
            _ => Driver::Amphora,
        }
    }
}

/// A health monitor, with the defaults of the Go provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Monitor {
    /// Seconds between checks.
    pub delay: i64,
    /// Seconds after which a check fails.
    pub timeout: i64,
    /// Successful checks until a member is up.
    pub max_retries: i64,
    /// Failed checks until a member is down.
    pub max_retries_down: i64,
}

/// The floating IP of the API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FloatingIp {
    /// The external network.
    pub network: String,
    /// The address; chosen by Neutron when absent.
    pub address: Option<String>,
}

/// A control plane machine with a running server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlPlaneMachine {
    /// The OpenStackMachine's name.
    pub name: String,
    /// Its address on the cluster's network.
    pub address: String,
    /// The port that has the address.
    pub port_id: String,
    /// The subnet of the address.
    pub subnet_id: String,
}

/// Computes the desired state.
pub fn desired(spec: &OpenStackClusterSpec, facts: &Facts) -> Desired {
    let mark = facts.mark;
    let mut tags = spec.tags.clone();
    if !facts.is_adopted {
        tags.extend(mark.tags());
    }
    let port = api_port(spec);
    let mut ports = vec![port];
    if let Some(balancer) = balancer_spec(spec) {
        ports.extend(
            balancer
                .additional_ports
                .iter()
                .filter_map(|port| u16::try_from(*port).ok()),
        );
    }
    Desired {
        mark,
        names: facts.names.clone(),
        tags,
        tagging: facts.tagging,
        network: network(spec, facts),
        subnet_pools: facts.subnet_pools.clone(),
        router: router(spec, facts),
        groups: rules::wanted(spec, &ports, &facts.subnet_ranges, facts.ipv6),
        server_groups: facts.server_groups.clone(),
        balancer: balancer(spec, facts, ports),
        floating_ip: floating_ip(spec, facts),
        control_plane: facts.control_plane.clone(),
        zone_subnets: facts.zone_subnets.clone(),
    }
}

/// The port of the API server.
pub fn api_port(spec: &OpenStackClusterSpec) -> u16 {
    let known = spec
        .control_plane_endpoint
        .as_ref()
        .and_then(|endpoint| endpoint.port);
    let given = spec
        .api_server
        .as_ref()
        .and_then(|api_server| api_server.port);
    known
        .or(given)
        .and_then(|port| u16::try_from(port).ok())
        .filter(|p| *p != 0)
        .unwrap_or(API_PORT)
}

/// True for an API server with a floating IP.
pub fn wants_floating_ip(spec: &OpenStackClusterSpec) -> bool {
    let enabled = spec
        .api_server
        .as_ref()
        .and_then(|api_server| api_server.enable_floating_ip);
    spec.enable_external_network != Some(false) && enabled != Some(false)
}

/// The bastion in the spec and its server, if it is enabled.
pub fn bastion_spec(spec: &OpenStackClusterSpec) -> Option<(&Bastion, &OpenStackMachineSpec)> {
    let bastion = spec.bastion.as_ref().filter(|bastion| bastion.enabled)?;
    Some((bastion, bastion.spec.as_ref()?))
}

fn network(spec: &OpenStackClusterSpec, facts: &Facts) -> Network {
    if !spec.managed_subnets.is_empty() {
        let managed = spec.managed_network.clone().unwrap_or_default();
        return Network::Managed {
            mtu: managed.mtu.map(i64::from),
            port_security: managed.enable_port_security,
            subnets: spec.managed_subnets.clone(),
        };
    }
    match &facts.network {
        Some(network) => Network::Existing {
            network: network.clone(),
            subnets: facts.subnets.clone(),
        },
        None => Network::None,
    }
}

fn router(spec: &OpenStackClusterSpec, facts: &Facts) -> Router {
    match (
        &facts.router,
        &facts.external_network,
        spec.managed_subnets.is_empty(),
    ) {
        (Some(router), _, _) => Router::Existing(router.clone()),
        (None, Some(external), false) => Router::Managed {
            external: external.clone(),
            addresses: facts.router_addresses.clone(),
        },
        _ => Router::None,
    }
}

fn balancer(spec: &OpenStackClusterSpec, facts: &Facts, ports: Vec<u16>) -> Option<Balancer> {
    let given = balancer_spec(spec)?;
    Some(Balancer {
        ports,
        allowed_cidrs: given.allowed_cidrs.clone(),
        provider: facts.balancer_provider.clone(),
        driver: facts.balancer_driver,
        flavor_id: facts.balancer_flavor.clone(),
        availability_zone: given.availability_zone.clone(),
        network: facts.balancer_network.clone(),
        address: spec
            .api_server
            .as_ref()
            .and_then(|api_server| api_server.fixed_ip.clone()),
        monitor: Some(monitor(given.monitor.as_ref())),
    })
}

fn monitor(given: Option<&LoadBalancerMonitor>) -> Monitor {
    let or = |given: Option<i32>, default: i64| given.map_or(default, i64::from);
    Monitor {
        delay: or(given.and_then(|m| m.delay), 10),
        timeout: or(given.and_then(|m| m.timeout), 5),
        max_retries: or(given.and_then(|m| m.max_retries), 5),
        max_retries_down: or(given.and_then(|m| m.max_retries_down), 3),
    }
}

fn floating_ip(spec: &OpenStackClusterSpec, facts: &Facts) -> Option<FloatingIp> {
    // An endpoint that somebody else set is theirs to maintain, unless a load balancer is managed or the floating IP
    // behind the endpoint is ours.
    if !wants_floating_ip(spec) || facts.foreign_endpoint || facts.is_api_ipv6 {
        return None;
    }
    let network = facts.external_network.clone()?;
    let address = spec
        .api_server
        .as_ref()
        .and_then(|api_server| api_server.floating_ip.clone());
    Some(FloatingIp { network, address })
}

/// True for an IPv6 CIDR.
pub fn is_ipv6(cidr: &str) -> bool {
    matches!(cidr.parse(), Ok(IpNet::V6(_)))
}
