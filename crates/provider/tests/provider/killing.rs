//! After a kill in the middle of any write and a restart, the result is the same.

use std::collections::BTreeMap;

use api::core::v1beta2::{Cluster, Machine};
use api::infra::v1beta2::{OpenStackCluster, OpenStackMachine};
use api::k8s_openapi::api::core::v1::Secret;
use serde_json::json;

use crate::world::{World, eventually};
use simulator::cloud::Options as CloudOptions;

/// Runs until the connection is cut in the `nth` write; returns false if `done` (`created` or `deleted`) came
/// first.
async fn run_until_cut(world: &mut World, nth: u64, done: &str) -> bool {
    world.run();
    let writes = world.cut_at(nth);
    let world_ref = &*world;
    let was_cut = eventually("the cut", || async {
        if writes.reached() {
            return Ok(true);
        }
        let finished = match done {
            "created" => is_ready(world_ref).await,
            _ => world_ref
                .api::<OpenStackCluster>()
                .get_opt("demo")
                .await
                .unwrap()
                .is_none(),
        };
        if finished {
            Ok(false)
        } else {
            Err("still running".to_owned())
        }
    })
    .await;
    world.kill().await;
    world.cloud.on_write(|_| {});
    // Asked again: the last write is visible before it is counted.
    was_cut || writes.reached()
}

async fn is_ready(world: &World) -> bool {
    let cluster = world.api::<OpenStackCluster>().get("demo").await.unwrap();
    let cluster = cluster.status.unwrap_or_default().conditions;
    let mut ready = api::conditions::is_true(&cluster, "Ready");
    for name in ["cp-0", "md-0"] {
        let machine = world.api::<OpenStackMachine>().get(name).await.unwrap();
        let conditions = machine.status.unwrap_or_default().conditions;
        ready &= api::conditions::is_true(&conditions, "Ready");
    }
    ready
        && world
            .cloud
            .world()
            .borrow()
            .listeners
            .iter()
            .any(|l| l.members.len() == 1)
}

async fn wait_ready(world: &World) {
    eventually("cluster and machines", || async {
        match is_ready(world).await {
            true => Ok(()),
            false => Err(format!(
                "{:?} {:?}",
                world.cloud.resources(),
                world.writes()
            )),
        }
    })
    .await;
}

async fn everything(world: &World) {
    world.cluster(json!({})).await;
    world.machine("cp-0", true, json!({})).await;
    let spec = json!({"trunk": true, "tags": ["t"]});
    world.machine("md-0", false, spec).await;
}

async fn delete_all(world: &World) {
    for name in ["cp-0", "md-0"] {
        world.delete::<OpenStackMachine>(name).await;
    }
    world.delete::<OpenStackCluster>("demo").await;
}

/// Deletes what Cluster API deletes after the infrastructure.
async fn clear(world: &World) {
    for name in ["cp-0", "md-0"] {
        world.delete::<Machine>(name).await;
        world.delete::<Secret>(name).await;
    }
    world.delete::<Cluster>("demo").await;
}

#[tokio::test(start_paused = true)]
async fn killed_at_any_write_of_a_create_and_of_a_delete_it_ends_the_same() {
    let mut world = World::open(CloudOptions::default()).await;
    let mut expected = None;
    for nth in 1.. {
        everything(&world).await;
        let was_cut = run_until_cut(&mut world, nth, "created").await;
        world.run();
        wait_ready(&world).await;
        let created = world.cloud.resources();
        world.kill().await;
        let expected = expected.get_or_insert_with(|| created.clone());
        assert_eq!(created, *expected, "create, killed at write {nth}");

        delete_all(&world).await;
        let delete_was_cut = run_until_cut(&mut world, nth, "deleted").await;
        world.run();
        world.gone::<OpenStackCluster>("demo").await;
        assert_eq!(
            world.left_over(),
            BTreeMap::default(),
            "delete, killed at write {nth}"
        );
        world.kill().await;
        clear(&world).await;
        if !was_cut && !delete_was_cut {
            assert!(nth > 20, "only {nth} writes");
            break;
        }
    }
}
