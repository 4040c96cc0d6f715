//! Keystone: projects of the user, and what the tokens of others are.

use jiff::Timestamp;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, Serialize};

use crate::call::Call;
use crate::error::{Error, ErrorKind, Result};
use crate::service::Service;
use crate::session::{Asker, Session, SubjectToken};

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
    /// False if disabled.
    pub enabled: bool,
}

/// An id with its name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Named {
    /// Id.
    pub id: String,
    /// Name.
    pub name: String,
}

/// An id with its name, which is unique within a domain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct InDomain {
    /// Id.
    pub id: String,
    /// Name.
    pub name: String,
    /// The domain.
    pub domain: Named,
    /// Groups of a user, as an identity provider names them.
    #[serde(rename = "OS-FEDERATION")]
    pub federation: Option<Federation>,
}

/// Groups of a user, as an identity provider names them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Federation {
    /// The groups, by id, and by name where Keystone has it.
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

/// The application credential of a token.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CredentialOfToken {
    /// Id.
    pub id: String,
    /// Name.
    pub name: String,
    /// Its rules, if it has any: who validates the token has to enforce them.
    pub access_rules: Option<Vec<AccessRule>>,
}

/// Content of a token: owner, scope, roles and expiry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TokenDescription {
    /// The owner.
    pub user: InDomain,
    /// The project that it is for.
    pub project: Option<InDomain>,
    /// True if the project is a domain that acts as one.
    pub is_domain: bool,
    /// The domain that it is for.
    pub domain: Option<Named>,
    /// Set if the scope is the whole cloud.
    pub system: Option<System>,
    /// The roles in what it is for.
    pub roles: Vec<Named>,
    /// The methods of the login.
    pub methods: Vec<String>,
    /// When it ends.
    pub expires_at: Option<Timestamp>,
    /// Ids of the token and of the one that it comes from, for logs.
    pub audit_ids: Vec<String>,
    /// The application credential that it was issued for.
    pub application_credential: Option<CredentialOfToken>,
    /// The trust by which its owner acts.
    #[serde(rename = "OS-TRUST:trust")]
    pub trust: Option<TrustOfToken>,
}

/// The scope of the whole cloud.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct System {
    /// Always true.
    pub all: bool,
}

/// The trust of a token.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TrustOfToken {
    /// Id.
    pub id: String,
    /// True if the token acts as the trustor.
    pub impersonation: bool,
}

/// A group of users.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Group {
    /// Id.
    pub id: String,
    /// Name.
    pub name: String,
    /// Domain it belongs to.
    pub domain_id: String,
}

/// Calls to Keystone. The content of the token is in [`Session::token`].
#[derive(Clone, Debug)]
pub struct Identity {
    session: Session,
}

impl Session {
    /// Keystone.
    pub fn identity(&self) -> Identity {
        Identity::new(self.clone())
    }
}

impl Identity {
    fn new(session: Session) -> Self {
        Self { session }
    }

    /// The projects that the user has a role in.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn projects(&self) -> Result<Vec<Project>> {
        let call = Call::list(Service::Identity, "/auth/projects", &[]);
        self.session.list(call, "projects").await
    }

    /// A project, which need not be one of the user's: the session's token needs a role for that, such as a reader's in the
    /// whole cloud or in the domain.
    ///
    /// # Errors
    /// [`ErrorKind::Absent`] if there is none, [`ErrorKind::Denied`] if the session may not know.
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

    /// Content of a token of somebody else, read with the session's token, which needs a role: `service`, an
    /// administrator's, or a reader's in the whole cloud.
    ///
    /// # Errors
    /// [`ErrorKind::Absent`] if there is no such token any more, [`ErrorKind::Denied`] if the session may not ask.
    pub async fn describe(&self, token: &SubjectToken) -> Result<TokenDescription> {
        self.describe_as(Asker::Session, token).await
    }

    /// Content of a token of somebody else, read with that token; the session does not log in.
    ///
    /// # Errors
    /// [`ErrorKind::Unauthenticated`] if the token is not good.
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

    /// The groups of a user, asked with the session's token.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn groups_of(&self, user_id: &str) -> Result<Vec<Group>> {
        self.groups_as(Asker::Session, user_id).await
    }

    /// The groups of a user, asked with the user's token; the session does not log in.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
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
