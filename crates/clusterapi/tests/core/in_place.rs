//! Rolling updates in place.

use std::collections::BTreeMap;

use api::conditions::{self, Type};
use api::core::v1beta2::{Machine, MachineDeployment};
use api::k8s_openapi::api::core::v1::Node;
use api::kube::ResourceExt;
use api::kube::api::{DynamicObject, ListParams, Patch};
use api::names::{IN_PLACE_UPDATE_ANNOTATION, LEFT_NODE_ANNOTATION, UPDATE_IN_PROGRESS_ANNOTATION};
use serde_json::{Value, json};

use crate::world::{BROKEN, REBUILDS, World, eventually, machine_template, uids};

/// A template with this spec.
fn template(name: &str, spec: &Value) -> Value {
    let mut template = machine_template(name);
    template["spec"]["template"]["spec"] = spec.clone();
    template
}

/// Three workers, which are to be updated by this strategy to a template with this spec.
async fn change(world: &World, strategy: &str, spec: &Value) {
    world.apply([template("demo-md-2", spec)]).await;
    let change = json!({
        "metadata": { "annotations": { IN_PLACE_UPDATE_ANNOTATION: strategy } },
        "spec": {
            "rollout": { "strategy": { "type": "RollingUpdate", "rollingUpdate": { "maxUnavailable": 1 } } },
            "template": { "spec": {
                "version": "v1.34.1", "infrastructureRef": { "name": "demo-md-2" },
            }},
        },
    });
    world.merge::<MachineDeployment>("demo-md", change).await;
}

fn image(name: &str) -> Value {
    json!({ "flavor": "small", "image": name })
}

async fn three() -> World {
    let world = World::start().await;
    world.cluster(3).await;
    world.settled(3).await;
    world
}

async fn fakes(world: &World) -> Vec<DynamicObject> {
    let api = world.fake("FakeMachine");
    api.list(&ListParams::default()).await.unwrap().items
}

/// UIDs of the servers, and the providerIDs, by name.
async fn servers(world: &World) -> BTreeMap<String, (String, String)> {
    let of = |object: &DynamicObject| {
        let id = object.data["spec"]["providerID"]
            .as_str()
            .unwrap_or_default();
        (object.name_any(), (object.uid().unwrap(), id.to_owned()))
    };
    fakes(world).await.iter().map(of).collect()
}

async fn nodes(world: &World) -> BTreeMap<String, String> {
    let nodes = world.nodes().await;
    let uid = |node: &Node| node.uid().unwrap();
    nodes
        .iter()
        .map(|node| (node.name_any(), uid(node)))
        .collect()
}

/// Waits until all machines have the new image, and asserts that each was rebuilt once and nothing was replaced.
async fn updated(world: &World) {
    eventually("the new image", || async {
        let fakes = fakes(world).await;
        let new = fakes.iter().filter(|it| it.data["spec"]["image"] == "new");
        let machines = world.list::<Machine>().await;
        let busy = machines
            .iter()
            .filter(|it| it.annotations().contains_key(UPDATE_IN_PROGRESS_ANNOTATION));
        let (new, busy) = (new.count(), busy.count());
        if new == 3 && busy == 0 {
            Ok(())
        } else {
            Err(format!("{new} new, {busy} busy"))
        }
    })
    .await;
    world.settled(3).await;
    for fake in fakes(world).await {
        let rebuilds = &fake.annotations()[REBUILDS];
        assert_eq!(rebuilds.split(',').count(), 1, "{rebuilds}");
        assert_eq!(
            fake.annotations()["cluster.x-k8s.io/cloned-from-name"],
            "demo-md-2"
        );
    }
    for machine in world.list::<Machine>().await {
        let left = machine.annotations().get(LEFT_NODE_ANNOTATION);
        assert_eq!(left, None);
        assert!(machine.status.clone().unwrap().deletion.is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn machines_and_servers_stay_and_nodes_join_again() {
    let world = three().await;
    let (machines, before) = (uids(&world.list::<Machine>().await), servers(&world).await);
    let nodes_before = nodes(&world).await;
    change(&world, "Require", &image("new")).await;
    updated(&world).await;
    assert_eq!(uids(&world.list::<Machine>().await), machines);
    assert_eq!(servers(&world).await, before);
    let nodes_after = nodes(&world).await;
    for (name, uid) in &nodes_before {
        assert_ne!(nodes_after[name], *uid, "Node {name} is the former one");
    }
    assert!(
        world
            .gone
            .lock()
            .iter()
            .all(|it| !it.starts_with("FakeMachine/"))
    );
}

#[tokio::test(start_paused = true)]
async fn controllers_killed_at_every_write_rebuild_each_server_once() {
    for nth in [1, 4] {
        let world = three().await;
        world.kill().await;
        let before = servers(&world).await;
        change(&world, "Prefer", &image("new")).await;
        let kills = world.killed_at_every(nth, || updated(&world)).await;
        assert!(
            kills > 20 / nth,
            "only {kills} kills at each write number {nth}"
        );
        assert_eq!(
            servers(&world).await,
            before,
            "killed at each write number {nth}"
        );
    }
}

/// Message of a condition of the deployment.
async fn message(world: &World, type_: Type) -> String {
    let deployment = world
        .api::<MachineDeployment>()
        .get("demo-md")
        .await
        .unwrap();
    let found = conditions::find(deployment.conditions(), type_);
    found.map(|it| it.message.clone()).unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_done_in_place_is_refused_under_require_with_the_field() {
    let world = three().await;
    let before = servers(&world).await;
    change(&world, "Require", &json!({ "flavor": "large" })).await;
    eventually("the refusal", || async {
        let text = message(&world, Type::RollingOut).await;
        let is_refused = text.contains("spec.flavor differs") && text.contains("Prefer or Never");
        if is_refused { Ok(()) } else { Err(text) }
    })
    .await;
    assert_eq!(servers(&world).await, before);
    assert!(
        fakes(&world)
            .await
            .iter()
            .all(|it| it.data["spec"]["flavor"] == "small")
    );
    // With another word the machines are replaced.
    let prefer = json!({ "metadata": { "annotations": { IN_PLACE_UPDATE_ANNOTATION: "Never" } } });
    world.merge::<MachineDeployment>("demo-md", prefer).await;
    world.settled(3).await;
    eventually("other servers", || async {
        let now = servers(&world).await;
        let left = now.keys().filter(|name| before.contains_key(*name)).count();
        if left == 0 && now.len() == 3 {
            Ok(())
        } else {
            Err(format!("{left} left"))
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_done_in_place_is_replaced_under_prefer() {
    let world = three().await;
    let before = servers(&world).await;
    change(&world, "Prefer", &json!({ "flavor": "large" })).await;
    eventually("other servers", || async {
        let large = fakes(&world).await;
        let large = large
            .iter()
            .filter(|it| it.data["spec"]["flavor"] == "large")
            .count();
        if large == 3 {
            Ok(())
        } else {
            Err(format!("{large} large"))
        }
    })
    .await;
    world.settled(3).await;
    assert!(
        servers(&world)
            .await
            .keys()
            .all(|name| !before.contains_key(name))
    );
}

async fn break_one(world: &World) -> String {
    let name = fakes(world).await[0].name_any();
    let broken = json!({ "metadata": { "annotations": { BROKEN: "true" } } });
    let api = world.fake("FakeMachine");
    let patch = Patch::Merge(broken);
    api.patch(&name, &Default::default(), &patch).await.unwrap();
    name
}

#[tokio::test(start_paused = true)]
async fn a_failed_update_ends_in_a_replacement_under_prefer() {
    let world = three().await;
    let before = servers(&world).await;
    let broken = break_one(&world).await;
    change(&world, "Prefer", &image("new")).await;
    eventually("the replacement", || async {
        let fakes = fakes(&world).await;
        let new = fakes.iter().filter(|it| it.data["spec"]["image"] == "new");
        let there = fakes.iter().any(|it| it.name_any() == broken);
        let new = new.count();
        if new == 3 && !there {
            Ok(())
        } else {
            Err(format!("{new} new"))
        }
    })
    .await;
    world.settled(3).await;
    let after = servers(&world).await;
    let kept = before.keys().filter(|name| after.contains_key(*name));
    assert_eq!(kept.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_failed_update_stops_with_its_cause_under_require() {
    let world = three().await;
    let before = servers(&world).await;
    for _ in 0..3 {
        let names: Vec<_> = before.keys().cloned().collect();
        for name in names {
            let broken = json!({ "metadata": { "annotations": { BROKEN: "true" } } });
            let patch = Patch::Merge(broken);
            let api = world.fake("FakeMachine");
            api.patch(&name, &Default::default(), &patch).await.unwrap();
        }
    }
    change(&world, "Require", &image("new")).await;
    eventually("the cause", || async {
        let text = message(&world, Type::Reconciled).await;
        if text.contains("disk is broken") {
            Ok(())
        } else {
            Err(text)
        }
    })
    .await;
    assert_eq!(servers(&world).await, before);
    let rebuilt = fakes(&world).await;
    let rebuilt = rebuilt
        .iter()
        .filter(|it| it.annotations().contains_key(REBUILDS));
    assert_eq!(rebuilt.count(), 1, "the others are left alone");
}
