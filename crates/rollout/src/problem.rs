//! Why a reconcile ends early.

use std::time::Duration;

use operator::retry::{Retry, When};

/// Why a reconcile ends early.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Problem {
    /// The API server's answer.
    #[error("{doing}")]
    Api {
        /// Action that failed.
        doing: String,
        /// The answer.
        source: Box<kube::Error>,
    },
    /// Failed write of an account in RabbitMQ or Keystone, without a password in its words.
    #[error("{why}")]
    Accounts {
        /// Why.
        why: String,
        /// The pause until it is tried again.
        pause: Duration,
    },
    /// An object cannot be read as what it should be.
    #[error("{0}")]
    Malformed(String),
}

impl Problem {
    /// A request for `doing` has failed.
    pub(crate) fn api(doing: impl Into<String>) -> impl FnOnce(kube::Error) -> Self {
        let doing = doing.into();
        |source| Self::Api {
            doing,
            source: Box::new(source),
        }
    }

    /// The answer in the API server's own words, if it has rejected a write for what it holds.
    pub(crate) fn rejection(&self) -> Option<String> {
        match self {
            Self::Api { doing, source } => match source.as_ref() {
                kube::Error::Api(status) if matches!(status.code, 400 | 403 | 413 | 422) => {
                    Some(format!("{doing}: {}", status.message))
                }
                _ => None,
            },
            Self::Malformed(_) | Self::Accounts { .. } => None,
        }
    }
}

impl Retry for Problem {
    fn when(&self) -> When {
        match self {
            Self::Api { source, .. } => match source.when() {
                // What rejects it may be changed without a change of the cloud: a quota, a policy, a role.
                When::OnChange => When::Backoff,
                when => when,
            },
            Self::Accounts { pause, .. } => When::After(*pause),
            Self::Malformed(_) => When::OnChange,
        }
    }
}
