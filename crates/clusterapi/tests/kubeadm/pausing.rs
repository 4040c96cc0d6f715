//! Paused Clusters, and the objects that report the pause.

use api::bootstrap::v1beta2::KubeadmConfig;
use api::conditions;
use api::core::v1beta2::Cluster;
use serde_json::json;

use crate::world::{World, eventually};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_config_with_data_reports_begin_and_end_of_a_pause() {
    let world = World::start().await;
    world.cluster(1).await;
    world.settled(1).await;
    for paused in [true, false, true] {
        let change = json!({ "spec": { "paused": paused } });
        world.merge::<Cluster>("demo", change).await;
        eventually(&format!("Paused: {paused}"), || async {
            let configs = world.list::<KubeadmConfig>().await;
            let reports = |config: &KubeadmConfig| {
                let status = config.status.as_ref();
                let found =
                    status.is_some_and(|status| conditions::is_true(&status.conditions, "Paused"));
                found == paused
            };
            if configs.len() == 1 && configs.iter().all(reports) {
                Ok(())
            } else {
                Err(format!("{configs:#?}"))
            }
        })
        .await;
    }
}
