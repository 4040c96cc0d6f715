//! Keystone's verdict on a token.

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

/// Validation of tokens by Keystone.
pub trait Keystone: Send + Sync + 'static {
    /// Identity of a token, with the groups of its user if Keystone's answer has them, as [`Validated`].
    fn validate(&self, token: SecretString) -> BoxFuture<'_, Result<Validated, NotValidated>>;

    /// [`Groups`] of the token's user; `None` if the cloud hides groups from users.
    fn groups<'a>(
        &'a self,
        user_id: &'a str,
        token: SecretString,
    ) -> BoxFuture<'a, Result<Option<Groups>, NotValidated>>;
}

/// Groups of a user, shared by the identities of all of the user's tokens; a group is shared by its members.
pub type Groups = Arc<[Arc<Group>]>;

/// Token accepted by Keystone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Validated {
    /// [`Identity`] of the token.
    pub identity: Identity,
    /// Expiry of the token.
    pub expires_at: Timestamp,
}

/// Reason why a token has no identity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotValidated {
    /// Keystone refuses the token: unknown, expired, revoked, or of a disabled user or project.
    #[error("{0}")]
    Refused(String),
    /// Keystone does not answer.
    #[error("{reason}")]
    Outage {
        /// Answer of Keystone, or the reason why Keystone cannot be reached.
        reason: String,
        /// Keystone's wish for a pause before the next request.
        retry_after: Option<Duration>,
    },
}

/// Identity of a token, from Keystone's answer. Many identities are cached, and equal ones are shared.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    /// The user.
    pub user: Named,
    /// Domain of the user.
    pub domain: Named,
    /// [`Scope`] of the token.
    pub scope: Scope,
    /// True for a token from a trust.
    pub trust: bool,
    /// The names of the roles.
    pub roles: Box<[Box<str>]>,
    /// [`Groups`] of the user; `None` if unknown.
    pub groups: Option<Groups>,
    /// [`AccessRule`]s of the token's application credential; `None` without a limit.
    pub access_rules: Option<Box<[AccessRule]>>,
}

/// Object of Keystone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Named {
    /// The id.
    pub id: Box<str>,
    /// The name.
    pub name: Box<str>,
}

/// Scope of a token.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
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

/// Group of a user.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Group {
    /// The group.
    pub group: Named,
    /// Id of the group's domain; empty if unknown.
    pub domain_id: Box<str>,
}

/// Call that an application credential may make.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AccessRule {
    /// Type of the service.
    pub service: Box<str>,
    /// Method of HTTP.
    pub method: Box<str>,
    /// The path, with `*`, `**` and names in braces.
    pub path: Box<str>,
}

impl Identity {
    /// Size in bytes, including texts and lists.
    pub(crate) fn size(&self) -> usize {
        let scope = match &self.scope {
            Scope::Project(it) | Scope::Domain(it) => it.texts(),
            Scope::System | Scope::Unscoped => 0,
        };
        let roles = self.roles.iter().map(|it| size_of_val(it) + it.len());
        let rules = self.access_rules.iter().flatten();
        let rules =
            rules.map(|it| size_of_val(it) + it.service.len() + it.method.len() + it.path.len());
        let groups = self.groups.iter().flat_map(|groups| groups.iter());
        let groups = groups.map(|it| {
            size_of_val(it) + COUNTS + size_of::<Group>() + it.group.texts() + it.domain_id.len()
        });
        let lists: usize = roles.chain(rules).chain(groups).sum();
        COUNTS + size_of::<Self>() + self.user.texts() + self.domain.texts() + scope + lists
    }
}

/// Size in bytes of the two counts of an [`Arc`].
const COUNTS: usize = 2 * size_of::<usize>();

impl Named {
    fn texts(&self) -> usize {
        self.id.len() + self.name.len()
    }
}
