//! Attachment of a volume to an existing server, and detachment.
//!
//! Nova lists a volume from the request until it forgets the volume, after Cinder has released it. Cinder's attachment
//! goes from `reserved` to `attaching` and `attached`; the guest has the disk just before the last step. Before this
//! step, and before Cinder releases a volume, the cloud waits for a machine that answers for its volumes.

use std::time::Duration;

use serde_json::{Value, json};

use super::history;
use crate::cloud::call::Call;
use crate::cloud::document::{Doc, Fields, doc as to_doc};
use crate::cloud::kind::Kind;
use crate::cloud::latency::{Latency, Transition};
use crate::cloud::settings::{Settings, VolumeTrouble};
use crate::cloud::state::State;
use crate::cloud::volume;
use crate::machine::VolumeAnswer;

/// Starts to attach a volume that Nova has accepted, recorded as the server's entry.
pub(super) fn begin_attach(call: &mut Call<'_>, server: &str, mut entry: Doc) -> Doc {
    let volume = entry.text("id").to_owned();
    let attachment = volume::reserve(call.state, &volume, server);
    entry.set("attachment", attachment);
    entry.set("bdm", call.state.new_id());
    let added = Value::Object(entry.clone());
    super::servers::change(call, server, |doc| {
        let mut all = doc.list("_volumes").to_vec();
        all.push(added);
        doc.set("_volumes", all);
    });
    let delay = step(&call.settings.latency);
    schedule(call.state, delay, "connect-volume", server, &volume);
    entry
}

/// Starts to detach a volume with the status `detaching`.
pub(super) fn begin_detach(call: &mut Call<'_>, server: &str, volume: &str) {
    volume::set_status(call.state, volume, "detaching");
    let delay = call.settings.latency.transition(Transition::Volume);
    schedule(call.state, delay, "release-volume", server, volume);
}

/// Applies a due transition; `id` has the ids of the server and of the volume.
pub(super) fn transition(state: &mut State, settings: &Settings, action: &str, id: &str) {
    let Some((server, volume)) = id.split_once('/') else {
        return;
    };
    // The server may have been deleted meanwhile, or the volume.
    let Some(entry) = entry(state, server, volume) else {
        return;
    };
    let Some(doc) = state.get(Kind::Volume, volume) else {
        return forget(state, server, volume);
    };
    let link = Link::new(&doc, server, volume, &entry);
    match action {
        "connect-volume" => connect(state, settings, &link),
        "plug-volume" => plug(state, settings, &link),
        "release-volume" => release(state, settings, &link),
        "forget-volume" => forget(state, server, volume),
        "grow-volume" => grow(state, &link, &doc),
        "give-up-volume" => give_up(state, settings, &link, &entry),
        _ => tracing::warn!(action, "unknown transition of a server's volume dropped"),
    }
}

/// Records that the machine of this boot answers for its volumes.
pub(crate) fn answers_for_volumes(state: &mut State, server: &str, boot: u64) {
    state.edit(Kind::Server, server, |doc| doc.set("_answers", boot));
}

/// Continues after the answer of a machine.
pub(crate) fn answered(
    state: &mut State,
    settings: &Settings,
    server: &str,
    volume: &str,
    answer: &VolumeAnswer,
) {
    let (Some(entry), Some(doc)) = (
        entry(state, server, volume),
        state.get(Kind::Volume, volume),
    ) else {
        return;
    };
    let link = Link::new(&doc, server, volume, &entry);
    match (entry.text("awaited"), answer) {
        ("plug", VolumeAnswer::Ready) => plugged(state, &link),
        ("plug", VolumeAnswer::Failed(_)) => refused(state, &link),
        ("unplug", VolumeAnswer::Gone) => released(state, settings, &link),
        ("unplug", VolumeAnswer::Failed(_)) => kept(state, &link),
        _ => {}
    }
}

/// Server's volume.
struct Link<'a> {
    server: &'a str,
    volume: &'a str,
    attachment: String,
    /// Name of the volume.
    name: String,
    device: String,
}

impl<'a> Link<'a> {
    fn new(doc: &Doc, server: &'a str, volume: &'a str, entry: &Doc) -> Self {
        Self {
            server,
            volume,
            attachment: attachment_of(doc, server, entry),
            name: doc.text("name").to_owned(),
            device: entry.text("device").to_owned(),
        }
    }
}

/// Time for a machine to take a volume, or to release it.
const PATIENCE: Duration = Duration::from_secs(60);

/// True if the machine of a server answers for its volumes.
fn is_answering(state: &State, server: &str) -> bool {
    let Some(server) = state.get(Kind::Server, server) else {
        return false;
    };
    server.text("status") == "ACTIVE"
        && server.contains_key("_answers")
        && server.number("_answers") == server.number("_boot")
}

/// Waits for the machine's answer.
fn wait(state: &mut State, link: &Link<'_>, awaited: &str) {
    let patience = i64::try_from(PATIENCE.as_millis()).unwrap_or(i64::MAX / 2);
    let deadline = state.now().as_millisecond() + patience;
    change_entry(state, link.server, link.volume, |entry| {
        entry.set("awaited", awaited);
        entry.set("deadline", deadline);
    });
    schedule(state, PATIENCE, "give-up-volume", link.server, link.volume);
}

/// Ends a wait for a machine without an answer. A machine that was switched off meanwhile need not answer.
fn give_up(state: &mut State, settings: &Settings, link: &Link<'_>, entry: &Doc) {
    if state.now().as_millisecond() < entry.number("deadline") {
        return;
    }
    let is_answering = is_answering(state, link.server);
    match (entry.text("awaited"), is_answering) {
        ("plug", true) => refused(state, link),
        ("plug", false) => plugged(state, link),
        ("unplug", true) => kept(state, link),
        ("unplug", false) => released(state, settings, link),
        _ => {}
    }
}

fn plugged(state: &mut State, link: &Link<'_>) {
    change_entry(state, link.server, link.volume, |entry| {
        entry.remove("awaited");
    });
    volume::complete(state, link.volume, &link.attachment);
}

fn refused(state: &mut State, link: &Link<'_>) {
    volume::release(state, link.volume, &link.attachment);
    forget(state, link.server, link.volume);
}

/// The guest does not let a volume go.
fn kept(state: &mut State, link: &Link<'_>) {
    change_entry(state, link.server, link.volume, |entry| {
        entry.remove("awaited");
        entry.set("offered", true);
    });
    volume::set_status(state, link.volume, "in-use");
}

fn released(state: &mut State, settings: &Settings, link: &Link<'_>) {
    change_entry(state, link.server, link.volume, |entry| {
        entry.remove("awaited");
    });
    volume::release(state, link.volume, &link.attachment);
    forget_soon(state, settings, link);
}

fn forget_soon(state: &mut State, settings: &Settings, link: &Link<'_>) {
    let delay = settings.latency.transition(Transition::Volume) / 4;
    schedule(state, delay, "forget-volume", link.server, link.volume);
}

fn schedule(state: &mut State, delay: Duration, action: &str, server: &str, volume: &str) {
    state.schedule(delay, action, Kind::Server, &format!("{server}/{volume}"));
}

/// Returns half of the duration of an attachment.
fn step(latency: &Latency) -> Duration {
    latency.transition(Transition::Volume) / 2
}

/// Returns a server's entry for a volume, from the [`State`].
pub(super) fn entry(state: &State, server: &str, volume: &str) -> Option<Doc> {
    let server = state.get(Kind::Server, server)?;
    let mut entries = server.list("_volumes").iter();
    entries
        .find(|entry| entry["id"] == volume)
        .map(|entry| to_doc(entry.clone()))
}

/// Returns the attachment of a server's entry. Stores of earlier versions have the attachment only with the volume.
pub(super) fn attachment_of(volume: &Doc, server: &str, entry: &Doc) -> String {
    match entry.text("attachment") {
        "" => volume::of_server(volume, server)
            .map_or_else(String::new, |one| one.text("id").to_owned()),
        id => id.to_owned(),
    }
}

/// Nova tells Cinder where the volume goes.
fn connect(state: &mut State, settings: &Settings, link: &Link<'_>) {
    let stays = [VolumeTrouble::AttachStaysReserved];
    if settings.volume_trouble(&link.name, &stays).is_some() {
        return forget(state, link.server, link.volume);
    }
    let host = state.get(Kind::Server, link.server).unwrap_or_default();
    let connector = to_doc(json!({"host": host.text("_host"), "mountpoint": link.device}));
    volume::connect(state, link.volume, &link.attachment, &connector);
    change_entry(state, link.server, link.volume, |entry| {
        entry.set("offered", true)
    });
    let delay = step(&settings.latency);
    schedule(state, delay, "plug-volume", link.server, link.volume);
}

/// The hypervisor gives the volume to the guest, and Nova completes the attachment.
fn plug(state: &mut State, settings: &Settings, link: &Link<'_>) {
    let possible = [
        VolumeTrouble::AttachFails,
        VolumeTrouble::AttachStaysAttaching,
    ];
    match settings.volume_trouble(&link.name, &possible) {
        Some(VolumeTrouble::AttachFails) => refused(state, link),
        Some(_) => {}
        None if is_answering(state, link.server) => wait(state, link, "plug"),
        None => plugged(state, link),
    }
}

/// Takes the volume from the guest, then the attachment from Cinder; Nova forgets the volume a moment later.
fn release(state: &mut State, settings: &Settings, link: &Link<'_>) {
    let possible = [
        VolumeTrouble::DetachFails,
        VolumeTrouble::DetachStaysDetaching,
        VolumeTrouble::DetachLeavesReserved,
        VolumeTrouble::DetachEndsInError,
    ];
    let trouble = settings.volume_trouble(&link.name, &possible);
    match trouble {
        Some(VolumeTrouble::DetachFails) => return kept(state, link),
        Some(VolumeTrouble::DetachStaysDetaching) => return,
        Some(VolumeTrouble::DetachLeavesReserved) => {
            volume::disconnect(state, link.volume, &link.attachment);
        }
        Some(_) => volume::set_status(state, link.volume, "error_detaching"),
        None => {}
    }
    let lost = |entry: &mut Doc| entry.set("offered", false);
    change_entry(state, link.server, link.volume, lost);
    match trouble {
        Some(_) => forget_soon(state, settings, link),
        None if is_answering(state, link.server) => wait(state, link, "unplug"),
        None => released(state, settings, link),
    }
}

/// Shows the guest a larger disk: the hypervisor's reaction to `volume-extended`, an event from Cinder to Nova.
fn grow(state: &mut State, link: &Link<'_>, volume: &Doc) {
    state.edit(Kind::Volume, link.volume, |doc| {
        doc.remove("_shown");
    });
    let user = volume.text("user_id");
    history::record(state, link.server, user, "extend_volume");
}

fn forget(state: &mut State, server: &str, volume: &str) {
    state.edit(Kind::Server, server, |doc| {
        let mut all = doc.list("_volumes").to_vec();
        all.retain(|entry| entry["id"] != volume);
        doc.set("_volumes", all);
    });
}

fn change_entry(state: &mut State, server: &str, volume: &str, change: impl Fn(&mut Doc)) {
    state.edit(Kind::Server, server, |doc| {
        let mut all = doc.list("_volumes").to_vec();
        let entries = all.iter_mut().filter_map(Value::as_object_mut);
        for entry in entries.filter(|entry| entry.text("id") == volume) {
            change(entry);
        }
        doc.set("_volumes", all);
    });
}

/// Attaches the volumes of a new server.
pub(super) fn attach_all(state: &mut State, server: &Doc, host: &str) -> Result<(), NotYet> {
    let id = server.text("id");
    let entries: Vec<Doc> = server
        .list("_volumes")
        .iter()
        .cloned()
        .map(to_doc)
        .collect();
    for entry in &entries {
        let volume = state.get(Kind::Volume, entry.text("id"));
        match volume
            .as_ref()
            .map_or("error", |volume| volume.text("status"))
        {
            "creating" | "downloading" => return Err(NotYet::Creating),
            status if status.contains("error") => {
                return Err(NotYet::Failed(
                    entry.text("id").to_owned(),
                    status.to_owned(),
                ));
            }
            _ => {}
        }
    }
    for entry in &entries {
        let volume = entry.text("id");
        let doc = state.get(Kind::Volume, volume).unwrap_or_default();
        let attachment = match attachment_of(&doc, id, entry) {
            none if none.is_empty() => volume::reserve(state, volume, id),
            reserved => reserved,
        };
        volume::attach(state, volume, &attachment, entry.text("device"), host);
        change_entry(state, id, volume, |entry| {
            entry.set("attachment", attachment.clone());
            entry.set("offered", true);
        });
    }
    Ok(())
}

/// Reason why a new server does not have its volumes.
pub(super) enum NotYet {
    /// A volume is being created.
    Creating,
    /// Id and status of a failed volume.
    Failed(String, String),
}

/// Releases the volumes of a deleted server, and deletes those marked for deletion with it.
pub(super) fn release_all(state: &mut State, settings: &Settings, server: &Doc) {
    let id = server.text("id");
    for entry in server.list("_volumes").iter().cloned().map(to_doc) {
        let volume = entry.text("id");
        let Some(doc) = state.get(Kind::Volume, volume) else {
            continue;
        };
        let stays = [VolumeTrouble::AttachmentOutlivesServer];
        if settings.volume_trouble(doc.text("name"), &stays).is_some() {
            continue;
        }
        let attachment = attachment_of(&doc, id, &entry);
        if !attachment.is_empty() {
            volume::release(state, volume, &attachment);
        }
        let free = state.get(Kind::Volume, volume);
        let free = free.is_some_and(|doc| {
            matches!(doc.text("status"), "available" | "error") && !doc.given("_group")
        });
        let snapshots = state.by(Kind::Snapshot, "volume_id", volume);
        if entry.flag("delete_on_termination") && free && snapshots.is_empty() {
            volume::begin_delete(state, settings, volume);
        }
    }
}
