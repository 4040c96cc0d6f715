//! A failure does not affect the other duties, and is reported in a condition.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use api::conditions;
use api::core::v1beta2::{Cluster, Machine, MachineDeployment, MachineSet};
use api::k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, OwnerReference};
use api::k8s_openapi::jiff::Timestamp;
use api::kube::ResourceExt;
use clusterapi::pki::store;
use clusterapi::pki::{CA_DAYS, Purpose};
use http::Method;
use serde_json::{Value, json};

use crate::events::events;
use crate::world::{World, cluster, eventually};

/// The reason of a refusal that is repeated with pauses.
const DOWN: (u16, &str) = (500, "InternalError");

/// A worker of one deployment; the labels of its bootstrap config cannot be changed from now on.
async fn one_worker_with_a_stuck_config() -> (World, String) {
    let world = World::start().await;
    world.cluster(1).await;
    world.settled(1).await;
    world.kill().await;
    let name = world.list::<Machine>().await.remove(0).name_any();
    let config = format!("/fakeconfigs/{name}");
    world.run_refused(move |method, path| {
        (method == Method::PATCH && path.ends_with(&config)).then_some(DOWN)
    });
    let label = json!({"spec": {"template": {"metadata": {"labels": {"team": "blue"}}}}});
    world.merge::<MachineDeployment>("demo-md", label).await;
    // The config comes after the machine.
    eventually("the label of the machine", || async {
        let machine = world.api::<Machine>().get(&name).await.unwrap();
        match machine.labels().get("team") {
            Some(_) => Ok(()),
            None => Err(format!("{:?}", machine.labels())),
        }
    })
    .await;
    (world, name)
}

async fn set(world: &World) -> MachineSet {
    world.list::<MachineSet>().await.remove(0)
}

/// Waits until `Reconciled`, in the conditions from `read`, has this status, and a message with these words.
async fn reconciled<F>(status: &str, words: &str, read: impl Fn() -> F)
where
    F: Future<Output = Vec<Condition>>,
{
    eventually(&format!("Reconciled {status}: {words}"), || async {
        let list = read().await;
        match conditions::find(&list, "Reconciled") {
            Some(it) if it.status == status && it.message.contains(words) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_set_scales_while_the_labels_of_an_object_cannot_be_changed() {
    let (world, name) = one_worker_with_a_stuck_config().await;
    let replicas = json!({"spec": {"replicas": 3}});
    world.merge::<MachineDeployment>("demo-md", replicas).await;
    let reads = || async { set(&world).await.conditions().to_vec() };
    reconciled("False", &format!("FakeConfig default/{name}"), reads).await;
    eventually("three machines", || async {
        let machines = world.list::<Machine>().await;
        match machines
            .iter()
            .filter(|it| it.node_name().is_some())
            .count()
        {
            3 => Ok(()),
            other => Err(format!("{other}")),
        }
    })
    .await;
    world.kill().await;
    world.run();
    reconciled("True", "", reads).await;
    world.settled(3).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_set_replaces_an_unhealthy_machine_while_another_object_cannot_be_changed() {
    let (world, name) = one_worker_with_a_stuck_config().await;
    let check = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineHealthCheck",
        "metadata": {"name": "workers", "namespace": crate::world::NS},
        "spec": {
            "clusterName": "demo", "selector": {"matchLabels": {"pool": "demo-md"}},
            "checks": {"nodeStartupTimeoutSeconds": 600},
        },
    });
    world.apply([check]).await;
    let ask = json!({"metadata": {"annotations": {"cluster.x-k8s.io/remediate-machine": ""}}});
    world.merge::<Machine>(&name, ask).await;
    world.gone::<Machine>(&name).await;
    world.settled(1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deployment_rolls_out_while_the_cluster_cannot_own_its_templates() {
    let world = World::open().await;
    world.run_refused(|method, path| {
        (method == Method::PATCH && path.contains("/fakemachinetemplates/")).then_some(DOWN)
    });
    world.cluster(2).await;
    let reads = || async {
        let deployment = world.api::<MachineDeployment>().get("demo-md").await;
        deployment.unwrap().conditions().to_vec()
    };
    reconciled("False", "FakeMachineTemplate default/demo-md", reads).await;
    eventually("two workers", || async {
        let deployment = world.api::<MachineDeployment>().get("demo-md").await;
        let status = deployment.unwrap().status.unwrap_or_default();
        match status.available_replicas {
            Some(2) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    world.kill().await;
    world.run();
    reconciled("True", "", reads).await;
    world.settled(2).await;
}

/// A reference to the Cluster.
async fn owner(world: &World) -> OwnerReference {
    let cluster = world.api::<Cluster>().get("demo").await.unwrap();
    OwnerReference {
        api_version: "cluster.x-k8s.io/v1beta2".to_owned(),
        kind: "Cluster".to_owned(),
        name: "demo".to_owned(),
        uid: cluster.uid().unwrap(),
        ..OwnerReference::default()
    }
}

/// The Cluster `demo` without a control plane object, and its FakeCluster.
fn without_control_plane() -> Vec<Value> {
    let mut objects = cluster("demo");
    objects.truncate(2);
    let spec = objects[0]["spec"].as_object_mut().unwrap();
    spec.remove("controlPlaneRef");
    objects
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_gets_its_kubeconfig_while_its_status_cannot_be_written() {
    let world = World::open().await;
    world.run_refused(|method, path| {
        (method == Method::PATCH && path.ends_with("/clusters/demo/status")).then_some(DOWN)
    });
    world.apply(without_control_plane()).await;
    let recipe = store::Recipe {
        owner: owner(&world).await,
        algorithm: None,
        validity_days: CA_DAYS,
        except: vec![Purpose::Etcd, Purpose::FrontProxy, Purpose::ServiceAccount],
    };
    let secrets = world.secrets();
    let created = store::ensure(&secrets, "demo", &recipe, Timestamp::now()).await;
    created.unwrap();
    eventually("the kubeconfig", || async {
        let found = secrets.get_opt("demo-kubeconfig").await.unwrap();
        found.map(drop).ok_or_else(|| "none".to_owned())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn write_conflicts_are_repeated_and_reported_nowhere() {
    let world = World::open().await;
    let left = Arc::new(AtomicUsize::new(40));
    let conflicts = Arc::clone(&left);
    // Each of these objects changes after every read.
    world.run_refused(move |method, path| {
        let hit = *method == Method::PATCH
            && [
                "/fakeclusters/",
                "/fakemachinetemplates/",
                "/fakemachines/",
                "/status",
            ]
            .iter()
            .any(|part| path.contains(part));
        let taken = hit
            && conflicts
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |it| it.checked_sub(1))
                .is_ok();
        taken.then_some((409, "Conflict"))
    });
    world.cluster(2).await;
    world.settled(2).await;
    assert_eq!(
        left.load(Ordering::SeqCst),
        0,
        "all conflicts have happened"
    );
    let found = events(&world).await;
    let reported = found.iter().filter(|(_, notes)| {
        notes
            .iter()
            .any(|note| note.contains("refused by the test"))
    });
    assert_eq!(reported.collect::<Vec<_>>(), []);
    let demo = world.api::<Cluster>().get("demo").await.unwrap();
    let of_cluster = conditions::find(demo.conditions(), "Reconciled");
    assert!(of_cluster.is_none(), "{of_cluster:?}");
    let of_set = set(&world).await;
    let of_set = conditions::find(of_set.conditions(), "Reconciled");
    assert!(of_set.is_none(), "{of_set:?}");
}
