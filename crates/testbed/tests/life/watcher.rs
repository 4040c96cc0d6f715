//! Invariants at every moment of the life of a cluster.

use std::sync::Arc;
use std::time::Duration;

use api::core::v1beta2::Machine;
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use parking_lot::Mutex;
use testbed::NAMESPACE;
use tokio::task::JoinHandle;

use crate::world::World;

/// How often everything is looked at.
const PERIOD: Duration = Duration::from_millis(15);

/// The most machines that may exist now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Most machines of the control plane, including those being deleted; also the most members of etcd.
    pub(crate) control_plane: usize,
    /// Workers that are not being deleted.
    pub(crate) workers: usize,
    /// True if etcd must have its quorum.
    pub(crate) quorum: bool,
}

/// Task that checks the invariants all the time, and records violations.
pub(crate) struct Watcher {
    limits: Arc<Mutex<Limits>>,
    broken: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Watcher {
    pub(crate) fn start(world: &World, limits: Limits) -> Self {
        let limits = Arc::new(Mutex::new(limits));
        let broken = Arc::new(Mutex::new(Vec::new()));
        let (bounds, notes) = (Arc::clone(&limits), Arc::clone(&broken));
        let (client, guests) = (world.client.clone(), world.guests.clone());
        let task = tokio::spawn(async move {
            let machines: Api<Machine> = Api::namespaced(client, NAMESPACE);
            // The first member is listed before it runs.
            let mut has_begun = false;
            loop {
                tokio::time::sleep(PERIOD).await;
                let before = *bounds.lock();
                let Ok(list) = machines.list(&ListParams::default()).await else {
                    continue;
                };
                let etcds = guests.etcds().await;
                let members: Vec<_> = etcds.iter().flat_map(|etcd| etcd.members()).collect();
                let quorum = etcds.iter().all(|etcd| etcd.takes_writes().is_ok());
                has_begun |= quorum && !members.is_empty();
                let names = |keep: &dyn Fn(&Machine) -> bool| -> Vec<String> {
                    let kept = list.items.iter().filter(|machine| keep(machine));
                    kept.map(ResourceExt::name_any).collect()
                };
                let plane = names(&|machine: &Machine| machine.is_control_plane());
                let workers = names(&|machine: &Machine| {
                    !machine.is_control_plane() && !machine.is_deleting()
                });
                let mut notes = notes.lock();
                if plane.len() > before.control_plane {
                    notes.push(format!("control plane machines {plane:?}: {before:?}"));
                }
                if workers.len() > before.workers {
                    notes.push(format!("workers {workers:?}: {before:?}"));
                }
                if members.len() > before.control_plane {
                    notes.push(format!("etcd has {members:?}: {before:?}"));
                }
                if before.quorum && has_begun && !quorum {
                    notes.push(format!("etcd has no quorum: {members:?}"));
                }
            }
        });
        Self {
            limits,
            broken,
            task,
        }
    }

    pub(crate) fn allow(&self, limits: Limits) {
        *self.limits.lock() = limits;
    }

    /// Fails if anything was wrong so far.
    pub(crate) fn check(&self, step: &str) {
        assert!(!self.task.is_finished(), "{step}: nobody watches");
        let broken = self.broken.lock();
        let first = &broken[..broken.len().min(5)];
        assert!(broken.is_empty(), "{step}: {first:#?}");
    }
}
