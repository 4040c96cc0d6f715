//! Cinder v3.

mod attach;
mod attachments;
mod backups;
mod metadata;
mod quotas;
mod snapshots;
mod volume_types;
mod volumes;

use super::route::Routes;
use super::service::Service;
use super::state::State;

pub(crate) use self::attach::{attach, detach, reserve};
pub(crate) use self::backups::transition as backup_transition;
pub(crate) use self::volume_types::seed;
pub(crate) use self::volumes::create_for_server;

/// Cinder's operations.
pub(crate) fn routes(routes: &mut Routes) {
    let mut table = routes.of(Service::Volume);
    volumes::routes(&mut table);
    attachments::routes(&mut table);
    metadata::routes(&mut table);
    snapshots::routes(&mut table);
    backups::routes(&mut table);
    volume_types::routes(&mut table);
    quotas::routes(&mut table);
}

/// Applies a due transition.
pub(crate) fn transition(state: &mut State, action: &str, id: &str) {
    use super::document::Fields;
    use super::kind::Kind;
    match action {
        "created" => {
            let now = super::clock::naive_micros(state.now());
            state.edit(Kind::Volume, id, |doc| {
                doc.set("updated_at", now);
                if doc.text("status") == "creating" {
                    doc.set("status", "available");
                }
            });
        }
        "snapshotted" => {
            let now = super::clock::naive_micros(state.now());
            state.edit(Kind::Snapshot, id, |doc| {
                doc.set("updated_at", now);
                doc.set("status", "available");
            });
        }
        "gone" => {
            state.remove(Kind::Volume, id);
        }
        _ => tracing::warn!(action, "unknown volume transition dropped"),
    }
}
