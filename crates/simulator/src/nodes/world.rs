//! What is in the API server, and what time it is.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::object::{
    self, CLAIM, DAEMON_SET, DEPLOYMENT, JOB, POD, REPLICA_SET, STATEFUL_SET, is_controlled_by,
    text, uid,
};
use super::{Faults, Options};
use crate::json::{Error, Json};

/// The kinds whose changes matter.
pub(super) const WATCHED: [(&str, &str); 10] = [
    ("", "Pod"),
    ("", "Node"),
    ("", "Secret"),
    ("", "ConfigMap"),
    ("", "PersistentVolumeClaim"),
    ("apps", "Deployment"),
    ("apps", "ReplicaSet"),
    ("apps", "StatefulSet"),
    ("apps", "DaemonSet"),
    ("batch", "Job"),
];

/// Namespace and name of a Secret or ConfigMap, with its keys.
type Keys = BTreeMap<(String, String), BTreeSet<String>>;

/// What is in the API server, by kind.
#[derive(Debug, Default)]
pub(super) struct World {
    pub(super) nodes: Vec<Value>,
    pub(super) pods: Vec<Value>,
    pub(super) claims: Vec<Value>,
    pub(super) deployments: Vec<Value>,
    pub(super) replica_sets: Vec<Value>,
    pub(super) stateful_sets: Vec<Value>,
    pub(super) daemon_sets: Vec<Value>,
    pub(super) jobs: Vec<Value>,
    pub(super) secrets: Keys,
    pub(super) config_maps: Keys,
}

impl World {
    pub(super) async fn read(client: &Json) -> Result<Self, Error> {
        let list = |kind: object::Kind| async move { client.list(&kind.everywhere()).await };
        Ok(Self {
            nodes: client.list("/api/v1/nodes").await?,
            // The owners first: a Pod whose owner is not in the lists is none of ours.
            deployments: list(DEPLOYMENT).await?,
            replica_sets: list(REPLICA_SET).await?,
            stateful_sets: list(STATEFUL_SET).await?,
            daemon_sets: list(DAEMON_SET).await?,
            jobs: list(JOB).await?,
            pods: list(POD).await?,
            claims: list(CLAIM).await?,
            secrets: keys(&client.list("/api/v1/secrets").await?),
            config_maps: keys(&client.list("/api/v1/configmaps").await?),
        })
    }

    /// Whether there is an object with this uid of which times are kept.
    pub(super) fn has(&self, of: &str) -> bool {
        self.pods.iter().chain(&self.jobs).any(|it| uid(it) == of)
    }

    /// The Pods of a controller.
    pub(super) fn pods_of<'a>(&'a self, owner: &'a Value) -> impl Iterator<Item = &'a Value> {
        self.pods.iter().filter(|pod| is_controlled_by(pod, owner))
    }
}

fn keys(objects: &[Value]) -> Keys {
    let keys = |object: &Value| {
        let data = ["data", "binaryData"].map(|field| object[field].as_object());
        let names = data.into_iter().flatten().flat_map(|data| data.keys());
        let metadata = &object["metadata"];
        let name = [&metadata["namespace"], &metadata["name"]].map(|it| text(it).to_owned());
        (name.into(), names.cloned().collect())
    };
    objects.iter().map(keys).collect()
}

/// The time, and since when what is the case.
pub(super) struct Now<'a> {
    pub(super) options: &'a Options,
    at: Instant,
    seen: &'a mut HashMap<(String, &'static str), Instant>,
    wake: Option<Duration>,
}

impl<'a> Now<'a> {
    pub(super) fn new(
        options: &'a Options,
        seen: &'a mut HashMap<(String, &'static str), Instant>,
    ) -> Self {
        Self {
            options,
            at: Instant::now(),
            seen,
            wake: None,
        }
    }

    pub(super) fn faults(&self) -> &Faults {
        &self.options.faults
    }

    /// Whether `what` has been the case for an object for this time. The first question starts it.
    pub(super) fn is_past(&mut self, object: &Value, what: &'static str, time: Duration) -> bool {
        let since = self
            .seen
            .entry((uid(object).to_owned(), what))
            .or_insert(self.at);
        let passed = self.at.duration_since(*since);
        if passed >= time {
            return true;
        }
        let left = time - passed;
        self.wake = Some(self.wake.map_or(left, |wake| wake.min(left)));
        false
    }

    /// `what` is no longer the case.
    pub(super) fn end(&mut self, object: &Value, what: &'static str) {
        self.seen.remove(&(uid(object).to_owned(), what));
    }

    /// When something is to be done by the clock alone.
    pub(super) fn wake(&self) -> Option<Duration> {
        self.wake
    }
}
