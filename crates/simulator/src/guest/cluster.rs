//! Workload cluster: its API server, the control plane guests behind it, and the keeper task, with
//! kube-controller-manager's part for nodes and tokens.

mod addons;
mod disruption;
mod followed;
mod keeper;
mod services;

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use apiserver::{ApiServer, Backend, Kubelet, Store, Synchronous};
use rustls::ServerConfig;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Mutex, Notify, mpsc};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::api::Api;
use super::console::Consoles;
use super::kubelet::Kubelets;
use super::pki::Pki;
use super::record::StateDir;
use crate::etcd::{self, Etcd};

pub(crate) use keeper::Signal;
pub(crate) use services::{ServicePort, ServicePorts};

/// Number of past events of each resource in a workload API server; there may be thousands of servers.
const HISTORY: usize = 50;
/// Bytes of recent events in memory: a process can have many clusters, each with a few watches.
const RECENT: usize = 128 << 10;

/// Workload cluster, opened by at least one control plane guest.
pub(crate) struct Cluster {
    /// Unique key: the hash of the authority, and the id of the instance that ran `kubeadm init`.
    pub(crate) key: String,
    /// `sha256:<hex>` of the authority's public key.
    pub(crate) ca_hash: String,
    /// Host of the control plane endpoint, as in kubeconfigs.
    pub(crate) endpoint_host: Option<String>,
    /// Client with the permissions of an administrator.
    pub(crate) api: Api,
    /// Members of etcd; empty if etcd is external.
    pub(crate) etcd: Arc<Etcd>,
    /// Kubelets, for the API server.
    pub(crate) kubelets: Arc<Kubelets>,
    /// Node ports that the nodes answer.
    pub(crate) services: ServicePorts,
    server: ApiServer,
    signals: mpsc::UnboundedSender<Signal>,
    stop: CancellationToken,
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster")
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

/// Returns the reason why a Pod or workload of a user is not run. The add-ons of kubeadm look as if they ran.
fn not_run(object: &Value) -> Option<String> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    let add_on = matches!(text("/metadata/name"), Some("kube-proxy" | "coredns"))
        || matches!(
            text("/metadata/labels/k8s-app"),
            Some("kube-proxy" | "kube-dns")
        );
    if add_on && text("/metadata/namespace") == Some("kube-system") {
        return None;
    }
    let what = match text("/kind")? {
        "Pod" => "this Pod stays Pending".to_owned(),
        kind => format!("no Pods are created for this {kind}"),
    };
    Some(format!(
        "the nodes of this cluster are simulated and run no containers: {what}. `ferrostack up` with --cloud or \
         --guest-runner has nodes that do"
    ))
}

/// etcd as the backend of the API servers.
struct Behind(Arc<Etcd>);

impl Backend for Behind {
    fn takes_writes(&self) -> Result<(), String> {
        self.0.takes_writes()
    }
}

/// Control plane guest that serves its cluster's API.
pub(crate) struct Member {
    /// Nova's server id.
    pub(crate) instance: String,
    /// Name of the Node.
    pub(crate) node: String,
    /// Version of the API server, such as `v1.34.1`. During an upgrade, members have different versions.
    pub(crate) version: Arc<str>,
    /// Cluster of the guest.
    pub(crate) cluster: Arc<Cluster>,
    /// Serving certificate, and the authority of client certificates.
    pub(crate) tls: Arc<ServerConfig>,
    /// Fixed addresses, with the port of the API server.
    pub(crate) addresses: Vec<SocketAddr>,
    /// Cancelled when the guest stops; its connections are closed then.
    pub(crate) alive: CancellationToken,
    /// Cancelled with `alive`, and on the removal of the etcd member: the API server uses no other member.
    pub(crate) serving: CancellationToken,
    /// TLS of the etcd member; `None` for an external etcd.
    pub(crate) etcd: Option<TlsAcceptor>,
}

impl std::fmt::Debug for Member {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Member")
            .field("instance", &self.instance)
            .field("node", &self.node)
            .finish_non_exhaustive()
    }
}

/// Arguments of [`Clusters::open`].
#[derive(Clone, Debug)]
pub(crate) struct Opening<'a> {
    /// See [`Cluster::key`].
    pub(crate) key: &'a str,
    /// Certificates of the control plane guest that opens the cluster.
    pub(crate) pki: &'a Pki,
    /// See [`Cluster::endpoint_host`].
    pub(crate) endpoint_host: Option<String>,
    /// Version of the machine that opens the cluster, such as `v1.34.1`. Other machines report their own in `/version`.
    pub(crate) version: String,
}

/// Why a workload API server could not be opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    #[error("cannot create the state directory of workload cluster {key}: {source}")]
    Directory { key: String, source: io::Error },
    #[error("cannot read the etcd members of workload cluster {key}: {source}")]
    Members { key: String, source: io::Error },
    #[error("cannot open the API server of workload cluster {key}: {source}")]
    Server {
        key: String,
        source: apiserver::OpenError,
    },
}

/// All open clusters, by key.
#[derive(Debug)]
pub(crate) struct Clusters {
    state: StateDir,
    node_grace: Duration,
    tasks: TaskTracker,
    consoles: Consoles,
    reviewer: Option<Arc<dyn apiserver::Reviewer>>,
    /// Notified when node ports of a cluster have changed.
    ports_changed: Arc<Notify>,
    open: Mutex<HashMap<String, Arc<Cluster>>>,
}

impl Clusters {
    /// Creates an empty set of clusters; their keepers run in `tasks`.
    pub(crate) fn new(
        state: StateDir,
        node_grace: Duration,
        tasks: TaskTracker,
        consoles: Consoles,
        reviewer: Option<Arc<dyn apiserver::Reviewer>>,
    ) -> Self {
        Self {
            state,
            node_grace,
            tasks,
            consoles,
            reviewer,
            ports_changed: Arc::default(),
            open: Mutex::new(HashMap::new()),
        }
    }

    /// Returns a signal for changed node ports of a cluster.
    pub(crate) fn ports_changed(&self) -> Arc<Notify> {
        Arc::clone(&self.ports_changed)
    }

    /// Returns the [`Cluster`], opened if necessary.
    pub(crate) async fn open(&self, opening: Opening<'_>) -> Result<Arc<Cluster>, OpenError> {
        let mut open = self.open.lock().await;
        let key = opening.key.to_owned();
        if let Some(cluster) = open.get(&key) {
            return Ok(Arc::clone(cluster));
        }
        let store = match self.state.database(&key) {
            Ok(None) => Store::Memory,
            // The cluster must survive `kill -9`, but not loss of power.
            Ok(Some(path)) => Store::Sqlite {
                path,
                synchronous: Synchronous::Normal,
            },
            Err(source) => return Err(OpenError::Directory { key, source }),
        };
        let members = self.state.members(&key);
        let etcd = Etcd::open(members).map_err(|source| OpenError::Members {
            key: key.clone(),
            source,
        })?;
        let etcd = Arc::new(etcd);
        let kubelets = Arc::new(Kubelets::new(self.consoles.clone()));
        let options = apiserver::Options {
            store,
            backend: Some(Arc::new(Behind(Arc::clone(&etcd)))),
            kubelet: Some(Arc::clone(&kubelets) as Arc<dyn Kubelet>),
            client_ca: Some(opening.pki.ca.pem.clone()),
            service_account_key: Some(opening.pki.service_account_key.clone()),
            kubernetes_version: opening.version,
            history: HISTORY,
            recent: RECENT,
            // The state directory belongs to one process.
            closed_at_rest: true,
            not_run: Some(Arc::new(not_run)),
            reviewer: self.reviewer.clone(),
            ..apiserver::Options::default()
        };
        let server = ApiServer::open(options)
            .await
            .map_err(|source| OpenError::Server {
                key: key.clone(),
                source,
            })?;
        let in_process = server.in_process();
        let (signals, received) = mpsc::unbounded_channel();
        let cluster = Arc::new(Cluster {
            key: key.clone(),
            ca_hash: opening.pki.ca.hash(),
            endpoint_host: opening.endpoint_host,
            api: Api::new(in_process.clone(), "kubeadm"),
            etcd,
            kubelets,
            services: ServicePorts::default(),
            server,
            signals,
            stop: CancellationToken::new(),
        });
        let ports = Arc::clone(&cluster.services);
        let services = services::follow(&in_process, ports, self.ports_changed());
        self.tasks
            .spawn(cluster.stop.clone().run_until_cancelled_owned(services));
        let keeper = keeper::Keeper::new(in_process, received, self.node_grace);
        self.tasks
            .spawn(cluster.stop.clone().run_until_cancelled_owned(keeper.run()));
        open.insert(key, Arc::clone(&cluster));
        Ok(cluster)
    }

    /// Returns the open [`Cluster`]s with this authority; several if an authority is used more than once.
    pub(crate) async fn with_authority(&self, hash: &str) -> Vec<Arc<Cluster>> {
        let open = self.open.lock().await;
        open.values()
            .filter(|cluster| cluster.ca_hash == hash)
            .cloned()
            .collect()
    }

    /// Returns the etcd of each open cluster.
    pub(crate) async fn etcds(&self) -> Vec<Arc<Etcd>> {
        let open = self.open.lock().await;
        open.values().map(|it| Arc::clone(&it.etcd)).collect()
    }

    /// Deletes a cluster and all its objects.
    pub(crate) async fn remove(&self, key: &str) {
        let mut open = self.open.lock().await;
        if let Some(cluster) = open.remove(key) {
            cluster.close().await;
        }
        self.state.remove_cluster(key);
    }

    /// Closes all clusters and keeps their files.
    pub(crate) async fn close(&self) {
        let clusters: Vec<_> = self.open.lock().await.drain().collect();
        for (_, cluster) in clusters {
            cluster.close().await;
        }
    }
}

impl Cluster {
    /// Sends a signal to the keeper.
    pub(crate) fn signal(&self, signal: Signal) {
        // Fails only after the end of the keeper, which ends with the cluster.
        let _ = self.signals.send(signal);
    }

    async fn close(&self) {
        self.stop.cancel();
        self.server.clone().close().await;
    }
}

impl Member {
    /// Serves one connection to this member's API server, from the TLS handshake to the end. Requests are authenticated
    /// and authorized, as by any API server.
    pub(crate) async fn serve<S>(&self, stream: S)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (tls, version) = (Arc::clone(&self.tls), Arc::clone(&self.version));
        self.cluster.server.serve_stream(stream, tls, version).await;
    }

    /// True if the machine listens on a port.
    pub(crate) fn listens(&self, port: u16) -> bool {
        let api = self.addresses.iter().any(|at| at.port() == port);
        let etcd = self.etcd.is_some() && port == etcd::PORT;
        (api || etcd) && !self.serving.is_cancelled()
    }

    /// Serves one connection to a port of the machine.
    pub(crate) async fn serve_port<S>(&self, port: u16, stream: S)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        match &self.etcd {
            Some(tls) if port == etcd::PORT => {
                let etcd = Arc::clone(&self.cluster.etcd);
                etcd.serve(&self.instance, tls.clone(), stream).await;
            }
            _ => self.serve(stream).await,
        }
    }
}
