//! Judgement of Keystone about a token.

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
    fn validate(&self, token: SecretString) -> BoxFuture<'_, Result<Validated, NotValidated>>;

    /// The groups of the user whose token this is; `None` if the cloud keeps them from its users.
    fn groups<'a>(
        &'a self,
        user_id: &'a str,
        token: SecretString,
    ) -> BoxFuture<'a, Result<Option<Groups>, NotValidated>>;
}

/// The groups of a user, which the identities of all of its tokens share; a group is shared by its members.
pub type Groups = Arc<[Arc<Group>]>;

/// A token that Keystone accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Validated {
    /// Who it is.
    pub identity: Identity,
    /// Its end.
    pub expires_at: Timestamp,
}

/// Why a token has no identity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotValidated {
    /// Keystone says that it is none: unknown, expired, revoked, or of a user or project that is disabled.
    #[error("{0}")]
    Refused(String),
    /// Keystone does not say.
    #[error("{reason}")]
    Outage {
        /// Answer of Keystone, or the reason why Keystone cannot be reached.
        reason: String,
        /// For how long it asks to be left alone.
        retry_after: Option<Duration>,
    },
}

/// Who a token is, as Keystone says. Many of them are kept, and tokens that are the same share one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    /// The user.
    pub user: Named,
    /// The domain of the user.
    pub domain: Named,
    /// Scope of the token.
    pub scope: Scope,
    /// True if the token is from a trust.
    pub trust: bool,
    /// The names of the roles.
    pub roles: Box<[Box<str>]>,
    /// The groups of the user; `None` if nobody has said.
    pub groups: Option<Groups>,
    /// Access rules of the token's application credential; `None` without a limit.
    pub access_rules: Option<Box<[AccessRule]>>,
}

/// An object of Keystone.
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

/// A group of a user.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Group {
    /// The group.
    pub group: Named,
    /// The id of its domain; empty if Keystone does not say.
    pub domain_id: Box<str>,
}

/// A call that an application credential may make.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AccessRule {
    /// The type of the service.
    pub service: Box<str>,
    /// The method of HTTP.
    pub method: Box<str>,
    /// The path, with `*`, `**` and names in braces.
    pub path: Box<str>,
}

impl Identity {
    /// The bytes that it takes, with its texts and lists.
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

/// The two counts of an [`Arc`].
const COUNTS: usize = 2 * size_of::<usize>();

impl Named {
    fn texts(&self) -> usize {
        self.id.len() + self.name.len()
    }
}
