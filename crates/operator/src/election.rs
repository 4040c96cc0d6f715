//! Leader election by a Lease: of several managers one is active and the others stand by.
//!
//! kube-lease-manager acquires, renews and releases the Lease, and leaves three duties to its caller: a leader that
//! cannot reach the API server must stop before the Lease expires, a leader without the Lease must stop at once, and a
//! released Lease is acquired without waiting for the expiry. Therefore this module also reads the Lease once every
//! retry period. As in client-go, the age of a record counts from the observed change, so the clocks of the machines
//! need not agree.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::Client;
use kube_lease_manager::{LeaseManager, LeaseManagerBuilder, LeaseManagerError};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::task::AbortOnDropHandle;
use tracing::{debug, info, warn};

use self::observed::{Observed, Standing};

use crate::client::Api;

mod observed;

/// Configuration of leader election. The durations are the `--leader-elect-*` flags of the Go managers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Namespace of the Lease.
    pub namespace: String,
    /// Name of the Lease.
    pub name: String,
    /// Identity of the candidate; must be unique.
    pub identity: String,
    /// Time that candidates wait for a leader to renew.
    pub lease_duration: Duration,
    /// Time that a leader continues without a successful renewal.
    pub renew_deadline: Duration,
    /// Interval in which the Lease is read and renewed.
    pub retry_period: Duration,
}

/// Reason why a manager cannot take part in the election.
#[derive(Debug, thiserror::Error)]
pub enum ElectionError {
    /// Durations that contradict each other.
    #[error(
        "leader election needs whole seconds with lease duration > renew deadline > retry period > 0, and has {}, {} and {}",
        seconds(lease),
        seconds(renew),
        seconds(retry)
    )]
    Times {
        /// Lease duration.
        lease: Duration,
        /// Renew deadline.
        renew: Duration,
        /// Retry period.
        retry: Duration,
    },
}

fn seconds(duration: &Duration) -> String {
    format!("{} s", duration.as_secs_f64())
}

/// Reason why a manager is no longer the leader.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Lost {
    /// The Lease has another holder, or none.
    #[error("the {lease} is held by {holder} now")]
    Taken {
        /// Namespace and name of the Lease.
        lease: String,
        /// Identity of the holder.
        holder: String,
    },
    /// The Lease could not be renewed in time.
    #[error("the {lease} could not be renewed for {}", seconds(deadline))]
    Expired {
        /// Namespace and name of the Lease.
        lease: String,
        /// Renew deadline.
        deadline: Duration,
    },
}

/// Leadership. The Lease is renewed in the background until the `Leader` is dropped or released.
#[derive(Debug)]
pub struct Leader {
    manager: Arc<LeaseManager>,
    keeping: AbortOnDropHandle<Lost>,
    config: Config,
}

impl Config {
    /// Validates the durations as client-go does.
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

/// Waits until this process is the leader. The wait can be cancelled.
///
/// Failed requests are repeated every retry period.
///
/// # Errors
/// Invalid configuration.
pub async fn elected(client: Client, config: Config) -> Result<Leader, ElectionError> {
    config.check()?;
    let mut lease = Watched::new(client.clone(), config);
    let mut holder = None;
    loop {
        match lease.read().await {
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
                        "standing by: {} is held by {}",
                        lease.config.title(),
                        now_held_by.as_deref().unwrap_or("nobody")
                    );
                    holder = now_held_by;
                }
            }
            Standing::Free | Standing::Ours => {
                if let Some(manager) = lease.take(client.clone()).await {
                    return Ok(Leader::new(manager, lease));
                }
                // A failed attempt has waited already.
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

    /// Waits until the Lease is lost. Cancellation-safe: can be called again.
    pub async fn lost(&mut self) -> Lost {
        (&mut self.keeping)
            .await
            // After a panic, the Lease is no longer renewed.
            .unwrap_or_else(|_| self.config.expired())
    }

    /// Releases the Lease, so that other candidates need not wait for the expiry.
    pub async fn release(self) {
        let title = self.config.title();
        // Renewals end first: one could take the Lease again.
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
            if let Err(problem) = lease.read().await {
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

/// Lease as last read by this process.
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

    /// Reads the Lease; no answer within a retry period is an error.
    async fn read(&mut self) -> Result<(), String> {
        let read = timeout(
            self.config.retry_period,
            self.api.get_opt(&self.config.name),
        );
        let lease = read
            .await
            .map_err(|_| "no answer from the API server".to_owned())?
            .map_err(|source| crate::words::chain(&source))?;
        self.observed
            .see(lease.and_then(|lease| lease.spec), Instant::now());
        Ok(())
    }

    /// Acquires a free Lease, and checks for another candidate with the Lease at the same time.
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
                // Grace period before expiry in which the Lease is renewed: once every retry period.
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
        // Two candidates that see an expired Lease may both acquire it for a moment: kube-lease-manager clears the
        // holder without a precondition. After its longest pause (one second) there is one holder.
        sleep(retry_period).await;
        if let Err(problem) = self.read().await {
            warn!("leader election on {}: {problem}", self.config.title());
            return None;
        }
        let standing = self.observed.standing(&identity, Instant::now());
        (standing == Standing::Ours).then_some(manager)
    }

    /// Returns the reason for the loss of the Lease; `None` while this process holds the Lease.
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
