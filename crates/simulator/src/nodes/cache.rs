//! Objects in the API server, and the time.

use std::cell::{OnceCell, RefCell};
use std::collections::btree_map::Values;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use kube::api::DynamicObject;
use kube::runtime::watcher;
use serde_json::Value;
use tokio::time::Instant;

use super::object::{Write, hash as hash_of, items, text, uid};
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
    /// Names by the uid of the controller, made when they are needed after a change.
    controlled: OnceCell<HashMap<String, Vec<Name>>>,
}

impl Objects {
    pub(super) fn iter(&self) -> Values<'_, Name, Value> {
        self.all.values()
    }

    pub(super) fn get(&self, name: &Name) -> Option<&Value> {
        self.all.get(name)
    }

    /// Returns the objects with this controller.
    pub(super) fn controlled_by(&self, owner: &Value) -> impl Iterator<Item = &Value> {
        let controlled = self.controlled.get_or_init(|| {
            let mut controlled: HashMap<String, Vec<Name>> = HashMap::new();
            for (name, object) in &self.all {
                let owners = items(&object["metadata"]["ownerReferences"]);
                let controllers = owners.filter(|it| it["controller"] == true);
                for uid in controllers.filter_map(|it| it["uid"].as_str()) {
                    let of_uid = controlled.entry(uid.to_owned()).or_default();
                    of_uid.push(name.clone());
                }
            }
            controlled
        });
        let names = controlled.get(uid(owner)).into_iter().flatten();
        names.filter_map(|name| self.all.get(name))
    }

    /// Stores the object as last read or written, and returns true; older states and the same one are dropped.
    fn put(&mut self, object: Value) -> bool {
        let name = name(&object["metadata"]);
        let newer = |there: &Value| version(&object) > version(there);
        let is_new = self.all.get(&name).is_none_or(newer);
        if is_new {
            self.controlled.take();
            self.all.insert(name, object);
        }
        is_new
    }

    /// Removes an object; returns true if it was known.
    fn remove(&mut self, uid: &str) -> bool {
        let before = self.all.len();
        self.controlled.take();
        self.all.retain(|_, it| it["metadata"]["uid"] != uid);
        self.all.len() < before
    }

    /// Applies an event; returns true if the known objects differ afterwards.
    fn report(&mut self, event: watcher::Event<DynamicObject>) -> bool {
        let value = |mut object: DynamicObject| {
            // Read by none of the controllers, and larger than the rest.
            object.metadata.managed_fields = None;
            serde_json::to_value(object).unwrap_or_default()
        };
        match event {
            watcher::Event::Apply(object) => return self.put(value(object)),
            watcher::Event::Delete(object) => {
                return self.remove(object.metadata.uid.as_deref().unwrap_or_default());
            }
            watcher::Event::Init => self.listed.clear(),
            watcher::Event::InitApply(object) => {
                let object = value(object);
                self.listed.insert(name(&object["metadata"]), object);
            }
            watcher::Event::InitDone => {
                self.controlled.take();
                self.all = std::mem::take(&mut self.listed);
                self.is_complete = true;
                return true;
            }
        }
        false
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
    /// Hashes of templates, by uid and generation of the workload.
    hashes: RefCell<HashMap<(String, u64), String>>,
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

    /// Applies the report of a watch; returns true if anything is new. The report of a write is not: its answer was
    /// applied before.
    pub(super) fn report(&mut self, (kind, event): Seen) -> bool {
        self.of_kind(kind).is_some_and(|it| it.report(event))
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
    pub(super) fn pods_of(&self, owner: &Value) -> impl Iterator<Item = &Value> {
        self.pods.controlled_by(owner)
    }

    /// Returns the hash of the template of a workload, of which each generation is hashed once.
    pub(super) fn hash(&self, workload: &Value) -> String {
        let generation = workload["metadata"]["generation"].as_u64();
        let mut known = self.hashes.borrow_mut();
        let of = (uid(workload).to_owned(), generation.unwrap_or_default());
        let hash = known.entry(of);
        hash.or_insert_with(|| hash_of(&workload["spec"]["template"]))
            .clone()
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
