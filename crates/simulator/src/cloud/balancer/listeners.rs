//! Listeners.

use std::net::IpAddr;

use ipnet::IpNet;
use serde_json::{Value, json};

use super::part::{self, fresh, owner_only, references};
use super::{ovn, pools, status, tls};
use crate::cloud::attribute::{Attribute, Preset, Shape, attribute, fixed, python_list};
use crate::cloud::call::{Answer, Call, Reply, Who};
use crate::cloud::collection::Collection;
use crate::cloud::document::{Doc, Fields};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::route::Table;
use crate::cloud::state::State;

const PROTOCOLS: &[&str] = &[
    "HTTP",
    "HTTPS",
    "TCP",
    "UDP",
    "SCTP",
    "TERMINATED_HTTPS",
    "PROMETHEUS",
];

const ATTRIBUTES: &[Attribute] = &[
    attribute("name", Shape::Text(255), Preset::Text("")).editable(),
    attribute("description", Shape::Text(255), Preset::Text("")).editable(),
    attribute("admin_state_up", Shape::Flag, Preset::Flag(true)).editable(),
    attribute("protocol", Shape::OneOf(PROTOCOLS), Preset::Required),
    attribute("protocol_port", Shape::Number(1, 65_535), Preset::Required),
    attribute(
        "connection_limit",
        Shape::Number(-1, 1_000_000),
        Preset::Number(-1),
    )
    .editable()
    .nullable(),
    attribute("loadbalancer_id", Shape::Id, Preset::Absent),
    attribute("default_pool_id", Shape::Id, Preset::Null).editable(),
    attribute("default_pool", Shape::Object, Preset::Absent).nullable(),
    attribute("default_tls_container_ref", Shape::Text(255), Preset::Null).editable(),
    attribute("sni_container_refs", Shape::Texts, Preset::EmptyList).editable(),
    attribute("insert_headers", Shape::Object, Preset::EmptyObject)
        .editable()
        .nullable(),
    attribute(
        "timeout_client_data",
        Shape::Number(0, 31_536_000_000),
        Preset::Number(50_000),
    )
    .editable()
    .nullable(),
    attribute(
        "timeout_member_connect",
        Shape::Number(0, 31_536_000_000),
        Preset::Number(5000),
    )
    .editable()
    .nullable(),
    attribute(
        "timeout_member_data",
        Shape::Number(0, 31_536_000_000),
        Preset::Number(50_000),
    )
    .editable()
    .nullable(),
    attribute(
        "timeout_tcp_inspect",
        Shape::Number(0, 31_536_000_000),
        Preset::Number(0),
    )
    .editable()
    .nullable(),
    attribute("allowed_cidrs", Shape::Texts, Preset::Null).editable(),
    attribute(
        "client_ca_tls_container_ref",
        Shape::Text(255),
        Preset::Null,
    )
    .editable(),
    attribute(
        "client_authentication",
        Shape::Text(32),
        Preset::Text("NONE"),
    )
    .editable(),
    attribute("client_crl_container_ref", Shape::Text(255), Preset::Null).editable(),
    attribute("tls_ciphers", Shape::Text(2048), Preset::Null).editable(),
    attribute("tls_versions", Shape::Texts, Preset::Null).editable(),
    attribute("alpn_protocols", Shape::Texts, Preset::Null).editable(),
    attribute("l7policies", Shape::List, Preset::Absent),
    attribute("tags", Shape::Texts, Preset::EmptyList).editable(),
    fixed("provisioning_status"),
    fixed("operating_status"),
];

/// Octavia's listeners.
pub(crate) static LISTENER: Collection = Collection {
    kind: Kind::Listener,
    one: "listener",
    many: "listeners",
    attributes: ATTRIBUTES,
    across_projects: false,
    visible: owner_only,
    present,
    missing,
};

/// Registers the operations.
pub(crate) fn routes(table: &mut Table<'_>) {
    table
        .get("/v2.0/lbaas/listeners", |call| LISTENER.list(call))
        .post("/v2.0/lbaas/listeners", create)
        .get("/v2.0/lbaas/listeners/{id}", |call| LISTENER.get(call))
        .put("/v2.0/lbaas/listeners/{id}", update)
        .delete("/v2.0/lbaas/listeners/{id}", |call| {
            let id = call.parameter("id").to_owned();
            part::remove(call, &LISTENER, &id)
        })
        .get("/v2.0/lbaas/listeners/{id}/stats", |call| {
            LISTENER.find(call, call.parameter("id"))?;
            Ok(Reply::ok(
                json!({"stats": {"active_connections": 0, "bytes_in": 0, "bytes_out": 0,
                "request_errors": 0, "total_connections": 0}}),
            ))
        });
}

/// Adds a listener to a load balancer, with the pool inside, if there is one. Returns the [`Doc`] of the listener.
pub(crate) fn create_in(call: &mut Call<'_>, balancer: &str, given: &Doc) -> Result<Doc, Fault> {
    let mut doc = fresh(call, ATTRIBUTES, given, ("listener", "Listener"))?;
    doc.set("loadbalancer_id", balancer);
    if let Some(project) = call.state.get(Kind::LoadBalancer, balancer) {
        doc.set("project_id", project.text("project_id"));
    }
    doc.remove("l7policies");
    let inserts = doc.get("insert_headers").and_then(Value::as_object);
    if inserts.is_some_and(|headers| !headers.is_empty())
        && !matches!(doc.text("protocol"), "HTTP" | "TERMINATED_HTTPS")
    {
        return Err(Fault::bad(format!(
            "insert-headers is not a valid option for a {} protocol listener.",
            doc.text("protocol")
        )));
    }
    tls::check_new(call, &doc)?;
    ovn::listener(call.state, balancer, &doc)?;
    check_cidrs(call, balancer, &doc)?;
    let datagram = |doc: &Doc| matches!(doc.text("protocol"), "UDP" | "SCTP");
    let port = doc.number("protocol_port");
    let clash = call
        .state
        .by(Kind::Listener, "loadbalancer_id", balancer)
        .into_iter()
        .any(|other| {
            other.number("protocol_port") == port
                && (other.text("protocol") == doc.text("protocol")
                    || !datagram(&other) && !datagram(&doc))
        });
    if clash {
        return Err(Fault::conflict(format!(
            "Another Listener on this Load Balancer is already using protocol {} and protocol_port {port}",
            doc.text("protocol")
        )));
    }
    if let Some(Value::Object(pool)) = doc.remove("default_pool") {
        let by_name = call
            .state
            .by(Kind::Pool, "loadbalancer_id", balancer)
            .into_iter()
            .find(|known| pool.len() == 1 && known.text("name") == pool.text("name"));
        let id = match by_name {
            Some(known) => known.text("id").to_owned(),
            None => {
                pools::check_protocol(doc.text("protocol"), pool.text("protocol"))?;
                pools::create_in(call, balancer, &pool)?
                    .text("id")
                    .to_owned()
            }
        };
        doc.set("default_pool_id", id);
    } else if doc.given("default_pool_id") {
        known_pool(call, doc.text("default_pool_id"), balancer)?;
    }
    call.state.put(Kind::Listener, doc.clone());
    Ok(doc)
}

fn create(call: &mut Call<'_>) -> Answer {
    let given = call.wrapped("listener")?;
    let balancer = given.text("loadbalancer_id").to_owned();
    if balancer.is_empty() {
        return Err(Fault::bad(
            "Invalid input for field/attribute loadbalancer_id. Value: 'None'. Mandatory field missing.",
        ));
    }
    part::sound(call, ATTRIBUTES, &given)?;
    status::mutable(call, &balancer)?;
    if given.given("default_pool") {
        return Err(part::not_in_a_tree());
    }
    let doc = create_in(call, &balancer, &given)?;
    status::lock(call, &balancer);
    Ok(Reply::with(
        201,
        json!({"listener": LISTENER.show(call, &doc)}),
    ))
}

fn update(call: &mut Call<'_>) -> Answer {
    let id = call.parameter("id").to_owned();
    let old = LISTENER.find_writable(call, &id)?;
    let given = call.wrapped("listener")?;
    tls::check(call, old.text("protocol"), &given)?;
    check_cidrs(call, old.text("loadbalancer_id"), &given)?;
    ovn::listener(call.state, old.text("loadbalancer_id"), &given)?;
    if given.given("default_pool_id") {
        known_pool(
            call,
            given.text("default_pool_id"),
            old.text("loadbalancer_id"),
        )?;
    }
    part::update(call, &LISTENER, &id)
}

fn known_pool(call: &Call<'_>, id: &str, balancer: &str) -> Result<(), Fault> {
    let pool = call
        .accessible(Kind::Pool, id)
        .filter(|pool| pool.text("loadbalancer_id") == balancer);
    pool.map(|_| ())
        .ok_or_else(|| Fault::missing(format!("Pool {id} not found.")))
}

/// Minor version of the API with `allowed_cidrs`.
const CIDRS: u32 = 12;

/// Returns a [`Fault`] unless each entry is a CIDR, of the family of an address of the load balancer.
fn check_cidrs(call: &Call<'_>, balancer: &str, doc: &Doc) -> Result<(), Fault> {
    let minor = call.settings.changeable.read().octavia_minor_version;
    if minor < CIDRS && doc.given("allowed_cidrs") {
        return Err(Fault::bad(
            "Unknown attribute for argument listener: allowed_cidrs",
        ));
    }
    let balancer = call.state.get(Kind::LoadBalancer, balancer);
    let mut vips = Vec::new();
    if let Some(balancer) = &balancer {
        vips.push(balancer.text("vip_address"));
        let further = balancer.list("additional_vips").iter();
        vips.extend(further.filter_map(|vip| vip["ip_address"].as_str()));
    }
    for cidr in doc.texts("allowed_cidrs") {
        let address = |_| cidr.parse::<IpAddr>().map(IpNet::from);
        let Ok(network) = cidr.parse::<IpNet>().or_else(address) else {
            return Err(Fault::bad(format!(
                "Invalid input for field/attribute allowed_cidrs. Value: '{cidr}'. Value should be \
                 IPv4 or IPv6 CIDR format"
            )));
        };
        let fits = |vip: &&str| {
            let vip = vip.parse::<IpAddr>();
            vip.is_ok_and(|vip| vip.is_ipv4() == network.addr().is_ipv4())
        };
        if !vips.iter().any(fits) {
            return Err(Fault::bad(format!(
                "Validation failure: CIDR {cidr} IP version incompatible with all VIPs {} IP version.",
                python_list(&vips)
            )));
        }
    }
    Ok(())
}

fn present(state: &State, _: &Who, doc: &mut Doc) {
    let balancer = doc.remove("loadbalancer_id").unwrap_or_default();
    let id = doc.text("id").to_owned();
    doc.set("loadbalancers", json!([{"id": balancer}]));
    doc.set(
        "l7policies",
        references(state, Kind::L7Policy, "listener_id", &id),
    );
}

fn missing(id: &str) -> Fault {
    Fault::missing(format!("Listener {id} not found."))
}
