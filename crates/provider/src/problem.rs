//! Problems reported in conditions, with messages for users.

use std::fmt;
use std::time::Duration;

use api::conditions::{Reason, Type};
use openstack::{Error, ErrorKind, Kind};
use operator::retry::{Retry, When};

/// Reason why an object does not become ready.
#[derive(Clone, Debug)]
pub struct Problem {
    /// [`Type`] of the condition with the problem, besides Ready.
    pub about: Type,
    /// The condition's reason.
    pub reason: Reason,
    /// Problem, with the message of the cloud if any, and what to do next.
    pub message: String,
    /// When to retry.
    pub when: When,
    /// True if the failed step has published an event.
    pub is_announced: bool,
    /// True if the quota has no room for a server.
    pub lacks_quota: bool,
    /// True if Nova rejects a rebuild, however often it is asked.
    pub is_refused: bool,
    /// [`Kind`] whose list was searched in vain: a newer list may have the resource.
    pub searched: Option<Kind>,
    /// [`Awaited`] object whose change may solve the problem, if no field of the object names that one.
    pub awaited: Option<Awaited>,
}

/// Object whose change may solve a problem: namespace and name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Awaited {
    /// A Secret.
    Secret(String, String),
    /// An Image of ORC.
    Image(String, String),
}

impl Problem {
    /// Problem with the spec or with a resource referred to in the spec. Changes of the object trigger a reconcile;
    /// referenced resources in the cloud are checked once a minute.
    pub fn new(about: Type, reason: Reason, message: impl Into<String>) -> Self {
        let when = When::After(Duration::from_secs(60));
        Self {
            about,
            reason,
            message: message.into(),
            when,
            is_announced: false,
            lacks_quota: false,
            is_refused: false,
            searched: None,
            awaited: None,
        }
    }

    /// Problem of a failed request to the cloud, while `doing` something.
    pub fn cloud(about: Type, reason: Reason, doing: &str, error: &Error) -> Self {
        // The message must be the same each time, so the request id is only logged.
        tracing::warn!("{doing}: {error}");
        let message = format!("{}{}", error.cause(doing), advice(error));
        Self {
            about,
            reason,
            message,
            when: when(error),
            is_announced: false,
            lacks_quota: false,
            is_refused: false,
            searched: None,
            awaited: None,
        }
    }

    /// Same problem, solved perhaps by a change of this Image of ORC.
    #[must_use]
    pub fn of_image(mut self, namespace: &str, name: &str) -> Self {
        self.awaited = Some(Awaited::Image(namespace.to_owned(), name.to_owned()));
        self
    }

    /// Same problem, solved perhaps by a change of this Secret.
    #[must_use]
    pub fn of_secret(mut self, namespace: &str, name: &str) -> Self {
        self.awaited = Some(Awaited::Secret(namespace.to_owned(), name.to_owned()));
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Problem {}

impl Retry for Problem {
    fn when(&self) -> When {
        self.when
    }
}

/// When to retry a failed request.
pub fn when(error: &Error) -> When {
    match error.kind() {
        ErrorKind::Absent | ErrorKind::Busy | ErrorKind::Conflict | ErrorKind::Protocol => {
            When::Backoff
        }
        ErrorKind::Transient {
            retry_after: Some(pause),
        } => When::After(pause),
        ErrorKind::Transient { retry_after: None } | ErrorKind::Unreachable => When::Backoff,
        ErrorKind::Quota | ErrorKind::Denied | ErrorKind::Invalid => {
            When::After(Duration::from_secs(60))
        }
        ErrorKind::Unauthenticated => When::After(Duration::from_secs(30)),
    }
}

/// Advice for the user after a failed request.
fn advice(error: &Error) -> &'static str {
    match error.kind() {
        ErrorKind::Quota => {
            ". Free some of it or ask for more quota (openstack quota show --usage); this is tried \
             again every minute"
        }
        ErrorKind::Denied => {
            ". The credentials may not do this: use others or ask the cloud's operator for the role"
        }
        ErrorKind::Unauthenticated => {
            ". Check the clouds.yaml in the Secret that identityRef names"
        }
        ErrorKind::Unreachable => ". Check auth_url, the network and the CA; this is tried again",
        _ => "",
    }
}
