//! Translates the responses of the cloud into the hardware of its machines.
//!
//! Parts that no API shows are absent: vendor data, the files and device tags of a config drive, and the server's key
//! after the deletion of the key pair.

use std::collections::{BTreeMap, HashMap};
use std::ops::RangeInclusive;

use openstack::compute::HostedServer;
use openstack::network::{FixedIp, Network, Port, SecurityGroup, SecurityGroupRule, Subnet};
use simulator::machine::{self, Address, Image, Key, Machine, Route, Volume};

use super::observe::Observation;
use super::translate;

/// Resources of the cloud that are hardware, by id for a lookup.
struct Parts<'a> {
    seen: &'a Observation,
    ports: HashMap<&'a str, Vec<&'a Port>>,
    networks: HashMap<&'a str, &'a Network>,
    subnets: HashMap<&'a str, &'a Subnet>,
    groups: HashMap<&'a str, &'a SecurityGroup>,
}

/// Hardware of all servers that are not deleted, by id, as [`Machine`]s.
pub(super) fn machines(seen: &Observation) -> BTreeMap<String, Machine> {
    let found = &seen.hardware;
    let parts = Parts {
        seen,
        ports: translate::ports_by_server(&seen.ports),
        networks: found.networks.iter().map(|it| (&*it.id, it)).collect(),
        subnets: found.subnets.iter().map(|it| (&*it.id, it)).collect(),
        groups: found.groups.iter().map(|it| (&*it.id, it)).collect(),
    };
    let there = seen.servers.iter().filter(|it| !it.server.is_gone());
    there
        .map(|hosted| (hosted.server.id.clone(), parts.machine(hosted)))
        .collect()
}

impl Parts<'_> {
    fn machine(&self, hosted: &HostedServer) -> Machine {
        let ports = self.ports.get(hosted.server.id.as_str());
        let mut ports = ports.cloned().unwrap_or_default();
        // As in the addresses that Nova lists for the server: Neutron lists ports in an arbitrary order.
        let place = translate::places(hosted);
        ports.sort_by_key(|port| {
            let places = port.fixed_ips.iter().map(|fixed| place(&fixed.ip_address));
            (places.min().unwrap_or(usize::MAX), &port.id)
        });
        Machine {
            image: self.image(hosted),
            flavor: hosted.server.flavor.original_name.clone(),
            ports: ports.into_iter().map(|port| self.port(port)).collect(),
            volumes: self.volumes(hosted),
            config_drive: hosted.has_config_drive(),
            key: self.key(hosted),
        }
    }

    fn image(&self, hosted: &HostedServer) -> Image {
        let id = hosted.server.image_id().unwrap_or_default();
        let Some(found) = self.seen.images.get(id) else {
            return Image {
                id: id.to_owned(),
                ..Image::default()
            };
        };
        let properties = found.properties.iter();
        Image {
            id: id.to_owned(),
            name: found.name.clone(),
            properties: properties
                .filter(|(name, _)| Image::is_property(name))
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
        }
    }

    fn port(&self, port: &Port) -> machine::Port {
        let network = self.networks.get(port.network_id.as_str());
        let mtu = network.and_then(|network| u32::try_from(network.mtu).ok());
        machine::Port {
            id: port.id.clone(),
            mac_address: port.mac_address.clone(),
            network_id: port.network_id.clone(),
            network_name: network.map_or_else(String::new, |network| network.name.clone()),
            mtu: mtu.filter(|mtu| *mtu > 0).unwrap_or(1500),
            addresses: port
                .fixed_ips
                .iter()
                .filter_map(|it| self.address(it))
                .collect(),
            open: self.open(port),
        }
    }

    fn address(&self, fixed: &FixedIp) -> Option<Address> {
        let subnet = self.subnets.get(fixed.subnet_id.as_str())?;
        let route = |route: &openstack::network::HostRoute| Route {
            destination: route.destination.clone(),
            nexthop: route.nexthop.clone(),
        };
        Some(Address {
            address: fixed.ip_address.parse().ok()?,
            subnet_id: subnet.id.clone(),
            cidr: subnet.cidr.parse().ok()?,
            gateway: subnet.gateway_ip.as_deref().and_then(|it| it.parse().ok()),
            dns_nameservers: subnet.dns_nameservers.clone(),
            routes: subnet.host_routes.iter().map(route).collect(),
            dhcp: subnet.enable_dhcp,
        })
    }

    /// TCP ports of a [`Port`] reachable from everywhere.
    fn open(&self, port: &Port) -> Vec<RangeInclusive<u16>> {
        let groups = port.security_groups.iter();
        groups
            .filter_map(|id| self.groups.get(id.as_str()))
            .flat_map(|group| &group.rules)
            .filter_map(open)
            .collect()
    }

    fn volumes(&self, hosted: &HostedServer) -> Vec<Volume> {
        let attached = hosted.server.volumes.iter();
        attached
            .map(|attached| {
                let all = &self.seen.hardware.volumes;
                let found = all.iter().find(|volume| volume.id == attached.id);
                let here = found.and_then(|volume| {
                    let mut attachments = volume.attachments.iter();
                    attachments.find(|it| it.server_id == hosted.server.id)
                });
                Volume {
                    id: attached.id.clone(),
                    device: here.map_or_else(String::new, |it| it.device.clone()),
                    size_gib: found.map_or(0, |it| it.size.unsigned_abs()),
                }
            })
            .collect()
    }

    fn key(&self, hosted: &HostedServer) -> Option<Key> {
        let name = &hosted.server.key_name;
        let known = &self.seen.hardware.keys;
        let public = known
            .get(&(hosted.user_id.clone(), name.clone()))?
            .as_ref()?;
        Some(Key {
            name: name.clone(),
            public: public.trim().to_owned(),
        })
    }
}

/// TCP ports opened by a [`SecurityGroupRule`] for everyone.
fn open(rule: &SecurityGroupRule) -> Option<RangeInclusive<u16>> {
    let tcp = matches!(rule.protocol.as_deref(), Some("tcp" | "6"));
    let from = rule.remote_ip_prefix.as_deref().unwrap_or_default();
    let for_all = rule.remote_group_id.is_none()
        && rule.remote_address_group_id.is_none()
        && machine::is_everywhere(from);
    if rule.direction != "ingress" || !tcp || !for_all {
        return None;
    }
    let number = |number: Option<i64>| u16::try_from(number?).ok().filter(|it| *it > 0);
    Some(number(rule.port_range_min)?..=number(rule.port_range_max)?)
}

#[cfg(test)]
mod tests;
