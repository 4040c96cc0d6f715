//! Load balancer with its nested parts.

use serde_json::{Value, json};

use super::{listeners, members, pools};
use crate::cloud::call::Call;
use crate::cloud::collection::Collection;
use crate::cloud::document::{Doc, Fields};
use crate::cloud::kind::Kind;
use crate::cloud::state::State;

/// Replaces references by the parts, as in the answer to the creation of a tree.
pub(crate) fn fill(call: &Call<'_>, balancer: &mut Doc) {
    let id = balancer.text("id").to_owned();
    let of = |kind, field, value: &str| call.state.by(kind, field, value);
    let pool = |doc: &Doc| {
        let mut out = pools::POOL.show(call, doc);
        out.set(
            "members",
            views(
                call,
                &members::MEMBER,
                &of(Kind::Member, "pool_id", doc.text("id")),
            ),
        );
        // Octavia builds this answer before reading the monitor back.
        out.set("healthmonitor", Value::Null);
        out.remove("healthmonitor_id");
        out.remove("loadbalancers");
        out
    };
    let all: Vec<Value> = of(Kind::Pool, "loadbalancer_id", &id)
        .iter()
        .map(|doc| json!(pool(doc)))
        .collect();
    balancer.set("pools", all);
    let all: Vec<Value> = of(Kind::Listener, "loadbalancer_id", &id)
        .iter()
        .map(|doc| {
            let mut out = listeners::LISTENER.show(call, doc);
            out.remove("loadbalancers");
            let created = out.get("created_at").cloned().unwrap_or_default();
            out.set("updated_at", created);
            Value::Object(out)
        })
        .collect();
    balancer.set("listeners", all);
}

/// Returns both states of each resource, as in the answer to GET .../status.
pub(crate) fn statuses(state: &State, balancer: &Doc) -> Value {
    let base = |doc: &Doc| {
        json!({"id": doc.text("id"), "name": doc.text("name"),
            "provisioning_status": doc.text("provisioning_status"),
            "operating_status": doc.text("operating_status")})
    };
    let pool = |doc: &Doc| {
        let mut out = base(doc);
        out["members"] = state
            .by(Kind::Member, "pool_id", doc.text("id"))
            .iter()
            .map(|member| {
                let mut out = base(member);
                out["address"] = json!(member.text("address"));
                out["protocol_port"] = json!(member.number("protocol_port"));
                out
            })
            .collect();
        if let Some(monitor) = state
            .by(Kind::HealthMonitor, "pool_id", doc.text("id"))
            .first()
        {
            let mut inner = base(monitor);
            inner["type"] = json!(monitor.text("type"));
            out["health_monitor"] = inner;
        }
        out
    };
    let id = balancer.text("id");
    let mut out = base(balancer);
    out["listeners"] = state
        .by(Kind::Listener, "loadbalancer_id", id)
        .iter()
        .map(|listener| {
            let mut out = base(listener);
            let default = state.get(Kind::Pool, listener.text("default_pool_id"));
            out["pools"] = default.iter().map(|doc| pool(doc)).collect();
            out
        })
        .collect();
    out
}

fn views(call: &Call<'_>, collection: &Collection, docs: &[std::sync::Arc<Doc>]) -> Vec<Value> {
    docs.iter()
        .map(|doc| Value::Object(collection.show(call, doc)))
        .collect()
}
