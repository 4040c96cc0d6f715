//! Leader election on a Lease, so that of several managers one works and the others stand by.
//!
//! The Lease is taken, renewed and released by kube-lease-manager. Around it stands a second look at
//! the same Lease, once every retry period, for what that crate leaves to its caller: a holder that
//! can no longer reach the API server must stop before its Lease runs out, a holder whose Lease was
//! taken from it must stop at once, and a Lease that was given back is taken without waiting for the
//! time at which it would have run out. As in client-go, how old a record is counts from when this
//! process saw it change, so that the clocks of two machines need not agree for that.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client};
use kube_lease_manager::{LeaseManager, LeaseManagerBuilder, LeaseManagerError};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::task::AbortOnDropHandle;
use tracing::{debug, info, warn};

use self::observed::{Observed, Standing};

mod observed;

/// How a manager stands for election; the times are those of the Go managers' `--leader-elect-*` flags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Namespace of the Lease.
    pub namespace: String,
    /// Name of the Lease.
    pub name: String,
    /// Who stands for election: no two processes have the same.
    pub identity: String,
    /// How long the others wait for a holder that does not renew.
    pub lease_duration: Duration,
    /// How long a holder goes on working without having seen that it renewed.
    pub renew_deadline: Duration,
    /// How often the Lease is looked at, and renewed.
    pub retry_period: Duration,
}

/// Why a manager cannot stand for election.
#[derive(Debug, thiserror::Error)]
pub enum ElectionError {
    /// The times do not fit together.
    #[error(
        "leader election needs whole seconds with lease duration > renew deadline > retry period > 0, and has {lease:?}, {renew:?} and {retry:?}"
    )]
    Times {
        /// The lease duration.
        lease: Duration,
        /// The renew deadline.
        renew: Duration,
        /// The retry period.
        retry: Duration,
    },
}

/// Why a leader is no longer one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Lost {
    /// Another one holds the Lease, or nobody.
    #[error("the {lease} is held by {holder} now")]
    Taken {
        /// Which Lease.
        lease: String,
        /// Who holds it.
        holder: String,
    },
    /// The Lease could not be renewed in time.
    #[error("the {lease} could not be renewed for {deadline:?}")]
    Expired {
        /// Which Lease.
        lease: String,
        /// The renew deadline.
        deadline: Duration,
    },
}

/// A won election: the Lease is renewed in the background until this is dropped or released.
#[derive(Debug)]
pub struct Leader {
    manager: Arc<LeaseManager>,
    keeping: AbortOnDropHandle<Lost>,
    config: Config,
}

impl Config {
    /// Whether the times fit together, as client-go wants them.
    ///
    /// # Errors
    /// [`ElectionError::Times`].
    pub fn check(&self) -> Result<(), ElectionError> {
        let (lease, renew, retry) = (self.lease_duration, self.renew_deadline, self.retry_period);
        let whole = [lease, renew, retry].iter().all(|t| t.subsec_nanos() == 0);
        if whole && lease > renew && renew > retry && !retry.is_zero() {
            return Ok(());
        }
        Err(ElectionError::Times {
            lease,
            renew,
            retry,
        })
    }

    fn title(&self) -> String {
        format!("Lease {}/{}", self.namespace, self.name)
    }

    fn expired(&self) -> Lost {
        Lost::Expired {
            lease: self.title(),
            deadline: self.renew_deadline,
        }
    }
}

/// Waits until this process holds the Lease. Cancelling the wait is safe.
///
/// An API server that does not answer, or refuses, is asked again every retry period.
///
/// # Errors
/// When the configuration makes no sense.
pub async fn elected(client: Client, config: Config) -> Result<Leader, ElectionError> {
    config.check()?;
    let mut lease = Watched::new(client.clone(), config);
    let mut holder = None;
    loop {
        match lease.look().await {
            Ok(()) => {}
            Err(problem) => warn!("leader election on {}: {problem}", lease.config.title()),
        }
        match lease
            .observed
            .standing(&lease.config.identity, Instant::now())
        {
            Standing::Unknown | Standing::Taken => {
                let now_held_by = lease.observed.holder();
                if now_held_by != holder {
                    info!(
                        "standing by: {} is held by {now_held_by:?}",
                        lease.config.title()
                    );
                    holder = now_held_by;
                }
            }
            Standing::Free | Standing::Ours => {
                if let Some(manager) = lease.take(client.clone()).await {
                    return Ok(Leader::new(manager, lease));
                }
                continue;
            }
        }
        sleep(lease.config.retry_period).await;
    }
}

impl Leader {
    fn new(manager: LeaseManager, lease: Watched) -> Self {
        let manager = Arc::new(manager);
        let config = lease.config.clone();
        let keeping = tokio::spawn(keep(Arc::clone(&manager), lease));
        Self {
            manager,
            keeping: AbortOnDropHandle::new(keeping),
            config,
        }
    }

    /// Returns when the Lease is lost. May be called again when it was cancelled.
    pub async fn lost(&mut self) -> Lost {
        (&mut self.keeping)
            .await
            // A task that panicked renews nothing.
            .unwrap_or_else(|_| self.config.expired())
    }

    /// Gives the Lease back, so that another one need not wait for it to run out.
    pub async fn release(self) {
        let title = self.config.title();
        drop(self.keeping);
        match timeout(self.config.renew_deadline, self.manager.release()).await {
            Ok(Ok(())) => info!("released {title}"),
            Ok(Err(problem)) => warn!("{title} was not released: {problem}"),
            Err(_) => warn!("{title} was not released in time"),
        }
    }
}

/// Renews the Lease until it is lost.
async fn keep(manager: Arc<LeaseManager>, mut lease: Watched) -> Lost {
    let retry = lease.config.retry_period;
    let renewing = async {
        loop {
            match manager.changed().await {
                Ok(leading) => debug!(leading, "the Lease has changed"),
                Err(problem) => {
                    warn!("the Lease was not renewed: {problem}");
                    sleep(retry).await;
                }
            }
        }
    };
    let watching = async {
        loop {
            if let Err(problem) = lease.look().await {
                warn!("leader election on {}: {problem}", lease.config.title());
            }
            if let Some(lost) = lease.lost() {
                return lost;
            }
            sleep(retry).await;
        }
    };
    tokio::select! {
        lost = watching => lost,
        never = renewing => never,
    }
}

/// The Lease as this process sees it.
#[derive(Debug)]
struct Watched {
    api: Api<Lease>,
    config: Config,
    observed: Observed,
}

impl Watched {
    fn new(client: Client, config: Config) -> Self {
        Self {
            api: Api::namespaced(client, &config.namespace),
            config,
            observed: Observed::default(),
        }
    }

    /// Reads the Lease; an answer that does not come within a retry period is an error.
    async fn look(&mut self) -> Result<(), String> {
        let read = timeout(
            self.config.retry_period,
            self.api.get_opt(&self.config.name),
        );
        let lease = read
            .await
            .map_err(|_| "no answer from the API server".to_owned())?
            .map_err(|source| crate::controller::chain(&source))?;
        self.observed
            .see(lease.and_then(|lease| lease.spec), Instant::now());
        Ok(())
    }

    /// Takes a Lease that is free, and makes sure that nobody took it at the same moment.
    async fn take(&mut self, client: Client) -> Option<LeaseManager> {
        let Config {
            namespace,
            name,
            identity,
            lease_duration,
            retry_period,
            ..
        } = self.config.clone();
        let (duration, retry) = (lease_duration.as_secs(), retry_period.as_secs());
        let attempt = async {
            let manager = LeaseManagerBuilder::new(client, name)
                .with_namespace(namespace)
                .with_identity(&identity)
                .with_field_manager(&identity)
                .with_duration(duration)
                // It renews this long before the end: once every retry period.
                .with_grace(duration.saturating_sub(retry))
                .build()
                .await?;
            while !manager.changed().await? {}
            Ok::<_, LeaseManagerError>(manager)
        };
        let manager = match timeout(lease_duration, attempt).await {
            Ok(Ok(manager)) => manager,
            Ok(Err(problem)) => {
                warn!("{} was not taken: {problem}", self.config.title());
                sleep(retry_period).await;
                return None;
            }
            Err(_) => return None,
        };
        // Two that find a Lease run out may both believe for a moment that it is theirs: kube-lease-manager clears it
        // without asking whether it has changed. After its longest pause (one second) there is one holder.
        sleep(retry_period).await;
        if let Err(problem) = self.look().await {
            warn!("leader election on {}: {problem}", self.config.title());
            return None;
        }
        let standing = self.observed.standing(&identity, Instant::now());
        (standing == Standing::Ours).then_some(manager)
    }

    /// Whether the Lease that was ours is so no longer.
    fn lost(&self) -> Option<Lost> {
        let now = Instant::now();
        match self.observed.standing(&self.config.identity, now) {
            Standing::Ours if self.observed.age(now) < self.config.renew_deadline => None,
            Standing::Ours => Some(self.config.expired()),
            _ => Some(Lost::Taken {
                lease: self.config.title(),
                holder: self
                    .observed
                    .holder()
                    .unwrap_or_else(|| "nobody".to_owned()),
            }),
        }
    }
}

#[cfg(test)]
mod tests;
