//! Cinder v3.

mod actions;
mod attach;
mod attachments;
mod backups;
mod body;
mod create;
mod filters;
mod group_snapshots;
mod group_types;
mod groups;
mod hosts;
mod lifecycle;
mod messages;
mod metadata;
mod quotas;
mod snapshots;
mod type_access;
mod type_specs;
mod volume_types;
mod volumes;

use serde_json::{Value, json};

use super::call::Call;
use super::fault::Fault;
use super::kind::Kind;
use super::route::Routes;
use super::service::Service;
use super::settings::Settings;
use super::state::State;

pub(crate) use self::attach::{
    all as attachments, attach, check_detaching, complete, connect, disconnect, of_server, refusal,
    release, reserve,
};
pub(crate) use self::create::create_for_server;
pub(crate) use self::lifecycle::set_status;
pub(crate) use self::volume_types::seed;
pub(crate) use self::volumes::begin_delete;

use self::filters::{matches, metadata_matches, page};

/// Registers Cinder's operations.
pub(crate) fn routes(routes: &mut Routes) {
    let mut table = routes.of(Service::Volume);
    volumes::routes(&mut table);
    attachments::routes(&mut table);
    metadata::routes(&mut table);
    snapshots::routes(&mut table);
    backups::routes(&mut table);
    volume_types::routes(&mut table);
    type_specs::routes(&mut table);
    type_access::routes(&mut table);
    quotas::routes(&mut table);
    messages::routes(&mut table);
    group_types::routes(&mut table);
    groups::routes(&mut table);
    group_snapshots::routes(&mut table);
}

/// Applies a due transition of one of Cinder's resources.
pub(crate) fn transition(
    state: &mut State,
    settings: &Settings,
    kind: Kind,
    action: &str,
    id: &str,
) {
    match kind {
        Kind::Volume => lifecycle::transition(state, settings, action, id),
        Kind::Snapshot => snapshots::transition(state, settings, action, id),
        Kind::Backup => backups::transition(state, settings, action, id),
        Kind::VolumeGroup => groups::transition(state, settings, action, id),
        Kind::GroupSnapshot => group_snapshots::transition(state, settings, action, id),
        _ => tracing::warn!(kind = kind.name(), "unknown transition dropped"),
    }
}

/// Sets the status of a volume, a snapshot or a backup, with Cinder's message about the failure; returns false for an
/// unknown one.
pub(crate) fn fail(state: &mut State, kind: Kind, id: &str, status: &str) -> bool {
    let Some(doc) = state.get(kind, id) else {
        return false;
    };
    if let Some(event) = messages::of_failure(kind, status) {
        messages::write(state, &doc, event);
    }
    match kind {
        Kind::Volume => set_status(state, id, status),
        Kind::Snapshot => snapshots::set_status(state, id, status),
        _ => {
            state.edit(kind, id, |doc| {
                doc.insert("status".to_owned(), json!(status));
            });
        }
    }
    true
}

/// Returns the [`Fault`] of an operation that the microversion lacks; `least` is the first version with it.
fn since(call: &Call<'_>, least: u32) -> Result<(), Fault> {
    if call.version >= least {
        return Ok(());
    }
    Err(Fault::missing(format!(
        "API version 3.{} is not supported on this method.",
        call.version
    )))
}

/// Returns the [`Fault`] 403 for everybody but administrators.
fn not_allowed(rule: &str) -> Fault {
    Fault::forbidden(format!("Policy doesn't allow {rule} to be performed."))
}

/// Returns the link with the version in the path, and the one without.
fn links(call: &Call<'_>, what: &str, id: &str) -> Value {
    let path = format!("{}/{what}/{id}", call.who.project_id);
    json!([{"rel": "self", "href": format!("{}/v3/{path}", call.root())},
        {"rel": "bookmark", "href": format!("{}/{path}", call.root())}])
}
