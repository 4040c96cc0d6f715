//! The objects of a cluster reach the state of its topology, in the order of the upgrade, also when the controller is
//! cut off between any two of them; surplus objects are deleted, and no template with a reference is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::core::v1beta2::{
    Cluster, ClusterClass, MachineDeployment, MachineHealthCheck, MachineSpec,
};
use api::kube::ResourceExt;
use api::version::Version;
use converging::System;
use proptest::prelude::*;
use proptest::sample::subsequence;
use serde::de::DeserializeOwned;
use topology::desired::{Desired, Input, Templates, desired, key};
use topology::upgrade::{self, decide};

use super::super::{needed_templates, surplus_checks, surplus_deployments};
use super::*;
use crate::managed::current::topology_name;

/// Group, kind and name.
type Key = (String, String, String);

const INFRA: &str = "infrastructure.cluster.x-k8s.io/v1beta2";
const PLANE: &str = "controlplane.cluster.x-k8s.io/v1beta2";
const BOOT: &str = "bootstrap.cluster.x-k8s.io/v1beta2";
const VERSIONS: [&str; 4] = ["v1.31.0", "v1.32.0", "v1.33.0", "v1.34.0"];

/// The objects of a Cluster as the API server keeps them, and the machines.
#[derive(Clone, Debug)]
struct Managed {
    cluster: Cluster,
    objects: BTreeMap<Key, Value>,
    /// The version of the machines of the control plane.
    running: Option<String>,
    /// The version of the machines of each MachineDeployment.
    workers: BTreeMap<String, String>,
    /// The templates of former MachineSets.
    former: BTreeMap<String, Vec<MachineSpec>>,
    concurrency: usize,
}

#[derive(Debug)]
enum Step {
    Put(Value),
    Delete(Key),
}

fn template(version: &str, kind: &str) -> Value {
    json!({ "templateRef": { "apiVersion": version, "kind": kind, "name": "small" } })
}

/// A class whose machines have another template for each version.
fn class() -> ClusterClass {
    let mut plane = template(PLANE, "KubeadmControlPlaneTemplate");
    plane["machineInfrastructure"] = template(INFRA, "OpenStackMachineTemplate");
    plane["healthCheck"] = json!({ "checks": { "nodeStartupTimeoutSeconds": 900 } });
    let patch = |place: &str, of: Value| {
        let value = format!("{{{{ .builtin.{place}.version }}}}");
        json!({
            "selector": { "apiVersion": INFRA, "kind": "OpenStackMachineTemplate", "matchResources": of },
            "jsonPatches": [{ "op": "add", "path": "/spec/template/spec/image", "valueFrom": { "template": value } }],
        })
    };
    serde_json::from_value(json!({
        "metadata": { "name": "small", "namespace": "default" },
        "spec": {
            "infrastructure": template(INFRA, "OpenStackClusterTemplate"),
            "controlPlane": plane,
            "workers": { "machineDeployments": [{
                "class": "worker",
                "bootstrap": template(BOOT, "KubeadmConfigTemplate"),
                "infrastructure": template(INFRA, "OpenStackMachineTemplate"),
                "healthCheck": { "checks": { "nodeStartupTimeoutSeconds": 600 } },
            }] },
            "patches": [{ "name": "image", "definitions": [
                patch("machineDeployment", json!({ "machineDeploymentClass": { "names": ["*"] } })),
                patch("controlPlane", json!({ "controlPlane": true })),
            ] }],
        },
    }))
    .unwrap()
}

fn templates() -> Templates {
    let body = |kind: &str| match kind {
        "KubeadmControlPlaneTemplate" => json!({ "spec": { "kubeadmConfigSpec": {} } }),
        "OpenStackClusterTemplate" => json!({ "spec": { "identityRef": { "name": "s" } } }),
        _ => json!({ "spec": { "flavor": "m1" } }),
    };
    let class = class();
    let all = class.templates().into_iter();
    let named = all.map(|(_, reference)| {
        let template = json!({
            "apiVersion": reference.api_version, "kind": reference.kind,
            "metadata": { "name": reference.name }, "spec": { "template": body(&reference.kind) },
        });
        (key(reference), template)
    });
    named.collect()
}

fn key_of(object: &Value) -> Key {
    let reference = reference(object);
    (reference.api_group, reference.kind, reference.name)
}

fn version(text: &str) -> Version {
    text.parse().unwrap()
}

impl Managed {
    fn all<K: DeserializeOwned>(&self, kind: &str) -> Vec<Arc<K>> {
        let all = self
            .objects
            .iter()
            .filter(|((_, known, _), _)| known == kind);
        let decoded = all.map(|(_, object)| serde_json::from_value(object.clone()).unwrap());
        decoded.map(Arc::new).collect()
    }

    fn plane(&self) -> Option<&Value> {
        let mut all = self.objects.iter();
        let found = all.find(|((_, kind, _), _)| kind == "KubeadmControlPlane");
        found.map(|(_, object)| object)
    }

    fn deployments(&self) -> Vec<Arc<MachineDeployment>> {
        self.all("MachineDeployment")
    }

    fn decisions(&self) -> Decisions {
        let plane = self.plane().map(|plane| upgrade::Plane {
            kind: "KubeadmControlPlane".to_owned(),
            version: plane["spec"]["version"].as_str().unwrap().to_owned(),
            running: self.running.clone(),
        });
        let deployments = self.deployments();
        let known = deployments.iter().map(|it| {
            let version = it.spec.template.spec.version.clone().unwrap();
            let machines = self.workers.get(&it.name_any());
            upgrade::Deployment {
                topology_name: topology_name(it).to_owned(),
                name: it.name_any(),
                upgrading: machines.is_some_and(|machines| *machines != version),
                version,
            }
        });
        let (known, topology) = (
            known.collect::<Vec<_>>(),
            self.cluster.spec.topology.as_ref(),
        );
        let listed = VERSIONS.map(str::to_owned);
        decide(
            topology.unwrap(),
            Some(&listed),
            plane.as_ref(),
            &known,
            self.concurrency,
        )
        .unwrap()
    }

    fn desired(&self, decisions: &Decisions) -> Desired {
        let deployments = self.deployments();
        let names = deployments
            .iter()
            .map(|it| (topology_name(it).to_owned(), it.name_any()));
        let mut wanted = desired(&Input {
            cluster: &self.cluster,
            class: &class(),
            topology: self.cluster.spec.topology.as_ref().unwrap(),
            templates: &templates(),
            deployments: &names.collect(),
            decisions,
            older_plane: false,
        })
        .unwrap();
        wanted.refer();
        wanted
    }

    /// The templates to which an object refers.
    fn used(&self) -> BTreeSet<Key> {
        let deployments = self.deployments();
        let specs = deployments.iter().map(|it| &it.spec.template.spec);
        let specs = specs.chain(self.former.values().flatten());
        let of_machines = specs.flat_map(|spec| {
            let bootstrap = spec.bootstrap.config_ref.iter();
            bootstrap.chain([&spec.infrastructure_ref]).cloned()
        });
        let of_plane = self.plane().map(|plane| {
            let found = &plane["spec"]["machineTemplate"]["spec"]["infrastructureRef"];
            let text = |field: &str| found[field].as_str().unwrap().to_owned();
            (text("apiGroup"), text("kind"), text("name"))
        });
        let of_machines = of_machines.map(|it| (it.api_group, it.kind, it.name));
        of_machines.chain(of_plane).collect()
    }

    fn put(&mut self, object: Value) {
        let key = key_of(&object);
        let known = self.objects.get(&key).cloned();
        match key.1.as_str() {
            kind if kind.ends_with("Template") => {
                assert_eq!(known, None, "templates are immutable")
            }
            "KubeadmControlPlane" => {
                assert!(
                    known.is_some() || self.plane().is_none(),
                    "a second control plane"
                );
                if let (Some(running), Some(known)) = (&self.running, known) {
                    let next = version(object["spec"]["version"].as_str().unwrap());
                    let running = version(running);
                    assert!(
                        next.major_minor().1 <= running.major_minor().1 + 1,
                        "kubeadm upgrades by one"
                    );
                    let before = version(known["spec"]["version"].as_str().unwrap());
                    assert!(next == before || before == running, "it is being upgraded");
                }
            }
            "MachineDeployment" => {
                let new: MachineDeployment = serde_json::from_value(object.clone()).unwrap();
                let name = topology_name(&new).to_owned();
                let mut others = self.deployments().into_iter();
                let is_second =
                    others.any(|it| topology_name(&it) == name && it.name_any() != key.2);
                assert!(!is_second, "a second MachineDeployment {name}");
                let plane = self.running.as_deref().unwrap_or(VERSIONS[3]);
                let asked = version(new.spec.template.spec.version.as_deref().unwrap());
                assert!(asked <= version(plane), "newer than the control plane");
                if let Some(known) = known {
                    let known: MachineDeployment = serde_json::from_value(known).unwrap();
                    self.former
                        .entry(key.2.clone())
                        .or_default()
                        .push(known.spec.template.spec);
                }
            }
            _ => {}
        }
        self.objects.insert(key, object);
    }

    fn delete(&mut self, key: &Key) {
        assert!(!self.used().contains(key), "{key:?} is in use");
        self.objects.remove(key).unwrap();
        self.workers.remove(&key.2);
        self.former.remove(&key.2);
    }
}

impl System for Managed {
    type Step = Step;
    type State = (
        BTreeMap<Key, Value>,
        Option<String>,
        BTreeMap<String, String>,
    );

    /// The writes in the order of `apply`.
    fn plan(&self) -> Vec<Step> {
        let decisions = self.decisions();
        let wanted = self.desired(&decisions);
        let mut objects = vec![&wanted.infrastructure];
        if !leaves_plane(&decisions, self.plane().is_some()) {
            objects.extend(&wanted.control_plane_machines);
            objects.push(&wanted.control_plane);
        }
        objects.extend(&wanted.control_plane_check);
        for it in wanted
            .deployments
            .iter()
            .filter(|it| !leaves(&decisions, it))
        {
            objects.extend([&it.bootstrap, &it.machines, &it.object]);
            objects.extend(&it.check);
        }
        let differs = |object: &&Value| self.objects.get(&key_of(object)) != Some(*object);
        let puts = objects.into_iter().filter(differs).cloned().map(Step::Put);
        let core = |kind: &str, name: String| (api::core::GROUP.to_owned(), kind.to_owned(), name);
        let checks: Vec<Arc<MachineHealthCheck>> = self.all("MachineHealthCheck");
        let deployments = self.deployments();
        let checks = surplus_checks(&checks, &wanted).into_iter();
        let checks: Vec<_> = checks
            .map(|it| core("MachineHealthCheck", it.name_any()))
            .collect();
        let gone = surplus_deployments(&deployments, &wanted).into_iter();
        let gone = gone.map(|it| core("MachineDeployment", it.name_any()));
        let needed = needed_templates(self.used(), &wanted);
        let is_left = |key: &&Key| key.1.ends_with("Template") && !needed.contains(*key);
        let templates = self.objects.keys().filter(is_left).cloned();
        let deletions = checks.into_iter().chain(gone).chain(templates);
        puts.chain(deletions.map(Step::Delete)).collect()
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Put(object) => self.put(object),
            Step::Delete(key) => self.delete(&key),
        }
    }

    /// The machines of the control plane, and then of one MachineDeployment, are replaced.
    fn pass(&mut self) -> bool {
        let plane = self
            .plane()
            .map(|plane| plane["spec"]["version"].as_str().unwrap().to_owned());
        if self.running != plane {
            self.running = plane;
            return true;
        }
        for deployment in self.deployments() {
            let name = deployment.name_any();
            let version = deployment.spec.template.spec.version.clone().unwrap();
            let has_former = self.former.remove(&name).is_some();
            let before = self.workers.insert(name, version.clone());
            if has_former || before != Some(version) {
                return true;
            }
        }
        false
    }

    fn state(&self) -> Self::State {
        (
            self.objects.clone(),
            self.running.clone(),
            self.workers.clone(),
        )
    }
}

/// A topology of this version with some MachineDeployments.
fn cluster(version: &str, workers: &[(&str, bool)]) -> Cluster {
    let workers = workers.iter().map(|(name, is_checked)| {
        json!({ "class": "worker", "name": name, "replicas": 2, "healthCheck": { "enabled": is_checked } })
    });
    serde_json::from_value(json!({
        "metadata": { "name": "demo", "namespace": "default", "uid": "uid-1" },
        "spec": { "topology": {
            "classRef": { "name": "small" }, "version": version, "controlPlane": { "replicas": 3 },
            "workers": { "machineDeployments": workers.collect::<Vec<_>>() },
        } },
    }))
    .unwrap()
}

fn workers() -> impl Strategy<Value = Vec<(&'static str, bool)>> {
    let all = ["md-0", "md-1", "md-2"]
        .map(|name| [(name, true), (name, false)])
        .concat();
    subsequence(all, 0..=4).prop_map(|mut some| {
        some.dedup_by_key(|(name, _)| *name);
        some
    })
}

/// All machines have the version of the topology, and the objects are those of the topology alone.
fn check_end(end: &Managed) {
    let topology = end.cluster.spec.topology.as_ref().unwrap();
    assert_eq!(end.running.as_ref(), Some(&topology.version));
    let wanted = end.desired(&end.decisions());
    let mut names: BTreeSet<Key> = [&wanted.infrastructure, &wanted.control_plane]
        .map(key_of)
        .into();
    names.extend(wanted.control_plane_machines.iter().map(key_of));
    names.extend(wanted.control_plane_check.iter().map(key_of));
    for it in &wanted.deployments {
        names.extend([&it.bootstrap, &it.machines, &it.object].map(key_of));
        names.extend(it.check.iter().map(key_of));
    }
    assert_eq!(end.objects.keys().cloned().collect::<BTreeSet<_>>(), names);
    assert!(end.workers.values().all(|it| *it == topology.version));
    assert_eq!(end.workers.len(), wanted.deployments.len());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn from_any_state_and_each_cut_the_objects_come_to_be_those_of_the_topology(
        (first, second) in (workers(), workers()),
        (low, high) in (0..4_usize, 0..4_usize),
        begun in 0..40_usize,
        concurrency in 1..3_usize,
        cuts in proptest::collection::vec(any::<usize>(), 4),
    ) {
        let mut managed = Managed {
            cluster: cluster(VERSIONS[low.min(high)], &first),
            objects: BTreeMap::new(),
            running: None,
            workers: BTreeMap::new(),
            former: BTreeMap::new(),
            concurrency,
        };
        check_end(&converging::check_at(&managed, &cuts));
        // Another version and other workers, for a controller that was cut off.
        converging::cut_off(&mut managed, begun);
        managed.cluster = cluster(VERSIONS[low.max(high)], &second);
        check_end(&converging::check_at(&managed, &cuts));
    }
}
