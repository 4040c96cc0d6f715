//! Objects in the API server, and the time.

use std::collections::btree_map::Values;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use kube::api::DynamicObject;
use kube::runtime::watcher;
use serde_json::Value;
use tokio::time::Instant;

use super::object::{Write, is_controlled_by, text, uid};
use super::{Faults, Options};

/// Watched kinds.
pub(super) const WATCHED: [(&str, &str); 12] = [
    ("", "Pod"),
    ("", "Node"),
    ("", "Secret"),
    ("", "ConfigMap"),
    ("", "PersistentVolumeClaim"),
    ("storage.k8s.io", "StorageClass"),
    ("apps", "Deployment"),
    ("apps", "ReplicaSet"),
    ("apps", "StatefulSet"),
    ("apps", "DaemonSet"),
    ("batch", "Job"),
    ("policy", "PodDisruptionBudget"),
];

/// Namespace and name.
type Name = (String, String);

/// Event of a watch, with the kind.
pub(super) type Seen = (&'static str, watcher::Event<DynamicObject>);

/// Objects of a kind, in the order of namespaces and names.
#[derive(Debug, Default)]
pub(super) struct Objects {
    all: BTreeMap<Name, Value>,
    /// Objects of an incomplete list.
    listed: BTreeMap<Name, Value>,
    is_complete: bool,
}

impl Objects {
    pub(super) fn iter(&self) -> Values<'_, Name, Value> {
        self.all.values()
    }

    pub(super) fn get(&self, name: &Name) -> Option<&Value> {
        self.all.get(name)
    }

    /// Stores the object as last read or written; older states are dropped.
    fn put(&mut self, object: Value) {
        let name = name(&object["metadata"]);
        let newer = |there: &Value| version(&object) > version(there);
        if self.all.get(&name).is_none_or(newer) {
            self.all.insert(name, object);
        }
    }

    fn remove(&mut self, uid: &str) {
        self.all.retain(|_, it| it["metadata"]["uid"] != uid);
    }

    fn report(&mut self, event: watcher::Event<DynamicObject>) {
        let value = |object: DynamicObject| serde_json::to_value(object).unwrap_or_default();
        match event {
            watcher::Event::Apply(object) => self.put(value(object)),
            watcher::Event::Delete(object) => {
                self.remove(object.metadata.uid.as_deref().unwrap_or_default());
            }
            watcher::Event::Init => self.listed.clear(),
            watcher::Event::InitApply(object) => {
                let object = value(object);
                self.listed.insert(name(&object["metadata"]), object);
            }
            watcher::Event::InitDone => {
                self.all = std::mem::take(&mut self.listed);
                self.is_complete = true;
            }
        }
    }
}

impl<'a> IntoIterator for &'a Objects {
    type Item = &'a Value;
    type IntoIter = Values<'a, Name, Value>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

fn name(metadata: &Value) -> Name {
    [&metadata["namespace"], &metadata["name"]]
        .map(|it| text(it).to_owned())
        .into()
}

/// Returns the revision of an object, as counted by the embedded API server.
fn version(object: &Value) -> u64 {
    let version = text(&object["metadata"]["resourceVersion"]);
    version.parse().unwrap_or_default()
}

/// Objects in the API server, by kind, as reported by watches and changed by later writes.
#[derive(Debug, Default)]
pub(super) struct ObjectCache {
    pub(super) nodes: Objects,
    pub(super) pods: Objects,
    pub(super) claims: Objects,
    pub(super) classes: Objects,
    pub(super) deployments: Objects,
    pub(super) replica_sets: Objects,
    pub(super) stateful_sets: Objects,
    pub(super) daemon_sets: Objects,
    pub(super) jobs: Objects,
    pub(super) secrets: Objects,
    pub(super) config_maps: Objects,
    pub(super) budgets: Objects,
}

impl ObjectCache {
    fn of_kind(&mut self, kind: &str) -> Option<&mut Objects> {
        Some(match kind {
            "Node" => &mut self.nodes,
            "Pod" => &mut self.pods,
            "PersistentVolumeClaim" => &mut self.claims,
            "StorageClass" => &mut self.classes,
            "Deployment" => &mut self.deployments,
            "ReplicaSet" => &mut self.replica_sets,
            "StatefulSet" => &mut self.stateful_sets,
            "DaemonSet" => &mut self.daemon_sets,
            "Job" => &mut self.jobs,
            "Secret" => &mut self.secrets,
            "ConfigMap" => &mut self.config_maps,
            "PodDisruptionBudget" => &mut self.budgets,
            _ => return None,
        })
    }

    /// Applies the report of a watch.
    pub(super) fn report(&mut self, (kind, event): Seen) {
        if let Some(objects) = self.of_kind(kind) {
            objects.report(event);
        }
    }

    /// True if every kind has been listed.
    pub(super) fn is_complete(&mut self) -> bool {
        let mut kinds = WATCHED.into_iter();
        kinds.all(|(_, kind)| self.of_kind(kind).is_some_and(|it| it.is_complete))
    }

    /// Applies the answer to a write, before a watch reports the change: nothing is written twice.
    pub(super) fn written(&mut self, write: &Write, answer: Value) {
        match write {
            Write::Create { collection, body } if collection.ends_with("/binding") => {
                if let Some(pod) = self.pods.all.get_mut(&name(&body["metadata"])) {
                    pod["spec"]["nodeName"] = body["target"]["name"].clone();
                }
            }
            Write::Delete { uid, grace, .. } => {
                let ends = answer["metadata"]["deletionTimestamp"].is_string();
                if ends && *grace != Some(0) {
                    if let Some(objects) = self.of_kind(text(&answer["kind"])) {
                        objects.put(answer);
                    }
                    return;
                }
                for (_, kind) in WATCHED {
                    if let Some(objects) = self.of_kind(kind) {
                        objects.remove(uid);
                    }
                }
            }
            Write::Create { .. } | Write::Patch { .. } => {
                if let Some(objects) = self.of_kind(text(&answer["kind"])) {
                    objects.put(answer);
                }
            }
        }
    }

    /// True if a Pod or Job with this uid exists: times are recorded for these alone.
    pub(super) fn has(&self, of: &str) -> bool {
        self.pods
            .iter()
            .chain(self.jobs.iter())
            .any(|it| uid(it) == of)
    }

    /// Returns the Pods of a controller.
    pub(super) fn pods_of<'a>(&'a self, owner: &'a Value) -> impl Iterator<Item = &'a Value> {
        self.pods.iter().filter(|pod| is_controlled_by(pod, owner))
    }
}

/// Time, and the start of each observed state.
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

    /// True if an object has been in the state `what` for this time. The first call starts the time.
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

    /// Records that `what` is no longer the case.
    pub(super) fn end(&mut self, object: &Value, what: &'static str) {
        self.seen.remove(&(uid(object).to_owned(), what));
    }

    /// Returns the time until the next work by the clock alone.
    pub(super) fn wake(&self) -> Option<Duration> {
        self.wake
    }
}
