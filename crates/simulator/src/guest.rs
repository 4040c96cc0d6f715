//! Simulated guests, booted from the user data of simulated servers.
//!
//! [`Guests::start`] follows the [`DataPlane`]. Every running instance boots once from its user data, as cloud-init (or,
//! with an image of Flatcar, Ignition) and kubeadm would do it: files are written, `runcmd` is searched for
//! `kubeadm init` or `kubeadm join`, and the node comes up or the console has the error.
//!
//! ```text
//!   DataPlane ──► fleet (new, gone or stopped instances) ──► boot: user_data, jinja, kubeadm (pure), pki
//!                │                                      │ init: cluster (a workload API server)
//!                ▼                                      │ join: discovery (TCP, TLS, token, CA hash)
//!             network: floating address:port ──TLS──► a control plane guest's API server
//! ```
//!
//! Fixed addresses exist inside the simulation only; *floating* addresses in 127.0.0.0/8 and in the ranges of
//! [`Outside`] are bound for real, so that kubectl and the controllers reach a workload cluster at its usual address.
//!
//! Not simulated: containers, the network between pods, and the data of etcd (the members are, see [`crate::etcd`]). A
//! node whose kubelet has `cloud-provider=external` waits for a cloud controller manager, which is not part of the
//! simulation: until then the node has a taint and no addresses, and the API server does not reach its kubelet.

mod api;
mod boot;
mod cluster;
mod console;
mod discovery;
mod fleet;
mod ignition;
mod jinja;
mod jws;
mod kubeadm;
mod kubelet;
mod network;
mod objects;
mod outside;
mod pki;
mod record;
mod shell;
mod user_data;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::boot::Shared;
use self::cluster::Clusters;
use self::console::Consoles;
use self::fleet::Fleet;
use self::record::StateDir;
use crate::data_plane::{DataPlane, Instance};
use crate::etcd::Etcd;

pub use self::outside::Outside;

/// Reads user data as the machine of this image would. Returns the paths of its files.
///
/// # Errors
/// Text of the error on the console.
pub fn read_user_data(raw: &[u8], image: &str) -> Result<Vec<String>, String> {
    let instance = Instance {
        id: "00000000-0000-4000-8000-000000000000".to_owned(),
        name: "machine".to_owned(),
        project_id: String::new(),
        user_data: None,
        fixed_ips: Vec::new(),
        availability_zone: "nova".to_owned(),
        metadata: BTreeMap::new(),
        hostname: "machine".to_owned(),
        running: true,
        boot: 0,
        disk: 0,
        vcpus: 2,
        memory_mib: 2048,
        disk_gib: 20,
        image: image.to_owned(),
    };
    let config = match ignition::is_flatcar(&instance) && !raw.is_empty() {
        true => ignition::boot(raw, &instance).map_err(|error| error.to_string()),
        false => {
            let facts = user_data::facts(&instance);
            user_data::parse(raw, &facts).map_err(|error| error.to_string())
        }
    };
    Ok(config?.files.into_keys().collect())
}

/// Maximum number of guests that boot concurrently; the others wait.
const BOOTS: usize = 16;

/// Options of the simulated guests.
#[derive(Clone, Debug)]
pub struct Options {
    /// Directory for workload clusters and booted guests, created if missing. `None`: in memory.
    pub state_dir: Option<PathBuf>,
    /// Time without heartbeats after which a Node is unreachable. The kube-controller-manager waits 50 s by default;
    /// the simulation is quicker.
    pub node_grace: Duration,
    /// Longest pause between two attempts of a kubeadm step (kubeadm: 5 s). The first pauses are shorter.
    pub retry: Duration,
    /// Timeout of `kubeadm init` for the control plane endpoint (kubeadm: 4 minutes).
    pub init_timeout: Duration,
    /// Timeout of `kubeadm join` for discovery (kubeadm: 5 minutes).
    pub join_timeout: Duration,
    /// Outside addresses that the guests serve and reach.
    pub outside: Outside,
    /// Reviewer for users and permissions unknown to the API servers of workload clusters.
    pub reviewer: Option<Arc<dyn apiserver::Reviewer>>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            state_dir: None,
            node_grace: Duration::from_secs(2),
            retry: Duration::from_secs(2),
            init_timeout: Duration::from_secs(240),
            join_timeout: Duration::from_secs(60),
            outside: Outside::default(),
            reviewer: None,
        }
    }
}

/// All simulated guests of a cloud. Cheap to clone. The guests run until the `shutdown` given to
/// [`start`](Self::start).
#[derive(Clone, Debug)]
pub struct Guests {
    consoles: Consoles,
    shared: Arc<Shared>,
    stopped: CancellationToken,
}

impl Guests {
    /// Follows `world` and runs its instances until `shutdown`. Must be called inside a tokio runtime.
    ///
    /// The first [`DataPlane`] must be complete unless empty: the state of other instances is removed from the state
    /// directory.
    pub fn start(
        world: watch::Receiver<Arc<DataPlane>>,
        options: Options,
        shutdown: CancellationToken,
    ) -> Self {
        let consoles = Consoles::default();
        let state = StateDir::new(options.state_dir.clone());
        let keepers = TaskTracker::new();
        let clusters = Clusters::new(
            state.clone(),
            options.node_grace,
            keepers.clone(),
            consoles.clone(),
            options.reviewer.clone(),
        );
        let (events, heard) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared {
            options,
            consoles: consoles.clone(),
            state,
            clusters,
            events,
            permits: Semaphore::new(BOOTS),
        });
        let fleet = Fleet::new(Arc::clone(&shared));
        let stopped = CancellationToken::new();
        let done = stopped.clone().drop_guard();
        tokio::spawn(async move {
            fleet.run(world, heard, shutdown).await;
            keepers.close();
            keepers.wait().await;
            drop(done);
        });
        Self {
            consoles,
            shared,
            stopped,
        }
    }

    /// Returns the console log of an instance: the output of cloud-init and kubeadm. Empty for an unknown instance.
    pub fn console(&self, instance_id: &str) -> String {
        self.consoles.text(instance_id)
    }

    /// Returns the [`Etcd`] of each served workload cluster.
    pub async fn etcds(&self) -> Vec<Arc<Etcd>> {
        self.shared.clusters.etcds().await
    }

    /// Waits until all tasks have ended after `shutdown` and all state is on disk.
    pub async fn stopped(&self) {
        self.stopped.cancelled().await;
    }
}

#[cfg(test)]
mod tests;
