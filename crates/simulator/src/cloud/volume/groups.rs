//! Groups of volumes (microversion 3.13).

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use super::{body, group_types, hosts, quotas, since, volume_types, volumes};
use crate::cloud::attribute::python_list;
use crate::cloud::call::{Answer, Call, Reply};
use crate::cloud::clock::naive_micros;
use crate::cloud::document::{Doc, Fields, doc as to_doc};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::latency::Transition;
use crate::cloud::query;
use crate::cloud::route::Table;
use crate::cloud::settings::Settings;
use crate::cloud::state::State;

/// Version with groups.
const SINCE: u32 = 13;
/// Version with snapshots of groups.
pub(super) const SNAPSHOTS: u32 = 14;
/// First microversion that lists the volumes of a group on request.
const LISTS_VOLUMES: u32 = 25;
/// Statuses in which a volume can join and leave a group.
const IDLE: [&str; 2] = ["available", "in-use"];

/// Registers the operations.
pub(crate) fn routes(table: &mut Table<'_>) {
    let one = "/v3/{project}/groups/{id}";
    table
        .get("/v3/{project}/groups", |call| list(call, false))
        .get("/v3/{project}/groups/detail", |call| list(call, true))
        .post("/v3/{project}/groups", create)
        .get(one, |call| {
            let doc = find(call)?;
            Ok(Reply::ok(json!({"group": view(call, &doc)})))
        })
        .put(one, update)
        .post("/v3/{project}/groups/{id}/action", act);
}

/// Applies a due transition.
pub(crate) fn transition(state: &mut State, _: &Settings, action: &str, id: &str) {
    let Some(doc) = state.get(Kind::VolumeGroup, id) else {
        return;
    };
    match action {
        "created" | "updated" => {
            for (field, group) in [("_joins", json!(id)), ("_leaves", Value::Null)] {
                for volume in doc.texts(field) {
                    state.edit(Kind::Volume, volume, |doc| doc.set("_group", group.clone()));
                }
            }
            let status = match doc.get("_host") {
                Some(Value::Null) => "error",
                _ => "available",
            };
            state.edit(Kind::VolumeGroup, id, |doc| {
                doc.set("status", status);
                doc.remove("_joins");
                doc.remove("_leaves");
            });
        }
        "gone" => {
            for volume in members(state, id) {
                volumes::remove(state, volume.text("id"));
            }
            state.remove(Kind::VolumeGroup, id);
        }
        _ => tracing::warn!(action, "unknown group transition dropped"),
    }
}

/// Returns the [`Doc`] of the group for a new volume of a type; `None` for an empty id.
pub(super) fn of_new_volume(
    call: &Call<'_>,
    id: &str,
    kind: Option<&Doc>,
) -> Result<Option<Arc<Doc>>, Fault> {
    if id.is_empty() {
        return Ok(None);
    }
    let group = by_id(call, id)?;
    let bad = |text: String| Err(Fault::bad(format!("Invalid input received: {text}")));
    let Some(kind) = kind else {
        return bad("volume_type must be provided when creating a volume in a group.".to_owned());
    };
    if !group.texts("volume_types").any(|id| id == kind.text("id")) {
        return bad(format!(
            "Invalid volume_type provided: {} (requested type must be supported by this group).",
            kind.text("name")
        ));
    }
    if group.text("status") != "available" {
        return Err(Fault::bad(
            "Invalid Group: Originating group status must be one of 'available' values",
        ));
    }
    Ok(Some(group))
}

/// Returns the [`Doc`]s of the volumes of a group.
pub(super) fn members(state: &State, group: &str) -> Vec<Arc<Doc>> {
    let volumes = state.all(Kind::Volume);
    volumes
        .filter(|volume| volume.text("_group") == group)
        .cloned()
        .collect()
}

/// Returns the [`Doc`] of a group, if visible to the caller.
pub(super) fn by_id(call: &Call<'_>, id: &str) -> Result<Arc<Doc>, Fault> {
    call.accessible(Kind::VolumeGroup, id)
        .ok_or_else(|| Fault::missing(format!("Group {id} could not be found.")))
}

fn find(call: &Call<'_>) -> Result<Arc<Doc>, Fault> {
    since(call, SINCE)?;
    by_id(call, call.parameter("id"))
}

fn view(call: &Call<'_>, doc: &Doc) -> Doc {
    let field = |name: &str| doc.get(name).cloned().unwrap_or_default();
    let mut out = Doc::new();
    for name in [
        "id",
        "status",
        "availability_zone",
        "created_at",
        "name",
        "description",
        "group_type",
        "volume_types",
    ] {
        out.set(name, field(name));
    }
    if call.version >= SNAPSHOTS {
        out.set("group_snapshot_id", field("_group_snapshot"));
        out.set("source_group_id", field("_source_group"));
    }
    let listed = call.query.get("list_volume").and_then(query::truth) == Some(true);
    if call.version >= LISTS_VOLUMES && listed {
        let members = members(call.state, doc.text("id"));
        let ids: Vec<&str> = members.iter().map(|volume| volume.text("id")).collect();
        out.set("volumes", json!(ids));
    }
    if call.version >= 38 {
        out.set("replication_status", "disabled");
    }
    if call.version >= 58 && call.who.admin() {
        out.set("project_id", field("project_id"));
    }
    out
}

fn brief(doc: &Doc) -> Value {
    json!({"id": doc.text("id"), "name": doc.get("name")})
}

fn list(call: &mut Call<'_>, detail: bool) -> Answer {
    since(call, SINCE)?;
    super::filters::check(call, &["name", "list_volume"])?;
    let mut found: Vec<_> = match call.everyone() {
        true => call.state.all(Kind::VolumeGroup).cloned().collect(),
        false => call
            .state
            .by(Kind::VolumeGroup, "project_id", &call.who.project_id),
    };
    found.retain(|doc| {
        let mut fields = ["name", "status"].into_iter();
        fields.all(|field| super::matches(call, doc, field, field))
    });
    found.sort_by_key(|doc| Reverse(doc.text("created_at").to_owned()));
    query::sort(&mut found, &query::sort_keys(&call.query));
    let page = super::page(call, found, "groups", true)?;
    let views = page.docs.iter().map(|doc| match detail {
        true => Value::Object(view(call, doc)),
        false => brief(doc),
    });
    Ok(page.reply("groups", views.collect()))
}

fn create(call: &mut Call<'_>) -> Answer {
    since(call, SINCE)?;
    let given = call.wrapped("group")?;
    let fields = [
        "name",
        "description",
        "group_type",
        "volume_types",
        "availability_zone",
    ];
    body::strict("group", &given, &fields)?;
    body::texts(&given, &fields[..3])?;
    let wanted: Vec<&str> = given.texts("volume_types").collect();
    for (field, is_there) in [
        ("group_type", !given.text("group_type").is_empty()),
        ("volume_types", !wanted.is_empty()),
    ] {
        if !is_there {
            return Err(Fault::bad(format!(
                "Invalid input for field/attribute group. Value: {}. '{field}' is a required property",
                Value::Object(given.clone())
            )));
        }
    }
    let kind = group_types::resolve(call, given.text("group_type"))?;
    let (mut types, mut back_ends) = (Vec::new(), BTreeSet::new());
    for name in wanted {
        let kind = volume_types::resolve(call, name)?;
        types.push(kind.text("id").to_owned());
        back_ends.insert(volume_types::back_end(&kind));
    }
    let zones = &call.settings.volume_zones;
    let zone = match given.text("availability_zone") {
        "" => zones.first().map_or("nova", String::as_str).to_owned(),
        zone if zones.iter().any(|known| known == zone) => zone.to_owned(),
        zone => {
            return Err(Fault::bad(format!(
                "Invalid input received: Availability zone '{zone}' is invalid."
            )));
        }
    };
    quotas::check_group(call)?;
    let id = call.state.new_id();
    let host = match back_ends.len() {
        // No back end has the names of all types.
        2.. => Value::Null,
        _ => {
            let wanted = hosts::HostFilter {
                zone: &zone,
                back_end: back_ends.first().map_or("", String::as_str),
                hints: &hosts::Hints::default(),
                beside: None,
            };
            hosts::place(call, &id, &wanted)
        }
    };
    let doc = to_doc(
        json!({"id": id, "project_id": call.who.project_id, "status": "creating",
        "availability_zone": zone, "created_at": naive_micros(call.now()), "name": given.get("name"),
        "description": given.get("description"), "group_type": kind.text("id"), "volume_types": types,
        "_host": host}),
    );
    call.state.put(Kind::VolumeGroup, doc.clone());
    schedule(call, "created", &id);
    Ok(Reply::with(202, json!({"group": brief(&doc)})))
}

/// PUT: name, description, and the volumes that join and leave, as comma-separated lists.
fn update(call: &mut Call<'_>) -> Answer {
    let doc = find(call)?;
    let given = call.wrapped("group")?;
    let fields = ["name", "description", "add_volumes", "remove_volumes"];
    body::strict("group", &given, &fields)?;
    if doc.text("status") != "available" {
        return Err(Fault::bad(format!(
            "Invalid Group: Group status must be available, but current status is: {}.",
            doc.text("status")
        )));
    }
    let ids = |field: &str| -> Vec<String> {
        let ids = given.text(field).split(',');
        ids.filter(|id| !id.is_empty()).map(str::to_owned).collect()
    };
    let id = doc.text("id");
    let (mut joins, leaves) = (ids("add_volumes"), ids("remove_volumes"));
    let both: Vec<&String> = joins.iter().filter(|id| leaves.contains(id)).collect();
    if !both.is_empty() {
        return Err(Fault::bad(format!(
            "Invalid volume: UUIDs {} are in both add and remove volume list.",
            python_list(&both)
        )));
    }
    joins.retain(|volume| {
        let volume = call.state.get(Kind::Volume, volume);
        volume.is_none_or(|volume| volume.text("_group") != id)
    });
    for volume in &joins {
        may_join(call, &doc, volume)?;
    }
    for volume in &leaves {
        may_leave(call, id, volume)?;
    }
    let changed = |field: &str| given.given(field) && given.get(field) != doc.get(field);
    if joins.is_empty() && leaves.is_empty() && !changed("name") && !changed("description") {
        return Err(Fault::bad(format!(
            "Invalid Group: Cannot update group {id} because no valid name, description, add_volumes, or remove_volumes \
             were provided."
        )));
    }
    let moves = !joins.is_empty() || !leaves.is_empty();
    call.state.edit(Kind::VolumeGroup, id, |doc| {
        for field in &fields[..2] {
            if given.given(field) {
                doc.set(field, body::trimmed(&given, field));
            }
        }
        doc.set("status", if moves { "updating" } else { "available" });
        doc.set("_joins", joins);
        doc.set("_leaves", leaves);
    });
    if moves {
        schedule(call, "updated", id);
    }
    Ok(Reply::empty(202))
}

fn may_join(call: &Call<'_>, group: &Doc, id: &str) -> Result<(), Fault> {
    let group_id = group.text("id");
    let refuse = |why: String| {
        Err(Fault::bad(format!(
            "Invalid volume: Cannot add volume {id} to group {group_id} because {why}"
        )))
    };
    let Some(volume) = call.accessible(Kind::Volume, id) else {
        return refuse("volume cannot be found.".to_owned());
    };
    if volume.given("_group") {
        return refuse(format!("it is already in group {}.", volume.text("_group")));
    }
    let kind = volume_types::any(call, volume.text("volume_type"))?;
    if !group.texts("volume_types").any(|id| id == kind.text("id")) {
        return refuse(format!(
            "volume type {} is not supported by the group.",
            kind.text("id")
        ));
    }
    if !IDLE.contains(&volume.text("status")) {
        return refuse(format!(
            "volume is in an invalid state: {}. Valid states are: ('available', 'in-use').",
            volume.text("status")
        ));
    }
    if volume.text("_host") != group.text("_host") {
        return Err(Fault::bad(
            "Invalid volume: Volume is not local to this node.",
        ));
    }
    Ok(())
}

fn may_leave(call: &Call<'_>, group: &str, id: &str) -> Result<(), Fault> {
    let volume = call.state.get(Kind::Volume, id).unwrap_or_default();
    let why = if volume.text("_group") != group {
        "it is not in the group.".to_owned()
    } else if !IDLE.contains(&volume.text("status")) && volume.text("status") != "error" {
        format!(
            "volume is in an invalid state: {}. Valid states are: ('available', 'in-use', 'error', 'error_deleting').",
            volume.text("status")
        )
    } else {
        return Ok(());
    };
    Err(Fault::bad(format!(
        "Invalid volume: Cannot remove volume {id} from group {group} because {why}"
    )))
}

fn act(call: &mut Call<'_>) -> Answer {
    let body = call.body.as_object().cloned().unwrap_or_default();
    if !body.contains_key("delete") {
        let action = body.keys().next().map_or("", String::as_str);
        return Err(Fault::bad(format!("There is no such action: {action}")));
    }
    let doc = find(call)?;
    let argument = call.wrapped("delete")?;
    body::strict("delete", &argument, &["delete-volumes"])?;
    let with_volumes = body::boolean(&argument, "delete-volumes")?.unwrap_or(false);
    let id = doc.text("id");
    let members = members(call.state, id);
    check_delete(call, &doc, &members, with_volumes)?;
    for volume in &members {
        super::lifecycle::set_status(call.state, volume.text("id"), "deleting");
    }
    call.state
        .edit(Kind::VolumeGroup, id, |doc| doc.set("status", "deleting"));
    schedule(call, "gone", id);
    Ok(Reply::empty(202))
}

fn check_delete(
    call: &Call<'_>,
    doc: &Doc,
    members: &[Arc<Doc>],
    with_volumes: bool,
) -> Result<(), Fault> {
    let id = doc.text("id");
    let bad = |text: String| Err(Fault::bad(format!("Invalid Group: {text}")));
    let idle = matches!(doc.text("status"), "available" | "error");
    if !with_volumes && !idle {
        return bad(format!(
            "Group status must be available or error, but current status is: {}",
            doc.text("status")
        ));
    }
    let mut snapshots = call.state.all(Kind::GroupSnapshot);
    if snapshots.any(|snapshot| snapshot.text("group_id") == id) {
        return bad("Group has existing snapshots.".to_owned());
    }
    if !members.is_empty() && !with_volumes {
        return bad(format!(
            "Group {id} still contains volumes. The delete-volumes flag is required to delete it."
        ));
    }
    for volume in members {
        let attached = super::attach::all(volume);
        if attached.iter().any(|one| one.text("status") == "attached") {
            return bad(format!(
                "Volume in group {id} is attached. Need to detach first."
            ));
        }
        let snapshots = call
            .state
            .by(Kind::Snapshot, "volume_id", volume.text("id"));
        if !snapshots.is_empty() {
            return bad("Volume in group still has dependent snapshots.".to_owned());
        }
    }
    Ok(())
}

fn schedule(call: &mut Call<'_>, action: &str, id: &str) {
    let delay = call.settings.latency.transition(Transition::Volume);
    call.state.schedule(delay, action, Kind::VolumeGroup, id);
}
