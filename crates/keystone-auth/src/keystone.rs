//! What Keystone says of a token.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;
use secrecy::SecretString;

mod answer;
mod client;
#[cfg(test)]
mod tests;

pub use self::client::{Http, normal_url};

/// Asks who a token is.
pub trait Keystone: Send + Sync + 'static {
    /// The identity of a token, with the groups of its user if Keystone's answer has them.
    fn validate(&self, token: SecretString) -> BoxFuture<'_, Result<Identity, NotValidated>>;

    /// The groups of the user whose token this is; `None` if the cloud keeps them from its users.
    fn groups<'a>(
        &'a self,
        user_id: &'a str,
        token: SecretString,
    ) -> BoxFuture<'a, Result<Option<Groups>, NotValidated>>;
}

/// The groups of a user, which the identities of all of its tokens share.
pub type Groups = Arc<[Group]>;

/// Why a token has no identity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotValidated {
    /// Keystone says that it is none: unknown, expired, revoked, or of a user or project that is disabled.
    #[error("{0}")]
    Refused(String),
    /// Keystone does not say.
    #[error("{reason}")]
    Outage {
        /// What it answered, or why it cannot be reached.
        reason: String,
        /// For how long it asks to be left alone.
        retry_after: Option<Duration>,
    },
}

/// Who a token is, as Keystone says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The user.
    pub user: Named,
    /// The domain of the user.
    pub domain: Named,
    /// What the token is for.
    pub scope: Scope,
    /// Whether the token is from a trust.
    pub trust: bool,
    /// The names of the roles.
    pub roles: Vec<String>,
    /// The groups of the user; `None` if nobody has said.
    pub groups: Option<Groups>,
    /// The end of the token.
    pub expires_at: Timestamp,
    /// What the token's application credential may call; `None` if that is not limited.
    pub access_rules: Option<Vec<AccessRule>>,
}

/// An object of Keystone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named {
    /// The id.
    pub id: String,
    /// The name.
    pub name: String,
}

/// What a token is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// A project.
    Project(Named),
    /// A domain.
    Domain(Named),
    /// The whole system.
    System,
    /// Nothing.
    Unscoped,
}

/// A group of a user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// The group.
    pub group: Named,
    /// The id of its domain; empty if Keystone does not say.
    pub domain_id: String,
}

/// A call that an application credential may make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessRule {
    /// The type of the service.
    pub service: String,
    /// The method of HTTP.
    pub method: String,
    /// The path, with `*`, `**` and names in braces.
    pub path: String,
}

impl Identity {
    /// About the bytes that it takes.
    pub(crate) fn size(&self) -> usize {
        let names = [&self.user, &self.domain].map(|it| it.id.len() + it.name.len());
        let groups = self.groups.iter().flat_map(|groups| groups.iter());
        let groups = groups.map(|it| it.group.id.len() + it.group.name.len() + it.domain_id.len());
        let roles = self.roles.iter().map(String::len);
        let rules = self.access_rules.iter().flatten();
        let rules = rules.map(|it| it.service.len() + it.method.len() + it.path.len());
        let all = names.into_iter().chain(groups).chain(roles).chain(rules);
        // Each text and each list has a header besides.
        512 + all.map(|length| length + 64).sum::<usize>()
    }
}
