//! Resolution of `[Global]` to a cloud with credentials.

use openstack::CloudConfig;
use openstack::config::{
    ApplicationCredentialRef, Credential, DomainRef, Interface, Scope, UserRef,
};
use secrecy::{ExposeSecret, SecretString};

use super::finding::Finding;
use super::keys::Section;
use super::settings::Global;

/// Name of the cloud in logs, and default entry of a clouds.yaml.
const DEFAULT_CLOUD: &str = "openstack";

/// Files selected by `use-clouds`.
#[derive(Debug)]
pub struct CloudsYaml {
    /// Text of the clouds.yaml.
    pub clouds: SecretString,
    /// Text of the secure.yaml beside the clouds.yaml.
    pub secure: Option<SecretString>,
}

impl Global {
    /// Checks the combination of values in a section without `use-clouds`, and adds [`Finding`]s.
    pub(super) fn check(&self, findings: &mut Vec<Finding>) {
        let section = Section::Global.titled(Some(&self.name));
        let mut missing = |key: &str, message: &str| {
            findings.push(Finding::error(&section, key, 0, message));
        };
        if self.use_clouds {
            return;
        }
        if self.get("auth-url").is_none() {
            missing("auth-url", "is missing: where is Keystone?");
        }
        if let Err(problem) = self.credential() {
            missing(problem.key, problem.message);
        }
    }

    /// Path of the CA file, if any.
    pub fn ca_file(&self) -> Option<&str> {
        self.get("ca-file")
    }

    /// Name of the entry in the clouds.yaml.
    pub fn cloud_name(&self) -> &str {
        self.get("cloud").unwrap_or(DEFAULT_CLOUD)
    }

    /// Cloud as a [`CloudConfig`], with the clouds.yaml if `use-clouds` is set. Keys of this section override values
    /// of the file.
    ///
    /// # Errors
    /// Missing, contradictory or invalid part of the clouds.yaml.
    pub fn cloud(&self, yaml: Option<&CloudsYaml>) -> Result<CloudConfig, String> {
        let Some(yaml) = yaml.filter(|_| self.use_clouds) else {
            return self.cloud_of_keys();
        };
        let secure = yaml.secure.as_ref().map(ExposeSecret::expose_secret);
        let name = self.cloud_name();
        let mut cloud = CloudConfig::parse_with_secure(yaml.clouds.expose_secret(), secure, name)
            .map_err(|error| error.message().to_owned())?;
        if let Some(url) = self.get("auth-url") {
            cloud.auth_url = url.to_owned();
        }
        if let Ok(credential) = self.credential()
            && !credential.has_default_scope()
        {
            cloud.credential = credential;
        }
        if self.get("os-endpoint-type").is_some() {
            cloud.interface = self.interface();
        }
        if self.get("ca-file").is_some() {
            cloud.cacert = self.get("ca-file").map(str::to_owned);
        }
        if self.get("tls-insecure").is_some() {
            cloud.verify = self.verify();
        }
        Ok(cloud.with_region(self.get("region")))
    }

    fn cloud_of_keys(&self) -> Result<CloudConfig, String> {
        let section = Section::Global.titled(Some(&self.name));
        let auth_url = self.get("auth-url");
        let auth_url = auth_url.ok_or_else(|| format!("[{section}] auth-url is missing"))?;
        let credential = self
            .credential()
            .map_err(|problem| format!("[{section}] {}: {}", problem.key, problem.message))?;
        let name = match self.name.as_str() {
            "" => DEFAULT_CLOUD,
            name => name,
        };
        Ok(CloudConfig {
            name: name.to_owned(),
            auth_url: auth_url.to_owned(),
            credential,
            region: self.get("region").map(str::to_owned),
            interface: self.interface(),
            verify: self.verify(),
            cacert: self.get("ca-file").map(str::to_owned),
            ca_pem: None,
            client_certificate: None,
            endpoint_overrides: Default::default(),
        })
    }

    fn verify(&self) -> bool {
        self.get("tls-insecure") != Some("true")
    }

    fn interface(&self) -> Interface {
        match self
            .get("os-endpoint-type")
            .map(|text| text.trim_end_matches("URL"))
        {
            Some("internal") => Interface::Internal,
            Some("admin") => Interface::Admin,
            _ => Interface::Public,
        }
    }

    fn credential(&self) -> Result<Credential, Missing> {
        if self.get("trust-id").is_some() {
            return self.trust();
        }
        let id = self.get("application-credential-id");
        let name = self.get("application-credential-name");
        if id.is_none() && name.is_none() {
            return Ok(Credential::Password {
                user: self.user("user-id")?,
                password: self.secret("password")?,
                scope: self.scope()?,
            });
        }
        let which = match (id, name) {
            (Some(id), _) => ApplicationCredentialRef::Id(id.to_owned()),
            (None, name) => ApplicationCredentialRef::Named(
                name.unwrap_or_default().to_owned(),
                self.user("user-id")?,
            ),
        };
        Ok(Credential::ApplicationCredential {
            which,
            secret: self.secret("application-credential-secret")?,
        })
    }

    /// [`Credential`] of a trust: `trustee-id` and `trustee-password` override `user-id` and `password`.
    fn trust(&self) -> Result<Credential, Missing> {
        let user = match self.get("trustee-id") {
            Some(id) => UserRef::Id(id.to_owned()),
            None => self.user("trustee-id")?,
        };
        let password = self
            .secret("trustee-password")
            .or_else(|_| self.secret("password"))?;
        let trust = self.get("trust-id").unwrap_or_default();
        Ok(Credential::Password {
            user,
            password,
            scope: Scope::Trust(trust.to_owned()),
        })
    }

    fn user(&self, missing: &'static str) -> Result<UserRef, Missing> {
        if let Some(id) = self.get("user-id") {
            return Ok(UserRef::Id(id.to_owned()));
        }
        let Some(name) = self.get("username") else {
            return Err(Missing {
                key: missing,
                message: "is missing, and so is username: who logs in?",
            });
        };
        let domain = self.domain("user-domain").ok_or(Missing {
            key: "domain-name",
            message: "is missing: the name of a user is unique only within a domain",
        })?;
        Ok(UserRef::Named(name.to_owned(), domain))
    }

    fn scope(&self) -> Result<Scope, Missing> {
        if let Some(id) = self.get("tenant-id") {
            return Ok(Scope::ProjectId(id.to_owned()));
        }
        let Some(name) = self.get("tenant-name") else {
            // Keystone takes the default project of the user.
            return Ok(Scope::Default);
        };
        let domain = self
            .domain("tenant-domain")
            .or_else(|| self.domain("user-domain"));
        let domain = domain.ok_or(Missing {
            key: "tenant-domain-name",
            message: "is missing: the name of a project is unique only within a domain",
        })?;
        Ok(Scope::Project(name.to_owned(), domain))
    }

    /// Domain in the keys with this prefix, or else in `domain-id` or `domain-name`.
    fn domain(&self, prefix: &str) -> Option<DomainRef> {
        for prefix in [prefix, "domain"] {
            if let Some(id) = self.get(&format!("{prefix}-id")) {
                return Some(DomainRef::Id(id.to_owned()));
            }
            if let Some(name) = self.get(&format!("{prefix}-name")) {
                return Some(DomainRef::Name(name.to_owned()));
            }
        }
        None
    }

    fn secret(&self, key: &'static str) -> Result<SecretString, Missing> {
        let secret = self
            .secrets
            .get(key)
            .filter(|secret| !secret.expose_secret().is_empty());
        secret.cloned().ok_or(Missing {
            key,
            message: "is missing",
        })
    }
}

/// Required key without a value.
#[derive(Debug)]
struct Missing {
    key: &'static str,
    message: &'static str,
}
