//! Metadata and tags of servers.

use std::sync::Arc;

use serde_json::{Value, json};

use super::create::{check_tag, wrong_type};
use super::servers::{change, find};
use crate::cloud::call::{Answer, Call, Reply};
use crate::cloud::document::{Doc, Fields};
use crate::cloud::fault::Fault;
use crate::cloud::route::Table;

/// Registers the operations.
pub(crate) fn routes(table: &mut Table<'_>) {
    table
        .get("/v2.1/servers/{server_id}/metadata", |call| {
            let doc = find(call)?;
            Ok(Reply::ok(json!({"metadata": doc.object("metadata")})))
        })
        .post("/v2.1/servers/{server_id}/metadata", |call| {
            write(call, false)
        })
        .put("/v2.1/servers/{server_id}/metadata", |call| {
            write(call, true)
        })
        .get("/v2.1/servers/{server_id}/metadata/{key}", |call| {
            let doc = find(call)?;
            let key = call.parameter("key");
            let value = doc
                .object("metadata")
                .remove(key)
                .ok_or_else(|| Fault::missing("Metadata item was not found"))?;
            Ok(Reply::ok(json!({"meta": {key: value}})))
        })
        .delete("/v2.1/servers/{server_id}/metadata/{key}", |call| {
            let doc = find(call)?;
            let mut all = doc.object("metadata");
            all.remove(call.parameter("key"))
                .ok_or_else(|| Fault::missing("Metadata item was not found"))?;
            change(call, doc.text("id"), |doc| doc.set("metadata", all));
            Ok(Reply::empty(204))
        })
        .get("/v2.1/servers/{server_id}/tags", |call| {
            let doc = tagged(call)?;
            Ok(Reply::ok(json!({"tags": doc.list("tags")})))
        })
        .put("/v2.1/servers/{server_id}/tags", replace_tags)
        .delete("/v2.1/servers/{server_id}/tags", |call| {
            let doc = tagged(call)?;
            change(call, doc.text("id"), |doc| doc.set("tags", json!([])));
            Ok(Reply::empty(204))
        })
        .put("/v2.1/servers/{server_id}/tags/{tag}", add_tag)
        .delete("/v2.1/servers/{server_id}/tags/{tag}", remove_tag);
}

/// Content type of Nova's empty answer to a new tag.
const HTML: &str = "text/html; charset=UTF-8";

/// Returns the [`Doc`] of the server, if the microversion supports tags.
fn tagged(call: &Call<'_>) -> Result<Arc<Doc>, Fault> {
    if call.version < 26 {
        return Err(Fault::missing("The resource could not be found."));
    }
    find(call)
}

fn write(call: &mut Call<'_>, replace: bool) -> Answer {
    let doc = find(call)?;
    let given = call.wrapped("metadata")?;
    if let Some((key, value)) = given.iter().find(|(_, value)| !value.is_string()) {
        return Err(wrong_type(key, value));
    }
    let mut all = if replace {
        Doc::new()
    } else {
        doc.object("metadata")
    };
    all.extend(given);
    change(call, doc.text("id"), |doc| doc.set("metadata", all.clone()));
    Ok(Reply::ok(json!({"metadata": all})))
}

fn replace_tags(call: &mut Call<'_>) -> Answer {
    let doc = tagged(call)?;
    let Some(Value::Array(tags)) = call.body.get("tags").cloned() else {
        return Err(call.malformed("tags"));
    };
    tags.iter().try_for_each(check_tag)?;
    if tags.len() > 50 {
        return Err(Fault::bad(
            "The number of tags exceeded the per-server limit 50",
        ));
    }
    change(call, doc.text("id"), |doc| doc.set("tags", tags.clone()));
    Ok(Reply::ok(json!({"tags": tags})))
}

fn add_tag(call: &mut Call<'_>) -> Answer {
    let doc = tagged(call)?;
    let tag = json!(call.parameter("tag"));
    check_tag(&tag)?;
    let mut tags = doc.list("tags").to_vec();
    if tags.contains(&tag) {
        return Ok(Reply::empty_of(204, HTML));
    }
    tags.push(tag);
    change(call, doc.text("id"), |doc| doc.set("tags", tags));
    let location = format!("{}{}", call.root(), call.path);
    Ok(Reply::empty_of(201, HTML).header("location", location))
}

fn remove_tag(call: &mut Call<'_>) -> Answer {
    let doc = tagged(call)?;
    let tag = json!(call.parameter("tag"));
    let mut tags = doc.list("tags").to_vec();
    if !tags.contains(&tag) {
        return Err(Fault::missing(format!(
            "Server {} has no tag {tag}",
            doc.text("id")
        )));
    }
    tags.retain(|existing| *existing != tag);
    change(call, doc.text("id"), |doc| doc.set("tags", tags));
    Ok(Reply::empty(204))
}
