//! Metadata of volumes.

use http::Method;
use serde_json::json;

use super::body;
use super::volumes::find;
use crate::cloud::call::{Answer, Call, Reply};
use crate::cloud::document::{Doc, Fields};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::route::{Access, Table};

/// Registers the operations.
pub(crate) fn routes(table: &mut Table<'_>) {
    let (all, one) = (
        "/v3/{project}/volumes/{id}/metadata",
        "/v3/{project}/volumes/{id}/metadata/{key}",
    );
    table
        .get(all, |call| {
            let doc = find(call)?;
            Ok(Reply::ok(json!({"metadata": doc.object("metadata")})))
        })
        .post(all, |call| write(call, false))
        .on(Method::PUT, all, Access::Member, |call| write(call, true))
        .get(one, |call| {
            let doc = find(call)?;
            let key = call.parameter("key");
            let value = doc
                .object("metadata")
                .remove(key)
                .ok_or_else(|| missing(key))?;
            Ok(Reply::ok(json!({"meta": {key: value}})))
        })
        .delete(one, |call| {
            let doc = find(call)?;
            let key = call.parameter("key");
            let mut all = doc.object("metadata");
            all.remove(key).ok_or_else(|| missing(key))?;
            call.state
                .edit(Kind::Volume, doc.text("id"), |doc| doc.set("metadata", all));
            Ok(Reply::empty(200))
        });
}

fn write(call: &mut Call<'_>, replace: bool) -> Answer {
    let doc = find(call)?;
    let given = call.wrapped("metadata")?;
    body::pairs("metadata", &given)?;
    let mut all = if replace {
        Doc::new()
    } else {
        doc.object("metadata")
    };
    all.extend(given);
    call.state.edit(Kind::Volume, doc.text("id"), |doc| {
        doc.set("metadata", all.clone());
    });
    Ok(Reply::ok(json!({"metadata": all})))
}

fn missing(key: &str) -> Fault {
    Fault::missing(format!("Metadata item {key} was not found."))
}
