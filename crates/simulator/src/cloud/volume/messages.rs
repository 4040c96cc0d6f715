//! Cinder's messages to users (microversion 3.3): why a volume, a snapshot or a backup failed.

use http::Method;
use serde_json::{Value, json};

use crate::cloud::call::{Answer, Call, Reply};
use crate::cloud::clock::naive_micros;
use crate::cloud::document::{Doc, Fields, doc as to_doc, public_fields};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::query;
use crate::cloud::route::{Access, Table};
use crate::cloud::state::State;

/// Version with messages.
const SINCE: u32 = 3;
/// First microversion with filters and pages; before, the whole list is returned.
const FILTERED: u32 = 5;
/// How long a message is kept at least, in hours.
const KEPT_HOURS: i64 = 30 * 24;

/// Event: the ids of action and detail, and the text of both.
#[derive(Clone, Copy)]
pub(super) struct Event {
    resource: &'static str,
    code: &'static str,
    text: &'static str,
}

const fn event(resource: &'static str, code: &'static str, text: &'static str) -> Event {
    Event {
        resource,
        code,
        text,
    }
}

/// No back end takes a new volume.
pub(super) const NO_BACK_END: Event = event(
    "VOLUME",
    "001_003",
    "schedule allocate volume:Could not find any available weighted backend.",
);
/// The driver does not extend a volume.
pub(super) const NO_GROWTH: Event = event(
    "VOLUME",
    "007_010",
    "extend volume:Volume Driver failed to extend volume.",
);
/// A snapshot is not created.
pub(super) const NO_SNAPSHOT: Event = event(
    "VOLUME_SNAPSHOT",
    "009_013",
    "create snapshot:Snapshot failed to create.",
);
/// A snapshot has dependants.
pub(super) const SNAPSHOT_IS_BUSY: Event = event(
    "VOLUME_SNAPSHOT",
    "010_015",
    "delete snapshot:Snapshot is busy.",
);
/// A snapshot is not deleted.
pub(super) const SNAPSHOT_STAYS: Event = event(
    "VOLUME_SNAPSHOT",
    "010_016",
    "delete snapshot:Snapshot failed to delete.",
);
/// A backup is not created.
pub(super) const NO_BACKUP: Event = event(
    "VOLUME_BACKUP",
    "013_020",
    "create backup:Backup driver failed to create backup.",
);
/// A backup is not deleted.
pub(super) const BACKUP_STAYS: Event = event(
    "VOLUME_BACKUP",
    "014_025",
    "delete backup:Backup driver failed to delete backup.",
);

/// Returns the [`Event`] behind this status of a resource.
pub(super) fn of_failure(kind: Kind, status: &str) -> Option<Event> {
    match (kind, status) {
        (Kind::Volume, "error") => Some(NO_BACK_END),
        (Kind::Volume, "error_extending") => Some(NO_GROWTH),
        (Kind::Snapshot, "error") => Some(NO_SNAPSHOT),
        (Kind::Snapshot, "error_deleting") => Some(SNAPSHOT_STAYS),
        (Kind::Backup, "error") => Some(NO_BACKUP),
        (Kind::Backup, "error_deleting") => Some(BACKUP_STAYS),
        _ => None,
    }
}

/// Registers the operations.
pub(crate) fn routes(table: &mut Table<'_>) {
    table
        .get("/v3/{project}/messages", list)
        .get("/v3/{project}/messages/{id}", |call| {
            let doc = find(call)?;
            Ok(Reply::ok(json!({"message": view(call, &doc)})))
        })
        .on(
            Method::DELETE,
            "/v3/{project}/messages/{id}",
            Access::Member,
            |call| {
                let doc = find(call)?;
                call.state.remove(Kind::Message, doc.text("id"));
                Ok(Reply::empty(204))
            },
        );
}

/// Writes a message about a resource to its project.
pub(super) fn write(state: &mut State, resource: &Doc, event: Event) {
    let (id, request) = (state.new_id(), state.new_id());
    let until = state.now() + jiff::SignedDuration::from_hours(KEPT_HOURS);
    let doc = json!({"id": id, "project_id": resource.text("project_id"),
        "event_id": format!("VOLUME_{}_{}", event.resource, event.code), "user_message": event.text,
        "message_level": "ERROR", "created_at": naive_micros(state.now()), "guaranteed_until": naive_micros(until),
        "request_id": format!("req-{request}"), "resource_type": event.resource,
        "resource_uuid": resource.text("id")});
    state.put(Kind::Message, to_doc(doc));
}

fn list(call: &mut Call<'_>) -> Answer {
    super::since(call, SINCE)?;
    let mut found = call
        .state
        .by(Kind::Message, "project_id", &call.who.project_id);
    found.sort_by(|a, b| b.text("created_at").cmp(a.text("created_at")));
    let filtered = call.version >= FILTERED;
    let known = [
        "resource_uuid",
        "resource_type",
        "event_id",
        "request_id",
        "message_level",
    ];
    super::filters::check(call, &known)?;
    if filtered {
        found.retain(|doc| {
            let mut known = known.iter();
            known.all(|field| super::matches(call, doc, field, field))
        });
        query::sort(&mut found, &query::sort_keys(&call.query));
    }
    let page = super::page(call, found, "messages", filtered)?;
    let views: Vec<Value> = page.docs.iter().map(|doc| view(call, doc)).collect();
    Ok(page.reply("messages", views))
}

fn view(call: &Call<'_>, doc: &Doc) -> Value {
    let mut out = public_fields(doc);
    out.remove("project_id");
    out.set("links", super::links(call, "messages", doc.text("id")));
    Value::Object(out)
}

fn find(call: &Call<'_>) -> Result<std::sync::Arc<Doc>, Fault> {
    super::since(call, SINCE)?;
    let id = call.parameter("id");
    call.accessible(Kind::Message, id)
        .ok_or_else(|| Fault::missing(format!("Message {id} could not be found.")))
}
