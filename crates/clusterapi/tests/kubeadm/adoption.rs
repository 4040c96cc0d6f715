//! Adoption of control plane machines that were made by hand.

use api::controlplane::v1beta2::KubeadmControlPlane;
use api::core::v1beta2::{Cluster, Machine};
use api::k8s_openapi::api::core::v1::Secret;
use api::k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use api::kube::ResourceExt;
use serde_json::{Value, json};

use crate::world::{NS, World, cluster, eventually};

/// Stand-alone control plane machine of the Cluster `demo`, with the objects that it refers to.
fn by_hand(version: &str) -> Vec<Value> {
    let labels =
        json!({"cluster.x-k8s.io/cluster-name": "demo", "cluster.x-k8s.io/control-plane": ""});
    let metadata = || json!({"name": "first", "namespace": NS, "labels": labels});
    let reference =
        |group: &str, kind: &str| json!({"apiGroup": group, "kind": kind, "name": "first"});
    let infrastructure = "infrastructure.cluster.x-k8s.io";
    vec![
        json!({
            "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2", "kind": "KubeadmConfig",
            "metadata": metadata(),
            "spec": {"clusterConfiguration": {"encryptionAlgorithm": "ECDSA-P256"}},
        }),
        json!({
            "apiVersion": format!("{infrastructure}/v1"), "kind": "FakeMachine",
            "metadata": metadata(), "spec": {},
        }),
        json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
            "metadata": metadata(),
            "spec": {
                "clusterName": "demo", "version": version,
                "bootstrap": {"configRef": reference("bootstrap.cluster.x-k8s.io", "KubeadmConfig")},
                "infrastructureRef": reference(infrastructure, "FakeMachine"),
            },
        }),
    ]
}

/// Cluster of one stand-alone machine, and a new control plane object for it.
async fn stand_alone(version: &str) -> World {
    let world = World::start().await;
    let config = json!({"clusterConfiguration": {"encryptionAlgorithm": "ECDSA-P256"}});
    let mut objects = cluster(1, config);
    let plane = objects.pop().unwrap();
    let reference = objects[0]["spec"]
        .as_object_mut()
        .unwrap()
        .remove("controlPlaneRef")
        .unwrap();
    world
        .apply(objects.into_iter().chain(by_hand(version)))
        .await;
    eventually("the stand-alone machine to have a Node", || async {
        let machine = world.api::<Machine>().get("first").await.unwrap();
        let node = machine.node_name().map(str::to_owned);
        node.map(drop)
            .ok_or_else(|| format!("{:?}", machine.status))
    })
    .await;
    world.apply([plane]).await;
    let refer = json!({"spec": {"controlPlaneRef": reference}});
    world.merge::<Cluster>("demo", refer).await;
    world
}

#[tokio::test(start_paused = true)]
async fn a_machine_made_by_hand_is_adopted_with_the_keys_of_its_cluster() {
    let world = stand_alone("v1.34.1").await;
    world.settled(1).await;
    assert_eq!(world.machine_names().await, ["first"]);
    let machine = world.api::<Machine>().get("first").await.unwrap();
    let kinds = |owners: &[OwnerReference]| {
        let controllers = owners.iter().filter(|owner| owner.controller == Some(true));
        controllers
            .map(|owner| owner.kind.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(kinds(machine.owner_references()), ["KubeadmControlPlane"]);
    for suffix in ["ca", "etcd", "proxy", "sa"] {
        let secret = world
            .api::<Secret>()
            .get(&format!("demo-{suffix}"))
            .await
            .unwrap();
        assert_eq!(
            kinds(secret.owner_references()),
            ["KubeadmControlPlane"],
            "{suffix}"
        );
    }
    // The machine is one of the control plane's from now on.
    let scale = json!({"spec": {"replicas": 3}});
    world.merge::<KubeadmControlPlane>("demo", scale).await;
    world.settled(3).await;
    assert!(world.machine_names().await.contains(&"first".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_machine_of_another_minor_version_is_not_adopted_and_none_is_created() {
    let world = stand_alone("v1.32.0").await;
    world
        .condition(
            "ScalingUp",
            "True",
            "Machine first is not adopted: its version v1.32.0",
        )
        .await;
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    assert_eq!(world.machine_names().await, ["first"]);
}
