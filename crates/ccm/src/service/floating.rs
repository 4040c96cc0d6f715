//! Floating IP of a load balancer (pure).

use std::net::IpAddr;

use ipnet::IpNet;
use openstack::network::{FloatingIp, Subnet};
use openstack::{Kind, View};

use super::Rejection;
use super::annotations::{FloatingSubnet, Wishes};
use super::desired::Facts;
use super::identity::Identity;
use super::vip::Vip;

/// Desired floating IP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Floating {
    pub(crate) network: String,
    /// Subnets to try, in this order; any subnet of the network if empty.
    pub(crate) subnets: Vec<String>,
    /// Address requested by the Service.
    pub(crate) address: Option<String>,
    /// Existing floating IP of the project.
    pub(crate) existing: Option<String>,
}

/// Floating IP for a Service; `None` if the cloud has no external network.
///
/// # Errors
/// The requested address is in use, or no subnet is as requested.
pub(super) fn wanted(
    wishes: &Wishes,
    asked: Option<&str>,
    vip: &Vip,
    identity: &Identity,
    facts: &Facts<'_>,
) -> Result<Option<Floating>, Rejection> {
    let view = facts.view;
    let network = match wishes.placement.floating_network_id.as_str() {
        "" => match external_network(vip, view) {
            Some(network) => network,
            None => return Ok(None),
        },
        id => id.to_owned(),
    };
    let known = asked.and_then(|ip| view.floating_ips.named(ip).first());
    if let Some(known) = known {
        check_free(known, identity, view)?;
    }
    let tagged = view
        .floating_ips
        .iter()
        .find(|ip| ip.port_id.is_none() && identity.owns_floating_ip(&ip.description));
    let existing = known.or(tagged.filter(|_| asked.is_none()));
    let existing = existing.map(|ip| ip.id.clone());
    let subnets = match existing.is_some() || facts.has_floating_ip {
        // The subnet matters at the creation alone.
        true => Vec::new(),
        false => subnets(&wishes.floating_subnet, &network, asked, view)?,
    };
    Ok(Some(Floating {
        network,
        subnets,
        address: asked.map(str::to_owned),
        existing,
    }))
}

/// True if the choice of the external network depends on routers.
pub(super) fn needs_routers(view: &View) -> bool {
    fitting(view).nth(1).is_some()
}

/// External network of a router with a connection to the virtual address, since Neutron associates no floating IP of
/// another one; without such a router, the first external network.
fn external_network(vip: &Vip, view: &View) -> Option<String> {
    let reached = reached(vip, view);
    let mut found = fitting(view);
    let first = found.next()?;
    let mut found = std::iter::once(first.clone()).chain(found);
    let network = found.find(|id| reached.contains(&id.as_str()));
    Some(network.unwrap_or(first))
}

/// Ids of external networks with a subnet of IPv4, or with subnets invisible to the project.
fn fitting(view: &View) -> impl Iterator<Item = String> {
    let fits = |id: &str| {
        let subnets = view.subnets.of_parent(id);
        subnets.is_empty() || subnets.iter().any(|subnet| subnet.ip_version == 4)
    };
    let networks = view.external_networks();
    networks
        .filter(move |network| fits(&network.id))
        .map(|network| network.id.clone())
}

/// Networks of the gateways of routers with a port on the subnet of the virtual address.
fn reached<'a>(vip: &Vip, view: &'a View) -> Vec<&'a str> {
    let is_near = |network: &str, subnet: &str| match (&vip.subnet, &vip.port, &vip.network) {
        (Some(wanted), _, _) => subnet == wanted,
        (None, Some(port), _) => {
            let port = view.ports.get(port);
            let mut ips = port.iter().flat_map(|port| &port.fixed_ips);
            ips.any(|ip| ip.subnet_id == subnet)
        }
        (None, None, wanted) => wanted.as_deref() == Some(network),
    };
    let interfaces = view.ports.iter().filter(|port| {
        port.device_owner.starts_with("network:") && {
            let mut ips = port.fixed_ips.iter();
            ips.any(|ip| is_near(&port.network_id, &ip.subnet_id))
        }
    });
    let routers = interfaces.filter_map(|port| view.routers.get(&port.device_id));
    let gateways = routers.filter_map(|router| router.external_gateway_info.as_ref());
    gateways
        .map(|gateway| gateway.network_id.as_str())
        .collect()
}

/// Rejects a floating IP on a port other than our load balancer's.
fn check_free(known: &FloatingIp, identity: &Identity, view: &View) -> Result<(), Rejection> {
    let Some(port) = &known.port_id else {
        return Ok(());
    };
    let is_ours = view.load_balancers.iter().any(|lb| {
        lb.vip_port_id == *port
            && (identity.owns(&lb.tags) || identity.is_legacy(&lb.name, &lb.tags))
    });
    match is_ours {
        true => Ok(()),
        false => Err(Rejection::new(format!(
            "spec.loadBalancerIP: the floating IP {} is on port {port} already: choose another, or take it off",
            known.floating_ip_address
        ))
        .seen_in(&[Kind::FloatingIps, Kind::LoadBalancers])),
    }
}

/// Requested subnets of the network, in the order of their names.
fn subnets(
    wanted: &FloatingSubnet,
    network: &str,
    asked: Option<&str>,
    view: &View,
) -> Result<Vec<String>, Rejection> {
    let (name, tags, source) = match wanted {
        FloatingSubnet::Any => return Ok(Vec::new()),
        FloatingSubnet::Id(id) => return Ok(vec![id.clone()]),
        FloatingSubnet::Matching { name, tags, source } => (name, tags, source),
    };
    let asked: Option<IpAddr> = asked.and_then(|ip| ip.parse().ok());
    let has_asked = |subnet: &Subnet| {
        let range = subnet.cidr.parse::<IpNet>();
        asked.is_none_or(|ip| range.is_ok_and(|range| range.contains(&ip)))
    };
    let fits = |subnet: &Subnet| {
        subnet.ip_version == 4
            && name.as_ref().is_none_or(|name| name.fits(&subnet.name))
            && tags.as_ref().is_none_or(|tags| tags.fits(&subnet.tags))
            && has_asked(subnet)
    };
    let all = view.subnets.of_parent(network);
    let mut found: Vec<_> = all.iter().filter(|subnet| fits(subnet)).collect();
    found.sort_by(|a, b| (&a.name, &a.id).cmp(&(&b.name, &b.id)));
    if found.is_empty() {
        return Err(Rejection::new(format!(
            "{source}: no subnet of the external network {network} that the project sees is as requested ({} are seen): \
             `openstack subnet list --network {network} --long` shows their names and tags",
            all.len()
        ))
        .seen_in(&[Kind::Subnets]));
    }
    Ok(found.iter().map(|subnet| subnet.id.clone()).collect())
}
