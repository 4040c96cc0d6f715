//! The RPCs: each reads its request, and decides by a plan.

mod clouds;
mod controller;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use openstack::{CloudConfig, CloudPool, Kind};
use tokio_util::sync::CancellationToken;

use crate::Options;
use crate::busy::Busy;

/// The pause after an attempt to reach a cloud, and the longest one.
const PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// A cloud of cloud.conf: `[Global]`, with an empty name, or `[Global "NAME"]`.
#[derive(Clone, Debug)]
pub struct NamedCloud {
    /// The name, for which the key `cloud` of a Secret asks.
    pub name: String,
    /// Where it is, and who logs in.
    pub config: CloudConfig,
}

/// The controller half of the driver, which serves [`csi_spec::Controller`].
#[derive(Debug)]
pub struct Driver {
    pool: CloudPool,
    /// In the order of their names.
    clouds: Vec<NamedCloud>,
    options: Options,
    busy: Busy,
    ready: Arc<AtomicBool>,
}

impl Driver {
    /// A driver for some clouds.
    #[must_use]
    pub fn new(pool: CloudPool, mut clouds: Vec<NamedCloud>, options: Options) -> Arc<Self> {
        clouds.sort_by(|a, b| a.name.cmp(&b.name));
        Arc::new(Self {
            pool,
            clouds,
            options,
            busy: Busy::default(),
            ready: Arc::default(),
        })
    }

    /// Whether each cloud has answered once.
    #[must_use]
    pub fn ready(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.ready)
    }

    /// Reaches each cloud once, however long it takes, or until `stop`.
    pub async fn connect(&self, stop: CancellationToken) {
        for cloud in &self.clouds {
            let mut pause = PAUSE.0;
            while let Err(error) = self.reach(cloud).await {
                tracing::warn!(cloud = cloud.name, %error, "the cloud cannot be reached; the next attempt follows");
                tokio::select! {
                    () = tokio::time::sleep(pause) => pause = (pause * 2).min(PAUSE.1),
                    () = stop.cancelled() => return,
                }
            }
        }
        self.ready.store(true, Ordering::SeqCst);
    }

    async fn reach(&self, cloud: &NamedCloud) -> openstack::Result<()> {
        let connected = self.pool.get(&cloud.config).await?;
        let volumes = connected.inventory.view(&[Kind::Volumes], Duration::MAX);
        volumes.await.map(drop)
    }
}
