//! Users and their requests: the attributes of a SubjectAccessReview.

use std::collections::HashMap;

/// Extra key of the roles.
pub const ROLES: &str = "alpha.kubernetes.io/identity/roles";
/// Extra key of the project's id.
pub const PROJECT_ID: &str = "alpha.kubernetes.io/identity/project/id";
/// Extra key of the project's name.
pub const PROJECT_NAME: &str = "alpha.kubernetes.io/identity/project/name";
/// Extra key of the id of the user's domain.
pub const USER_DOMAIN_ID: &str = "alpha.kubernetes.io/identity/user/domain/id";
/// Extra key of the name of the user's domain.
pub const USER_DOMAIN_NAME: &str = "alpha.kubernetes.io/identity/user/domain/name";

/// Extra keys, each with its values.
pub type Extra = HashMap<String, Vec<String>>;

/// User, as known to the API server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    /// The name.
    pub name: String,
    /// Id; empty without one.
    pub uid: String,
    /// The groups.
    pub groups: Vec<String>,
    /// [`Extra`] keys; `None` for a user without authentication by a webhook.
    pub extra: Option<Extra>,
}

impl Subject {
    /// Roles in Keystone.
    pub fn roles(&self) -> &[String] {
        self.values(ROLES)
    }

    /// The ids and names of the project.
    pub fn projects(&self) -> impl Iterator<Item = &str> {
        let ids = self.values(PROJECT_ID).iter();
        ids.chain(self.values(PROJECT_NAME)).map(String::as_str)
    }

    /// True if Keystone has authenticated the user.
    pub fn is_of_keystone(&self) -> bool {
        let keys = [ROLES, PROJECT_ID, PROJECT_NAME, USER_DOMAIN_ID];
        let extra = self.extra.iter();
        extra
            .flat_map(HashMap::keys)
            .any(|key| keys.contains(&key.as_str()))
    }

    fn values(&self, key: &str) -> &[String] {
        let values = self.extra.as_ref().and_then(|extra| extra.get(key));
        values.map_or(&[], Vec::as_slice)
    }
}

/// Action of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attributes {
    /// Action on objects of the API.
    Resource(ResourceAttributes),
    /// Action on a path outside of resources.
    Path {
        /// Verb: the HTTP method, in lower case.
        verb: String,
        /// The path.
        path: String,
    },
}

/// Action on objects of the API.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceAttributes {
    /// Verb, such as `get`.
    pub verb: String,
    /// API group; empty for the core.
    pub group: String,
    /// Version of the group.
    pub version: String,
    /// Resource, such as `pods`.
    pub resource: String,
    /// Sub-resource, such as `exec`; mostly empty.
    pub subresource: String,
    /// Namespace; empty for all namespaces, and for cluster-scoped objects.
    pub namespace: String,
    /// Name; empty for all objects.
    pub name: String,
}
