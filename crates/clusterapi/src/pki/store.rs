//! Secrets with the key material of a cluster: read, or created once.
//!
//! Existing Secrets are never changed. If another writer creates a Secret first, its Secret is read; after an
//! interruption the next reconcile creates the missing Secrets.

use std::collections::BTreeMap;

use api::bootstrap::v1beta2::EncryptionAlgorithm;
use api::k8s_openapi::ByteString;
use api::k8s_openapi::api::core::v1::Secret;
use api::k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use api::k8s_openapi::jiff::Timestamp;
use api::kube::api::{ObjectMeta, PostParams};
use api::{kube, names};
use operator::client::Api;
use operator::retry::{Retry, When};
use secrecy::{ExposeSecret, SecretString};
use zeroize::Zeroizing;

use super::{KeyMaterial, PkiError, Purpose, generate, judge};

/// Data key of the certificate or public key.
const CERTIFICATE: &str = "tls.crt";
/// Data key of the private key.
const KEY: &str = "tls.key";

/// Error of reading or creating key material.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A request to the API server failed.
    #[error("secret {name}")]
    Api {
        /// Name of the Secret.
        name: String,
        /// Error of the request.
        #[source]
        source: kube::Error,
    },
    /// The Secret has no usable certificate or public key.
    #[error(
        "secret {name} has no usable {key}: store a PEM document there, or delete the secret before \
         the control plane is initialized so that it is generated again"
    )]
    Malformed {
        /// Name of the Secret.
        name: String,
        /// Data key with missing, empty or binary content.
        key: &'static str,
    },
    /// The content of the Secret cannot be used.
    #[error(
        "{key} of secret {name} {why}: store another one there, or delete the secret before the control plane is \
         initialized so that it is generated"
    )]
    Unusable {
        /// Name of the Secret.
        name: String,
        /// Data key with the wrong content.
        key: &'static str,
        /// Problem of the content.
        why: String,
    },
    /// The Secret of a running cluster does not exist.
    #[error(
        "secret {name} is missing and cannot be generated again, because the running cluster depends on its keys: \
         restore it from a backup or from the machines' /etc/kubernetes/pki"
    )]
    Lost {
        /// Name of the Secret.
        name: String,
    },
    /// The Secret of an external etcd does not exist.
    #[error("secret {name} is missing: etcd is external, so that {content} must be stored there")]
    NotSupplied {
        /// Name of the Secret.
        name: String,
        /// Required content.
        content: &'static str,
    },
    /// Key material could not be generated.
    #[error(transparent)]
    Pki(#[from] PkiError),
}

impl Retry for StoreError {
    fn when(&self) -> When {
        match self {
            StoreError::Api { source, .. } => source.when(),
            // Secrets are not watched, so their repair triggers no reconcile.
            StoreError::Malformed { .. }
            | StoreError::Unusable { .. }
            | StoreError::Lost { .. }
            | StoreError::NotSupplied { .. }
            | StoreError::Pki(_) => When::Backoff,
        }
    }
}

/// Existing key material of a cluster.
#[derive(Clone, Debug, Default)]
pub struct Certificates {
    known: BTreeMap<Purpose, KeyMaterial>,
}

impl Certificates {
    /// [`KeyMaterial`] by [`Purpose`].
    pub fn new(known: impl IntoIterator<Item = (Purpose, KeyMaterial)>) -> Self {
        Self {
            known: known.into_iter().collect(),
        }
    }

    /// Material of `purpose`.
    pub fn get(&self, purpose: Purpose) -> Option<&KeyMaterial> {
        self.known.get(&purpose)
    }

    /// Same, with further material.
    pub fn with(mut self, further: impl IntoIterator<Item = (Purpose, KeyMaterial)>) -> Self {
        self.known.extend(further);
        self
    }

    /// Existing material, in the order of the files on machines.
    pub fn iter(&self) -> impl Iterator<Item = (Purpose, &KeyMaterial)> {
        self.known
            .iter()
            .map(|(purpose, material)| (*purpose, material))
    }

    /// [`Purpose`]s without material.
    pub fn missing(&self) -> Vec<Purpose> {
        Purpose::ALL
            .into_iter()
            .filter(|purpose| !self.known.contains_key(purpose))
            .collect()
    }
}

/// Parameters for missing key material.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// Controlling owner of the Secrets.
    pub owner: OwnerReference,
    /// Keys' algorithm; unset for [`Purpose::default_algorithm`].
    pub algorithm: Option<EncryptionAlgorithm>,
    /// Validity of the CA certificates in days.
    pub validity_days: i32,
    /// [`Purpose`]s without generation: the CA of an external etcd.
    pub except: Vec<Purpose>,
}

/// Reads the existing key material of `cluster`.
///
/// # Errors
/// When a request fails, or the content of a [`Secret`] cannot be used at `now`.
pub async fn read(
    secrets: &Api<Secret>,
    cluster: &str,
    now: Timestamp,
) -> Result<Certificates, StoreError> {
    let mut known = BTreeMap::new();
    for purpose in Purpose::ALL {
        if let Some(material) = read_one(secrets, cluster, purpose, now).await? {
            known.insert(purpose, material);
        }
    }
    Ok(Certificates { known })
}

/// Reads the [`KeyMaterial`] of `cluster` for one [`Purpose`]; `None` if the [`Secret`] does not exist.
///
/// # Errors
/// When the request fails, or the content of the Secret cannot be used at `now`.
pub async fn read_one(
    secrets: &Api<Secret>,
    cluster: &str,
    purpose: Purpose,
    now: Timestamp,
) -> Result<Option<KeyMaterial>, StoreError> {
    let name = purpose.secret_name(cluster);
    let found = secrets.get_opt(&name).await;
    let found = found.map_err(|source| StoreError::Api { name, source })?;
    let parse = |secret| parse(secret, purpose, now);
    found.as_ref().map(parse).transpose()
}

/// Reads the material supplied by users for an external etcd of `cluster`: the certificate of the CA, and a client
/// certificate with its key.
///
/// # Errors
/// When a request fails, or a [`Secret`] does not exist or cannot be used at `now`.
pub async fn read_external_etcd(
    secrets: &Api<Secret>,
    cluster: &str,
    now: Timestamp,
) -> Result<[(Purpose, KeyMaterial); 2], StoreError> {
    let needed = |purpose: Purpose, content| async move {
        let name = purpose.secret_name(cluster);
        let found = read_one(secrets, cluster, purpose, now).await?;
        found.ok_or(StoreError::NotSupplied { name, content })
    };
    let ca = needed(Purpose::Etcd, "the certificate of its CA (tls.crt)").await?;
    let content = "a client certificate (tls.crt) with its key (tls.key)";
    let client = needed(Purpose::EtcdClient, content).await?;
    if client.private.is_none() {
        let name = Purpose::EtcdClient.secret_name(cluster);
        return Err(StoreError::Malformed { name, key: KEY });
    }
    Ok([(Purpose::Etcd, ca), (Purpose::EtcdClient, client)])
}

/// Reads the key material of `cluster` and creates missing material.
///
/// # Errors
/// When a request fails, the content of a [`Secret`] is malformed, or a key cannot be generated.
pub async fn ensure(
    secrets: &Api<Secret>,
    cluster: &str,
    recipe: &Recipe,
    now: Timestamp,
) -> Result<Certificates, StoreError> {
    let mut certificates = read(secrets, cluster, now).await?;
    let mut generated = tokio::task::JoinSet::new();
    for purpose in certificates.missing() {
        if !recipe.except.contains(&purpose) {
            let algorithm = recipe.algorithm.unwrap_or(purpose.default_algorithm());
            let days = recipe.validity_days;
            generated.spawn_blocking(move || (purpose, generate(purpose, algorithm, days, now)));
        }
    }
    while let Some(done) = generated.join_next().await {
        let (purpose, material) = done.map_err(|_| PkiError::Interrupted)?;
        let secret = secret(purpose, cluster, &material?, &recipe.owner);
        let stored = create(secrets, secret).await?;
        let material = parse(&stored, purpose, now)?;
        certificates.known.insert(purpose, material);
    }
    Ok(certificates)
}

/// Creates `secret`, or reads the existing one with the same name.
pub(crate) async fn create(secrets: &Api<Secret>, secret: Secret) -> Result<Secret, StoreError> {
    let name = secret.metadata.name.clone().unwrap_or_default();
    let failed = |source| StoreError::Api {
        name: name.clone(),
        source,
    };
    match secrets.create(&PostParams::default(), &secret).await {
        Err(kube::Error::Api(status)) if status.code == 409 => {
            secrets.get(&name).await.map_err(failed)
        }
        other => other.map_err(failed),
    }
}

/// Metadata of a Secret of `cluster`.
pub(crate) fn metadata(name: String, cluster: &str, owner: &OwnerReference) -> ObjectMeta {
    ObjectMeta {
        name: Some(name),
        labels: Some(BTreeMap::from([(
            names::CLUSTER_NAME_LABEL.to_owned(),
            cluster.to_owned(),
        )])),
        owner_references: Some(vec![owner.clone()]),
        ..ObjectMeta::default()
    }
}

fn secret(
    purpose: Purpose,
    cluster: &str,
    material: &KeyMaterial,
    owner: &OwnerReference,
) -> Secret {
    let mut data = BTreeMap::from([(
        CERTIFICATE.to_owned(),
        ByteString(material.public.as_bytes().to_vec()),
    )]);
    if let Some(key) = &material.private {
        data.insert(
            KEY.to_owned(),
            ByteString(key.expose_secret().as_bytes().to_vec()),
        );
    }
    Secret {
        metadata: metadata(purpose.secret_name(cluster), cluster, owner),
        type_: Some(names::SECRET_TYPE.to_owned()),
        data: Some(data),
        ..Secret::default()
    }
}

fn parse(secret: &Secret, purpose: Purpose, now: Timestamp) -> Result<KeyMaterial, StoreError> {
    let malformed = |key| StoreError::Malformed {
        name: secret.metadata.name.clone().unwrap_or_default(),
        key,
    };
    let text = |key: &str| -> Option<Zeroizing<String>> {
        let bytes = &secret.data.as_ref()?.get(key)?.0;
        String::from_utf8(bytes.clone())
            .ok()
            .filter(|text| !text.is_empty())
            .map(Zeroizing::new)
    };
    let public = text(CERTIFICATE).ok_or_else(|| malformed(CERTIFICATE))?;
    let private = text(KEY).map(|key| SecretString::from(key.as_str()));
    let material = KeyMaterial {
        public: public.as_str().into(),
        private,
    };
    match judge::problem(purpose, &material, now) {
        None => Ok(material),
        Some(problem) => Err(StoreError::Unusable {
            name: secret.metadata.name.clone().unwrap_or_default(),
            key: if problem.is_key { KEY } else { CERTIFICATE },
            why: problem.why,
        }),
    }
}
