//! What every reconcile of this crate has at hand.

use std::sync::Arc;

use kube::Client;
use openstack::{Cloud, CloudPool};
use operator::events::Recorder;
use operator::retry::{Retry, When};

use crate::options::{Options, Settings};

/// What every reconcile has at hand.
pub(crate) struct Context {
    pub(crate) client: Client,
    pub(crate) clouds: CloudPool,
    pub(crate) recorder: Recorder,
    pub(crate) options: Options,
}

impl Context {
    /// What cloud.conf contains now.
    pub(crate) fn settings(&self) -> Arc<Settings> {
        Arc::clone(&self.options.settings.borrow())
    }

    /// The cloud of these settings, logged in.
    pub(crate) async fn cloud(&self, settings: &Settings) -> Result<Cloud, Error> {
        let cloud = self.clouds.get(&settings.cloud).await;
        cloud.map_err(Error::cloud("logging in to the cloud"))
    }
}

/// Why a reconcile did not get through.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The API server rejected a request.
    #[error("{doing}")]
    Kubernetes {
        /// What was being done.
        doing: &'static str,
        /// The API server's answer.
        source: kube::Error,
    },
    /// The cloud rejected a request, or did not answer.
    #[error("{doing}: {source}{}", advice(.source))]
    Cloud {
        /// What was being done.
        doing: String,
        /// The cloud's answer.
        source: openstack::Error,
    },
}

impl Error {
    pub(crate) fn kubernetes(doing: &'static str) -> impl FnOnce(kube::Error) -> Self {
        move |source| Self::Kubernetes { doing, source }
    }

    pub(crate) fn cloud(doing: impl Into<String>) -> impl FnOnce(openstack::Error) -> Self {
        let doing = doing.into();
        move |source| Self::Cloud { doing, source }
    }

    /// The same words whenever the same thing happens, for events.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Cloud { doing, source } => {
                format!("{doing}: {}{}", source.words(), advice(source))
            }
            other => operator::controller::chain(other),
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
        }
    }
}

/// What to do about a failed request.
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
