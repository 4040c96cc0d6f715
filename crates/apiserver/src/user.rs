//! Who a request comes from.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Who a request comes from, as TokenReview and SelfSubjectReview show it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserInfo {
    /// The user name, as `system:node:worker-0`.
    #[serde(rename = "username")]
    pub name: String,
    /// A name for the user that is never used again, if there is one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// The groups that the user is in, as `system:masters`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// What else the authenticator knows.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extra: BTreeMap<String, Vec<String>>,
}

impl UserInfo {
    /// A user with groups and nothing else.
    pub fn new<'a>(name: &str, groups: impl IntoIterator<Item = &'a str>) -> Self {
        Self {
            name: name.to_owned(),
            groups: groups.into_iter().map(str::to_owned).collect(),
            ..Self::default()
        }
    }

    /// Who in-process clients are: they may do everything.
    pub fn admin() -> Self {
        Self::new("system:admin", ["system:masters", "system:authenticated"])
    }

    /// Who a client without credentials is.
    pub fn anonymous() -> Self {
        Self::new("system:anonymous", ["system:unauthenticated"])
    }

    /// The user with the id of the credential that it came with (KEP-4193).
    #[must_use]
    pub(crate) fn known_by(mut self, credential: String) -> Self {
        let name = "authentication.kubernetes.io/credential-id".to_owned();
        self.extra.insert(name, vec![credential]);
        self
    }

    /// Whether the user is in `group`.
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|name| name == group)
    }
}
