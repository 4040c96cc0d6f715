//! Transitions of volumes: creation, growth, change of type, deletion.

use super::{attach, messages, volumes};
use crate::cloud::clock::naive_micros;
use crate::cloud::document::{Doc, Fields};
use crate::cloud::kind::Kind;
use crate::cloud::latency::Transition;
use crate::cloud::settings::{Settings, VolumeTrouble};
use crate::cloud::state::State;

/// Applies a due transition.
pub(crate) fn transition(state: &mut State, settings: &Settings, action: &str, id: &str) {
    // Stores of earlier versions have the transitions of snapshots among those of volumes.
    if action == "snapshotted" {
        return super::snapshots::transition(state, settings, "created", id);
    }
    let Some(doc) = state.get(Kind::Volume, id) else {
        return;
    };
    match action {
        "created" => created(state, settings, &doc),
        "extended" => extended(state, settings, &doc),
        "retyped" => retyped(state, settings, &doc),
        "gone" => gone(state, settings, &doc),
        _ => tracing::warn!(action, "unknown volume transition dropped"),
    }
}

/// Sets the status of a volume as an administrator or a failure would.
pub(crate) fn set_status(state: &mut State, id: &str, status: &str) {
    let now = naive_micros(state.now());
    state.edit(Kind::Volume, id, |doc| {
        doc.set("status", status);
        doc.set("updated_at", now);
        for pending in ["_grows", "_becomes", "_moves_to"] {
            doc.remove(pending);
        }
    });
}

fn created(state: &mut State, settings: &Settings, doc: &Doc) {
    let id = doc.text("id");
    if let Some(backup) = state.get(Kind::Backup, doc.text("_backup"))
        && backup.text("status") == "restoring"
    {
        state.edit(Kind::Backup, backup.text("id"), |doc| {
            doc.set("status", "available");
        });
    }
    if doc.text("status") != "creating" {
        return;
    }
    let trouble = settings.volume_trouble(doc.text("name"), &[VolumeTrouble::CreateFails]);
    let unscheduled = doc.get("_host").is_some_and(serde_json::Value::is_null);
    if trouble.is_some() || unscheduled {
        messages::write(state, doc, messages::NO_BACK_END);
        set_status(state, id, "error");
        state.edit(Kind::Volume, id, |doc| doc.set("_unscheduled", true));
        return;
    }
    set_status(state, id, "available");
}

fn extended(state: &mut State, settings: &Settings, doc: &Doc) {
    let id = doc.text("id");
    if doc.text("status") != "extending" {
        return;
    }
    let trouble = settings.volume_trouble(doc.text("name"), &[VolumeTrouble::ExtendFails]);
    if trouble.is_some() {
        messages::write(state, doc, messages::NO_GROWTH);
        set_status(state, id, "error_extending");
        return;
    }
    let size = doc.number("size") + doc.number("_grows");
    set_status(state, id, doc.text("_before"));
    let before = doc.number("size");
    state.edit(Kind::Volume, id, |doc| doc.set("size", size));
    let attached = attach::all(doc);
    let servers = attached.iter().map(|one| one.text("instance"));
    for server in servers.filter(|server| !server.is_empty()) {
        // Nova learns this from an event of the server; the guest sees the larger disk afterwards.
        state.edit(Kind::Volume, id, |doc| doc.set("_shown", before));
        let delay = settings.latency.transition(Transition::Volume) / 4;
        let target = format!("{server}/{id}");
        state.schedule(delay, "grow-volume", Kind::Server, &target);
    }
}

/// Completes a change of type. An unsuitable type leaves the volume unchanged.
fn retyped(state: &mut State, settings: &Settings, doc: &Doc) {
    let id = doc.text("id");
    if doc.text("status") != "retyping" {
        return;
    }
    let trouble = settings.volume_trouble(doc.text("name"), &[VolumeTrouble::RetypeFails]);
    let becomes = match trouble {
        Some(_) => "",
        None => doc.text("_becomes"),
    };
    set_status(state, id, doc.text("_before"));
    if !becomes.is_empty() {
        let mut kinds = state.all(Kind::VolumeType);
        let encrypted = kinds.any(|kind| kind.text("name") == becomes && kind.given("_encryption"));
        drop(kinds);
        let key = encrypted.then(|| state.new_id());
        state.edit(Kind::Volume, id, |volume| {
            volume.set("volume_type", becomes);
            if encrypted != volume.flag("encrypted") {
                volume.set("encrypted", encrypted);
                volume.set("_encryption_key", key);
            }
            if let Some(host) = doc.get("_moves_to") {
                volume.set("_host", host.clone());
            }
        });
    }
}

fn gone(state: &mut State, settings: &Settings, doc: &Doc) {
    let id = doc.text("id");
    let trouble = settings.volume_trouble(doc.text("name"), &[VolumeTrouble::DeleteFails]);
    match trouble {
        Some(_) => set_status(state, id, "error_deleting"),
        None => volumes::remove(state, id),
    }
}
