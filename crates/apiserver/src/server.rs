//! The API server: opening, in-process clients, serving and closing.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::admission;
use crate::auth::Authenticator;
use crate::collector;
use crate::conversion::Conversions;
use crate::in_process::InProcess;
use crate::metrics::Requests;
use crate::namespaces;
use crate::options::Options;
use crate::serve;
use crate::services::Allocator;
use crate::sockets::Duplex;
use crate::store::Store;
use crate::webhook::Authorities;

/// Why an API server could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The file cannot be opened, read or written.
    #[error("the database {path} cannot be used")]
    Database {
        /// The file.
        path: PathBuf,
        /// The error of SQLite.
        source: rusqlite::Error,
    },
    /// The file or its directory is not writable.
    #[error(
        "the database {path} cannot be written: this user must be able to write the file and its directory"
    )]
    ReadOnly {
        /// The file.
        path: PathBuf,
    },
    /// The file system is full.
    #[error("there is no room for the database {path}: free some on its file system")]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// The file is not a database of an API server.
    #[error(
        "{path} is not a database of the API server; move it away, or choose another data directory"
    )]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// A newer release wrote the file.
    #[error(
        "the database {path} has format {found}, and this release knows formats up to {known}; use the release that wrote it, or a newer one"
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// The format of the file.
        found: i64,
        /// The newest format that this release supports.
        known: i64,
    },
    /// The file is damaged.
    #[error("the database {path} is damaged: {problem}; restore it from a backup")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The violation that the integrity check found.
        problem: String,
    },
    /// Another process has the file open.
    #[error("the database {path} is in use by another process")]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// An option is invalid.
    #[error("{option}: {problem}")]
    Option {
        /// The field of [`Options`].
        option: &'static str,
        /// Why it is invalid.
        problem: String,
    },
}

/// The size of an API server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// The number of stored objects.
    pub objects: usize,
    /// The total size of their JSON in bytes.
    pub object_bytes: usize,
    /// The revision of the last write.
    pub revision: u64,
    /// The number of open watches.
    pub watches: usize,
    /// The bytes that the past takes in memory: logs of events, lines of watches, and objects that are not current.
    pub past_bytes: usize,
    /// The size of the database file and its log in bytes; 0 in memory.
    pub database_bytes: u64,
}

/// An API server. Cheap to clone; it ends when the last clone and the last in-process client are gone.
#[derive(Clone)]
pub struct ApiServer {
    core: Arc<Core>,
}

/// The shared state of all requests.
pub(crate) struct Core {
    pub(crate) options: Options,
    pub(crate) store: Store,
    pub(crate) authenticator: Authenticator,
    /// The compiled webhook configurations.
    pub(crate) admission: admission::Cache,
    /// TLS settings for webhooks, by their authorities.
    pub(crate) authorities: Authorities,
    /// The cache of conversions by webhook.
    pub(crate) conversions: Conversions,
    /// Addresses and ports that running requests have reserved for Services.
    pub(crate) services: Arc<Allocator>,
    /// Metrics of requests.
    pub(crate) requests: Requests,
    /// Ends watches.
    pub(crate) shutdown: CancellationToken,
    /// The number of open watches.
    pub(crate) watches: AtomicUsize,
}

impl Core {
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

impl ApiServer {
    /// Opens the store and starts the background controllers (garbage collection, namespace deletion). Must be called
    /// inside a tokio runtime.
    ///
    /// # Errors
    /// When the database or an option cannot be used.
    pub fn open(options: Options) -> BoxFuture<'static, Result<Self, OpenError>> {
        Self::opened(options).boxed()
    }

    async fn opened(options: Options) -> Result<Self, OpenError> {
        let authenticator = Authenticator::new(&options)?;
        let store = Store::open(&options).await?;
        let shutdown = CancellationToken::new();
        let core = Arc::new(Core {
            options,
            admission: admission::Cache::new(&store),
            authorities: Authorities::default(),
            conversions: Conversions::default(),
            services: Arc::default(),
            requests: Requests::default(),
            store,
            authenticator,
            shutdown,
            watches: AtomicUsize::new(0),
        });
        namespaces::bootstrap(&core).await?;
        // What a server needs to open is there whether or not anything can be written.
        if let Some(backend) = core.options.backend.clone() {
            core.store.guard(backend);
        }
        collector::start(&core);
        Ok(Self { core })
    }

    /// The service that in-process clients call, acting as a member of `system:masters`:
    /// `kube::Client::new(server.in_process(), "default")`.
    pub fn in_process(&self) -> InProcess {
        InProcess::of(&self.core)
    }

    /// The same as [`in_process`](Self::in_process), under the name that reads well in
    /// `kube::Client::new(server.client(), "default")`.
    pub fn client(&self) -> InProcess {
        self.in_process()
    }

    /// Serves HTTPS (HTTP/1.1 and HTTP/2) on `listener` until `shutdown`, then lets running requests end.
    pub fn serve(
        &self,
        listener: TcpListener,
        tls: Arc<rustls::ServerConfig>,
        shutdown: CancellationToken,
    ) -> BoxFuture<'static, ()> {
        serve::listen(Arc::clone(&self.core), listener, tls, shutdown).boxed()
    }

    /// Serves one accepted connection, from the TLS handshake to its end. `/version` answers `version`, such as
    /// `v1.34.1`: several API servers of different versions may serve the same objects.
    pub fn serve_stream(
        &self,
        stream: impl Duplex + 'static,
        tls: Arc<rustls::ServerConfig>,
        version: Arc<str>,
    ) -> BoxFuture<'static, ()> {
        let (core, stop) = (Arc::clone(&self.core), CancellationToken::new());
        let place = crate::sockets::alone(crate::sockets::Limits::default());
        serve::connection(core, Box::new(stream), tls, Some(version), place, stop).boxed()
    }

    #[cfg(test)]
    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    /// Why the latest write to the disk failed, such as that there is no room; `None` while writes succeed. Objects may say less:
    /// what their controllers want to say of it cannot be stored either.
    pub fn write_problem(&self) -> Option<String> {
        self.core.store.problem()
    }

    /// The size of the server.
    pub fn stats(&self) -> Stats {
        self.core.stats()
    }

    /// Ends all watches, waits until acknowledged writes are on disk, and closes the store.
    pub fn close(self) -> BoxFuture<'static, ()> {
        async move {
            self.core.shutdown.cancel();
            self.core.store.close().await;
        }
        .boxed()
    }
}
