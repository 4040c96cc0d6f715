//! Users.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The user of a request, as in TokenReview and SelfSubjectReview.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserInfo {
    /// The user name, such as `system:node:worker-0`.
    #[serde(rename = "username")]
    pub name: String,
    /// A unique id of the user that is never reused, if there is one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// The groups of the user, such as `system:masters`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// Further attributes from the authenticator.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extra: BTreeMap<String, Vec<String>>,
}

impl UserInfo {
    /// A user with groups only.
    pub fn new<'a>(name: &str, groups: impl IntoIterator<Item = &'a str>) -> Self {
        Self {
            name: name.to_owned(),
            groups: groups.into_iter().map(str::to_owned).collect(),
            ..Self::default()
        }
    }

    /// The user of in-process clients, who may do everything.
    pub fn admin() -> Self {
        Self::new("system:admin", ["system:masters", "system:authenticated"])
    }

    /// The user of requests without credentials.
    pub fn anonymous() -> Self {
        Self::new("system:anonymous", ["system:unauthenticated"])
    }

    /// The user with the id of its credential (KEP-4193).
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
