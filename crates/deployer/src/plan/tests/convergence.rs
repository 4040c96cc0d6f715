//! A cloud comes to be what its parameters say from any state of its namespace, also when the controller is cut off between
//! any two requests; what belongs to others and what cannot be made again stays.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use converging::System;
use proptest::sample::Index;

use super::*;
use crate::accounts::Written;
use crate::desired::CONFIGURES;

/// A namespace as the API server keeps it, in which programs run at once and whose accounts are written.
#[derive(Clone)]
struct Namespace {
    graph: Arc<Graph>,
    objects: BTreeMap<Reference, Json>,
    /// What counts the seconds.
    now: u32,
    next: u32,
}

/// A request as the controller of OpenStack objects sends it.
#[derive(Debug)]
enum Step {
    Create(Reference),
    Apply(Reference),
    Delete(Reference),
}

impl Namespace {
    fn list(&self) -> Vec<Json> {
        self.objects.values().cloned().collect()
    }

    fn progress(&self) -> Progress {
        let objects = self.list();
        let plan = plan(&self.graph, &objects);
        if !plan.conflicts.is_empty() {
            return Progress::default();
        }
        let steps = self.graph.steps.iter();
        let written = steps.filter(|step| step.accounts.is_some());
        let written = written.map(|step| (step.name.clone(), Written::All));
        progress(&self.graph, &plan, &objects, &[], &written.collect())
    }

    fn desired(&self, reference: &Reference) -> Json {
        let mut all = self.graph.objects().map(|(_, object)| object);
        all.find(|it| it.reference() == reference)
            .unwrap()
            .exposed()
    }

    fn is_going(&self, reference: &Reference) -> bool {
        let there = self.objects.get(reference);
        there.is_some_and(|it| it["metadata"]["deletionTimestamp"].is_string())
    }

    fn create(&mut self, reference: &Reference) {
        assert!(
            !self.objects.contains_key(reference),
            "{reference} is created twice"
        );
        let mut object = self.desired(reference);
        with_defaults(&mut object);
        self.next += 1;
        let owned = fields(&object);
        object["metadata"]["uid"] = format!("uid-{}", self.next).into();
        object["metadata"]["creationTimestamp"] =
            format!("2026-01-01T00:00:{:02}Z", self.now).into();
        object["metadata"]["generation"] = 1.into();
        object["metadata"]["managedFields"] = entry("Update", owned);
        self.objects.insert(reference.clone(), object);
    }

    /// Server-side apply: the fields that the last request of this manager set, and this one does not, are removed.
    fn apply(&mut self, reference: &Reference) {
        let wanted = self.desired(reference);
        let there = self.objects.get_mut(reference).unwrap();
        let before = there.clone();
        let owned = there["metadata"]["managedFields"][0]["fieldsV1"].clone();
        release(there, &owned, &wanted);
        merge(there, &wanted);
        with_defaults(there);
        check_change(reference.kind, &before, there);
        if before["spec"] != there["spec"] {
            let generation = before["metadata"]["generation"].as_i64().unwrap();
            there["metadata"]["generation"] = (generation + 1).into();
        }
        there["metadata"]["managedFields"] = entry("Apply", fields(&wanted));
    }

    fn delete(&mut self, reference: &Reference) {
        assert!(
            !removal::is_data(reference),
            "{reference} cannot be made again"
        );
        let there = self.objects.get_mut(reference).unwrap();
        assert_eq!(
            label(there, UID),
            Some(self.graph.uid.as_str()),
            "{reference}"
        );
        there["metadata"]["deletionTimestamp"] = "2026-01-01T00:01:00Z".into();
    }
}

impl System for Namespace {
    type Step = Step;
    type State = BTreeMap<Reference, String>;

    fn plan(&self) -> Vec<Step> {
        let progress = self.progress();
        let actions = progress.actions.into_iter().map(|it| match it.verb {
            Verb::Create => Step::Create(it.object),
            Verb::Change => Step::Apply(it.object),
            // It is created when it is gone.
            Verb::Replace => Step::Delete(it.object),
        });
        let deletions = progress.deletions.into_iter().map(Step::Delete);
        let is_due = |step: &Step| !matches!(step, Step::Delete(it) if self.is_going(it));
        actions.chain(deletions).filter(is_due).collect()
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Create(reference) => self.create(&reference),
            Step::Apply(reference) => self.apply(&reference),
            Step::Delete(reference) => self.delete(&reference),
        }
    }

    fn pass(&mut self) -> bool {
        let before = self.objects.clone();
        self.now = (self.now + 1).min(59);
        let is_going = |it: &Json| it["metadata"]["deletionTimestamp"].is_string();
        self.objects.retain(|_, it| !is_going(it));
        for (reference, there) in &mut self.objects {
            let generation = there["metadata"]["generation"].clone();
            let replicas = there["spec"]["replicas"].clone();
            there["status"] = match reference.kind {
                ObjectKind::Job => json!({"conditions": [{"type": "Complete", "status": "True"}]}),
                ObjectKind::Deployment | ObjectKind::StatefulSet => json!({
                    "observedGeneration": generation, "replicas": replicas, "updatedReplicas": replicas,
                    "readyReplicas": replicas, "availableReplicas": replicas,
                }),
                _ => continue,
            };
        }
        self.objects != before
    }

    fn state(&self) -> Self::State {
        let content = |object: &Json| {
            let mut object = object.clone();
            let metadata = object["metadata"].as_object_mut().unwrap();
            metadata.retain(|name, _| ["name", "labels", "annotations"].contains(&name.as_str()));
            object["status"] = Json::Null;
            object.to_string()
        };
        let all = self.objects.iter();
        all.map(|(reference, object)| (reference.clone(), content(object)))
            .collect()
    }
}

/// Some of the fields that the API server adds.
fn with_defaults(object: &mut Json) {
    if let Some(pod) = object.pointer_mut("/spec/template/spec") {
        pod["dnsPolicy"] = "ClusterFirst".into();
        pod["containers"][0]["terminationMessagePath"] = "/dev/termination-log".into();
    }
    if object["kind"] == "StatefulSet" && object["spec"]["podManagementPolicy"].is_null() {
        object["spec"]["podManagementPolicy"] = "OrderedReady".into();
    }
    if object["kind"] == "Service" && object["spec"]["clusterIP"].is_null() {
        object["spec"]["clusterIP"] = "10.96.0.7".into();
    }
}

fn entry(operation: &str, fields: Json) -> Json {
    json!([{"manager": FIELD_MANAGER, "operation": operation, "fieldsV1": fields}])
}

fn key_of(item: &Json) -> Option<(&'static str, &Json)> {
    let names = ["mountPath", "name"].into_iter();
    let mut found = names.filter_map(|name| Some((name, item.get(name)?)));
    found.next()
}

fn is_keyed(items: &[Json]) -> bool {
    !items.is_empty() && items.iter().all(|item| key_of(item).is_some())
}

/// The fields of an object, as `managedFields` names them. Lists without keys are one field.
fn fields(value: &Json) -> Json {
    let all: serde_json::Map<String, Json> = match value {
        Json::Object(members) => {
            let named = members.iter();
            named
                .map(|(name, value)| (format!("f:{name}"), fields(value)))
                .collect()
        }
        Json::Array(items) if is_keyed(items) => {
            let keyed = items.iter().filter_map(|item| {
                let (name, key) = key_of(item)?;
                let mut below = fields(item);
                below["."] = json!({});
                Some((format!("k:{}", json!({name: key})), below))
            });
            keyed.collect()
        }
        _ => serde_json::Map::new(),
    };
    Json::Object(all)
}

/// Removes what is owned and not wanted.
fn release(there: &mut Json, owned: &Json, wanted: &Json) {
    for (field, below) in owned.as_object().unwrap() {
        if let Some(name) = field.strip_prefix("f:") {
            let Some(known) = there.get_mut(name) else {
                continue;
            };
            match wanted.get(name) {
                Some(wanted) => release(known, below, wanted),
                None => drop(there.as_object_mut().unwrap().remove(name)),
            }
        } else if let Some(keys) = field.strip_prefix("k:") {
            let keys: Json = serde_json::from_str(keys).unwrap();
            let is_same = |item: &Json| {
                let mut keys = keys.as_object().unwrap().iter();
                keys.all(|(name, key)| item.get(name) == Some(key))
            };
            let wanted = wanted
                .as_array()
                .and_then(|all| all.iter().find(|it| is_same(it)));
            let items = there.as_array_mut().unwrap();
            match (wanted, items.iter().position(is_same)) {
                (Some(wanted), Some(at)) => release(&mut items[at], below, wanted),
                (None, Some(at)) => drop(items.remove(at)),
                (_, None) => {}
            }
        }
    }
}

fn merge(there: &mut Json, wanted: &Json) {
    match (there, wanted) {
        (Json::Object(there), Json::Object(wanted)) => {
            for (name, value) in wanted {
                merge(there.entry(name.clone()).or_insert(Json::Null), value);
            }
        }
        (Json::Array(there), Json::Array(wanted)) if is_keyed(wanted) => {
            for item in wanted {
                match there.iter_mut().find(|it| key_of(it) == key_of(item)) {
                    Some(known) => merge(known, item),
                    None => there.push(item.clone()),
                }
            }
        }
        (there, wanted) => *there = wanted.clone(),
    }
}

/// Rejects what the validation of the API server rejects.
fn check_change(kind: ObjectKind, before: &Json, after: &Json) {
    let same = |path: &str| {
        assert_eq!(
            before.pointer(path),
            after.pointer(path),
            "{path} is immutable"
        )
    };
    match kind {
        ObjectKind::ConfigMap | ObjectKind::Secret => {
            same("/type");
            if before["immutable"] == true {
                same("/data");
                same("/immutable");
            }
        }
        ObjectKind::StatefulSet => [
            "/spec/selector",
            "/spec/serviceName",
            "/spec/podManagementPolicy",
            "/spec/volumeClaimTemplates",
        ]
        .map(same)
        .into_iter()
        .for_each(drop),
        ObjectKind::Deployment | ObjectKind::DaemonSet => same("/spec/selector"),
        ObjectKind::Service => same("/spec/clusterIP"),
        ObjectKind::Job | ObjectKind::PersistentVolumeClaim => same("/spec"),
        ObjectKind::NetworkPolicy => {}
    }
}

/// A ConfigMap of Kubernetes in each namespace.
const THEIRS: &str = "kube-root-ca.crt";

/// What a person does in the namespace.
#[derive(Clone, Copy, Debug)]
enum Deed {
    Delete,
    Scale,
    Label,
    AddField,
}

impl Namespace {
    fn suffer(&mut self, deed: Deed, which: Index) {
        let kinds = |it: &&Reference| match deed {
            // Of what is there for others, Kubernetes makes another one.
            Deed::Delete => !removal::is_data(it) && it.name != THEIRS,
            Deed::Scale | Deed::AddField => {
                matches!(it.kind, ObjectKind::Deployment | ObjectKind::StatefulSet)
            }
            Deed::Label => true,
        };
        let all: Vec<Reference> = self.objects.keys().filter(kinds).cloned().collect();
        if all.is_empty() {
            return;
        }
        let reference = which.get(&all);
        let there = self.objects.get_mut(reference).unwrap();
        match deed {
            Deed::Delete => drop(self.objects.remove(reference)),
            Deed::Scale => there["spec"]["replicas"] = 0.into(),
            Deed::Label => there["metadata"]["labels"]["of-a-person"] = "x".into(),
            Deed::AddField => there["spec"]["template"]["spec"]["priorityClassName"] = "x".into(),
        }
    }
}

fn deeds() -> impl Strategy<Value = Vec<(Deed, Index)>> {
    let deed = prop::sample::select(vec![
        Deed::Delete,
        Deed::Delete,
        Deed::Scale,
        Deed::Label,
        Deed::AddField,
    ]);
    prop::collection::vec((deed, any::<Index>()), 0..5)
}

/// Everything is ready, nothing is missing, and what is there besides is data, of others, or one former content of a
/// configuration file.
fn check_end(world: &Namespace) {
    let progress = world.progress();
    assert!(
        progress.is_ready() && !progress.steps.is_empty(),
        "{progress:#?}"
    );
    let desired: BTreeSet<_> = world
        .graph
        .objects()
        .map(|(_, it)| it.reference().clone())
        .collect();
    let missing: Vec<_> = desired
        .iter()
        .filter(|it| !world.objects.contains_key(it))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
    let mut files = BTreeSet::new();
    for (reference, object) in world.objects.iter().filter(|(it, _)| !desired.contains(it)) {
        let is_ours = label(object, UID) == Some(&world.graph.uid);
        if !is_ours || removal::is_data(reference) {
            continue;
        }
        let file = label(object, CONFIGURES).map(str::to_owned);
        assert!(
            file.is_some() && files.insert(file),
            "{reference} is left over"
        );
    }
    let theirs = Reference {
        kind: ObjectKind::ConfigMap,
        name: THEIRS.to_owned(),
    };
    assert!(world.objects.contains_key(&theirs));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4))]

    #[test]
    fn from_any_state_and_each_cut_a_cloud_comes_to_be_what_its_parameters_say(
        first in specs(),
        second in specs(),
        begun in 0..150_usize,
        deeds in deeds(),
        cuts in prop::collection::vec(any::<usize>(), 2),
    ) {
        let theirs = json!({"kind": "ConfigMap", "metadata": {"name": THEIRS}});
        let mut world = Namespace {
            graph: Arc::new(graph(first)),
            objects: [(Reference::from_object(&theirs).unwrap(), theirs)].into(),
            now: 0,
            next: 0,
        };
        check_end(&converging::check_at(&world, &cuts));
        // A controller that was cut off, a person, and other parameters.
        converging::cut_off(&mut world, begun);
        for (deed, which) in deeds {
            world.suffer(deed, which);
        }
        world.graph = Arc::new(graph(second));
        check_end(&converging::check_at(&world, &cuts));
    }
}
