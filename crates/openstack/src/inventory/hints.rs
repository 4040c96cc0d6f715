//! Hints about changes in the cloud, from a source with knowledge of them.

use std::collections::BTreeSet;
use std::sync::Weak;

use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::Instant;

use super::{Inner, Kind};

/// Lists the kinds that hints name, until the inventory or the sender is dropped.
pub(super) async fn follow(inner: Weak<Inner>, mut hints: Receiver<Kind>) {
    loop {
        let mut kinds = BTreeSet::new();
        match hints.recv().await {
            Ok(kind) => kinds.insert(kind),
            Err(RecvError::Lagged(_)) => continue,
            Err(RecvError::Closed) => return,
        };
        let Some(pause) = inner.upgrade().map(|inner| inner.intervals.hints) else {
            return;
        };
        // Changes come in groups.
        tokio::time::sleep(pause).await;
        while let Ok(kind) = hints.try_recv() {
            kinds.insert(kind);
        }
        let Some(inner) = inner.upgrade() else {
            return;
        };
        for kind in kinds {
            if !inner.pace(kind).was_read() {
                continue;
            }
            if let Err(error) = inner.refresh(kind, Some(Instant::now())).await {
                tracing::debug!(kind = kind.name(), %error, "list after a hint failed");
            }
        }
    }
}
