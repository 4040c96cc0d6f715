//! Requests of steps: functions of the desired state and of the state observed when the step is applied.

use std::sync::Arc;

use api::infra::v1beta2::{Ipv6Mode, ManagedGroup, SubnetSpec};
use openstack::inventory::Inventory;
use openstack::loadbalancer::LoadBalancerCreate;
use openstack::network::{
    self, AllocationPool, ExternalGateway, FloatingIpCreate, FloatingIpUpdate, NetworkCreate,
    NetworkUpdate, RouterCreate, RouterUpdate, RuleCreate, SecurityGroupCreate, SubnetCreate,
    SubnetUpdate,
};
use openstack::{Kind, Result};

use super::address::{self, Use};
use super::balancer;
use super::desired::{Desired, Network, Router};
use super::observed::Observed;
use super::plan::{Created, Step, missing_rules};
use crate::family::Family;
use crate::names::GROUP_DESCRIPTION;
use crate::placement::{self, Policy};

/// One request to the cloud.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)] // One variant for each call of the inventory.
pub enum Request {
    CreateNetwork(NetworkCreate),
    UpdateNetwork(String, NetworkUpdate),
    CreateSubnet(SubnetCreate),
    UpdateSubnet(String, SubnetUpdate),
    CreateRouter(RouterCreate),
    UpdateRouter(String, RouterUpdate),
    AddInterface {
        router: String,
        subnet: String,
    },
    CreateGroup(SecurityGroupCreate),
    CreateRules(Vec<RuleCreate>),
    DeleteRule {
        group: String,
        rule: String,
    },
    CreateBalancer(Box<LoadBalancerCreate>),
    /// Change of a load balancer or of one of its parts.
    ChangeBalancer {
        balancer: String,
        step: Box<load_balancing::Step>,
    },
    CreateFloatingIp(FloatingIpCreate),
    UpdateFloatingIp(String, FloatingIpUpdate),
    Tag {
        collection: &'static str,
        id: String,
        tags: Vec<String>,
    },
    DeleteBalancer(String),
    DeleteFloatingIp(String),
    DeleteServer(String),
    DeleteVolume(String),
    RemoveInterface {
        router: String,
        subnet: String,
    },
    DeleteRouter(String),
    DeletePort(String),
    DeleteSubnet(String),
    DeleteNetwork(String),
    DeleteGroup(String),
    CreateServerGroup {
        name: String,
        policy: Policy,
    },
    DeleteServerGroup(String),
}

/// [`Request`] of a [`Step`]; `None` when nothing is left to do, or when a needed resource does not exist.
pub fn request(step: &Step, desired: &Desired, observed: &Observed) -> Option<Request> {
    if let Some(request) = deletion(step, observed) {
        return Some(request);
    }
    if let Step::InZone(zone, step) = step {
        let (wanted, observed) = (desired.zone(zone)?, observed.in_zone(Some(zone)));
        return request(step, &desired.in_zone(wanted), &observed);
    }
    // The other steps are for what has no zone.
    let of_none = (!desired.zones.is_empty()).then(|| observed.in_zone(None));
    let observed = of_none.as_ref().unwrap_or(observed);
    let names = &desired.names;
    let description = desired.mark.description(&names.description());
    Some(match step {
        Step::CreateNetwork => {
            let Network::Managed {
                mtu, port_security, ..
            } = &desired.network
            else {
                return None;
            };
            Request::CreateNetwork(NetworkCreate {
                name: names.network(),
                description: Some(description),
                mtu: *mtu,
                // The cloud's default is port security.
                port_security_enabled: port_security.filter(|enabled| !enabled),
            })
        }
        Step::UpdateNetwork(_) => {
            let known = observed.network()?;
            Request::UpdateNetwork(known.id.clone(), change_of_network(desired, known)?)
        }
        Step::EnableRouter => {
            let change = RouterUpdate {
                admin_state_up: Some(true),
                ..RouterUpdate::default()
            };
            Request::UpdateRouter(observed.router()?.id.clone(), change)
        }
        Step::CreateSubnet(family) => {
            Request::CreateSubnet(subnet(*family, desired, observed, description)?)
        }
        Step::UpdateSubnet(family) => {
            let subnet = desired.managed_subnet(*family)?;
            let dns_nameservers = Some(subnet.dns_nameservers.clone());
            let id = observed.subnet(*family)?.id.clone();
            Request::UpdateSubnet(id, SubnetUpdate { dns_nameservers })
        }
        Step::CreateRouter => Request::CreateRouter(RouterCreate {
            name: names.network(),
            description: Some(description),
            external_gateway_info: Some(gateway(desired)?),
        }),
        Step::UpdateRouter => {
            let external_gateway_info = Some(gateway(desired)?);
            let id = observed.router()?.id.clone();
            Request::UpdateRouter(
                id,
                RouterUpdate {
                    external_gateway_info,
                    ..RouterUpdate::default()
                },
            )
        }
        Step::AddInterface(family) => Request::AddInterface {
            router: router_id(desired, observed)?,
            subnet: observed.subnet(*family)?.id.clone(),
        },
        Step::CreateGroup(role) => Request::CreateGroup(SecurityGroupCreate {
            name: names.group(*role),
            description: desired.mark.description(GROUP_DESCRIPTION),
            stateful: None,
        }),
        Step::CreateServerGroup(role) => {
            let policy = *desired.server_groups.get(role)?;
            Request::CreateServerGroup {
                name: placement::name(names, desired.mark.cluster, *role, policy),
                policy,
            }
        }
        Step::CreateRules(role) => Request::CreateRules(missing(*role, desired, observed)?),
        Step::CreateBalancer => {
            let new = balancer::new(desired, observed, description)?;
            Request::CreateBalancer(Box::new(new))
        }
        Step::ChangeBalancer(action, port) => {
            let is_step = |(known, step): &(u16, load_balancing::Step)| {
                known == port && step.action() == *action
            };
            let steps = balancer::steps(desired, observed);
            Request::ChangeBalancer {
                balancer: observed.balancer()?.id.clone(),
                step: Box::new(steps.into_iter().find(is_step)?.1),
            }
        }
        Step::CreateFloatingIp => {
            let wanted = desired.floating_ip.as_ref()?;
            // Without a port, the floating IP would be created unassociated: wait for the load balancer.
            let target = floating_ip_target(desired, observed, None);
            if desired.balancer.is_some() && target.is_none() {
                return None;
            }
            let (port_id, fixed_ip_address) = target.unzip();
            Request::CreateFloatingIp(FloatingIpCreate {
                floating_network_id: wanted.network.clone(),
                port_id,
                fixed_ip_address: fixed_ip_address.flatten(),
                floating_ip_address: wanted.address.clone(),
                description: Some(description),
                ..FloatingIpCreate::default()
            })
        }
        Step::AssociateFloatingIp => {
            let known = floating_ip(desired, observed)?;
            let balanced = desired.balancer.is_some();
            if let Use::Taken(_) = address::of_ip(known, observed, balanced) {
                return None;
            }
            let (port_id, fixed_ip_address) = floating_ip_target(desired, observed, Some(known))?;
            let change = FloatingIpUpdate {
                port_id: Some(port_id),
                fixed_ip_address,
            };
            Request::UpdateFloatingIp(known.id.clone(), change)
        }
        Step::Tag(collection, id) => {
            let tags = with_wanted(known_tags(collection, id, observed), desired);
            Request::Tag {
                collection,
                id: id.clone(),
                tags,
            }
        }
        Step::TagCreated(created) => {
            let (collection, id) = created_id(*created, desired, observed)?;
            Request::Tag {
                collection,
                id,
                tags: with_wanted(Vec::new(), desired),
            }
        }
        _ => return None,
    })
}

/// [`Request`] of a [`Step`] that deletes a resource.
pub fn deletion(step: &Step, observed: &Observed) -> Option<Request> {
    Some(match step {
        Step::DeleteRule(rule) => {
            let owns = |rules: &[network::SecurityGroupRule]| rules.iter().any(|r| r.id == *rule);
            let group = observed
                .groups
                .iter()
                .find(|group| owns(&group.rules))?
                .id
                .clone();
            Request::DeleteRule {
                group,
                rule: rule.clone(),
            }
        }
        Step::DeleteBalancer(id) => Request::DeleteBalancer(id.clone()),
        Step::DeleteFloatingIp(id) => Request::DeleteFloatingIp(id.clone()),
        Step::DeleteServer(id) => Request::DeleteServer(id.clone()),
        Step::DeleteVolume(id) => Request::DeleteVolume(id.clone()),
        Step::RemoveRoutes(id) => Request::UpdateRouter(
            id.clone(),
            RouterUpdate {
                routes: Some(Vec::new()),
                ..RouterUpdate::default()
            },
        ),
        Step::RemoveInterface(router, subnet) => Request::RemoveInterface {
            router: router.clone(),
            subnet: subnet.clone(),
        },
        Step::DeleteRouter(id) => Request::DeleteRouter(id.clone()),
        Step::DeletePort(id) => Request::DeletePort(id.clone()),
        Step::DeleteSubnet(id) => Request::DeleteSubnet(id.clone()),
        Step::DeleteNetwork(id) => Request::DeleteNetwork(id.clone()),
        Step::DeleteGroup(id) => Request::DeleteGroup(id.clone()),
        Step::DeleteServerGroup(id) => Request::DeleteServerGroup(id.clone()),
        _ => return None,
    })
}

/// Sends a [`Request`]. The next view contains its effect.
///
/// # Errors
/// Errors of the request. The affected kinds are then read again: the cloud may have processed the request although the
/// response was lost.
pub async fn send(inventory: &Inventory, request: &Request) -> Result<()> {
    let result = try_send(inventory, request).await;
    if result.is_err() {
        for kind in changed_kinds(request) {
            inventory.stale(*kind);
        }
    }
    result
}

async fn try_send(inventory: &Inventory, request: &Request) -> Result<()> {
    match request {
        Request::CreateNetwork(create) => inventory.create_network(create).await.map(drop),
        Request::UpdateNetwork(id, change) => inventory.update_network(id, change).await.map(drop),
        Request::CreateSubnet(create) => inventory.create_subnet(create).await.map(drop),
        Request::UpdateSubnet(id, change) => inventory.update_subnet(id, change).await.map(drop),
        Request::CreateRouter(create) => inventory.create_router(create).await.map(drop),
        Request::UpdateRouter(id, change) => inventory.update_router(id, change).await.map(drop),
        Request::AddInterface { router, subnet } => inventory
            .add_router_interface(router, subnet)
            .await
            .map(drop),
        Request::CreateGroup(create) => inventory.create_security_group(create).await.map(drop),
        Request::CreateRules(rules) => inventory.create_rules(rules).await,
        Request::DeleteRule { group, rule } => inventory.delete_rule(group, rule).await,
        Request::CreateBalancer(tree) => inventory.create_load_balancer(tree).await.map(drop),
        Request::ChangeBalancer { balancer, step } => {
            balancer::send(inventory, balancer, step).await
        }
        Request::CreateFloatingIp(create) => inventory.create_floating_ip(create).await.map(drop),
        Request::UpdateFloatingIp(id, change) => {
            inventory.update_floating_ip(id, change).await.map(drop)
        }
        Request::Tag {
            collection,
            id,
            tags,
        } => match *collection {
            "networks" => inventory.set_tags::<network::Network>(id, tags).await,
            "subnets" => inventory.set_tags::<network::Subnet>(id, tags).await,
            "routers" => inventory.set_tags::<network::Router>(id, tags).await,
            "security-groups" => inventory.set_tags::<network::SecurityGroup>(id, tags).await,
            _ => inventory.set_tags::<network::FloatingIp>(id, tags).await,
        },
        Request::DeleteBalancer(id) => inventory.delete_load_balancer(id).await,
        Request::DeleteFloatingIp(id) => inventory.delete_floating_ip(id).await,
        Request::DeleteServer(id) => inventory.delete_server(id).await,
        Request::DeleteVolume(id) => inventory.delete_volume(id).await,
        Request::RemoveInterface { router, subnet } => {
            inventory.remove_router_interface(router, subnet).await
        }
        Request::DeleteRouter(id) => inventory.delete_router(id).await,
        Request::DeletePort(id) => inventory.delete_port(id).await,
        Request::DeleteSubnet(id) => inventory.delete_subnet(id).await,
        Request::DeleteNetwork(id) => inventory.delete_network(id).await,
        Request::DeleteGroup(id) => inventory.delete_security_group(id).await,
        Request::CreateServerGroup { name, policy } => {
            let created = inventory.create_server_group(name, policy.as_str()).await;
            created.map(drop)
        }
        Request::DeleteServerGroup(id) => inventory.delete_server_group(id).await,
    }
}

/// [`Kind`]s of resources that a request may have changed despite its failure.
fn changed_kinds(request: &Request) -> &'static [Kind] {
    match request {
        Request::CreateNetwork(_) | Request::UpdateNetwork(..) | Request::DeleteNetwork(_) => {
            &[Kind::Networks, Kind::Subnets]
        }
        Request::CreateSubnet(_) | Request::UpdateSubnet(..) | Request::DeleteSubnet(_) => {
            &[Kind::Subnets]
        }
        Request::CreateRouter(_) | Request::UpdateRouter(..) | Request::DeleteRouter(_) => {
            &[Kind::Routers]
        }
        Request::AddInterface { .. } | Request::RemoveInterface { .. } | Request::DeletePort(_) => {
            &[Kind::Ports]
        }
        Request::CreateGroup(_)
        | Request::CreateRules(_)
        | Request::DeleteRule { .. }
        | Request::DeleteGroup(_) => &[Kind::SecurityGroups],
        Request::CreateFloatingIp(_)
        | Request::UpdateFloatingIp(..)
        | Request::DeleteFloatingIp(_) => &[Kind::FloatingIps],
        Request::DeleteServer(_) => &[Kind::Servers],
        Request::CreateServerGroup { .. } | Request::DeleteServerGroup(_) => &[Kind::ServerGroups],
        Request::DeleteVolume(_) => &[Kind::Volumes],
        Request::Tag { collection, .. } => match *collection {
            "networks" => &[Kind::Networks],
            "subnets" => &[Kind::Subnets],
            "routers" => &[Kind::Routers],
            "security-groups" => &[Kind::SecurityGroups],
            _ => &[Kind::FloatingIps],
        },
        _ => &[
            Kind::LoadBalancers,
            Kind::Listeners,
            Kind::Pools,
            Kind::Members,
            Kind::Monitors,
        ],
    }
}

/// Floating IP of the API server: the one in the spec, or else the one created for the cluster.
pub fn floating_ip<'a>(
    desired: &Desired,
    observed: &'a Observed,
) -> Option<&'a Arc<network::FloatingIp>> {
    match desired.floating_ip.as_ref()?.address.as_deref() {
        Some(address) => observed
            .view
            .floating_ips
            .iter()
            .find(|ip| ip.floating_ip_address == address),
        None => observed.floating_ips.first(),
    }
}

/// Port of the floating IP, and the fixed address on the port: the port of the load balancer, or of a control plane
/// machine. The floating IP stays on a machine as long as its server runs.
pub fn floating_ip_target(
    desired: &Desired,
    observed: &Observed,
    known: Option<&Arc<network::FloatingIp>>,
) -> Option<(String, Option<String>)> {
    if desired.balancer.is_some() {
        let port = &observed.balancer()?.vip_port_id;
        return Some((port.clone(), None)).filter(|(port, _)| !port.is_empty());
    }
    let machines = &desired.control_plane;
    if known.is_some_and(|ip| address::of_ip(ip, observed, false) == Use::LeftInPlace) {
        return None;
    }
    let current = known.and_then(|ip| ip.port_id.as_deref());
    let stays = machines
        .iter()
        .find(|machine| Some(machine.port_id.as_str()) == current);
    // Neutron requires the fixed address if a port has several IPv4 addresses.
    stays.or_else(|| machines.first()).map(|machine| {
        let address = Some(machine.address.clone());
        (
            machine.port_id.clone(),
            address.filter(|address| !address.contains(':')),
        )
    })
}

fn subnet(
    family: Family,
    desired: &Desired,
    observed: &Observed,
    description: String,
) -> Option<SubnetCreate> {
    let subnet = desired.managed_subnet(family)?;
    let (ra_mode, address_mode) = modes(family, subnet);
    let subnetpool_id = match subnet.subnet_pool {
        Some(_) => Some(desired.subnet_pools.get(&family)?.clone()),
        None => None,
    };
    let pools = subnet.allocation_pools.iter();
    Some(SubnetCreate {
        name: desired.names.subnet(family, desired.primary()),
        network_id: observed.network()?.id.clone(),
        cidr: subnet.cidr.clone(),
        ip_version: family.version(),
        subnetpool_id,
        prefixlen: subnet.prefix_length.and_then(|it| u8::try_from(it).ok()),
        ipv6_ra_mode: ra_mode,
        ipv6_address_mode: address_mode,
        description: Some(description),
        dns_nameservers: subnet.dns_nameservers.clone(),
        allocation_pools: pools
            .map(|pool| AllocationPool {
                start: pool.start.clone(),
                end: pool.end.clone(),
            })
            .collect(),
        ..SubnetCreate::default()
    })
}

/// Change to restore the network of the cluster after changes by hand; `None` without any. Fields left to the cloud by
/// the spec may be changed by anybody.
pub(super) fn change_of_network(
    desired: &Desired,
    known: &network::Network,
) -> Option<NetworkUpdate> {
    let Network::Managed {
        mtu, port_security, ..
    } = &desired.network
    else {
        return None;
    };
    let change = NetworkUpdate {
        mtu: mtu.filter(|mtu| *mtu != known.mtu),
        port_security_enabled: port_security
            .filter(|wanted| known.port_security_enabled.is_some_and(|it| it != *wanted)),
        admin_state_up: (known.admin_state_up == Some(false)).then_some(true),
    };
    (change != NetworkUpdate::default()).then_some(change)
}

/// Modes of an IPv6 subnet: the announcement of the router, and the addresses of servers. With neither in the spec, the
/// router announces itself and DHCP gives out the addresses allocated by Neutron: without any mode, servers would get
/// none.
fn modes(family: Family, subnet: &SubnetSpec) -> (Option<String>, Option<String>) {
    let word = |mode: Option<Ipv6Mode>| mode.map(|mode| mode.as_str().to_owned());
    match (family, subnet.ipv6_ra_mode, subnet.ipv6_address_mode) {
        (Family::Four, ..) => (None, None),
        (Family::Six, None, None) => {
            let stateful = Some(Ipv6Mode::Dhcpv6Stateful);
            (word(stateful), word(stateful))
        }
        (Family::Six, advertised, address) => (word(advertised), word(address)),
    }
}

fn gateway(desired: &Desired) -> Option<ExternalGateway> {
    let Router::Managed {
        external,
        addresses,
    } = &desired.router
    else {
        return None;
    };
    Some(ExternalGateway {
        network_id: external.clone(),
        external_fixed_ips: addresses.clone(),
    })
}

fn router_id(desired: &Desired, observed: &Observed) -> Option<String> {
    match &desired.router {
        Router::Managed { .. } => observed.router().map(|router| router.id.clone()),
        Router::Existing(id) => Some(id.clone()),
        Router::None => None,
    }
}

/// All missing rules of a group, for one request.
fn missing(
    wanted: ManagedGroup,
    desired: &Desired,
    observed: &Observed,
) -> Option<Vec<RuleCreate>> {
    let known = observed.referents(&desired.names);
    let rules: Vec<_> = missing_rules(desired, observed, &known)
        .into_iter()
        .filter(|(role, _)| *role == wanted)
        .filter_map(|(role, index)| {
            desired
                .groups
                .get(&role)?
                .get(index)?
                .request(known.groups.get(&role)?, &known)
        })
        .collect();
    (!rules.is_empty()).then_some(rules)
}

fn created_id(
    created: Created,
    desired: &Desired,
    observed: &Observed,
) -> Option<(&'static str, String)> {
    Some(match created {
        Created::Network => ("networks", observed.network()?.id.clone()),
        Created::Subnet(family) => ("subnets", observed.subnet(family)?.id.clone()),
        Created::Router => ("routers", observed.router()?.id.clone()),
        Created::Group(role) => (
            "security-groups",
            observed.group(&desired.names, role)?.id.clone(),
        ),
        Created::FloatingIp => ("floatingips", floating_ip(desired, observed)?.id.clone()),
    })
}

fn known_tags(collection: &str, id: &str, observed: &Observed) -> Vec<String> {
    let view = &observed.view;
    match collection {
        "networks" => view.networks.get(id).map(|item| item.tags.clone()),
        "subnets" => view.subnets.get(id).map(|item| item.tags.clone()),
        "routers" => view.routers.get(id).map(|item| item.tags.clone()),
        "security-groups" => view.security_groups.get(id).map(|item| item.tags.clone()),
        _ => view.floating_ips.get(id).map(|item| item.tags.clone()),
    }
    .unwrap_or_default()
}

/// Tags with the wanted ones added, since tags are replaced as a whole: tags of others are kept.
fn with_wanted(mut known: Vec<String>, desired: &Desired) -> Vec<String> {
    for tag in &desired.tags {
        if !known.contains(tag) {
            known.push(tag.clone());
        }
    }
    known
}
