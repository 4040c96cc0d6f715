//! What the cloud tells a server about itself: `openstack/latest/meta_data.json`, from a config drive, which is read
//! without being mounted, or from the metadata service.

mod drive;
mod facts;
mod fat;
mod image;
mod iso9660;
mod service;

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::device::Addresses;

pub use csi_spec::zone::label;
pub use drive::{Drives, read_image};
pub use facts::{Bus, Facts, Invalid};
pub use service::Service;

/// The file, on a config drive and below the address of the service.
const FILE: &str = "openstack/latest/meta_data.json";
/// No server has more.
const LARGEST: usize = 1 << 20;
/// How long facts are believed: a server that was migrated is in another zone.
const AGE: Duration = Duration::from_secs(10 * 60);

/// Where the facts come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A disk labelled config-2.
    ConfigDrive,
    /// The metadata service.
    Service,
}

/// `search-order` of cloud.conf names something else.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("search-order has `{0}`: it takes configDrive and metadataService, separated by commas")]
pub struct BadOrder(String);

impl Source {
    /// The value of `search-order`, `configDrive,metadataService` if it is empty.
    ///
    /// # Errors
    /// A name that is neither.
    pub fn order(text: &str) -> Result<Vec<Self>, BadOrder> {
        if text.trim().is_empty() {
            return Ok(vec![Self::ConfigDrive, Self::Service]);
        }
        let names = text.split(',').map(str::trim);
        names
            .map(|name| match name {
                "configDrive" => Ok(Self::ConfigDrive),
                "metadataService" => Ok(Self::Service),
                other => Err(BadOrder(other.to_owned())),
            })
            .collect()
    }
}

/// Why a source has no facts.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The config drive.
    #[error(transparent)]
    Drive(#[from] drive::Error),
    /// What was read is no such document.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The metadata service.
    #[error(transparent)]
    Service(#[from] service::Error),
}

/// No source has them.
#[derive(Debug, thiserror::Error)]
#[error("nothing says which server this is: {}", .0.join("; "))]
pub struct NoFacts(Vec<String>);

/// The facts of this server, read again after ten minutes, and after a failure at the next question.
pub struct Metadata {
    order: Vec<Source>,
    drives: Drives,
    service: Service,
    last: Mutex<Option<(Instant, Facts)>>,
}

impl Metadata {
    /// Asks the sources in this order.
    pub fn new(order: Vec<Source>, drives: Drives, service: Service) -> Self {
        Self {
            order,
            drives,
            service,
            last: Mutex::new(None),
        }
    }

    /// The facts. Old ones are better than none: they are returned while no source answers, and for ever where one answers
    /// for another server.
    ///
    /// # Errors
    /// No source has ever answered.
    pub async fn facts(&self) -> Result<Facts, NoFacts> {
        let mut last = self.last.lock().await;
        if let Some((at, facts)) = &*last
            && at.elapsed() < AGE
        {
            return Ok(facts.clone());
        }
        match (self.read().await, &*last) {
            (Ok(facts), Some((_, old))) if facts.id != old.id => {
                let (id, new) = (&old.id, &facts.id);
                tracing::warn!("this server is {id}, and not {new}, as its metadata now say");
                Ok(old.clone())
            }
            (Ok(facts), _) => {
                *last = Some((Instant::now(), facts.clone()));
                Ok(facts)
            }
            (Err(error), Some((_, facts))) => {
                tracing::warn!("the facts of this server are old: {error}");
                Ok(facts.clone())
            }
            (Err(error), None) => Err(error),
        }
    }

    /// Where the disk of a volume is, by the metadata service, for a thread that may wait: it is asked for two seconds, and
    /// after a failure not again for a minute, since most clouds have no use for it; never if
    /// `search-order` leaves it out.
    pub fn addresses(self: &Arc<Self>) -> Addresses {
        const PATIENCE: Duration = Duration::from_secs(2);
        const PAUSE: Duration = Duration::from_secs(60);
        let (metadata, runtime) = (Arc::clone(self), Handle::current());
        let failed: parking_lot::Mutex<Option<Instant>> = parking_lot::Mutex::default();
        Arc::new(move |volume| {
            let asks = metadata.order.contains(&Source::Service);
            if !asks || failed.lock().is_some_and(|at| at.elapsed() < PAUSE) {
                return None;
            }
            let asked = async { tokio::time::timeout(PATIENCE, metadata.disks()).await };
            let Ok(Ok(disks)) = runtime.block_on(asked) else {
                *failed.lock() = Some(Instant::now());
                return None;
            };
            let mut disks = disks.into_iter();
            let disk = disks.find(|disk| disk.serial == volume)?;
            Some((disk.bus, disk.address))
        })
    }

    /// The disks that the metadata service lists now: the config drive knows those of the first boot alone.
    ///
    /// # Errors
    /// The service has no answer.
    pub async fn disks(&self) -> Result<Vec<Bus>, Error> {
        let body = self.service.read(FILE).await?;
        Ok(Facts::parse(&body)?.disks)
    }

    async fn read(&self) -> Result<Facts, NoFacts> {
        let mut reasons = Vec::new();
        for source in &self.order {
            match self.from(*source).await {
                Ok(facts) => return Ok(facts),
                Err(error) => reasons.push(error.to_string()),
            }
        }
        Err(NoFacts(reasons))
    }

    async fn from(&self, source: Source) -> Result<Facts, Error> {
        let body = match source {
            Source::ConfigDrive => {
                let drives = self.drives.clone();
                let read = tokio::task::spawn_blocking(move || drives.read());
                read.await.map_err(|_| drive::Error::Absent)??
            }
            Source::Service => self.service.read(FILE).await?.into(),
        };
        Ok(Facts::parse(&body)?)
    }
}

#[cfg(test)]
mod tests;
