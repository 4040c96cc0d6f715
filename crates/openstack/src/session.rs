//! Sessions: authenticated requests to a cloud by one user in one scope.

mod auth;
mod catalog;
mod openid;
mod page;
mod prompts;
mod send;
mod subject;
#[cfg(test)]
mod tests;
mod token;
mod versions;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use crate::call::Timeouts;
use crate::config::CloudConfig;
use crate::error::{Error, ErrorKind, Result};
use crate::flight::Flight;
use crate::metrics::Metrics;
use crate::service::Service;
use crate::transport::{ConnectionPools, SharedTransport, Trust};

pub use catalog::{CatalogEntry, Endpoint};
pub use prompts::{DeviceLogin, Prompts};
pub(crate) use subject::Asker;
pub use subject::SubjectToken;
pub use token::Token;
pub use versions::VersionRange;

/// Default limit of concurrent requests. Clouds have few API workers; more requests would only queue there until a
/// timeout.
const MOST_AT_ONCE: usize = 16;

/// Options of sessions, and the state shared between sessions.
#[derive(Clone, Debug, Default)]
pub struct SessionOptions {
    /// Transport of requests; HTTP with the cloud's trusted CAs if absent.
    pub transport: Option<SharedTransport>,
    /// Metrics of requests.
    pub metrics: Metrics,
    /// Timeouts.
    pub timeouts: Timeouts,
    /// Maximum number of concurrent requests of a session; 16 if zero. Lists of the inventory have a limit of the same
    /// size of their own, so that a list does not wait for other requests.
    pub most_at_once: usize,
    /// Value of the `User-Agent` header; `ferrostack/<version>` if absent.
    pub user_agent: Option<String>,
    /// Connections, shared by the sessions of all clones of these options.
    pub pools: Arc<ConnectionPools>,
    /// Person to ask during a login; without one, a login with questions fails.
    pub prompts: Option<Arc<dyn Prompts>>,
}

/// Session. Clones share token, catalog and connections.
#[derive(Clone)]
pub struct Session {
    shared: Arc<Shared>,
    /// True if requests of this clone are counted as polling.
    poll: bool,
}

struct Shared {
    config: CloudConfig,
    transport: SharedTransport,
    metrics: Metrics,
    timeouts: Timeouts,
    user_agent: String,
    prompts: Option<Arc<dyn Prompts>>,
    at_once: Semaphore,
    /// Limit of concurrent requests for shared polling.
    polls_at_once: Semaphore,
    token: ArcSwapOption<Token>,
    login: Flight,
    versions: Mutex<HashMap<Service, VersionRange>>,
}

impl Session {
    /// Creates a session that authenticates with its first request.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] if the CA bundle cannot be parsed.
    pub fn new(config: CloudConfig, options: &SessionOptions) -> Result<Self> {
        let transport = match &options.transport {
            Some(transport) => Arc::clone(transport),
            None => {
                let trust = Trust {
                    verify: config.verify,
                    ca_pem: config.ca_pem.clone(),
                    client_certificate: config.client_certificate.clone(),
                };
                options.pools.get(&trust)? as SharedTransport
            }
        };
        let user_agent = options
            .user_agent
            .clone()
            .unwrap_or_else(|| concat!("ferrostack/", env!("CARGO_PKG_VERSION")).to_owned());
        let most = match options.most_at_once {
            0 => MOST_AT_ONCE,
            most => most.min(Semaphore::MAX_PERMITS),
        };
        Ok(Self {
            shared: Arc::new(Shared {
                config,
                transport,
                metrics: options.metrics.clone(),
                timeouts: options.timeouts,
                user_agent,
                prompts: options.prompts.clone(),
                at_once: Semaphore::new(most),
                polls_at_once: Semaphore::new(most),
                token: ArcSwapOption::empty(),
                login: Flight::default(),
                versions: Mutex::default(),
            }),
            poll: false,
        })
    }

    /// Creates a session and authenticates.
    ///
    /// # Errors
    /// As [`Session::new`] and [`Session::token`].
    pub async fn connect(config: CloudConfig, options: &SessionOptions) -> Result<Self> {
        let session = Self::new(config, options)?;
        session.token().await?;
        Ok(session)
    }

    /// Returns the configuration of the session's cloud.
    pub fn config(&self) -> &CloudConfig {
        &self.shared.config
    }

    /// Returns a valid token, requested or renewed if needed.
    ///
    /// # Errors
    /// [`ErrorKind::Unauthenticated`] if Keystone rejects the credential, and any transport error.
    pub async fn token(&self) -> Result<Arc<Token>> {
        self.valid_token().await
    }

    /// Returns the id of the project of the token.
    ///
    /// # Errors
    /// As [`Session::token`]; [`ErrorKind::Invalid`] if the credential has no project.
    pub async fn project_id(&self) -> Result<String> {
        let token = self.valid_token().await?;
        token.project_id.clone().ok_or_else(|| {
            Error::new(
                ErrorKind::Invalid,
                format!(
                    "cloud `{}`: the login is for no project: name one (auth.project_id in a clouds.yaml, tenant-id in \
                     a cloud.conf), or give the user a default project",
                    self.shared.config.name
                ),
            )
        })
    }

    /// Returns the region in use: the configured one, or else the region of the catalog's compute endpoint.
    ///
    /// # Errors
    /// As [`Session::token`].
    pub async fn region(&self) -> Result<Option<String>> {
        if let Some(region) = &self.shared.config.region {
            return Ok(Some(region.clone()));
        }
        let token = self.valid_token().await?;
        Ok(catalog::region(
            &token.catalog,
            self.shared.config.interface,
        ))
    }

    /// Returns the base URL of a service, version included, without a trailing slash.
    ///
    /// # Errors
    /// As [`Session::token`]; [`ErrorKind::Invalid`] naming service, interface and region if the catalog lacks the
    /// service.
    pub async fn endpoint(&self, service: Service) -> Result<String> {
        let token = self.valid_token().await?;
        catalog::endpoint(&self.shared.config, &token, service)
    }

    /// True if the cloud has this service.
    ///
    /// # Errors
    /// As [`Session::token`].
    pub async fn has(&self, service: Service) -> Result<bool> {
        let token = self.valid_token().await?;
        Ok(catalog::endpoint(&self.shared.config, &token, service).is_ok())
    }

    /// Returns a clone whose requests count as shared polling, with a limit of their own.
    #[must_use]
    pub fn polling(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            poll: true,
        }
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("config", &self.shared.config)
            .finish_non_exhaustive()
    }
}
