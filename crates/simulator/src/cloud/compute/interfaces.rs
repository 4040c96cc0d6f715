//! Ports of a server (os-interface).

use serde_json::{Value, json};

use super::create::make_port;
use super::servers::{change, find};
use crate::cloud::call::{Answer, Call, Reply};
use crate::cloud::document::{Doc, Fields};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::network;
use crate::cloud::route::Table;

/// Registers the operations.
pub(crate) fn routes(table: &mut Table<'_>) {
    table
        .get("/v2.1/servers/{server_id}/os-interface", list)
        .post("/v2.1/servers/{server_id}/os-interface", attach)
        .get("/v2.1/servers/{server_id}/os-interface/{port_id}", |call| {
            let port = port_of_server(call)?;
            Ok(Reply::ok(json!({"interfaceAttachment": view(&port)})))
        })
        .delete("/v2.1/servers/{server_id}/os-interface/{port_id}", detach);
}

fn list(call: &mut Call<'_>) -> Answer {
    let doc = find(call)?;
    let ports = network::of_device(call.state, doc.text("id"));
    let all: Vec<Value> = ports.iter().map(|port| view(port)).collect();
    Ok(Reply::ok(json!({"interfaceAttachments": all})))
}

fn attach(call: &mut Call<'_>) -> Answer {
    let doc = find(call)?;
    let id = doc.text("id").to_owned();
    if doc.text("status") != "ACTIVE" && doc.text("status") != "SHUTOFF" {
        return Err(Fault::conflict(format!(
            "Cannot 'attach_interface' instance {id} while it is in vm_state {}",
            doc.text("status").to_ascii_lowercase()
        )));
    }
    let given = match call.body.get("interfaceAttachment") {
        Some(Value::Object(given)) => given.clone(),
        _ => Doc::new(),
    };
    let port = match (given.text("port_id"), given.text("net_id")) {
        ("", "") => return Err(Fault::bad("Must specify a network or a port")),
        ("", net) => {
            let fixed = given
                .list("fixed_ips")
                .first()
                .and_then(|fixed| fixed["ip_address"].as_str());
            let port = make_port(call, net, fixed.unwrap_or_default(), &[])?;
            let created = port.clone();
            change(call, &id, |doc| {
                let mut all = doc.list("_own_ports").to_vec();
                all.push(json!(created));
                doc.set("_own_ports", all);
            });
            port
        }
        (port, _) => {
            let found = call
                .accessible(Kind::Port, port)
                .ok_or_else(|| Fault::missing(format!("Port {port} could not be found.")))?;
            if !found.text("device_id").is_empty() {
                return Err(Fault::conflict(format!("Port {port} is still in use.")));
            }
            port.to_owned()
        }
    };
    let order = call.state.count_by(Kind::Port, "device_id", &id);
    let owner = format!("compute:{}", doc.text("_zone"));
    network::bind(call.state, &port, &id, &owner, doc.text("_host"), true);
    call.state
        .edit(Kind::Port, &port, |port| port.set("_order", order));
    let port = call.state.get(Kind::Port, &port).unwrap_or_default();
    // Nova answers before Neutron reports the port as up.
    let mut attachment = view(&port);
    attachment["port_state"] = json!("DOWN");
    Ok(Reply::ok(json!({"interfaceAttachment": attachment})))
}

fn detach(call: &mut Call<'_>) -> Answer {
    let doc = find(call)?;
    // Nova asks the hypervisor, for which detaching a port of another server is a no-op.
    let port = match port_of_server(call) {
        Err(_)
            if call
                .accessible(Kind::Port, call.parameter("port_id"))
                .is_some() =>
        {
            return Ok(Reply::empty(202));
        }
        found => found?,
    };
    if doc
        .texts("_own_ports")
        .any(|created| created == port.text("id"))
    {
        network::remove_port(call.state, port.text("id"));
    } else {
        network::release(call.state, port.text("id"));
    }
    Ok(Reply::empty(202))
}

fn port_of_server(call: &Call<'_>) -> Result<std::sync::Arc<Doc>, Fault> {
    let doc = find(call)?;
    let id = call.parameter("port_id");
    call.state
        .get(Kind::Port, id)
        .filter(|port| port.text("device_id") == doc.text("id"))
        .ok_or_else(|| {
            Fault::missing(format!(
                "Instance {} does not have port with id {id}",
                doc.text("id")
            ))
        })
}

fn view(port: &Doc) -> Value {
    json!({"port_id": port.text("id"), "net_id": port.text("network_id"), "mac_addr": port.text("mac_address"),
        "port_state": port.text("status"), "fixed_ips": port.list("fixed_ips")})
}
