//! Agents of the hosts of a deployed cloud. A cloud without hosts of its own has none.

use http::Method;
use serde_json::{Value, json};

use crate::cloud::call::{Answer, Call, Reply};
use crate::cloud::document::{Doc, Fields};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::route::{Access, Table};

/// Registers the operations.
pub(super) fn routes(table: &mut Table<'_>) {
    table
        .on(Method::GET, "/v2.0/agents", Access::Reader, list)
        .on(
            Method::DELETE,
            "/v2.0/agents/{agent_id}",
            Access::Admin,
            delete,
        );
}

fn list(call: &mut Call<'_>) -> Answer {
    let host = call.query.get("host");
    let all = call.state.all(Kind::NetworkAgent);
    let all = all.filter(|it| host.is_none_or(|host| it.text("host") == host));
    let all: Vec<Value> = all.map(|it| view_of(call, it)).collect();
    Ok(Reply::ok(json!({"agents": all})))
}

fn view_of(call: &Call<'_>, doc: &Doc) -> Value {
    let host = doc.text("host");
    let mut hosts = call.state.all(Kind::ComputeHost);
    let alive = hosts.any(|it| it.text("host") == host && it.text("state") == "up");
    json!({"id": doc.text("id"), "agent_type": doc.text("agent_type"), "binary": doc.text("binary"),
        "host": host, "topic": "n/a", "alive": alive, "admin_state_up": true,
        "availability_zone": "", "description": "", "configurations": {}})
}

fn delete(call: &mut Call<'_>) -> Answer {
    let id = call.parameter("agent_id").to_owned();
    match call.state.remove(Kind::NetworkAgent, &id) {
        Some(_) => Ok(Reply::empty(204)),
        None => Err(Fault::new(
            404,
            "AgentNotFound",
            format!("Agent {id} could not be found."),
        )),
    }
}
