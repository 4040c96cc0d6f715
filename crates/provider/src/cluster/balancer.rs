//! Load balancer of the API server, for the planner of `load_balancing`: with names, tags and addresses of the cluster;
//! fields that the Go provider leaves alone stay unchanged.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use api::infra::v1beta2::OpenStackClusterSpec;
use ipnet::IpNet;
use load_balancing::{Action, Branch, Fields, Key, Names, Step};
use openstack::inventory::Inventory;
use openstack::loadbalancer::{
    ListenerCreate, LoadBalancerCreate, MemberCreate, MonitorCreate, PoolCreate,
};
use openstack::{Cloud, Kind, Result, Service};

use super::desired::{
    Balancer, ControlPlaneMachine, Desired, Driver, Monitor, Network, Router, balancer_spec,
};
use super::observed::Observed;

/// Protocol of all listeners and pools.
const PROTOCOL: &str = "TCP";

/// [`Step`]s to change the existing load balancer, each with its port of the API server, in the order for Octavia:
/// listeners come before members.
pub(crate) fn steps(desired: &Desired, observed: &Observed) -> Vec<(u16, Step)> {
    let (Some(wanted), Some(known)) = (&desired.balancer, observed.balancer()) else {
        return Vec::new();
    };
    let ports = wanted.ports.iter();
    let listeners = ports
        .clone()
        .map(|port| existing(wanted, desired, observed, *port));
    let tree = LoadBalancerCreate {
        listeners: listeners.collect(),
        ..LoadBalancerCreate::default()
    };
    let branches: BTreeMap<Key, Branch> = ports
        .filter_map(|port| Some(((PROTOCOL.to_owned(), *port), branch(observed, *port)?)))
        .collect();
    let observed = load_balancing::Observed {
        balancer: known,
        listeners: &branches,
        orphans: &[],
    };
    let steps = load_balancing::steps(&wish(&tree), Some(&observed));
    let with_port = |step: Step| {
        let (_, port) = observed.listener_of(&step)?;
        Some((port, step))
    };
    let mut steps: Vec<_> = steps.into_iter().filter_map(with_port).collect();
    steps.sort_by_key(|(_, step)| step.action().is_of_members());
    steps
}

/// [`load_balancing::Desired`] state for the planner.
const fn wish(tree: &LoadBalancerCreate) -> load_balancing::Desired<'_> {
    load_balancing::Desired {
        tree,
        fields: Fields::Access,
        names: Names::KEPT,
        is_serial: false,
        keeps_weights: true,
        keeps_members: false,
    }
}

/// Desired listener for `port`. A part with a known id but missing in an older list is left out, so that the plan
/// creates no second one.
fn existing(
    wanted: &Balancer,
    desired: &Desired,
    observed: &Observed,
    port: u16,
) -> ListenerCreate {
    let mut listener = listener(wanted, desired, observed, port);
    let has_pool = observed
        .listener(port)
        .is_some_and(|known| known.default_pool_id.is_some());
    let Some(known) = observed.pool(port) else {
        listener.default_pool = listener.default_pool.filter(|_| !has_pool);
        return listener;
    };
    if let Some(pool) = &mut listener.default_pool {
        pool.members = wanted_members(desired, observed, port);
        let is_behind = observed.monitor(known).is_none() && known.healthmonitor_id.is_some();
        pool.healthmonitor = pool.healthmonitor.take().filter(|_| !is_behind);
    }
    listener
}

/// [`Branch`] of the existing listener for `port` with its parts.
fn branch(observed: &Observed, port: u16) -> Option<Branch> {
    let pool = observed.pool(port);
    let members = pool.map(|pool| observed.members(pool).to_vec());
    Some(Branch {
        listener: Arc::clone(observed.listener(port)?),
        pool: pool.cloned(),
        members: members.unwrap_or_default(),
        monitor: pool.and_then(|pool| observed.monitor(pool)).cloned(),
    })
}

/// Request for a new load balancer; `None` before the network of its address exists. Members come later: an address
/// refused by Octavia must not prevent the load balancer. Listeners of an unknown driver come later, too, and the
/// monitors of OVN: a driver that refuses a part of a tree leaves the port of the address behind, unknown to all.
pub(crate) fn new(
    desired: &Desired,
    observed: &Observed,
    description: String,
) -> Option<LoadBalancerCreate> {
    let wanted = desired.balancer.as_ref()?;
    let (network, subnet) = match (&wanted.network, &desired.network) {
        (Some((network, subnet)), _) => (network.clone(), subnet.clone()),
        (None, Network::Managed { .. }) => (
            observed.network()?.id.clone(),
            Some(observed.subnet(desired.primary()?)?.id.clone()),
        ),
        (None, Network::Existing { network, subnets }) => {
            (network.clone(), subnets.first().cloned())
        }
        (None, Network::None) => return None,
    };
    let tree = LoadBalancerCreate {
        name: desired.names.balancer(),
        description: Some(description),
        vip_address: wanted.address.clone(),
        vip_subnet_id: subnet,
        vip_network_id: Some(network),
        provider: wanted.provider.clone(),
        flavor_id: wanted.flavor_id.clone(),
        availability_zone: wanted.availability_zone.clone(),
        tags: desired.tags.clone(),
        listeners: new_listeners(wanted, desired, observed),
        ..LoadBalancerCreate::default()
    };
    let request = load_balancing::steps(&wish(&tree), None).into_iter().next();
    match request {
        Some(Step::Create(tree)) => Some(*tree),
        _ => None,
    }
}

fn new_listeners(wanted: &Balancer, desired: &Desired, observed: &Observed) -> Vec<ListenerCreate> {
    let driver = driver(wanted, observed);
    if driver == Driver::Unknown {
        return Vec::new();
    }
    let one = |port: &u16| {
        let mut listener = listener(wanted, desired, observed, *port);
        if let Some(pool) = &mut listener.default_pool {
            pool.healthmonitor = pool.healthmonitor.take().filter(|_| driver != Driver::Ovn);
        }
        listener
    };
    wanted.ports.iter().map(one).collect()
}

/// [`Driver`] of the load balancer, taken from an existing one, also in the reconcile of its creation.
fn driver(wanted: &Balancer, observed: &Observed) -> Driver {
    let known = observed.balancer().map(|known| known.provider.as_str());
    let known = known.filter(|provider| !provider.is_empty());
    known.map_or(wanted.driver, Driver::from_provider)
}

fn listener(
    wanted: &Balancer,
    desired: &Desired,
    observed: &Observed,
    port: u16,
) -> ListenerCreate {
    ListenerCreate {
        name: desired.names.listener(port),
        protocol: PROTOCOL.to_owned(),
        protocol_port: port,
        allowed_cidrs: allowed_cidrs(desired, observed),
        tags: desired.tags.clone(),
        default_pool: Some(pool(wanted, desired, driver(wanted, observed), port)),
        ..ListenerCreate::default()
    }
}

fn pool(wanted: &Balancer, desired: &Desired, driver: Driver, port: u16) -> PoolCreate {
    let algorithm = match driver {
        Driver::Ovn => "SOURCE_IP_PORT",
        Driver::Amphora | Driver::Unknown => "ROUND_ROBIN",
    };
    PoolCreate {
        name: desired.names.listener(port),
        protocol: PROTOCOL.to_owned(),
        lb_algorithm: algorithm.to_owned(),
        healthmonitor: wanted.monitor.map(|it| monitor(it, desired, port)),
        tags: desired.tags.clone(),
        ..PoolCreate::default()
    }
}

fn monitor(wanted: Monitor, desired: &Desired, port: u16) -> MonitorCreate {
    MonitorCreate {
        name: desired.names.listener(port),
        kind: "TCP".to_owned(),
        delay: wanted.delay,
        timeout: wanted.timeout,
        max_retries: wanted.max_retries,
        max_retries_down: wanted.max_retries_down,
        pool_id: None,
        ..MonitorCreate::default()
    }
}

/// Allowed CIDRs of the load balancer, sorted: CIDRs of the spec, and the cluster itself; empty if everybody may
/// connect. `None` if Octavia or its driver does not support allowed CIDRs.
pub(crate) fn allowed_cidrs(desired: &Desired, observed: &Observed) -> Option<Vec<String>> {
    let wanted = desired.balancer.as_ref()?;
    if wanted.without_cidrs.is_some() || driver(wanted, observed) == Driver::Ovn {
        return None;
    }
    if wanted.allowed_cidrs.is_empty() {
        return Some(Vec::new());
    }
    let subnets = match &desired.network {
        Network::Managed { subnets, .. } => {
            let cidrs = subnets.iter().map(|subnet| subnet.cidr.clone());
            cidrs.collect()
        }
        Network::Existing { subnets, .. } => subnets
            .iter()
            .chain(&desired.zone_subnets)
            .filter_map(|id| {
                observed
                    .view
                    .subnets
                    .get(id)
                    .map(|subnet| subnet.cidr.clone())
            })
            .collect(),
        Network::None => Vec::new(),
    };
    let router = match &desired.router {
        Router::Existing(id) => observed.view.routers.get(id),
        _ => observed.router(),
    };
    let gateways = router
        .and_then(|router| router.external_gateway_info.as_ref())
        .into_iter()
        .flat_map(|gateway| {
            gateway
                .external_fixed_ips
                .iter()
                .map(|ip| ip.ip_address.clone())
        });
    let ipv4 = vip_is_ipv4(desired, observed);
    let mut all: Vec<_> = wanted
        .allowed_cidrs
        .iter()
        .cloned()
        .chain(subnets)
        .chain(gateways)
        .chain(observed.bastion_addresses())
        .filter_map(|text| network_of(&text))
        .filter(|net| net.addr().is_ipv4() == ipv4)
        .map(|net| net.to_string())
        .collect();
    all.sort();
    all.dedup();
    Some(all)
}

/// Entries of the spec's `allowedCIDRs` without effect, since the driver has none.
pub(crate) fn ignored_cidrs<'d>(desired: &'d Desired, observed: &Observed) -> &'d [String] {
    match &desired.balancer {
        Some(wanted) if driver(wanted, observed) == Driver::Ovn => &wanted.allowed_cidrs,
        _ => &[],
    }
}

/// Entries of the spec's `allowedCIDRs` that Octavia would reject: malformed ones, and entries of another address
/// family than the load balancer.
pub(crate) fn unusable_cidrs<'d>(desired: &'d Desired, observed: &Observed) -> Vec<&'d str> {
    let Some(wanted) = &desired.balancer else {
        return Vec::new();
    };
    let ipv4 = vip_is_ipv4(desired, observed);
    let usable = |text: &str| network_of(text).is_some_and(|net| net.addr().is_ipv4() == ipv4);
    let all = wanted.allowed_cidrs.iter().map(String::as_str);
    all.filter(|text| !usable(text)).collect()
}

/// The first version of Octavia's API with allowed CIDRs, of the release Train.
const WITH_CIDRS: (u32, u32) = (2, 12);

/// Version of the cloud's Octavia if it has no allowed CIDRs and the spec has some. It is asked once for a session, and
/// only then.
///
/// # Errors
/// The error of the request.
pub(crate) async fn octavia_without_cidrs(
    cloud: &Cloud,
    spec: &OpenStackClusterSpec,
) -> Result<Option<(u32, u32)>, openstack::Error> {
    if balancer_spec(spec).is_none_or(|given| given.allowed_cidrs.is_empty()) {
        return Ok(None);
    }
    let versions = cloud.session.versions(Service::LoadBalancer).await?;
    // Nothing is known of an Octavia whose list of versions has none.
    let is_older = versions.max > (0, 0) && versions.max < WITH_CIDRS;
    Ok(is_older.then_some(versions.max))
}

/// CIDR, or a single address as a CIDR. Host bits are kept, since Octavia returns CIDRs as given.
fn network_of(text: &str) -> Option<IpNet> {
    let address = || Some(IpNet::from(text.parse::<IpAddr>().ok()?));
    text.parse().ok().or_else(address)
}

/// True if the address of the load balancer is, or will be, an IPv4 address.
pub(crate) fn vip_is_ipv4(desired: &Desired, observed: &Observed) -> bool {
    let wanted = desired.balancer.as_ref();
    let cidr_of = |id: &String| Some(observed.view.subnets.get(id)?.cidr.clone());
    let there = observed.balancer().map(|known| known.vip_address.clone());
    let given = || wanted.and_then(|wanted| wanted.address.clone());
    let elsewhere = || wanted.and_then(|wanted| wanted.network.clone());
    let subnet = || match (elsewhere(), &desired.network) {
        (Some((_, subnet)), _) => cidr_of(&subnet?),
        (None, Network::Managed { subnets, .. }) => Some(subnets.first()?.cidr.clone()),
        (None, Network::Existing { subnets, .. }) => cidr_of(subnets.first()?),
        (None, Network::None) => None,
    };
    there
        .filter(|address| !address.is_empty())
        .or_else(given)
        .or_else(subnet)
        .is_none_or(|text| !text.contains(':'))
}

/// Desired members of the pool for `port`.
fn wanted_members(desired: &Desired, observed: &Observed, port: u16) -> Vec<MemberCreate> {
    let primary = subnet_id(desired, observed);
    // Elsewhere it is the primary subnet, as in the Go provider, whichever the address is on.
    let of = |machine: &ControlPlaneMachine| match desired.zone_subnets.contains(&machine.subnet_id)
    {
        true => Some(machine.subnet_id.clone()),
        false => primary.clone(),
    };
    desired
        .control_plane
        .iter()
        .map(|machine| MemberCreate {
            name: desired.names.member(port, &machine.name),
            address: machine.address.clone(),
            protocol_port: port,
            subnet_id: of(machine),
            weight: None,
            tags: desired.tags.clone(),
            ..MemberCreate::default()
        })
        .collect()
}

/// The id of the primary subnet, for addresses of the API and of nodes.
fn subnet_id(desired: &Desired, observed: &Observed) -> Option<String> {
    match &desired.network {
        Network::Managed { .. } => Some(observed.subnet(desired.primary()?)?.id.clone()),
        Network::Existing { subnets, .. } => subnets.first().cloned(),
        Network::None => None,
    }
}

/// Sends a request for a part of the load balancer.
///
/// # Errors
/// Failure of the request.
pub(crate) async fn send(inventory: &Inventory, balancer: &str, step: &Step) -> Result<()> {
    match step {
        Step::Create(tree) => inventory.create_load_balancer(tree).await.map(drop),
        Step::CreateListener(new) => inventory.create_listener(balancer, new).await.map(drop),
        Step::UpdateListener { id, change } => {
            let updated = inventory.update_listener(balancer, id, change).await;
            updated.map(drop)
        }
        Step::DeleteListener(id) => {
            inventory.delete_listener(balancer, id).await?;
            inventory.stale(Kind::Pools);
            Ok(())
        }
        Step::CreatePool(new) => {
            inventory.create_pool(balancer, new).await?;
            // The listener has a default pool now.
            inventory.stale(Kind::Listeners);
            Ok(())
        }
        Step::UpdatePool { id, change } => {
            let updated = inventory.update_pool(balancer, id, change).await;
            updated.map(drop)
        }
        Step::DeletePool(id) => {
            inventory.delete_pool(balancer, id).await?;
            inventory.stale(Kind::Listeners);
            Ok(())
        }
        Step::SetMembers { pool, members } => inventory.set_members(pool, members).await,
        Step::CreateMember { pool, member } => {
            inventory.create_member(pool, member).await.map(drop)
        }
        Step::UpdateMember { pool, id, change } => {
            inventory.update_member(pool, id, change).await.map(drop)
        }
        Step::DeleteMember { pool, id } => inventory.delete_member(pool, id).await,
        Step::CreateMonitor(new) => {
            inventory.create_monitor(balancer, new).await?;
            inventory.stale(Kind::Pools);
            Ok(())
        }
        Step::UpdateMonitor { id, change } => {
            let updated = inventory.update_monitor(balancer, id, change).await;
            updated.map(drop)
        }
        Step::DeleteMonitor(id) => {
            inventory.delete_monitor(balancer, id).await?;
            inventory.stale(Kind::Pools);
            Ok(())
        }
    }
}

/// Event of an [`Action`], such as `CreateListener`.
pub(crate) const fn event(action: Action) -> &'static str {
    match action {
        Action::Create => "CreateLoadBalancer",
        Action::CreateListener => "CreateListener",
        Action::UpdateListener => "UpdateListener",
        Action::DeleteListener => "DeleteListener",
        Action::CreatePool => "CreatePool",
        Action::UpdatePool => "UpdatePool",
        Action::DeletePool => "DeletePool",
        Action::SetMembers | Action::CreateMember | Action::UpdateMember | Action::DeleteMember => {
            "UpdateLoadBalancerMembers"
        }
        Action::CreateMonitor => "CreateMonitor",
        Action::UpdateMonitor => "UpdateMonitor",
        Action::DeleteMonitor => "DeleteMonitor",
    }
}

/// [`Action`] in words, without its port.
pub(crate) const fn words(action: Action) -> &'static str {
    match action {
        Action::Create => "create the load balancer",
        Action::CreateListener => "create the listener",
        Action::UpdateListener => "change who may connect to the listener",
        Action::DeleteListener => "delete the listener",
        Action::CreatePool => "create the pool",
        Action::UpdatePool => "change the pool",
        Action::DeletePool => "delete the pool",
        Action::SetMembers => "set the members of the pool",
        Action::CreateMember => "add a member of the pool",
        Action::UpdateMember => "change a member of the pool",
        Action::DeleteMember => "remove a member of the pool",
        Action::CreateMonitor => "create the health monitor",
        Action::UpdateMonitor => "change the health monitor",
        Action::DeleteMonitor => "delete the health monitor",
    }
}
