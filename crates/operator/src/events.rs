//! Events, as listed by `kubectl describe`.
//!
//! An event that repeats with the same note is counted in its `series`. events.k8s.io does not allow changing a note,
//! so an event with another note is a new object: the last note is always there. A reason that repeats with ever new
//! notes is limited to one new object per 30 s after the first 10.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use api::conditions::sentence;
use api::printable;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::{Event, EventSeries};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use k8s_openapi::jiff::Timestamp;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Client, Resource};
use parking_lot::Mutex;
use serde_json::json;
use tracing::debug;

use crate::client::Api;

/// Time to remember an event after the last occurrence, as in client-go.
const REMEMBERED: Duration = Duration::from_secs(360);
/// Number of notes of one reason and object that are published without delay.
const BURST: usize = 10;
/// Interval of further notes.
const CALM: Duration = Duration::from_secs(30);

/// Publisher of the events of a controller.
#[derive(Clone)]
pub struct Recorder {
    client: Client,
    controller: String,
    published: Arc<Mutex<HashMap<Subject, Vec<Published>>>>,
}

/// Key of a series: the common fields of the events.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Subject {
    uid: String,
    name: String,
    type_: Type,
    reason: String,
    action: String,
}

/// Event in the API server.
#[derive(Clone, Debug)]
struct Published {
    /// Name of the object; unset during the creation.
    name: Option<String>,
    note: String,
    count: i32,
    last: Instant,
}

/// Type of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// Expected event.
    Normal,
    /// Problem.
    Warning,
}

impl Type {
    fn as_str(self) -> &'static str {
        match self {
            Type::Normal => "Normal",
            Type::Warning => "Warning",
        }
    }
}

/// Way to publish an occurrence.
#[derive(Debug, PartialEq, Eq)]
enum How {
    /// As a new object.
    Create,
    /// As the given occurrence of the object with the given name.
    Count(String, i32),
    /// Not at all.
    Skip,
}

impl Recorder {
    /// Creates a recorder of events whose source is `controller`.
    pub fn new(client: Client, controller: &str) -> Self {
        Self {
            client,
            controller: controller.to_owned(),
            published: Arc::default(),
        }
    }

    /// Publishes an event of type `Normal`.
    pub async fn normal<K>(&self, about: &K, reason: &str, action: &str, note: impl Into<String>)
    where
        K: Resource<DynamicType = ()>,
    {
        self.publish(
            &about.object_ref(&()),
            Type::Normal,
            reason,
            action,
            note.into(),
        )
        .await;
    }

    /// Publishes an event of type `Warning`.
    pub async fn warning<K>(&self, about: &K, reason: &str, action: &str, note: impl Into<String>)
    where
        K: Resource<DynamicType = ()>,
    {
        self.publish(
            &about.object_ref(&()),
            Type::Warning,
            reason,
            action,
            note.into(),
        )
        .await;
    }

    /// Publishes an event of type `Normal` about an object known only by its reference.
    pub async fn normal_about(
        &self,
        about: &ObjectReference,
        reason: &str,
        action: &str,
        note: impl Into<String>,
    ) {
        self.publish(about, Type::Normal, reason, action, note.into())
            .await;
    }

    /// Publishes an event of type `Warning` about an object known only by its reference.
    pub async fn warning_about(
        &self,
        about: &ObjectReference,
        reason: &str,
        action: &str,
        note: impl Into<String>,
    ) {
        self.publish(about, Type::Warning, reason, action, note.into())
            .await;
    }

    /// Publishes an event of type `type_`.
    pub async fn record<K>(&self, about: &K, type_: Type, reason: &str, action: &str, note: String)
    where
        K: Resource<DynamicType = ()>,
    {
        let about = about.object_ref(&());
        self.publish(&about, type_, reason, action, note).await;
    }

    async fn publish(
        &self,
        about: &ObjectReference,
        type_: Type,
        reason: &str,
        action: &str,
        note: String,
    ) {
        let note = shortened(&sentence(&note));
        let subject = Subject {
            uid: about.uid.clone().unwrap_or_default(),
            name: about.name.clone().unwrap_or_default(),
            type_,
            reason: reason.to_owned(),
            action: action.to_owned(),
        };
        let how = occurred(&mut self.published.lock(), &subject, &note, Instant::now());
        let namespace = about.namespace.as_deref().unwrap_or("default");
        let events = Api::<Event>::namespaced(self.client.clone(), namespace);
        let stored = match how {
            How::Skip => return,
            How::Count(name, count) => count_up(&events, &name, count).await.map(Some),
            How::Create => Ok(None),
        };
        // The API server deletes events after an hour.
        let missing =
            |error: &kube::Error| matches!(error, kube::Error::Api(status) if status.code == 404);
        let stored = match stored {
            Ok(Some(())) => return,
            Err(error) if !missing(&error) => Err(error),
            _ => {
                let event = self.event(about, &subject, &note);
                events.create(&PostParams::default(), &event).await
            }
        };
        let name = match stored {
            Ok(event) => event.metadata.name,
            // A failure to store an event must not fail the reconcile that it reports.
            Err(source) => {
                debug!("event {reason} was not stored: {source}");
                None
            }
        };
        named(&mut self.published.lock(), &subject, &note, name);
    }

    fn event(&self, about: &ObjectReference, subject: &Subject, note: &str) -> Event {
        let now = Timestamp::now();
        Event {
            metadata: ObjectMeta {
                namespace: about.namespace.clone(),
                name: Some(format!("{}.{:x}", subject.name, now.as_nanosecond())),
                ..ObjectMeta::default()
            },
            action: Some(subject.action.clone()),
            reason: Some(subject.reason.clone()),
            type_: Some(subject.type_.as_str().to_owned()),
            note: Some(note.to_owned()),
            event_time: Some(MicroTime(now)),
            regarding: Some(about.clone()),
            reporting_controller: Some(self.controller.clone()),
            reporting_instance: Some(self.controller.clone()),
            ..Event::default()
        }
    }
}

async fn count_up(events: &Api<Event>, name: &str, count: i32) -> kube::Result<()> {
    let series = EventSeries {
        count,
        last_observed_time: MicroTime(Timestamp::now()),
    };
    let patch = Patch::Merge(json!({ "series": series }));
    let stored = events.patch(name, &PatchParams::default(), &patch).await;
    stored.map(drop)
}

/// Records an occurrence, and returns the way to publish it.
fn occurred(
    published: &mut HashMap<Subject, Vec<Published>>,
    subject: &Subject,
    note: &str,
    now: Instant,
) -> How {
    published.retain(|_, events| {
        events.retain(|event| now.duration_since(event.last) < REMEMBERED);
        !events.is_empty()
    });
    let events = published.entry(subject.clone()).or_default();
    if let Some(known) = events.iter_mut().find(|event| event.note == note) {
        known.last = now;
        let Some(name) = known.name.clone() else {
            // Another task is creating the event now.
            return How::Skip;
        };
        known.count = known.count.saturating_add(1);
        return How::Count(name, known.count);
    }
    let latest = events.iter().map(|event| event.last).max();
    let calm = latest.is_none_or(|latest| now.duration_since(latest) >= CALM);
    if events.len() >= BURST && !calm {
        return How::Skip;
    }
    events.push(Published {
        name: None,
        note: note.to_owned(),
        count: 1,
        last: now,
    });
    How::Create
}

/// Records the name of a new event. `None` means the event was not stored; the next occurrence creates it.
fn named(
    published: &mut HashMap<Subject, Vec<Published>>,
    subject: &Subject,
    note: &str,
    name: Option<String>,
) {
    let Some(events) = published.get_mut(subject) else {
        return;
    };
    match name {
        None => events.retain(|event| event.note != note),
        Some(name) => {
            if let Some(known) = events.iter_mut().find(|event| event.note == note) {
                (known.name, known.count) = (Some(name), 1);
            }
        }
    }
}

/// Longest note that events.k8s.io accepts, in bytes.
const LONGEST: usize = 1024;

/// Returns a note on one line, without control characters for terminals, and cut to [`LONGEST`].
fn shortened(note: &str) -> String {
    // No character takes less than one byte: the work for a text of any length is bounded.
    let mut note = printable::line(&printable::bounded(note, LONGEST)).into_owned();
    if note.len() > LONGEST {
        let ends = |at: &usize| note.is_char_boundary(*at);
        let end = (0..=LONGEST - '…'.len_utf8()).rev().find(ends);
        note.truncate(end.unwrap_or(0));
        note.push('…');
    }
    note
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Recorder")
    }
}

#[cfg(test)]
mod tests;
