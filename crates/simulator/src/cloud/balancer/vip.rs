//! The port of a load balancer's virtual address.

use serde_json::{Value, json};

use crate::cloud::call::Call;
use crate::cloud::document::{Doc, Fields};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::network;

/// Device owner of such ports.
pub(crate) const OWNER: &str = "Octavia";

/// Finds or creates the port, and sets address, port, subnet and network of the load balancer.
pub(crate) fn plug(call: &mut Call<'_>, balancer: &mut Doc) -> Result<(), Fault> {
    let port = balancer.text("vip_port_id").to_owned();
    if !port.is_empty() {
        return given_port(call, balancer, &port);
    }
    let subnet = match (
        balancer.text("vip_subnet_id"),
        balancer.text("vip_network_id"),
    ) {
        ("", "") => {
            return Err(Fault::bad(
                "Validation failure: VIP must contain one of: vip_port_id, vip_network_id, vip_subnet_id.",
            ));
        }
        ("", network) => {
            call.state
                .get(Kind::Network, network)
                .filter(|doc| {
                    call.may_access(doc) || doc.flag("shared") || doc.flag("router:external")
                })
                .ok_or_else(|| Fault::bad(format!("Network {network} not found.")))?;
            let mut subnets = call.state.by(Kind::Subnet, "network_id", network);
            subnets.sort_by_key(|subnet| subnet.number("ip_version"));
            subnets.first().cloned().ok_or_else(|| {
                Fault::bad("Validation failure: Supplied network does not contain a subnet.")
            })?
        }
        (subnet, _) => {
            let found = call.state.get(Kind::Subnet, subnet);
            let found = found.filter(|doc| {
                let network = call.state.get(Kind::Network, doc.text("network_id"));
                call.may_access(doc) || network.is_some_and(|net| net.flag("shared"))
            });
            found.ok_or_else(|| Fault::bad(format!("Subnet {subnet} not found.")))?
        }
    };
    let mut wanted = json!({"subnet_id": subnet.text("id")});
    if balancer.given("vip_address") {
        wanted["ip_address"] = json!(balancer.text("vip_address"));
    }
    let network_id = subnet.text("network_id").to_owned();
    let mut all = vec![wanted];
    all.extend(additional(call, balancer, &network_id)?);
    let fixed =
        network::allocate(call.state, &network_id, Some(&json!(all)), &[]).map_err(|fault| {
            Fault::new(
                if fault.status == 409 { 409 } else { 400 },
                fault.kind,
                fault.message,
            )
        })?;
    let id = balancer.text("id").to_owned();
    let port = network::create_port(
        call.state,
        json!({"network_id": network_id, "project_id": balancer.text("project_id"),
            "name": format!("octavia-lb-{id}"), "device_owner": OWNER, "device_id": format!("lb-{id}"),
            "admin_state_up": false, "port_security_enabled": true, "fixed_ips": fixed}),
    );
    let address = port
        .list("fixed_ips")
        .iter()
        .find(|fixed| fixed["subnet_id"] == subnet.text("id"))
        .map_or(Value::Null, |fixed| fixed["ip_address"].clone());
    let further = port
        .list("fixed_ips")
        .iter()
        .filter(|fixed| fixed["ip_address"] != address);
    let further: Vec<Value> = further.cloned().collect();
    balancer.set("additional_vips", further);
    balancer.set("vip_address", address);
    balancer.set("vip_port_id", port.text("id"));
    balancer.set("vip_subnet_id", subnet.text("id"));
    balancer.set("vip_network_id", network_id);
    balancer.set("_own_port", true);
    Ok(())
}

/// Returns the further addresses of the request. Their subnets must be in the network of the first one.
fn additional(call: &Call<'_>, balancer: &Doc, network: &str) -> Result<Vec<Value>, Fault> {
    let mut wanted = Vec::new();
    for vip in balancer.list("additional_vips") {
        let id = vip["subnet_id"].as_str().unwrap_or_default();
        let found = call.state.get(Kind::Subnet, id);
        let found = found.ok_or_else(|| Fault::bad(format!("Subnet {id} not found.")))?;
        if found.text("network_id") != network {
            return Err(Fault::bad(
                "Validation failure: All additional VIP subnets must belong to the same network as the primary VIP.",
            ));
        }
        let mut one = json!({"subnet_id": id});
        if let Some(address) = vip["ip_address"].as_str() {
            one["ip_address"] = json!(address);
        }
        wanted.push(one);
    }
    Ok(wanted)
}

/// Returns the address of a given port: the requested one, the one in the requested subnet, or the only one.
fn of_port(balancer: &Doc, port: &Doc) -> Result<Value, Fault> {
    let fixed = port.list("fixed_ips");
    let (address, subnet) = (balancer.text("vip_address"), balancer.text("vip_subnet_id"));
    let found = match (address, subnet) {
        ("", "") if fixed.len() == 1 => fixed.first(),
        ("", "") => {
            return Err(Fault::bad(
                "Validation failure: VIP port's subnet could not be determined. Please specify either a VIP subnet or \
                 address.",
            ));
        }
        ("", subnet) => fixed.iter().find(|fixed| fixed["subnet_id"] == subnet),
        (address, _) => fixed.iter().find(|fixed| fixed["ip_address"] == address),
    };
    found.cloned().ok_or_else(|| {
        Fault::bad("Validation failure: Specified VIP address not found on the specified VIP port.")
    })
}

fn given_port(call: &mut Call<'_>, balancer: &mut Doc, id: &str) -> Result<(), Fault> {
    let port = call
        .accessible(Kind::Port, id)
        .ok_or_else(|| Fault::bad(format!("Port {id} not found.")))?;
    if !port.text("device_id").is_empty() {
        return Err(Fault::bad(format!(
            "Validation failure: Port {id} is already used by another device {}",
            port.text("device_id")
        )));
    }
    let fixed = of_port(balancer, &port)?;
    balancer.set("vip_address", fixed["ip_address"].clone());
    balancer.set("vip_subnet_id", fixed["subnet_id"].clone());
    balancer.set("vip_network_id", port.text("network_id"));
    balancer.set("_own_port", false);
    let device = format!("lb-{}", balancer.text("id"));
    network::change_port(call.state, id, |port| {
        port.set("device_id", device);
        port.set("device_owner", OWNER);
    });
    Ok(())
}
