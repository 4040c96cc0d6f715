//! Servers behind fixed addresses.
//!
//! Fixed addresses are not unique in a cloud: each network may have the same subnet. Machines share one network, so
//! only one of them can have an address: the machine of the first server, until its deletion. A later server with the
//! same address does not get it.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use crate::data_plane::{DataPlane, Member};
use crate::machine::{Machine, Servers};

/// Servers with their fixed addresses.
pub(crate) struct Hosts {
    servers: Arc<dyn Servers>,
    holders: BTreeMap<IpAddr, String>,
}

impl Hosts {
    pub(crate) fn new(servers: Arc<dyn Servers>) -> Self {
        Self {
            servers,
            holders: BTreeMap::new(),
        }
    }

    /// Gives free addresses to the servers of `world`. Of several new servers with the same address, none gets it.
    pub(crate) fn follow(&mut self, world: &DataPlane) {
        let mut claims: BTreeMap<IpAddr, Vec<&str>> = BTreeMap::new();
        for instance in &world.instances {
            for address in &instance.fixed_ips {
                claims.entry(*address).or_default().push(&instance.id);
            }
        }
        self.holders.retain(|address, holder| {
            let claims = claims.get(address);
            claims.is_some_and(|claims| claims.contains(&holder.as_str()))
        });
        for (address, claims) in claims {
            if let [only] = claims.as_slice() {
                let holder = self.holders.entry(address);
                holder.or_insert_with(|| (*only).to_owned());
            }
        }
    }

    /// True if a machine has the address.
    pub(crate) fn has(&self, address: IpAddr) -> bool {
        self.holders.contains_key(&address)
    }

    /// Returns the machine with the address on the port with this id.
    pub(crate) fn behind(&self, address: IpAddr, port_id: &str) -> Option<Machine> {
        let machine = self.servers.machine(self.holders.get(&address)?)?;
        let has_port = machine.ports.iter().any(|port| port.id == port_id);
        has_port.then_some(machine)
    }

    /// True if the address of a member belongs to the machine of another server than the one behind the load balancer.
    pub(crate) fn is_elsewhere(&self, member: &Member) -> bool {
        let holder = self.holders.get(&member.at.ip());
        holder.is_some_and(|holder| Some(holder) != member.server.as_ref())
    }
}
