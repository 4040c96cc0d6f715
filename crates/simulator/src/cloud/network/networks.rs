//! Networks.

use serde_json::{Value, json};

use super::ports;
use super::resource::{Hooks, Resource, merge, owner_only, routes as standard};
use crate::cloud::attribute::{Attribute, Preset, Shape, attribute, fixed};
use crate::cloud::call::{Call, Who};
use crate::cloud::collection::Collection;
use crate::cloud::document::{Doc, Fields};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::route::Table;
use crate::cloud::state::State;

const ATTRIBUTES: &[Attribute] = &[
    attribute("name", Shape::Text(255), Preset::Text("")).editable(),
    attribute("description", Shape::Text(255), Preset::Text("")).editable(),
    attribute("admin_state_up", Shape::Flag, Preset::Flag(true)).editable(),
    attribute("shared", Shape::Flag, Preset::Absent)
        .editable()
        .admin(),
    attribute("router:external", Shape::Flag, Preset::Absent)
        .editable()
        .admin(),
    attribute("is_default", Shape::Flag, Preset::Absent)
        .editable()
        .admin(),
    attribute("provider:network_type", Shape::Text(255), Preset::Absent).admin(),
    attribute(
        "provider:physical_network",
        Shape::Text(255),
        Preset::Absent,
    )
    .admin()
    .nullable(),
    attribute(
        "provider:segmentation_id",
        Shape::Number(0, 1 << 24),
        Preset::Absent,
    )
    .admin()
    .nullable(),
    attribute("port_security_enabled", Shape::Flag, Preset::Flag(true)).editable(),
    attribute("mtu", Shape::Number(0, 65_535), Preset::Absent).editable(),
    attribute("availability_zone_hints", Shape::Texts, Preset::EmptyList),
    attribute("qos_policy_id", Shape::Id, Preset::Absent)
        .editable()
        .nullable(),
    attribute("vlan_transparent", Shape::Flag, Preset::Absent),
    fixed("id"),
    fixed("status"),
    fixed("subnets"),
    fixed("tags"),
    fixed("revision_number"),
];

/// Neutron's networks.
pub(crate) static NETWORK: Resource = Resource {
    collection: Collection {
        kind: Kind::Network,
        one: "network",
        many: "networks",
        attributes: ATTRIBUTES,
        across_projects: true,
        visible,
        present,
        missing,
    },
    quota: "network",
    create,
    update,
    delete,
    hooks: Hooks::NONE,
};

/// Registers the operations.
pub(crate) fn routes(table: &mut Table<'_>) {
    standard(table, "/v2.0/networks", "/v2.0/networks/{id}", &NETWORK);
}

/// Adds a network, with the port of OVN's metadata service. Returns the [`Doc`] of the network.
pub(crate) fn create(call: &mut Call<'_>, mut doc: Doc) -> Result<Doc, Fault> {
    for (name, value) in [
        ("shared", json!(false)),
        ("router:external", json!(false)),
        ("provider:network_type", json!("geneve")),
        ("provider:physical_network", Value::Null),
        ("mtu", json!(1442)),
        ("qos_policy_id", Value::Null),
    ] {
        if !doc.contains_key(name) {
            doc.set(name, value);
        }
    }
    if !doc.contains_key("provider:segmentation_id") {
        let number = 1000 + call.state.count(Kind::Network);
        doc.set("provider:segmentation_id", json!(number));
    }
    doc.set("status", "ACTIVE");
    doc.set("availability_zones", json!([]));
    doc.set("ipv4_address_scope", Value::Null);
    doc.set("ipv6_address_scope", Value::Null);
    call.state.put(Kind::Network, doc.clone());
    // Returned for external networks, and in the answer to a creation.
    if !doc.contains_key("is_default") {
        doc.set("is_default", false);
    }
    let id = doc.text("id").to_owned();
    if !doc.flag("router:external") {
        ports::create_internal(
            call.state,
            json!({"network_id": id, "project_id": doc.text("project_id"),
                "device_owner": ports::METADATA, "device_id": format!("ovnmeta-{id}")}),
        );
    }
    Ok(doc)
}

fn update(_: &mut Call<'_>, _: &Doc, new: &mut Doc, changes: &Doc) -> Result<(), Fault> {
    merge(new, changes);
    Ok(())
}

fn delete(call: &mut Call<'_>, doc: &Doc) -> Result<(), Fault> {
    let id = doc.text("id");
    let in_use = call
        .state
        .by(Kind::Port, "network_id", id)
        .iter()
        .any(|port| port.text("device_owner") != ports::METADATA);
    if in_use || call.state.count_by(Kind::Router, "gateway_network_id", id) > 0 {
        return Err(Fault::new(
            409,
            "NetworkInUse",
            format!(
                "Unable to complete operation on network {id}. There are one or more ports still \
                 in use on the network."
            ),
        ));
    }
    for port in call.state.by(Kind::Port, "network_id", id) {
        call.state.remove(Kind::Port, port.text("id"));
    }
    for subnet in call.state.by(Kind::Subnet, "network_id", id) {
        call.state.remove(Kind::Subnet, subnet.text("id"));
    }
    call.state.remove(Kind::Network, id);
    Ok(())
}

fn visible(call: &Call<'_>, doc: &Doc) -> bool {
    owner_only(call, doc) || doc.flag("shared") || doc.flag("router:external")
}

fn present(state: &State, who: &Who, doc: &mut Doc) {
    let subnets: Vec<Value> = state
        .by(Kind::Subnet, "network_id", doc.text("id"))
        .iter()
        .map(|s| json!(s.text("id")))
        .collect();
    doc.set("subnets", subnets);
    for subnet in state.by(Kind::Subnet, "network_id", doc.text("id")) {
        let pool = state.get(Kind::SubnetPool, subnet.text("subnetpool_id"));
        let scope = pool.filter(|pool| pool.given("address_scope_id"));
        if let Some(pool) = scope {
            let name = format!("ipv{}_address_scope", subnet.number("ip_version"));
            doc.set(&name, pool.text("address_scope_id"));
        }
    }
    let project = doc.text("project_id").to_owned();
    doc.set("tenant_id", project);
    if !who.admin() {
        doc.retain(|name, _| !name.starts_with("provider:"));
    }
}

fn missing(id: &str) -> Fault {
    Fault::new(
        404,
        "NetworkNotFound",
        format!("Network {id} could not be found."),
    )
}
