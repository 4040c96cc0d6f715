//! Views of the whole cloud: the world for guests, and counts of resources.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::Value;

use super::document::{Doc, Fields};
use super::kind::Kind;
use super::network;
use super::state::State;
use crate::data_plane::{DataPlane, Forward, Instance, Listener, Member, Reach};

/// Returns the [`DataPlane`] for guests. Unchanged parts are shared with `before`.
pub(crate) fn world(state: &State, before: &DataPlane) -> DataPlane {
    let mut addresses: Vec<Forward> = state
        .all(Kind::FloatingIp)
        .filter_map(|doc| forward(state, doc))
        .collect();
    addresses.sort_by_key(|forward| forward.floating);
    let reach = OnceCell::new();
    let mut listeners: Vec<Listener> = state
        .all(Kind::Listener)
        .filter_map(|doc| listener(state, doc, reach.get_or_init(|| reached(state))))
        .collect();
    listeners.sort_by_key(|listener| (listener.vip, listener.port));
    let instances = state
        .all(Kind::Server)
        .filter(|doc| doc.text("status") != "BUILD" && doc.text("status") != "ERROR")
        .map(|doc| instance(state, doc, before))
        .collect();
    DataPlane {
        instances,
        addresses,
        listeners,
    }
}

/// Resources by project name and type.
pub(crate) fn resources(state: &State) -> BTreeMap<String, BTreeMap<String, usize>> {
    let mut out: BTreeMap<String, BTreeMap<String, usize>> = BTreeMap::new();
    for kind in Kind::ALL.iter().copied().filter(|kind| kind.counted()) {
        for doc in state.all(kind) {
            let project = doc.text("project_id");
            let name = state
                .get(Kind::Project, project)
                .map_or_else(|| project.to_owned(), |doc| doc.text("name").to_owned());
            *out.entry(name)
                .or_default()
                .entry(kind.name().to_owned())
                .or_default() += 1;
        }
    }
    out
}

fn instance(state: &State, doc: &Doc, before: &DataPlane) -> Instance {
    let id = doc.text("id");
    let ports = network::of_device(state, id);
    let metadata = doc.get("metadata").and_then(Value::as_object);
    let count = |name: &str| doc.number(name).unsigned_abs();
    Instance {
        id: id.to_owned(),
        name: doc.text("name").to_owned(),
        project_id: doc.text("project_id").to_owned(),
        user_data: user_data(doc, before),
        fixed_ips: ports.iter().flat_map(|port| fixed_ips(port)).collect(),
        availability_zone: doc.text("_zone").to_owned(),
        metadata: metadata
            .into_iter()
            .flatten()
            .map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_owned()))
            .collect(),
        hostname: doc.text("_hostname").to_owned(),
        running: matches!(doc.text("status"), "ACTIVE" | "REBOOT" | "HARD_REBOOT")
            && doc.text("_task") != "deleting",
        boot: count("_boot"),
        disk: count("_disks"),
        vcpus: u32::try_from(doc.number("_vcpus")).unwrap_or(1),
        memory_mib: count("_ram"),
        disk_gib: count("_disk"),
        image: doc.text("_image_name").to_owned(),
    }
}

/// Returns the decoded user data, which are decoded once for each disk: only a rebuild changes the user data of a server.
fn user_data(doc: &Doc, before: &DataPlane) -> Option<Bytes> {
    let id = doc.text("id");
    let known = before
        .instances
        .binary_search_by(|instance| instance.id.as_str().cmp(id));
    let disk = doc.number("_disks").unsigned_abs();
    if let Ok(index) = known
        && before.instances[index].disk == disk
    {
        return before.instances[index].user_data.clone();
    }
    let text: String = doc.text("_user_data").split_ascii_whitespace().collect();
    STANDARD
        .decode(text)
        .ok()
        .filter(|data| !data.is_empty())
        .map(Bytes::from)
}

fn fixed_ips(port: &Doc) -> Vec<IpAddr> {
    network::addresses(port)
        .filter_map(|address| address.parse().ok())
        .collect()
}

fn forward(state: &State, doc: &Doc) -> Option<Forward> {
    let port = state.get(Kind::Port, doc.text("port_id"));
    let port = port.filter(|port| port.text("device_owner").starts_with("compute:"));
    Some(Forward {
        server: port.map(|port| port.text("device_id").to_owned()),
        floating: doc.text("floating_ip_address").parse().ok()?,
        fixed: doc.text("fixed_ip_address").parse().ok()?,
        port_id: doc.text("port_id").to_owned(),
    })
}

/// Returns the servers by address.
fn reached(state: &State) -> Reach {
    let mut reach = Reach::default();
    for port in state.all(Kind::Port) {
        let (owner, device) = (port.text("device_owner"), port.text("device_id"));
        for fixed in port.list("fixed_ips") {
            let address = fixed["ip_address"].as_str().and_then(|it| it.parse().ok());
            if let (Some(subnet), Some(address)) = (fixed["subnet_id"].as_str(), address) {
                reach.add(owner, device, subnet, address);
            }
        }
    }
    reach
}

fn listener(state: &State, doc: &Doc, reach: &Reach) -> Option<Listener> {
    let balancer = state.get(Kind::LoadBalancer, doc.text("loadbalancer_id"))?;
    // The data plane keeps running while PENDING_UPDATE; it is off before the first and after the last configuration.
    let serving = |doc: &Doc| {
        doc.flag("admin_state_up")
            && matches!(doc.text("provisioning_status"), "ACTIVE" | "PENDING_UPDATE")
    };
    if !serving(&balancer) || !serving(doc) {
        return None;
    }
    let members = state
        .by(Kind::Member, "pool_id", doc.text("default_pool_id"))
        .iter()
        .filter(|member| member.flag("admin_state_up") && !member.flag("backup"))
        .filter_map(|member| {
            let address: IpAddr = member.text("address").parse().ok()?;
            let port = u16::try_from(member.number("protocol_port")).ok()?;
            let subnet = match member.text("subnet_id") {
                "" => balancer.text("vip_subnet_id"),
                subnet => subnet,
            };
            Some(Member {
                at: SocketAddr::new(address, port),
                server: reach.server(subnet, address).map(str::to_owned),
            })
        })
        .collect();
    Some(Listener {
        id: doc.text("id").to_owned(),
        load_balancer_id: balancer.text("id").to_owned(),
        project_id: balancer.text("project_id").to_owned(),
        vip: balancer.text("vip_address").parse().ok()?,
        vip_port_id: balancer.text("vip_port_id").to_owned(),
        vip_network_id: balancer.text("vip_network_id").to_owned(),
        port: u16::try_from(doc.number("protocol_port")).ok()?,
        protocol: doc.text("protocol").to_owned(),
        members,
        allowed_cidrs: doc.texts("allowed_cidrs").map(str::to_owned).collect(),
    })
}
