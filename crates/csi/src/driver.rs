//! The RPCs: each reads its request, and decides by a plan.

mod alpha;
mod clouds;
mod controller;
mod groups;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::future::join_all;
use openstack::{CloudConfig, CloudPool, Kind};
use parking_lot::RwLock;
use tokio_util::sync::CancellationToken;

use crate::Options;
use crate::busy::Busy;

/// The pause after an attempt to reach a cloud, and the longest one.
const PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// A cloud of cloud.conf: `[Global]`, with an empty name, or `[Global "NAME"]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedCloud {
    /// The name, for which the key `cloud` of a Secret asks.
    pub name: String,
    /// Where it is, and who logs in.
    pub config: CloudConfig,
}

/// The controller half of the driver, which serves [`csi_spec::Controller`] and
/// [`csi_spec::GroupController`].
#[derive(Debug)]
pub struct Driver {
    pool: CloudPool,
    /// In the order of their names. Replaced as a whole when cloud.conf changes.
    clouds: RwLock<Arc<[NamedCloud]>>,
    options: Options,
    busy: Busy,
    ready: Arc<AtomicBool>,
}

impl Driver {
    /// A driver for some clouds.
    #[must_use]
    pub fn new(pool: CloudPool, clouds: Vec<NamedCloud>, options: Options) -> Arc<Self> {
        Arc::new(Self {
            pool,
            clouds: RwLock::new(sorted(clouds)),
            options,
            busy: Busy::default(),
            ready: Arc::default(),
        })
    }

    /// Whether a cloud has answered once.
    #[must_use]
    pub fn ready(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.ready)
    }

    /// Serves these clouds from the next call on, and returns whether they differ from those before. Calls in flight end with
    /// the login that they began with.
    pub fn replace(&self, clouds: Vec<NamedCloud>) -> bool {
        let (new, mut current) = (sorted(clouds), self.clouds.write());
        let differs = *new != **current;
        if differs {
            *current = new;
        }
        differs
    }

    fn clouds(&self) -> Arc<[NamedCloud]> {
        Arc::clone(&self.clouds.read())
    }

    /// Reaches each cloud once, however long it takes, or until `stop`.
    ///
    /// The driver is ready when the first one has answered: the sidecars do nothing before, and a cloud that does not answer
    /// is no reason to leave the others alone.
    pub async fn connect(&self, stop: CancellationToken) {
        let clouds = self.clouds();
        join_all(
            clouds
                .iter()
                .map(|cloud| self.connect_to(&cloud.name, &stop)),
        )
        .await;
    }

    async fn connect_to(&self, name: &str, stop: &CancellationToken) {
        let mut pause = PAUSE.0;
        loop {
            match self.reach(name).await {
                Ok(answered) => {
                    self.ready.fetch_or(answered, Ordering::SeqCst);
                    self.compare_zones(name).await;
                    return;
                }
                Err(error) => {
                    tracing::warn!(cloud = name, %error, "the cloud cannot be reached; the next attempt follows");
                }
            }
            tokio::select! {
                () = tokio::time::sleep(pause) => pause = (pause * 2).min(PAUSE.1),
                () = stop.cancelled() => return,
            }
        }
    }

    /// Whether a cloud answers; false for one that cloud.conf does not have any more.
    async fn reach(&self, name: &str) -> openstack::Result<bool> {
        let clouds = self.clouds();
        let Some(cloud) = clouds.iter().find(|cloud| cloud.name == name) else {
            return Ok(false);
        };
        let connected = self.pool.get(&cloud.config).await?;
        let volumes = connected.inventory.view(&[Kind::Volumes], Duration::MAX);
        volumes.await.map(|_| true)
    }

    /// Says which zones of the map a cloud does not have: a volume is refused there only when a pod needs it.
    async fn compare_zones(&self, name: &str) {
        let (options, map) = (&self.options, &self.options.zones);
        if map.0.is_empty() || options.ignore_volume_az || !options.with_topology {
            return;
        }
        let clouds = self.clouds();
        let Some(cloud) = clouds.iter().find(|cloud| cloud.name == name) else {
            return;
        };
        let view = async {
            let connected = self.pool.get(&cloud.config).await?;
            let zones = connected
                .inventory
                .view(&[Kind::VolumeZones], Duration::MAX);
            zones.await
        };
        match view.await {
            Ok(view) => {
                let there: Vec<&str> = view.volume_zones.iter().map(|it| &*it.0.name).collect();
                for (nova, cinder) in map.absent(&there) {
                    tracing::warn!(
                        cloud = name,
                        nova,
                        cinder,
                        there = there.join(", "),
                        "zone-map names a zone that Cinder does not have: no volume is created for servers of that zone of Nova"
                    );
                }
            }
            Err(error) => {
                tracing::warn!(cloud = name, %error, "the zones of zone-map cannot be compared with Cinder's");
            }
        }
    }
}

fn sorted(mut clouds: Vec<NamedCloud>) -> Arc<[NamedCloud]> {
    clouds.sort_by(|a, b| a.name.cmp(&b.name));
    clouds.into()
}
