//! Shared context of all reconciles of this crate.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use api::k8s_openapi::api::core::v1::Namespace;
use kube::{Client, ResourceExt};
use openstack::{Cloud, CloudPool};
use operator::client::Api;
use operator::events::Recorder;
use operator::retry::{Retry, When};
use tokio::sync::OnceCell;

use crate::metrics::Metrics;
use crate::options::{Options, Settings};
use crate::revision;

/// Shared context of all reconciles.
pub(crate) struct Context {
    pub(crate) client: Client,
    pub(crate) clouds: CloudPool,
    pub(crate) recorder: Recorder,
    /// [`Metrics`] under the names of the Go manager.
    pub(crate) metrics: Metrics,
    pub(crate) options: Options,
    /// Uid of the cluster, once read.
    pub(crate) uid: OnceCell<String>,
}

impl Context {
    /// Current [`Settings`] from cloud.conf.
    pub(crate) fn settings(&self) -> Arc<Settings> {
        Arc::clone(&self.options.settings.borrow())
    }

    /// Identity of the cluster: the uid of the namespace kube-system.
    pub(crate) async fn cluster(&self) -> Result<&str, Error> {
        let read = || async {
            let namespaces = Api::<Namespace>::all(self.client.clone());
            let namespace = namespaces.get("kube-system").await;
            let namespace = namespace.map_err(Error::kubernetes(
                "reading the uid of namespace kube-system",
            ))?;
            Ok(namespace.uid().unwrap_or_default())
        };
        self.uid.get_or_try_init(read).await.map(String::as_str)
    }

    /// Authenticated session with the cloud of the [`Settings`].
    pub(crate) async fn cloud(&self, settings: &Settings) -> Result<Cloud, Error> {
        let failed = || Error::cloud("logging in to the cloud");
        let cloud = self.clouds.get(&settings.cloud).await;
        let cloud = cloud.map_err(failed())?;
        if settings.cloud.credential.has_default_scope() {
            cloud.session.project_id().await.map_err(failed())?;
        }
        Ok(cloud)
    }
}

/// Error of a reconcile.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// A request to the API server failed.
    #[error("{doing}")]
    Kubernetes {
        /// Failed operation.
        doing: &'static str,
        /// Error of the API server.
        source: kube::Error,
    },
    /// A request to the cloud failed.
    #[error("{}", explained(.doing, .source, .source))]
    Cloud {
        /// Failed operation.
        doing: String,
        /// Error of the cloud.
        source: openstack::Error,
    },
    /// The cloud refuses a setting of an object; the text names the setting, its value, and the remedy.
    #[error("{0}")]
    Refused(String),
    /// The driver gives a load balancer one address, so the second family gets a load balancer of its own.
    #[error("the driver {0} gives a load balancer one address")]
    OneAddress(String),
    /// The stored record of routes is invalid; the text names the object and the line.
    #[error("{0}")]
    Record(String),
}

impl Error {
    pub(crate) fn kubernetes(doing: &'static str) -> impl FnOnce(kube::Error) -> Self {
        move |source| Self::Kubernetes { doing, source }
    }

    pub(crate) fn cloud(doing: impl Into<String>) -> impl FnOnce(openstack::Error) -> Self {
        let doing = doing.into();
        move |source| Self::Cloud { doing, source }
    }

    /// Message for events, identical for equal errors.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Cloud { doing, source } => explained(doing, source, &source.words()),
            other => operator::words::chain(other),
        }
    }
}

impl Retry for Error {
    fn when(&self) -> When {
        match self {
            Self::Kubernetes { source, .. } => source.when(),
            Self::Cloud { source, .. } => match source.retry_after() {
                Some(pause) => When::After(pause),
                None => When::Backoff,
            },
            Self::OneAddress(_) => When::Now,
            Self::Refused(_) | Self::Record(_) => When::After(Duration::from_secs(60)),
        }
    }
}

/// Failed operation, reason in the cloud's `words`, and advice for the user. Neutron's words for an outdated revision
/// are mere numbers.
fn explained(doing: &str, error: &openstack::Error, words: &impl Display) -> String {
    match revision::is_stale(error) {
        true => format!(
            "{doing}: {} was changed by others after it was read, so that nothing is written; this is tried again",
            error.path()
        ),
        false => format!("{doing}: {words}{}", advice(error)),
    }
}

/// Advice for the user after a failed request.
fn advice(error: &openstack::Error) -> &'static str {
    use openstack::ErrorKind;
    match error.kind() {
        ErrorKind::Quota => {
            ". Free some of it or ask for more quota (openstack quota show --usage); this is tried again"
        }
        ErrorKind::Denied => {
            ". The credentials in cloud.conf may not do this: use others or ask the cloud's operator for the role"
        }
        ErrorKind::Unauthenticated => ". Check [Global] in cloud.conf",
        ErrorKind::Unreachable => {
            ". Check auth-url in cloud.conf, the network and ca-file; this is tried again"
        }
        _ => "",
    }
}
