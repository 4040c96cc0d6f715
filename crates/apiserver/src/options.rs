//! How an API server is set up.

use std::path::PathBuf;
use std::sync::Arc;

use secrecy::SecretString;

use crate::hooks::{Hooks, NoHooks};
use crate::pods::Kubelet;
use crate::user::UserInfo;

/// Where objects are kept.
#[derive(Clone, Debug, Default)]
pub enum Store {
    /// In memory: gone with the server.
    #[default]
    Memory,
    /// In one SQLite file (with its `-wal` and `-shm` beside it while open).
    Sqlite {
        /// The file. Its directory must exist; the file is created with mode 0600.
        path: PathBuf,
        /// When a write counts as durable.
        synchronous: Synchronous,
    },
}

/// When a write to SQLite counts as durable, and is acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Synchronous {
    /// Once the disk says so: survives loss of power.
    #[default]
    Full,
    /// Once the operating system has it: survives `kill -9`, may lose the last writes at loss of power.
    Normal,
}

/// How an API server is set up. The default keeps objects in memory, has no hooks, and lets nobody
/// in but in-process clients.
#[derive(Clone)]
pub struct Options {
    /// Where objects are kept.
    pub store: Store,
    /// Conversion and admission of custom kinds.
    pub hooks: Arc<dyn Hooks>,
    /// The kubelets of the nodes. None: there are none, and the server answers as one that reaches none.
    pub kubelet: Option<Arc<dyn Kubelet>>,
    /// PEM of the authorities whose client certificates are believed (user from CN, groups from O).
    pub client_ca: Option<String>,
    /// Bearer tokens that are always accepted, and whom each makes of its bearer.
    pub tokens: Vec<(SecretString, UserInfo)>,
    /// PEM of the RSA or P-256 private key that signs service account tokens (kubeadm's `sa.key`).
    /// None: a P-256 key made when first needed, so that tokens do not outlive the server.
    pub service_account_key: Option<SecretString>,
    /// The issuer that service account tokens name.
    pub service_account_issuer: String,
    /// PEM of the authority that pods verify the server with; it becomes the ConfigMap `kube-root-ca.crt` of every
    /// namespace. None: there is no such ConfigMap.
    pub root_ca: Option<String>,
    /// The port that the Service `kubernetes` leads to, at 10.96.0.1. None: there is no such Service.
    pub own_service: Option<u16>,
    /// What `/version` reports, as `v1.34.1`.
    pub kubernetes_version: String,
    /// Metrics of the same process that `/metrics` shows after the server's own, in the same text form.
    pub more_metrics: Option<Arc<dyn Fn() -> String + Send + Sync>>,
    /// How many past events of each resource watches can resume from before they get 410 Gone.
    pub history: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            store: Store::Memory,
            hooks: Arc::new(NoHooks),
            kubelet: None,
            client_ca: None,
            tokens: Vec::new(),
            service_account_key: None,
            service_account_issuer: "https://kubernetes.default.svc.cluster.local".to_owned(),
            root_ca: None,
            own_service: None,
            kubernetes_version: "v1.34.1".to_owned(),
            more_metrics: None,
            history: 1000,
        }
    }
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field("store", &self.store)
            .field("kubernetes_version", &self.kubernetes_version)
            .field("history", &self.history)
            .finish_non_exhaustive()
    }
}
