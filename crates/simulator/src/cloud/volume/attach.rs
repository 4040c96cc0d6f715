//! Attachments that Nova creates and deletes.

use serde_json::{Value, json};

use crate::cloud::clock::naive_micros;
use crate::cloud::document::Fields;
use crate::cloud::kind::Kind;
use crate::cloud::state::State;

/// Reserves a volume for a server that is being built.
pub(crate) fn reserve(state: &mut State, volume: &str) {
    state.edit(Kind::Volume, volume, |doc| doc.set("status", "reserved"));
}

/// Attaches a volume to a server.
pub(crate) fn attach(state: &mut State, volume: &str, server: &str, device: &str) {
    let now = naive_micros(state.now());
    let attachment = state.new_id();
    state.edit(Kind::Volume, volume, |doc| {
        let mut all = doc.list("attachments").to_vec();
        all.push(
            json!({"id": doc.text("id"), "attachment_id": attachment, "volume_id": doc.text("id"),
            "server_id": server, "host_name": null, "device": device, "attached_at": now}),
        );
        doc.set("attachments", all);
        doc.set("status", "in-use");
    });
}

/// Detaches a volume from a server.
pub(crate) fn detach(state: &mut State, volume: &str, server: &str) {
    state.edit(Kind::Volume, volume, |doc| {
        let left: Vec<Value> = doc
            .list("attachments")
            .iter()
            .filter(|one| one["server_id"] != server)
            .cloned()
            .collect();
        doc.set(
            "status",
            if left.is_empty() {
                "available"
            } else {
                "in-use"
            },
        );
        doc.set("attachments", left);
    });
}
