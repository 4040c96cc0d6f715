//! Reasons for an early end of a reconcile.

use std::time::Duration;

use operator::retry::{Retry, When};

/// Reason for an early end of a reconcile.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Problem {
    /// Error of a request to the API server.
    #[error("{doing}")]
    Api {
        /// Action that failed.
        doing: String,
        /// Error of the client, or the API server's answer.
        source: Box<kube::Error>,
    },
    /// Failed write of an account in RabbitMQ or Keystone; the text contains no password.
    #[error("{why}")]
    Accounts {
        /// Reason, for users.
        why: String,
        /// Pause before the next attempt.
        pause: Duration,
    },
    /// An object that cannot be decoded as its type.
    #[error("{0}")]
    Malformed(String),
}

impl Problem {
    /// Error of a failed request; `doing` says in words the purpose of the request.
    pub(crate) fn api(doing: impl Into<String>) -> impl FnOnce(kube::Error) -> Self {
        let doing = doing.into();
        |source| Self::Api {
            doing,
            source: Box::new(source),
        }
    }

    /// Message of the API server, if it rejected the content of a write.
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
                // The cause may change without a change of the cloud: a quota, a policy, a role.
                When::OnChange => When::Backoff,
                when => when,
            },
            Self::Accounts { pause, .. } => When::After(*pause),
            Self::Malformed(_) => When::OnChange,
        }
    }
}
