//! Machines: for each ACTIVE server, a program that runs as long as the server does.
//!
//! [`Runners::start`] follows the [`DataPlane`]. The program, a *guest runner*, starts a machine in any way: a script that
//! creates namespaces, a hypervisor, a container. The runner reads one JSON document and prints the output of the
//! serial console (docs/project/simulator.md has the contract).
//!
//! ```text
//!   DataPlane ──► fleet ──► one guest for each server ──► process (its group) ──► console
//!                │            ├── document: metadata, config drive
//!                │            └── disks: the volumes while it runs
//!                ├── service: the metadata service, by source address
//!                └── forward: floating address:port ──TCP──► the machines' addresses (hosts)
//! ```
//!
//! Machines report through [`Servers`]: a server whose machine ends is SHUTOFF, one whose machine cannot be started is
//! in ERROR, and members of load balancers are reported when they begin or cease to accept connections.

mod console;
mod disks;
mod document;
mod fleet;
mod forward;
mod guest;
mod hosts;
mod metadata;
mod process;
mod service;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use self::console::Consoles;
use self::fleet::Fleet;
use crate::data_plane::DataPlane;
use crate::guest::Outside;
use crate::machine::Servers;

/// Options of the runners.
#[derive(Clone, Debug)]
pub struct Options {
    /// Guest runner.
    pub program: PathBuf,
    /// Directory with the disks of the machines.
    pub state_dir: PathBuf,
    /// Grace period between SIGTERM and SIGKILL of a machine that is powered off.
    pub patience: Duration,
    /// Interval of health checks of load balancer members.
    pub probe: Duration,
    /// Addresses for serving floating IPs.
    pub outside: Outside,
}

impl Options {
    /// Runs `program`, with disks in `state_dir`.
    #[must_use]
    pub fn new(program: PathBuf, state_dir: PathBuf) -> Self {
        Self {
            program,
            state_dir,
            patience: Duration::from_secs(30),
            probe: Duration::from_secs(2),
            outside: Outside::default(),
        }
    }
}

/// All machines of a cloud. Cheap to clone. The machines run until the `shutdown` given to [`start`](Self::start).
#[derive(Clone, Debug)]
pub struct Runners {
    consoles: Consoles,
    stopped: CancellationToken,
}

impl Runners {
    /// Follows `world` and runs its instances until `shutdown`; `metadata` is the listener of the metadata service.
    /// Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// The state directory cannot be used.
    pub async fn start(
        world: watch::Receiver<Arc<DataPlane>>,
        servers: Arc<dyn Servers>,
        metadata: TcpListener,
        options: Options,
        shutdown: CancellationToken,
    ) -> std::io::Result<Self> {
        let consoles = Consoles::default();
        let url = format!("http://{}", metadata.local_addr()?);
        let fleet = Fleet::open(servers.clone(), consoles.clone(), options, url).await?;
        let stopped = CancellationToken::new();
        let done = stopped.clone().drop_guard();
        let serving = tokio::spawn(service::serve(
            metadata,
            world.clone(),
            servers,
            shutdown.clone(),
        ));
        tokio::spawn(async move {
            fleet.run(world, shutdown).await;
            let _ = serving.await;
            drop(done);
        });
        Ok(Self { consoles, stopped })
    }

    /// Returns the console log of an instance. Empty for an unknown instance.
    #[must_use]
    pub fn console(&self, instance: &str) -> String {
        self.consoles.text(instance)
    }

    /// Waits until every machine has been powered off after `shutdown`.
    pub async fn stopped(&self) {
        self.stopped.cancelled().await;
    }
}

#[cfg(test)]
mod tests;
