//! A clouds.yaml before validation: every scalar is text.

use std::collections::BTreeMap;
use std::fmt;

use secrecy::SecretString;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use zeroize::Zeroizing;

use super::{
    ApplicationCredentialRef, CloudConfig, Credential, DomainRef, Flow, Interface, Method, OpenId,
    Scope, TokenField, UserRef, invalid,
};
use crate::error::Result;

const OVERRIDE: &str = "_endpoint_override";

/// Supported values of `auth_type`.
const AUTH_TYPES: [&str; 11] = [
    "password",
    "v3password",
    "v3applicationcredential",
    "token",
    "v3token",
    "v3multifactor",
    "v3totp",
    "v3oidcpassword",
    "v3oidcclientcredentials",
    "v3oidcdeviceauthz",
    "v3oidcaccesstoken",
];

/// All clouds of a file.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct File {
    #[serde(deserialize_with = "null_is_empty")]
    pub(super) clouds: BTreeMap<String, Entry>,
}

/// One cloud. Keys are kept as written for error messages.
#[derive(Default)]
pub(super) struct Entry {
    pub(super) auth: BTreeMap<String, Zeroizing<String>>,
    pub(super) fields: BTreeMap<String, String>,
}

impl File {
    /// Parses a file. The error has line and column but never quotes the text, because of the secrets.
    pub(super) fn parse(name: &str, text: &str) -> Result<Self> {
        let options = serde_saphyr::options! { with_snippet: false };
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        serde_saphyr::from_str_with_options(text, options).map_err(|error| {
            let place = error.location().map_or_else(String::new, |place| {
                format!(" at line {}, column {}", place.line(), place.column())
            });
            invalid(format!(
                "{name} is not a file of the form `clouds: {{name: {{auth: {{...}}}}}}`{place}"
            ))
        })
    }

    /// Merges `other` into this file field by field; the fields of `other` take precedence.
    pub(super) fn merge(&mut self, other: Self) {
        for (name, over) in other.clouds {
            let entry = self.clouds.entry(name).or_default();
            entry.auth.extend(over.auth);
            entry.fields.extend(over.fields);
        }
    }
}

impl Entry {
    /// Validates the entry with this name.
    pub(super) fn check(self, cloud: &str) -> Result<CloudConfig> {
        let auth_url = self.need(cloud, "auth_url")?.to_owned();
        if !is_http(&auth_url) {
            return Err(invalid(format!(
                "cloud `{cloud}`: auth.auth_url must begin with http:// or https://"
            )));
        }
        Ok(CloudConfig {
            name: cloud.to_owned(),
            credential: self.credential(cloud)?,
            region: self.field("region_name").map(str::to_owned),
            interface: self.interface(cloud)?,
            verify: self.verify(cloud)?,
            cacert: self.field("cacert").map(str::to_owned),
            ca_pem: None,
            client_certificate: None,
            endpoint_overrides: self
                .fields
                .iter()
                .filter(|(_, value)| !value.is_empty())
                .filter_map(|(key, value)| {
                    Some((key.strip_suffix(OVERRIDE)?.to_owned(), value.clone()))
                })
                .collect(),
            auth_url,
        })
    }

    /// Returns the way of logging in, by `auth_type` or else by the keys that are set.
    pub(super) fn method(&self, cloud: &str) -> Result<Method> {
        let has = |key| self.auth(key).is_some();
        Ok(match self.field("auth_type") {
            Some("password" | "v3password") => Method::Password,
            Some("v3applicationcredential") => Method::ApplicationCredential,
            Some("token" | "v3token") => Method::Token,
            Some("v3multifactor") => self.factors(cloud)?,
            Some("v3totp") => Method::Passcode,
            Some("v3oidcpassword") => Method::OpenIdPassword,
            Some("v3oidcclientcredentials" | "v3oidcdeviceauthz" | "v3oidcaccesstoken") => {
                Method::OpenId
            }
            None if has("application_credential_id") || has("application_credential_name") => {
                Method::ApplicationCredential
            }
            None if has("token") && !has("password") => Method::Token,
            None if has("passcode") => Method::Factors,
            None => Method::Password,
            Some(other) => {
                return Err(invalid(format!(
                    "cloud `{cloud}`: auth_type `{other}` is not supported; use {}",
                    AUTH_TYPES.join(", ")
                )));
            }
        })
    }

    /// Returns the methods of `v3multifactor`: a password and a one-time password, unless `auth_methods` names only
    /// one.
    fn factors(&self, cloud: &str) -> Result<Method> {
        let methods = self.field("auth_methods").unwrap_or_default();
        let (mut password, mut passcode) = (false, false);
        for method in methods
            .split(',')
            .map(str::trim)
            .filter(|it| !it.is_empty())
        {
            match method {
                "v3password" | "password" => password = true,
                "v3totp" | "totp" => passcode = true,
                other => {
                    return Err(invalid(format!(
                        "cloud `{cloud}`: auth_methods `{other}` is not one of v3password and v3totp"
                    )));
                }
            }
        }
        Ok(match (password, passcode) {
            (true, false) => Method::Password,
            (false, true) => Method::Passcode,
            _ => Method::Factors,
        })
    }

    fn credential(&self, cloud: &str) -> Result<Credential> {
        let secret = |key| -> Result<SecretString> {
            Ok(SecretString::from(self.need(cloud, key)?.to_owned()))
        };
        match self.method(cloud)? {
            Method::Password => self.password(cloud),
            Method::ApplicationCredential => self.application_credential(cloud),
            Method::Token => Ok(Credential::Token {
                token: secret("token")?,
                scope: self.scope(cloud)?,
            }),
            Method::Factors => Ok(Credential::Factors {
                user: self.user(cloud)?,
                password: Some(secret("password")?),
                passcode: Some(secret("passcode")?),
                scope: self.scope(cloud)?,
            }),
            Method::Passcode => Ok(Credential::Factors {
                user: self.user(cloud)?,
                password: None,
                passcode: Some(secret("passcode")?),
                scope: self.scope(cloud)?,
            }),
            Method::OpenIdPassword | Method::OpenId => Ok(Credential::OpenId {
                login: Box::new(self.openid(cloud)?),
                scope: self.scope(cloud)?,
            }),
        }
    }

    fn openid(&self, cloud: &str) -> Result<OpenId> {
        let text = |key| self.auth(key).map(str::to_owned);
        let secret = |key| self.auth(key).map(SecretString::from);
        let flow = match self.field("auth_type") {
            Some("v3oidcpassword") => Flow::Password {
                username: self.need(cloud, "username")?.to_owned(),
                password: SecretString::from(self.need(cloud, "password")?),
            },
            Some("v3oidcaccesstoken") => {
                Flow::AccessToken(SecretString::from(self.need(cloud, "access_token")?))
            }
            Some("v3oidcclientcredentials") => Flow::ClientCredentials,
            _ => Flow::Device,
        };
        let token_field = match self.auth("access_token_type") {
            None | Some("access_token") => TokenField::Access,
            Some("id_token") => TokenField::Id,
            Some(_) => {
                return Err(invalid(format!(
                    "cloud `{cloud}`: auth.access_token_type must be access_token or id_token"
                )));
            }
        };
        let needs_client = !matches!(flow, Flow::AccessToken(_));
        if needs_client {
            self.need(cloud, "client_id")?;
            if matches!(flow, Flow::ClientCredentials) {
                self.need(cloud, "client_secret")?;
            }
            let endpoints = ["discovery_endpoint", "access_token_endpoint"];
            if !endpoints.iter().any(|key| self.auth(key).is_some()) {
                return Err(invalid(format!(
                    "cloud `{cloud}`: auth.discovery_endpoint or auth.access_token_endpoint is missing"
                )));
            }
        }
        for key in [
            "discovery_endpoint",
            "access_token_endpoint",
            "device_authorization_endpoint",
        ] {
            if self.auth(key).is_some_and(|url| !is_http(url)) {
                return Err(invalid(format!(
                    "cloud `{cloud}`: auth.{key} must begin with http:// or https://"
                )));
            }
        }
        Ok(OpenId {
            provider: self.need(cloud, "identity_provider")?.to_owned(),
            protocol: self.need(cloud, "protocol")?.to_owned(),
            flow,
            client_id: text("client_id").unwrap_or_default(),
            client_secret: secret("client_secret"),
            discovery_endpoint: text("discovery_endpoint"),
            token_endpoint: text("access_token_endpoint"),
            device_endpoint: text("device_authorization_endpoint"),
            scopes: text("openid_scope").unwrap_or_else(|| "openid profile".to_owned()),
            token_field,
        })
    }

    fn password(&self, cloud: &str) -> Result<Credential> {
        let password = SecretString::from(self.need(cloud, "password")?.to_owned());
        Ok(Credential::Password {
            user: self.user(cloud)?,
            password,
            scope: self.scope(cloud)?,
        })
    }

    fn application_credential(&self, cloud: &str) -> Result<Credential> {
        if let Some((key, _)) = self.special_scope(cloud)? {
            return Err(invalid(format!(
                "cloud `{cloud}`: auth.{key} cannot be used with an application credential, which is for one \
                 project: remove it, or log in with a password"
            )));
        }
        let secret = SecretString::from(
            self.need(cloud, "application_credential_secret")?
                .to_owned(),
        );
        let which = match self.auth("application_credential_id") {
            Some(id) => ApplicationCredentialRef::Id(id.to_owned()),
            None => {
                let name = self.need(cloud, "application_credential_name")?.to_owned();
                ApplicationCredentialRef::Named(name, self.user(cloud)?)
            }
        };
        Ok(Credential::ApplicationCredential { which, secret })
    }

    fn user(&self, cloud: &str) -> Result<UserRef> {
        if let Some(id) = self.auth("user_id") {
            return Ok(UserRef::Id(id.to_owned()));
        }
        let Some(name) = self.auth("username") else {
            return Err(invalid(format!(
                "cloud `{cloud}`: auth.username or auth.user_id is missing"
            )));
        };
        Ok(UserRef::Named(name.to_owned(), self.domain("user_domain")))
    }

    /// Returns `system_scope` or `trust_id`, with its key.
    fn special_scope(&self, cloud: &str) -> Result<Option<(&'static str, Scope)>> {
        let scope = match (self.auth("system_scope"), self.auth("trust_id")) {
            (None, None) => return Ok(None),
            (Some("all"), None) => ("system_scope", Scope::System),
            (None, Some(id)) => ("trust_id", Scope::Trust(id.to_owned())),
            (Some(_), None) => {
                return Err(invalid(format!(
                    "cloud `{cloud}`: auth.system_scope must be `all`; Keystone has no other"
                )));
            }
            (Some(_), Some(_)) => {
                return Err(invalid(format!(
                    "cloud `{cloud}`: auth.system_scope and auth.trust_id cannot be used together, since a \
                     token has one scope: remove one of them"
                )));
            }
        };
        Ok(Some(scope))
    }

    /// A project takes precedence over a domain. The system or a trust must be the only scope, as in keystoneauth.
    fn scope(&self, cloud: &str) -> Result<Scope> {
        let other = self.named_scope();
        match (self.special_scope(cloud)?, other) {
            (None, other) => Ok(other),
            (Some((_, scope)), Scope::Default) => Ok(scope),
            (Some((key, _)), _) => Err(invalid(format!(
                "cloud `{cloud}`: auth.{key} cannot be used together with a project or domain, since a token \
                 has one scope: remove one of them"
            ))),
        }
    }

    fn named_scope(&self) -> Scope {
        let project = |key| {
            self.auth(key)
                .or_else(|| self.auth(&key.replace("project", "tenant")))
        };
        if let Some(id) = project("project_id") {
            return Scope::ProjectId(id.to_owned());
        }
        if let Some(name) = project("project_name") {
            return Scope::Project(name.to_owned(), self.domain("project_domain"));
        }
        match (self.auth("domain_id"), self.auth("domain_name")) {
            (Some(id), _) => Scope::Domain(DomainRef::Id(id.to_owned())),
            (None, Some(name)) => Scope::Domain(DomainRef::Name(name.to_owned())),
            (None, None) => Scope::Default,
        }
    }

    /// `<prefix>_id`, `<prefix>_name`, then the unprefixed and the default domain; if none is set, the domain with the
    /// id `default`, as in os-client-config.
    fn domain(&self, prefix: &str) -> DomainRef {
        for prefix in [prefix, "domain", "default_domain"] {
            if let Some(id) = self.auth(&format!("{prefix}_id")) {
                return DomainRef::Id(id.to_owned());
            }
            if let Some(name) = self.auth(&format!("{prefix}_name")) {
                return DomainRef::Name(name.to_owned());
            }
        }
        DomainRef::Id(self.auth("default_domain").unwrap_or("default").to_owned())
    }

    fn interface(&self, cloud: &str) -> Result<Interface> {
        let Some(text) = self
            .field("interface")
            .or_else(|| self.field("endpoint_type"))
        else {
            return Ok(Interface::default());
        };
        match text.trim_end_matches("URL") {
            "public" => Ok(Interface::Public),
            "internal" => Ok(Interface::Internal),
            "admin" => Ok(Interface::Admin),
            _ => Err(invalid(format!(
                "cloud `{cloud}`: interface `{text}` is not one of public, internal, admin"
            ))),
        }
    }

    fn verify(&self, cloud: &str) -> Result<bool> {
        let truth = |key| match self.field(key).map(str::to_ascii_lowercase).as_deref() {
            None => Ok(None),
            Some("true" | "yes" | "on" | "1") => Ok(Some(true)),
            Some("false" | "no" | "off" | "0") => Ok(Some(false)),
            Some(_) => Err(invalid(format!(
                "cloud `{cloud}`: {key} must be true or false"
            ))),
        };
        Ok(match (truth("verify")?, truth("insecure")?) {
            (Some(verify), _) => verify,
            (None, Some(insecure)) => !insecure,
            (None, None) => true,
        })
    }

    pub(super) fn auth(&self, key: &str) -> Option<&str> {
        self.auth
            .get(key)
            .map(|value| value.as_str())
            .filter(|value| !value.is_empty())
    }

    pub(super) fn field(&self, key: &str) -> Option<&str> {
        self.fields
            .get(key)
            .map(String::as_str)
            .filter(|value| !value.is_empty())
    }

    fn need(&self, cloud: &str, key: &str) -> Result<&str> {
        self.auth(key)
            .ok_or_else(|| invalid(format!("cloud `{cloud}`: auth.{key} is missing")))
    }
}

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EntryVisitor)
    }
}

/// `auth_methods`: a list, or names between commas.
#[derive(Deserialize)]
#[serde(untagged)]
enum Methods {
    List(Vec<String>),
    Text(String),
}

impl Methods {
    fn text(self) -> String {
        match self {
            Self::List(names) => names.join(","),
            Self::Text(text) => text,
        }
    }
}

/// Reads the supported keys as text (so that a password `0123` keeps its zero) and skips all others, whatever their
/// type.
struct EntryVisitor;

impl<'de> Visitor<'de> for EntryVisitor {
    type Value = Entry;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the settings of a cloud")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entry, A::Error> {
        let mut entry = Entry::default();
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "auth" => {
                    let auth: Option<BTreeMap<String, Option<String>>> = map.next_value()?;
                    entry.auth = auth
                        .unwrap_or_default()
                        .into_iter()
                        .filter_map(|(key, value)| Some((key, Zeroizing::new(value?))))
                        .collect();
                }
                "auth_methods" => {
                    if let Some(methods) = map.next_value::<Option<Methods>>()? {
                        entry.fields.insert(key, methods.text());
                    }
                }
                "auth_type" | "region_name" | "interface" | "endpoint_type" | "verify"
                | "insecure" | "cacert" | "cert" | "key" => {
                    if let Some(value) = map.next_value::<Option<String>>()? {
                        entry.fields.insert(key, value);
                    }
                }
                _ if key.ends_with(OVERRIDE) => {
                    if let Some(value) = map.next_value::<Option<String>>()? {
                        entry.fields.insert(key, value);
                    }
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(entry)
    }

    fn visit_unit<E>(self) -> Result<Entry, E> {
        Ok(Entry::default())
    }
}

fn is_http(url: &str) -> bool {
    ["http://", "https://"]
        .iter()
        .any(|scheme| url.starts_with(scheme))
}

fn null_is_empty<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, Entry>, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
