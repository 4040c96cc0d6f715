//! Metadata of this server: `openstack/latest/meta_data.json`, read from a config drive without a mount, or from the
//! metadata service.

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

/// Path of the document, on a config drive and below the address of the service.
const FILE: &str = "openstack/latest/meta_data.json";
/// Limit for the document in bytes; no server has more.
const LARGEST: usize = 1 << 20;
/// Time until [`Facts`] are read again: a live migration may move the server to another zone.
const AGE: Duration = Duration::from_secs(10 * 60);

/// Source of the [`Facts`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Disk with the label config-2.
    ConfigDrive,
    /// The metadata service.
    Service,
}

/// `search-order` of cloud.conf has an unknown name.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("search-order has `{0}`: it takes configDrive and metadataService, separated by commas")]
pub struct BadOrder(String);

impl Source {
    /// Parses `search-order` of cloud.conf; if empty, `configDrive,metadataService`.
    ///
    /// # Errors
    /// A name other than these two.
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

/// Reason why a source has no facts.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The config drive is absent or damaged.
    #[error(transparent)]
    Drive(#[from] drive::Error),
    /// The document is invalid.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The metadata service has no answer.
    #[error(transparent)]
    Service(#[from] service::Error),
}

/// No [`Source`] has an answer: one reason for each.
#[derive(Debug, thiserror::Error)]
#[error("nothing says which server this is: {}", .0.join("; "))]
pub struct NoFacts(Vec<String>);

/// [`Facts`] of this server, kept for ten minutes; after a failure the next call reads again.
pub struct Metadata {
    order: Vec<Source>,
    drives: Drives,
    service: Service,
    last: Mutex<Option<(Instant, Facts)>>,
}

impl Metadata {
    /// Reader of the sources, in this order.
    pub fn new(order: Vec<Source>, drives: Drives, service: Service) -> Self {
        Self {
            order,
            drives,
            service,
            last: Mutex::new(None),
        }
    }

    /// Facts of this server. Old facts are better than none: the last ones are returned while no source answers, and
    /// forever if a source answers for another server.
    ///
    /// # Errors
    /// No source has answered since the start.
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

    /// Function that finds the bus address of the disk of a volume in the answer of the metadata service. It blocks for
    /// two seconds at most. After a failure the service has a pause of a minute, since most clouds need no addresses.
    /// `None` always if `search-order` leaves out the service.
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

    /// Disks that the metadata service lists now. A config drive lists only the disks of the first boot.
    ///
    /// # Errors
    /// The service has no answer, or a document that is invalid.
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
