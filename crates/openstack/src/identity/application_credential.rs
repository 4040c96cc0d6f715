//! Application credentials of the session's user, and what programs with one ask for.

use std::fmt;

use jiff::Timestamp;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{AccessRule, Identity};
use crate::call::Call;
use crate::error::Result;
use crate::service::Service;
use crate::session::Session;

/// Application credential, without its secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ApplicationCredential {
    /// Id.
    pub id: String,
    /// Name, unique among those of the user.
    pub name: String,
    /// Description.
    pub description: String,
    /// Project to which the credential is bound.
    pub project_id: String,
}

/// New application credential. The secret is the caller's: a credential whose creation was answered to nobody can be
/// used all the same.
pub struct NewApplicationCredential {
    /// Name, unique among those of the user.
    pub name: String,
    /// Description.
    pub description: String,
    /// Secret.
    pub secret: SecretString,
    /// Names of roles; all roles of the session's token if empty.
    pub roles: Vec<String>,
    /// Expiry.
    pub expires_at: Timestamp,
    /// Requests that the credential allows.
    pub access_rules: Vec<AccessRule>,
}

impl fmt::Debug for NewApplicationCredential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NewApplicationCredential")
            .field(&self.name)
            .finish()
    }
}

impl Identity {
    /// Lists the application credentials of the session's user, in all projects.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn application_credentials(&self) -> Result<Vec<ApplicationCredential>> {
        let token = self.session.token().await?;
        let route = "/users/{user}/application_credentials";
        let call = Call::list(Service::Identity, route, &[&token.user_id]);
        self.session.list(call, "application_credentials").await
    }

    /// Creates an application credential of the session's user in the session's project.
    ///
    /// # Errors
    /// [`ErrorKind::Denied`](crate::ErrorKind::Denied) if the session itself is of an application credential that is
    /// not unrestricted.
    pub async fn create_application_credential(
        &self,
        new: &NewApplicationCredential,
    ) -> Result<ApplicationCredential> {
        let token = self.session.token().await?;
        let route = "/users/{user}/application_credentials";
        let mut body = json!({"name": new.name, "description": new.description, "unrestricted": false,
            "secret": new.secret.expose_secret(), "expires_at": new.expires_at.to_string(),
            "access_rules": new.access_rules});
        if !new.roles.is_empty() {
            let roles = new.roles.iter().map(|name| json!({"name": name}));
            body["roles"] = roles.collect();
        }
        let call = Call::post(Service::Identity, route, &[&token.user_id]);
        let call = call.body("application_credential", &body);
        self.session.one(call, "application_credential").await
    }

    /// Revokes an application credential of the session's user. One that is not there is no error.
    ///
    /// # Errors
    /// As [`Identity::create_application_credential`].
    pub async fn delete_application_credential(&self, id: &str) -> Result<()> {
        let token = self.session.token().await?;
        let route = "/users/{user}/application_credentials/{id}";
        let call = Call::delete(Service::Identity, route, &[&token.user_id, id]);
        match self.session.done(call).await {
            Err(error) if error.kind() == crate::ErrorKind::Absent => Ok(()),
            done => done,
        }
    }
}

/// Place of a service in the catalog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Service.
    pub service: Service,
    /// Types in the catalog.
    pub types: Vec<String>,
    /// Path of the API, version included.
    pub path: String,
}

impl Session {
    /// Returns the [`Place`] of a service; `None` for a service that the cloud lacks.
    ///
    /// # Errors
    /// As [`Session::token`].
    pub async fn place(&self, service: Service) -> Result<Option<Place>> {
        let token = self.token().await?;
        let Some(path) = self.path(&token, service) else {
            return Ok(None);
        };
        let catalog = token.catalog.iter();
        let types = catalog.map(|entry| entry.kind.clone());
        Ok(Some(Place {
            service,
            types: types
                .filter(|kind| service.types().contains(&kind.as_str()))
                .collect(),
            path,
        }))
    }

    /// Sends a GET for one item of a list, and drops the answer.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn try_list(&self, service: Service, route: &'static str) -> Result<()> {
        let call = Call::list(service, route, &[]).query("limit", "1");
        self.done(call).await
    }
}
