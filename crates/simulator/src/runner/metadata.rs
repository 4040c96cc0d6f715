//! The content of Nova's metadata service and config drive, by path.

use std::net::IpAddr;

use serde_json::{Value, json};

use crate::data_plane::Instance;
use crate::machine::{Address, Machine, Port};

/// Versions of OpenStack metadata that Nova lists; all have the same content here.
const VERSIONS: [&str; 10] = [
    "2012-08-10",
    "2013-04-04",
    "2013-10-17",
    "2015-10-15",
    "2016-06-30",
    "2016-10-06",
    "2017-02-22",
    "2018-08-27",
    "2020-10-14",
    "latest",
];

/// Versions of EC2 metadata.
const EC2_VERSIONS: [&str; 10] = [
    "1.0",
    "2007-01-19",
    "2007-03-01",
    "2007-08-29",
    "2007-10-10",
    "2007-12-15",
    "2008-02-01",
    "2008-09-01",
    "2009-04-04",
    "latest",
];

/// Returns the content of a path; `None` if Nova has none.
pub(crate) fn content(instance: &Instance, machine: &Machine, path: &str) -> Option<Vec<u8>> {
    let path = path.trim_matches('/');
    let parts: Vec<&str> = path.split('/').collect();
    match parts.as_slice() {
        [""] => Some(listing(EC2_VERSIONS.iter().chain(&["openstack"]))),
        ["openstack"] => Some(listing(VERSIONS.iter())),
        ["openstack", version] if VERSIONS.contains(version) => Some(listing(
            [
                "meta_data.json",
                "network_data.json",
                "user_data",
                "vendor_data.json",
                "vendor_data2.json",
            ]
            .iter(),
        )),
        ["openstack", version, file] if VERSIONS.contains(version) => {
            openstack(instance, machine, file)
        }
        ["ec2", "latest", "meta-data.json"] => {
            Some(ec2(instance, machine).to_string().into_bytes())
        }
        ["ec2", "latest", "user-data"] => user_data(instance),
        [version] if EC2_VERSIONS.contains(version) => {
            Some(listing(["meta-data/", "user-data"].iter()))
        }
        [version, "user-data"] if EC2_VERSIONS.contains(version) => user_data(instance),
        [version, "meta-data", rest @ ..] if EC2_VERSIONS.contains(version) => {
            below(&ec2(instance, machine), rest)
        }
        _ => None,
    }
}

fn openstack(instance: &Instance, machine: &Machine, file: &str) -> Option<Vec<u8>> {
    match file {
        "meta_data.json" => Some(meta_data(instance, machine).to_string().into_bytes()),
        "network_data.json" => Some(network_data(machine).to_string().into_bytes()),
        "vendor_data.json" => Some(b"{}".to_vec()),
        "vendor_data2.json" => Some(br#"{"static": {}}"#.to_vec()),
        "user_data" => user_data(instance),
        _ => None,
    }
}

fn user_data(instance: &Instance) -> Option<Vec<u8>> {
    instance.user_data.as_ref().map(|data| data.to_vec())
}

/// Returns the host name of the server, with Nova's default of `dhcp_domain`.
fn host_name(instance: &Instance) -> String {
    format!("{}.novalocal", instance.hostname)
}

fn meta_data(instance: &Instance, machine: &Machine) -> Value {
    let mut data = json!({
        "uuid": instance.id,
        "name": instance.name,
        "hostname": host_name(instance),
        "availability_zone": instance.availability_zone,
        "project_id": instance.project_id,
        "launch_index": 0,
        "devices": [],
        "dedicated_cpus": [],
    });
    if !instance.metadata.is_empty() {
        data["meta"] = json!(instance.metadata);
    }
    if let Some(key) = &machine.key {
        data["public_keys"] = json!({&key.name: key.public});
        data["keys"] = json!([{"name": key.name, "type": "ssh", "data": key.public}]);
    }
    data
}

fn network_data(machine: &Machine) -> Value {
    let link = |port: &Port| format!("tap{}", port.id.chars().take(11).collect::<String>());
    let links: Vec<Value> = machine
        .ports
        .iter()
        .map(|port| {
            json!({"id": link(port), "vif_id": port.id, "type": "ovs", "mtu": port.mtu,
                "ethernet_mac_address": port.mac_address})
        })
        .collect();
    let pairs = machine
        .ports
        .iter()
        .flat_map(|port| port.addresses.iter().map(move |address| (port, address)));
    let networks: Vec<Value> = pairs
        .clone()
        .enumerate()
        .map(|(number, (port, address))| network(number, &link(port), port, address))
        .collect();
    let mut services: Vec<Value> = Vec::new();
    for server in pairs.flat_map(|(_, address)| &address.dns_nameservers) {
        let service = json!({"type": "dns", "address": server});
        if !services.contains(&service) {
            services.push(service);
        }
    }
    json!({"links": links, "networks": networks, "services": services})
}

fn network(number: usize, link: &str, port: &Port, address: &Address) -> Value {
    let version = if address.address.is_ipv4() { 4 } else { 6 };
    let mut network =
        json!({"id": format!("network{number}"), "link": link, "network_id": port.network_id});
    if address.dhcp {
        network["type"] = json!(format!("ipv{version}_dhcp"));
        return network;
    }
    let mut routes = Vec::new();
    if let Some(gateway) = address.gateway {
        let any = if gateway.is_ipv4() { "0.0.0.0" } else { "::" };
        routes.push(json!({"network": any, "netmask": any, "gateway": gateway}));
    }
    for route in &address.routes {
        if let Ok(range) = route.destination.parse::<ipnet::IpNet>() {
            routes.push(json!({"network": range.network(), "netmask": range.netmask(), "gateway": route.nexthop}));
        }
    }
    network["type"] = json!(format!("ipv{version}"));
    network["ip_address"] = json!(address.address);
    network["netmask"] = json!(address.cidr.netmask());
    network["routes"] = json!(routes);
    let services = address.dns_nameservers.iter();
    network["services"] = services
        .map(|server| json!({"type": "dns", "address": server}))
        .collect();
    network
}

/// Returns the EC2 metadata as a tree: an object is a directory.
fn ec2(instance: &Instance, machine: &Machine) -> Value {
    let address = instance.fixed_ips.iter().find(|address| address.is_ipv4());
    let mut tree = json!({
        "ami-id": format!("ami-{}", short(&machine.image.id)),
        "ami-launch-index": "0",
        // Nova's own literal: clients that read the EC2 metadata of a real cloud get this value.
        "ami-manifest-path": "FIXME",
        "block-device-mapping": {"ami": "vda", "root": "/dev/vda"},
        "hostname": host_name(instance),
        "instance-action": "none",
        "instance-id": format!("i-{}", short(&instance.id)),
        "instance-type": machine.flavor,
        "local-hostname": host_name(instance),
        "local-ipv4": address.map_or_else(String::new, IpAddr::to_string),
        "placement": {"availability-zone": instance.availability_zone},
        "public-hostname": host_name(instance),
        "public-ipv4": "",
        "reservation-id": format!("r-{}", short(&instance.id)),
        "security-groups": "default",
    });
    if let Some(key) = &machine.key {
        tree["public-keys"] =
            json!({"0": {"openssh-key": key.public, "_name": format!("0={}", key.name)}});
    }
    tree
}

/// Returns the first eight hexadecimal digits of an id.
fn short(id: &str) -> String {
    id.chars().filter(char::is_ascii_hexdigit).take(8).collect()
}

/// Returns the content at a path of the tree.
fn below(tree: &Value, path: &[&str]) -> Option<Vec<u8>> {
    let mut at = tree;
    for part in path.iter().filter(|part| !part.is_empty()) {
        at = at.get(part)?;
    }
    match at {
        Value::String(text) => Some(text.clone().into_bytes()),
        Value::Object(entries) => {
            let lines = entries.iter().filter(|(name, _)| !name.starts_with('_'));
            let lines: Vec<String> = lines
                .map(|(name, value)| match value.get("_name") {
                    Some(Value::String(name)) => name.clone(),
                    _ if value.is_object() => format!("{name}/"),
                    _ => name.clone(),
                })
                .collect();
            Some(lines.join("\n").into_bytes())
        }
        _ => None,
    }
}

fn listing<'a>(names: impl Iterator<Item = &'a &'a str>) -> Vec<u8> {
    names
        .copied()
        .collect::<Vec<&str>>()
        .join("\n")
        .into_bytes()
}

#[cfg(test)]
mod tests;
