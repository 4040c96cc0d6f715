//! Connections to workload clusters, each with a probe and a cache of Nodes.
//!
//! Behaviour follows the cluster cache of Cluster API: the kubeconfig is read from the Secret `<cluster>-kubeconfig`;
//! without a connection callers get an error at once; a probe runs every 10 s, and the connection is closed after 5
//! consecutive failures, or when the Secret changes; [`Remote::changes`] sends connects, disconnects and changes of
//! Nodes. A cluster without any response so far is retried after 0.25 s, increasing to 3 s (upstream: 30 s).

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::Arc;

use api::k8s_openapi::api::core::v1::Node;
use api::k8s_openapi::jiff::Timestamp;
use api::kube::Client;
use futures::Stream;
use futures::channel::mpsc::{UnboundedSender, unbounded};
use futures::future::BoxFuture;
use operator::client;
use parking_lot::Mutex;
use secrecy::SecretString;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

mod connection;
mod kubeconfig;
#[cfg(test)]
mod tests;

pub use kubeconfig::{KubeconfigConnector, secret_name};

/// Client with the name of `controller` in the user agent.
pub(crate) fn named(client: &Client, controller: &str) -> Client {
    client::named(client, &format!("ferrostack-{controller}"))
}

/// Namespace and name of a Cluster.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClusterKey {
    /// Namespace of the Cluster.
    pub namespace: String,
    /// Name of the Cluster.
    pub name: String,
}

impl ClusterKey {
    /// Cluster `name` in `namespace`.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }
}

impl std::fmt::Display for ClusterKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// There is no connection to a workload cluster; [`Remote::changes`] sends a new one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cluster {cluster} cannot be reached: {reason}")]
pub struct NotConnected {
    /// The cluster.
    pub cluster: ClusterKey,
    /// Last error, if any.
    pub reason: String,
    /// True before the end of the first attempt to connect: the state of the cluster is unknown.
    pub connecting: bool,
}

impl operator::retry::Retry for NotConnected {
    fn when(&self) -> operator::retry::When {
        // A connection triggers a reconcile.
        operator::retry::When::OnChange
    }
}

/// Change of a connection or of a Node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The cluster is connected.
    Connected(ClusterKey),
    /// The cluster is disconnected, or the first attempt to connect has failed.
    Disconnected(ClusterKey),
    /// A [`Node`] was created, changed or deleted.
    Node {
        /// The cluster.
        cluster: ClusterKey,
        /// Name of the Node.
        name: String,
        /// `spec.providerID` of the Node.
        provider_id: Option<String>,
    },
}

impl Change {
    /// Cluster that changed.
    pub fn cluster(&self) -> &ClusterKey {
        match self {
            Change::Connected(cluster) | Change::Disconnected(cluster) => cluster,
            Change::Node { cluster, .. } => cluster,
        }
    }
}

/// State of a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// True if there is a connection.
    pub connected: bool,
    /// Last response of the cluster.
    pub last_success: Option<Timestamp>,
    /// When the first attempt to connect started.
    pub since: Option<Timestamp>,
    /// Error of the last attempt or probe; `None` after a success.
    pub problem: Option<String>,
    /// Uid of the namespace kube-system, the identity of the cluster for programs in it, read at the start of the
    /// connection; `None` if unreadable.
    pub uid: Option<String>,
}

impl Health {
    /// True before the end of the first attempt to connect, as after a restart: the state of the cluster is unknown,
    /// so the reported conditions stay. [`Remote::changes`] sends the result of the attempt.
    pub fn is_connecting(&self) -> bool {
        !self.connected && self.problem.is_none()
    }
}

/// Creates a client from a kubeconfig.
pub trait Connector: Debug + Send + Sync {
    /// Creates a client for `cluster`; need not send a request.
    fn connect<'a>(
        &'a self,
        cluster: &'a ClusterKey,
        kubeconfig: &'a SecretString,
    ) -> BoxFuture<'a, Result<Client, String>>;
}

/// Connections to all workload clusters, shared by clones.
#[derive(Clone)]
pub struct Remote {
    controller: &'static str,
    inner: Arc<Inner>,
}

struct Inner {
    management: Client,
    connector: Arc<dyn Connector>,
    clusters: Mutex<HashMap<ClusterKey, connection::Handle>>,
    listeners: Mutex<Vec<UnboundedSender<Change>>>,
    /// Permits for connection attempts and probes.
    turns: Semaphore,
    shutdown: CancellationToken,
}

impl Remote {
    /// Creates an empty set of connections. `management` reads the kubeconfig Secrets; at most `concurrency` clusters
    /// are connected to, or probed, at a time.
    pub fn new(
        management: Client,
        connector: Arc<dyn Connector>,
        concurrency: u16,
        shutdown: CancellationToken,
    ) -> Self {
        let (clusters, listeners) = (Mutex::default(), Mutex::default());
        Self {
            controller: "clusterapi",
            inner: Arc::new(Inner {
                management,
                connector,
                clusters,
                listeners,
                turns: Semaphore::new(usize::from(concurrency)),
                shutdown,
            }),
        }
    }

    /// Same connections; the user agent of the clients has the name of `controller`.
    pub fn of(&self, controller: &'static str) -> Self {
        Self {
            controller,
            inner: Arc::clone(&self.inner),
        }
    }

    /// Client for `cluster`.
    ///
    /// # Errors
    /// If there is no connection.
    pub fn client(&self, cluster: &ClusterKey) -> Result<Client, NotConnected> {
        self.with(cluster, |link| link.client_of(self.controller))
    }

    /// Client of the connection itself. Requests have the name of Cluster API's controllers unless they set another
    /// one.
    ///
    /// # Errors
    /// If there is no connection.
    pub fn unnamed(&self, cluster: &ClusterKey) -> Result<Client, NotConnected> {
        self.with(cluster, |link| link.client.clone())
    }

    /// [`Node`]s of `cluster`, from the cache, without images and managed fields.
    ///
    /// # Errors
    /// If there is no connection.
    pub fn nodes(&self, cluster: &ClusterKey) -> Result<Vec<Arc<Node>>, NotConnected> {
        self.with(cluster, |link| link.nodes.state())
    }

    /// [`Node`]s with the `spec.providerID` `provider_id`; more than one is a configuration error.
    ///
    /// # Errors
    /// If there is no connection.
    pub fn nodes_of(
        &self,
        cluster: &ClusterKey,
        provider_id: &str,
    ) -> Result<Vec<Arc<Node>>, NotConnected> {
        let is_it = |node: &Node| {
            node.spec
                .as_ref()
                .and_then(|spec| spec.provider_id.as_deref())
                == Some(provider_id)
        };
        self.with(cluster, |link| link.nodes.state_filter(is_it))
    }

    /// Clusters that are connected.
    pub fn connected(&self) -> Vec<ClusterKey> {
        let clusters = self.inner.clusters.lock();
        let connected = clusters
            .iter()
            .filter(|(_, handle)| handle.health().connected);
        connected.map(|(cluster, _)| cluster.clone()).collect()
    }

    /// State of the connection to `cluster`.
    pub fn health(&self, cluster: &ClusterKey) -> Health {
        let clusters = self.inner.clusters.lock();
        clusters
            .get(cluster)
            .map(connection::Handle::health)
            .unwrap_or_default()
    }

    /// Starts to connect to `cluster`, and reconnects after each loss of the connection. A further call ends the
    /// backoff of a failed attempt, because an event may have removed the cause.
    pub fn track(&self, cluster: &ClusterKey) {
        let mut clusters = self.inner.clusters.lock();
        match clusters.get(cluster) {
            Some(handle) => handle.wake(),
            None => {
                let handle = connection::start(self.of("clusterapi"), cluster.clone());
                clusters.insert(cluster.clone(), handle);
            }
        }
    }

    /// Sets the current resourceVersion of the kubeconfig Secret of a cluster, and replaces a connection with an
    /// older version.
    pub fn kubeconfig_is(&self, cluster: &ClusterKey, version: &str) {
        if let Some(handle) = self.inner.clusters.lock().get(cluster) {
            handle.kubeconfig_is(version);
        }
    }

    /// Closes the connection to `cluster` and drops its cache.
    pub fn forget(&self, cluster: &ClusterKey) {
        if self.inner.clusters.lock().remove(cluster).is_some() {
            self.notify(&Change::Disconnected(cluster.clone()));
        }
    }

    /// All changes from now on.
    pub fn changes(&self) -> impl Stream<Item = Change> + Send + Unpin + 'static + use<> {
        let (sender, receiver) = unbounded();
        self.inner.listeners.lock().push(sender);
        receiver
    }

    fn with<T>(
        &self,
        cluster: &ClusterKey,
        read: impl FnOnce(&connection::Link) -> T,
    ) -> Result<T, NotConnected> {
        let not_connected = |problem: Option<String>| NotConnected {
            cluster: cluster.clone(),
            connecting: problem.is_none(),
            reason: problem.unwrap_or_else(|| "not tried yet".to_owned()),
        };
        let clusters = self.inner.clusters.lock();
        let handle = clusters.get(cluster).ok_or_else(|| not_connected(None))?;
        handle.read(read).map_err(not_connected)
    }

    fn notify(&self, change: &Change) {
        self.inner
            .listeners
            .lock()
            .retain(|to| to.unbounded_send(change.clone()).is_ok());
    }
}

impl Debug for Remote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Remote").finish_non_exhaustive()
    }
}
