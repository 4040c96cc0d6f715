//! Reaching workload clusters: one connection, one probe and one cache of Nodes for each.
//!
//! Behaviour of upstream's cluster cache: the kubeconfig comes from the Secret `<cluster>-kubeconfig`;
//! callers get an error at once instead of waiting; a probe runs every 10 s and after 5 failures in
//! a row the connection is given up; so it is when a watch shows that the Secret has changed; (dis)connecting and every change of a Node wake whoever listens
//! to [`Remote::changes`]. Different from upstream: a cluster that has never answered is tried again
//! after 0.25 s growing to 3 s, not after 30 s.

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::Arc;

use api::k8s_openapi::api::core::v1::Node;
use api::k8s_openapi::jiff::Timestamp;
use api::kube::Client;
use futures::Stream;
use futures::channel::mpsc::{UnboundedSender, unbounded};
use futures::future::BoxFuture;
use parking_lot::Mutex;
use secrecy::SecretString;
use tokio_util::sync::CancellationToken;

mod connection;
mod kubeconfig;
#[cfg(test)]
mod tests;

pub use kubeconfig::{KubeconfigConnector, secret_name};

/// Namespace and name of a Cluster.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClusterKey {
    /// Namespace of the Cluster.
    pub namespace: String,
    /// Name of the Cluster.
    pub name: String,
}

impl ClusterKey {
    /// The Cluster `name` in `namespace`.
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

/// There is no connection to a workload cluster now; [`Remote::changes`] tells when there is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cluster {cluster} cannot be reached: {reason}")]
pub struct NotConnected {
    /// The cluster.
    pub cluster: ClusterKey,
    /// Why, as far as it is known.
    pub reason: String,
    /// Whether the first attempt to connect has not ended yet: nothing is known about the cluster.
    pub connecting: bool,
}

impl operator::retry::Retry for NotConnected {
    fn when(&self) -> operator::retry::When {
        // Connecting wakes the object.
        operator::retry::When::OnChange
    }
}

/// Something that happened to, or in, a workload cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The cluster can be reached from now on.
    Connected(ClusterKey),
    /// The cluster cannot be reached: the connection is lost, or the first attempt to connect failed.
    Disconnected(ClusterKey),
    /// A Node appeared, changed or went away.
    Node {
        /// The cluster.
        cluster: ClusterKey,
        /// Name of the Node.
        name: String,
        /// The Node's identity at the cloud.
        provider_id: Option<String>,
    },
}

impl Change {
    /// The cluster that changed.
    pub fn cluster(&self) -> &ClusterKey {
        match self {
            Change::Connected(cluster) | Change::Disconnected(cluster) => cluster,
            Change::Node { cluster, .. } => cluster,
        }
    }
}

/// How the connection to a cluster is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Whether there is a connection.
    pub connected: bool,
    /// When the cluster answered last.
    pub last_success: Option<Timestamp>,
    /// When the connection was first attempted.
    pub since: Option<Timestamp>,
    /// Why the last attempt or probe failed; `None` after a success.
    pub problem: Option<String>,
}

impl Health {
    /// Whether the first attempt to connect has not ended yet, as after a start of the program: nothing is known about
    /// the cluster, so what was reported about it before stays. [`Remote::changes`] reports how the attempt ends.
    pub fn is_connecting(&self) -> bool {
        !self.connected && self.problem.is_none()
    }
}

/// Makes a client from the text of a kubeconfig.
pub trait Connector: Debug + Send + Sync {
    /// Makes a client for `cluster`; it need not have been used yet.
    fn connect<'a>(
        &'a self,
        cluster: &'a ClusterKey,
        kubeconfig: &'a SecretString,
    ) -> BoxFuture<'a, Result<Client, String>>;
}

/// The connections to all workload clusters; clones share them.
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
    shutdown: CancellationToken,
}

impl Remote {
    /// No connection yet. `management` is where the kubeconfig Secrets are read.
    pub fn new(
        management: Client,
        connector: Arc<dyn Connector>,
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
                shutdown,
            }),
        }
    }

    /// The same connections, with clients that carry the name of `controller`.
    pub fn of(&self, controller: &'static str) -> Self {
        Self {
            controller,
            inner: Arc::clone(&self.inner),
        }
    }

    /// A client for `cluster`.
    ///
    /// # Errors
    /// At once when there is no connection.
    pub fn client(&self, cluster: &ClusterKey) -> Result<Client, NotConnected> {
        self.with(cluster, |link| link.client_of(self.controller))
    }

    /// The Nodes of `cluster`, from the cache. Images and managed fields are left out.
    ///
    /// # Errors
    /// At once when there is no connection.
    pub fn nodes(&self, cluster: &ClusterKey) -> Result<Vec<Arc<Node>>, NotConnected> {
        self.with(cluster, |link| link.nodes.state())
    }

    /// The Nodes whose `spec.providerID` is `provider_id`; more than one is a mistake of somebody.
    ///
    /// # Errors
    /// At once when there is no connection.
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

    /// How the connection to `cluster` is doing.
    pub fn health(&self, cluster: &ClusterKey) -> Health {
        let clusters = self.inner.clusters.lock();
        clusters
            .get(cluster)
            .map(connection::Handle::health)
            .unwrap_or_default()
    }

    /// Begins to connect to `cluster`, and to connect again whenever the connection is lost. Called
    /// again, it only wakes an attempt that is pausing: something happened that may make it succeed.
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

    /// Tells which version of its kubeconfig Secret a cluster has now: a connection that was made with an older one is
    /// made anew.
    pub fn kubeconfig_is(&self, cluster: &ClusterKey, version: &str) {
        if let Some(handle) = self.inner.clusters.lock().get(cluster) {
            handle.kubeconfig_is(version);
        }
    }

    /// Drops the connection to `cluster` and everything that is cached of it.
    pub fn forget(&self, cluster: &ClusterKey) {
        if self.inner.clusters.lock().remove(cluster).is_some() {
            self.notify(&Change::Disconnected(cluster.clone()));
        }
    }

    /// Everything that happens from now on.
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
