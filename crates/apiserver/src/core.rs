//! State of a server, shared by all requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio_util::sync::CancellationToken;

use crate::authenticator::Authenticator;
use crate::conversion::{Conversions, Converter};
use crate::metrics::{Requests, Stats};
use crate::options::Options;
use crate::services::Allocator;
use crate::store::Store;
use crate::webhook::configuration::Cache;
use crate::webhook::{Authorities, Caller};

/// Shared state of all requests.
pub(crate) struct Core {
    pub(crate) options: Options,
    pub(crate) store: Store,
    pub(crate) authenticator: Authenticator,
    /// Compiled webhook configurations.
    pub(crate) admission: Cache,
    /// TLS settings for webhooks, by their authorities.
    pub(crate) authorities: Authorities,
    /// Cache of conversions by webhook.
    pub(crate) conversions: Conversions,
    /// Addresses and ports of Services, reserved by running requests.
    pub(crate) services: Arc<Allocator>,
    /// Metrics of requests.
    pub(crate) requests: Arc<Requests>,
    /// Ends watches.
    pub(crate) shutdown: CancellationToken,
    /// Number of open watches.
    pub(crate) watches: AtomicUsize,
}

impl Core {
    /// Calls of webhooks.
    pub(crate) fn caller(&self) -> Caller<'_> {
        Caller {
            store: &self.store,
            authorities: &self.authorities,
        }
    }

    /// Conversions by webhook.
    pub(crate) fn converter(&self) -> Converter<'_> {
        Converter {
            conversions: &self.conversions,
            caller: self.caller(),
        }
    }

    pub(crate) fn stats(&self) -> Stats {
        let database_bytes = self.store.database_bytes();
        let state = self.store.read();
        Stats {
            objects: state.objects,
            object_bytes: state.object_bytes,
            past_bytes: state.past_bytes(),
            revision: state.revision,
            watches: self.watches.load(Ordering::Relaxed),
            database_bytes,
        }
    }
}
