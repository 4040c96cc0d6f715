//! A Cluster from its creation to its deletion.

use std::time::Duration;

use api::core::v1beta2::{Cluster, ClusterPhase, Machine, MachineDeployment, MachinePhase};
use api::k8s_openapi::api::core::v1::Node;
use api::kube::ResourceExt;
use api::kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use serde_json::json;

use crate::world::{World, condition, deployment, eventually};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_becomes_available() {
    let world = World::start().await;
    world.cluster(2).await;
    let cluster = eventually("the Cluster to be available", || async {
        let cluster = world.api::<Cluster>().get("demo").await.unwrap();
        let (status, message) = condition(&cluster, "Available");
        let workers = cluster
            .status
            .as_ref()
            .and_then(|status| status.workers.clone());
        let counted = workers
            .as_ref()
            .and_then(|workers| workers.available_replicas)
            == Some(2);
        if status == "True" && counted {
            Ok(cluster)
        } else {
            Err(format!("{message} {workers:?}"))
        }
    })
    .await;
    assert_eq!(cluster.endpoint(), Some(("127.0.0.2", 6443)));
    assert!(cluster.control_plane_initialized());
    let status = cluster.status.clone().unwrap();
    assert_eq!(status.phase, Some(ClusterPhase::Provisioned));
    assert_eq!(status.control_plane.unwrap().available_replicas, Some(1));
    assert_eq!(condition(&cluster, "RemoteConnectionProbe").0, "True");
    assert_eq!(condition(&cluster, "Paused").0, "False");
    let infrastructure = world.fake("FakeCluster").get("demo").await.unwrap();
    let owner = &infrastructure.owner_references()[0];
    assert_eq!(
        (owner.kind.as_str(), owner.controller),
        ("Cluster", Some(true))
    );
    for machine in world.list::<Machine>().await {
        assert_eq!(machine.status.unwrap().phase, Some(MachinePhase::Running));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_goes_from_the_workers_inwards() {
    let world = World::start().await;
    world.cluster(2).await;
    world.settled(2).await;
    world.delete::<Cluster>("demo").await;
    world.gone::<Cluster>("demo").await;
    let gone = world.gone.lock().clone();
    let place = |what: &str| gone.iter().position(|name| name == what).unwrap();
    let last_worker = gone
        .iter()
        .rposition(|name| name.starts_with("FakeMachine/"))
        .unwrap();
    assert!(last_worker < place("FakeControlPlane/demo"), "{gone:?}");
    assert!(
        place("FakeControlPlane/demo") < place("FakeCluster/demo"),
        "{gone:?}"
    );
    assert_eq!(
        gone.iter()
            .filter(|name| name.starts_with("FakeMachine/"))
            .count(),
        2
    );
    assert_eq!(
        gone.iter()
            .filter(|name| name.starts_with("FakeConfig/"))
            .count(),
        2
    );
    assert!(world.list::<MachineDeployment>().await.is_empty());
    assert!(world.list::<Machine>().await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_waits_for_its_hooks_before_it_goes() {
    let world = World::start().await;
    world.cluster(1).await;
    world.settled(1).await;
    let name = world.list::<Machine>().await[0].name_any();
    let hook = "pre-terminate.delete.hook.machine.cluster.x-k8s.io/test";
    let set = json!({ "metadata": { "annotations": { hook: "" } } });
    world.merge::<Machine>(&name, set).await;
    world.delete::<Machine>(&name).await;
    eventually("the machine to wait for its hook", || async {
        let machine = world.api::<Machine>().get(&name).await.unwrap();
        let found = api::conditions::find(machine.conditions(), "Deleting").cloned();
        let reason = found.map(|found| found.reason).unwrap_or_default();
        if reason == "WaitingForPreTerminateHook" {
            Ok(())
        } else {
            Err(reason)
        }
    })
    .await;
    // The Node is drained, but the machine still exists.
    let node = Api::<Node>::all(world.workload.clone())
        .get(&name)
        .await
        .unwrap();
    assert_eq!(node.spec.unwrap().unschedulable, Some(true));
    assert!(
        world
            .fake("FakeMachine")
            .get_opt(&name)
            .await
            .unwrap()
            .is_some()
    );
    // Steps completed before the hook are not checked again, even if no longer complete.
    let attached = json!({"status": {"volumesAttached": [{"name": "v", "devicePath": "d"}]}});
    Api::<Node>::all(world.workload.clone())
        .patch_status(&name, &PatchParams::default(), &Patch::Merge(&attached))
        .await
        .unwrap();
    let clear = json!({ "metadata": { "annotations": { hook: null } } });
    world.merge::<Machine>(&name, clear).await;
    // Until its end, the old machine could count as the one worker.
    eventually("the machine to be gone", || async {
        match world.api::<Machine>().get_opt(&name).await.unwrap() {
            None => Ok(()),
            Some(machine) => Err(format!("{:?}", machine.status)),
        }
    })
    .await;
    world.settled(1).await;
    assert_ne!(world.list::<Machine>().await[0].name_any(), name);
    let nodes = Api::<Node>::all(world.workload.clone());
    assert!(nodes.get_opt(&name).await.unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_paused_cluster_is_left_alone() {
    let world = World::start().await;
    world.cluster(1).await;
    world.settled(1).await;
    world
        .merge::<Cluster>("demo", json!({ "spec": { "paused": true } }))
        .await;
    eventually("everything to be paused", || async {
        let cluster = world.api::<Cluster>().get("demo").await.unwrap();
        let machine = world.list::<Machine>().await.remove(0);
        let good = condition(&cluster, "Paused").0 == "True"
            && api::conditions::is_true(machine.conditions(), "Paused");
        if good {
            Ok(())
        } else {
            Err(format!("{:?}", machine.conditions()))
        }
    })
    .await;
    world
        .merge::<MachineDeployment>("demo-md", json!({ "spec": { "replicas": 2 } }))
        .await;
    world
        .merge::<Cluster>("demo", json!({ "spec": { "paused": false } }))
        .await;
    world.settled(2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_may_arrive_in_any_order() {
    let world = World::start().await;
    let mut objects = deployment("demo", 1);
    objects.reverse();
    world.apply(objects).await;
    let mut objects = crate::world::cluster("demo");
    objects.reverse();
    world.apply(objects).await;
    world.settled(1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_whose_node_is_missing_names_the_provider_id() {
    let world = World::start().await;
    world.cluster(1).await;
    world.settled(1).await;
    let machine = world.list::<Machine>().await.remove(0);
    let nodes = Api::<Node>::all(world.workload.clone());
    nodes
        .delete(&machine.name_any(), &DeleteParams::default())
        .await
        .unwrap();
    eventually("NodeHealthy to be false", || async {
        let machine = world
            .api::<Machine>()
            .get(&machine.name_any())
            .await
            .unwrap();
        let found = api::conditions::find(machine.conditions(), "NodeHealthy")
            .cloned()
            .unwrap();
        if found.reason == "NodeDeleted" {
            Ok(())
        } else {
            Err(format!("{found:?}"))
        }
    })
    .await;
    let left = nodes.list(&ListParams::default()).await.unwrap();
    assert!(left.items.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn manifests_of_v1beta1_are_accepted_and_stored_as_v1beta2() {
    let world = World::start().await;
    let old = |group: &str, kind: &str, name: &str| json!({ "apiVersion": format!("{group}.cluster.x-k8s.io/v1"), "kind": kind, "name": name });
    let mut cluster = crate::world::cluster("demo");
    cluster[0]["apiVersion"] = json!("cluster.x-k8s.io/v1beta1");
    cluster[0]["spec"] = json!({
        "clusterNetwork": { "pods": { "cidrBlocks": ["192.168.0.0/16"] } },
        "infrastructureRef": old("infrastructure", "FakeCluster", "demo"),
        "controlPlaneRef": old("controlplane", "FakeControlPlane", "demo"),
    });
    let mut workers = deployment("demo", 2);
    workers[2]["apiVersion"] = json!("cluster.x-k8s.io/v1beta1");
    workers[2]["spec"] = json!({
        "clusterName": "demo",
        "replicas": 2,
        "selector": { "matchLabels": null },
        "template": { "spec": {
            "clusterName": "demo",
            "version": "v1.34.1",
            "nodeDrainTimeout": "5m",
            "bootstrap": { "configRef": old("bootstrap", "FakeConfigTemplate", "demo-md") },
            "infrastructureRef": old("infrastructure", "FakeMachineTemplate", "demo-md"),
        }},
    });
    world.apply(cluster).await;
    world.apply(workers).await;
    world.settled(2).await;
    let deployment = world
        .api::<MachineDeployment>()
        .get("demo-md")
        .await
        .unwrap();
    let labels = deployment.spec.selector.match_labels.unwrap();
    assert_eq!(labels["cluster.x-k8s.io/deployment-name"], "demo-md");
    for machine in world.list::<Machine>().await {
        assert_eq!(
            machine.spec.deletion.unwrap().node_drain_timeout_seconds,
            Some(300)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_in_ten_minutes_in_which_nothing_happens() {
    let world = World::start().await;
    world.cluster(3).await;
    world.settled(3).await;
    // The reconciles that follow the last change.
    tokio::time::sleep(Duration::from_secs(10)).await;
    world.stop_provider();
    let before = world.server.stats().revision;
    // Longer than the interval of periodic reconciles.
    tokio::time::sleep(operator::controller::RESYNC + Duration::from_secs(60)).await;
    let writes = world.server.stats().revision - before;
    assert_eq!(writes, 0, "writes while nothing happened");
    world.settled(3).await;
}
