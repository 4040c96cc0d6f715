//! Settings of a login from several places, before it is known whether they suffice.

use zeroize::Zeroizing;

use super::raw::{Entry, File};
use super::variables::VARIABLES;
use super::{CloudConfig, invalid};
use crate::error::Result;

/// Keys that mean one thing together: a login takes all of them from one place, so that the project of one is not
/// looked for in the domain of another.
const GROUPS: &[&[&str]] = &[
    &["username", "user_id", "user_domain_id", "user_domain_name"],
    &[
        "project_id",
        "project_name",
        "tenant_id",
        "tenant_name",
        "project_domain_id",
        "project_domain_name",
        "domain_id",
        "domain_name",
        "system_scope",
        "trust_id",
    ],
    &["application_credential_id", "application_credential_name"],
    &[
        "discovery_endpoint",
        "access_token_endpoint",
        "device_authorization_endpoint",
    ],
];

/// Keys, and those that they replace: a user is named by one of them.
const INSTEAD: &[(&str, &[&str])] = &[
    ("username", &["user_id"]),
    ("user_domain_name", &["user_domain_id"]),
    ("project_domain_name", &["project_domain_id"]),
    (
        "project_name",
        &[
            "project_id",
            "tenant_id",
            "tenant_name",
            "system_scope",
            "trust_id",
        ],
    ),
    (
        "application_credential_id",
        &["application_credential_name"],
    ),
    (
        "application_credential_name",
        &["application_credential_id"],
    ),
];

/// Settings of a login, as keys of clouds.yaml. It cannot be printed.
#[derive(Default)]
pub struct Draft {
    entry: Entry,
}

/// A way of logging in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// A password.
    Password,
    /// A password and a one-time password.
    Factors,
    /// A one-time password alone.
    Passcode,
    /// An application credential.
    ApplicationCredential,
    /// A token.
    Token,
    /// The password of a user of an identity provider.
    OpenIdPassword,
    /// Any other login at an identity provider.
    OpenId,
}

impl Draft {
    /// The entry `cloud` of a clouds.yaml, with what secure.yaml has of it.
    ///
    /// # Errors
    /// As [`CloudConfig::parse_with_secure`].
    pub fn of_file(clouds: &str, secure: Option<&str>, cloud: &str) -> Result<Self> {
        let entry = File::entry(clouds, secure, cloud)?;
        Ok(Self { entry })
    }

    /// The settings in environment variables (`OS_…`).
    pub fn of_variables<'a>(variable: impl Fn(&str) -> Option<&'a str>) -> Self {
        let mut draft = Self::default();
        for known in VARIABLES {
            let value = variable(known.name).filter(|value| !value.is_empty());
            if let Some(value) = value.filter(|_| !draft.has(known.key)) {
                draft.put(known.key, known.in_auth, value);
            }
        }
        draft
    }

    /// Sets a key of `auth` in place of others with the same meaning; an empty value changes nothing.
    pub fn set(&mut self, key: &str, value: &str) {
        let others = INSTEAD.iter().find(|(known, _)| *known == key);
        if let Some((_, others)) = others.filter(|_| !value.is_empty()) {
            for other in *others {
                self.entry.auth.remove(*other);
            }
        }
        self.put(key, true, value);
    }

    /// Sets a key beside `auth`; an empty value changes nothing.
    pub fn set_field(&mut self, key: &str, value: &str) {
        self.put(key, false, value);
    }

    fn put(&mut self, key: &str, in_auth: bool, value: &str) {
        if value.is_empty() {
            return;
        }
        if in_auth {
            let value = Zeroizing::new(value.to_owned());
            self.entry.auth.insert(key.to_owned(), value);
        } else {
            self.entry.fields.insert(key.to_owned(), value.to_owned());
        }
    }

    /// The value of a key of `auth` that is no secret.
    pub fn auth(&self, key: &str) -> Option<&str> {
        self.entry.auth(key)
    }

    /// The value of a key beside `auth`.
    pub fn field(&self, key: &str) -> Option<&str> {
        self.entry.field(key)
    }

    /// True if there is a value of this key, wherever.
    pub fn has(&self, key: &str) -> bool {
        self.auth(key).is_some() || self.field(key).is_some()
    }

    /// Adds what is missing from `other`. Of keys that mean one thing together none is added if one is there.
    pub fn fill(&mut self, other: Self) {
        let is_open = |key: &str, of: &Self| {
            let group = GROUPS.iter().find(|group| group.contains(&key));
            match group {
                Some(group) => !group.iter().any(|key| of.has(key)),
                None => !of.has(key),
            }
        };
        let (auth, fields) = (other.entry.auth, other.entry.fields);
        let auth: Vec<_> = auth
            .into_iter()
            .filter(|(key, _)| is_open(key, self))
            .collect();
        let fields: Vec<_> = fields
            .into_iter()
            .filter(|(key, _)| is_open(key, self))
            .collect();
        self.entry.auth.extend(auth);
        self.entry.fields.extend(fields);
    }

    /// The way of logging in, by `auth_type` or else by what is there.
    ///
    /// # Errors
    /// Names an `auth_type` that is not supported.
    pub fn method(&self, cloud: &str) -> Result<Method> {
        self.entry.method(cloud)
    }

    /// The configuration.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Invalid`] naming the cloud and the key that is missing or cannot be used.
    pub fn check(self, cloud: &str) -> Result<CloudConfig> {
        self.entry.check(cloud)
    }
}

impl File {
    /// An entry with what secure.yaml has of it.
    pub(super) fn entry(clouds: &str, secure: Option<&str>, cloud: &str) -> Result<Entry> {
        let mut file = Self::parse("clouds.yaml", clouds)?;
        if let Some(text) = secure {
            file.merge(Self::parse("secure.yaml", text)?);
        }
        if let Some(entry) = file.clouds.remove(cloud) {
            return Ok(entry);
        }
        let known: Vec<_> = file.clouds.keys().map(String::as_str).collect();
        let known = match known.is_empty() {
            true => "no clouds".to_owned(),
            false => known.join(", "),
        };
        Err(invalid(format!(
            "cloud `{cloud}` is not in clouds.yaml; it has: {known}"
        )))
    }
}
