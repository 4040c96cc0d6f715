//! Hints for the controllers about vanished or stopped servers of the simulated cloud. A real cloud has no such events
//! for users; there a list, read less often, shows the change.

use std::collections::BTreeSet;
use std::sync::Arc;

use openstack::Kind;
use simulator::data_plane::DataPlane;
use tokio::sync::{broadcast, watch};
use tokio_util::sync::CancellationToken;

/// Capacity for hints, above the number of kinds with hints.
const HINTS: usize = 16;

/// Sends a hint for each server of the [`DataPlane`] that vanishes or stops, until `stop`.
pub(super) fn of(
    mut world: watch::Receiver<Arc<DataPlane>>,
    stop: CancellationToken,
) -> broadcast::Sender<Kind> {
    let hints = broadcast::Sender::new(HINTS);
    let sender = hints.clone();
    let task = async move {
        let mut running = ids(&world.borrow_and_update());
        while world.changed().await.is_ok() {
            let now = ids(&world.borrow_and_update());
            if running.difference(&now).next().is_some() {
                // Before the first cloud is in use there are no receivers.
                let _ = sender.send(Kind::Servers);
            }
            running = now;
        }
    };
    tokio::spawn(async move { stop.run_until_cancelled(task).await });
    hints
}

fn ids(world: &DataPlane) -> BTreeSet<String> {
    let running = world.instances.iter().filter(|server| server.running);
    running.map(|server| server.id.clone()).collect()
}

#[cfg(test)]
mod tests {
    use simulator::data_plane::Instance;

    use super::*;

    fn world(servers: &[(&str, bool)]) -> Arc<DataPlane> {
        let instances = servers.iter().map(|(id, running)| Instance {
            id: (*id).to_owned(),
            running: *running,
            name: String::new(),
            project_id: String::new(),
            user_data: None,
            fixed_ips: Vec::new(),
            availability_zone: String::new(),
            metadata: Default::default(),
            hostname: String::new(),
            boot: 0,
            disk: 0,
            vcpus: 1,
            memory_mib: 1,
            disk_gib: 1,
            image: String::new(),
        });
        Arc::new(DataPlane {
            instances: instances.collect(),
            ..DataPlane::default()
        })
    }

    #[tokio::test]
    async fn a_server_that_vanishes_or_stops_is_a_hint_and_a_new_one_is_not() {
        let (sender, receiver) = watch::channel(world(&[("a", true), ("b", true)]));
        let stop = CancellationToken::new();
        let mut hints = of(receiver, stop.clone()).subscribe();
        for (servers, hinted) in [
            (vec![("a", true), ("b", true), ("c", true)], false),
            (vec![("a", true), ("b", true)], true),
            (vec![("a", true), ("b", false)], true),
            (vec![("b", false)], true),
        ] {
            sender.send(world(&servers)).unwrap();
            // The task runs on this thread: it has handled the change when this one continues.
            tokio::task::yield_now().await;
            tokio::task::yield_now().await;
            assert_eq!(hints.try_recv().is_ok(), hinted, "{servers:?}");
        }
        stop.cancel();
    }
}
