//! Desired state of a cluster in the cloud: a function of its spec and of facts about the cloud.

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
    /// [`Mark`] of the cluster.
    pub mark: Mark,
    /// [`Names`] of the resources.
    pub names: Names,
    /// Tags of the resources, including the mark's.
    pub tags: Vec<String>,
    /// True if Neutron supports tags.
    pub tagging: bool,
    /// The network.
    pub network: Network,
    /// [`SubnetPools`] of subnets to create.
    pub subnet_pools: SubnetPools,
    /// The router.
    pub router: Router,
    /// Managed security groups with their [`Rule`]s.
    pub groups: BTreeMap<ManagedGroup, Vec<Rule>>,
    /// [`Policies`] of the roles with a server group.
    pub server_groups: Policies,
    /// [`Balancer`] of the API server.
    pub balancer: Option<Balancer>,
    /// The floating IP of the API server.
    pub floating_ip: Option<FloatingIp>,
    /// [`ControlPlaneMachine`]s that serve the API.
    pub control_plane: Vec<ControlPlaneMachine>,
    /// Subnets of failure domains, if any.
    pub zone_subnets: Vec<String>,
    /// The load balancers of zones; with these, `balancer` and `floating_ip` say what each of them is to be.
    pub zones: Vec<ZoneBalancer>,
    /// True if the load balancer of each zone leads to the machines of all.
    pub crosses_zones: bool,
}

/// The network of a cluster.
#[derive(Clone, Debug, PartialEq)]
pub enum Network {
    /// Network created for the cluster.
    Managed {
        /// The MTU; the cloud's default when absent.
        mtu: Option<i64>,
        /// Port security of the ports; the cloud's default when absent.
        port_security: Option<bool>,
        /// Subnets to create, one for each family; the first has the addresses of the API and of nodes.
        subnets: Vec<SubnetSpec>,
    },
    /// An existing network.
    Existing {
        /// Id.
        network: String,
        /// Subnets to use, the primary one (for addresses of the API and of nodes) first.
        subnets: Vec<String>,
    },
    /// No network: the ports of the machines select networks.
    None,
}

/// The router of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Router {
    /// Router created for the cluster.
    Managed {
        /// The external network.
        external: String,
        /// Addresses on the external network; chosen by Neutron when empty.
        addresses: Vec<FixedIp>,
    },
    /// An existing router; the managed subnet is connected to it.
    Existing(String),
    /// No router.
    None,
}

impl Desired {
    /// [`SubnetSpec`]s to create, one for each family; none in an existing network.
    pub fn managed_subnets(&self) -> &[SubnetSpec] {
        match &self.network {
            Network::Managed { subnets, .. } => subnets,
            _ => &[],
        }
    }

    /// [`SubnetSpec`] of this family to create.
    pub fn managed_subnet(&self, family: Family) -> Option<&SubnetSpec> {
        let mut all = self.managed_subnets().iter();
        all.find(|subnet| Family::of_subnet(subnet) == family)
    }

    /// [`Family`] of the first subnet to create.
    pub fn primary(&self) -> Option<Family> {
        let first = self.managed_subnets().first()?;
        Some(Family::of_subnet(first))
    }
}

/// The load balancer of the API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Balancer {
    /// Port of the API server, then the others.
    pub ports: Vec<u16>,
    /// CIDRs that may connect besides the cluster itself; everybody if empty.
    pub allowed_cidrs: Vec<String>,
    /// Version of an Octavia that has no allowed CIDRs, so that none are sent.
    pub without_cidrs: Option<(u32, u32)>,
    /// The provider.
    pub provider: Option<String>,
    /// [`Driver`] of the provider, or of the existing load balancer.
    pub driver: Driver,
    /// The flavor's id.
    pub flavor_id: Option<String>,
    /// The availability zone.
    pub availability_zone: Option<String>,
    /// Network and subnet of the address, if different from the cluster's.
    pub network: Option<(String, Option<String>)>,
    /// Address on the network; chosen by Octavia when absent.
    pub address: Option<String>,
    /// Health [`Monitor`] of the pools; `None` if the driver has refused one.
    pub monitor: Option<Monitor>,
}

/// The load balancer of a zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneBalancer {
    /// The availability zone.
    pub zone: String,
    /// The network of its address.
    pub network: String,
    /// The subnet of its address.
    pub subnet: String,
    /// The family of its address.
    pub family: Family,
    /// True if Octavia places it in the zone; OVN has no place for load balancers.
    pub is_placed: bool,
}

/// A driver of Octavia.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Driver {
    /// Amphorae, or another driver with the same options.
    Amphora,
    /// OVN, without allowed CIDRs and with a single algorithm.
    Ovn,
    /// Octavia's default, which may be either: the first load balancer shows its driver.
    Unknown,
}

impl Driver {
    /// Driver of a provider.
    pub fn from_provider(provider: &str) -> Self {
        match provider {
            "ovn" => Driver::Ovn,
            _ => Driver::Amphora,
        }
    }
}

/// Health monitor, with the defaults of the Go provider.
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
    /// Address on the cluster's network.
    pub address: String,
    /// Port with the address.
    pub port_id: String,
    /// The subnet of the address.
    pub subnet_id: String,
    /// The availability zone of the server; empty if Nova does not tell.
    pub zone: String,
}

impl Desired {
    /// The desired state of the load balancer of a zone.
    pub(crate) fn in_zone(&self, own: &ZoneBalancer) -> Self {
        let mut desired = self.clone();
        desired.names = self.names.in_zone(&own.zone);
        desired.zones = Vec::new();
        if let Some(balancer) = &mut desired.balancer {
            balancer.network = Some((own.network.clone(), Some(own.subnet.clone())));
            balancer.availability_zone = own.is_placed.then(|| own.zone.clone());
            balancer.address = None;
        }
        if own.family == Family::Six {
            desired.floating_ip = None;
        }
        desired.control_plane = self.machines_of(&own.zone);
        desired
    }

    /// The machines behind the load balancer of a zone. One whose zone has no load balancer is behind all; and all are
    /// behind one whose zone has no machine: it would take connections to nobody.
    fn machines_of(&self, zone: &str) -> Vec<ControlPlaneMachine> {
        let all = &self.control_plane;
        let is_listed = |name: &str| self.zones.iter().any(|it| it.zone == name);
        let is_here =
            |machine: &&ControlPlaneMachine| machine.zone == zone || !is_listed(&machine.zone);
        if self.crosses_zones || !all.iter().any(|machine| is_here(&machine)) {
            return all.clone();
        }
        all.iter().filter(is_here).cloned().collect()
    }

    /// The load balancer of the zone with this name.
    pub(crate) fn zone(&self, name: &str) -> Option<&ZoneBalancer> {
        self.zones.iter().find(|it| it.zone == name)
    }
}

/// Computes the [`Desired`] state from spec and [`Facts`].
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
        zones: facts.zones.clone(),
        crosses_zones: balancer_spec(spec).and_then(|it| it.allow_cross_az_members) == Some(true),
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

/// [`Bastion`] in the spec and its server, if enabled.
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
        without_cidrs: facts.octavia_without_cidrs,
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
