//! State transitions after some time.
//!
//! A transition is a stored resource, so it continues after a restart.

use super::balancer;
use super::compute;
use super::document::Fields;
use super::kind::Kind;
use super::settings::Settings;
use super::state::State;
use super::volume;

/// Returns the time of the next transition, in milliseconds since 1970.
pub(crate) fn next_due(state: &State) -> Option<i64> {
    state.first(Kind::Pending).map(|(_, doc)| doc.number("at"))
}

/// True if a transition is due.
pub(crate) fn any_due(state: &State, now: jiff::Timestamp) -> bool {
    next_due(state).is_some_and(|at| at <= now.as_millisecond())
}

/// Applies all due transitions, including the ones that become due meanwhile.
pub(crate) fn run_due(state: &mut State, settings: &Settings) {
    // Transitions may schedule others for the same moment; the bound guards against an endless loop.
    for _ in 0..100_000 {
        let Some((key, doc)) = state.first(Kind::Pending) else {
            return;
        };
        if doc.number("at") > state.now().as_millisecond() {
            return;
        }
        state.remove(Kind::Pending, &key);
        let target = doc.text("key");
        match Kind::named(doc.text("kind")) {
            Some(Kind::Server) => compute::transition(state, settings, doc.text("action"), target),
            Some(
                kind @ (Kind::Volume
                | Kind::Snapshot
                | Kind::Backup
                | Kind::VolumeGroup
                | Kind::GroupSnapshot),
            ) => volume::transition(state, settings, kind, doc.text("action"), target),
            Some(Kind::LoadBalancer) => balancer::transition(state, doc.text("action"), target),
            _ => tracing::warn!(kind = doc.text("kind"), "unknown transition dropped"),
        }
    }
}
