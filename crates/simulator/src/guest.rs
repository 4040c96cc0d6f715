//! Simulated guests, booted from the user data of simulated servers.
//!
//! [`Guests::start`] follows the [`World`]. Every running instance is booted once from its user data, as
//! cloud-init and kubeadm would do it: files are written, `runcmd` is searched for `kubeadm init` or
//! `kubeadm join`, and the node comes up or the console says why not.
//!
//! ```text
//!   World ──► fleet (what is new, gone, stopped?) ──► boot: user_data, jinja, kubeadm (pure), pki
//!                │                                      │ init: cluster (a workload API server)
//!                ▼                                      │ join: discovery (TCP, TLS, token, CA hash)
//!             network: floating address:port ──TLS──► a control plane guest's API server
//! ```
//!
//! Fixed addresses exist inside the simulation only; *floating* addresses inside 127.0.0.0/8 are bound
//! for real, so that kubectl and the controllers reach a workload cluster as they would anywhere.
//!
//! What is not simulated: containers, the network between pods, etcd itself (an `etcd-<node>` pod stands
//! for each member), and the taint `node.cloudprovider.kubernetes.io/uninitialized` of
//! `cloud-provider=external`, which would stay forever as long as no cloud controller manager runs.

#![allow(dead_code)] // wired in the next step

mod jinja;
mod jws;
mod kubeadm;
mod pki;
mod user_data;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::world::World;

/// How guests are simulated.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where workload clusters and what has been booted are kept, so that they survive the process.
    /// None: in memory. The directory is created when missing.
    pub state_dir: Option<PathBuf>,
    /// How long a kubelet may be silent before its Node counts as unreachable. The kube-controller-manager
    /// waits 50 s by default; the simulation is quicker.
    pub node_grace: Duration,
    /// The longest pause between two tries of a kubeadm step (kubeadm: 5 s). The first pauses are shorter.
    pub retry: Duration,
    /// How long `kubeadm init` waits for the control plane endpoint (kubeadm: 4 minutes).
    pub init_timeout: Duration,
    /// How long `kubeadm join` tries to discover the cluster (kubeadm: 5 minutes).
    pub join_timeout: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            state_dir: None,
            node_grace: Duration::from_secs(2),
            retry: Duration::from_secs(2),
            init_timeout: Duration::from_secs(240),
            join_timeout: Duration::from_secs(60),
        }
    }
}

/// All simulated guests of a cloud. Cheap to clone; they run until the `shutdown` given to
/// [`start`](Self::start).
#[derive(Clone, Debug)]
pub struct Guests {
    stopped: CancellationToken,
}

impl Guests {
    /// Follows `world` and runs its instances until `shutdown`. Must be called inside a tokio runtime.
    pub fn start(
        world: watch::Receiver<Arc<World>>,
        options: Options,
        shutdown: CancellationToken,
    ) -> Self {
        let _ = (world, options, shutdown);
        Self {
            stopped: CancellationToken::new(),
        }
    }

    /// The console log of an instance: what cloud-init and kubeadm printed. Empty for an unknown instance.
    pub fn console(&self, instance_id: &str) -> String {
        let _ = instance_id;
        String::new()
    }

    /// Waits until everything has stopped after `shutdown` and what must be on disk is there.
    pub async fn stopped(&self) {
        self.stopped.cancelled().await;
    }
}
