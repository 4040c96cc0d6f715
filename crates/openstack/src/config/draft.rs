//! Settings of a login from several places, not yet checked for completeness.

use zeroize::Zeroizing;

use super::raw::{Entry, File};
use super::variables::VARIABLES;
use super::{CloudConfig, invalid};
use crate::error::Result;

/// Groups of keys with one meaning: a login takes all keys of a group from one place, so that the project of one place
/// is not looked for in the domain of another.
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

/// Keys, and the keys that they replace: a user is named by one key only.
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

/// Settings of a login, as keys of clouds.yaml. Cannot be printed.
#[derive(Default)]
pub struct Draft {
    entry: Entry,
}

/// Way of logging in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Password.
    Password,
    /// Password and a one-time password.
    Factors,
    /// One-time password alone.
    Passcode,
    /// Application credential.
    ApplicationCredential,
    /// Token.
    Token,
    /// Password of a user of an identity provider.
    OpenIdPassword,
    /// Any other login at an identity provider.
    OpenId,
}

impl Draft {
    /// Reads the entry `cloud` of a clouds.yaml, merged with the entry in secure.yaml.
    ///
    /// # Errors
    /// As [`CloudConfig::parse_with_secure`].
    pub fn of_file(clouds: &str, secure: Option<&str>, cloud: &str) -> Result<Self> {
        let entry = File::entry(clouds, secure, cloud)?;
        Ok(Self { entry })
    }

    /// Reads the settings in environment variables (`OS_…`).
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

    /// Returns the value of a key of `auth` without a secret.
    pub fn auth(&self, key: &str) -> Option<&str> {
        self.entry.auth(key)
    }

    /// Returns the value of a key beside `auth`.
    pub fn field(&self, key: &str) -> Option<&str> {
        self.entry.field(key)
    }

    /// True if the key has a value, in `auth` or besides.
    pub fn has(&self, key: &str) -> bool {
        self.auth(key).is_some() || self.field(key).is_some()
    }

    /// Adds missing keys from `other`. A group of keys with one meaning is left alone if any of its keys is set.
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

    /// Returns the way of logging in, by `auth_type` or else by the keys that are set.
    ///
    /// # Errors
    /// Names an `auth_type` that is not supported.
    pub fn method(&self, cloud: &str) -> Result<Method> {
        self.entry.method(cloud)
    }

    /// Returns the configuration.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Invalid`] naming the cloud and the missing or unusable key.
    pub fn check(self, cloud: &str) -> Result<CloudConfig> {
        self.entry.check(cloud)
    }
}

impl File {
    /// Reads an entry, merged with the entry in secure.yaml.
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
