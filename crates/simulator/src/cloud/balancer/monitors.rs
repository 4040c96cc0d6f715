//! Health monitors.

use serde_json::json;

use super::ovn;
use super::part::{self, fresh, owner_only};
use super::pools::POOL;
use super::status;
use crate::cloud::attribute::{Attribute, Preset, Shape, attribute, fixed};
use crate::cloud::call::{Answer, Call, Reply};
use crate::cloud::collection::Collection;
use crate::cloud::document::{Doc, Fields};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::route::Table;

const TYPES: &[&str] = &[
    "HTTP",
    "HTTPS",
    "PING",
    "SCTP",
    "TCP",
    "TLS-HELLO",
    "UDP-CONNECT",
];

const ATTRIBUTES: &[Attribute] = &[
    attribute("name", Shape::Text(255), Preset::Text("")).editable(),
    attribute("pool_id", Shape::Id, Preset::Absent),
    attribute("type", Shape::OneOf(TYPES), Preset::Required),
    attribute("delay", Shape::Number(0, 1_000_000), Preset::Required).editable(),
    attribute("timeout", Shape::Number(0, 1_000_000), Preset::Required).editable(),
    attribute("max_retries", Shape::Number(1, 10), Preset::Required).editable(),
    attribute("max_retries_down", Shape::Number(1, 10), Preset::Number(3)).editable(),
    attribute("http_method", Shape::Text(16), Preset::Null).editable(),
    attribute("url_path", Shape::Text(2048), Preset::Null).editable(),
    attribute("expected_codes", Shape::Text(64), Preset::Null).editable(),
    attribute("http_version", Shape::Any, Preset::Null).editable(),
    attribute("domain_name", Shape::Text(255), Preset::Null).editable(),
    attribute("admin_state_up", Shape::Flag, Preset::Flag(true)).editable(),
    attribute("tags", Shape::Texts, Preset::EmptyList).editable(),
    fixed("provisioning_status"),
    fixed("operating_status"),
];

/// Octavia's health monitors.
pub(crate) static MONITOR: Collection = Collection {
    kind: Kind::HealthMonitor,
    one: "healthmonitor",
    many: "healthmonitors",
    attributes: ATTRIBUTES,
    across_projects: false,
    visible: owner_only,
    present: |_, _, doc| {
        doc.remove("loadbalancer_id");
        let pool = doc.remove("pool_id").unwrap_or_default();
        doc.set("pools", json!([{"id": pool}]));
    },
    missing,
};

/// Registers the operations.
pub(crate) fn routes(table: &mut Table<'_>) {
    table
        .get("/v2.0/lbaas/healthmonitors", |call| MONITOR.list(call))
        .post("/v2.0/lbaas/healthmonitors", create)
        .get("/v2.0/lbaas/healthmonitors/{id}", |call| MONITOR.get(call))
        .put("/v2.0/lbaas/healthmonitors/{id}", |call| {
            let id = call.parameter("id").to_owned();
            part::update(call, &MONITOR, &id)
        })
        .delete("/v2.0/lbaas/healthmonitors/{id}", |call| {
            let id = call.parameter("id").to_owned();
            part::remove(call, &MONITOR, &id)
        });
}

/// Adds the monitor of a pool, and returns its [`Doc`].
pub(crate) fn create_in(call: &mut Call<'_>, pool: &Doc, given: &Doc) -> Result<Doc, Fault> {
    let mut doc = fresh(
        call,
        ATTRIBUTES,
        given,
        ("health_monitor", "Health Monitor"),
    )?;
    if call
        .state
        .count_by(Kind::HealthMonitor, "pool_id", pool.text("id"))
        > 0
    {
        return Err(Fault::conflict("This pool already has a health monitor"));
    }
    if matches!(doc.text("type"), "HTTP" | "HTTPS") {
        for (field, value) in [
            ("http_method", "GET"),
            ("url_path", "/"),
            ("expected_codes", "200"),
        ] {
            if !doc.given(field) {
                doc.set(field, value);
            }
        }
    }
    ovn::monitor(call.state, pool.text("loadbalancer_id"), &doc)?;
    if doc.number("timeout") > doc.number("delay") {
        return Err(Fault::bad(format!(
            "Validation failure: The timeout value {} must be less than or equal to the delay value {}",
            doc.number("timeout"),
            doc.number("delay")
        )));
    }
    doc.set("pool_id", pool.text("id"));
    doc.set("loadbalancer_id", pool.text("loadbalancer_id"));
    doc.set("project_id", pool.text("project_id"));
    call.state.put(Kind::HealthMonitor, doc.clone());
    Ok(doc)
}

fn create(call: &mut Call<'_>) -> Answer {
    let given = call.wrapped("healthmonitor")?;
    if given.text("pool_id").is_empty() {
        return Err(Fault::bad(
            "Invalid input for field/attribute pool_id. Value: 'None'. Mandatory field missing.",
        ));
    }
    let pool = POOL.find_writable(call, given.text("pool_id"))?;
    let balancer = pool.text("loadbalancer_id").to_owned();
    status::mutable(call, &balancer)?;
    let doc = create_in(call, &pool, &given)?;
    status::lock(call, &balancer);
    Ok(Reply::with(
        201,
        json!({"healthmonitor": MONITOR.show(call, &doc)}),
    ))
}

fn missing(id: &str) -> Fault {
    Fault::missing(format!("Health Monitor {id} not found."))
}
