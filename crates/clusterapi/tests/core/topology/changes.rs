//! Changes of a topology, its class and its objects.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_topology_scales_its_workers() {
    let world = World::start().await;
    world.topology(&[("md-0", 1)]).await;
    world
        .built("v1.33.1", &[("md-0", workers(1, "v1.33.1", "small"))])
        .await;
    let before = world.rotated().await;
    world.resize(&[("md-0", 3)]).await;
    world
        .built("v1.33.1", &[("md-0", workers(3, "v1.33.1", "small"))])
        .await;
    assert_eq!(world.rotated().await, before, "no template has changed");
}

#[tokio::test(start_paused = true)]
async fn a_variable_that_changes_rolls_out_new_templates_and_the_old_ones_go() {
    let world = World::start().await;
    world.topology(&[("md-0", 1)]).await;
    world
        .built("v1.33.1", &[("md-0", workers(1, "v1.33.1", "small"))])
        .await;
    let before = world.rotated().await;
    world
        .change(json!({ "variables": [{ "name": "flavor", "value": "large" }] }))
        .await;
    world
        .built("v1.33.1", &[("md-0", workers(1, "v1.33.1", "large"))])
        .await;
    let after = world.rotated().await;
    assert_eq!(after["FakeConfigTemplate"], before["FakeConfigTemplate"]);
    assert!(after["FakeMachineTemplate"].is_disjoint(&before["FakeMachineTemplate"]));
    let planes = world.all("FakeControlPlane").await;
    let machines = &planes[0].data["spec"]["machineTemplate"]["spec"]["infrastructureRef"]["name"];
    assert!(after["FakeMachineTemplate"].contains(machines.as_str().unwrap()));
}

#[tokio::test(start_paused = true)]
async fn a_template_of_the_class_that_changes_reaches_its_clusters() {
    let world = World::start().await;
    world.topology(&[("md-0", 1)]).await;
    world
        .built("v1.33.1", &[("md-0", workers(1, "v1.33.1", "small"))])
        .await;
    let before = world.rotated().await;
    let change = json!({ "spec": { "template": { "spec": { "words": "join again" } } } });
    let configs = world.fake("FakeConfigTemplate");
    configs
        .patch("small", &PatchParams::default(), &Patch::Merge(change))
        .await
        .unwrap();
    eventually("another template", || async {
        let now = world.rotated().await;
        let rolled = now["FakeConfigTemplate"].is_disjoint(&before["FakeConfigTemplate"]);
        rolled.then_some(()).ok_or_else(|| format!("{now:?}"))
    })
    .await;
    world
        .built("v1.33.1", &[("md-0", workers(1, "v1.33.1", "small"))])
        .await;
}

#[tokio::test(start_paused = true)]
async fn workers_that_leave_the_topology_are_deleted_with_their_templates() {
    let world = World::start().await;
    world.topology(&[("md-0", 1), ("md-1", 2)]).await;
    let one = workers(1, "v1.33.1", "small");
    let two = workers(2, "v1.33.1", "small");
    world
        .built("v1.33.1", &[("md-0", one), ("md-1", two.clone())])
        .await;
    world.resize(&[("md-1", 2)]).await;
    world.built("v1.33.1", &[("md-1", two)]).await;
    assert_eq!(world.all("FakeMachine").await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn what_is_changed_by_hand_is_changed_back() {
    let world = World::start().await;
    world.topology(&[("md-0", 2)]).await;
    world
        .built("v1.33.1", &[("md-0", workers(2, "v1.33.1", "small"))])
        .await;
    let name = world.list::<MachineDeployment>().await[0].name_any();
    let scaled =
        json!({ "spec": { "replicas": 4 }, "metadata": { "labels": { "mine": "stays" } } });
    drop(world.merge::<MachineDeployment>(&name, scaled).await);
    let check = json!({ "spec": { "checks": { "nodeStartupTimeoutSeconds": 50 } } });
    drop(world.merge::<MachineHealthCheck>(&name, check).await);
    eventually("the former size", || async {
        let deployment = world.api::<MachineDeployment>().get(&name).await.unwrap();
        let check = world.api::<MachineHealthCheck>().get(&name).await.unwrap();
        let timeout = check
            .spec
            .checks
            .unwrap_or_default()
            .node_startup_timeout_seconds;
        let done = deployment.spec.replicas == Some(2) && timeout == Some(600);
        done.then_some(())
            .ok_or_else(|| format!("{:?} {timeout:?}", deployment.spec.replicas))
    })
    .await;
    let deployment = world.api::<MachineDeployment>().get(&name).await.unwrap();
    assert_eq!(deployment.labels()["mine"], "stays");
}

#[tokio::test(start_paused = true)]
async fn another_class_of_the_same_kinds_takes_over() {
    let world = World::start().await;
    world.topology(&[("md-0", 1)]).await;
    world
        .built("v1.33.1", &[("md-0", workers(1, "v1.33.1", "small"))])
        .await;
    let names = |cluster: &Cluster| {
        (
            cluster.spec.infrastructure_ref.clone(),
            cluster.spec.control_plane_ref.clone(),
        )
    };
    let before = names(&world.demo().await);
    world.apply(templates("other")).await;
    world.apply([class("other")]).await;
    world
        .change(json!({ "classRef": { "name": "other" } }))
        .await;
    eventually("the region of the other class", || async {
        let region = world.all("FakeCluster").await[0].data["spec"]["region"].clone();
        (region == "other")
            .then_some(())
            .ok_or_else(|| region.to_string())
    })
    .await;
    world
        .built("v1.33.1", &[("md-0", workers(1, "v1.33.1", "small"))])
        .await;
    assert_eq!(names(&world.demo().await), before);
}

#[tokio::test(start_paused = true)]
async fn a_template_in_use_under_another_name_is_kept_while_its_content_is_the_same() {
    let world = World::start().await;
    world.topology(&[("md-0", 1)]).await;
    world
        .built("v1.33.1", &[("md-0", workers(1, "v1.33.1", "small"))])
        .await;
    world.kill().await;
    // As a cluster of the Go controllers: the names are random.
    let deployment = world.list::<MachineDeployment>().await.remove(0);
    let name = deployment
        .spec
        .template
        .spec
        .infrastructure_ref
        .name
        .clone();
    let machines = world.fake("FakeMachineTemplate");
    let mut copy = machines.get(&name).await.unwrap();
    let metadata = std::mem::take(&mut copy.metadata);
    copy.metadata.name = Some("demo-md-0-rand0".to_owned());
    copy.metadata.namespace = Some(NS.to_owned());
    copy.metadata.labels = metadata.labels;
    copy.metadata.annotations = metadata.annotations;
    copy.metadata.owner_references = metadata.owner_references;
    world.create(json!(copy)).await;
    let refer = json!({ "spec": { "template": { "spec": { "infrastructureRef": { "name": "demo-md-0-rand0" } } } } });
    drop(
        world
            .merge::<MachineDeployment>(&deployment.name_any(), refer)
            .await,
    );
    world.run();
    eventually("the other one to go", || async {
        let now = world.rotated().await;
        let gone = !now["FakeMachineTemplate"].contains(&name);
        gone.then_some(()).ok_or_else(|| format!("{now:?}"))
    })
    .await;
    world
        .built("v1.33.1", &[("md-0", workers(1, "v1.33.1", "small"))])
        .await;
    let kept = world.list::<MachineDeployment>().await[0]
        .spec
        .template
        .spec
        .infrastructure_ref
        .name
        .clone();
    assert_eq!(kept, "demo-md-0-rand0");
    // Questions to the API server are remembered.
    world.kill().await;
    let (_running, reads) = world.run_counting();
    tokio::time::sleep(std::time::Duration::from_secs(30)).await;
    reads.lock().clear();
    let touched = json!({ "metadata": { "labels": { "touched": "yes" } } });
    drop(world.merge::<Cluster>("demo", touched).await);
    tokio::time::sleep(std::time::Duration::from_secs(30)).await;
    let asked: Vec<_> = reads
        .lock()
        .iter()
        .filter(|path| path.contains("/demo-md-0"))
        .cloned()
        .collect();
    assert_eq!(asked, Vec::<String>::new());
}
