//! RPCs of the controller: each parses its request, and decides by a [plan](crate::plan).

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

/// Pause after a failed attempt to reach a cloud: the first, and the longest.
const PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// Cloud of cloud.conf: `[Global]`, with an empty name, or `[Global "NAME"]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedCloud {
    /// Name, as in the key `cloud` of a Secret.
    pub name: String,
    /// Address and credentials.
    pub config: CloudConfig,
}

/// Controller half of the driver: [`csi_spec::Controller`] and [`csi_spec::GroupController`].
#[derive(Debug)]
pub struct Driver {
    pool: CloudPool,
    /// Sorted by name. Replaced as a whole on a change of cloud.conf.
    clouds: RwLock<Arc<[NamedCloud]>>,
    options: Options,
    busy: Busy,
    ready: Arc<AtomicBool>,
}

impl Driver {
    /// Driver for these [`NamedCloud`]s, as [`Options`] say.
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

    /// Flag for the probe: true after the first answer of a cloud.
    #[must_use]
    pub fn ready(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.ready)
    }

    /// Replaces the clouds for calls from now on; true if the list differs from the former one. Calls in flight end
    /// with their login.
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

    /// Logs in to each cloud once, with retries without limit, or until `stop`.
    ///
    /// The driver is ready after the first answer of any cloud. The sidecars do nothing before, and one cloud out of
    /// order must not block the others.
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

    /// Logs in to a cloud; false if cloud.conf no longer has the cloud.
    async fn reach(&self, name: &str) -> openstack::Result<bool> {
        let clouds = self.clouds();
        let Some(cloud) = clouds.iter().find(|cloud| cloud.name == name) else {
            return Ok(false);
        };
        let connected = self.pool.get(&cloud.config).await?;
        let volumes = connected.inventory.view(&[Kind::Volumes], Duration::MAX);
        volumes.await.map(|_| true)
    }

    /// Warns of zones in the [`ZoneMap`](crate::ZoneMap) that a cloud lacks. Otherwise only the creation of a volume
    /// would reveal the mistake.
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
