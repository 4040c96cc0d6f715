//! After a kill at any write and a restart, the result is the same.

use api::openstack::v1alpha1::OpenStack;
use serde_json::json;
use testbed::killed_at_every;

use crate::world::{CLOUD, World, full};

#[tokio::test(start_paused = true)]
async fn killed_at_every_write_a_cloud_is_made_changed_and_deleted() {
    let world = World::open().await;
    let mut spec = full();
    spec["services"] = json!({"octavia": {"enabled": true}});
    world.create(spec).await;
    let kills = killed_at_every(1, |fuse| world.controller_with(fuse), || world.ready()).await;
    // With 6 writes to RabbitMQ, and 37 to Keystone: a project, five users with two roles each, five services with three
    // endpoints each, and the edge's URL. Logins are none.
    assert!(kills > 105, "{kills}");
    let endpoints = world.identity("/v3/endpoints");
    assert_eq!(endpoints["endpoints"].as_array().map(Vec::len), Some(18));
    assert_eq!(
        world.broker("/api/permissions").as_array().map(Vec::len),
        Some(5)
    );
    world.assert_at_rest().await;
    let (before, uid) = (world.owned().await, world.cloud().await.status.unwrap().uid);

    let config = json!({"scheduler": {"workers": 3}});
    world
        .changed(json!({"spec": {"services": {"nova": {"config": config}}}}))
        .await;
    let kills = killed_at_every(1, |fuse| world.controller_with(fuse), || world.ready()).await;
    assert!(kills > 3, "{kills}");
    world.assert_at_rest().await;
    // One more configuration file: the one before the change.
    assert_eq!(world.owned().await.len(), before.len() + 1);
    assert_eq!(world.cloud().await.status.unwrap().uid, uid);

    world.delete(true).await;
    let gone = || world.management.gone::<OpenStack>(CLOUD);
    let kills = killed_at_every(1, |fuse| world.controller_with(fuse), gone).await;
    assert!(kills > 60, "{kills}");
    assert_eq!(world.owned().await, Vec::<String>::new());
}
