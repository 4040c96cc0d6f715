//! Labels and annotations that follow the template of a KubeadmControlPlane.

use api::bootstrap::v1beta2::KubeadmConfig;
use api::controlplane::v1beta2::KubeadmControlPlane;
use api::core::v1beta2::Machine;
use api::kube::api::{ListParams, ObjectMeta};
use serde_json::{Value, json};

use crate::world::{World, eventually};

async fn objects(world: &World) -> Vec<ObjectMeta> {
    let machines = world.list::<Machine>().await.into_iter();
    let configs = world.list::<KubeadmConfig>().await.into_iter();
    let fakes = world.fake("FakeMachine").list(&ListParams::default()).await;
    machines
        .map(|machine| machine.metadata)
        .chain(configs.map(|config| config.metadata))
        .chain(fakes.unwrap().items.into_iter().map(|fake| fake.metadata))
        .collect()
}

async fn template(world: &World, tier: Value) {
    let metadata = json!({ "labels": { "tier": tier }, "annotations": { "tier": tier } });
    let change = json!({ "spec": { "machineTemplate": { "metadata": metadata } } });
    world.merge::<KubeadmControlPlane>("demo", change).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_leaves_the_template_leaves_machines_and_what_they_refer_to() {
    let world = World::start().await;
    world.cluster(1).await;
    world.settled(1).await;
    let names = world.machine_names().await;
    for (tier, expected) in [(json!("gold"), true), (Value::Null, false)] {
        template(&world, tier).await;
        eventually(&format!("tier: {expected}"), || async {
            let objects = objects(&world).await;
            let has = |object: &ObjectMeta| {
                let (labels, annotations) = (&object.labels, &object.annotations);
                let in_labels = labels.as_ref().is_some_and(|map| map.contains_key("tier"));
                let in_annotations = annotations
                    .as_ref()
                    .is_some_and(|map| map.contains_key("tier"));
                in_labels == expected && in_annotations == expected
            };
            if objects.len() == 3 && objects.iter().all(has) {
                Ok(())
            } else {
                Err(format!("{objects:#?}"))
            }
        })
        .await;
    }
    assert_eq!(world.machine_names().await, names);
}
