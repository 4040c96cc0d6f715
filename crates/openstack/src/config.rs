//! Configuration of a cloud: one entry of a clouds.yaml, validated.

mod certificate;
mod draft;
mod raw;
mod search;
#[cfg(test)]
mod tests;
mod variables;
mod write;

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{Hash, Hasher};

use secrecy::{ExposeSecret, SecretString};

use crate::error::{Error, ErrorKind, Result};

pub use certificate::ClientCertificate;
pub use draft::{Draft, Method};
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
    /// True if the server's certificate is verified.
    pub verify: bool,
    /// Path of the CA bundle as written in the file. Only the caller can read it: see
    /// [`CloudConfig::with_ca`].
    pub cacert: Option<String>,
    /// PEM of the CAs to trust instead of the system's.
    pub ca_pem: Option<Vec<u8>>,
    /// The certificate with which a client is known to servers that ask for one.
    pub client_certificate: Option<ClientCertificate>,
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
        /// Scope of the token.
        scope: Scope,
    },
    /// `v3applicationcredential`: carries its own project.
    ApplicationCredential {
        /// The application credential by id, or by name and owner.
        which: ApplicationCredentialRef,
        /// Its secret.
        secret: SecretString,
    },
    /// `v3token`: a token that somebody has already.
    Token {
        /// The token.
        token: SecretString,
        /// Scope of the new token.
        scope: Scope,
    },
    /// `v3multifactor` and `v3totp`: one or both of a password and a one-time password.
    Factors {
        /// The user.
        user: UserRef,
        /// Its password.
        password: Option<SecretString>,
        /// The digits of the moment.
        passcode: Option<SecretString>,
        /// Scope of the token.
        scope: Scope,
    },
    /// `v3oidcpassword`, `v3oidcclientcredentials`, `v3oidcdeviceauthz` and `v3oidcaccesstoken`: a user whom an OpenID
    /// Connect provider knows.
    OpenId {
        /// The provider, and how to log in there.
        login: Box<OpenId>,
        /// Scope of the token.
        scope: Scope,
    },
    /// No login: for requests that are sent with the tokens of others.
    Nobody,
}

/// A login at an OpenID Connect provider that Keystone trusts.
#[derive(Clone)]
pub struct OpenId {
    /// Name of the provider in Keystone.
    pub provider: String,
    /// Name of the protocol in Keystone.
    pub protocol: String,
    /// The way of logging in.
    pub flow: Flow,
    /// Id of the client at the provider; empty for a flow without one.
    pub client_id: String,
    /// Its secret; a public client has none.
    pub client_secret: Option<SecretString>,
    /// URL of the provider's discovery document.
    pub discovery_endpoint: Option<String>,
    /// URL of its tokens, in place of that in the discovery document.
    pub token_endpoint: Option<String>,
    /// URL of its device flow, in place of that in the discovery document.
    pub device_endpoint: Option<String>,
    /// The scopes that are asked for, between blanks.
    pub scopes: String,
    /// The field of the provider's answer that Keystone takes.
    pub token_field: TokenField,
}

/// A way of logging in at an OpenID Connect provider.
#[derive(Clone)]
pub enum Flow {
    /// The password of a user.
    Password {
        /// The user's name at the provider.
        username: String,
        /// Its password.
        password: SecretString,
    },
    /// The client itself.
    ClientCredentials,
    /// A user who logs in with a browser, on any device (RFC 8628).
    Device,
    /// An access token that somebody has already.
    AccessToken(SecretString),
}

/// A field of the answer of an OpenID Connect provider.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TokenField {
    /// `access_token`.
    #[default]
    Access,
    /// `id_token`.
    Id,
}

impl TokenField {
    /// The name in answers and in clouds.yaml.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Access => "access_token",
            Self::Id => "id_token",
        }
    }
}

impl Credential {
    /// True if the token is for the default project of the user, which may have none.
    pub const fn has_default_scope(&self) -> bool {
        matches!(self.scope(), Some(Scope::Default))
    }

    /// Scope of the token; `None` for an application credential, which is bound to a project, and for nobody.
    pub const fn scope(&self) -> Option<&Scope> {
        match self {
            Self::Password { scope, .. }
            | Self::Token { scope, .. }
            | Self::Factors { scope, .. }
            | Self::OpenId { scope, .. } => Some(scope),
            Self::ApplicationCredential { .. } | Self::Nobody => None,
        }
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
        raw::File::entry(clouds_yaml, secure_yaml, cloud)?.check(cloud)
    }

    /// The same cloud, trusting only these CAs. `None` or blank text means the system's.
    #[must_use]
    pub fn with_ca(mut self, pem: Option<impl Into<Vec<u8>>>) -> Self {
        self.ca_pem = pem
            .map(Into::into)
            .filter(|pem| !pem.trim_ascii().is_empty());
        self
    }

    /// A Keystone that is only asked with the tokens of others, without a login.
    pub fn of_keystone(name: &str, auth_url: &str) -> Self {
        Self {
            name: name.to_owned(),
            auth_url: auth_url.to_owned(),
            credential: Credential::Nobody,
            region: None,
            interface: Interface::default(),
            verify: true,
            cacert: None,
            ca_pem: None,
            client_certificate: None,
            endpoint_overrides: BTreeMap::new(),
        }
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
        (
            &self.auth_url,
            self.credential.identity(),
            &self.region,
            self.interface,
            self.verify,
            &self.ca_pem,
            &self.client_certificate,
            &self.endpoint_overrides,
        )
    }
}

impl Credential {
    /// All of it, secrets included: its kind, its secrets and texts, who it is and what for.
    fn identity(&self) -> impl Eq + Hash + '_ {
        let (kind, secrets, user, which, login) = match self {
            Self::Password { user, password, .. } => {
                (0, [exposed(password), None], Some(user), None, None)
            }
            Self::ApplicationCredential { which, secret } => {
                (1, [exposed(secret), None], None, Some(which), None)
            }
            Self::Token { token, .. } => (2, [exposed(token), None], None, None, None),
            Self::Factors {
                user,
                password,
                passcode,
                ..
            } => {
                let secrets = [password, passcode].map(|it| it.as_ref().and_then(exposed));
                (3, secrets, Some(user), None, None)
            }
            Self::OpenId { login, .. } => {
                let (flow, username, secret) = match &login.flow {
                    Flow::Password { username, password } => (0, username.as_str(), Some(password)),
                    Flow::ClientCredentials => (1, "", None),
                    Flow::Device => (2, "", None),
                    Flow::AccessToken(token) => (3, "", Some(token)),
                };
                let secrets = [secret, login.client_secret.as_ref()].map(|it| it.and_then(exposed));
                let names = (
                    &login.provider,
                    &login.protocol,
                    &login.client_id,
                    &login.scopes,
                );
                let urls = (
                    &login.discovery_endpoint,
                    &login.token_endpoint,
                    &login.device_endpoint,
                );
                let login = (flow, username, names, urls, login.token_field);
                (4, secrets, None, None, Some(login))
            }
            Self::Nobody => (5, [None, None], None, None, None),
        };
        (kind, secrets, user, which, login, self.scope())
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
            Self::Token { scope, .. } => f.debug_tuple("Token").field(scope).finish(),
            Self::Factors { user, scope, .. } => f
                .debug_struct("Factors")
                .field("user", user)
                .field("scope", scope)
                .finish(),
            Self::OpenId { login, scope } => f
                .debug_struct("OpenId")
                .field("login", login)
                .field("scope", scope)
                .finish(),
            Self::Nobody => f.write_str("Nobody"),
        }
    }
}

impl fmt::Debug for OpenId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenId")
            .field("provider", &self.provider)
            .field("protocol", &self.protocol)
            .field("client_id", &self.client_id)
            .finish_non_exhaustive()
    }
}

/// The text of a secret, for comparison alone.
fn exposed(secret: &SecretString) -> Option<&str> {
    Some(secret.expose_secret())
}

fn invalid(message: String) -> Error {
    Error::new(ErrorKind::Invalid, message)
}
