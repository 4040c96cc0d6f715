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

/// The storage of objects.
#[derive(Clone, Debug, Default)]
pub enum Store {
    /// In memory: objects are lost when the server ends.
    #[default]
    Memory,
    /// In one SQLite file (with its `-wal` and `-shm` files while it is open).
    Sqlite {
        /// The file. Its directory must exist; the file is created with mode 0600.
        path: PathBuf,
        /// When a write counts as durable.
        synchronous: Synchronous,
    },
}

/// When a write to SQLite is durable, and so is acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Synchronous {
    /// When the disk has flushed it: survives loss of power.
    #[default]
    Full,
    /// When the operating system has it: survives `kill -9`, may lose the last writes at loss of power.
    Normal,
}

/// The storage behind a real API server, as far as it decides whether writes succeed.
pub trait Backend: Send + Sync {
    /// Called before every write. Must not block.
    ///
    /// # Errors
    /// Why nothing can be written now, such as `etcdserver: request timed out`. It becomes the message of a 500.
    fn takes_writes(&self) -> Result<(), String>;
}

/// Why nothing will run a Pod or workload.
pub type NotRun = Arc<dyn Fn(&Value) -> Option<String> + Send + Sync>;

/// Why nobody but the process itself may change an object: what it would be, `None` for its deletion, and what it is now.
pub type Kept = Arc<dyn Fn(Option<&Value>, &Value) -> Option<String> + Send + Sync>;

/// Options of an API server. By default, objects are in memory, there are no hooks, and only in-process clients are
/// accepted.
#[derive(Clone)]
pub struct Options {
    /// The storage of objects.
    pub store: Store,
    /// Conversion and admission of custom kinds.
    pub hooks: Arc<dyn Hooks>,
    /// The kubelets of simulated nodes. Requests for a node that neither these nor `kubelet_client` reach fail.
    pub kubelet: Option<Arc<dyn Kubelet>>,
    /// How the kubelets of all other nodes are reached. `None`: requests to them fail as if none were reachable.
    pub kubelet_client: Option<KubeletClient>,
    /// PEM of the authorities of client certificates (user from CN, groups from O).
    pub client_ca: Option<String>,
    /// Static bearer tokens and their users.
    pub tokens: Vec<(SecretString, UserInfo)>,
    /// PEM of the RSA or P-256 private key that signs service account tokens (kubeadm's `sa.key`). `None`: a P-256 key
    /// is generated when it is first needed, so tokens are invalid after a restart.
    pub service_account_key: Option<SecretString>,
    /// The issuer of service account tokens.
    pub service_account_issuer: String,
    /// PEM of the authority by which pods verify the server, for the ConfigMap `kube-root-ca.crt` of every namespace.
    /// `None`: no such ConfigMap is created.
    pub root_ca: Option<String>,
    /// The target port of the Service `kubernetes` at 10.96.0.1. `None`: no such Service is created.
    pub kubernetes_service_port: Option<u16>,
    /// The address at which pods reach the server (`--advertise-address` with the port): the endpoint of the Service
    /// `kubernetes`. `None`: that Service has no endpoints.
    pub advertised: Option<SocketAddr>,
    /// What decides whether writes succeed. `None`: they always do.
    pub backend: Option<Arc<dyn Backend>>,
    /// The version in `/version`, such as `v1.34.1`.
    pub kubernetes_version: String,
    /// Says of a new Pod or workload (Deployment, DaemonSet, StatefulSet, ReplicaSet, Job, CronJob) why nothing here will
    /// run it: an Event on the object carries that, unless a scheduler or a controller manager runs beside the server.
    /// `None` from it, or no function: no Event.
    pub not_run: Option<NotRun>,
    /// Says of an object that clients outside of the process change or delete why they may not: a 403 with these words.
    /// `None` from it, or no function: they may.
    pub kept: Option<Kept>,
    /// Asked for the user of a bearer token that the server does not know, and whether a user may do what the server's
    /// rules do not allow. `None`: nobody is asked.
    pub reviewer: Option<Arc<dyn Reviewer>>,
    /// Further metrics of the process that `/metrics` appends, in the same text format.
    pub more_metrics: Option<Arc<dyn Fn() -> String + Send + Sync>>,
    /// The number of past events of each resource from which watches can resume; older ones get 410 Gone.
    pub history: usize,
    /// Where there is a file: the bytes of the objects of the latest events that are kept in memory, for watches that
    /// follow the writes. Older events are read from the file when a watch or a list asks for them.
    pub recent: usize,
    /// Where there is a file: whether it is closed while nothing is written, so that a server at rest takes neither the
    /// memory of SQLite nor open files. Another process can open the file then: something else must keep it away, such as
    /// a lock of the directory.
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
