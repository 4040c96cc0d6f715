//! Objects of a kind and their changes, for controllers in the same process.
//!
//! A watch of a client has a request, lines of JSON, and buffers at both ends: more memory than the rest of a
//! controller of few objects. A follower of the store needs none of these, and never expires.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, stream};
use serde_json::Value;

use crate::core::Core;
use crate::store::{Change, Event, Object, Unread};

/// Maximum number of events in one read of the store.
const BATCH: usize = 100;
/// Delay before another read of an unreadable store.
const RETRY: Duration = Duration::from_secs(1);

/// Change of the followed objects.
#[derive(Clone, Debug, PartialEq)]
pub enum Followed {
    /// All objects, in the stored version. The first event, and repeated if events may have been missed.
    Listed(Vec<Value>),
    /// An object was created or changed.
    Written(Value),
    /// An object was deleted; the value is the last state.
    Deleted(Value),
}

/// Objects of `collection` under `prefix`, and their changes, until the server is closed.
pub(crate) fn follow(
    core: Arc<Core>,
    collection: Arc<str>,
    prefix: String,
) -> impl Stream<Item = Followed> + Send {
    let changed = core.store.subscribe().subscribe(&collection);
    let follower = Follower {
        core,
        collection,
        prefix,
        changed,
        seen: None,
        found: VecDeque::new(),
    };
    stream::unfold(follower, |mut follower| async move {
        let next = follower.next().await?;
        Some((next, follower))
    })
}

struct Follower {
    core: Arc<Core>,
    collection: Arc<str>,
    prefix: String,
    changed: tokio::sync::watch::Receiver<u64>,
    /// Revision up to which events were read; `None` before the objects are listed.
    seen: Option<u64>,
    found: VecDeque<Followed>,
}

impl Follower {
    /// Next change; `None` after the server is closed.
    async fn next(&mut self) -> Option<Followed> {
        loop {
            if let Some(next) = self.found.pop_front() {
                return Some(next);
            }
            let Some(seen) = self.seen else {
                return Some(self.list());
            };
            // At rest, nothing of the past is kept in memory.
            self.found = VecDeque::new();
            self.changed.borrow_and_update();
            let read = Box::pin(self.core.store.events(&self.collection, seen, BATCH)).await;
            match read {
                Ok((events, revision)) => {
                    let full = events.len() == BATCH;
                    let last = events.last().map_or(seen, |event| event.object.revision);
                    self.seen = Some(if full { last } else { seen.max(revision) });
                    let found = events.iter().filter_map(|event| self.followed(event));
                    self.found = found.collect();
                    if events.is_empty() && !self.change().await {
                        return None;
                    }
                }
                Err(_) if self.core.shutdown.is_cancelled() => return None,
                Err(Unread::Gone(_)) => self.seen = None,
                Err(Unread::Failed(problem)) => {
                    tracing::warn!("changes of {} cannot be read: {problem}", self.collection);
                    tokio::time::sleep(RETRY).await;
                    self.seen = None;
                }
            }
        }
    }

    fn list(&mut self) -> Followed {
        let state = self.core.store.read();
        self.seen = Some(state.revision);
        let objects: Vec<Arc<Object>> = state
            .range(&self.collection, &self.prefix, None)
            .cloned()
            .collect();
        drop(state);
        Followed::Listed(objects.iter().map(|object| object.value()).collect())
    }

    fn followed(&self, event: &Event) -> Option<Followed> {
        if !event.object.key.starts_with(self.prefix.as_str()) {
            return None;
        }
        let value = event.object.value();
        Some(match event.change {
            Change::Deleted => Followed::Deleted(value),
            Change::Added | Change::Modified => Followed::Written(value),
        })
    }

    /// Waits for the next write to the collection; returns true if there may be one.
    async fn change(&mut self) -> bool {
        tokio::select! {
            changed = self.changed.changed() => changed.is_ok(),
            () = self.core.shutdown.cancelled() => false,
        }
    }
}

#[cfg(test)]
mod tests;
