//! Events, which `kubectl describe` lists.

use k8s_openapi::api::core::v1::ObjectReference;
use kube::runtime::events::{Event, EventType, Recorder as Publisher, Reporter};
use kube::{Client, Resource};
use tracing::debug;

/// Publishes events of a controller.
#[derive(Clone)]
pub struct Recorder {
    publisher: Publisher,
}

impl Recorder {
    /// Creates a recorder of events whose source is `controller`.
    pub fn new(client: Client, controller: &str) -> Self {
        let reporter = Reporter {
            controller: controller.to_owned(),
            instance: None,
        };
        Self {
            publisher: Publisher::new(client, reporter),
        }
    }

    /// Publishes an event of type `Normal`.
    pub async fn normal<K>(&self, about: &K, reason: &str, action: &str, note: impl Into<String>)
    where
        K: Resource<DynamicType = ()>,
    {
        self.publish(
            &about.object_ref(&()),
            EventType::Normal,
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
            EventType::Warning,
            reason,
            action,
            note.into(),
        )
        .await;
    }

    /// As [`warning`](Self::warning), for an object of which only the reference is known.
    pub async fn warning_about(
        &self,
        about: &ObjectReference,
        reason: &str,
        action: &str,
        note: impl Into<String>,
    ) {
        self.publish(about, EventType::Warning, reason, action, note.into())
            .await;
    }

    async fn publish(
        &self,
        about: &ObjectReference,
        type_: EventType,
        reason: &str,
        action: &str,
        note: String,
    ) {
        // events.k8s.io limits notes to 1024 bytes.
        let mut note = note;
        if note.len() > 1024 {
            let end = (0..=1021)
                .rev()
                .find(|at| note.is_char_boundary(*at))
                .unwrap_or(0);
            note.truncate(end);
            note.push_str("...");
        }
        let event = Event {
            type_,
            reason: reason.to_owned(),
            note: Some(note),
            action: action.to_owned(),
            secondary: None,
        };
        // A failure to store an event must not fail the reconcile that it reports.
        if let Err(source) = self.publisher.publish(&event, about).await {
            debug!("event {reason} was not stored: {source}");
        }
    }
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Recorder")
    }
}
