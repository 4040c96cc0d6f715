//! The whole life of a cluster, without kills, and with one at each n-th write.

use crate::steps::{Life, Wanted};
use crate::world::{Kills, World};

/// Creates 3 + 3, scales workers and control plane up and down, upgrades twice with a budget in the way, replaces the
/// template, and deletes; returns the number of kills.
async fn whole(kills: Kills) -> usize {
    let wanted = Wanted {
        control_plane: 3,
        workers: 3,
        version: "v1.33.4",
        template: "first",
    };
    let mut life = Life::begin(World::open(kills).await, wanted).await;
    life.scale(3, 10).await;
    life.scale(3, 2).await;
    life.scale(1, 2).await;
    life.scale(3, 2).await;
    life.roll_out("v1.34.2", "first", true).await;
    life.roll_out("v1.35.0", "first", true).await;
    life.roll_out("v1.35.0", "other", true).await;
    life.scale(1, 2).await;
    life.end().await
}

/// Returns the requested kills, or the default of CI.
fn asked() -> Vec<Kills> {
    let default = "api:41,cloud:11";
    let text = std::env::var("FERROSTACK_LIFE_KILLS").unwrap_or_else(|_| default.to_owned());
    let parsed = text.split(',').map(|one| {
        let (what, nth) = one.split_once(':').unwrap_or_default();
        match (what, nth.parse()) {
            ("api", Ok(nth)) => Kills::Api(nth),
            ("cloud", Ok(nth)) => Kills::Cloud(u64::try_from(nth).unwrap()),
            _ => panic!("FERROSTACK_LIFE_KILLS: {one} is not api:N or cloud:N"),
        }
    });
    parsed.collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_is_scaled_upgraded_and_deleted_and_etcd_never_loses_its_quorum() {
    assert_eq!(whole(Kills::None).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_at_every_nth_write_of_its_life_a_cluster_ends_the_same() {
    for kills in asked() {
        let count = whole(kills).await;
        eprintln!("{kills:?}: killed {count} times");
        assert!(count > 10, "{kills:?}: killed {count} times only");
    }
}
