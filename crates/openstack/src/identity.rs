//! Keystone: projects of the user.

use serde::{Deserialize, Serialize};

use crate::call::Call;
use crate::error::Result;
use crate::service::Service;
use crate::session::Session;

/// A project in which the user has a role.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Project {
    /// Id.
    pub id: String,
    /// Name.
    pub name: String,
    /// Domain it belongs to.
    pub domain_id: String,
    /// Whether it can be used.
    pub enabled: bool,
}

/// Calls to Keystone. The content of the token is in [`Session::token`].
#[derive(Clone, Debug)]
pub struct Identity {
    session: Session,
}

impl Identity {
    pub(crate) fn new(session: Session) -> Self {
        Self { session }
    }

    /// The projects that the user has a role in.
    ///
    /// # Errors
    /// Those of the request.
    pub async fn projects(&self) -> Result<Vec<Project>> {
        let call = Call::list(Service::Identity, "/auth/projects", &[]);
        self.session.list(call, "projects").await
    }
}
