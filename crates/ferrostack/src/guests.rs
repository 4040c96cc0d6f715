//! `simulate guests`: simulated guests on the servers of a cloud whose hypervisors run no guests.
//!
//! ```text
//!   the cloud's APIs ──poll──► Observation ──translate (pure)──► World ──► simulator::guest
//!                                                                  └─────► report (pure) ──► lines
//! ```
//!
//! The floating IPs in use are bound on this machine, so each must be a loopback address, or belong to a range that is
//! local in the network namespace of this process.

mod observe;
mod report;
mod translate;

use std::sync::Arc;

use anyhow::Context;
use openstack::session::{Session, SessionOptions};
use simulator::guest::{self, Guests, Outside};
use simulator::world::World;
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use self::observe::Observer;
use self::report::{Consoles, changes};
use crate::cli::SimulateGuests;
use crate::environment::Environment;
use crate::up::cloud;

/// The default of kubeadm, since the load balancers of a real cloud become ready slowly.
const JOIN_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(300);

/// Observes the cloud and boots guests on its servers until `shutdown`.
pub(crate) async fn run(
    args: &SimulateGuests,
    environment: &Environment,
    shutdown: CancellationToken,
    say: impl Fn(&str),
) -> anyhow::Result<()> {
    let config = cloud::find(&args.cloud, environment)?;
    let (name, url) = (config.name.clone(), config.auth_url.clone());
    let session = Session::connect(config, &SessionOptions::default())
        .await
        .with_context(|| format!("cloud `{name}`"))?;
    let mut observer = Observer::new(session);
    // The state of guests that are not in the first world is deleted, so the first world must be complete.
    let first = Arc::new(translate::world(&observer.read().await.with_context(
        || format!("cloud `{name}`: listing the servers of all projects needs an administrator"),
    )?));
    say(&format!(
        "guests on the servers of cloud {name} at {url}, read every {} s",
        args.interval.as_secs()
    ));
    let outside = Outside::with(args.bind_range.clone());
    changes(&World::default(), &first, &outside)
        .iter()
        .for_each(|line| say(line));
    let (sender, receiver) = watch::channel(first);
    let options = guest::Options {
        state_dir: args.state_dir.clone(),
        join_timeout: JOIN_TIMEOUT,
        outside: outside.clone(),
        ..guest::Options::default()
    };
    let guests = Guests::start(receiver, options, shutdown.clone());
    let follow = follow(args, &mut observer, &guests, &sender, &outside, &say);
    shutdown.run_until_cancelled(follow).await;
    guests.stopped().await;
    Ok(())
}

/// Publishes and reports changes of the cloud. A failed poll changes nothing.
async fn follow(
    args: &SimulateGuests,
    observer: &mut Observer,
    guests: &Guests,
    world: &watch::Sender<Arc<World>>,
    outside: &Outside,
    say: &impl Fn(&str),
) {
    let mut tick = tokio::time::interval(args.interval);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut consoles = Consoles::default();
    let mut failing = false;
    loop {
        tick.tick().await;
        match observer.read().await {
            Ok(observation) => {
                if std::mem::take(&mut failing) {
                    say("the cloud answers again");
                }
                let next = translate::world(&observation);
                let before = Arc::clone(&world.borrow());
                if next != *before {
                    changes(&before, &next, outside)
                        .iter()
                        .for_each(|line| say(line));
                    world.send_replace(Arc::new(next));
                }
            }
            Err(error) if !failing => {
                failing = true;
                say(&format!(
                    "reading the cloud failed, the guests are left unchanged: {error}"
                ));
            }
            Err(error) => tracing::debug!("reading the cloud still fails: {error}"),
        }
        let now = Arc::clone(&world.borrow());
        let lines = consoles.outcomes(&now, |server| guests.console(server));
        lines.iter().for_each(|line| say(line));
    }
}
