//! Kubernetes objects of a cloud, and the secrets in them, which cannot be printed.

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Serialize;
use serde_json::{Value as Json, json};

/// A secret text. Its debug form is `********`.
#[derive(Clone, Default)]
pub struct Password(SecretString);

impl Password {
    /// A secret text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(SecretString::from(text.into()))
    }

    /// The text itself, for the content of a Secret.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

impl PartialEq for Password {
    fn eq(&self, other: &Self) -> bool {
        self.expose() == other.expose()
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("********")
    }
}

/// The kinds of objects of a cloud, in the order in which they are applied within a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum ObjectKind {
    /// Configuration files.
    ConfigMap,
    /// Passwords, keys, configuration files with passwords.
    Secret,
    /// An address.
    Service,
    /// Who may connect to a program.
    NetworkPolicy,
    /// A volume.
    PersistentVolumeClaim,
    /// A program with a volume or with names of its replicas.
    StatefulSet,
    /// A program.
    Deployment,
    /// A program on each of some nodes.
    DaemonSet,
    /// A program that ends.
    Job,
}

impl ObjectKind {
    /// Every kind.
    pub const ALL: [Self; 9] = [
        Self::ConfigMap,
        Self::Secret,
        Self::Service,
        Self::NetworkPolicy,
        Self::PersistentVolumeClaim,
        Self::StatefulSet,
        Self::Deployment,
        Self::DaemonSet,
        Self::Job,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::ConfigMap => "ConfigMap",
            Self::Secret => "Secret",
            Self::Service => "Service",
            Self::NetworkPolicy => "NetworkPolicy",
            Self::PersistentVolumeClaim => "PersistentVolumeClaim",
            Self::StatefulSet => "StatefulSet",
            Self::Deployment => "Deployment",
            Self::DaemonSet => "DaemonSet",
            Self::Job => "Job",
        }
    }

    /// The kind of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Its API group; empty for the core group.
    pub fn group(self) -> &'static str {
        match self {
            Self::StatefulSet | Self::Deployment | Self::DaemonSet => "apps",
            Self::Job => "batch",
            Self::NetworkPolicy => "networking.k8s.io",
            _ => "",
        }
    }

    /// Its `apiVersion`.
    pub fn api_version(self) -> &'static str {
        match self {
            Self::StatefulSet | Self::Deployment | Self::DaemonSet => "apps/v1",
            Self::Job => "batch/v1",
            Self::NetworkPolicy => "networking.k8s.io/v1",
            _ => "v1",
        }
    }
}

/// Kind and name of an object in the namespace of the cloud.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Reference {
    /// Its kind.
    pub kind: ObjectKind,
    /// Its name.
    pub name: String,
}

impl Reference {
    /// The reference of an object as JSON; none if it is of a kind that no cloud has.
    pub fn of(object: &Json) -> Option<Self> {
        let kind = ObjectKind::named(object.get("kind")?.as_str()?)?;
        let name = object.pointer("/metadata/name")?.as_str()?.to_owned();
        Some(Self { kind, name })
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.kind.name(), self.name)
    }
}

/// An object that is desired. The content of a Secret is kept apart, so that the rest can be printed.
#[derive(Clone, PartialEq)]
pub struct Object {
    reference: Reference,
    json: Json,
    secret: BTreeMap<String, Password>,
}

impl Object {
    /// An object with `fields` beside `apiVersion`, `kind` and `metadata`.
    pub(crate) fn new(kind: ObjectKind, name: &str, metadata: Json, fields: Json) -> Self {
        let mut json =
            json!({"apiVersion": kind.api_version(), "kind": kind.name(), "metadata": metadata});
        json["metadata"]["name"] = name.into();
        if let (Some(into), Json::Object(fields)) = (json.as_object_mut(), fields) {
            into.extend(fields);
        }
        let reference = Reference {
            kind,
            name: name.to_owned(),
        };
        Self {
            reference,
            json,
            secret: BTreeMap::new(),
        }
    }

    /// With this content of a Secret.
    pub(crate) fn with_secret(mut self, secret: BTreeMap<String, Password>) -> Self {
        self.secret = secret;
        self
    }

    /// Kind and name.
    pub fn reference(&self) -> &Reference {
        &self.reference
    }

    /// The object without the content of a Secret.
    pub fn public(&self) -> &Json {
        &self.json
    }

    /// The object as it is sent to the API server.
    pub fn exposed(&self) -> Json {
        let mut json = self.json.clone();
        if self.reference.kind == ObjectKind::Secret {
            let data = self
                .secret
                .iter()
                .map(|(key, value)| (key.clone(), STANDARD.encode(value.expose()).into()));
            json["data"] = Json::Object(data.collect());
        }
        json
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.reference)
    }
}

/// The text of a key of a Secret as JSON.
pub(crate) fn decoded(secret: &Json, key: &str) -> Option<Password> {
    let encoded = secret.get("data")?.get(key)?.as_str()?;
    let bytes = STANDARD.decode(encoded).ok()?;
    String::from_utf8(bytes).ok().map(Password::new)
}
