//! Access of projects to private volume types.

use http::Method;
use serde_json::{Value, json};

use super::volume_types::resolve;
use crate::cloud::call::{Answer, Call, Reply};
use crate::cloud::document::Fields;
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::route::{Access, Table};

/// Registers the operations.
pub(crate) fn routes(table: &mut Table<'_>) {
    table
        .on(
            Method::GET,
            "/v3/{project}/types/{id}/os-volume-type-access",
            Access::Admin,
            |call| {
                let doc = resolve(call, call.parameter("id"))?;
                if doc.get("is_public") != Some(&Value::Bool(false)) {
                    return Err(Fault::missing("Access list not available for public volume types."));
                }
                let access = |project: &str| {
                    json!({"volume_type_id": doc.text("id"), "project_id": project})
                };
                let all: Vec<Value> = doc.texts("_projects").map(access).collect();
                Ok(Reply::ok(json!({"volume_type_access": all})))
            },
        )
        .on(
            Method::POST,
            "/v3/{project}/types/{id}/action",
            Access::Admin,
            act,
        );
}

fn act(call: &mut Call<'_>) -> Answer {
    let doc = resolve(call, call.parameter("id"))?;
    let id = doc.text("id");
    let body = call.body.as_object().cloned().unwrap_or_default();
    let Some((action, argument)) = body.into_iter().next() else {
        return Err(Fault::bad("Malformed request body"));
    };
    if !matches!(action.as_str(), "addProjectAccess" | "removeProjectAccess") {
        return Err(Fault::bad(format!("There is no such action: {action}")));
    }
    let Some(project) = argument["project"].as_str().map(str::to_owned) else {
        return Err(Fault::bad(format!(
            "Invalid input for field/attribute {action}. 'project' is a required property"
        )));
    };
    let mut projects: Vec<String> = doc.texts("_projects").map(str::to_owned).collect();
    let has = projects.contains(&project);
    if action == "addProjectAccess" {
        if doc.get("is_public") != Some(&Value::Bool(false)) {
            return Err(Fault::bad(
                "Invalid volume type: Type access modification is not applicable to public volume type.",
            ));
        }
        if has {
            return Err(Fault::conflict(format!(
                "Volume type access for {id} / {project} combination already exists."
            )));
        }
        projects.push(project);
    } else {
        if !has {
            return Err(Fault::missing(format!(
                "Volume type access not found for {id} / {project} combination."
            )));
        }
        projects.retain(|other| *other != project);
    }
    call.state.edit(Kind::VolumeType, id, |doc| {
        doc.set("_projects", projects);
    });
    Ok(Reply::empty(202))
}
