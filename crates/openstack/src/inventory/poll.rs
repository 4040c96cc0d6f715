//! The background reader: one task per inventory.

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::future::join_all;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{Inner, Kind};

/// Wait when no kind is due.
const LONG: Duration = Duration::from_secs(3600);
/// Kinds due within this time are listed together.
const TOGETHER: Duration = Duration::from_millis(5);

/// Lists due kinds, until the inventory is dropped.
pub(super) async fn run(inner: Weak<Inner>, wake: Arc<Notify>, stop: CancellationToken) {
    loop {
        let now = Instant::now();
        let Some(next) = inner.upgrade().map(|inner| next_due(&inner, now)) else {
            return;
        };
        let wait = next.map_or(LONG, |due| due.saturating_duration_since(now));
        tokio::select! {
            () = stop.cancelled() => return,
            () = wake.notified() => continue,
            () = tokio::time::sleep(wait) => {}
        }
        let Some(strong) = inner.upgrade() else {
            return;
        };
        tokio::select! {
            () = stop.cancelled() => return,
            () = read_due(&strong) => {}
        }
    }
}

fn next_due(inner: &Inner, now: Instant) -> Option<Instant> {
    Kind::ALL
        .iter()
        .filter_map(|kind| due(inner, *kind, now))
        .min()
}

fn due(inner: &Inner, kind: Kind, now: Instant) -> Option<Instant> {
    inner
        .pace(kind)
        .due(now, kind.tempo(), inner.has_pending(kind), &inner.intervals)
}

async fn read_due(inner: &Inner) {
    let now = Instant::now();
    let kinds = Kind::ALL
        .iter()
        .copied()
        .filter(|kind| due(inner, *kind, now).is_some_and(|due| due <= now + TOGETHER));
    join_all(kinds.map(|kind| async move {
        if let Err(error) = inner.refresh(kind, Some(now)).await {
            tracing::warn!(kind = kind.name(), scope = %inner.scope, %error, "list failed");
        }
    }))
    .await;
}
