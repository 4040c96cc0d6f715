//! Obstacles to a topology are reported in a condition.

use super::*;

/// Waits for words in a condition of the Cluster.
async fn says(world: &World, words: &str) {
    eventually(words, || async {
        let (_, message) = condition(&world.demo().await, "TopologyReconciled");
        message.contains(words).then_some(()).ok_or(message)
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_class_and_templates_may_come_after_their_cluster() {
    let world = World::start().await;
    world.apply([cluster("small", &[("md-0", 1)])]).await;
    says(&world, "ClusterClass default/small does not exist").await;
    eventually("the infrastructure's condition", || async {
        let (_, message) = condition(&world.demo().await, "InfrastructureReady");
        (message == "Waiting for cluster topology to be reconciled")
            .then_some(())
            .ok_or(message)
    })
    .await;
    world.apply([class("small")]).await;
    says(&world, "ClusterClass default/small is not reconciled").await;
    eventually("the condition of the class", || async {
        let class = world.api::<ClusterClass>().get("small").await.unwrap();
        let conditions = class.status.unwrap_or_default().conditions;
        let found = api::conditions::find(&conditions, "RefVersionsUpToDate").cloned();
        let message = found.map(|found| found.message).unwrap_or_default();
        let named = message.contains("FakeConfigTemplate default/small does not exist");
        named.then_some(()).ok_or(message)
    })
    .await;
    world.apply(templates("small")).await;
    world
        .built("v1.33.1", &[("md-0", workers(1, "v1.33.1", "small"))])
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_value_that_the_class_does_not_allow_is_named() {
    let world = World::start().await;
    let mut wanted = cluster("small", &[("md-0", 1)]);
    wanted["spec"]["topology"]["variables"] = json!([{ "name": "flavour", "value": 3 }]);
    // Without its class, the Cluster is accepted.
    world.apply([wanted]).await;
    world.apply(templates("small")).await;
    world.apply([class("small")]).await;
    says(&world, "flavour").await;
    assert!(world.list::<MachineDeployment>().await.is_empty());
    world
        .change(json!({ "variables": [{ "name": "flavor", "value": "large" }] }))
        .await;
    world
        .built("v1.33.1", &[("md-0", workers(1, "v1.33.1", "large"))])
        .await;
}

/// A health check of somebody else with the name of the one that the class has for the workers `md-0`, and the class.
fn foreign_check_of(name: &str) -> [Value; 2] {
    let mut named = class(name);
    let workers_of = &mut named["spec"]["workers"]["machineDeployments"][0];
    workers_of["naming"] =
        json!({ "template": "{{ .cluster.name }}-{{ .machineDeployment.topologyName }}" });
    let foreign = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineHealthCheck",
        "metadata": { "name": "demo-md-0", "namespace": NS, "labels": { "mine": "yes" } },
        "spec": { "clusterName": "demo", "selector": { "matchLabels": { "a": "b" } },
            "checks": { "nodeStartupTimeoutSeconds": 70 } },
    });
    [foreign, named]
}

#[tokio::test(start_paused = true)]
async fn workers_that_cannot_be_built_hold_no_others_up() {
    let world = World::start().await;
    let [foreign, named] = foreign_check_of("small");
    world.apply(templates("small")).await;
    let two = cluster("small", &[("md-0", 1), ("md-1", 1)]);
    world.apply([foreign, named, two]).await;
    eventually("the second workers", || async {
        let built = world.workers().await?;
        let second = built.get("md-1").cloned();
        (second == Some(workers(1, "v1.33.1", "small")))
            .then_some(())
            .ok_or(format!("{built:?}"))
    })
    .await;
    says(
        &world,
        "MachineHealthCheck default/demo-md-0 exists and belongs to another owner",
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_object_of_somebody_else_is_not_taken() {
    let world = World::start().await;
    let [foreign, named] = foreign_check_of("small");
    world.apply(templates("small")).await;
    world
        .apply([foreign, named, cluster("small", &[("md-0", 1)])])
        .await;
    says(
        &world,
        "MachineHealthCheck default/demo-md-0 exists and belongs to another owner",
    )
    .await;
    let kept = world
        .api::<MachineHealthCheck>()
        .get("demo-md-0")
        .await
        .unwrap();
    assert_eq!(
        kept.spec.checks.unwrap().node_startup_timeout_seconds,
        Some(70)
    );
    assert!(!kept.metadata.labels.unwrap().contains_key(OWNED));
    let checks = world.api::<MachineHealthCheck>();
    drop(
        checks
            .delete("demo-md-0", &DeleteParams::default())
            .await
            .unwrap(),
    );
    world
        .built("v1.33.1", &[("md-0", workers(1, "v1.33.1", "small"))])
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_paused_cluster_is_left_alone() {
    let world = World::start().await;
    world.topology(&[("md-0", 1)]).await;
    world
        .built("v1.33.1", &[("md-0", workers(1, "v1.33.1", "small"))])
        .await;
    drop(
        world
            .merge::<Cluster>("demo", json!({ "spec": { "paused": true } }))
            .await,
    );
    says(&world, "Cluster spec.paused is set to true").await;
    world.resize(&[("md-0", 3)]).await;
    tokio::time::sleep(std::time::Duration::from_secs(30)).await;
    assert_eq!(
        world.list::<MachineDeployment>().await[0].spec.replicas,
        Some(1)
    );
    drop(
        world
            .merge::<Cluster>("demo", json!({ "spec": { "paused": false } }))
            .await,
    );
    world
        .built("v1.33.1", &[("md-0", workers(3, "v1.33.1", "small"))])
        .await;
}
