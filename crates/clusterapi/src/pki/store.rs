//! The Secrets that keep a cluster's key material: read, or made once.
//!
//! Nothing here ever replaces what is there. Whoever loses the race to create a Secret reads the
//! winner's, and a process killed between two Secrets makes the rest on its next look.

use std::collections::BTreeMap;

use api::bootstrap::v1beta2::EncryptionAlgorithm;
use api::k8s_openapi::ByteString;
use api::k8s_openapi::api::core::v1::Secret;
use api::k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use api::k8s_openapi::jiff::Timestamp;
use api::kube::api::{Api, ObjectMeta, PostParams};
use api::{kube, names};
use operator::retry::{Retry, When};
use secrecy::{ExposeSecret, SecretString};
use zeroize::Zeroizing;

use super::{KeyMaterial, PkiError, Purpose, generate};

/// Key of a Secret: certificate or public key.
const CERTIFICATE: &str = "tls.crt";
/// Key of a Secret: private key.
const KEY: &str = "tls.key";

/// Why key material could not be read or made.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The API server refused.
    #[error("secret {name}")]
    Api {
        /// The Secret.
        name: String,
        /// Why.
        #[source]
        source: kube::Error,
    },
    /// The Secret is there but does not hold what it should.
    #[error(
        "secret {name} has no usable {key}: store a PEM document there, or delete the secret before \
         the control plane is initialized so that it is generated again"
    )]
    Malformed {
        /// The Secret.
        name: String,
        /// The key that is missing or no text.
        key: &'static str,
    },
    /// The Secret of a running cluster is gone.
    #[error(
        "secret {name} is missing and cannot be generated again, because the running cluster depends on its keys: \
         restore it from a backup or from the machines' /etc/kubernetes/pki"
    )]
    Lost {
        /// The Secret.
        name: String,
    },
    /// Making it failed.
    #[error(transparent)]
    Pki(#[from] PkiError),
}

impl Retry for StoreError {
    fn when(&self) -> When {
        match self {
            StoreError::Api { source, .. } => source.when(),
            // Nobody tells when a person has repaired the Secret.
            StoreError::Malformed { .. } | StoreError::Lost { .. } | StoreError::Pki(_) => {
                When::Backoff
            }
        }
    }
}

/// A cluster's key material, as far as it is there.
#[derive(Clone, Debug, Default)]
pub struct Certificates {
    known: BTreeMap<Purpose, KeyMaterial>,
}

impl Certificates {
    /// From what is known.
    pub fn new(known: impl IntoIterator<Item = (Purpose, KeyMaterial)>) -> Self {
        Self {
            known: known.into_iter().collect(),
        }
    }

    /// The material of `purpose`.
    pub fn get(&self, purpose: Purpose) -> Option<&KeyMaterial> {
        self.known.get(&purpose)
    }

    /// All that is there, in the order in which it is written to machines.
    pub fn iter(&self) -> impl Iterator<Item = (Purpose, &KeyMaterial)> {
        self.known
            .iter()
            .map(|(purpose, material)| (*purpose, material))
    }

    /// What is not there.
    pub fn missing(&self) -> Vec<Purpose> {
        Purpose::ALL
            .into_iter()
            .filter(|purpose| !self.known.contains_key(purpose))
            .collect()
    }
}

/// How missing key material is made.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// Who owns the Secrets, as controller.
    pub owner: OwnerReference,
    /// The keys' algorithm; unset for [`Purpose::default_algorithm`].
    pub algorithm: Option<EncryptionAlgorithm>,
    /// Validity of the CA certificates in days.
    pub validity_days: i32,
    /// What is not made: etcd's CA where etcd is somebody else's.
    pub except: Vec<Purpose>,
}

/// Reads the key material of `cluster`; what is missing is missing in the result.
///
/// # Errors
/// When the API server refuses, or a Secret does not hold what it should.
pub async fn read(secrets: &Api<Secret>, cluster: &str) -> Result<Certificates, StoreError> {
    let mut known = BTreeMap::new();
    for purpose in Purpose::ALL {
        if let Some(material) = read_one(secrets, cluster, purpose).await? {
            known.insert(purpose, material);
        }
    }
    Ok(Certificates { known })
}

/// Reads the key material of `cluster` for one purpose.
///
/// # Errors
/// When the API server refuses, or the Secret does not hold what it should.
pub async fn read_one(
    secrets: &Api<Secret>,
    cluster: &str,
    purpose: Purpose,
) -> Result<Option<KeyMaterial>, StoreError> {
    let name = purpose.secret_name(cluster);
    let found = secrets.get_opt(&name).await;
    let found = found.map_err(|source| StoreError::Api { name, source })?;
    found.as_ref().map(parse).transpose()
}

/// Reads the key material of `cluster` and makes what is missing.
///
/// # Errors
/// When the API server refuses, a Secret does not hold what it should, or a key cannot be made.
pub async fn ensure(
    secrets: &Api<Secret>,
    cluster: &str,
    recipe: &Recipe,
    now: Timestamp,
) -> Result<Certificates, StoreError> {
    let mut certificates = read(secrets, cluster).await?;
    let mut made = tokio::task::JoinSet::new();
    for purpose in certificates.missing() {
        if !recipe.except.contains(&purpose) {
            let algorithm = recipe.algorithm.unwrap_or(purpose.default_algorithm());
            let days = recipe.validity_days;
            made.spawn_blocking(move || (purpose, generate(purpose, algorithm, days, now)));
        }
    }
    while let Some(done) = made.join_next().await {
        let (purpose, material) = done.map_err(|_| PkiError::Interrupted)?;
        let secret = secret(purpose, cluster, &material?, &recipe.owner);
        certificates
            .known
            .insert(purpose, parse(&create(secrets, secret).await?)?);
    }
    Ok(certificates)
}

/// Stores `secret`, or reads the one that somebody else stored under its name meanwhile.
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

/// The metadata of a Secret that belongs to `cluster`.
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

fn parse(secret: &Secret) -> Result<KeyMaterial, StoreError> {
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
    Ok(KeyMaterial {
        public: public.as_str().into(),
        private,
    })
}
