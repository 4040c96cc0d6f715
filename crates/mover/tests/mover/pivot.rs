//! Moved objects, and objects that stay.

use serde_json::Value;

use crate::world::{LOCK, World, options};

/// Equal parts on both sides: labels, finalizers, spec and data, and field managers.
fn content(mut object: Value) -> Value {
    let metadata = object["metadata"].as_object_mut().unwrap();
    let kept = ["name", "labels", "annotations", "finalizers"];
    metadata
        .retain(|field, value| kept.contains(&field.as_str()) && *value != serde_json::json!({}));
    object.as_object_mut().unwrap().remove("status");
    object
}

fn owners(object: &Value) -> Vec<(String, String)> {
    let list = object["metadata"]["ownerReferences"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    list.iter()
        .map(|owner| (text(&owner["kind"]), text(&owner["uid"])))
        .collect()
}

async fn moved_and_alive(control_plane: usize, workers: usize) {
    let world = World::with_cluster(control_plane, workers).await;
    let (resources, ids) = (world.resources(), world.here.ids().await);
    let objects = world.here.objects().await;
    let writes = world.written();

    let report = world.go(&options()).await.unwrap();
    assert_eq!(report.clusters, ["demo"]);
    let moved = report.moves.iter().filter(|entry| entry.name != LOCK);
    assert_eq!(moved.count(), objects.len(), "{report:#?}");
    let stays: Vec<_> = report
        .stays
        .iter()
        .map(|entry| entry.name.as_str())
        .collect();
    assert_eq!(stays, ["unrelated"]);

    // The old side has nothing, the new one everything, and the cloud did not notice.
    assert_eq!(
        world.here.objects().await.into_keys().collect::<Vec<_>>(),
        [""; 0]
    );
    world.there.available(control_plane + workers).await;
    assert_eq!(world.there.ids().await, ids);
    assert_eq!(world.resources(), resources);
    assert_eq!(world.written(), writes, "the move wrote to the cloud");
    let copies = world.there.objects().await;
    assert_eq!(
        copies.keys().collect::<Vec<_>>(),
        objects.keys().collect::<Vec<_>>()
    );
    let uid = |objects: &std::collections::BTreeMap<String, Value>, name: &str| {
        objects[name]["metadata"]["uid"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    for (name, original) in &objects {
        assert_eq!(
            content(copies[name].clone()),
            content(original.clone()),
            "{name}"
        );
        let kinds = |list: &[(String, String)]| {
            list.iter()
                .map(|(kind, _)| kind.clone())
                .collect::<Vec<_>>()
        };
        let (before, after) = (owners(original), owners(&copies[name]));
        assert_eq!(kinds(&before), kinds(&after), "{name}");
        for ((_, old), (_, new)) in before.iter().zip(&after) {
            let owner = objects
                .keys()
                .find(|key| uid(&objects, key) == *old)
                .unwrap();
            assert_eq!(*new, uid(&copies, owner), "{name}");
        }
    }
    // Field managers decide which fields leave an object with its template: none was lost on the way.
    let managers = |object: &Value| {
        let list = object["metadata"]["managedFields"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let applied = list.iter().filter(|entry| entry["operation"] == "Apply");
        applied
            .map(|entry| (entry["manager"].to_string(), entry["fieldsV1"].to_string()))
            .collect::<std::collections::BTreeMap<_, _>>()
    };
    let machine = objects
        .keys()
        .find(|name| name.starts_with("Machine/demo-cp"))
        .unwrap();
    assert!(!managers(&objects[machine]).is_empty());
    assert_eq!(managers(&copies[machine]), managers(&objects[machine]));

    // The new side manages: a worker more, a worker less, and the end of all; the old side does nothing.
    world.there.scale(workers + 1).await;
    world.there.available(control_plane + workers + 1).await;
    world.there.scale(workers).await;
    world.there.available(control_plane + workers).await;
    assert_eq!(world.here.objects().await.len(), 0);
    world.deleted_without_a_trace().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_of_one_and_one_moves_and_is_managed_from_there() {
    moved_and_alive(1, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_of_three_and_two_moves_and_is_managed_from_there() {
    moved_and_alive(3, 2).await;
}
