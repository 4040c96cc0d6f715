//! Options of an API server.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use secrecy::SecretString;
use serde_json::Value;

use crate::hooks::{Hooks, NoHooks};
use crate::kubelet::{Kubelet, KubeletClient};
use crate::reviewer::Reviewer;
use crate::user::UserInfo;

/// Storage of objects.
#[derive(Clone, Debug, Default)]
pub enum Store {
    /// In memory: objects are lost when the server ends.
    #[default]
    Memory,
    /// In one SQLite file (with `-wal` and `-shm` files while open).
    Sqlite {
        /// Path of the file, created with mode 0600. The directory must exist.
        path: PathBuf,
        /// When a write counts as durable.
        synchronous: Synchronous,
    },
}

/// Durability of an acknowledged write to SQLite.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Synchronous {
    /// The disk has flushed the write: survives loss of power.
    #[default]
    Full,
    /// The operating system has the write: survives `kill -9`, may lose the last writes at loss of power.
    Normal,
}

/// Storage behind a real API server: decides whether writes succeed.
pub trait Backend: Send + Sync {
    /// Called before every write. Must not block.
    ///
    /// # Errors
    /// The reason why nothing can be written now, such as `etcdserver: request timed out`: the message of a 500.
    fn takes_writes(&self) -> Result<(), String>;
}

/// Reason why nothing will run a Pod or workload.
pub type NotRun = Arc<dyn Fn(&Value) -> Option<String> + Send + Sync>;

/// Reason why only the process itself may change an object, from its new form, `None` for a deletion, and its current
/// form.
pub type Kept = Arc<dyn Fn(Option<&Value>, &Value) -> Option<String> + Send + Sync>;

/// Options of an API server. By default, objects are in memory, without hooks, and only in-process clients are
/// accepted.
#[derive(Clone)]
pub struct Options {
    /// Storage of objects.
    pub store: Store,
    /// Conversion and admission of custom kinds.
    pub hooks: Arc<dyn Hooks>,
    /// [`Kubelet`]s of simulated nodes. Requests for a node without a kubelet here or behind `kubelet_client` fail.
    pub kubelet: Option<Arc<dyn Kubelet>>,
    /// Client for the kubelets of all other nodes. `None`: requests to such nodes fail as if unreachable.
    pub kubelet_client: Option<KubeletClient>,
    /// PEM of the authorities of client certificates (user from CN, groups from O).
    pub client_ca: Option<String>,
    /// Static bearer tokens and their users.
    pub tokens: Vec<(SecretString, UserInfo)>,
    /// PEM of the RSA or P-256 private key that signs service account tokens (kubeadm's `sa.key`). `None`: a P-256
    /// key is generated at first use, so tokens are invalid after a restart.
    pub service_account_key: Option<SecretString>,
    /// Issuer of service account tokens.
    pub service_account_issuer: String,
    /// PEM of the authority for pods to verify the server, published in the ConfigMap `kube-root-ca.crt` of every
    /// namespace. `None`: no such ConfigMap is created.
    pub root_ca: Option<String>,
    /// Target port of the Service `kubernetes` at 10.96.0.1. `None`: no such Service is created.
    pub kubernetes_service_port: Option<u16>,
    /// Address of the server for pods (`--advertise-address` with the port): the endpoint of the Service
    /// `kubernetes`. `None`: the Service has no endpoints.
    pub advertised: Option<SocketAddr>,
    /// [`Backend`] that decides whether writes succeed. `None`: writes always do.
    pub backend: Option<Arc<dyn Backend>>,
    /// Version in `/version`, such as `v1.34.1`.
    pub kubernetes_version: String,
    /// Reason why nothing here will run a new Pod or workload (Deployment, DaemonSet, StatefulSet, ReplicaSet, Job,
    /// CronJob), published in an Event on the object, unless a scheduler or a controller manager runs beside the
    /// server. `None` from the function, or no function: no Event.
    pub not_run: Option<NotRun>,
    /// Reason why clients outside of the process may not change or delete an object: the message of a 403. `None`
    /// from the function, or no function: clients may.
    pub kept: Option<Kept>,
    /// [`Reviewer`] of bearer tokens unknown to the server, and of permissions beyond the server's rules. `None`: no
    /// reviewer is asked.
    pub reviewer: Option<Arc<dyn Reviewer>>,
    /// Further metrics of the process for `/metrics`, in the same text format.
    pub more_metrics: Option<Arc<dyn Fn() -> String + Send + Sync>>,
    /// Number of past events of each resource from which watches can resume; older events get 410 Gone.
    pub history: usize,
    /// With a file: maximum size in bytes of the objects of the latest events in memory, for watches that follow the
    /// writes. Older events are read from the file when a watch or a list needs them.
    pub recent: usize,
    /// With a file: closes the file while nothing is written, so that a server at rest takes neither the memory of
    /// SQLite nor open files. Another process can open the closed file, so the caller must keep others away, for
    /// example by a lock of the directory.
    pub closed_at_rest: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            store: Store::Memory,
            hooks: Arc::new(NoHooks),
            kubelet: None,
            kubelet_client: None,
            client_ca: None,
            tokens: Vec::new(),
            service_account_key: None,
            service_account_issuer: "https://kubernetes.default.svc.cluster.local".to_owned(),
            root_ca: None,
            kubernetes_service_port: None,
            advertised: None,
            backend: None,
            kubernetes_version: "v1.34.1".to_owned(),
            not_run: None,
            kept: None,
            reviewer: None,
            more_metrics: None,
            history: 1000,
            recent: 2 << 20,
            closed_at_rest: false,
        }
    }
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field("store", &self.store)
            .field("kubernetes_version", &self.kubernetes_version)
            .field("history", &self.history)
            .field("recent", &self.recent)
            .finish_non_exhaustive()
    }
}
