//! watch: the changes of a collection after a revision, without gaps or duplicates.
//!
//! A watch remembers its last sent revision and reads later events from the store; the notification of the store
//! carries no event. Nothing is buffered for a slow client, and a client that falls behind the history gets 410 Gone,
//! as with etcd.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use apimachinery::kinds::{CRD_COLLECTION, Resource};
use apimachinery::table;
use bytes::Bytes;
use jiff::Timestamp;
use rand::Rng as _;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::read::Selection;
use crate::body;
use crate::call::{Answer, Call};
use crate::conversion;
use crate::core::Core;
use crate::error::ApiError;
use crate::metrics::{Labels, Watching};
use crate::request::accept::Form;
use crate::request::query::Query;
use crate::store::{Change, Event, Object, Unread, frame};
use crate::view::Kind;

/// Interval of bookmarks in kube-apiserver.
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);
/// Minimum duration in seconds of a watch without `timeoutSeconds`; the maximum is twice as long.
const TIMEOUT: u64 = 1800;
/// Maximum wait for a revision in the future, as in kube-apiserver's watch cache.
const FUTURE: Duration = Duration::from_secs(3);
/// Maximum number of events in one read of the store.
const BATCH: usize = 100;

/// Answers a watch.
pub(crate) async fn watch(call: &Call) -> Result<Answer, ApiError> {
    let selection = Selection::from_call(call)?;
    let start = start(&call.query)?;
    let timeout = timeout(call.query.integer("timeoutSeconds")?);
    if let Start::Current { not_before, .. } = start
        && let Err(error) = reached(&call.core, not_before).await
    {
        // kube-apiserver reports errors after the acceptance of the watch as an event of the stream.
        let line = frame("ERROR", error.status().to_string().as_bytes());
        return Ok(Answer::Stream(body::full(line)));
    }
    if let Start::After(seen) = start
        && let Err(gone) = call
            .core
            .store
            .read()
            .can_be_watched(&call.resource.collection, seen)
    {
        return Ok(Answer::Stream(body::full(ended(seen, Unread::Gone(gone)))));
    }
    let watcher = Watcher {
        core: Arc::clone(&call.core),
        _counted: Counted::new(&call.core),
        _watching: Watching::new(
            &call.core.requests,
            Labels::watch(
                &call.resource,
                &call.version,
                &call.namespace,
                call.name.as_deref(),
            ),
        ),
        resource: Arc::clone(&call.resource),
        api_version: call.version().api_version.clone(),
        version: call.version.clone(),
        form: call.accept.form,
        include: super::read::include_object(call)?.map(str::to_owned),
        bookmarks: call.query.flag("allowWatchBookmarks"),
        selection,
        headed: false,
    };
    // Subscribed now and not when the client reads first, so that the watch sees every change after this answer.
    let changed = call
        .core
        .store
        .subscribe()
        .subscribe(&call.resource.collection);
    let begin = watcher.initial(start);
    let marked = matches!(start, Start::Current { marked: true, .. });
    let lines = watcher.run(begin, marked, changed, timeout);
    Ok(Answer::Stream(body::stream(lines)))
}

/// Duration of a watch. Go computes the duration in 64-bit nanoseconds: an overflow becomes negative or short, and a
/// negative duration ends the watch at once.
fn timeout(seconds: Option<i64>) -> Duration {
    match seconds {
        None | Some(0) => Duration::from_secs(TIMEOUT + rand::rng().random_range(0..TIMEOUT)),
        Some(seconds) => {
            let nanoseconds = seconds.wrapping_mul(1_000_000_000);
            Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(0))
        }
    }
}

/// Waits for a future revision of the store, for at most [`FUTURE`].
async fn reached(core: &Core, revision: u64) -> Result<(), ApiError> {
    let deadline = Instant::now() + FUTURE;
    loop {
        let current = core.store.read().revision;
        if revision <= current {
            return Ok(());
        }
        if Instant::now() >= deadline {
            return Err(super::read::too_large(revision, current));
        }
        tokio::time::sleep(FUTURE / 60).await;
    }
}

/// Start position of a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    /// With the current objects, read at `not_before` or later. `marked`: a bookmark follows.
    Current { marked: bool, not_before: u64 },
    /// After a revision.
    After(u64),
    /// With the next change.
    Now,
}

fn start(query: &Query) -> Result<Start, ApiError> {
    let revision = query.number("resourceVersion")?;
    let initial = query
        .get("sendInitialEvents")
        .map(|_| query.flag("sendInitialEvents"));
    let matching = query.get("resourceVersionMatch");
    let forbidden = |detail: &str| {
        let error = apimachinery::schema::FieldError::forbidden("resourceVersionMatch", detail);
        Err(ApiError::invalid(
            "meta.k8s.io",
            "ListOptions",
            "",
            &[error],
        ))
    };
    if query.get("continue").is_some() {
        return forbidden("resourceVersionMatch is forbidden when continue is provided");
    }
    match (initial, matching) {
        (Some(_), None) => {
            forbidden("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan")
        }
        (None, Some(_)) => forbidden(
            "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
        ),
        (Some(true), Some(_)) => Ok(Start::Current {
            marked: query.flag("allowWatchBookmarks"),
            not_before: revision.unwrap_or(0),
        }),
        (Some(false), Some(_)) => Ok(match revision {
            None | Some(0) => Start::Now,
            Some(revision) => Start::After(revision),
        }),
        (None, None) => Ok(match revision {
            None | Some(0) => Start::Current {
                marked: false,
                not_before: 0,
            },
            Some(revision) => Start::After(revision),
        }),
    }
}

/// Waits for the next change; for ever without a receiver.
async fn next_change(changes: &mut Option<tokio::sync::watch::Receiver<u64>>) {
    let Some(changes) = changes else {
        return std::future::pending().await;
    };
    // The sender lives as long as the server, and the watcher has a reference to the server, so this does not fail.
    let _ = changes.changed().await;
}

/// Counts an open watch in the metrics until dropped.
struct Counted(Arc<Core>);

impl Counted {
    fn new(core: &Arc<Core>) -> Self {
        core.watches.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(core))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.watches.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Line of a watch, or the event for an error of a conversion; `None` if there is nothing to send.
fn line_of(line: Result<Bytes, ApiError>) -> Option<Bytes> {
    let line = line.unwrap_or_else(|error| frame("ERROR", error.status().to_string().as_bytes()));
    (!line.is_empty()).then_some(line)
}

struct Watcher {
    core: Arc<Core>,
    _counted: Counted,
    _watching: Watching,
    resource: Arc<Resource>,
    api_version: String,
    version: String,
    form: Form,
    include: Option<String>,
    bookmarks: bool,
    selection: Selection,
    /// True if the columns of a table have been sent.
    headed: bool,
}

impl Watcher {
    fn run(
        mut self,
        (mut seen, initial): (u64, Vec<Arc<Object>>),
        marked: bool,
        mut changed: tokio::sync::watch::Receiver<u64>,
        timeout: Duration,
    ) -> impl futures::Stream<Item = Bytes> {
        async_stream::stream! {
            let deadline = Instant::now() + timeout;
            let mut definitions = self.definitions();
            let core = Arc::clone(&self.core);
            for object in &initial {
                // Rare futures are boxed: a watch mostly waits, and is as large as its largest future.
                let line = Box::pin(conversion::resolve(core.converter(), || {
                    Ok(self.object_line(Change::Added, object))
                }));
                if let Some(line) = line_of(line.await) {
                    yield line;
                }
            }
            drop(initial);
            if marked {
                yield self.bookmark(seen, true);
            }
            let mut next_bookmark = Instant::now() + BOOKMARK_EVERY;
            // Created once per watch: resetting a timer is cheaper, and each event passes here for thousands of
            // watches.
            let alarm = tokio::time::sleep_until(next_bookmark.min(deadline));
            let stopped = core.shutdown.cancelled();
            tokio::pin!(alarm, stopped);
            loop {
                changed.borrow_and_update();
                // The revision is read together with the events, so that a bookmark never precedes an event.
                let collection = &self.resource.collection;
                let found = Box::pin(core.store.events(collection, seen, BATCH)).await;
                let (events, revision) = match found {
                    Ok(found) => found,
                    Err(_) if core.shutdown.is_cancelled() => return,
                    Err(unread) => {
                        yield ended(seen, unread);
                        return;
                    }
                };
                let full = events.len() == BATCH;
                for event in &events {
                    if let Some(line) = self.shared_line(event) {
                        yield line;
                        continue;
                    }
                    let line = Box::pin(conversion::resolve(core.converter(), || Ok(self.event_line(event))));
                    if let Some(line) = line_of(line.await.map(Option::unwrap_or_default)) {
                        yield line;
                    }
                }
                if full {
                    seen = events.last().map_or(seen, |event| event.object.revision);
                    continue;
                }
                seen = seen.max(revision);
                // A waiting watch keeps nothing of the past in memory.
                drop(events);
                if definitions.is_some() && !self.is_served() {
                    return;
                }
                tokio::select! {
                    result = changed.changed() => if result.is_err() { return },
                    () = &mut alarm => {
                        if Instant::now() >= deadline {
                            return;
                        }
                        next_bookmark = Instant::now() + BOOKMARK_EVERY;
                        alarm.as_mut().reset(next_bookmark.min(deadline));
                        if self.bookmarks {
                            // No event was published since `seen`; otherwise `changed` is ready and is taken in this or
                            // the next round.
                            yield self.bookmark(seen, false);
                        }
                    }
                    () = &mut stopped => return,
                    () = next_change(&mut definitions) => {}
                }
            }
        }
    }

    /// Revision after which to continue, and the initial [`Object`]s, for a [`Start`].
    fn initial(&self, start: Start) -> (u64, Vec<Arc<Object>>) {
        let state = self.core.store.read();
        let objects = match start {
            Start::After(revision) => return (revision, Vec::new()),
            Start::Now => return (state.revision, Vec::new()),
            Start::Current { .. } => {
                let all = state.range(&self.resource.collection, &self.selection.prefix, None);
                all.filter(|object| self.selection.matches(object))
                    .cloned()
                    .collect()
            }
        };
        (state.revision, objects)
    }

    /// Notifications of changed definitions; such a change may end the watch of a custom resource.
    fn definitions(&self) -> Option<tokio::sync::watch::Receiver<u64>> {
        let definitions: Arc<str> = CRD_COLLECTION.into();
        self.resource
            .is_custom()
            .then(|| self.core.store.subscribe().subscribe(&definitions))
    }

    /// True if the definition is unchanged since the start of the watch: kube-apiserver ends the watches of a changed
    /// definition.
    fn is_served(&self) -> bool {
        let registry = self.core.store.registry();
        let found = registry.find(&self.resource.group, &self.resource.plural);
        found.is_some_and(|found| Arc::ptr_eq(&found, &self.resource))
    }

    /// Line of an [`Event`], shared by all watchers of everything in the stored version.
    fn shared_line(&self, event: &Event) -> Option<Bytes> {
        let same = self.form == Form::Whole
            && self.selection.is_everything()
            && *event.object.facts.api_version == *self.api_version
            && event.object.key.starts_with(self.selection.prefix.as_str());
        same.then(|| event.frame())
    }

    /// [`Event`] for this watcher: an object that begins or ceases to match the selector is added or deleted.
    fn event_line(&mut self, event: &Event) -> Option<Bytes> {
        if !event.object.key.starts_with(self.selection.prefix.as_str()) {
            return None;
        }
        let now = event.change != Change::Deleted && self.selection.matches(&event.object);
        let before = event
            .previous
            .as_ref()
            .is_some_and(|object| self.selection.matches(object));
        let change = match (before, now) {
            (false, false) => return None,
            (false, true) => Change::Added,
            (true, true) => Change::Modified,
            (true, false) => Change::Deleted,
        };
        let stored = &*event.object.facts.api_version == self.api_version.as_str();
        if change == event.change && stored && self.form == Form::Whole {
            return Some(event.frame());
        }
        match &event.previous {
            Some(previous) if change == Change::Deleted && event.change != Change::Deleted => {
                Some(self.last_line(previous, event.object.revision))
            }
            _ => Some(self.object_line(change, &event.object)),
        }
    }

    /// DELETED event of an [`Object`] that ceases to match the selector: the previous state, with the revision of the
    /// change.
    fn last_line(&mut self, previous: &Object, revision: u64) -> Bytes {
        let mut value = previous.value();
        value["metadata"]["resourceVersion"] = Value::from(revision.to_string());
        let kind = Kind {
            core: &self.core,
            resource: &self.resource,
        };
        match kind.convert(value, &self.api_version) {
            Ok(value) => {
                let value = self.formed(value);
                frame(Change::Deleted.as_str(), value.to_string().as_bytes())
            }
            Err(error) => frame("ERROR", error.status().to_string().as_bytes()),
        }
    }

    fn object_line(&mut self, change: Change, object: &Object) -> Bytes {
        let kind = Kind {
            core: &self.core,
            resource: &self.resource,
        };
        if self.form == Form::Whole {
            return match kind.bytes(object, &self.api_version) {
                Ok(bytes) => frame(change.as_str(), &bytes),
                Err(error) => frame("ERROR", error.status().to_string().as_bytes()),
            };
        }
        match kind.value(object, &self.api_version) {
            Ok(value) => {
                let value = self.formed(value);
                frame(change.as_str(), value.to_string().as_bytes())
            }
            Err(error) => frame("ERROR", error.status().to_string().as_bytes()),
        }
    }

    fn formed(&mut self, value: Value) -> Value {
        match self.form {
            Form::Whole => value,
            Form::Metadata => table::metadata_only(&value),
            Form::Table => {
                let version = self.resource.version(&self.version);
                let version = version.unwrap_or_else(|| self.resource.stored_version());
                let metadata = json!({"resourceVersion": value["metadata"]["resourceVersion"]});
                let rows = vec![table::row(
                    version,
                    value,
                    self.include.as_deref(),
                    Timestamp::now(),
                )];
                table::table(
                    version,
                    rows,
                    &metadata,
                    !std::mem::replace(&mut self.headed, true),
                )
            }
        }
    }

    fn bookmark(&mut self, revision: u64, initial_end: bool) -> Bytes {
        let mut metadata = json!({"resourceVersion": revision.to_string()});
        if initial_end {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let value = match self.form {
            Form::Whole => {
                json!({"kind": self.resource.kind, "apiVersion": self.api_version, "metadata": metadata})
            }
            Form::Metadata => {
                json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata})
            }
            Form::Table => {
                json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata, "columnDefinitions": [], "rows": []})
            }
        };
        frame("BOOKMARK", value.to_string().as_bytes())
    }
}

/// Last event of a watch with unreadable next events: 410 after a compaction.
fn ended(seen: u64, unread: Unread) -> Bytes {
    let error = match unread {
        Unread::Gone(gone) => {
            let oldest = gone.oldest;
            ApiError::expired(format!("too old resource version: {seen} ({oldest})"))
        }
        Unread::Failed(problem) => ApiError::internal(problem),
    };
    frame("ERROR", error.status().to_string().as_bytes())
}
