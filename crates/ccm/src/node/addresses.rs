//! Addresses of a Node, in the order of the Go manager.

use std::net::IpAddr;

use api::k8s_openapi::api::core::v1::NodeAddress;
use ipnet::IpNet;
use openstack::compute::{Address, Server};
use openstack::network::Port;

use cloud_conf::Networking;

#[cfg(test)]
mod tests;

pub(crate) const INTERNAL: &str = "InternalIP";
pub(crate) const EXTERNAL: &str = "ExternalIP";
pub(crate) const HOSTNAME: &str = "Hostname";

/// Subport of a trunk of the server, with the name of the network.
#[derive(Clone, Debug)]
pub(crate) struct Subport<'a> {
    pub(crate) network: &'a str,
    pub(crate) port: &'a Port,
}

/// Addresses of a [`Server`] in the cloud.
pub(crate) fn of_server(
    server: &Server,
    ports: &[impl AsRef<Port>],
    subports: &[Subport<'_>],
    networking: &Networking,
) -> Vec<NodeAddress> {
    let mut list = List {
        found: Vec::new(),
        without_ipv6: networking.ipv6_support_disabled,
    };
    for port in ports
        .iter()
        .map(AsRef::as_ref)
        .filter(|port| port.status == "ACTIVE")
    {
        for fixed in &port.fixed_ips {
            list.add(INTERNAL, &fixed.ip_address);
        }
    }
    list.add(EXTERNAL, &server.access_ipv4);
    list.add(EXTERNAL, &server.access_ipv6);
    if let Some(name) = server
        .metadata
        .get("hostname")
        .filter(|name| !name.is_empty())
    {
        list.push(HOSTNAME, name);
    }
    for (network, address) in by_network(server, subports) {
        let named = |names: &[String]| names.iter().any(|name| name == network);
        if address.kind == "floating" {
            list.add(EXTERNAL, &address.addr);
        } else if named(&networking.public_network_names) {
            list.remove(&address.addr);
            list.add(EXTERNAL, &address.addr);
        } else if networking.internal_network_names.is_empty()
            || named(&networking.internal_network_names)
        {
            list.add(INTERNAL, &address.addr);
        } else {
            list.remove(&address.addr);
        }
    }
    sort(&mut list.found, &networking.address_sort_order);
    list.found
}

/// Reason why the addresses of a [`Server`] are too few for a Node; `None` if they suffice. A host name alone is not
/// enough, and neither is a floating IP if cloud.conf names internal networks and no public ones.
pub(crate) fn problem(
    server: &Server,
    subports: &[Subport<'_>],
    found: &[NodeAddress],
    networking: &Networking,
) -> Option<String> {
    let internal = &networking.internal_network_names;
    let needs_internal = !internal.is_empty() && networking.public_network_names.is_empty();
    let counts = |address: &NodeAddress| {
        address.type_ == INTERNAL || address.type_ == EXTERNAL && !needs_internal
    };
    if found.iter().any(counts) {
        return None;
    }
    let server_name = format!("server {} ({})", server.name, server.id);
    let mut networks: Vec<&str> = by_network(server, subports)
        .into_iter()
        .map(|(network, _)| network)
        .collect();
    networks.dedup();
    let networks = networks.join(", ");
    Some(if networks.is_empty() {
        format!("{server_name} has no address: attach it to a network")
    } else if internal.is_empty() {
        format!(
            "{server_name} has addresses of IPv6 alone (in {networks}), and ipv6-support-disabled is set: correct \
             [Networking] in cloud.conf, or give the server an address of IPv4"
        )
    } else {
        format!(
            "{server_name} has no address in the networks of internal-network-name ({}), but in {networks}: correct \
             [Networking] in cloud.conf, or attach the server to such a network",
            internal.join(", ")
        )
    })
}

/// Addresses of a [`Server`] and of its [`Subport`]s, sorted by network name.
fn by_network<'a>(server: &'a Server, subports: &'a [Subport<'a>]) -> Vec<(&'a str, Address)> {
    let of_networks = server.addresses.iter().flat_map(|(network, list)| {
        list.iter()
            .map(move |address| (network.as_str(), address.clone()))
    });
    let carried = subports.iter().flat_map(|subport| {
        subport.port.fixed_ips.iter().map(|fixed| {
            let address = Address {
                addr: fixed.ip_address.clone(),
                kind: "fixed".to_owned(),
                ..Address::default()
            };
            (subport.network, address)
        })
    });
    let mut all: Vec<_> = of_networks.chain(carried).collect();
    all.sort_by_key(|(network, _)| *network);
    all
}

struct List {
    found: Vec<NodeAddress>,
    without_ipv6: bool,
}

impl List {
    /// Adds an address, unless present with the same type.
    fn add(&mut self, type_: &str, address: &str) {
        let Ok(ip) = address.parse::<IpAddr>() else {
            return;
        };
        if !(ip.is_ipv6() && self.without_ipv6) {
            self.push(type_, address);
        }
    }

    fn push(&mut self, type_: &str, address: &str) {
        let item = NodeAddress {
            type_: type_.to_owned(),
            address: address.to_owned(),
        };
        if !self.found.contains(&item) {
            self.found.push(item);
        }
    }

    fn remove(&mut self, address: &str) {
        self.found.retain(|found| found.address != address);
    }
}

/// Sorts addresses in one of `ranges` first, by range and then by address; the others keep their order.
fn sort(addresses: &mut [NodeAddress], ranges: &[IpNet]) {
    addresses.sort_by_key(|address| {
        let ip = address.address.parse::<IpAddr>().ok();
        let rank = ip.and_then(|ip| ranges.iter().position(|range| range.contains(&ip)));
        (rank.unwrap_or(usize::MAX), rank.and(ip))
    });
}

/// Addresses in the cloud, with the kubelet's host name if the cloud has none. Addresses given to the kubelet
/// (`--node-ip`) come first and are the only ones of their types.
///
/// # Errors
/// Names the address that the server does not have.
pub(crate) fn with_kubelet(
    cloud: Vec<NodeAddress>,
    kubelet: &[NodeAddress],
    provided: Option<&str>,
) -> Result<Vec<NodeAddress>, String> {
    let mut list = cloud;
    let hostname = kubelet.iter().find(|address| address.type_ == HOSTNAME);
    if let Some(hostname) =
        hostname.filter(|_| !list.iter().any(|address| address.type_ == HOSTNAME))
    {
        list.push(hostname.clone());
    }
    let provided: Vec<&str> = provided
        .unwrap_or_default()
        .split(',')
        .map(str::trim)
        .filter(|ip| !ip.is_empty())
        .collect();
    let same = |address: &NodeAddress, ip: &str| match (
        address.address.parse::<IpAddr>(),
        ip.parse::<IpAddr>(),
    ) {
        (Ok(a), Ok(b)) => a == b,
        _ => false,
    };
    let mut first: Vec<NodeAddress> = Vec::new();
    for ip in &provided {
        let (before, is_same) = (first.clone(), |address: &&NodeAddress| same(address, ip));
        // The API server rejects a repeated address.
        let new = list.iter().filter(is_same);
        first.extend(new.filter(|address| !before.contains(address)).cloned());
        if !first.iter().any(|address| same(address, ip)) {
            let known: Vec<&str> = list
                .iter()
                .map(|address| address.address.as_str())
                .collect();
            return Err(format!(
                "the kubelet was given the address {ip} (--node-ip), which its server does not have; the server has {}",
                known.join(", ")
            ));
        }
    }
    list.retain(|address| !first.iter().any(|kept| kept.type_ == address.type_));
    first.extend(list);
    Ok(first)
}
