//! Actions that Nova forwards to Neutron, up to 2.43: fixed addresses of a server's ports, and floating IPs.
//!
//! Current clients call Neutron themselves, except for `openstack server remove fixed ip`.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};

use crate::cloud::call::{Answer, Call, Reply};
use crate::cloud::document::{Doc, Fields};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::network;

/// Last microversion with these actions.
const LAST: u32 = 43;

/// Performs the action on a server.
pub(crate) fn act(call: &mut Call<'_>, server: &Doc, action: &str, argument: &Value) -> Answer {
    if call.version > LAST {
        return Err(Fault::missing("The resource could not be found."));
    }
    match action {
        "addFixedIp" => add_fixed(call, server, argument)?,
        "removeFixedIp" => remove_fixed(call, server, argument)?,
        "addFloatingIp" => return add_floating(call, server, argument).map(|()| page()),
        _ => return remove_floating(call, server, argument).map(|()| page()),
    }
    Ok(Reply::empty(202))
}

/// Returns the [`Reply`] of actions on floating IPs: empty, but with a content type.
fn page() -> Reply {
    Reply {
        raw: Some(("text/html; charset=UTF-8", Bytes::new())),
        ..Reply::empty(202)
    }
}

/// Adds an address of the network to the first port of the server there. Nova answers before the validation, so an
/// impossible request has no effect.
fn add_fixed(call: &mut Call<'_>, server: &Doc, argument: &Value) -> Result<(), Fault> {
    let wanted = text(argument, "networkId")?;
    let ports = network::of_device(call.state, server.text("id"));
    let Some(port) = ports.iter().find(|port| port.text("network_id") == wanted) else {
        return Ok(());
    };
    for subnet in call.state.by(Kind::Subnet, "network_id", wanted) {
        let had = port.list("fixed_ips");
        let mut all = had.to_vec();
        all.push(json!({"subnet_id": subnet.text("id")}));
        if let Ok(fixed) = network::allocate(call.state, wanted, Some(&json!(all)), had) {
            network::change_port(call.state, port.text("id"), |doc| {
                doc.set("fixed_ips", fixed);
            });
            return Ok(());
        }
    }
    Ok(())
}

fn remove_fixed(call: &mut Call<'_>, server: &Doc, argument: &Value) -> Result<(), Fault> {
    let address = address(argument, "address")?;
    let has = |port: &&Arc<Doc>| {
        network::addresses(port).any(|address_of_port| address_of_port == address)
    };
    let ports = network::of_device(call.state, server.text("id"));
    if let Some(port) = ports.iter().find(has) {
        network::change_port(call.state, port.text("id"), |doc| {
            let mut left = doc.list("fixed_ips").to_vec();
            left.retain(|address_of_port| address_of_port["ip_address"] != address);
            doc.set("fixed_ips", left);
        });
    }
    Ok(())
}

fn add_floating(call: &mut Call<'_>, server: &Doc, argument: &Value) -> Result<(), Fault> {
    let wanted = argument
        .get("fixed_address")
        .map(|_| address(argument, "fixed_address"))
        .transpose()?;
    let address = text(argument, "address")?;
    let ports = network::of_device(call.state, server.text("id"));
    let mut address_of_port = ports
        .iter()
        .flat_map(|port| {
            network::addresses(port).map(move |address_of_port| (port.text("id"), address_of_port))
        })
        .filter(|(_, address_of_port)| !address_of_port.contains(':'))
        .peekable();
    if address_of_port.peek().is_none() {
        return Err(Fault::bad("No fixed IPs associated to instance"));
    }
    let Some((port, fixed)) = address_of_port
        .find(|(_, address_of_port)| wanted.is_none_or(|wanted| *address_of_port == wanted))
    else {
        return Err(Fault::bad(
            "Specified fixed address not assigned to instance",
        ));
    };
    let floating = floating(call, address)?;
    network::point_floating_ip(call, &floating, port, fixed).map_err(|fault| {
        Fault::bad(format!(
            "Unable to associate floating IP {address} to fixed IP {fixed} for instance {}. Error: {}",
            server.text("id"),
            fault.message
        ))
    })
}

fn remove_floating(call: &mut Call<'_>, server: &Doc, argument: &Value) -> Result<(), Fault> {
    let address = text(argument, "address")?;
    let floating = floating(call, address)?;
    let port = call.state.get(Kind::Port, floating.text("port_id"));
    // The policy is evaluated for the server of the floating IP; without one, only administrators pass.
    if port.is_none() && !call.who.admin() {
        return Err(Fault::forbidden(
            "Policy doesn't allow os_compute_api:os-floating-ips:remove to be performed.",
        ));
    }
    if port.is_none_or(|port| port.text("device_id") != server.text("id")) {
        return Err(Fault::conflict(format!(
            "Floating IP {address} is not associated with instance {}.",
            server.text("id")
        )));
    }
    network::release_floating_ip(call.state, &floating);
    Ok(())
}

fn floating(call: &Call<'_>, address: &str) -> Result<Arc<Doc>, Fault> {
    call.state
        .by(Kind::FloatingIp, "floating_ip_address", address)
        .into_iter()
        .find(|floating| call.may_access(floating))
        .ok_or_else(|| Fault::missing("floating IP not found"))
}

fn text<'a>(argument: &'a Value, field: &str) -> Result<&'a str, Fault> {
    argument
        .get(field)
        .and_then(Value::as_str)
        .filter(|text| !text.is_empty())
        .ok_or_else(|| {
            Fault::bad(format!(
                "Invalid input for field/attribute {field}. Value: {argument}. '{field}' is a required property"
            ))
        })
}

fn address<'a>(argument: &'a Value, field: &str) -> Result<&'a str, Fault> {
    let text = text(argument, field)?;
    match text.parse::<IpAddr>() {
        Ok(_) => Ok(text),
        Err(_) => Err(Fault::bad(format!(
            "Invalid input for field/attribute {field}. Value: {text}. '{text}' is not a 'ipv4'"
        ))),
    }
}
