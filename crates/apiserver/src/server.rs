//! API server: opening, in-process clients, serving and closing.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::authenticator::Authenticator;
use crate::bootstrap;
use crate::controllers;
use crate::conversion::Conversions;
use crate::core::Core;
use crate::in_process::InProcess;
use crate::metrics::Stats;
use crate::options::Options;
use crate::serve;
use crate::sockets::Duplex;
use crate::store::{OpenError, Store};
use crate::webhook::Authorities;
use crate::webhook::configuration::Cache;

/// An API server. Cheap to clone; ends after the last clone and the last in-process client are dropped.
#[derive(Clone)]
pub struct ApiServer {
    core: Arc<Core>,
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
            admission: Cache::new(&store),
            authorities: Authorities::default(),
            conversions: Conversions::default(),
            services: Arc::default(),
            requests: Arc::default(),
            store,
            authenticator,
            shutdown,
            watches: AtomicUsize::new(0),
        });
        bootstrap::create(&core).await?;
        // The objects for an open server exist, whether or not anything can be written.
        if let Some(backend) = core.options.backend.clone() {
            core.store.guard(backend);
        }
        controllers::start(&core);
        Ok(Self { core })
    }

    /// Service for in-process clients, with the identity of a member of `system:masters`:
    /// `kube::Client::new(server.in_process(), "default")`.
    pub fn in_process(&self) -> InProcess {
        InProcess::from_core(&self.core)
    }

    /// Same as [`in_process`](Self::in_process), under a name that reads well in
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

    /// Reason for the failure of the latest write to the disk, such as a full disk; `None` while writes succeed.
    /// Objects may have no sign of the failure, because their controllers cannot store a status either.
    pub fn write_problem(&self) -> Option<String> {
        self.core.store.problem()
    }

    /// Size of the server.
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
