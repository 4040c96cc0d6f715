//! Events and conditions for users.

use std::collections::BTreeMap;

use api::conditions;
use api::core::v1beta2::{Cluster, Machine, MachineDeployment};
use api::k8s_openapi::api::events::v1::Event;
use api::kube::ResourceExt;
use api::names::PAUSED_ANNOTATION;
use serde_json::json;

use crate::world::{World, eventually};

/// `Kind Reason` of all events, and their notes.
pub(crate) async fn events(world: &World) -> BTreeMap<String, Vec<String>> {
    let mut found: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for event in world.list::<Event>().await {
        let text = |text: Option<String>| text.unwrap_or_default();
        let kind = text(event.regarding.and_then(|object| object.kind));
        let key = format!("{kind} {}", text(event.reason));
        found.entry(key).or_default().push(text(event.note));
    }
    found
}

/// Waits until there are events of all these kinds and reasons.
pub(crate) async fn reported_events(
    world: &World,
    expected: &[(&str, usize)],
) -> BTreeMap<String, Vec<String>> {
    eventually("the events", || async {
        let found = events(world).await;
        let count = |key: &str| found.get(key).map_or(0, Vec::len);
        match expected.iter().all(|(key, least)| count(key) >= *least) {
            true => Ok(found),
            false => Err(format!("{found:#?}")),
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_object_tells_what_happens_to_it() {
    let world = World::start().await;
    world.cluster(2).await;
    world.settled(2).await;
    let found = reported_events(
        &world,
        &[
            ("Cluster InfrastructureReady", 1),
            ("Cluster ControlPlaneReady", 1),
            ("MachineDeployment SuccessfulCreate", 1),
            ("MachineDeployment SuccessfulScale", 1),
            ("MachineSet SuccessfulCreate", 2),
            ("Machine SuccessfulSetNodeRef", 2),
        ],
    )
    .await;
    assert_eq!(found["Cluster InfrastructureReady"].len(), 1, "{found:#?}");
    assert_eq!(found["Machine SuccessfulSetNodeRef"].len(), 2, "{found:#?}");
    let replicas = json!({"spec": {"replicas": 1}});
    world.merge::<MachineDeployment>("demo-md", replicas).await;
    world.settled(1).await;
    let found = reported_events(
        &world,
        &[
            ("MachineSet SuccessfulDelete", 1),
            ("Machine SuccessfulDrainNode", 1),
        ],
    )
    .await;
    for (key, notes) in &found {
        for note in notes {
            let begins = note.chars().next().is_some_and(char::is_uppercase);
            assert!(begins, "{key}: {note}");
            for debug in ["Some(", "Status {", "Error {", "os error"] {
                assert!(!note.contains(debug), "{key}: {note}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_blocked_rollout_is_a_condition_and_an_event_of_the_deployment() {
    let world = World::start().await;
    world.cluster(1).await;
    world.settled(1).await;
    let version = json!({"spec": {"template": {"spec": {"version": "v1.35.0"}}}});
    world.merge::<MachineDeployment>("demo-md", version).await;
    let why = "Version v1.35.0 is newer than that of FakeControlPlane demo, v1.34.1: upgrade \
               FakeControlPlane demo first (\"KubernetesVersionSkew\" preflight check failed)";
    let reported = eventually("the condition", || async {
        let deployment = world.api::<MachineDeployment>().get("demo-md").await;
        let deployment = deployment.unwrap();
        let found = conditions::find(deployment.conditions(), "RollingOut").cloned();
        let found = found.ok_or("none")?;
        match found.message.contains(why) {
            true => Ok(found),
            false => Err(found.message),
        }
    })
    .await;
    assert_eq!(reported.status, "True");
    assert!(
        reported
            .message
            .contains("The roll-out is blocked because:"),
        "{}",
        reported.message
    );
    let found = reported_events(
        &world,
        &[
            ("MachineDeployment RolloutBlocked", 1),
            ("MachineSet PreflightCheckFailed", 1),
        ],
    )
    .await;
    assert_eq!(
        found["MachineDeployment RolloutBlocked"],
        [why],
        "{found:#?}"
    );
    assert_eq!(world.list::<Machine>().await.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_begin_and_the_end_of_a_pause_are_events_of_what_is_paused() {
    let world = World::start().await;
    world.cluster(1).await;
    world.settled(1).await;
    let machine = world.list::<Machine>().await.remove(0).name_any();
    let annotation = |value| json!({"metadata": {"annotations": {PAUSED_ANNOTATION: value}}});
    world
        .merge::<Machine>(&machine, annotation(json!("")))
        .await;
    reported_events(&world, &[("Machine Paused", 1)]).await;
    world
        .merge::<Machine>(&machine, annotation(json!(null)))
        .await;
    reported_events(&world, &[("Machine Resumed", 1)]).await;
    for (paused, event) in [(true, "Cluster Paused"), (false, "Cluster Resumed")] {
        let change = json!({"spec": {"paused": paused}});
        world.merge::<Cluster>("demo", change).await;
        reported_events(&world, &[(event, 1)]).await;
        eventually("the condition of the machine", || async {
            let machine = world.api::<Machine>().get(&machine).await.unwrap();
            let found = conditions::find(machine.conditions(), "Paused").unwrap();
            match (found.status == "True") == paused {
                true => Ok(()),
                false => Err(format!("{found:?}")),
            }
        })
        .await;
    }
    // A Cluster reports for all of its objects.
    let found = events(&world).await;
    assert_eq!(found["Machine Paused"].len(), 1, "{found:#?}");
    let begun = &found["Cluster Paused"][0];
    assert!(begun.contains("spec.paused is set to true"), "{begun}");
}
