//! OpenStack clouds: typed calls, and an inventory of a project.
//!
//! [`CloudConfig`] is one entry of a clouds.yaml. A [`Session`] is a login to the cloud, with one module of typed calls
//! per service. An [`Inventory`] is the content of a session's project: bulk lists on demand, updated by our own
//! writes, and compared for a stream of changes. A [`CloudPool`] shares sessions and inventories between all users of
//! the same credential.
//!
//! ```text
//!   config      an entry of a clouds.yaml
//!   session     login, catalog and versions; send: headers, retries, errors, metrics
//!   transport   HTTP, or a router in the process
//!   compute, network, volume, image, loadbalancer, key_manager, identity   calls of the services
//!   inventory   content of a project, read in bulk
//!   pool        sessions and inventories by credential
//! ```
//!
//! ```
//! use openstack::{CloudConfig, cloud_names};
//!
//! let clouds = "
//! clouds:
//!   mycloud:
//!     region_name: one
//!     auth:
//!       auth_url: https://keystone.example.org:5000
//!       username: demo
//!       password: secret
//!       project_name: demo
//!       user_domain_name: Default
//!       project_domain_name: Default
//! ";
//! assert_eq!(cloud_names(clouds)?, ["mycloud"]);
//! let config = CloudConfig::parse(clouds, "mycloud")?;
//! assert_eq!(config.region.as_deref(), Some("one"));
//! # Ok::<(), openstack::Error>(())
//! ```

mod answer;
mod call;
pub mod compute;
pub mod config;
mod error;
mod flight;
pub mod identity;
pub mod image;
pub mod inventory;
mod key_manager;
mod lenient;
pub mod loadbalancer;
mod metrics;
pub mod network;
mod pool;
mod service;
pub mod session;
#[cfg(test)]
mod tests;
pub mod transport;
pub mod volume;

pub use call::Timeouts;
pub use config::{CloudConfig, cloud_names, find_clouds_yaml};
pub use error::{Error, ErrorKind, Result};
pub use inventory::{Change, Inventory, Kind, View, What};
pub use key_manager::{KeyManager, SecretReference};
pub use metrics::{Hook, Metrics, RequestLabels};
pub use pool::{Cloud, CloudPool, PoolOptions};
pub use service::Service;
pub use session::{
    CatalogEntry, DeviceLogin, Endpoint, Prompts, Session, SessionOptions, SubjectToken, Token,
    VersionRange,
};
pub use transport::{InProcess, Transport};
