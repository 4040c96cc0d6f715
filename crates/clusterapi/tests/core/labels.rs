//! Labels and annotations that follow the template of a MachineDeployment.

use std::collections::BTreeMap;

use api::core::v1beta2::{Machine, MachineDeployment, MachineSet};
use api::kube::ResourceExt;
use api::kube::api::{DynamicObject, ListParams, ObjectMeta, Patch, PatchParams};
use serde_json::{Value, json};

use crate::world::{World, eventually, uids};

/// Metadata of the machines and of the objects that they refer to.
async fn objects(world: &World) -> Vec<ObjectMeta> {
    let machines = world.list::<Machine>().await.into_iter();
    let mut all: Vec<_> = machines.map(|machine| machine.metadata).collect();
    for kind in ["FakeMachine", "FakeConfig"] {
        let fakes = world.fake(kind).list(&ListParams::default()).await;
        let fakes = fakes.unwrap().items.into_iter();
        all.extend(fakes.map(|fake| fake.metadata));
    }
    all
}

/// Waits until all of the objects have, or none of them has, a label and an annotation.
async fn all_have(world: &World, name: &str, expected: bool) {
    eventually(&format!("{name}: {expected}"), || async {
        let objects = objects(world).await;
        let has = |map: &Option<BTreeMap<String, String>>| {
            map.as_ref().is_some_and(|map| map.contains_key(name))
        };
        let good = objects
            .iter()
            .all(|object| has(&object.labels) == expected && has(&object.annotations) == expected);
        if good && objects.len() == 6 {
            Ok(())
        } else {
            Err(format!("{objects:#?}"))
        }
    })
    .await;
}

async fn template(world: &World, name: &str, value: Value) {
    let metadata = json!({ "labels": { name: value }, "annotations": { name: value } });
    let change = json!({ "spec": { "template": { "metadata": metadata } } });
    world.merge::<MachineDeployment>("demo-md", change).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_leaves_the_template_leaves_machines_and_what_they_refer_to() {
    let world = World::start().await;
    world.cluster(2).await;
    world.settled(2).await;
    let before = uids(&world.list::<Machine>().await);
    template(&world, "tier", json!("gold")).await;
    all_have(&world, "tier", true).await;
    // Labels of users stay, also beside labels of the template.
    for machine in before.keys() {
        let mine = json!({ "metadata": { "labels": { "mine": "1" } } });
        world.merge::<Machine>(machine, mine).await;
    }
    template(&world, "tier", Value::Null).await;
    all_have(&world, "tier", false).await;
    let machines = world.list::<Machine>().await;
    for machine in &machines {
        assert_eq!(machine.labels()["mine"], "1");
        assert_eq!(machine.labels()["plain"], "stays");
        assert!(machine.labels().contains_key("machine-template-hash"));
    }
    assert_eq!(uids(&machines), before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_label_of_the_first_template_leaves_as_well() {
    let world = World::start().await;
    world.cluster(2).await;
    world.settled(2).await;
    let change = json!({ "spec": { "template": { "metadata": { "labels": { "plain": null } } } } });
    world.merge::<MachineDeployment>("demo-md", change).await;
    eventually("the label to leave", || async {
        let objects = objects(&world).await;
        let has = |object: &ObjectMeta| object.labels.as_ref().unwrap().contains_key("plain");
        if objects.iter().any(has) {
            Err(format!("{objects:#?}"))
        } else {
            Ok(())
        }
    })
    .await;
}

/// State left by a former version: without server-side apply, all fields under the name of its client.
async fn written_by_updates(world: &World) {
    let update = |metadata: &ObjectMeta| {
        let mut entries = metadata.managed_fields.clone().unwrap_or_default();
        // Fields written at the creation and fields applied later are now one entry.
        entries.retain(|entry| {
            let created = entry.manager.as_deref() == Some("ferrostack-machineset");
            entry.subresource.is_none() && !created
        });
        for entry in &mut entries {
            let ours = entry.manager.as_deref().unwrap_or_default();
            if ours.starts_with("capi-machineset") {
                entry.manager = Some("ferrostack-machineset".to_owned());
                entry.operation = Some("Update".to_owned());
            }
        }
        let version = metadata.resource_version.clone();
        json!({ "metadata": { "managedFields": entries, "resourceVersion": version } })
    };
    let params = PatchParams::default();
    for machine in world.list::<Machine>().await {
        let patch = update(&machine.metadata);
        assert!(!patch.to_string().contains("capi-machineset"));
        world.merge::<Machine>(&machine.name_any(), patch).await;
    }
    for kind in ["FakeMachine", "FakeConfig"] {
        let api = world.fake(kind);
        let fakes: Vec<DynamicObject> = api.list(&ListParams::default()).await.unwrap().items;
        for fake in fakes {
            let patch = Patch::Merge(update(&fake.metadata));
            api.patch(&fake.name_any(), &params, &patch).await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_label_that_was_set_without_server_side_apply_leaves_as_well() {
    let world = World::start().await;
    world.cluster(2).await;
    world.settled(2).await;
    template(&world, "tier", json!("gold")).await;
    all_have(&world, "tier", true).await;
    world.kill().await;
    written_by_updates(&world).await;
    world.run();
    let applied = || async {
        let objects = objects(&world).await;
        let applied = |object: &ObjectMeta| {
            let entries = object.managed_fields.iter().flatten();
            let managers: Vec<_> = entries.filter_map(|entry| entry.manager.clone()).collect();
            managers
                .iter()
                .any(|name| name.starts_with("capi-machineset"))
        };
        if objects.iter().all(applied) {
            Ok(())
        } else {
            Err(format!("{objects:#?}"))
        }
    };
    eventually("all to be applied", applied).await;
    template(&world, "tier", Value::Null).await;
    all_have(&world, "tier", false).await;
}

/// The labels and the managers of the labels of the MachineSet, and the labels of its template.
async fn of_set(world: &World) -> Value {
    let set = world.list::<MachineSet>().await.remove(0);
    let entries = set.metadata.managed_fields.clone().unwrap_or_default();
    let mut managers = Vec::new();
    for entry in entries {
        let fields = serde_json::to_value(entry.fields_v1).unwrap();
        if fields["f:metadata"]["f:labels"].is_object() {
            managers.push(json!([entry.manager, entry.operation]));
        }
    }
    let template = set.spec.template.metadata.clone();
    json!([set.labels(), template.and_then(|it| it.labels), managers])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn labels_leave_a_machine_set_with_its_deployment_alone_as_their_manager() {
    let world = World::start().await;
    world.cluster(1).await;
    world.settled(1).await;
    let applied = json!([["capi-machinedeployment", "Apply"]]);
    for former in [false, true] {
        if former {
            // As a former version left it: without server-side apply.
            let set = world.list::<MachineSet>().await.remove(0);
            let mut entries = set.metadata.managed_fields.clone().unwrap();
            for entry in &mut entries {
                if entry.manager.as_deref() == Some("capi-machinedeployment") {
                    entry.manager = Some("ferrostack-machinedeployment".to_owned());
                    entry.operation = Some("Update".to_owned());
                }
            }
            let patch = json!({ "metadata": { "managedFields": entries } });
            world.merge::<MachineSet>(&set.name_any(), patch).await;
        }
        for tier in [json!("gold"), Value::Null] {
            template(&world, "tier", tier.clone()).await;
            eventually("the label to come or leave", || async {
                let found = of_set(&world).await;
                let is_there = [&found[0]["tier"], &found[1]["tier"]];
                if is_there == [&tier, &tier] && found[2] == applied {
                    Ok(())
                } else {
                    Err(format!("{found}"))
                }
            })
            .await;
        }
    }
}
