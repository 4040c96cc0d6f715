//! Users.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// User of a request, as in TokenReview and SelfSubjectReview.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserInfo {
    /// User name, such as `system:node:worker-0`.
    #[serde(rename = "username")]
    pub name: String,
    /// Unique id of the user, never reused; empty without one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// Groups of the user, such as `system:masters`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// Further attributes from the authenticator.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extra: BTreeMap<String, Vec<String>>,
}

impl UserInfo {
    /// User with groups only.
    pub fn new<'a>(name: &str, groups: impl IntoIterator<Item = &'a str>) -> Self {
        Self {
            name: name.to_owned(),
            groups: groups.into_iter().map(str::to_owned).collect(),
            ..Self::default()
        }
    }

    /// User of in-process clients, with all permissions.
    pub fn admin() -> Self {
        Self::new("system:admin", ["system:masters", "system:authenticated"])
    }

    /// User of requests without credentials.
    pub fn anonymous() -> Self {
        Self::new("system:anonymous", ["system:unauthenticated"])
    }

    /// User with the id of the credential (KEP-4193).
    #[must_use]
    pub(crate) fn known_by(mut self, credential: String) -> Self {
        let name = "authentication.kubernetes.io/credential-id".to_owned();
        self.extra.insert(name, vec![credential]);
        self
    }

    /// True if the user is in `group`.
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|name| name == group)
    }
}
