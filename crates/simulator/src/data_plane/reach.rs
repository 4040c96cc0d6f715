//! Server of an address, as seen from a subnet: addresses are unique in a subnet alone.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

/// Ports of servers, and the subnets connected by routers.
#[derive(Debug, Default)]
pub struct Reach {
    /// Servers by subnet and address.
    servers: HashMap<(String, IpAddr), String>,
    /// Routers with an interface in a subnet.
    routers: HashMap<String, Vec<String>>,
    /// Subnets in which a router has an interface.
    subnets: HashMap<String, Vec<String>>,
}

impl Reach {
    /// Takes in a fixed address of a port, by the port's `device_owner` and `device_id`.
    pub fn add(&mut self, owner: &str, device: &str, subnet: &str, address: IpAddr) {
        let (subnet, device) = (subnet.to_owned(), device.to_owned());
        if owner.starts_with("compute:") {
            self.servers.insert((subnet, address), device);
        } else if owner.starts_with("network:router_interface") {
            let routers = self.routers.entry(subnet.clone()).or_default();
            routers.push(device.clone());
            self.subnets.entry(device).or_default().push(subnet);
        }
    }

    /// Returns the server with an address in a subnet, or else in a subnet connected by a router.
    #[must_use]
    pub fn server(&self, subnet: &str, address: IpAddr) -> Option<&str> {
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
