//! Server groups of the roles of a cluster, on request by an annotation.

use api::infra::v1beta2::OpenStackCluster;
use openstack::Service;
use serde_json::{Value, json};

use crate::world::World;

const ANNOTATION: &str = "ferrostack.dev/server-groups";

async fn annotate(world: &World, value: Value) {
    let change = json!({"metadata": {"annotations": {ANNOTATION: value}}});
    world.merge::<OpenStackCluster>("demo", change).await;
}

async fn groups(world: &World) -> Vec<Value> {
    let path = "/os-server-groups";
    let all = world
        .request(Service::Compute, "GET", path, json!({}))
        .await;
    all["server_groups"].as_array().unwrap().clone()
}

/// A cluster with the annotation, a control plane machine and two workers.
async fn cluster(world: &World, annotation: &str) {
    world.cluster(json!({})).await;
    annotate(world, json!(annotation)).await;
    world.cluster_ready().await;
    world.machine("cp-0", true, json!({})).await;
    world.machine("md-0", false, json!({})).await;
    world.machine("md-1", false, json!({})).await;
    for name in ["cp-0", "md-0", "md-1"] {
        world.machine_ready(name).await;
    }
}

async fn goes(world: &World) {
    for name in ["cp-0", "md-0", "md-1"] {
        world.delete_machine(name).await;
    }
    world.delete::<OpenStackCluster>("demo").await;
    world.gone::<OpenStackCluster>("demo").await;
}

#[tokio::test(start_paused = true)]
async fn servers_of_a_role_are_in_its_group_which_goes_with_the_cluster() {
    let world = World::start().await;
    // A group of a user, who has chosen the name without the mark.
    let name = "controlplane-anti-affinity-default-demo";
    let of_user = json!({"server_group": {"name": name, "policy": "anti-affinity"}});
    world
        .request(Service::Compute, "POST", "/os-server-groups", of_user)
        .await;
    cluster(
        &world,
        "control-plane=anti-affinity,worker=soft-anti-affinity",
    )
    .await;
    let all = groups(&world).await;
    let members = |policy: &str| {
        let of = all.iter().filter(|group| group["policy"] == policy);
        let mut counts: Vec<_> = of
            .map(|group| group["members"].as_array().unwrap().len())
            .collect();
        counts.sort_unstable();
        counts
    };
    assert_eq!(
        (members("anti-affinity"), members("soft-anti-affinity")),
        (vec![0, 1], vec![2])
    );
    let cluster = world.cluster_ready().await;
    let id = cluster.metadata.annotations.unwrap()["infrastructure.cluster.x-k8s.io/ferrostack-cluster-id"].clone();
    let is_ours = |group: &&Value| {
        group["name"]
            .as_str()
            .unwrap()
            .ends_with(&format!("[{id}]"))
    };
    assert_eq!(all.iter().filter(is_ours).count(), 2, "{all:#?}");
    assert_eq!(world.writes()["POST /v2.1/os-server-groups"], 3);
    // Also without the annotation.
    annotate(&world, Value::Null).await;
    goes(&world).await;
    let left: Vec<_> = groups(&world)
        .await
        .iter()
        .map(|group| group["name"].clone())
        .collect();
    assert_eq!(left, [name]);
}

#[tokio::test(start_paused = true)]
async fn a_policy_that_does_not_exist_is_a_condition_and_no_machine_is_created_apart_from_its_group()
 {
    let world = World::start().await;
    world.cluster(json!({})).await;
    world.cluster_ready().await;
    annotate(&world, json!("worker=apart")).await;
    world
        .cluster_says("Ready", "`worker=apart` is not control-plane or worker")
        .await;
    world.machine("md-0", false, json!({})).await;
    world
        .machine_says("md-0", "InstanceReady", ANNOTATION)
        .await;
    assert_eq!(world.count("server"), 0);
    annotate(&world, json!("worker=anti-affinity")).await;
    world.machine_ready("md-0").await;
    let all = groups(&world).await;
    assert_eq!(all[0]["members"].as_array().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_asks_for_none_reads_no_server_groups() {
    let world = World::start().await;
    world.cluster(json!({})).await;
    world.cluster_ready().await;
    world.delete::<OpenStackCluster>("demo").await;
    world.gone::<OpenStackCluster>("demo").await;
    let asked = world.cloud.requests().into_iter();
    let asked = asked.filter(|count| count.route.contains("os-server-groups"));
    assert_eq!(asked.count(), 0);
}
