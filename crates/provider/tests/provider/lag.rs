//! Lists that lag behind writes by some seconds: nothing is doubled, and nothing is left.

use std::collections::BTreeMap;
use std::time::Duration;

use api::core::v1beta2::Machine;
use api::infra::v1beta2::{OpenStackCluster, OpenStackMachine};
use serde_json::json;
use simulator::cloud::Options as CloudOptions;

use crate::world::World;

type Resources = BTreeMap<String, BTreeMap<String, usize>>;

/// What the cloud has after the stages of a cluster's life, with lists that lag.
async fn life(milliseconds: u64) -> [Resources; 4] {
    let mut world = World::open(CloudOptions::default()).await;
    let lag = json!({"list_lag_milliseconds": milliseconds});
    world.settings(lag).await;
    world.run();
    let pause = || tokio::time::sleep(Duration::from_secs(30));
    world.cluster(json!({})).await;
    world.machine("cp-0", true, json!({})).await;
    world.machine("md-0", false, json!({})).await;
    world.cluster_ready().await;
    for name in ["cp-0", "md-0"] {
        world.machine_ready(name).await;
    }
    pause().await;
    let created = world.left_over();
    let spec = json!({"trunk": true, "rootVolume": {"sizeGiB": 10}});
    world.machine("md-1", false, spec).await;
    world.machine_ready("md-1").await;
    pause().await;
    let scaled = world.left_over();
    world.delete_machine("md-0").await;
    pause().await;
    let shrunk = world.left_over();
    for name in ["cp-0", "md-1"] {
        world.delete::<OpenStackMachine>(name).await;
        world.gone::<OpenStackMachine>(name).await;
        world.delete::<Machine>(name).await;
    }
    world.delete::<OpenStackCluster>("demo").await;
    world.gone::<OpenStackCluster>("demo").await;
    [created, scaled, shrunk, world.left_over()]
}

#[tokio::test(start_paused = true)]
async fn lists_that_lag_behind_writes_double_nothing_and_leave_nothing() {
    let expected = life(0).await;
    assert_eq!(expected[3], Resources::new());
    for milliseconds in [500, 2000, 5000] {
        assert_eq!(life(milliseconds).await, expected, "lag {milliseconds}");
    }
}
