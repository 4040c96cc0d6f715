//! Which server has an address, as seen from a subnet: addresses are unique in a subnet alone.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

use super::document::{Doc, Fields};
use super::kind::Kind;
use super::state::State;

/// The ports of servers, and the subnets that routers connect.
#[derive(Debug, Default)]
pub(crate) struct Reach {
    /// Servers by subnet and address.
    servers: HashMap<(String, IpAddr), String>,
    /// The routers with an interface in a subnet.
    routers: HashMap<String, Vec<String>>,
    /// The subnets in which a router has an interface.
    subnets: HashMap<String, Vec<String>>,
}

impl Reach {
    pub(crate) fn of(state: &State) -> Self {
        let mut reach = Self::default();
        for port in state.all(Kind::Port) {
            let (owner, device) = (port.text("device_owner"), port.text("device_id"));
            for (subnet, address) in fixed(port) {
                if owner.starts_with("compute:") {
                    reach.servers.insert((subnet, address), device.to_owned());
                } else if owner.starts_with("network:router_interface") {
                    let routers = reach.routers.entry(subnet.clone()).or_default();
                    routers.push(device.to_owned());
                    let subnets = reach.subnets.entry(device.to_owned()).or_default();
                    subnets.push(subnet);
                }
            }
        }
        reach
    }

    /// The server with an address in a subnet, or else in one that a router connects with it.
    pub(crate) fn server(&self, subnet: &str, address: IpAddr) -> Option<&str> {
        let of = |subnet: &str| self.servers.get(&(subnet.to_owned(), address));
        if let Some(server) = of(subnet) {
            return Some(server);
        }
        let routers = self.routers.get(subnet).into_iter().flatten();
        let near = routers.filter_map(|router| self.subnets.get(router));
        let near: HashSet<&String> = near.flatten().collect();
        near.into_iter()
            .find_map(|subnet| of(subnet))
            .map(String::as_str)
    }
}

fn fixed(port: &Doc) -> impl Iterator<Item = (String, IpAddr)> {
    port.list("fixed_ips").iter().filter_map(|fixed| {
        let subnet = fixed["subnet_id"].as_str()?.to_owned();
        Some((subnet, fixed["ip_address"].as_str()?.parse().ok()?))
    })
}
