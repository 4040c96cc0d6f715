//! Changes in batches.

use futures::stream::{self, Stream};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use super::Change;

/// Returns batches of all queued changes; `None` after missed changes, when every object must be reconciled.
pub fn batches(
    changes: Receiver<Change>,
) -> impl Stream<Item = Option<Vec<Change>>> + Send + 'static {
    stream::unfold(changes, |mut changes| async move {
        let mut batch = match changes.recv().await {
            Ok(change) => vec![change],
            Err(RecvError::Lagged(_)) => return Some((None, changes)),
            Err(RecvError::Closed) => return None,
        };
        while let Ok(change) = changes.try_recv() {
            batch.push(change);
        }
        Some((Some(batch), changes))
    })
}
