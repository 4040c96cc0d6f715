//! Keystone: projects and application credentials of the user, and the content of tokens of others.

mod application_credential;

use jiff::Timestamp;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, Serialize};

use crate::call::Call;
use crate::error::{Error, ErrorKind, Result};
use crate::service::Service;
use crate::session::{Asker, Session, SubjectToken};

pub use application_credential::{ApplicationCredential, NewApplicationCredential, Place};

/// Project in which the user has a role.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Project {
    /// Id.
    pub id: String,
    /// Name.
    pub name: String,
    /// Id of the owning domain.
    pub domain_id: String,
    /// False if disabled.
    pub enabled: bool,
}

/// Id with its name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Named {
    /// Id.
    pub id: String,
    /// Name.
    pub name: String,
}

/// Id with its name, which is unique within a domain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct InDomain {
    /// Id.
    pub id: String,
    /// Name.
    pub name: String,
    /// Domain.
    pub domain: Named,
    /// Groups of a user, as named by an identity provider.
    #[serde(rename = "OS-FEDERATION")]
    pub federation: Option<Federation>,
}

/// Groups of a user, as named by an identity provider.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Federation {
    /// Groups by id, and by name if Keystone has the name.
    pub groups: Vec<Named>,
}

/// Request that an application credential allows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AccessRule {
    /// Type of the service.
    pub service: String,
    /// HTTP method.
    pub method: String,
    /// Path, in which `*` and `{name}` stand for a segment and `**` for any text.
    pub path: String,
}

/// Application credential of a token.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CredentialOfToken {
    /// Id.
    pub id: String,
    /// Name.
    pub name: String,
    /// Access rules, if the credential has any: the validator of the token must enforce them.
    pub access_rules: Option<Vec<AccessRule>>,
}

/// Content of a token: owner, scope, roles and expiry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TokenDescription {
    /// Owner.
    pub user: InDomain,
    /// Project of the scope.
    pub project: Option<InDomain>,
    /// True if the project is a domain that acts as one.
    pub is_domain: bool,
    /// Domain of the scope.
    pub domain: Option<Named>,
    /// Set if the scope is the whole cloud.
    pub system: Option<System>,
    /// Roles in the scope.
    pub roles: Vec<Named>,
    /// Methods of the login.
    pub methods: Vec<String>,
    /// Expiry.
    pub expires_at: Option<Timestamp>,
    /// Ids of the token and of its parent token, for logs.
    pub audit_ids: Vec<String>,
    /// Application credential behind the token.
    pub application_credential: Option<CredentialOfToken>,
    /// Trust by which the owner acts.
    #[serde(rename = "OS-TRUST:trust")]
    pub trust: Option<TrustOfToken>,
}

/// Scope of the whole cloud.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct System {
    /// Always true.
    pub all: bool,
}

/// Trust of a token.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TrustOfToken {
    /// Id.
    pub id: String,
    /// True if the token acts as the trustor.
    pub impersonation: bool,
}

/// Group of users.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Group {
    /// Id.
    pub id: String,
    /// Name.
    pub name: String,
    /// Id of the owning domain.
    pub domain_id: String,
}

/// Calls to Keystone. For the content of the session's own token see [`Session::token`].
#[derive(Clone, Debug)]
pub struct Identity {
    session: Session,
}

impl Session {
    /// Returns the calls to Keystone.
    pub fn identity(&self) -> Identity {
        Identity::new(self.clone())
    }
}

impl Identity {
    fn new(session: Session) -> Self {
        Self { session }
    }

    /// Lists the projects in which the user has a role.
    ///
    /// # Errors
    /// The [`Error`] of the request.
    pub async fn projects(&self) -> Result<Vec<Project>> {
        let call = Call::list(Service::Identity, "/auth/projects", &[]);
        self.session.list(call, "projects").await
    }

    /// Returns any project. For a project without a role of the user, the session's token needs a role such as a
    /// reader's in the whole cloud or in the domain.
    ///
    /// # Errors
    /// [`ErrorKind::Absent`] for an unknown project, [`ErrorKind::Denied`] if the session may not know.
    pub async fn project(&self, id: &str) -> Result<Project> {
        if id.is_empty() {
            return Err(Error::new(
                ErrorKind::Invalid,
                "the id of a project is empty",
            ));
        }
        let path = format!("/projects/{}", utf8_percent_encode(id, NON_ALPHANUMERIC));
        self.session
            .ask_keystone(
                Asker::Session,
                "/projects/{project_id}",
                &path,
                None,
                "project",
            )
            .await
    }

    /// Describes a token of somebody else, read with the session's token, which needs a role: `service`, an
    /// administrator's, or a reader's in the whole cloud.
    ///
    /// # Errors
    /// [`ErrorKind::Absent`] for a token that is unknown or no longer valid, [`ErrorKind::Denied`] if the session may
    /// not ask.
    pub async fn describe(&self, token: &SubjectToken) -> Result<TokenDescription> {
        self.describe_as(Asker::Session, token).await
    }

    /// Describes a token of somebody else, read with the token itself; the session does not log in.
    ///
    /// # Errors
    /// [`ErrorKind::Unauthenticated`] if the token is not valid.
    pub async fn describe_by_itself(&self, token: &SubjectToken) -> Result<TokenDescription> {
        self.describe_as(Asker::Subject(token), token).await
    }

    async fn describe_as(
        &self,
        asker: Asker<'_>,
        token: &SubjectToken,
    ) -> Result<TokenDescription> {
        let (route, path) = ("/auth/tokens", "/auth/tokens?nocatalog");
        self.session
            .ask_keystone(asker, route, path, Some(token), "token")
            .await
    }

    /// Lists the groups of a user, with the session's token.
    ///
    /// # Errors
    /// The [`Error`] of the request.
    pub async fn groups_of(&self, user_id: &str) -> Result<Vec<Group>> {
        self.groups_as(Asker::Session, user_id).await
    }

    /// Lists the groups of a user, with the user's token; the session does not log in.
    ///
    /// # Errors
    /// The [`Error`] of the request.
    pub async fn groups_by_itself(
        &self,
        user_id: &str,
        token: &SubjectToken,
    ) -> Result<Vec<Group>> {
        self.groups_as(Asker::Subject(token), user_id).await
    }

    async fn groups_as(&self, asker: Asker<'_>, user_id: &str) -> Result<Vec<Group>> {
        if user_id.is_empty() {
            return Err(Error::new(ErrorKind::Invalid, "the id of a user is empty"));
        }
        let user = utf8_percent_encode(user_id, NON_ALPHANUMERIC);
        let path = format!("/users/{user}/groups");
        self.session
            .ask_keystone(asker, "/users/{user_id}/groups", &path, None, "groups")
            .await
    }
}
