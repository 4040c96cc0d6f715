//! Nova's view of a server, by microversion.
//!
//! Serialised directly from the stored [`Doc`], since lists contain a thousand servers.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use super::servers::{Link, bookmark, links};
use crate::cloud::call::Call;
use crate::cloud::document::{Doc, Fields};
use crate::cloud::identity_hash;
use crate::cloud::kind::Kind;
use crate::cloud::network;

/// Server in Nova's form. A field that is `None` does not exist in the microversion or for the caller; `Some(None)` is
/// null.
#[derive(Serialize)]
pub(crate) struct Server<'a> {
    id: &'a str,
    name: &'a str,
    status: &'a str,
    tenant_id: &'a str,
    user_id: &'a str,
    metadata: &'a Value,
    #[serde(rename = "hostId")]
    host_id: String,
    image: Image<'a>,
    flavor: Flavor<'a>,
    created: &'a str,
    updated: &'a str,
    addresses: BTreeMap<String, Vec<Address>>,
    #[serde(rename = "accessIPv4")]
    access_v4: &'a str,
    #[serde(rename = "accessIPv6")]
    access_v6: &'a str,
    links: [Link; 2],
    #[serde(rename = "OS-DCF:diskConfig")]
    disk_config: &'a str,
    config_drive: &'static str,
    key_name: Option<&'a str>,
    #[serde(rename = "OS-EXT-AZ:availability_zone")]
    zone: &'a str,
    #[serde(rename = "OS-SRV-USG:launched_at")]
    launched_at: &'a Value,
    #[serde(rename = "OS-SRV-USG:terminated_at")]
    terminated_at: &'a Value,
    #[serde(rename = "OS-EXT-STS:task_state")]
    task_state: Option<&'a str>,
    #[serde(rename = "OS-EXT-STS:vm_state")]
    vm_state: &'static str,
    #[serde(rename = "OS-EXT-STS:power_state")]
    power_state: u8,
    #[serde(rename = "os-extended-volumes:volumes_attached")]
    volumes: Vec<Volume<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<u8>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    security_groups: Vec<Group>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) fault: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    locked: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tags: Option<&'a [Value]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trusted_image_certificates: Option<Option<()>>,
    /// Left out of lists by Nova because of the cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) server_groups: Option<Vec<&'a str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    locked_reason: Option<Option<()>>,
    #[serde(
        rename = "OS-EXT-SRV-ATTR:hostname",
        skip_serializing_if = "Option::is_none"
    )]
    hostname: Option<&'a str>,
    #[serde(flatten)]
    placed: Option<Placed<'a>>,
    #[serde(flatten)]
    creation: Option<Creation<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    host_status: Option<&'static str>,
}

/// Host of a server; for administrators.
#[derive(Serialize)]
struct Placed<'a> {
    #[serde(rename = "OS-EXT-SRV-ATTR:host")]
    host: Option<&'a str>,
    #[serde(rename = "OS-EXT-SRV-ATTR:hypervisor_hostname")]
    hypervisor: Option<&'a str>,
    #[serde(rename = "OS-EXT-SRV-ATTR:instance_name")]
    instance_name: String,
}

/// Request that created a server; for administrators, from 2.3.
#[derive(Serialize)]
struct Creation<'a> {
    #[serde(rename = "OS-EXT-SRV-ATTR:user_data")]
    user_data: Option<&'a str>,
    #[serde(rename = "OS-EXT-SRV-ATTR:root_device_name")]
    root_device: &'static str,
    #[serde(rename = "OS-EXT-SRV-ATTR:launch_index")]
    launch_index: u8,
    #[serde(rename = "OS-EXT-SRV-ATTR:reservation_id")]
    reservation: String,
    #[serde(rename = "OS-EXT-SRV-ATTR:kernel_id")]
    kernel: &'static str,
    #[serde(rename = "OS-EXT-SRV-ATTR:ramdisk_id")]
    ramdisk: &'static str,
}

/// Image or, up to 2.46, a flavor.
#[derive(Serialize)]
struct Reference<'a> {
    id: &'a str,
    links: [Link; 1],
}

#[derive(Serialize)]
#[serde(untagged)]
enum Image<'a> {
    /// Empty string, since the server booted from a volume.
    Volume(&'static str),
    Of(Reference<'a>),
}

#[derive(Serialize)]
#[serde(untagged)]
enum Flavor<'a> {
    Of(Reference<'a>),
    Embedded {
        vcpus: i64,
        ram: i64,
        disk: i64,
        ephemeral: i64,
        swap: i64,
        original_name: &'a str,
        extra_specs: BTreeMap<&'a str, &'a str>,
    },
}

#[derive(Serialize)]
struct Address {
    version: u8,
    addr: String,
    #[serde(rename = "OS-EXT-IPS:type")]
    kind: &'static str,
    #[serde(rename = "OS-EXT-IPS-MAC:mac_addr")]
    mac: String,
}

#[derive(Serialize)]
struct Volume<'a> {
    id: &'a Value,
    /// From 2.3.
    #[serde(skip_serializing_if = "Option::is_none")]
    delete_on_termination: Option<&'a Value>,
}

#[derive(Serialize)]
struct Group {
    name: String,
}

/// Returns everything about one server.
pub(crate) fn detail<'a>(call: &Call<'_>, doc: &'a Doc) -> Server<'a> {
    let id = doc.text("id");
    let status = doc.text("status");
    let (vm_state, power_state) = machine_state(status);
    let ports = network::of_device(call.state, id);
    let from = |least: u32| call.version >= least;
    let admin = call.who.admin();
    Server {
        id,
        name: doc.text("name"),
        status,
        tenant_id: doc.text("project_id"),
        user_id: doc.text("user_id"),
        metadata: doc.get("metadata").unwrap_or(&Value::Null),
        host_id: host_id(doc),
        image: image(call, doc),
        flavor: flavor(call, doc, from(47)),
        created: doc.text("created"),
        updated: doc.text("updated"),
        addresses: addresses(call, status, &ports),
        access_v4: doc.text("accessIPv4"),
        access_v6: doc.text("accessIPv6"),
        links: links(call, "servers", id),
        disk_config: doc.text("_disk_config"),
        config_drive: if doc.flag("_config_drive") {
            "True"
        } else {
            ""
        },
        key_name: unless_empty(doc.text("_key_name")),
        zone: doc.text("_zone"),
        launched_at: doc.get("_launched_at").unwrap_or(&Value::Null),
        terminated_at: doc.get("_terminated_at").unwrap_or(&Value::Null),
        task_state: unless_empty(doc.text("_task")),
        vm_state,
        power_state,
        volumes: volumes(doc, from(3)),
        progress: matches!(status, "ACTIVE" | "BUILD").then_some(0),
        security_groups: security_groups(call, doc, &ports),
        fault: doc.get("fault").filter(|fault| !fault.is_null()),
        locked: from(9).then(|| doc.flag("_locked")),
        description: from(19).then(|| doc.get("description").unwrap_or(&Value::Null)),
        tags: from(26).then(|| doc.list("tags")),
        trusted_image_certificates: from(63).then_some(None),
        server_groups: from(71).then(|| unless_empty(doc.text("_group")).into_iter().collect()),
        locked_reason: from(73).then_some(None),
        hostname: (from(90) || admin && from(3)).then(|| doc.text("_hostname")),
        placed: admin.then(|| placed(doc)),
        creation: (admin && from(3)).then(|| creation(doc)),
        host_status: (admin && from(16)).then_some("UP"),
    }
}

/// Returns Nova's `vm_state` and `power_state` (0 unknown, 1 running, 4 shut down).
fn machine_state(status: &str) -> (&'static str, u8) {
    match status {
        "BUILD" => ("building", 0),
        "SHUTOFF" => ("stopped", 4),
        "ERROR" => ("error", 0),
        "DELETED" => ("deleted", 0),
        "SOFT_DELETED" => ("soft-delete", 0),
        _ => ("active", 1),
    }
}

fn placed(doc: &Doc) -> Placed<'_> {
    let host = unless_empty(doc.text("_host"));
    Placed {
        host,
        hypervisor: host,
        instance_name: format!("instance-{}", short(doc)),
    }
}

fn creation(doc: &Doc) -> Creation<'_> {
    Creation {
        user_data: unless_empty(doc.text("_user_data")),
        root_device: "/dev/vda",
        launch_index: 0,
        reservation: format!("r-{}", short(doc)),
        kernel: "",
        ramdisk: "",
    }
}

fn short(doc: &Doc) -> &str {
    let id = doc.text("id");
    id.get(..8).unwrap_or(id)
}

fn unless_empty(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}

fn reference<'a>(call: &Call<'_>, what: &str, id: &'a str) -> Reference<'a> {
    let links = [bookmark(call, what, id)];
    Reference { id, links }
}

fn host_id(doc: &Doc) -> String {
    match doc.text("_host") {
        "" => String::new(),
        host => identity_hash(&format!("{}{host}", doc.text("project_id")))[..56].to_owned(),
    }
}

fn image<'a>(call: &Call<'_>, doc: &'a Doc) -> Image<'a> {
    match doc.text("_image") {
        "" => Image::Volume(""),
        id => Image::Of(reference(call, "images", id)),
    }
}

fn flavor<'a>(call: &Call<'_>, doc: &'a Doc, embedded: bool) -> Flavor<'a> {
    if !embedded {
        return Flavor::Of(reference(call, "flavors", doc.text("_flavor")));
    }
    Flavor::Embedded {
        vcpus: doc.number("_vcpus"),
        ram: doc.number("_ram"),
        disk: doc.number("_disk"),
        ephemeral: 0,
        swap: 0,
        original_name: doc.text("_flavor_name"),
        extra_specs: BTreeMap::new(),
    }
}

/// Returns fixed and floating addresses by network name. Empty until the ports are bound.
fn addresses(call: &Call<'_>, status: &str, ports: &[Arc<Doc>]) -> BTreeMap<String, Vec<Address>> {
    let mut out: BTreeMap<String, Vec<Address>> = BTreeMap::new();
    if matches!(status, "BUILD" | "DELETED") {
        return out;
    }
    for port in ports {
        let Some(net) = call.state.get(Kind::Network, port.text("network_id")) else {
            continue;
        };
        let floating = call.state.by(Kind::FloatingIp, "port_id", port.text("id"));
        let list = out.entry(net.text("name").to_owned()).or_default();
        let entry = |address: &str, kind| Address {
            version: if address.contains(':') { 6 } else { 4 },
            addr: address.to_owned(),
            kind,
            mac: port.text("mac_address").to_owned(),
        };
        for fixed in network::addresses(port) {
            list.push(entry(fixed, "fixed"));
            let associated = floating
                .iter()
                .filter(|floating| floating.text("fixed_ip_address") == fixed);
            list.extend(
                associated.map(|floating| entry(floating.text("floating_ip_address"), "floating")),
            );
        }
    }
    out
}

/// Returns the requested groups during the build of the server, and the groups of its ports afterwards.
fn security_groups(call: &Call<'_>, doc: &Doc, ports: &[Arc<Doc>]) -> Vec<Group> {
    let group = |name: &str| Group {
        name: name.to_owned(),
    };
    if doc.text("status") == "BUILD" {
        return doc.texts("_groups").map(group).collect();
    }
    ports
        .iter()
        .flat_map(|port| port.texts("security_groups"))
        .filter_map(|id| call.state.get(Kind::SecurityGroup, id))
        .map(|found| group(found.text("name")))
        .collect()
}

fn volumes(doc: &Doc, with_deletion: bool) -> Vec<Volume<'_>> {
    doc.list("_volumes")
        .iter()
        .map(|volume| Volume {
            id: &volume["id"],
            delete_on_termination: with_deletion.then_some(&volume["delete_on_termination"]),
        })
        .collect()
}
