//! Servers: get, update, delete. Creation, lists, actions and views have their own files.

use std::sync::Arc;

use http::Method;
use serde::Serialize;
use serde_json::json;

use super::{actions, create, lifecycle, listing, view};
use crate::cloud::call::{Answer, Call, Reply};
use crate::cloud::clock::zulu;
use crate::cloud::document::{Doc, Fields};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::route::{Access, Table};

/// Registers the operations.
pub(crate) fn routes(table: &mut Table<'_>) {
    table
        .get("/v2.1/servers", |call| listing::list(call, false))
        .get("/v2.1/servers/detail", |call| listing::list(call, true))
        .post("/v2.1/servers", create::create)
        .get("/v2.1/servers/{server_id}", show)
        .put("/v2.1/servers/{server_id}", update)
        .delete("/v2.1/servers/{server_id}", delete)
        .post("/v2.1/servers/{server_id}/action", actions::act)
        .on(
            Method::GET,
            "/v2.1/servers/{server_id}/diagnostics",
            Access::Admin,
            |call| {
                find(call)?;
                Ok(Reply::ok(json!({
                    "memory": 524_288, "cpu0_time": 17_300_000_000i64,
                    "vda_errors": -1, "vda_read": 262_144, "vda_read_req": 112,
                    "vda_write": 5_778_432, "vda_write_req": 488,
                    "vnet1_rx": 2_070_139, "vnet1_rx_drop": 0, "vnet1_rx_errors": 0, "vnet1_rx_packets": 26_701,
                    "vnet1_tx": 140_208, "vnet1_tx_drop": 0, "vnet1_tx_errors": 0, "vnet1_tx_packets": 662})))
            },
        );
}

/// Returns the [`Doc`] of the server in the path, if visible to the caller.
pub(crate) fn find(call: &Call<'_>) -> Result<Arc<Doc>, Fault> {
    by_id(call, call.parameter("server_id"))
}

/// Returns the [`Doc`] of a server, if visible to the caller.
pub(crate) fn by_id(call: &Call<'_>, id: &str) -> Result<Arc<Doc>, Fault> {
    call.accessible(Kind::Server, id)
        .ok_or_else(|| Fault::missing(format!("Instance {id} could not be found.")))
}

/// Changes a stored server and its time of update.
pub(crate) fn change(call: &mut Call<'_>, id: &str, change: impl FnOnce(&mut Doc)) {
    let now = zulu(call.now());
    call.state.edit(Kind::Server, id, |doc| {
        change(doc);
        doc.set("updated", now);
    });
}

fn show(call: &mut Call<'_>) -> Answer {
    let doc = find(call)?;
    Ok(Reply::ok(json!({"server": view::detail(call, &doc)})))
}

fn update(call: &mut Call<'_>) -> Answer {
    let doc = find(call)?;
    let given = call.wrapped("server")?;
    for (name, value) in &given {
        let text = match name.as_str() {
            "name" | "accessIPv4" | "accessIPv6" | "OS-DCF:diskConfig" => value.is_string(),
            "description" => call.version >= 19 && (value.is_string() || value.is_null()),
            "hostname" => call.version >= 90 && value.is_string(),
            _ => {
                return Err(Fault::bad(format!(
                    "Invalid input for field/attribute server. Value: {}. Additional properties \
                     are not allowed ('{name}' was unexpected)",
                    json!(given)
                )));
            }
        };
        if !text {
            return Err(Fault::bad(format!(
                "Invalid input for field/attribute {name}. Value: {value}. {value} is not of type 'string'"
            )));
        }
    }
    let id = doc.text("id").to_owned();
    change(call, &id, |doc| {
        for (name, value) in given {
            match name.as_str() {
                "hostname" => doc.insert("_hostname".to_owned(), value),
                "OS-DCF:diskConfig" => None,
                _ => doc.insert(name, value),
            };
        }
    });
    let doc = find(call)?;
    Ok(Reply::ok(json!({"server": view::detail(call, &doc)})))
}

fn delete(call: &mut Call<'_>) -> Answer {
    let doc = find(call)?;
    if doc.flag("_locked") && !call.who.admin() {
        return Err(Fault::conflict(format!(
            "Instance {} is locked",
            doc.text("id")
        )));
    }
    lifecycle::delete(call, &doc);
    Ok(Reply::empty(204))
}

/// Link to a resource.
#[derive(Serialize)]
pub(crate) struct Link {
    rel: &'static str,
    href: String,
}

/// Returns the link with the version in the path, and the one without.
pub(crate) fn links(call: &Call<'_>, what: &str, id: &str) -> [Link; 2] {
    let href = format!("{}/v2.1/{what}/{id}", call.root());
    [Link { rel: "self", href }, bookmark(call, what, id)]
}

/// Returns the link without the version.
pub(crate) fn bookmark(call: &Call<'_>, what: &str, id: &str) -> Link {
    let href = format!("{}/{what}/{id}", call.root());
    Link {
        rel: "bookmark",
        href,
    }
}
