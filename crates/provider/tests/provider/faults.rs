//! Failures of a twentieth of all requests, those of logins and lists among them, over the lives of several clusters.

use api::core::v1beta2::{Cluster, Machine};
use api::infra::v1beta2::{OpenStackCluster, OpenStackMachine};
use kube::ResourceExt;
use serde_json::json;

use crate::lives::failures;
use crate::world::{World, eventually, listed};

const CLUSTERS: [&str; 5] = ["a", "b", "c", "d", "e"];
/// Share of the requests that fail.
const SHARE: f64 = 0.05;

/// From now on, a share of all requests fails, in one way as often as in another.
async fn begin(world: &World) {
    let mut all = failures();
    all.push(json!({"status": 401}));
    all.push(json!({"status": 413, "retry_after": 2}));
    let share = SHARE / f64::from(u32::try_from(all.len()).unwrap());
    for mut failure in all {
        failure["probability"] = json!(share);
        world.fault(failure).await;
    }
}

/// Waits until all clusters are ready with these machines in each, and nothing is there twice.
async fn settled(world: &World, machines: &[&str], volumes: usize) {
    eventually("all objects", || async {
        let clusters = world.list::<OpenStackCluster>().await.into_iter();
        let clusters = clusters.map(|it| (it.name_any(), it.status.unwrap_or_default().conditions));
        let all = world.list::<OpenStackMachine>().await.into_iter();
        let all = all.map(|it| (it.name_any(), it.status.unwrap_or_default().conditions));
        for (name, conditions) in clusters.chain(all) {
            if !api::conditions::is_true(&conditions, "Ready") {
                return Err(format!("{name}: {}", listed(&conditions)));
            }
        }
        Ok(())
    })
    .await;
    let machines = machines.len() * CLUSTERS.len();
    let expected = [
        ("server", machines),
        ("volume", volumes),
        ("network", CLUSTERS.len()),
        ("subnet", CLUSTERS.len()),
        ("router", CLUSTERS.len()),
        ("loadbalancer", CLUSTERS.len()),
        ("floatingip", CLUSTERS.len()),
    ];
    // What is there twice after a lost answer goes with one of the next looks.
    eventually("nothing twice", || async {
        let left = world.left_over();
        let mine = left.get("demo").cloned().unwrap_or_default();
        let is = |type_: &str| mine.get(type_).copied().unwrap_or_default();
        let fits = expected.iter().all(|(type_, count)| is(type_) == *count);
        fits.then_some(()).ok_or(format!("{mine:?}"))
    })
    .await;
}

async fn machines(world: &World, suffix: &str, control_plane: bool, spec: serde_json::Value) {
    for cluster in CLUSTERS {
        let name = format!("{cluster}-{suffix}");
        world
            .machine_of(cluster, &name, control_plane, spec.clone())
            .await;
    }
}

async fn without(world: &World, suffix: &str) {
    let names = CLUSTERS.map(|cluster| format!("{cluster}-{suffix}"));
    for name in &names {
        world.delete::<OpenStackMachine>(name).await;
    }
    for name in &names {
        world.gone::<OpenStackMachine>(name).await;
        world.delete::<Machine>(name).await;
    }
}

#[tokio::test(start_paused = true)]
async fn clusters_live_and_go_while_a_twentieth_of_all_requests_fails() {
    let world = World::start().await;
    begin(&world).await;
    // Created.
    for cluster in CLUSTERS {
        world.cluster_called(cluster, json!({})).await;
    }
    let disk = json!({"rootVolume": {"sizeGiB": 20}});
    machines(&world, "cp-0", true, disk.clone()).await;
    machines(&world, "md-0", false, json!({})).await;
    settled(&world, &["cp-0", "md-0"], CLUSTERS.len()).await;
    // Scaled.
    machines(&world, "cp-1", true, disk.clone()).await;
    machines(&world, "md-1", false, json!({})).await;
    settled(
        &world,
        &["cp-0", "cp-1", "md-0", "md-1"],
        2 * CLUSTERS.len(),
    )
    .await;
    // Upgraded: each machine after another one is there.
    let image = json!({"filter": {"name": "flatcar-stable"}});
    machines(&world, "md-2", false, json!({"image": image})).await;
    without(&world, "md-0").await;
    without(&world, "md-1").await;
    machines(&world, "cp-2", true, disk).await;
    without(&world, "cp-0").await;
    settled(&world, &["cp-1", "cp-2", "md-2"], 2 * CLUSTERS.len()).await;
    // Deleted.
    for name in ["cp-1", "cp-2", "md-2"] {
        without(&world, name).await;
    }
    for cluster in CLUSTERS {
        world.delete::<OpenStackCluster>(cluster).await;
    }
    for cluster in CLUSTERS {
        world.gone::<OpenStackCluster>(cluster).await;
        world.delete::<Cluster>(cluster).await;
    }
    world.mend().await;
    // Requests that are dropped have no status.
    let rejected = world.rejected().await;
    assert!(
        (5..60).contains(&rejected),
        "{rejected} requests were rejected"
    );
    assert_eq!(world.left_over(), Default::default());
}
