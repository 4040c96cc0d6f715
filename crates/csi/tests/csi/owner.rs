//! The uid of the cluster in the metadata of what is created, and of what is adopted.

use csi::{ClusterUid, Options};
use grpc::Code;
use serde_json::json;
use simulator::cloud::Options as CloudOptions;

use crate::world::{World, new_volume, refused};

const UID: &str = "cinder.csi.openstack.org/cluster-uid";

async fn world(uid: &str) -> World {
    let options = Options {
        cluster: "kubernetes".to_owned(),
        cluster_uid: ClusterUid::default(),
        ..Options::default()
    };
    options.cluster_uid.set(uid.to_owned());
    World::open_on(CloudOptions::default(), options).await
}

#[tokio::test(start_paused = true)]
async fn what_is_created_has_the_uid_and_a_namesakes_volume_is_not_adopted() {
    let world = world("one").await;
    let created = world.volume("pvc-1", 1).await;
    let volume = world.one("volumes", &created.volume_id).await;
    assert_eq!(volume["metadata"][UID], "one");
    // Asked again, it is the same.
    assert_eq!(world.volume("pvc-1", 1).await.volume_id, created.volume_id);
    // Another cluster of this name has made it.
    let metadata = json!({"metadata": {UID: "two"}});
    let path = world.volumes(&format!("/volumes/{}/metadata", created.volume_id));
    world.request("POST", &path, metadata).await;
    let again = world.create(new_volume("pvc-1", 1)).await;
    let words =
        "of cluster kubernetes with the uid two, not of cluster kubernetes with the uid one";
    refused(again, Code::AlreadyExists, words);
}

#[tokio::test(start_paused = true)]
async fn a_double_of_a_replica_that_did_not_know_the_uid_is_deleted() {
    let world = world("one").await;
    let first = world.volume("pvc-1", 1).await;
    let mut volume = world.one("volumes", &first.volume_id).await;
    volume["metadata"].as_object_mut().unwrap().remove(UID);
    let double = json!({"volume": {"name": "pvc-1", "size": 1, "metadata": volume["metadata"]}});
    world
        .request("POST", &world.volumes("/volumes"), double)
        .await;
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    assert_eq!(world.all("volumes").await.len(), 2);
    assert_eq!(world.volume("pvc-1", 1).await.volume_id, first.volume_id);
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    assert_eq!(world.all("volumes").await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_was_created_before_the_uid_was_known_is_adopted() {
    let world = world("one").await;
    let metadata = json!({"cinder.csi.openstack.org/cluster": "kubernetes"});
    let volume = json!({"volume": {"name": "pvc-1", "size": 1, "metadata": metadata}});
    let former = world
        .request("POST", &world.volumes("/volumes"), volume)
        .await;
    let adopted = world.volume("pvc-1", 1).await;
    assert_eq!(former["volume"]["id"], adopted.volume_id);
}
