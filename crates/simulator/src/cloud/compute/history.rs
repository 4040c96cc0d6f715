//! The actions on a server: `os-instance-actions`.

use serde_json::{Value, json};

use super::servers::find;
use crate::cloud::call::{Call, Reply};
use crate::cloud::clock::naive_micros;
use crate::cloud::document::{Doc, Fields};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::route::Table;
use crate::cloud::state::State;

/// Number of recorded actions of a server, besides the creation.
const REMEMBERED: usize = 20;

/// Registers the operations.
pub(crate) fn routes(table: &mut Table<'_>) {
    table
        .get("/v2.1/servers/{server_id}/os-instance-actions", |call| {
            let doc = find(call)?;
            Ok(Reply::ok(json!({"instanceActions": actions(&doc, call.version)})))
        })
        .get(
            "/v2.1/servers/{server_id}/os-instance-actions/{request_id}",
            |call| {
                let doc = find(call)?;
                let wanted = call.parameter("request_id");
                let mut action = actions(&doc, call.version)
                    .into_iter()
                    .find(|action| action["request_id"] == wanted)
                    .ok_or_else(|| {
                        Fault::missing(format!("Action for request_id {wanted} on instance {} not found.", doc.text("id")))
                    })?;
                if call.version < 51 && !call.who.admin() {
                    return Ok(Reply::ok(json!({"instanceAction": action})));
                }
                let failed = doc.list("_actions").iter().find(|it| it["request_id"] == wanted);
                let why = failed.and_then(|it| it["failure"].as_str());
                action["events"] = json!([{"event": format!("compute__do_{}", action["action"].as_str().unwrap_or_default()),
                    "start_time": action["start_time"], "finish_time": action["start_time"],
                    "result": if why.is_some() { "Error" } else { "Success" }, "traceback": null}]);
                if call.version >= 84 {
                    action["events"][0]["details"] = json!(why);
                }
                Ok(Reply::ok(json!({"instanceAction": action})))
            },
        );
}

/// Records an action of the caller on the server.
pub(crate) fn note(call: &mut Call<'_>, id: &str, action: &str) {
    let user = call.who.user_id.clone();
    record(call.state, id, &user, action);
}

/// Records an action of a user, or of another service for a user, on the server.
pub(super) fn record(state: &mut State, id: &str, user: &str, action: &str) {
    let entry = json!({"action": action, "request_id": format!("req-{}", state.new_id()),
        "start_time": naive_micros(state.now()), "user_id": user});
    state.edit(Kind::Server, id, |doc| {
        let mut all = doc.list("_actions").to_vec();
        all.push(entry);
        let excess = all.len().saturating_sub(REMEMBERED);
        all.drain(..excess);
        doc.set("_actions", all);
    });
}

/// Records the reason for the failure of the newest action of this name.
pub(super) fn fail(state: &mut State, id: &str, action: &str, why: &str) {
    state.edit(Kind::Server, id, |doc| {
        let mut all = doc.list("_actions").to_vec();
        if let Some(entry) = all.iter_mut().rev().find(|it| it["action"] == action) {
            entry["failure"] = why.into();
        }
        doc.set("_actions", all);
    });
}

/// Returns the actions, newest first; the creation is the last one of every server.
fn actions(doc: &Doc, version: u32) -> Vec<Value> {
    let id = doc.text("id");
    let created = doc.text("created").trim_end_matches('Z');
    let create = json!({"action": "create", "request_id": format!("req-{id}"),
        "start_time": format!("{created}.000000"), "user_id": doc.text("user_id")});
    doc.list("_actions")
        .iter()
        .rev()
        .chain([&create])
        .map(|entry| {
            let mut action = json!({"action": entry["action"], "instance_uuid": id, "request_id": entry["request_id"],
                "user_id": entry["user_id"], "project_id": doc.text("project_id"),
                "start_time": entry["start_time"],
                "message": entry["failure"].as_str().map(|_| "Error")});
            if version >= 58 {
                action["updated_at"] = entry["start_time"].clone();
            }
            action
        })
        .collect()
}
