//! Killing the controllers at each of their writes, and starting them again.

use super::*;

/// Intervals between kills, in writes: the controllers are killed at every nth write, so that different writes are
/// the last ones.
const WRITES: [usize; 3] = [1, 2, 5];
/// Changes, upgrade and deletion take much longer.
const FEWER: [usize; 2] = [1, 4];

#[tokio::test(start_paused = true)]
async fn controllers_killed_at_every_write_build_a_topology_and_create_nothing_twice() {
    for nth in WRITES {
        let world = World::open().await;
        world.topology(&[("md-0", 1)]).await;
        let built = [("md-0", workers(1, "v1.33.1", "small"))];
        let kills = world
            .killed_at_every(nth, || world.built("v1.33.1", &built))
            .await;
        assert!(
            kills > 20 / nth,
            "only {kills} kills at each write number {nth}"
        );
        let gone = world.gone.lock().clone();
        assert!(gone.is_empty(), "created in vain: {gone:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn controllers_killed_at_every_write_change_upgrade_and_delete_a_topology() {
    for nth in FEWER {
        let world = World::start().await;
        world.topology(&[("md-0", 1)]).await;
        world
            .built("v1.33.1", &[("md-0", workers(1, "v1.33.1", "small"))])
            .await;
        world.kill().await;
        world
            .change(json!({ "variables": [{ "name": "flavor", "value": "large" }] }))
            .await;
        let changed = [("md-0", workers(1, "v1.33.1", "large"))];
        let kills = world
            .killed_at_every(nth, || world.built("v1.33.1", &changed))
            .await;
        assert!(
            kills >= 10 / nth,
            "only {kills} kills at each write number {nth}"
        );
        world.change(json!({ "version": "v1.34.1" })).await;
        let upgraded = [("md-0", workers(1, "v1.34.1", "large"))];
        let kills = world
            .killed_at_every(nth, || world.built("v1.34.1", &upgraded))
            .await;
        assert!(
            kills >= 10 / nth,
            "only {kills} kills at each write number {nth}"
        );
        world.delete::<Cluster>("demo").await;
        let kills = world
            .killed_at_every(nth, || world.gone::<Cluster>("demo"))
            .await;
        assert!(
            kills >= 5 / nth,
            "only {kills} kills at each write number {nth}"
        );
        world.cleared().await;
    }
}
