//! Floating IPs.

use std::net::IpAddr;

use serde_json::{Value, json};

use super::networks::NETWORK;
use super::ports::{self, FLOATING, PORT};
use super::resource::{Hooks, Resource, merge, owner_only, referenced, routes as standard, touch};
use super::routers;
use crate::cloud::attribute::{Attribute, Preset, Shape, attribute, fixed};
use crate::cloud::call::{Call, Who};
use crate::cloud::collection::Collection;
use crate::cloud::document::{Doc, Fields};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::route::Table;
use crate::cloud::state::State;

const ATTRIBUTES: &[Attribute] = &[
    attribute("floating_network_id", Shape::Id, Preset::Required),
    attribute("floating_ip_address", Shape::Address, Preset::Absent).nullable(),
    attribute("subnet_id", Shape::Id, Preset::Absent).nullable(),
    attribute("port_id", Shape::Id, Preset::Null).editable(),
    attribute("fixed_ip_address", Shape::Address, Preset::Null).editable(),
    attribute("description", Shape::Text(255), Preset::Text("")).editable(),
    attribute("dns_name", Shape::Text(255), Preset::Text("")),
    attribute("dns_domain", Shape::Text(255), Preset::Text("")),
    attribute("qos_policy_id", Shape::Id, Preset::Null).editable(),
    fixed("id"),
    fixed("router_id"),
    fixed("status"),
    fixed("tags"),
    fixed("revision_number"),
];

/// Neutron's floating IPs.
pub(crate) static FLOATING_IP: Resource = Resource {
    collection: Collection {
        kind: Kind::FloatingIp,
        one: "floatingip",
        many: "floatingips",
        attributes: ATTRIBUTES,
        across_projects: false,
        visible: owner_only,
        present,
        missing,
    },
    quota: "floatingip",
    create,
    update,
    delete,
    hooks: Hooks::NONE,
};

/// Registers the operations.
pub(crate) fn routes(table: &mut Table<'_>) {
    standard(
        table,
        "/v2.0/floatingips",
        "/v2.0/floatingips/{id}",
        &FLOATING_IP,
    );
}

/// Dissociates the floating IPs of a deleted port.
pub(crate) fn release_port(state: &mut State, port: &str) {
    for floating in state.by(Kind::FloatingIp, "port_id", port) {
        release(state, &floating);
    }
}

/// Dissociates a floating IP from its port.
pub(crate) fn release(state: &mut State, floating: &Doc) {
    let mut doc = floating.clone();
    dissociate(&mut doc);
    touch(&mut doc, state);
    state.put(Kind::FloatingIp, doc);
}

/// Associates a floating IP with a port's fixed address.
pub(crate) fn point(
    call: &mut Call<'_>,
    floating: &Doc,
    port: &str,
    fixed: &str,
) -> Result<(), Fault> {
    let mut doc = floating.clone();
    doc.set("port_id", port);
    doc.set("fixed_ip_address", fixed);
    associate(call, &mut doc)?;
    touch(&mut doc, call.state);
    call.state.put(Kind::FloatingIp, doc);
    Ok(())
}

fn create(call: &mut Call<'_>, mut doc: Doc) -> Result<Doc, Fault> {
    let network = referenced(call, &NETWORK, doc.text("floating_network_id"))?;
    let id = network.text("id").to_owned();
    if !network.flag("router:external") {
        return Err(bad(&format!(
            "Network {id} is not a valid external network"
        )));
    }
    if doc.given("floating_ip_address") && !call.who.admin() {
        return Err(Fault::forbidden(
            "(rule:create_floatingip and rule:create_floatingip:floating_ip_address) is disallowed by policy",
        ));
    }
    let mut wanted = Doc::new();
    for (from, to) in [
        ("floating_ip_address", "ip_address"),
        ("subnet_id", "subnet_id"),
    ] {
        if let Some(value) = doc.remove(from).filter(|value| !value.is_null()) {
            wanted.set(to, value);
        }
    }
    let wanted = (!wanted.is_empty()).then(|| json!([wanted]));
    let fixed =
        ports::allocate(call.state, &id, wanted.as_ref(), &[]).map_err(|fault| {
            match fault.kind {
                "IpAddressGenerationFailure" => Fault::new(
                    400,
                    "ExternalIpAddressExhausted",
                    format!("Unable to find any IP address on external network {id}."),
                ),
                _ => fault,
            }
        })?;
    let address = fixed
        .iter()
        .filter_map(|fixed| fixed["ip_address"].as_str())
        .find(|text| {
            text.parse::<IpAddr>()
                .is_ok_and(|address| address.is_ipv4())
        })
        .ok_or_else(|| bad(&format!("Network {id} does not contain any IPv4 subnet")))?
        .to_owned();
    doc.set("floating_ip_address", address);
    let port = ports::create_internal(
        call.state,
        json!({"network_id": id, "project_id": "", "device_owner": FLOATING,
            "device_id": doc.text("id"), "status": "N/A", "fixed_ips": fixed}),
    );
    doc.set("_port_id", port.text("id"));
    doc.set("router_id", Value::Null);
    doc.set("status", "DOWN");
    if doc.given("port_id") {
        associate(call, &mut doc)?;
    } else {
        doc.set("fixed_ip_address", Value::Null);
    }
    call.state.put(Kind::FloatingIp, doc.clone());
    Ok(doc)
}

fn update(call: &mut Call<'_>, _: &Doc, new: &mut Doc, changes: &Doc) -> Result<(), Fault> {
    if changes.given("fixed_ip_address") && !changes.given("port_id") {
        return Err(bad(
            "fixed_ip_address cannot be specified without a port_id",
        ));
    }
    merge(new, changes);
    // An update without any field dissociates too (neutron/db/l3_db.py, bug 1610045): that is what
    // cluster-api-provider-openstack sends to release an address.
    if changes.is_empty() || changes.get("port_id").is_some_and(Value::is_null) {
        dissociate(new);
        return Ok(());
    }
    if !new.given("port_id") {
        return Ok(());
    }
    // Any other update associates it again, never with the stored fixed address.
    let fixed = changes.get("fixed_ip_address").cloned();
    new.set("fixed_ip_address", fixed.unwrap_or_default());
    associate(call, new)
}

fn delete(call: &mut Call<'_>, doc: &Doc) -> Result<(), Fault> {
    call.state.remove(Kind::Port, doc.text("_port_id"));
    call.state.remove(Kind::FloatingIp, doc.text("id"));
    Ok(())
}

fn associate(call: &mut Call<'_>, doc: &mut Doc) -> Result<(), Fault> {
    let port = referenced(call, &PORT, doc.text("port_id"))?;
    let port_id = port.text("id");
    let v4 = |fixed: &&Value| {
        fixed["ip_address"]
            .as_str()
            .is_some_and(|text| !text.contains(':'))
    };
    let fixed = port.list("fixed_ips").iter().filter(v4);
    let wanted = doc.text("fixed_ip_address").to_owned();
    let fixed = if wanted.is_empty() {
        let all: Vec<&Value> = fixed.collect();
        if all.len() > 1 {
            return Err(bad(&format!(
                "Port {port_id} has multiple fixed IPv4 addresses.  Must provide a specific IPv4 \
                 address when assigning a floating IP"
            )));
        }
        all.first().copied().ok_or_else(|| {
            bad(&format!(
                "Cannot add floating IP to port {port_id} that has no fixed IPv4 addresses"
            ))
        })?
    } else {
        fixed
            .into_iter()
            .find(|fixed| fixed["ip_address"] == wanted)
            .ok_or_else(|| bad(&format!("Port {port_id} does not have fixed ip {wanted}")))?
    };
    let (subnet, address) = (
        fixed["subnet_id"].as_str().unwrap_or_default(),
        fixed["ip_address"].clone(),
    );
    let network = doc.text("floating_network_id");
    let router = routers::between(call.state, subnet, network).ok_or_else(|| {
        Fault::new(404, "ExternalGatewayForFloatingIPNotFound", format!(
            "External network {network} is not reachable from subnet {subnet}. Therefore, cannot \
             associate Port {port_id} with a Floating IP."
        ))
    })?;
    let taken = call
        .state
        .by(Kind::FloatingIp, "port_id", port_id)
        .into_iter()
        .find(|other| {
            other.text("id") != doc.text("id")
                && other.get("fixed_ip_address") == Some(&address)
                && other.text("floating_network_id") == network
        });
    if taken.is_some() {
        return Err(Fault::new(
            409,
            "FloatingIPPortAlreadyAssociated",
            format!(
                "Cannot associate floating IP {} ({}) with port {port_id} using fixed IP {}, as that \
             fixed IP already has a floating IP on external network {network}.",
                doc.text("floating_ip_address"),
                doc.text("id"),
                address.as_str().unwrap_or_default()
            ),
        ));
    }
    doc.set("fixed_ip_address", address);
    doc.set("router_id", router);
    doc.set("status", "ACTIVE");
    Ok(())
}

fn dissociate(doc: &mut Doc) {
    for field in ["port_id", "fixed_ip_address", "router_id"] {
        doc.set(field, Value::Null);
    }
    doc.set("status", "DOWN");
}

fn present(state: &State, _: &Who, doc: &mut Doc) {
    let project = doc.text("project_id").to_owned();
    doc.set("tenant_id", project);
    let details = state
        .get(Kind::Port, doc.text("port_id"))
        .map_or(Value::Null, |port| {
            [
                "name",
                "network_id",
                "mac_address",
                "admin_state_up",
                "status",
                "device_id",
                "device_owner",
            ]
            .iter()
            .map(|field| {
                (
                    (*field).to_owned(),
                    port.get(*field).cloned().unwrap_or_default(),
                )
            })
            .collect()
        });
    doc.set("port_details", details);
    doc.set("port_forwardings", json!([]));
}

fn bad(why: &str) -> Fault {
    Fault::new(400, "BadRequest", format!("Bad floatingip request: {why}."))
}

fn missing(id: &str) -> Fault {
    Fault::new(
        404,
        "FloatingIPNotFound",
        format!("Floating IP {id} could not be found"),
    )
}
