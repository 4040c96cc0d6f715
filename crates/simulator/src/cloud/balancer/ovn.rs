//! Rules of Octavia's OVN driver, which refuses with 501 the options that OVN does not have, and its ports.
//!
//! The rules are those of ovn-octavia-provider (`driver.py`): one algorithm, no ranges of clients, nothing above the transport,
//! health monitors of two types, and a subnet for each member.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ipnet::IpNet;
use serde_json::json;

use crate::cloud::document::{Doc, Fields};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::network;
use crate::cloud::state::State;

/// The name of the driver.
pub(crate) const NAME: &str = "ovn";

/// The device owner of the ports from which OVN checks members.
const HEALTH_PORT: &str = "ovn-lb-hm:distributed";

/// Octavia's answer to an option that the driver does not have.
fn option(why: &str) -> Fault {
    let text = format!("Provider '{NAME}' does not support a requested option: {why}");
    Fault::new(501, "NotImplemented", text)
}

/// Octavia's answer to a request that the driver does not have.
pub(crate) fn action(why: &str) -> Fault {
    let text = format!("Provider '{NAME}' does not support a requested action: {why}");
    Fault::new(501, "NotImplemented", text)
}

/// True for a load balancer of the driver.
pub(crate) fn serves(state: &State, balancer: &str) -> bool {
    let balancer = state.get(Kind::LoadBalancer, balancer);
    balancer.is_some_and(|balancer| balancer.text("provider") == NAME)
}

fn protocol(doc: &Doc) -> Result<(), Fault> {
    match doc.text("protocol") {
        "" | "TCP" | "UDP" | "SCTP" => Ok(()),
        other => Err(option(&format!(
            "OVN provider does not support {other} protocol"
        ))),
    }
}

/// Rejects a listener, or changes of one.
pub(crate) fn listener(state: &State, balancer: &str, doc: &Doc) -> Result<(), Fault> {
    if !serves(state, balancer) {
        return Ok(());
    }
    protocol(doc)?;
    match doc.list("allowed_cidrs").is_empty() {
        true => Ok(()),
        false => Err(option("OVN provider does not support allowed_cidrs option")),
    }
}

/// Rejects a pool, or changes of one.
pub(crate) fn pool(state: &State, balancer: &str, doc: &Doc) -> Result<(), Fault> {
    if !serves(state, balancer) {
        return Ok(());
    }
    protocol(doc)?;
    match doc.text("lb_algorithm") {
        "" | "SOURCE_IP_PORT" => {}
        other => {
            let why = format!("OVN provider does not support {other} algorithm");
            return Err(option(&why));
        }
    }
    let persistence = &doc.get("session_persistence").cloned().unwrap_or_default();
    match persistence["type"].as_str() {
        None | Some("SOURCE_IP") => Ok(()),
        Some(other) => Err(option(&format!(
            "OVN provider does not support {other} session persistence. Only SOURCE_IP type is supported."
        ))),
    }
}

/// Rejects a monitor of a type that OVN does not have.
pub(crate) fn monitor(state: &State, balancer: &str, doc: &Doc) -> Result<(), Fault> {
    match doc.text("type") {
        "TCP" | "UDP-CONNECT" => Ok(()),
        other if serves(state, balancer) => Err(option(&format!(
            "OVN provider does not support {other} health monitor type. Supported types: UDP-CONNECT, TCP"
        ))),
        _ => Ok(()),
    }
}

/// Rejects a member, new if `is_new`: with a check of another address or port, in no known subnet, or of the other family.
pub(crate) fn member(state: &State, pool: &Doc, doc: &Doc, is_new: bool) -> Result<(), Fault> {
    let id = pool.text("loadbalancer_id");
    let Some(balancer) = state
        .get(Kind::LoadBalancer, id)
        .filter(|it| it.text("provider") == NAME)
    else {
        return Ok(());
    };
    if doc.given("monitor_address") || doc.given("monitor_port") {
        return Err(option("OVN provider does not support monitor options"));
    }
    if !is_new {
        return Ok(());
    }
    let address = doc.text("address").parse::<IpAddr>().ok();
    let subnet = state.get(Kind::Subnet, balancer.text("vip_subnet_id"));
    let cidr = subnet.and_then(|subnet| subnet.text("cidr").parse::<IpNet>().ok());
    let is_inside = cidr
        .zip(address)
        .is_some_and(|(cidr, it)| cidr.contains(&it));
    if !doc.given("subnet_id") && !is_inside {
        return Err(option(
            "Subnet is required, or Loadbalancer associated with Pool must have a subnet, for Member creation with OVN \
             Provider Driver if it is not the same as LB VIP subnet",
        ));
    }
    let vip = balancer.text("vip_address").parse::<IpAddr>().ok();
    let is_mixed = balancer.list("additional_vips").is_empty()
        && vip
            .zip(address)
            .is_some_and(|(vip, it)| vip.is_ipv4() != it.is_ipv4());
    match is_mixed {
        true => Err(option(
            "OVN provider does not support mixing IPv4/IPv6 configuration within the same Load Balancer.",
        )),
        false => Ok(()),
    }
}

/// Rejects a load balancer in a zone with options, which the driver does not check.
pub(crate) fn zone(balancer: &Doc) -> Result<(), Fault> {
    match balancer.text("provider") == NAME && balancer.given("availability_zone") {
        true => Err(action(
            "This provider does not support validating availability zones.",
        )),
        false => Ok(()),
    }
}

/// Creates and deletes the ports from which OVN checks members: one in each subnet with members that have a monitor.
pub(crate) fn plug(state: &mut State) {
    let wanted = checked(state);
    let is_known = |subnet: &str, port: &Doc| port.text("name") == name(subnet);
    let ports = state.all(Kind::Port);
    let known: Vec<_> = ports
        .filter(|port| port.text("device_owner") == HEALTH_PORT)
        .cloned()
        .collect();
    for port in &known {
        if !wanted.iter().any(|(subnet, _)| is_known(subnet, port)) {
            network::remove_port(state, port.text("id"));
        }
    }
    for (subnet, project) in wanted {
        if known.iter().any(|port| is_known(&subnet, port)) {
            continue;
        }
        let Some(network_id) = state.get(Kind::Subnet, &subnet) else {
            continue;
        };
        let network_id = network_id.text("network_id").to_owned();
        let place = json!([{"subnet_id": subnet}]);
        // The driver goes on without a port: its checks fail then.
        if let Ok(fixed) = network::allocate(state, &network_id, Some(&place), &[]) {
            let port = json!({"network_id": network_id, "project_id": project, "name": name(&subnet),
                "device_owner": HEALTH_PORT, "device_id": name(&subnet), "admin_state_up": true,
                "port_security_enabled": false, "fixed_ips": fixed});
            network::create_port(state, port);
        }
    }
}

fn name(subnet: &str) -> String {
    format!("ovn-lb-hm-{subnet}")
}

/// Subnets with members that OVN checks, and the projects of these.
fn checked(state: &State) -> BTreeSet<(String, String)> {
    let mut wanted = BTreeSet::new();
    for balancer in state.all(Kind::LoadBalancer) {
        if balancer.text("provider") != NAME {
            continue;
        }
        for monitor in state.by(Kind::HealthMonitor, "loadbalancer_id", balancer.text("id")) {
            for member in state.by(Kind::Member, "pool_id", monitor.text("pool_id")) {
                let subnet = match member.text("subnet_id") {
                    "" => balancer.text("vip_subnet_id"),
                    subnet => subnet,
                };
                wanted.insert((subnet.to_owned(), balancer.text("project_id").to_owned()));
            }
        }
    }
    wanted
}
