//! Machines: for each server that is ACTIVE, a program that runs as long as the server does.
//!
//! [`Runners::start`] follows the [`World`]. The program, a *guest runner*, is whatever brings a machine up: a script that
//! makes namespaces, a hypervisor, a container. It reads one JSON document and prints what a serial console would show
//! (docs/simulator.md has the contract).
//!
//! ```text
//!   World ──► fleet ──► one guest for each server ──► process (its group) ──► console
//!                │            └── document: metadata, config drive
//!                ├── service: the metadata service, by source address
//!                └── forward: floating address:port ──TCP──► the machines' addresses
//! ```
//!
//! What the machines do comes back through [`Servers`]: one that ends is SHUTOFF, one that cannot be started is in ERROR,
//! and members of load balancers that do not answer are reported.

mod console;
mod document;
mod fleet;
mod forward;
mod guest;
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
use crate::guest::Outside;
use crate::machine::Servers;
use crate::world::World;

/// How machines are run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The guest runner.
    pub program: PathBuf,
    /// Where the machines' disks are kept.
    pub state_dir: PathBuf,
    /// How long a machine that is switched off may take before it is killed.
    pub patience: Duration,
    /// How often members of load balancers are tried.
    pub probe: Duration,
    /// The addresses on which floating IPs are served.
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

/// All machines of a cloud. Cheap to clone; they run until the `shutdown` given to [`start`](Self::start).
#[derive(Clone, Debug)]
pub struct Runners {
    consoles: Consoles,
    stopped: CancellationToken,
}

impl Runners {
    /// Follows `world` and runs its instances until `shutdown`; `metadata` serves the metadata service. Must be called
    /// inside a tokio runtime.
    ///
    /// # Errors
    /// The state directory cannot be used.
    pub async fn start(
        world: watch::Receiver<Arc<World>>,
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

    /// What a machine has printed. Empty for an unknown instance.
    #[must_use]
    pub fn console(&self, instance: &str) -> String {
        self.consoles.text(instance)
    }

    /// Waits until every machine has been switched off after `shutdown`.
    pub async fn stopped(&self) {
        self.stopped.cancelled().await;
    }
}

#[cfg(test)]
mod tests;
