//! Pools.

use serde_json::{Value, json};

use super::part::{self, fresh, owner_only, references};
use super::{members, monitors, ovn, status};
use crate::cloud::attribute::{Attribute, Preset, Shape, attribute, fixed};
use crate::cloud::call::{Answer, Call, Reply, Who};
use crate::cloud::collection::Collection;
use crate::cloud::document::{Doc, Fields};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::route::Table;
use crate::cloud::state::State;

const PROTOCOLS: &[&str] = &["HTTP", "HTTPS", "PROXY", "PROXYV2", "SCTP", "TCP", "UDP"];
const ALGORITHMS: &[&str] = &[
    "ROUND_ROBIN",
    "LEAST_CONNECTIONS",
    "SOURCE_IP",
    "SOURCE_IP_PORT",
];

const ATTRIBUTES: &[Attribute] = &[
    attribute("name", Shape::Text(255), Preset::Text("")).editable(),
    attribute("description", Shape::Text(255), Preset::Text("")).editable(),
    attribute("admin_state_up", Shape::Flag, Preset::Flag(true)).editable(),
    attribute("protocol", Shape::OneOf(PROTOCOLS), Preset::Required),
    attribute("lb_algorithm", Shape::OneOf(ALGORITHMS), Preset::Required).editable(),
    attribute("loadbalancer_id", Shape::Id, Preset::Absent),
    attribute("listener_id", Shape::Id, Preset::Absent),
    attribute("session_persistence", Shape::Object, Preset::Null).editable(),
    attribute("members", Shape::List, Preset::EmptyList),
    attribute("healthmonitor", Shape::Object, Preset::Null),
    attribute("tls_enabled", Shape::Flag, Preset::Flag(false)).editable(),
    attribute("tls_container_ref", Shape::Text(255), Preset::Null).editable(),
    attribute("ca_tls_container_ref", Shape::Text(255), Preset::Null).editable(),
    attribute("crl_container_ref", Shape::Text(255), Preset::Null).editable(),
    attribute("tls_ciphers", Shape::Text(2048), Preset::Null).editable(),
    attribute("tls_versions", Shape::Texts, Preset::Null).editable(),
    attribute("alpn_protocols", Shape::Texts, Preset::Null).editable(),
    attribute("tags", Shape::Texts, Preset::EmptyList).editable(),
    fixed("healthmonitor_id"),
    fixed("provisioning_status"),
    fixed("operating_status"),
];

/// Octavia's pools.
pub(crate) static POOL: Collection = Collection {
    kind: Kind::Pool,
    one: "pool",
    many: "pools",
    attributes: ATTRIBUTES,
    across_projects: false,
    visible: owner_only,
    present,
    missing,
};

/// Registers the operations.
pub(crate) fn routes(table: &mut Table<'_>) {
    table
        .get("/v2.0/lbaas/pools", |call| POOL.list(call))
        .post("/v2.0/lbaas/pools", create)
        .get("/v2.0/lbaas/pools/{id}", |call| POOL.get(call))
        .put("/v2.0/lbaas/pools/{id}", |call| {
            let id = call.parameter("id").to_owned();
            let pool = POOL.find_writable(call, &id)?;
            let given = call.wrapped("pool")?;
            check_persistence(&pool, &given)?;
            ovn::pool(call.state, pool.text("loadbalancer_id"), &given)?;
            part::update(call, &POOL, &id)
        })
        .delete("/v2.0/lbaas/pools/{id}", delete);
}

/// Returns a [`Fault`] for a pool whose protocol does not fit the listener's protocol.
pub(crate) fn check_protocol(listener: &str, pool: &str) -> Result<(), Fault> {
    let valid: &[&str] = match listener {
        "TCP" => &["HTTP", "HTTPS", "PROXY", "PROXYV2", "TCP"],
        "HTTPS" => &["HTTPS", "PROXY", "PROXYV2", "TCP"],
        "HTTP" | "TERMINATED_HTTPS" => &["HTTP", "PROXY", "PROXYV2"],
        "UDP" => &["UDP"],
        "SCTP" => &["SCTP"],
        _ => &[],
    };
    match valid.contains(&pool) {
        true => Ok(()),
        false => Err(Fault::bad(format!(
            "Validation failure: The pool protocol '{pool}' is invalid while the listener protocol is '{listener}'."
        ))),
    }
}

/// Returns a [`Fault`] for session persistence unknown to Octavia.
fn check_persistence(pool: &Doc, given: &Doc) -> Result<(), Fault> {
    let Some(Value::Object(persistence)) = given.get("session_persistence") else {
        return Ok(());
    };
    let kind = persistence.text("type");
    if !matches!(kind, "SOURCE_IP" | "HTTP_COOKIE" | "APP_COOKIE") {
        return Err(Fault::bad(format!(
            "Invalid input for field/attribute type. Value: '{kind}'. Value should be one of: APP_COOKIE, HTTP_COOKIE, SOURCE_IP"
        )));
    }
    let datagram = matches!(pool.text("protocol"), "UDP" | "SCTP");
    if datagram && kind != "SOURCE_IP" {
        return Err(Fault::bad(format!(
            "Validation failure: Session persistence of type {kind} is not supported for {} protocol pools.",
            pool.text("protocol")
        )));
    }
    if !datagram && persistence.given("persistence_timeout") {
        return Err(Fault::bad(
            "Validation failure: persistence_timeout and persistence_granularity is only for UDP and SCTP protocol pools.",
        ));
    }
    Ok(())
}

/// Adds a pool to a load balancer, with the members and the monitor inside. Returns the [`Doc`] of the pool.
pub(crate) fn create_in(call: &mut Call<'_>, balancer: &str, given: &Doc) -> Result<Doc, Fault> {
    let mut doc = fresh(call, ATTRIBUTES, given, ("pool", "Pool"))?;
    check_persistence(&doc, &doc)?;
    ovn::pool(call.state, balancer, &doc)?;
    doc.set("loadbalancer_id", balancer);
    let inner = doc.remove("members").unwrap_or_default();
    let monitor = doc.remove("healthmonitor").unwrap_or_default();
    call.state.put(Kind::Pool, doc.clone());
    let mut places = members::Places::new(call.state, &doc);
    for member in inner.as_array().into_iter().flatten() {
        let member = crate::cloud::document::doc(member.clone());
        members::create_in(call, (&doc, &mut places), &member)?;
    }
    if let Value::Object(monitor) = monitor {
        monitors::create_in(call, &doc, &monitor)?;
    }
    Ok(doc)
}

fn create(call: &mut Call<'_>) -> Answer {
    let given = call.wrapped("pool")?;
    part::sound(call, ATTRIBUTES, &given)?;
    let listener = match given.text("listener_id") {
        "" => None,
        id => Some(
            call.accessible(Kind::Listener, id)
                .ok_or_else(|| Fault::missing(format!("Listener {id} not found.")))?,
        ),
    };
    let balancer = match (given.text("loadbalancer_id"), &listener) {
        ("", None) => {
            return Err(Fault::bad(
                "Validation failure: Must provide at least one of: loadbalancer_id, listener_id.",
            ));
        }
        ("", Some(listener)) => listener.text("loadbalancer_id").to_owned(),
        (id, _) => id.to_owned(),
    };
    if let Some(listener) = &listener
        && listener.given("default_pool_id")
    {
        return Err(Fault::conflict(format!(
            "Listener {} already has a default pool.",
            listener.text("id")
        )));
    }
    if let Some(listener) = &listener {
        check_protocol(listener.text("protocol"), given.text("protocol"))?;
    }
    status::mutable(call, &balancer)?;
    let members = given.get("members").and_then(Value::as_array);
    if members.is_some_and(|members| !members.is_empty()) || given.given("healthmonitor") {
        return Err(part::not_in_a_tree());
    }
    let mut doc = create_in(call, &balancer, &given)?;
    doc.remove("listener_id");
    call.state.edit(Kind::Pool, doc.text("id"), |doc| {
        doc.remove("listener_id");
    });
    if let Some(listener) = listener {
        let id = doc.text("id").to_owned();
        call.state.edit(Kind::Listener, listener.text("id"), |doc| {
            doc.set("default_pool_id", id);
            doc.set("provisioning_status", "PENDING_UPDATE");
        });
    }
    status::lock(call, &balancer);
    Ok(Reply::with(201, json!({"pool": POOL.show(call, &doc)})))
}

fn delete(call: &mut Call<'_>) -> Answer {
    let id = call.parameter("id").to_owned();
    let answer = part::remove(call, &POOL, &id)?;
    for listener in call.state.by(Kind::Listener, "default_pool_id", &id) {
        call.state.edit(Kind::Listener, listener.text("id"), |doc| {
            doc.set("default_pool_id", Value::Null)
        });
    }
    for kind in [Kind::Member, Kind::HealthMonitor] {
        for part in call.state.by(kind, "pool_id", &id) {
            status::doom(call.state, kind, part.text("id"));
        }
    }
    Ok(answer)
}

fn present(state: &State, _: &Who, doc: &mut Doc) {
    let balancer = doc.remove("loadbalancer_id").unwrap_or_default();
    let id = doc.text("id").to_owned();
    doc.set("loadbalancers", json!([{"id": balancer}]));
    doc.set(
        "listeners",
        references(state, Kind::Listener, "default_pool_id", &id),
    );
    doc.set("members", references(state, Kind::Member, "pool_id", &id));
    if let Some(monitor) = state.by(Kind::HealthMonitor, "pool_id", &id).first() {
        doc.set("healthmonitor_id", monitor.text("id"));
    }
    if let Some(Value::Object(persistence)) = doc.get_mut("session_persistence") {
        for name in [
            "cookie_name",
            "persistence_timeout",
            "persistence_granularity",
        ] {
            if !persistence.contains_key(name) {
                persistence.set(name, Value::Null);
            }
        }
    }
}

fn missing(id: &str) -> Fault {
    Fault::missing(format!("Pool {id} not found."))
}
