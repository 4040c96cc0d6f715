//! A server as Nova shows it, by microversion.

use serde_json::{Map, Value, json};

use super::servers::links;
use crate::cloud::call::Call;
use crate::cloud::document::{Doc, Fields};
use crate::cloud::identity_hash;
use crate::cloud::kind::Kind;

/// Everything about one server.
pub(crate) fn detail(call: &Call<'_>, doc: &Doc) -> Value {
    let id = doc.text("id");
    let status = doc.text("status");
    let task = match doc.text("_task") {
        "" => Value::Null,
        task => json!(task),
    };
    let vm_state = match status {
        "ACTIVE" | "REBOOT" | "HARD_REBOOT" => "active",
        "BUILD" => "building",
        "SHUTOFF" => "stopped",
        "ERROR" => "error",
        "DELETED" => "deleted",
        "SOFT_DELETED" => "soft-delete",
        _ => "active",
    };
    let power = match vm_state {
        "active" => 1,
        "stopped" => 4,
        _ => 0,
    };
    let mut out = json!({
        "id": id,
        "name": doc.text("name"),
        "status": status,
        "tenant_id": doc.text("project_id"),
        "user_id": doc.text("user_id"),
        "metadata": doc.get("metadata").cloned().unwrap_or_else(|| json!({})),
        "hostId": host_id(doc),
        "image": image(call, doc),
        "flavor": flavor(call, doc),
        "created": doc.text("created"),
        "updated": doc.text("updated"),
        "addresses": addresses(call, doc),
        "accessIPv4": doc.text("accessIPv4"),
        "accessIPv6": doc.text("accessIPv6"),
        "links": links(call, "servers", id),
        "OS-DCF:diskConfig": doc.text("_disk_config"),
        "config_drive": if doc.flag("_config_drive") { "True" } else { "" },
        "key_name": if doc.text("_key_name").is_empty() { Value::Null } else { json!(doc.text("_key_name")) },
        "OS-EXT-AZ:availability_zone": doc.text("_zone"),
        "OS-SRV-USG:launched_at": doc.get("_launched_at").cloned().unwrap_or_default(),
        "OS-SRV-USG:terminated_at": doc.get("_terminated_at").cloned().unwrap_or_default(),
        "OS-EXT-STS:task_state": task,
        "OS-EXT-STS:vm_state": vm_state,
        "OS-EXT-STS:power_state": power,
        "os-extended-volumes:volumes_attached": volumes(call, doc),
    });
    let Value::Object(map) = &mut out else {
        return out;
    };
    if status == "ACTIVE" || status == "BUILD" {
        map.set("progress", 0);
    }
    let groups = security_groups(call, doc);
    if !groups.is_empty() {
        map.set("security_groups", groups);
    }
    if doc.given("fault") {
        map.set("fault", doc.get("fault").cloned().unwrap_or_default());
    }
    by_version(call, doc, map);
    out
}

fn by_version(call: &Call<'_>, doc: &Doc, map: &mut Map<String, Value>) {
    let version = call.version;
    if version >= 9 {
        map.set("locked", doc.flag("_locked"));
    }
    if version >= 19 {
        map.set(
            "description",
            doc.get("description").cloned().unwrap_or_default(),
        );
    }
    if version >= 26 {
        map.set("tags", doc.list("tags").to_vec());
    }
    if version >= 63 {
        map.set("trusted_image_certificates", Value::Null);
    }
    if version >= 71 {
        let group: Vec<&str> = Some(doc.text("_group"))
            .filter(|id| !id.is_empty())
            .into_iter()
            .collect();
        map.set("server_groups", json!(group));
    }
    if version >= 73 {
        map.set("locked_reason", Value::Null);
    }
    if version >= 90 {
        map.set("OS-EXT-SRV-ATTR:hostname", doc.text("_hostname"));
    }
    if call.who.admin() {
        let host = match doc.text("_host") {
            "" => Value::Null,
            host => json!(host),
        };
        map.set("OS-EXT-SRV-ATTR:host", host.clone());
        map.set("OS-EXT-SRV-ATTR:hypervisor_hostname", host);
        let short: String = doc.text("id").chars().take(8).collect();
        map.set("OS-EXT-SRV-ATTR:instance_name", format!("instance-{short}"));
        if version >= 3 {
            map.set("OS-EXT-SRV-ATTR:hostname", doc.text("_hostname"));
            let data = match doc.text("_user_data") {
                "" => Value::Null,
                data => json!(data),
            };
            map.set("OS-EXT-SRV-ATTR:user_data", data);
            map.set("OS-EXT-SRV-ATTR:root_device_name", "/dev/vda");
            map.set("OS-EXT-SRV-ATTR:launch_index", 0);
            map.set("OS-EXT-SRV-ATTR:reservation_id", format!("r-{short}"));
            map.set("OS-EXT-SRV-ATTR:kernel_id", "");
            map.set("OS-EXT-SRV-ATTR:ramdisk_id", "");
        }
        if version >= 16 {
            map.set("host_status", "UP");
        }
    }
}

fn host_id(doc: &Doc) -> String {
    match doc.text("_host") {
        "" => String::new(),
        host => identity_hash(&format!("{}{host}", doc.text("project_id")))[..56].to_owned(),
    }
}

/// An empty string for a server that booted from a volume.
fn image(call: &Call<'_>, doc: &Doc) -> Value {
    match doc.text("_image") {
        "" => json!(""),
        id => {
            let href = format!("{}/images/{id}", call.root());
            json!({"id": id, "links": [{"rel": "bookmark", "href": href}]})
        }
    }
}

fn flavor(call: &Call<'_>, doc: &Doc) -> Value {
    if call.version < 47 {
        let id = doc.text("_flavor");
        let href = format!("{}/flavors/{id}", call.root());
        return json!({"id": id, "links": [{"rel": "bookmark", "href": href}]});
    }
    json!({"vcpus": doc.number("_vcpus"), "ram": doc.number("_ram"), "disk": doc.number("_disk"),
        "ephemeral": 0, "swap": 0, "original_name": doc.text("_flavor_name"), "extra_specs": {}})
}

/// Fixed and floating addresses by network name. Nova knows none before the ports are bound.
fn addresses(call: &Call<'_>, doc: &Doc) -> Value {
    let mut out: Map<String, Value> = Map::new();
    if matches!(doc.text("status"), "BUILD" | "DELETED") {
        return Value::Object(out);
    }
    let mut ports = call.state.by(Kind::Port, "device_id", doc.text("id"));
    ports.sort_by_key(|port| port.number("_order"));
    for port in ports {
        let Some(network) = call.state.get(Kind::Network, port.text("network_id")) else {
            continue;
        };
        let floating = call.state.by(Kind::FloatingIp, "port_id", port.text("id"));
        let list = out
            .entry(network.text("name").to_owned())
            .or_insert_with(|| json!([]));
        let Value::Array(list) = list else { continue };
        let entry = |address: &str, kind: &str| {
            json!({"version": if address.contains(':') { 6 } else { 4 }, "addr": address,
                "OS-EXT-IPS:type": kind, "OS-EXT-IPS-MAC:mac_addr": port.text("mac_address")})
        };
        for fixed in port
            .list("fixed_ips")
            .iter()
            .filter_map(|fixed| fixed["ip_address"].as_str())
        {
            list.push(entry(fixed, "fixed"));
            let own = floating
                .iter()
                .filter(|floating| floating.text("fixed_ip_address") == fixed);
            list.extend(
                own.map(|floating| entry(floating.text("floating_ip_address"), "floating")),
            );
        }
    }
    Value::Object(out)
}

fn security_groups(call: &Call<'_>, doc: &Doc) -> Vec<Value> {
    if doc.text("status") == "BUILD" {
        return doc
            .texts("_groups")
            .map(|name| json!({"name": name}))
            .collect();
    }
    call.state
        .by(Kind::Port, "device_id", doc.text("id"))
        .iter()
        .flat_map(|port| {
            port.texts("security_groups")
                .map(str::to_owned)
                .collect::<Vec<_>>()
        })
        .filter_map(|id| call.state.get(Kind::SecurityGroup, &id))
        .map(|group| json!({"name": group.text("name")}))
        .collect()
}

fn volumes(call: &Call<'_>, doc: &Doc) -> Vec<Value> {
    let with_deletion = call.version >= 3;
    doc.list("_volumes")
        .iter()
        .map(|volume| {
            if with_deletion {
                json!({"id": volume["id"], "delete_on_termination": volume["delete_on_termination"]})
            } else {
                json!({"id": volume["id"]})
            }
        })
        .collect()
}
