//! Translates the responses of the cloud into the world of its guests.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, SocketAddr};

use openstack::compute::HostedServer;
use openstack::loadbalancer::{self, LoadBalancer};
use openstack::network::{FloatingIp, Port};
use simulator::data_plane::{DataPlane, Forward, Instance, Listener, Member, Reach};

use super::observe::Observation;

/// [`DataPlane`] of the guests. Servers without user data are omitted: nothing would run on such a server.
pub(super) fn world(seen: &Observation) -> DataPlane {
    let ports = ports_by_server(&seen.ports);
    let mut instances: Vec<Instance> = seen
        .servers
        .iter()
        .filter(|hosted| exists(hosted) && hosted.user_data.is_some())
        .map(|hosted| {
            let ports = ports.get(hosted.server.id.as_str());
            instance(hosted, ports.map(Vec::as_slice).unwrap_or_default(), seen)
        })
        .collect();
    instances.sort_by(|a, b| a.id.cmp(&b.id));
    let mut addresses: Vec<Forward> = seen
        .floating_ips
        .iter()
        .filter_map(|found| forward(found, &seen.ports))
        .collect();
    addresses.sort_by_key(|forward| forward.floating);
    let balancers: HashMap<&str, &LoadBalancer> = seen
        .load_balancers
        .iter()
        .map(|balancer| (balancer.id.as_str(), balancer))
        .collect();
    let reach = reached(&seen.ports);
    let mut listeners: Vec<Listener> = seen
        .listeners
        .iter()
        .filter_map(|found| {
            let balancer = found.loadbalancers.first()?;
            let balancer = balancers.get(balancer.id.as_str())?;
            listener(found, balancer, &seen.members, &reach)
        })
        .collect();
    listeners.sort_by(|a, b| (a.vip, a.port, &a.id).cmp(&(b.vip, b.port, &b.id)));
    DataPlane {
        instances,
        addresses,
        listeners,
    }
}

/// [`Port`]s of each server, by its id.
pub(super) fn ports_by_server(all: &[Port]) -> HashMap<&str, Vec<&Port>> {
    let mut ports: HashMap<&str, Vec<&Port>> = HashMap::new();
    for port in all {
        ports.entry(&port.device_id).or_default().push(port);
    }
    ports
}

/// Positions of addresses in Nova's list of the server's addresses.
pub(super) fn places(hosted: &HostedServer) -> impl Fn(&str) -> usize {
    let networks = hosted.server.addresses.values();
    let addresses: Vec<&str> = networks.flatten().map(|it| it.addr.as_str()).collect();
    move |address| {
        let place = addresses.iter().position(|it| *it == address);
        place.unwrap_or(usize::MAX)
    }
}

/// True if the server is scheduled, and not deleted.
fn exists(hosted: &HostedServer) -> bool {
    let server = &hosted.server;
    !server.is_gone() && !matches!(server.status.as_str(), "BUILD" | "ERROR")
}

fn instance(hosted: &HostedServer, ports: &[&Port], seen: &Observation) -> Instance {
    let server = &hosted.server;
    let image = server.image_id().and_then(|id| seen.images.get(id));
    let count = |number: i64| u64::try_from(number).unwrap_or_default();
    let starts = seen.boots.get(&server.id).copied().unwrap_or_default();
    Instance {
        id: server.id.clone(),
        name: server.name.clone(),
        project_id: server.tenant_id.clone(),
        user_data: hosted.user_data.as_ref().map(|data| data.bytes().clone()),
        fixed_ips: fixed_ips(hosted, ports),
        availability_zone: server.availability_zone.clone(),
        metadata: server.metadata.clone(),
        hostname: hosted.hostname.clone(),
        running: server.status == "ACTIVE" && !server.is_deleting(),
        boot: starts.boot,
        disk: starts.disk,
        vcpus: u32::try_from(server.flavor.vcpus).unwrap_or(1).max(1),
        memory_mib: count(server.flavor.ram),
        disk_gib: count(server.flavor.disk),
        image: image.map_or_else(String::new, |image| image.name.clone()),
    }
}

/// Addresses of the [`Port`]s. Neutron lists ports in an arbitrary order; here the order is the order of Nova's
/// addresses of the server.
fn fixed_ips(hosted: &HostedServer, ports: &[&Port]) -> Vec<IpAddr> {
    let place = places(hosted);
    let mut fixed: Vec<&str> = ports
        .iter()
        .flat_map(|port| &port.fixed_ips)
        .map(|fixed| fixed.ip_address.as_str())
        .collect();
    fixed.sort_by_key(|address| (place(address), *address));
    fixed
        .iter()
        .filter_map(|address| address.parse().ok())
        .collect()
}

fn forward(found: &FloatingIp, ports: &[Port]) -> Option<Forward> {
    let port_id = found.port_id.clone().unwrap_or_default();
    let port = ports.iter().find(|port| port.id == port_id);
    let port = port.filter(|port| port.device_owner.starts_with("compute:"));
    Some(Forward {
        server: port.map(|port| port.device_id.clone()),
        floating: found.floating_ip_address.parse().ok()?,
        fixed: found.fixed_ip_address.as_deref()?.parse().ok()?,
        port_id,
    })
}

/// Servers by address.
fn reached(ports: &[Port]) -> Reach {
    let mut reach = Reach::default();
    for port in ports {
        for fixed in &port.fixed_ips {
            if let Ok(address) = fixed.ip_address.parse() {
                let (owner, device) = (&port.device_owner, &port.device_id);
                reach.add(owner, device, &fixed.subnet_id, address);
            }
        }
    }
    reach
}

/// A listener in service: once configured, an amphora also serves during updates.
fn listener(
    found: &loadbalancer::Listener,
    balancer: &LoadBalancer,
    members: &[loadbalancer::Member],
    reach: &Reach,
) -> Option<Listener> {
    let serves = |status: &str| matches!(status, "ACTIVE" | "PENDING_UPDATE");
    if !serves(&balancer.provisioning_status) || !serves(&found.provisioning_status) {
        return None;
    }
    let pool = found.default_pool_id.as_deref();
    let members: BTreeMap<&str, Member> = members
        .iter()
        .filter(|member| Some(&*member.pool_id) == pool)
        .filter_map(|member| {
            let address: IpAddr = member.address.parse().ok()?;
            let subnet = member.subnet_id.as_deref();
            let subnet = subnet.unwrap_or(&balancer.vip_subnet_id);
            let found = Member {
                at: SocketAddr::new(address, member.protocol_port),
                server: reach.server(subnet, address).map(str::to_owned),
            };
            Some((member.id.as_str(), found))
        })
        .collect();
    Some(Listener {
        id: found.id.clone(),
        load_balancer_id: balancer.id.clone(),
        project_id: balancer.project_id.clone(),
        vip: balancer.vip_address.parse().ok()?,
        vip_port_id: balancer.vip_port_id.clone(),
        vip_network_id: balancer.vip_network_id.clone(),
        port: found.protocol_port,
        protocol: found.protocol.clone(),
        members: members.into_values().collect(),
        allowed_cidrs: found.allowed_cidrs.clone(),
    })
}

#[cfg(test)]
mod tests;
