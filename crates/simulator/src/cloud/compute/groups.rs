//! Server groups.

use serde_json::{Value, json};

use crate::cloud::call::{Answer, Call, Reply};
use crate::cloud::document::{Doc, Fields, doc as to_doc};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::quota;
use crate::cloud::route::Table;
use crate::cloud::service::Service;

const POLICIES: [&str; 4] = [
    "affinity",
    "anti-affinity",
    "soft-affinity",
    "soft-anti-affinity",
];

/// Registers the operations.
pub(crate) fn routes(table: &mut Table<'_>) {
    table
        .get("/v2.1/os-server-groups", |call| {
            let groups = call
                .state
                .by(Kind::ServerGroup, "project_id", &call.who.project_id);
            let all: Vec<Value> = groups.iter().map(|doc| view(call, doc)).collect();
            Ok(Reply::ok(json!({"server_groups": all})))
        })
        .post("/v2.1/os-server-groups", create)
        .get("/v2.1/os-server-groups/{id}", |call| {
            let doc = find(call)?;
            Ok(Reply::ok(json!({"server_group": view(call, &doc)})))
        })
        .delete("/v2.1/os-server-groups/{id}", |call| {
            let doc = find(call)?;
            call.state.remove(Kind::ServerGroup, doc.text("id"));
            Ok(Reply::empty(204))
        });
}

fn find(call: &Call<'_>) -> Result<std::sync::Arc<Doc>, Fault> {
    let id = call.parameter("id");
    call.accessible(Kind::ServerGroup, id)
        .ok_or_else(|| Fault::missing(format!("Instance group {id} could not be found.")))
}

fn create(call: &mut Call<'_>) -> Answer {
    let given = call.wrapped("server_group")?;
    let policy = if call.version >= 64 {
        given.text("policy").to_owned()
    } else {
        given
            .texts("policies")
            .next()
            .unwrap_or_default()
            .to_owned()
    };
    let soft_allowed = call.version >= 15 || !policy.starts_with("soft");
    if !POLICIES.contains(&policy.as_str()) || !soft_allowed {
        return Err(Fault::bad(format!(
            "Invalid input for field/attribute policy. Value: {policy}. '{policy}' is not one of \
             ['anti-affinity', 'affinity', 'soft-anti-affinity', 'soft-affinity']"
        )));
    }
    if given.text("name").is_empty() {
        return Err(Fault::bad(
            "Invalid input for field/attribute name. Value: . '' is too short",
        ));
    }
    let project = call.who.project_id.clone();
    if !quota::exceeded(call, Service::Compute, &project, &[("server_groups", 1)]).is_empty() {
        return Err(Fault::forbidden("Quota exceeded, too many server groups."));
    }
    let id = call.state.new_id();
    let doc = to_doc(
        json!({"id": id, "name": given.text("name"), "project_id": project,
        "user_id": call.who.user_id, "_policy": policy, "members": [],
        "rules": given.get("rules").cloned().unwrap_or_else(|| json!({}))}),
    );
    call.state.put(Kind::ServerGroup, doc.clone());
    Ok(Reply::ok(json!({"server_group": view(call, &doc)})))
}

fn view(call: &Call<'_>, doc: &Doc) -> Value {
    let mut out =
        json!({"id": doc.text("id"), "name": doc.text("name"), "members": doc.list("members")});
    if call.version >= 64 {
        out["policy"] = json!(doc.text("_policy"));
        out["rules"] = doc.get("rules").cloned().unwrap_or_default();
    } else {
        out["policies"] = json!([doc.text("_policy")]);
        out["metadata"] = json!({});
    }
    if call.version >= 13 {
        out["project_id"] = json!(doc.text("project_id"));
        out["user_id"] = json!(doc.text("user_id"));
    }
    out
}
