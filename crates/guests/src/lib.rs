//! Guests, or machines of a guest runner, on the servers of a cloud whose hypervisors run nothing.
//!
//! ```text
//!   the cloud's APIs ──poll──► Observation ──translate (pure)──► DataPlane ──► simulator::guest
//!          ▲                        │                              └─────► report (pure) ──► lines
//!          │                        └──hardware (pure)──► machines ──► simulator::runner
//!          └───────────── machines that end, or cannot start ◄──┘           └──► files with consoles
//! ```
//!
//! The floating IPs in use are bound on this machine, so each must be a loopback address, or belong to a range local in
//! the network namespace of this process.

mod body;
mod boots;
mod consoles;
mod hardware;
mod machines;
mod observe;
pub mod program;
mod report;
mod translate;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use ipnet::IpNet;
use openstack::config::CloudConfig;
use openstack::session::{Session, SessionOptions};
use simulator::data_plane::DataPlane;
use simulator::guest::Outside;
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use self::body::Body;
use self::observe::{Observation, Observer};
use self::program::Program;
use self::report::{Consoles, Idle, changes};

pub use self::consoles::Write;

/// Choice of guests or machines, and the directory of their state.
#[derive(Clone, Debug)]
pub struct Options {
    /// Guest runner [`Program`]; simulated guests without one.
    pub program: Option<Program>,
    /// Directory for the state of guests, or for disks and consoles of machines.
    pub state_dir: Option<PathBuf>,
    /// Ranges outside of loopback addresses, local on this machine.
    pub bind_range: Vec<IpNet>,
    /// Interval between two polls of the cloud.
    pub interval: Duration,
    /// Writes the consoles of machines.
    pub write: Write,
}

impl Options {
    /// Rejects options with which nothing can be started.
    ///
    /// # Errors
    /// If the [`Program`] cannot be executed, or its machines have no directory.
    pub fn check(&self) -> anyhow::Result<()> {
        Body::check(self)
    }
}

/// Observes the cloud and runs its servers as guests or machines until `shutdown`.
///
/// # Errors
/// If the cloud does not answer at first, or nothing can be started.
pub async fn run(
    config: CloudConfig,
    options: &Options,
    shutdown: CancellationToken,
    say: impl Fn(&str),
) -> anyhow::Result<()> {
    let (name, url) = (config.name.clone(), config.auth_url.clone());
    let session = Session::connect(config, &SessionOptions::default())
        .await
        .with_context(|| format!("cloud `{name}`"))?;
    let mut observer = Observer::new(&session, options.program.is_some());
    // The state of servers that are not in the first world is deleted, so the first world must be complete.
    let seen = observer.read().await.with_context(|| {
        format!("cloud `{name}`: listing the servers of all projects needs an administrator")
    })?;
    let first = Arc::new(translate::world(&seen));
    let outside = Outside::with(options.bind_range.clone());
    let (sender, receiver) = watch::channel(Arc::clone(&first));
    let body = Body::start(options, receiver, &outside, &seen, shutdown.clone()).await?;
    say(&format!(
        "{} on the servers of cloud {name} at {url}, read every {} s",
        body.plural(),
        options.interval.as_secs()
    ));
    if let Some(line) = body.welcome() {
        say(&line);
    }
    let mut follower = Follower {
        session,
        observer,
        outside,
        body,
        world: sender,
        idle: Idle::default(),
        outcomes: Consoles::default(),
        failing: Failing::default(),
    };
    follower.publish(&DataPlane::default(), first, &seen, &say);
    let mut tick = tokio::time::interval(options.interval);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let follow = async {
        loop {
            tick.tick().await;
            follower.poll(&say).await;
        }
    };
    shutdown.run_until_cancelled(follow).await;
    follower.body.stopped().await;
    Ok(())
}

/// Follows the cloud with an [`Observer`]. A failed poll changes nothing.
struct Follower {
    session: Session,
    observer: Observer,
    outside: Outside,
    body: Body,
    world: watch::Sender<Arc<DataPlane>>,
    idle: Idle,
    outcomes: Consoles,
    failing: Failing,
}

/// Failures of the last poll that have been reported.
#[derive(Default)]
struct Failing {
    cloud: bool,
    consoles: bool,
}

impl Follower {
    /// Reads the cloud once, and writes the reports of machines to the cloud.
    async fn poll(&mut self, say: &impl Fn(&str)) {
        match self.observer.read().await {
            Ok(seen) => {
                if std::mem::take(&mut self.failing.cloud) {
                    say("the cloud answers again");
                }
                let next = Arc::new(translate::world(&seen));
                let before = Arc::clone(&self.world.borrow());
                self.body.observe(&seen);
                self.publish(&before, next, &seen, say);
                self.body.write(&self.session, &seen).await;
            }
            Err(error) if !self.failing.cloud => {
                self.failing.cloud = true;
                say(&format!(
                    "reading the cloud failed, the {} are left unchanged: {error}",
                    self.body.plural()
                ));
            }
            Err(error) => tracing::debug!("reading the cloud still fails: {error}"),
        }
        let now = Arc::clone(&self.world.borrow());
        let lines = self
            .outcomes
            .outcomes(&now, |server| self.body.console(server));
        self.body
            .lines()
            .iter()
            .chain(&lines)
            .for_each(|line| say(line));
        match self.body.keep_consoles() {
            Ok(()) => self.failing.consoles = false,
            Err(error) if !self.failing.consoles => {
                self.failing.consoles = true;
                say(&error.to_string());
            }
            Err(_) => {}
        }
    }

    fn publish(
        &mut self,
        before: &DataPlane,
        next: Arc<DataPlane>,
        seen: &Observation,
        say: &impl Fn(&str),
    ) {
        let idle = self.idle.lines(seen);
        let changes = changes(before, &next, &self.outside);
        idle.iter().chain(&changes).for_each(|line| say(line));
        self.world.send_if_modified(|world| {
            let differs = **world != *next;
            *world = next;
            differs
        });
    }
}
