//! Connections to members through the workload API server, cached while they work.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use api::bootstrap::v1beta2::EncryptionAlgorithm;
use api::k8s_openapi::api::core::v1::Pod;
use api::k8s_openapi::jiff::Timestamp;
use api::kube::Client;
use etcd::tls::Tls;
use futures::future::BoxFuture;
use kube::api::Portforwarder;
use operator::client::Api;
use parking_lot::Mutex;

use super::LIMIT;
use crate::pki::{self, KeyMaterial};
use crate::remote::ClusterKey;

/// Client port of etcd.
const PORT: u16 = 2379;
/// Common name of the client certificate, as upstream's.
const COMMON_NAME: &str = "cluster-api.x-k8s.io";
/// Time until a new client certificate. The validity is longer.
const CERTIFICATE_FOR: Duration = Duration::from_secs(24 * 3600);
/// Time after a timeout in which requests to a member fail at once, so that no worker is blocked again.
const REST: Duration = Duration::from_secs(3);
/// Time until an unused connection is closed: longer than the pauses of a rollout, shorter than the pauses at rest. A
/// connection takes 0.3 MB in this process and the API server.
const UNUSED_FOR: Duration = Duration::from_secs(8);

/// All connections; shared by clones.
#[derive(Clone, Default)]
pub struct Connections {
    clusters: Arc<Mutex<HashMap<ClusterKey, Arc<Cluster>>>>,
}

/// etcd of one workload cluster.
#[derive(Clone, Copy)]
pub struct Target<'a> {
    /// The cluster.
    pub key: &'a ClusterKey,
    /// Client for the API server of the cluster.
    pub client: &'a Client,
    /// Nodes with an etcd Pod.
    pub nodes: &'a [String],
}

struct Cluster {
    tls: Tls,
    since: Instant,
    members: Mutex<HashMap<String, ConnectionState>>,
}

/// State of the connection to a member.
#[derive(Clone)]
enum ConnectionState {
    Open(Arc<Connection>),
    Silent { since: Instant, why: String },
}

struct Connection {
    client: etcd::Client,
    forwarder: Portforwarder,
    used: Mutex<Instant>,
}

impl Connection {
    fn client(&self) -> etcd::Client {
        *self.used.lock() = Instant::now();
        self.client.clone()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.forwarder.abort();
    }
}

impl Connections {
    /// True with a client certificate for `key`.
    #[must_use]
    pub fn has(&self, key: &ClusterKey) -> bool {
        let clusters = self.clusters.lock();
        let known = clusters.get(key);
        known.is_some_and(|cluster| cluster.since.elapsed() < CERTIFICATE_FOR)
    }

    /// Issues a client certificate signed by the CA of etcd.
    ///
    /// # Errors
    /// When the CA cannot sign.
    pub fn trust(&self, key: &ClusterKey, ca: &KeyMaterial, now: Timestamp) -> Result<(), String> {
        let ours = pki::client(ca, COMMON_NAME, "", EncryptionAlgorithm::EcdsaP256, now)
            .map_err(|source| operator::words::chain(&source))?;
        let private = ours.private.unwrap_or_default();
        let tls = Tls::client(&ca.public, &ours.public, &private).map_err(|it| it.to_string())?;
        let cluster = Cluster {
            tls,
            since: Instant::now(),
            members: Mutex::default(),
        };
        self.clusters.lock().insert(key.clone(), Arc::new(cluster));
        Ok(())
    }

    /// Closes all connections to a cluster.
    pub fn forget(&self, key: &ClusterKey) {
        self.clusters.lock().remove(key);
    }

    /// Sends a request to the member on `node`. A broken connection from the cache is replaced once.
    pub(super) async fn with<T>(
        &self,
        target: &Target<'_>,
        node: &str,
        ask: impl Fn(etcd::Client) -> BoxFuture<'static, Result<T, etcd::Error>>,
    ) -> Result<T, String> {
        let known = self.clusters.lock().get(target.key).cloned();
        let cluster = known.ok_or("there is no client certificate for etcd")?;
        let kept = cluster.members.lock().get(node).cloned();
        match &kept {
            Some(ConnectionState::Silent { since, why }) if since.elapsed() < REST => {
                return Err(why.clone());
            }
            Some(ConnectionState::Open(connection)) => match ask(connection.client()).await {
                Err(etcd::Error::Broken(_)) => {}
                other => return cluster.remember(node, Some(connection), other),
            },
            _ => {}
        }
        let opening = open(target.client, &cluster.tls, node);
        let opened = match tokio::time::timeout(LIMIT, opening).await {
            Ok(opened) => opened.inspect_err(|_| cluster.drop_connection(node))?,
            Err(_) => {
                let silent = Err(etcd::Error::Timeout(LIMIT));
                return cluster.remember(node, None, silent);
            }
        };
        let opened = Arc::new(opened);
        close_when_unused(&cluster, node, &opened);
        let answer = ask(opened.client()).await;
        cluster.remember(node, Some(&opened), answer)
    }
}

impl Cluster {
    /// Keeps the [`Connection`] after any response of the member, even an error.
    fn remember<T>(
        &self,
        node: &str,
        connection: Option<&Arc<Connection>>,
        answer: Result<T, etcd::Error>,
    ) -> Result<T, String> {
        let mut members = self.members.lock();
        let why = answer
            .as_ref()
            .err()
            .map(|error| operator::words::chain(error));
        let known = match (&answer, connection) {
            (Ok(_) | Err(etcd::Error::Status(_)), Some(connection)) => {
                Some(ConnectionState::Open(Arc::clone(connection)))
            }
            (Err(etcd::Error::Timeout(_)), _) => Some(ConnectionState::Silent {
                since: Instant::now(),
                why: why.clone().unwrap_or_default(),
            }),
            _ => None,
        };
        match known {
            Some(known) => drop(members.insert(node.to_owned(), known)),
            None => drop(members.remove(node)),
        }
        answer.map_err(|_| why.unwrap_or_default())
    }

    fn drop_connection(&self, node: &str) {
        self.members.lock().remove(node);
    }
}

/// Closes `connection` to the member on `node` after [`UNUSED_FOR`] without use. A request in progress has a
/// reference to the [`Connection`], and ends first.
fn close_when_unused(cluster: &Arc<Cluster>, node: &str, connection: &Arc<Connection>) {
    let (cluster, connection) = (Arc::downgrade(cluster), Arc::downgrade(connection));
    let node = node.to_owned();
    tokio::spawn(async move {
        let mut remaining = UNUSED_FOR;
        while !remaining.is_zero() {
            tokio::time::sleep(remaining).await;
            let Some(connection) = connection.upgrade() else {
                return;
            };
            remaining = UNUSED_FOR.saturating_sub(connection.used.lock().elapsed());
        }
        let (Some(cluster), Some(connection)) = (cluster.upgrade(), connection.upgrade()) else {
            return;
        };
        let mut members = cluster.members.lock();
        let current = |known: &ConnectionState| matches!(known, ConnectionState::Open(open) if Arc::ptr_eq(open, &connection));
        if members.get(&node).is_some_and(current) {
            members.remove(&node);
        }
    });
}

/// Opens a [`Connection`] to the member on `node`.
async fn open(client: &Client, tls: &Tls, node: &str) -> Result<Connection, String> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), "kube-system");
    let pod = format!("etcd-{node}");
    let forwarding = pods.portforward(&pod, &[PORT]).await;
    let mut forwarder = forwarding.map_err(|source| {
        let why = operator::words::chain(&source);
        let advice = advice(&why, node);
        format!("port {PORT} of Pod kube-system/{pod} cannot be forwarded: {why}{advice}")
    })?;
    let refused = forwarder.take_error(PORT);
    let stream = forwarder
        .take_stream(PORT)
        .ok_or("the port has no stream")?;
    match etcd::Client::connect(stream, tls, LIMIT).await {
        Ok(client) => Ok(Connection {
            client,
            forwarder,
            used: Mutex::new(Instant::now()),
        }),
        Err(source) => {
            // The error of the port forwarding is more specific than the error of the connection.
            let words = async { refused?.await };
            let soon = Duration::from_millis(100);
            let words = tokio::time::timeout(soon, words).await.ok().flatten();
            forwarder.abort();
            Err(words.unwrap_or_else(|| operator::words::chain(&source)))
        }
    }
}

/// Advice for a kubelet that the API server does not find, recognised by kube-apiserver's words from
/// `GetPreferredNodeAddress`.
pub(super) fn advice(why: &str, node: &str) -> String {
    if why.contains("no preferred addresses found") {
        format!(" (Node {node} has no addresses: a cloud controller manager sets them)")
    } else {
        String::new()
    }
}
