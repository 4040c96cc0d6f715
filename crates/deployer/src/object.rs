//! Kubernetes objects of a cloud, with secrets that cannot be printed.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

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

    /// Secret text, for the content of a Secret.
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

/// Kinds of a cloud's objects, in the order of application within a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum ObjectKind {
    /// Configuration files.
    ConfigMap,
    /// Passwords, keys, configuration files with passwords.
    Secret,
    /// An address.
    Service,
    /// Permissions to connect to a program.
    NetworkPolicy,
    /// A volume.
    PersistentVolumeClaim,
    /// A program with a volume, or with names for its replicas.
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

    /// Name of the kind.
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

    /// [`ObjectKind`] of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// API group; empty for the core group.
    pub fn group(self) -> &'static str {
        match self {
            Self::StatefulSet | Self::Deployment | Self::DaemonSet => "apps",
            Self::Job => "batch",
            Self::NetworkPolicy => "networking.k8s.io",
            _ => "",
        }
    }

    /// `apiVersion` of the kind.
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
    /// Kind.
    pub kind: ObjectKind,
    /// Name.
    pub name: String,
}

impl Reference {
    /// [`Reference`] of an object as JSON; none for an object of a kind that no cloud has.
    pub fn from_object(object: &Json) -> Option<Self> {
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

/// Desired object. The content of a Secret is a separate field, so that the rest can be printed. Clones share the
/// content.
#[derive(Clone, PartialEq)]
pub struct Object {
    reference: Reference,
    json: Arc<Json>,
    secret: Arc<BTreeMap<String, Password>>,
}

impl Object {
    /// [`Object`] with `fields` beside `apiVersion`, `kind` and `metadata`.
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
            json: Arc::new(json),
            secret: Arc::default(),
        }
    }

    /// Object with this content of a Secret.
    pub(crate) fn with_secret(mut self, secret: BTreeMap<String, Password>) -> Self {
        self.secret = Arc::new(secret);
        self
    }

    /// Kind and name.
    pub fn reference(&self) -> &Reference {
        &self.reference
    }

    /// Object without the content of a Secret.
    pub fn public(&self) -> &Json {
        &self.json
    }

    /// Object in the form for the API server.
    pub fn exposed(&self) -> Json {
        let mut json = Json::clone(&self.json);
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

/// Text of a key of a Secret as JSON.
pub(crate) fn decoded(secret: &Json, key: &str) -> Option<Password> {
    let encoded = secret.get("data")?.get(key)?.as_str()?;
    let bytes = STANDARD.decode(encoded).ok()?;
    String::from_utf8(bytes).ok().map(Password::new)
}
