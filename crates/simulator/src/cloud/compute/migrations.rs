//! Live migrations, evacuations, and the record of them: `os-migrations`.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};

use super::condition::allowed;
use super::{history, hosts, lifecycle, servers};
use crate::cloud::call::{Answer, Call, Reply};
use crate::cloud::clock::{naive_micros, zulu};
use crate::cloud::document::{Doc, Fields};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::latency::Transition;
use crate::cloud::network;
use crate::cloud::route::{Access, Table};
use crate::cloud::settings::Settings;
use crate::cloud::state::State;

/// Name of a live migration among the actions on a server.
const LIVE: &str = "live-migration";
const NO_HOST: &str = "No valid host was found. There are not enough hosts available.";
/// First microversion that checks a live migration after its answer.
const ASYNC: u32 = 34;

/// Registers the operations.
pub(super) fn routes(table: &mut Table<'_>) {
    table.on(Method::GET, "/v2.1/os-migrations", Access::Admin, list);
}

/// Moves a running server to another host.
pub(super) fn live(call: &mut Call<'_>, doc: &Doc, argument: &Value) -> Answer {
    admin(call, "os_compute_api:os-migrate-server:migrate_live")?;
    let id = doc.text("id");
    let wanted = fields(
        argument,
        &["host", "block_migration", "disk_over_commit", "force"],
    )?;
    if !wanted.contains_key("block_migration") || !wanted.contains_key("host") {
        return Err(Fault::bad(format!(
            "Invalid input for field/attribute os-migrateLive. Value: {argument}. 'host' and 'block_migration' are required properties"
        )));
    }
    allowed(doc, "os-migrateLive", &["ACTIVE", "PAUSED"])?;
    let destination = destination(call.state, doc, wanted.text("host"));
    let obstacle = obstacle(call.state, doc, &wanted, destination.as_deref());
    if let Some(why) = obstacle.clone().filter(|_| call.version < ASYNC) {
        return Err(Fault::bad(why));
    }
    history::note(call, id, LIVE);
    let fault = call.settings.migration_fault(doc.text("name"));
    let destination = destination.filter(|_| obstacle.is_none());
    let failure = obstacle.or(fault);
    let delay = match destination {
        None => Duration::ZERO,
        Some(_) => {
            let more = call.settings.changeable.read().live_migration_milliseconds;
            let latency = call.settings.latency.transition(Transition::ServerAction);
            latency + Duration::from_millis(more)
        }
    };
    let to = destination.unwrap_or_default();
    let migration = record(call, doc, LIVE, &to);
    servers::change(call, id, |doc| {
        doc.set("_before", doc.text("status").to_owned());
        doc.set("_task", "migrating");
        doc.set("status", "MIGRATING");
        doc.set("_migration", migration);
        doc.set("_failure", failure.unwrap_or_default());
    });
    call.state.schedule(delay / 2, "migrates", Kind::Server, id);
    call.state.schedule(delay, "moved", Kind::Server, id);
    Ok(Reply::empty(202))
}

/// Obstacle that Nova finds before it moves a server. Disks are files of the hosts, and are copied or do not move.
fn obstacle(state: &State, doc: &Doc, wanted: &Doc, to: Option<&str>) -> Option<String> {
    let source = doc.text("_host");
    let down = |host: &str| format!("Compute service of {host} is unavailable at this time.");
    if !hosts::is_up(state, source) {
        return Some(down(source));
    }
    let Some(to) = to else {
        return Some(NO_HOST.to_owned());
    };
    if to == source {
        return Some(format!(
            "Unable to migrate instance ({}) to current host ({source}).",
            doc.text("id")
        ));
    }
    if !hosts::is_up(state, to) {
        return Some(down(to));
    }
    let copies = wanted.get("block_migration");
    let copies = copies.is_some_and(|it| *it == json!("auto") || *it == json!(true));
    (!copies).then(|| {
        format!(
            "Migration pre-check error: {source} is not on shared storage: Shared storage live-migration requires either shared storage or boot-from-volume with no local disks."
        )
    })
}

/// Builds a server anew on another host, since its own is down.
pub(super) fn evacuate(call: &mut Call<'_>, doc: &Doc, argument: &Value) -> Answer {
    admin(call, "os_compute_api:os-evacuate")?;
    let id = doc.text("id");
    let wanted = fields(argument, &["host", "adminPass", "force"])?;
    allowed(doc, "evacuate", &["ACTIVE", "SHUTOFF", "ERROR"])?;
    let source = doc.text("_host");
    if hosts::is_up(call.state, source) {
        return Err(Fault::bad(format!(
            "Compute service of {source} is still in use."
        )));
    }
    let destination = destination(call.state, doc, wanted.text("host"));
    let failure = if destination.is_none() { NO_HOST } else { "" };
    let migration = record(call, doc, "evacuation", &destination.unwrap_or_default());
    let delay = call.settings.latency.transition(Transition::ServerAction);
    servers::change(call, id, |doc| {
        doc.set("_before", doc.text("status").to_owned());
        doc.set("_task", "rebuilding");
        doc.set("status", "REBUILD");
        doc.set("_migration", migration);
        doc.set("_failure", failure);
    });
    call.state.schedule(delay, "evacuated", Kind::Server, id);
    Ok(Reply::empty(200))
}

fn admin(call: &Call<'_>, rule: &str) -> Result<(), Fault> {
    match call.who.admin() {
        true => Ok(()),
        false => Err(Fault::forbidden(format!(
            "Policy doesn't allow {rule} to be performed."
        ))),
    }
}

/// Fields of an action, of which only `known` ones are allowed.
fn fields(argument: &Value, known: &[&str]) -> Result<Doc, Fault> {
    let fields = argument.as_object().cloned().unwrap_or_default();
    match fields.keys().find(|it| !known.contains(&it.as_str())) {
        Some(name) => Err(Fault::bad(format!(
            "Additional properties are not allowed ('{name}' was unexpected)"
        ))),
        None => Ok(fields),
    }
}

/// Host that was named, or the one that the scheduler takes.
fn destination(state: &State, doc: &Doc, named: &str) -> Option<String> {
    match named {
        "" => lifecycle::schedule_host(state, doc).filter(|it| it != doc.text("_host")),
        host => Some(host.to_owned()),
    }
}

/// Records a migration, and returns its key.
fn record(call: &mut Call<'_>, server: &Doc, kind: &str, to: &str) -> String {
    let id = call.state.new_id();
    let now = naive_micros(call.now());
    let number = call.state.count(Kind::Migration) + 1;
    let mut doc = Doc::new();
    doc.set("id", id.as_str());
    doc.set("number", number);
    doc.set("instance_uuid", server.text("id"));
    doc.set("migration_type", kind);
    doc.set("source_compute", server.text("_host"));
    doc.set("dest_compute", to);
    let is_queued = kind == LIVE && !to.is_empty();
    doc.set("status", if is_queued { "queued" } else { "accepted" });
    doc.set("created_at", now.as_str());
    doc.set("updated_at", now);
    doc.set("user_id", call.who.user_id.as_str());
    doc.set("project_id", server.text("project_id"));
    call.state.put(Kind::Migration, doc);
    id
}

/// True if a migration from a host or to it has not ended.
pub(super) fn are_running(state: &State, host: &str) -> bool {
    state.all(Kind::Migration).any(|it| {
        let is_of = it.text("source_compute") == host || it.text("dest_compute") == host;
        is_of && matches!(it.text("status"), "accepted" | "queued" | "running")
    })
}

/// Begins a live migration, which has waited for its turn on the host.
pub(super) fn begin(state: &mut State, id: &str) {
    let Some(doc) = state.get(Kind::Server, id) else {
        return;
    };
    state.edit(Kind::Migration, doc.text("_migration"), |it| {
        if it.text("status") == "queued" {
            it.set("status", "running");
        }
    });
}

/// Ends the migration of a server.
pub(super) fn end(state: &mut State, _: &Settings, action: &str, id: &str) {
    let Some(doc) = state.get(Kind::Server, id) else {
        return;
    };
    let (migration, failure) = (doc.text("_migration"), doc.text("_failure"));
    let to = state
        .get(Kind::Migration, migration)
        .map(|it| it.text("dest_compute").to_owned())
        .unwrap_or_default();
    let failure = match failure.is_empty() && !hosts::is_up(state, &to) {
        true => format!("Live Migration failure: unable to connect to server at '{to}'"),
        false => failure.to_owned(),
    };
    let failure = failure.as_str();
    let is_done = failure.is_empty() && doc.text("_task") != "deleting";
    let now = naive_micros(state.now());
    state.edit(Kind::Migration, migration, |it| {
        let done = if action == "moved" {
            "completed"
        } else {
            "done"
        };
        it.set("status", if is_done { done } else { "error" });
        it.set("updated_at", now);
    });
    if doc.text("_task") == "deleting" {
        return;
    }
    if is_done {
        for port in state.by(Kind::Port, "device_id", id) {
            let owner = port.text("device_owner").to_owned();
            network::bind(state, port.text("id"), id, &owner, &to, true);
        }
    } else {
        let name = if action == "moved" { LIVE } else { "evacuate" };
        history::fail(state, id, name, failure);
    }
    let now = zulu(state.now());
    let before = doc.text("_before").to_owned();
    state.edit(Kind::Server, id, |doc| {
        doc.set("_task", "");
        doc.set("updated", now);
        // A live migration that fails leaves the server as it was.
        let after = match (action, is_done) {
            ("moved", _) => before.as_str(),
            (_, true) if before == "SHUTOFF" => "SHUTOFF",
            (_, true) => "ACTIVE",
            (_, false) => "ERROR",
        };
        doc.set("status", after);
        if is_done {
            doc.set("_host", to);
        }
    });
}

fn list(call: &mut Call<'_>) -> Answer {
    let mut found: Vec<_> = call.state.all(Kind::Migration).cloned().collect();
    for field in [
        "source_compute",
        "migration_type",
        "status",
        "instance_uuid",
    ] {
        if let Some(wanted) = call.query.get(field) {
            found.retain(|it| it.text(field) == wanted);
        }
    }
    if let Some(host) = call.query.get("host") {
        found.retain(|it| it.text("source_compute") == host || it.text("dest_compute") == host);
    }
    if let Some(since) = call.query.get("changes-since") {
        let since = since.trim_end_matches('Z');
        found.retain(|it| it.text("updated_at") >= since);
    }
    found.sort_by_key(|it| std::cmp::Reverse(it.number("number")));
    let limit = call.query.limit().map_err(Fault::bad)?.unwrap_or(1000);
    found.truncate(limit);
    let all: Vec<Value> = found.iter().map(|it| view_of(call, it)).collect();
    Ok(Reply::ok(json!({"migrations": all})))
}

fn view_of(call: &Call<'_>, doc: &Doc) -> Value {
    let to = Some(doc.text("dest_compute")).filter(|it| !it.is_empty());
    let mut view = json!({"id": doc.number("number"), "instance_uuid": doc.text("instance_uuid"),
        "source_compute": doc.text("source_compute"), "source_node": doc.text("source_compute"),
        "dest_compute": to, "dest_node": to, "dest_host": null, "status": doc.text("status"),
        "created_at": doc.text("created_at"), "updated_at": doc.text("updated_at"),
        "old_instance_type_id": 1, "new_instance_type_id": 1});
    if call.version >= 23 {
        view["migration_type"] = doc.text("migration_type").into();
    }
    if call.version >= 59 {
        view["uuid"] = doc.text("id").into();
    }
    if call.version >= 80 {
        view["user_id"] = doc.text("user_id").into();
        view["project_id"] = doc.text("project_id").into();
    }
    view
}
