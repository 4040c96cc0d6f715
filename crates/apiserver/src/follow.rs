//! The objects of a kind and their changes, for controllers in the same process.
//!
//! A watch of a client has a request, lines of JSON, and buffers for them at both ends, which are larger than all else
//! that a controller of few objects has. What follows the store needs none of it, and never expires.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, stream};
use serde_json::Value;

use crate::core::Core;
use crate::store::{Change, Event, Object, Unread};

/// The number of events that are read from the store at a time.
const BATCH: usize = 100;
/// The delay after which an unreadable store is read again.
const RETRY: Duration = Duration::from_secs(1);

/// What happened to the objects that are followed.
#[derive(Clone, Debug, PartialEq)]
pub enum Followed {
    /// These are all objects, in the stored version. It comes first, and again if events may have been missed.
    Listed(Vec<Value>),
    /// An object was created or changed.
    Written(Value),
    /// An object was deleted; its last state.
    Deleted(Value),
}

/// The objects of `collection` under `prefix`, and their changes, until the server is closed.
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
    /// The revision up to which events were read; `None` before the objects are listed.
    seen: Option<u64>,
    found: VecDeque<Followed>,
}

impl Follower {
    /// The next change; `None` when the server is closed.
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

    /// Waits for the next write to the collection; returns whether there may be one.
    async fn change(&mut self) -> bool {
        tokio::select! {
            changed = self.changed.changed() => changed.is_ok(),
            () = self.core.shutdown.cancelled() => false,
        }
    }
}

#[cfg(test)]
mod tests;
