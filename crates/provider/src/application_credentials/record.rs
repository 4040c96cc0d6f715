//! Credentials of one cluster, as recorded before each is created.

use std::collections::BTreeMap;
use std::fmt;

use api::k8s_openapi::jiff::{SignedDuration, Timestamp};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize, Serializer};
use uuid::Uuid;

/// Credentials by program, the oldest first.
pub(super) type Record = BTreeMap<String, Vec<Entry>>;

/// A credential. It is recorded, with name and secret, before it is created: whoever finds it in Keystone later still has
/// its secret.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Entry {
    /// Name in Keystone, which no other credential has.
    pub(super) name: String,
    #[serde(serialize_with = "exposed")]
    secret: Hidden,
    /// Id of the user.
    pub(super) user: String,
    /// Id of the project.
    pub(super) project: String,
    /// Sum of the access rules and roles.
    pub(super) rules: String,
    pub(super) made_at: Timestamp,
    pub(super) expires_at: Timestamp,
    /// Id in Keystone, once a login with the credential has succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<String>,
}

/// Secret in a record.
#[derive(Clone, Deserialize)]
struct Hidden(SecretString);

impl PartialEq for Hidden {
    fn eq(&self, other: &Self) -> bool {
        self.0.expose_secret() == other.0.expose_secret()
    }
}

fn exposed<S: Serializer>(secret: &Hidden, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(secret.0.expose_secret())
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry")
            .field("name", &self.name)
            .field("id", &self.id)
            .field("expires_at", &self.expires_at)
            .finish_non_exhaustive()
    }
}

impl Entry {
    /// A new credential with a random name and secret.
    pub(super) fn new(
        start: &str,
        owner: &Owner<'_>,
        now: Timestamp,
        life: SignedDuration,
    ) -> Self {
        let random = || Uuid::new_v4().simple().to_string();
        // Bcrypt, with which Keystone stores it, takes 72 bytes.
        let secret = format!("{}{}", random(), random());
        Self {
            name: format!("{start}-{}", random()),
            secret: Hidden(SecretString::from(secret)),
            user: owner.user.to_owned(),
            project: owner.project.to_owned(),
            rules: owner.rules.to_owned(),
            made_at: now,
            expires_at: now.saturating_add(life).unwrap_or(Timestamp::MAX),
            id: None,
        }
    }

    pub(super) fn secret(&self) -> &SecretString {
        &self.secret.0
    }

    /// True if the credential has expired.
    pub(super) fn is_over(&self, now: Timestamp) -> bool {
        self.expires_at <= now
    }

    /// Time of the rotation: a third of the lifetime before the expiry.
    pub(super) fn rotation(&self) -> Timestamp {
        let third = self.expires_at.duration_since(self.made_at) / 3;
        self.expires_at
            .saturating_sub(third)
            .unwrap_or(self.expires_at)
    }

    /// True if the credential is of this user and project.
    pub(super) fn is_of(&self, owner: &Owner<'_>) -> bool {
        self.user == owner.user && self.project == owner.project
    }
}

/// User, project and rules of credentials.
#[derive(Clone, Copy, Debug)]
pub(super) struct Owner<'a> {
    /// Id of the user.
    pub(super) user: &'a str,
    /// Id of the project.
    pub(super) project: &'a str,
    /// Sum of the access rules of the program, and of the roles.
    pub(super) rules: &'a str,
}

/// Credential for a program: the latest that is tried and has not expired.
pub(super) fn current(entries: &[Entry], now: Timestamp) -> Option<&Entry> {
    let mut usable = entries.iter().rev();
    usable.find(|it| it.id.is_some() && !it.is_over(now))
}
