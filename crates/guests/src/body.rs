//! Bodies of the servers: simulated guests, or machines of a guest runner.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use openstack::session::Session;
use simulator::data_plane::DataPlane;
use simulator::guest::{self, Guests, Outside};
use simulator::runner::Runners;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::consoles::ConsoleFiles;
use super::machines::Machines;
use super::observe::Observation;
use crate::Options;
use crate::program;

/// Default of kubeadm, since the load balancers of a real cloud become ready slowly.
const JOIN_TIMEOUT: Duration = Duration::from_secs(300);
/// Error: machines without a directory.
const HOMELESS: &str =
    "--guest-runner needs --state-dir, where the disks and consoles of the machines are kept";

/// Bodies of the servers.
pub(super) enum Body {
    Guests(Guests),
    Machines(Runners, Arc<Machines>, ConsoleFiles),
}

impl Body {
    /// Rejects [`Options`] with which nothing can be started, before any request to the cloud.
    pub(super) fn check(options: &Options) -> anyhow::Result<()> {
        match &options.program {
            Some(program) => {
                program.check()?;
                options.state_dir.as_ref().map(drop).context(HOMELESS)
            }
            None => Ok(()),
        }
    }

    /// Starts the guests or machines of the [`DataPlane`] of `seen`.
    pub(super) async fn start(
        options: &Options,
        world: watch::Receiver<Arc<DataPlane>>,
        outside: &Outside,
        seen: &Observation,
        shutdown: CancellationToken,
    ) -> anyhow::Result<Self> {
        let Some(program) = &options.program else {
            let options = guest::Options {
                state_dir: options.state_dir.clone(),
                join_timeout: JOIN_TIMEOUT,
                outside: outside.clone(),
                ..guest::Options::default()
            };
            return Ok(Self::Guests(Guests::start(world, options, shutdown)));
        };
        let state_dir = options.state_dir.clone().context(HOMELESS)?;
        let consoles = ConsoleFiles::new(&state_dir, options.write);
        let machines = Arc::new(Machines::default());
        machines.observe(seen);
        let servers = Arc::clone(&machines);
        let outside = outside.clone();
        let runners =
            program::machines(world, servers, program, state_dir, outside, shutdown).await?;
        Ok(Self::Machines(runners, machines, consoles))
    }

    /// Name of the bodies in the plural.
    pub(super) fn plural(&self) -> &'static str {
        match self {
            Self::Guests(_) => "guests",
            Self::Machines(..) => "machines",
        }
    }

    /// Location of the consoles.
    pub(super) fn welcome(&self) -> Option<String> {
        match self {
            Self::Guests(_) => None,
            Self::Machines(_, _, consoles) => Some(consoles.place()),
        }
    }

    /// Takes over an [`Observation`], before its world is published, since a starting machine reads its hardware.
    pub(super) fn observe(&self, seen: &Observation) {
        if let Self::Machines(_, machines, _) = self {
            machines.observe(seen);
        }
    }

    /// Writes the reports of machines to the cloud.
    pub(super) async fn write(&self, session: &Session, seen: &Observation) {
        if let Self::Machines(_, machines, _) = self {
            machines.write(session, seen).await;
        }
    }

    /// The console log of a server.
    pub(super) fn console(&self, server: &str) -> String {
        match self {
            Self::Guests(guests) => guests.console(server),
            Self::Machines(runners, ..) => runners.console(server),
        }
    }

    /// Reports of machines since the last call.
    pub(super) fn lines(&self) -> Vec<String> {
        match self {
            Self::Guests(_) => Vec::new(),
            Self::Machines(_, machines, _) => machines.lines(),
        }
    }

    /// Writes the consoles of machines to their files.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub(super) fn keep_consoles(&mut self) -> anyhow::Result<()> {
        match self {
            Self::Guests(_) => Ok(()),
            Self::Machines(runners, machines, consoles) => {
                consoles.follow(&machines.ids(), |server| runners.console(server))
            }
        }
    }

    /// Waits for the end of all guests and machines, after `shutdown`.
    pub(super) async fn stopped(&self) {
        match self {
            Self::Guests(guests) => guests.stopped().await,
            Self::Machines(runners, ..) => runners.stopped().await,
        }
    }
}
