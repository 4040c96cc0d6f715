//! Cinder v3.

mod attach;
mod quotas;
mod snapshots;
mod volume_types;
mod volumes;

use super::route::Routes;
use super::service::Service;
use super::state::State;

pub(crate) use self::attach::{attach, detach, reserve};
pub(crate) use self::volume_types::seed;
pub(crate) use self::volumes::create_for_server;

/// Cinder's operations.
pub(crate) fn routes(routes: &mut Routes) {
    let mut table = routes.of(Service::Volume);
    volumes::routes(&mut table);
    snapshots::routes(&mut table);
    volume_types::routes(&mut table);
    quotas::routes(&mut table);
}

/// Applies a due transition.
pub(crate) fn transition(state: &mut State, action: &str, id: &str) {
    use super::document::Fields;
    use super::kind::Kind;
    match action {
        "created" => {
            state.edit(Kind::Volume, id, |doc| {
                if doc.text("status") == "creating" {
                    doc.set("status", "available");
                }
            });
        }
        "gone" => {
            state.remove(Kind::Volume, id);
        }
        _ => tracing::warn!(action, "unknown volume transition dropped"),
    }
}
