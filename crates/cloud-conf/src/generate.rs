//! Generation of cloud.conf from other files.

use openstack::CloudConfig;
use openstack::config::{ApplicationCredentialRef, Credential, DomainRef, Scope, UserRef};
use secrecy::{ExposeSecret, SecretString};
use zeroize::Zeroizing;

use super::finding::Rejected;
use super::gcfg::{self, quoted};
use super::keys::{Form, Key, Section};

/// Generated cloud.conf, with notes for the user.
#[derive(Debug)]
pub struct Generated {
    /// The text.
    pub text: SecretString,
    /// Settings without a conversion, and necessary changes elsewhere.
    pub notes: Vec<String>,
}

/// cloud.conf with these sections, such as `Global`, each with keys and values.
#[must_use]
pub fn from_sections<'a>(
    sections: impl IntoIterator<Item = (&'a str, Vec<(&'a str, &'a str)>)>,
) -> SecretString {
    let mut text = Zeroizing::new(String::new());
    for (section, keys) in sections {
        text.push_str(&format!("[{section}]\n"));
        for (key, value) in keys {
            text.push_str(&Zeroizing::new(format!(
                "{key} = {}\n",
                quoted(value).as_str()
            )));
        }
    }
    SecretString::from(text.as_str())
}

/// cloud.conf for an entry of a clouds.yaml, given as a [`CloudConfig`].
///
/// # Errors
/// Names the setting of the cloud for which cloud.conf has no key.
pub fn from_cloud(cloud: &CloudConfig) -> Result<Generated, String> {
    let mut file = File::default();
    file.key("auth-url", &cloud.auth_url);
    match &cloud.credential {
        Credential::ApplicationCredential { which, secret } => {
            match which {
                ApplicationCredentialRef::Id(id) => file.key("application-credential-id", id),
                ApplicationCredentialRef::Named(name, user) => {
                    file.key("application-credential-name", name);
                    file.user(user);
                }
            }
            file.key("application-credential-secret", secret.expose_secret());
        }
        Credential::Password {
            user,
            password,
            scope,
        } => {
            file.user(user);
            file.key("password", password.expose_secret());
            file.scope(scope)?;
        }
        Credential::Token { .. }
        | Credential::Factors { .. }
        | Credential::OpenId { .. }
        | Credential::Nobody => {
            return Err(format!(
                "cloud `{}`: a program that runs on its own logs in with a password or, better, with an application \
                 credential; cloud.conf has no keys for this auth_type",
                cloud.name
            ));
        }
    }
    if let Some(region) = &cloud.region {
        file.key("region", region);
    }
    if cloud.interface != Default::default() {
        file.key("os-endpoint-type", cloud.interface.name());
    }
    if !cloud.verify {
        file.key("tls-insecure", "true");
    }
    let mut notes = Vec::new();
    if let Some(path) = &cloud.cacert {
        file.key("ca-file", path);
        notes.push(format!(
            "ca-file = {path}: the file must be there where this one is read"
        ));
    }
    for service in cloud.endpoint_overrides.keys() {
        notes.push(format!(
            "the URL of {service} is overridden in clouds.yaml; cloud.conf has no key for that"
        ));
    }
    Ok(file.done(notes))
}

/// Renamed keys: section, former name, current name.
const RENAMED: &[(&str, &str, &str)] = &[
    ("global", "api-key", "password"),
    ("global", "project-id", "tenant-id"),
    ("global", "project-name", "tenant-name"),
];

/// Keys of the in-tree provider without a successor: section, key, and reason.
const DROPPED: &[(&str, &str, &str)] = &[
    (
        "loadbalancer",
        "use-octavia",
        "load balancers are Octavia's always",
    ),
    (
        "loadbalancer",
        "lb-version",
        "load balancers are Octavia's always; LBaaS v1 and v2 are gone",
    ),
    (
        "blockstorage",
        "trust-device-path",
        "the Cinder CSI driver finds devices by their serial number",
    ),
    (
        "blockstorage",
        "bs-version",
        "the Cinder CSI driver uses Cinder v3",
    ),
];

/// Converts the cloud.conf of the in-tree provider (`--cloud-provider=openstack`); the notes of [`Generated`] list
/// the changes on kubelets and on the control plane.
///
/// # Errors
/// The syntax error of the file, as [`Rejected`].
pub fn from_legacy(text: &str) -> Result<Generated, Rejected> {
    let document = gcfg::parse(text).map_err(|error| Rejected {
        findings: vec![super::Finding::syntax(&error)],
    })?;
    let (mut file, mut notes) = (File::default(), Vec::new());
    let mut lacks_domain = lacks_domain(&document);
    for entry in &document.entries {
        let dropped = DROPPED
            .iter()
            .find(|(section, key, _)| *section == entry.section && *key == entry.key);
        if let Some((_, key, why)) = dropped {
            notes.push(format!("line {}: {key} is left out: {why}", entry.line));
            continue;
        }
        let renamed = RENAMED
            .iter()
            .find(|(section, key, _)| *section == entry.section && *key == entry.key);
        let name = renamed.map_or(entry.key.as_str(), |(_, _, new)| new);
        let known = Section::named(&entry.section).and_then(|section| Key::named(section, name));
        let Some(key) = known else {
            notes.push(format!(
                "line {}: {} is left out: nothing reads it",
                entry.line, entry.key
            ));
            continue;
        };
        let value = entry.value.as_ref().map_or("true", |value| value.as_str());
        let seconds =
            matches!(key.form, Form::Duration | Form::Seconds) && value.parse::<u64>().is_ok();
        file.section(key.section, entry.subsection.as_deref());
        match seconds {
            // The in-tree provider accepted numbers as seconds.
            true => file.key(key.name, &format!("{value}s")),
            false => file.key(key.name, value),
        }
        if lacks_domain && key.section == Section::Global && NAMES.contains(&key.name) {
            file.key("domain-id", DEFAULT_DOMAIN);
            notes.push(format!(
                "domain-id = {DEFAULT_DOMAIN} is added: the file names no domain, and before there were any, all users and projects \
                 were in this one; name another if they are there"
            ));
            lacks_domain = false;
        }
    }
    notes.extend(ELSEWHERE.iter().map(|note| (*note).to_owned()));
    Ok(file.done(notes))
}

/// Id of the domain for users and projects from before domains.
const DEFAULT_DOMAIN: &str = "default";
/// Keys of names that are unique only within a domain.
const NAMES: [&str; 2] = ["username", "tenant-name"];

/// True if the file has a name without its domain: Keystone's v2 API had no domains.
fn lacks_domain(document: &gcfg::Document) -> bool {
    let has = |names: &[&str]| {
        let mut global = document.entries.iter().filter(|it| it.section == "global");
        global.any(|entry| {
            let renamed = RENAMED.iter().find(|(_, former, _)| *former == entry.key);
            names.contains(&renamed.map_or(entry.key.as_str(), |(_, _, new)| new))
        })
    };
    let has_domain = |prefix: &str| {
        let names = ["id", "name"].map(|what| format!("{prefix}-{what}"));
        has(&[&names[0], &names[1]])
    };
    let of_user = has_domain("domain") || has_domain("user-domain");
    match has(&["username"]) {
        true => !of_user,
        false => has(&["tenant-name"]) && !of_user && !has_domain("tenant-domain"),
    }
}

/// Changes outside of the file.
const ELSEWHERE: &[&str] = &[
    "kubelets: replace --cloud-provider=openstack by --cloud-provider=external, and remove --cloud-config",
    "kube-apiserver and kube-controller-manager: remove --cloud-provider and --cloud-config",
    "run `ferrostack cloud-controller-manager` (see `ferrostack generate cloud-controller-manager`) before the kubelets restart",
    "volumes: PersistentVolumes of kubernetes.io/cinder need the Cinder CSI driver (see `ferrostack generate cinder-csi-plugin`), which reads this file, too",
];

/// Text of a generated file.
#[derive(Default)]
struct File {
    text: Zeroizing<String>,
    header: String,
}

impl File {
    fn section(&mut self, section: Section, subsection: Option<&str>) {
        let header = match subsection {
            None => format!("[{}]", section.name()),
            Some(name) => format!("[{} {}]", section.name(), *quoted(name)),
        };
        if self.header != header {
            let gap = if self.text.is_empty() { "" } else { "\n" };
            self.text.push_str(&format!("{gap}{header}\n"));
            self.header = header;
        }
    }

    fn key(&mut self, key: &str, value: &str) {
        if self.header.is_empty() {
            self.section(Section::Global, None);
        }
        self.text.push_str(&format!("{key} = "));
        self.text.push_str(&quoted(value));
        self.text.push('\n');
    }

    fn user(&mut self, user: &UserRef) {
        match user {
            UserRef::Id(id) => self.key("user-id", id),
            UserRef::Named(name, domain) => {
                self.key("username", name);
                self.domain("user-domain", domain);
            }
        }
    }

    fn scope(&mut self, scope: &Scope) -> Result<(), String> {
        match scope {
            Scope::ProjectId(id) => self.key("tenant-id", id),
            Scope::Project(name, domain) => {
                self.key("tenant-name", name);
                self.domain("tenant-domain", domain);
            }
            Scope::Trust(id) => self.key("trust-id", id),
            Scope::Domain(_) | Scope::System | Scope::Default => {
                return Err("the entry names no project, and a cluster runs in one: add project_name or project_id".to_owned());
            }
        }
        Ok(())
    }

    fn domain(&mut self, prefix: &str, domain: &DomainRef) {
        match domain {
            DomainRef::Id(id) => self.key(&format!("{prefix}-id"), id),
            DomainRef::Name(name) => self.key(&format!("{prefix}-name"), name),
        }
    }

    fn done(self, notes: Vec<String>) -> Generated {
        Generated {
            text: SecretString::from(self.text.as_str()),
            notes,
        }
    }
}
