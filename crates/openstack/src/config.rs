//! Configuration of a cloud: one entry of a clouds.yaml, validated.

mod raw;
mod search;
#[cfg(test)]
mod tests;
mod write;

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{Hash, Hasher};

use secrecy::{ExposeSecret, SecretString};

use crate::error::{Error, ErrorKind, Result};

pub use search::{Candidate, SearchEnv, find_clouds_yaml};

/// A cloud: its address, the credential and the trusted CAs.
///
/// Equality and hash cover every field including the secrets, so that two credentials that
/// differ in anything never share a session.
#[derive(Clone)]
pub struct CloudConfig {
    /// Name of the entry in clouds.yaml.
    pub name: String,
    /// The URL of Keystone, with or without `/v3`.
    pub auth_url: String,
    /// The credential.
    pub credential: Credential,
    /// Region to pick from the catalog; any region if absent.
    pub region: Option<String>,
    /// Which URL of a catalog entry is used.
    pub interface: Interface,
    /// Whether the server's certificate is checked.
    pub verify: bool,
    /// Path of the CA bundle as written in the file. Only the caller can read it: see
    /// [`CloudConfig::with_ca`].
    pub cacert: Option<String>,
    /// PEM of the CAs to trust instead of the system's.
    pub ca_pem: Option<Vec<u8>>,
    /// URLs that replace the catalog's, by service type as written (`load_balancer`,
    /// `volumev3`, ...).
    pub endpoint_overrides: BTreeMap<String, String>,
}

/// A Keystone v3 credential.
#[derive(Clone)]
pub enum Credential {
    /// `v3password`: a user in a scope.
    Password {
        /// The user.
        user: UserRef,
        /// Its password.
        password: SecretString,
        /// What the token is for.
        scope: Scope,
    },
    /// `v3applicationcredential`: carries its own project.
    ApplicationCredential {
        /// The application credential by id, or by name and owner.
        which: ApplicationCredentialRef,
        /// Its secret.
        secret: SecretString,
    },
}

impl Credential {
    /// Whether the token is for the default project of the user, which may have none.
    pub const fn has_default_scope(&self) -> bool {
        matches!(
            self,
            Self::Password {
                scope: Scope::Default,
                ..
            }
        )
    }
}

/// A user by id, or by name and domain.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum UserRef {
    /// By id.
    Id(String),
    /// By name within a domain.
    Named(String, DomainRef),
}

/// An application credential by id, or by name and owner.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ApplicationCredentialRef {
    /// By id.
    Id(String),
    /// By name among those of a user.
    Named(String, UserRef),
}

/// The scope of a token.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// A project by id.
    ProjectId(String),
    /// A project by name within a domain.
    Project(String, DomainRef),
    /// A domain.
    Domain(DomainRef),
    /// The whole cloud, for operators.
    System,
    /// The roles that another user delegated in a trust, by the id of the trust.
    Trust(String),
    /// The user's default project.
    Default,
}

/// A domain by id or name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum DomainRef {
    /// By id.
    Id(String),
    /// By name.
    Name(String),
}

/// The interface of an endpoint, which selects its URL in the catalog.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Interface {
    /// For everyone.
    #[default]
    Public,
    /// For services inside the cloud.
    Internal,
    /// For operators.
    Admin,
}

impl Interface {
    /// The name in catalogs and in clouds.yaml.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Internal => "internal",
            Self::Admin => "admin",
        }
    }
}

impl CloudConfig {
    /// Parses the entry `cloud` of a clouds.yaml.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] naming the cloud and the field. Never quotes the file, since it contains secrets.
    pub fn parse(clouds_yaml: &str, cloud: &str) -> Result<Self> {
        Self::parse_with_secure(clouds_yaml, None, cloud)
    }

    /// Like [`CloudConfig::parse`], merged with secure.yaml, whose fields take precedence.
    ///
    /// # Errors
    /// As [`CloudConfig::parse`].
    pub fn parse_with_secure(
        clouds_yaml: &str,
        secure_yaml: Option<&str>,
        cloud: &str,
    ) -> Result<Self> {
        let mut file = raw::File::parse("clouds.yaml", clouds_yaml)?;
        if let Some(text) = secure_yaml {
            file.merge(raw::File::parse("secure.yaml", text)?);
        }
        let Some(entry) = file.clouds.remove(cloud) else {
            let known: Vec<_> = file.clouds.keys().map(String::as_str).collect();
            let known = if known.is_empty() {
                "no clouds".to_owned()
            } else {
                known.join(", ")
            };
            return Err(invalid(format!(
                "cloud `{cloud}` is not in clouds.yaml; it has: {known}"
            )));
        };
        entry.check(cloud)
    }

    /// The same cloud, trusting only these CAs. `None` or blank text means the system's.
    #[must_use]
    pub fn with_ca(mut self, pem: Option<impl Into<Vec<u8>>>) -> Self {
        self.ca_pem = pem
            .map(Into::into)
            .filter(|pem| !pem.trim_ascii().is_empty());
        self
    }

    /// The same cloud in another region.
    #[must_use]
    pub fn with_region(mut self, region: Option<impl Into<String>>) -> Self {
        if let Some(region) = region {
            self.region = Some(region.into());
        }
        self
    }

    /// A clouds.yaml with this cloud as its only entry, including its secrets. The CA is not part of it: callers pass
    /// it beside the file (as the key `cacert` of a Secret).
    pub fn to_clouds_yaml(&self) -> SecretString {
        write::clouds_yaml(self)
    }

    fn identity(&self) -> impl Eq + Hash + '_ {
        let credential = match &self.credential {
            Credential::Password {
                user,
                password,
                scope,
            } => (Some((user, scope)), None, password.expose_secret()),
            Credential::ApplicationCredential { which, secret } => {
                (None, Some(which), secret.expose_secret())
            }
        };
        (
            &self.auth_url,
            credential,
            &self.region,
            self.interface,
            self.verify,
            &self.ca_pem,
            &self.endpoint_overrides,
        )
    }
}

/// The names of the clouds in a clouds.yaml, sorted.
///
/// # Errors
/// [`ErrorKind::Invalid`] with line and column if the text is not a clouds.yaml.
pub fn cloud_names(clouds_yaml: &str) -> Result<Vec<String>> {
    Ok(raw::File::parse("clouds.yaml", clouds_yaml)?
        .clouds
        .into_keys()
        .collect())
}

impl PartialEq for CloudConfig {
    fn eq(&self, other: &Self) -> bool {
        self.identity() == other.identity()
    }
}

impl Eq for CloudConfig {}

impl Hash for CloudConfig {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.identity().hash(state);
    }
}

impl fmt::Debug for CloudConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CloudConfig")
            .field("name", &self.name)
            .field("auth_url", &self.auth_url)
            .field("credential", &self.credential)
            .field("region", &self.region)
            .field("interface", &self.interface)
            .field("verify", &self.verify)
            .field("own_ca", &self.ca_pem.is_some())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Password { user, scope, .. } => f
                .debug_struct("Password")
                .field("user", user)
                .field("scope", scope)
                .finish(),
            Self::ApplicationCredential { which, .. } => {
                f.debug_tuple("ApplicationCredential").field(which).finish()
            }
        }
    }
}

fn invalid(message: String) -> Error {
    Error::new(ErrorKind::Invalid, message)
}
