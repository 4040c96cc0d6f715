//! Administrator's kubeconfig of a workload cluster, in Secret `<cluster>-kubeconfig`.

use std::collections::BTreeMap;
use std::time::Duration;

use api::bootstrap::v1beta2::EncryptionAlgorithm;
use api::k8s_openapi::ByteString;
use api::k8s_openapi::api::core::v1::Secret;
use api::k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use api::k8s_openapi::jiff::Timestamp;
use api::kube::api::{Patch, PatchParams};
use api::names;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use operator::client::Api;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};

use crate::cloudinit::yaml;
use crate::pki::store::{self, StoreError};
use crate::pki::{self, KeyMaterial, PkiError};

/// Data key of the Secret.
const VALUE: &str = "value";
/// Remaining validity of the client certificate below which it is rotated: half a year.
const ROTATE_BEFORE: Duration = Duration::from_secs(365 * 86_400 / 2);

/// Parameters of a kubeconfig.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// Name of the Cluster.
    pub cluster: String,
    /// `https://host:port` of the workload API server.
    pub server: String,
    /// CA of the cluster, with its key.
    pub ca: KeyMaterial,
    /// Algorithm of the client key.
    pub algorithm: EncryptionAlgorithm,
    /// Controlling owner of the Secret.
    pub owner: OwnerReference,
}

/// Result of [`ensure`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The kubeconfig exists, and its certificate is not about to expire.
    Kept,
    /// The kubeconfig has been created.
    Created,
    /// The expiring client certificate has been rotated.
    Rotated,
    /// The client certificate is about to expire, but the Secret has another owner.
    ForeignExpiring,
}

/// Name of the Secret of `cluster`.
pub fn secret_name(cluster: &str) -> String {
    format!("{cluster}-kubeconfig")
}

/// Creates the kubeconfig [`Secret`], or rotates its client certificate after half of its validity. A Secret with another
/// owner is not changed.
///
/// # Errors
/// When a request fails or the certificate cannot be issued.
pub async fn ensure(
    secrets: &Api<Secret>,
    recipe: Recipe,
    now: Timestamp,
) -> Result<Outcome, StoreError> {
    let name = secret_name(&recipe.cluster);
    let failed = |source| StoreError::Api {
        name: secret_name(&recipe.cluster),
        source,
    };
    let Some(known) = secrets.get_opt(&name).await.map_err(failed)? else {
        let (cluster, owner) = (recipe.cluster.clone(), recipe.owner.clone());
        let text = render(recipe, now).await?;
        store::create(secrets, secret(&cluster, &owner, &text)).await?;
        return Ok(Outcome::Created);
    };
    if !expires_soon(&known, now) {
        return Ok(Outcome::Kept);
    }
    let ours = |owner: &OwnerReference| owner.uid == recipe.owner.uid;
    if !known.metadata.owner_references.iter().flatten().any(ours) {
        return Ok(Outcome::ForeignExpiring);
    }
    let text = render(recipe, now).await?;
    let patch = json!({
        "metadata": {"resourceVersion": known.metadata.resource_version},
        "data": {VALUE: STANDARD.encode(text.expose_secret())},
    });
    let written = secrets
        .patch(&name, &PatchParams::default(), &Patch::Merge(&patch))
        .await;
    written.map_err(|source| StoreError::Api { name, source })?;
    Ok(Outcome::Rotated)
}

fn secret(cluster: &str, owner: &OwnerReference, text: &SecretString) -> Secret {
    let value = ByteString(text.expose_secret().as_bytes().to_vec());
    Secret {
        metadata: store::metadata(secret_name(cluster), cluster, owner),
        type_: Some(names::SECRET_TYPE.to_owned()),
        data: Some(BTreeMap::from([(VALUE.to_owned(), value)])),
        ..Secret::default()
    }
}

/// Issues a client certificate on a blocking thread and renders the kubeconfig.
async fn render(recipe: Recipe, now: Timestamp) -> Result<SecretString, PkiError> {
    let make = move || {
        let client = pki::client(
            &recipe.ca,
            "kubernetes-admin",
            "system:masters",
            recipe.algorithm,
            now,
        )?;
        Ok(document(
            &recipe.cluster,
            &recipe.server,
            &recipe.ca,
            &client,
        ))
    };
    tokio::task::spawn_blocking(make)
        .await
        .map_err(|_| PkiError::Interrupted)?
}

/// kubeconfig as YAML, with the names of clusterctl.
pub fn document(
    cluster: &str,
    server: &str,
    ca: &KeyMaterial,
    client: &KeyMaterial,
) -> SecretString {
    let user = format!("{cluster}-admin");
    let context = format!("{user}@{cluster}");
    let key = client
        .private
        .as_ref()
        .map_or("", |key| key.expose_secret());
    let document = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": cluster, "cluster": {
            "server": server,
            "certificate-authority-data": STANDARD.encode(ca.public.as_bytes()),
        }}],
        "users": [{"name": user, "user": {
            "client-certificate-data": STANDARD.encode(client.public.as_bytes()),
            "client-key-data": STANDARD.encode(key),
        }}],
        "contexts": [{"name": context, "context": {"cluster": cluster, "user": user}}],
        "current-context": context,
        "preferences": {},
    });
    SecretString::from(yaml::document(&document))
}

/// True if the client certificate is valid for less than half a year; false if it cannot be parsed.
fn expires_soon(secret: &Secret, now: Timestamp) -> bool {
    let Some(expiry) = client_expiry(secret) else {
        return false;
    };
    let left = expiry.as_second().saturating_sub(now.as_second());
    left < i64::try_from(ROTATE_BEFORE.as_secs()).unwrap_or(i64::MAX)
}

fn client_expiry(secret: &Secret) -> Option<Timestamp> {
    let text = std::str::from_utf8(&secret.data.as_ref()?.get(VALUE)?.0).ok()?;
    let document: Value = serde_saphyr::from_str(text).ok()?;
    let encoded = document
        .pointer("/users/0/user/client-certificate-data")?
        .as_str()?;
    let pem = String::from_utf8(STANDARD.decode(encoded).ok()?).ok()?;
    pki::expiry(&pem).ok()
}

#[cfg(test)]
mod tests;
