//! What a cluster should have in the cloud: a function of its spec and of facts about the cloud.

use std::collections::BTreeMap;

use api::infra::v1beta2::{LoadBalancerMonitor, ManagedGroup, OpenStackClusterSpec, SubnetSpec};
use ipnet::IpNet;
use openstack::network::FixedIp;

use super::facts::Facts;
use super::rules::{self, Rule};
use crate::identity::Mark;
use crate::names::Names;

/// The default port of the API server.
pub const API_PORT: u16 = 6443;

/// What a cluster should have in the cloud.
#[derive(Clone, Debug)]
pub struct Desired {
    /// The cluster's mark.
    pub mark: Mark,
    /// The names of its resources.
    pub names: Names,
    /// The tags of its resources, the mark's among them.
    pub tags: Vec<String>,
    /// Whether Neutron takes tags at all.
    pub tagging: bool,
    /// The network.
    pub network: Network,
    /// The router.
    pub router: Router,
    /// The managed security groups with their rules.
    pub groups: BTreeMap<ManagedGroup, Vec<Rule>>,
    /// The load balancer of the API server.
    pub balancer: Option<Balancer>,
    /// The floating IP of the API server.
    pub floating_ip: Option<FloatingIp>,
    /// The control plane machines that serve the API.
    pub control_plane: Vec<ControlPlaneMachine>,
}

/// The network of a cluster.
#[derive(Clone, Debug, PartialEq)]
pub enum Network {
    /// Made for it.
    Managed {
        /// The MTU; the cloud's default when absent.
        mtu: Option<i64>,
        /// `Some(false)` turns port security off.
        port_security: Option<bool>,
        /// The subnet to make in it.
        subnet: SubnetSpec,
    },
    /// One that is there.
    Existing {
        /// Its id.
        network: String,
        /// The subnets to use, that for addresses of the API and of nodes first.
        subnets: Vec<String>,
    },
    /// None: the machines name theirs.
    None,
}

/// The router of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Router {
    /// Made for it.
    Managed {
        /// The external network.
        external: String,
        /// Its addresses there; any when empty.
        addresses: Vec<FixedIp>,
    },
    /// One that is there; the managed subnet is connected to it.
    Existing(String),
    /// None.
    None,
}

/// The load balancer of the API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Balancer {
    /// The API server's port, then the others.
    pub ports: Vec<u16>,
    /// Who may connect besides the cluster itself; everybody when empty.
    pub allowed_cidrs: Vec<String>,
    /// The provider.
    pub provider: Option<String>,
    /// The flavor's id.
    pub flavor_id: Option<String>,
    /// The availability zone.
    pub availability_zone: Option<String>,
    /// The network and subnet of its address, if not the cluster's.
    pub network: Option<(String, Option<String>)>,
    /// Its address inside the network.
    pub address: Option<String>,
    /// How members are checked.
    pub monitor: Monitor,
}

impl Balancer {
    /// Whether Octavia's OVN driver serves it, which knows no allowed CIDRs and one algorithm only.
    pub fn is_ovn(&self) -> bool {
        self.provider.as_deref() == Some("ovn")
    }
}

/// How members are checked; upstream's defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Monitor {
    /// Seconds between checks.
    pub delay: i64,
    /// Seconds until a check has failed.
    pub timeout: i64,
    /// Checks until a member is up.
    pub max_retries: i64,
    /// Checks until a member is down.
    pub max_retries_down: i64,
}

/// The floating IP of the API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FloatingIp {
    /// The external network.
    pub network: String,
    /// The address; any when absent.
    pub address: Option<String>,
}

/// A control plane machine that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlPlaneMachine {
    /// The OpenStackMachine's name.
    pub name: String,
    /// Its address in the cluster's network.
    pub address: String,
    /// The port that has the address.
    pub port_id: String,
}

/// What the cluster should have.
pub fn desired(spec: &OpenStackClusterSpec, facts: &Facts) -> Desired {
    let mark = facts.mark;
    let mut tags = spec.tags.clone();
    tags.extend(mark.tags());
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
    let cidrs: Vec<_> = facts
        .subnet_cidrs
        .iter()
        .filter(|cidr| is_ipv4(cidr))
        .cloned()
        .collect();
    Desired {
        mark,
        names: facts.names.clone(),
        tags,
        tagging: facts.tagging,
        network: network(spec, facts),
        router: router(spec, facts),
        groups: rules::wanted(spec, &ports, &cidrs),
        balancer: balancer(spec, facts, ports),
        floating_ip: floating_ip(spec, facts),
        control_plane: facts.control_plane.clone(),
    }
}

/// The port that the API server is reached on.
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

/// Whether a floating IP leads to the API server.
pub fn wants_floating_ip(spec: &OpenStackClusterSpec) -> bool {
    let enabled = spec
        .api_server
        .as_ref()
        .and_then(|api_server| api_server.enable_floating_ip);
    spec.enable_external_network != Some(false) && enabled != Some(false)
}

/// The load balancer's part of the spec, if it is enabled.
pub fn balancer_spec(spec: &OpenStackClusterSpec) -> Option<&api::infra::v1beta2::LoadBalancer> {
    spec.api_server
        .as_ref()
        .and_then(|api_server| api_server.managed_load_balancer.as_ref())
        .filter(|balancer| balancer.enabled)
}

fn network(spec: &OpenStackClusterSpec, facts: &Facts) -> Network {
    if let Some(subnet) = spec.managed_subnets.first() {
        let managed = spec.managed_network.clone().unwrap_or_default();
        return Network::Managed {
            mtu: managed.mtu.map(i64::from),
            port_security: managed.enable_port_security.filter(|enabled| !enabled),
            subnet: subnet.clone(),
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
        flavor_id: facts.balancer_flavor.clone(),
        availability_zone: given.availability_zone.clone(),
        network: facts.balancer_network.clone(),
        address: spec
            .api_server
            .as_ref()
            .and_then(|api_server| api_server.fixed_ip.clone()),
        monitor: monitor(given.monitor.as_ref()),
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
    // An endpoint that somebody gave is theirs to lead to the API server, unless a load balancer
    // is managed or we made the floating IP behind it.
    if !wants_floating_ip(spec) || facts.foreign_endpoint {
        return None;
    }
    let network = facts.external_network.clone()?;
    let address = spec
        .api_server
        .as_ref()
        .and_then(|api_server| api_server.floating_ip.clone());
    Some(FloatingIp { network, address })
}

/// Whether `cidr` is of IPv4.
pub fn is_ipv4(cidr: &str) -> bool {
    matches!(cidr.parse(), Ok(IpNet::V4(_)))
}
