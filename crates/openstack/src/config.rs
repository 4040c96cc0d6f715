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

/// Cloud: address, credential and trusted CAs.
///
/// Equality and hash cover every field including the secrets, so that two different credentials never share a session.
#[derive(Clone)]
pub struct CloudConfig {
    /// Name of the entry in clouds.yaml.
    pub name: String,
    /// URL of Keystone, with or without `/v3`.
    pub auth_url: String,
    /// Credential.
    pub credential: Credential,
    /// Region to pick from the catalog; any region if absent.
    pub region: Option<String>,
    /// Interface of the URLs to use from the catalog.
    pub interface: Interface,
    /// True to verify the server's certificate.
    pub verify: bool,
    /// Path of the CA bundle as written in the file. The caller reads the file: see [`CloudConfig::with_ca`].
    pub cacert: Option<String>,
    /// PEM of the CAs to trust instead of the system's.
    pub ca_pem: Option<Vec<u8>>,
    /// Certificate of the client, for servers with client authentication.
    pub client_certificate: Option<ClientCertificate>,
    /// URLs that replace the catalog's, by service type as written (`load_balancer`,
    /// `volumev3`, ...).
    pub endpoint_overrides: BTreeMap<String, String>,
}

/// Keystone v3 credential.
#[derive(Clone)]
pub enum Credential {
    /// `v3password`: a user in a scope.
    Password {
        /// User.
        user: UserRef,
        /// Password of the user.
        password: SecretString,
        /// Scope of the token.
        scope: Scope,
    },
    /// `v3applicationcredential`: bound to its own project.
    ApplicationCredential {
        /// Application credential by id, or by name and owner.
        which: ApplicationCredentialRef,
        /// Secret of the application credential.
        secret: SecretString,
    },
    /// `v3token`: an existing token.
    Token {
        /// Token.
        token: SecretString,
        /// Scope of the new token.
        scope: Scope,
    },
    /// `v3multifactor` and `v3totp`: one or both of a password and a one-time password.
    Factors {
        /// User.
        user: UserRef,
        /// Password of the user.
        password: Option<SecretString>,
        /// Current one-time password, as digits.
        passcode: Option<SecretString>,
        /// Scope of the token.
        scope: Scope,
    },
    /// `v3oidcpassword`, `v3oidcclientcredentials`, `v3oidcdeviceauthz` and `v3oidcaccesstoken`: a user of an OpenID
    /// Connect provider.
    OpenId {
        /// Provider, and login at the provider.
        login: Box<OpenId>,
        /// Scope of the token.
        scope: Scope,
    },
    /// No login: for requests sent with the tokens of others.
    Nobody,
}

/// Login at an OpenID Connect provider that Keystone trusts.
#[derive(Clone)]
pub struct OpenId {
    /// Name of the provider in Keystone.
    pub provider: String,
    /// Name of the protocol in Keystone.
    pub protocol: String,
    /// Way of logging in.
    pub flow: Flow,
    /// Id of the client at the provider; empty for a flow without one.
    pub client_id: String,
    /// Secret of the client; `None` for a public client.
    pub client_secret: Option<SecretString>,
    /// URL of the provider's discovery document.
    pub discovery_endpoint: Option<String>,
    /// URL of the token endpoint, in place of the one in the discovery document.
    pub token_endpoint: Option<String>,
    /// URL of the device flow, in place of the one in the discovery document.
    pub device_endpoint: Option<String>,
    /// Requested scopes, separated by blanks.
    pub scopes: String,
    /// Field of the provider's answer for Keystone.
    pub token_field: TokenField,
}

/// Way of logging in at an OpenID Connect provider.
#[derive(Clone)]
pub enum Flow {
    /// Password of a user.
    Password {
        /// Name at the provider of the user.
        username: String,
        /// Password of the user.
        password: SecretString,
    },
    /// Client itself.
    ClientCredentials,
    /// User who logs in with a browser, on any device (RFC 8628).
    Device,
    /// Existing access token.
    AccessToken(SecretString),
}

/// Field of the answer of an OpenID Connect provider.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TokenField {
    /// `access_token`.
    #[default]
    Access,
    /// `id_token`.
    Id,
}

impl TokenField {
    /// Returns the name in answers and in clouds.yaml.
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

    /// Returns the scope of the token; `None` for an application credential, which is bound to a project, and for
    /// nobody.
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

/// User by id, or by name and domain.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum UserRef {
    /// By id.
    Id(String),
    /// By name within a domain.
    Named(String, DomainRef),
}

/// Application credential by id, or by name and owner.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ApplicationCredentialRef {
    /// By id.
    Id(String),
    /// By name and owning user.
    Named(String, UserRef),
}

/// Scope of a token.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Project by id.
    ProjectId(String),
    /// Project by name within a domain.
    Project(String, DomainRef),
    /// Domain.
    Domain(DomainRef),
    /// Whole cloud, for operators.
    System,
    /// Roles that another user delegated in a trust, by the id of the trust.
    Trust(String),
    /// Default project of the user.
    Default,
}

/// Domain by id or name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum DomainRef {
    /// By id.
    Id(String),
    /// By name.
    Name(String),
}

/// Interface of an endpoint, which selects the URL in the catalog.
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
    /// Returns the name in catalogs and in clouds.yaml.
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
    /// [`ErrorKind::Invalid`] naming the cloud and the field. Never quotes the file, because of the secrets.
    pub fn parse(clouds_yaml: &str, cloud: &str) -> Result<Self> {
        Self::parse_with_secure(clouds_yaml, None, cloud)
    }

    /// As [`CloudConfig::parse`], merged with secure.yaml, whose fields take precedence.
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

    /// Returns the same cloud, trusting only these CAs. `None` or blank text means the system's.
    #[must_use]
    pub fn with_ca(mut self, pem: Option<impl Into<Vec<u8>>>) -> Self {
        self.ca_pem = pem
            .map(Into::into)
            .filter(|pem| !pem.trim_ascii().is_empty());
        self
    }

    /// Returns a Keystone without a login, for requests with the tokens of others.
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

    /// Returns the same cloud in another region.
    #[must_use]
    pub fn with_region(mut self, region: Option<impl Into<String>>) -> Self {
        if let Some(region) = region {
            self.region = Some(region.into());
        }
        self
    }

    /// Returns a clouds.yaml with this cloud as the only entry, including the secrets. The CA is not part of the text:
    /// callers pass the CA besides the file (as the key `cacert` of a Secret).
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
    /// Returns everything that distinguishes two credentials, secrets included: type, secrets, texts, user and scope.
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

/// Returns the names of the clouds in a clouds.yaml, sorted.
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

/// Returns the text of a secret, for comparison alone.
fn exposed(secret: &SecretString) -> Option<&str> {
    Some(secret.expose_secret())
}

fn invalid(message: String) -> Error {
    Error::new(ErrorKind::Invalid, message)
}
