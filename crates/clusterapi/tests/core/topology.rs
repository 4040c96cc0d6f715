//! Clusters that have a topology.

use std::collections::{BTreeMap, BTreeSet};

use api::core::v1beta2::{
    Cluster, ClusterClass, Machine, MachineDeployment, MachineHealthCheck, MachineSet,
};
use api::kube::ResourceExt;
use api::kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use testbed::{eventually, written_at_rest};

use crate::world::{NO_UPGRADE, NS, World, condition};

#[path = "topology/changes.rs"]
mod changes;

#[path = "topology/killing.rs"]
mod killing;

#[path = "topology/obstacles.rs"]
mod obstacles;

#[path = "topology/upgrades.rs"]
mod upgrades;

const INFRA: &str = "infrastructure.cluster.x-k8s.io";
const BOOT: &str = "bootstrap.cluster.x-k8s.io";
const PLANE: &str = "controlplane.cluster.x-k8s.io";
const OWNED: &str = "topology.cluster.x-k8s.io/owned";
const TEMPLATES: [&str; 2] = ["FakeMachineTemplate", "FakeConfigTemplate"];

fn template(group: &str, kind: &str, name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": format!("{group}/v1"), "kind": kind, "metadata": { "name": name, "namespace": NS },
        "spec": { "template": { "spec": spec } },
    })
}

/// The templates of the class `name`.
fn templates(name: &str) -> Vec<Value> {
    vec![
        template(
            INFRA,
            "FakeClusterTemplate",
            name,
            json!({ "region": name }),
        ),
        template(
            PLANE,
            "FakeControlPlaneTemplate",
            name,
            json!({ "words": "init" }),
        ),
        template(
            INFRA,
            "FakeMachineTemplate",
            &format!("{name}-plane"),
            json!({ "flavor": "none" }),
        ),
        template(
            INFRA,
            "FakeMachineTemplate",
            name,
            json!({ "flavor": "none" }),
        ),
        template(BOOT, "FakeConfigTemplate", name, json!({ "words": "join" })),
    ]
}

/// A class with one class of workers and a variable that patches the machines of all.
fn class(name: &str) -> Value {
    let reference = |group: &str, kind: &str, name: &str| json!({ "templateRef": { "apiVersion": format!("{group}/v1"), "kind": kind, "name": name } });
    let mut plane = reference(PLANE, "FakeControlPlaneTemplate", name);
    plane["machineInfrastructure"] =
        reference(INFRA, "FakeMachineTemplate", &format!("{name}-plane"));
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "ClusterClass",
        "metadata": { "name": name, "namespace": NS },
        "spec": {
            "infrastructure": reference(INFRA, "FakeClusterTemplate", name),
            "controlPlane": plane,
            "workers": { "machineDeployments": [{
                "class": "worker",
                "bootstrap": reference(BOOT, "FakeConfigTemplate", name),
                "infrastructure": reference(INFRA, "FakeMachineTemplate", name),
                "healthCheck": { "checks": { "nodeStartupTimeoutSeconds": 600 } },
            }] },
            "variables": [{ "name": "flavor", "required": true, "schema": { "openAPIV3Schema": {
                "type": "string", "default": "small",
            } } }],
            "patches": [{ "name": "flavor", "definitions": [{
                "selector": { "apiVersion": format!("{INFRA}/v1"), "kind": "FakeMachineTemplate", "matchResources": {
                    "controlPlane": true, "machineDeploymentClass": { "names": ["worker"] },
                } },
                "jsonPatches": [{
                    "op": "replace", "path": "/spec/template/spec/flavor", "valueFrom": { "variable": "flavor" },
                }],
            }] }],
            "kubernetesVersions": ["v1.33.1", "v1.34.1", "v1.34.2", "v1.35.0"],
        },
    })
}

/// The Cluster `demo` of a class with these numbers of workers.
fn cluster(class: &str, workers: &[(&str, i32)]) -> Value {
    let workers: Vec<_> = workers
        .iter()
        .map(|(name, replicas)| json!({ "class": "worker", "name": name, "replicas": replicas }))
        .collect();
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "metadata": { "name": "demo", "namespace": NS },
        "spec": { "topology": {
            "classRef": { "name": class }, "version": "v1.33.1",
            "controlPlane": { "replicas": 1 },
            "workers": { "machineDeployments": workers },
        } },
    })
}

/// MachineDeployment of a topology, with its machines.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Workers {
    replicas: i32,
    version: String,
    flavor: String,
}

fn workers(replicas: i32, version: &str, flavor: &str) -> Workers {
    Workers {
        replicas,
        version: version.to_owned(),
        flavor: flavor.to_owned(),
    }
}

impl World {
    /// The class `small` and a Cluster of it.
    async fn topology(&self, workers: &[(&str, i32)]) {
        self.apply(templates("small")).await;
        self.apply([class("small"), cluster("small", workers)])
            .await;
    }

    async fn demo(&self) -> Cluster {
        self.api::<Cluster>().get("demo").await.unwrap()
    }

    /// Changes the topology.
    async fn change(&self, topology: Value) {
        let change = json!({ "spec": { "topology": topology } });
        drop(self.merge::<Cluster>("demo", change).await);
    }

    /// Changes the number of workers of the MachineDeployments.
    async fn resize(&self, all: &[(&str, i32)]) {
        let wanted = cluster("small", all);
        let workers = wanted["spec"]["topology"]["workers"].clone();
        self.change(json!({ "workers": workers })).await;
    }

    async fn all(&self, kind: &str) -> Vec<DynamicObject> {
        self.fake(kind)
            .list(&ListParams::default())
            .await
            .unwrap()
            .items
    }

    /// The templates of the Cluster, by their kinds.
    async fn rotated(&self) -> BTreeMap<&'static str, BTreeSet<String>> {
        let mut found = BTreeMap::new();
        for kind in TEMPLATES {
            let ours = self
                .all(kind)
                .await
                .into_iter()
                .filter(|it| it.labels().contains_key(OWNED));
            found.insert(kind, ours.map(|it| it.name_any()).collect());
        }
        found
    }

    /// MachineDeployments by their names in the topology, if all machines match the templates.
    async fn workers(&self) -> Result<BTreeMap<String, Workers>, String> {
        let mut found = BTreeMap::new();
        let machines = self.list::<Machine>().await;
        let sets = self.list::<MachineSet>().await;
        for deployment in self.list::<MachineDeployment>().await {
            let name = deployment.labels()["topology.cluster.x-k8s.io/deployment-name"].clone();
            let status = deployment.status.clone().unwrap_or_default();
            let spec = &deployment.spec.template.spec;
            let wanted = deployment.spec.replicas;
            let labelled = |labels: &BTreeMap<String, String>| {
                labels.get("topology.cluster.x-k8s.io/deployment-name") == Some(&name)
            };
            let there = machines
                .iter()
                .filter(|it| labelled(it.labels()))
                .collect::<Vec<_>>();
            let settled = status.observed_generation == deployment.metadata.generation
                && status.available_replicas == wanted
                && status.up_to_date_replicas == wanted
                && status.replicas == wanted
                && there.iter().all(|it| it.spec.version == spec.version)
                && sets.iter().filter(|it| labelled(it.labels())).count() == 1;
            if !settled {
                return Err(format!("{name}: {wanted:?} {status:?}"));
            }
            let template = self
                .fake("FakeMachineTemplate")
                .get(&spec.infrastructure_ref.name)
                .await;
            let template = template.map_err(|error| error.to_string())?;
            let flavor = template.data["spec"]["template"]["spec"]["flavor"].as_str();
            let workers = workers(
                wanted.unwrap_or_default(),
                &spec.version.clone().unwrap_or_default(),
                flavor.unwrap_or_default(),
            );
            found.insert(name, workers);
        }
        Ok(found)
    }

    /// Waits until the topology is reconciled, the control plane has this version, the MachineDeployments are as
    /// wanted, and no template is left over.
    async fn built(&self, version: &str, wanted: &[(&str, Workers)]) {
        eventually("the topology", || async {
            let cluster = self.demo().await;
            let (status, message) = condition(&cluster, "TopologyReconciled");
            let found = self.workers().await?;
            let planes = self.all("FakeControlPlane").await;
            let runs = |it: &DynamicObject| it.data["status"]["versions"][0]["version"] == version;
            let wanted: BTreeMap<_, _> = wanted
                .iter()
                .map(|(name, it)| ((*name).to_owned(), it.clone()))
                .collect();
            let rotated = self.rotated().await;
            let count = wanted.len();
            let done = status == "True"
                && condition(&cluster, "Available").0 == "True"
                && planes.len() == 1
                && planes.iter().all(runs)
                && found == wanted
                && rotated["FakeMachineTemplate"].len() == count + 1
                && rotated["FakeConfigTemplate"].len() == count
                && self.list::<MachineHealthCheck>().await.len() == count;
            let seen = format!(
                "{status} {message}\n{found:?}\n{rotated:?}\n{:?}",
                cluster.status
            );
            done.then_some(()).ok_or(seen)
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_class_builds_a_cluster_whose_objects_have_upstreams_marks() {
    let world = World::start().await;
    world.topology(&[("md-0", 1)]).await;
    world
        .built("v1.33.1", &[("md-0", workers(1, "v1.33.1", "small"))])
        .await;
    let cluster = world.demo().await;
    let variables = cluster.spec.topology.clone().unwrap().variables.unwrap();
    assert_eq!(
        json!(variables),
        json!([{ "name": "flavor", "value": "small" }])
    );
    assert_eq!(cluster.labels().get(OWNED).map(String::as_str), Some(""));
    let plane = cluster.spec.control_plane_ref.clone().unwrap();
    assert!(
        plane.name.starts_with("demo-") && plane.kind == "FakeControlPlane",
        "{plane:?}"
    );
    let plane = world
        .fake("FakeControlPlane")
        .get(&plane.name)
        .await
        .unwrap();
    assert_eq!(plane.data["spec"]["words"], "init");
    assert_eq!(plane.data["spec"]["replicas"], 1);
    assert_eq!(
        plane.annotations()["cluster.x-k8s.io/cloned-from-name"],
        "small"
    );
    let owner = &plane.owner_references()[0];
    assert_eq!(
        (owner.kind.as_str(), owner.controller),
        ("Cluster", Some(true))
    );
    let deployment = &world.list::<MachineDeployment>().await[0];
    assert!(
        deployment.name_any().starts_with("demo-md-0-"),
        "{}",
        deployment.name_any()
    );
    assert!(deployment.labels().contains_key(OWNED));
    for entry in deployment
        .managed_fields()
        .iter()
        .filter(|it| it.operation.as_deref() == Some("Apply"))
    {
        assert_eq!(entry.manager.as_deref(), Some("capi-topology"));
    }
    let check = &world.list::<MachineHealthCheck>().await[0];
    assert_eq!(check.name_any(), deployment.name_any());
    // The class owns its templates, and reports its content.
    let class = world.api::<ClusterClass>().get("small").await.unwrap();
    let status = class.status.clone().unwrap_or_default();
    assert_eq!(status.observed_generation, class.metadata.generation);
    assert_eq!(status.variables[0].name, "flavor");
    let template = world.fake("FakeConfigTemplate").get("small").await.unwrap();
    assert_eq!(template.owner_references()[0].uid, class.uid().unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_deleted_cluster_leaves_nothing_but_the_class() {
    let world = World::start().await;
    world.topology(&[("md-0", 1), ("md-1", 1)]).await;
    let each = workers(1, "v1.33.1", "small");
    world
        .built("v1.33.1", &[("md-0", each.clone()), ("md-1", each)])
        .await;
    // The class is needed as long as there is a Cluster of it.
    let classes = world.api::<ClusterClass>();
    let refused = classes.delete("small", &DeleteParams::default()).await;
    let refused = refused.unwrap_err().to_string();
    assert!(
        refused.contains("used by 1 Cluster(s): default/demo."),
        "{refused}"
    );
    world.delete::<Cluster>("demo").await;
    world.gone::<Cluster>("demo").await;
    world.cleared().await;
    for template in [
        "FakeClusterTemplate",
        "FakeControlPlaneTemplate",
        "FakeConfigTemplate",
    ] {
        assert_eq!(
            world.all(template).await.len(),
            1,
            "{template} of the class stays"
        );
    }
    drop(
        classes
            .delete("small", &DeleteParams::default())
            .await
            .unwrap(),
    );
    world.gone::<ClusterClass>("small").await;
}

impl World {
    /// Waits until no object of the Cluster is left.
    async fn cleared(&self) {
        eventually("everything to go", || async {
            let rotated = self.rotated().await;
            let mut left: Vec<String> = rotated.values().flatten().cloned().collect();
            for kind in [
                "FakeCluster",
                "FakeControlPlane",
                "FakeMachine",
                "FakeConfig",
            ] {
                left.extend(self.all(kind).await.iter().map(ResourceExt::name_any));
            }
            left.extend(
                self.list::<MachineDeployment>()
                    .await
                    .iter()
                    .map(ResourceExt::name_any),
            );
            left.extend(
                self.list::<MachineHealthCheck>()
                    .await
                    .iter()
                    .map(ResourceExt::name_any),
            );
            left.is_empty()
                .then_some(())
                .ok_or_else(|| format!("{left:?}"))
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_restart_at_rest_writes_nothing() {
    let world = World::start().await;
    world.topology(&[("md-0", 2)]).await;
    world
        .built("v1.33.1", &[("md-0", workers(2, "v1.33.1", "small"))])
        .await;
    let writes = written_at_rest(world.kill(), |fuse| world.run_with(fuse)).await;
    assert_eq!(writes, Vec::<String>::new());
}
