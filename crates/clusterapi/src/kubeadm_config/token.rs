//! Bootstrap tokens, for mutual authentication of a joining machine and the cluster.
//!
//! A token is a Secret in the namespace kube-system of the workload cluster (Kubernetes documentation,
//! "Authenticating with Bootstrap Tokens"). As upstream, the spec of the KubeadmConfig has the token, so that it can
//! be extended while the machine boots. The spec is written before the Secret, so that an interrupted reconcile
//! leaves no unknown token behind.

use std::sync::Arc;
use std::time::Duration;

use api::bootstrap::v1beta2::{Discovery, KubeadmConfig};
use api::k8s_openapi::ByteString;
use api::k8s_openapi::api::core::v1::Secret;
use api::k8s_openapi::jiff::{SignedDuration, Timestamp};
use api::kube::api::{ObjectMeta, Patch, PatchParams, PostParams};
use api::kube::{Client, ResourceExt};
use operator::client::Api;
use rand::Rng;
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;

use super::{BootstrapError, Scope, Subject, rfc3339};
use crate::pki::store::Certificates;
use crate::pki::{self, Purpose};

/// The lifetime of a token unless it is extended.
pub(super) const TTL: Duration = Duration::from_secs(15 * 60);

/// Discovery section of a join configuration, completed with endpoint, CA hash and an existing token.
pub(super) async fn discovery(
    scope: &Scope,
    subject: &mut Subject,
    certificates: &Certificates,
) -> Result<Discovery, BootstrapError> {
    let join = subject.config.spec.join_configuration.as_ref();
    let mut discovery = join
        .and_then(|join| join.discovery.clone())
        .unwrap_or_default();
    if let Some(file) = &mut discovery.file {
        complete_file(file, subject, certificates);
        return Ok(discovery);
    }
    let workload = scope.context.remote.client(&subject.key)?;
    let now = scope.context.now();
    let mut known = discovery.bootstrap_token.take().unwrap_or_default();
    if known.api_server_endpoint.is_none() {
        known.api_server_endpoint = subject
            .cluster
            .endpoint()
            .map(|(host, port)| crate::kubeadm::host_port(host, port));
    }
    let ca = certificates.get(Purpose::Cluster);
    if known.ca_cert_hashes.is_empty() && known.unsafe_skip_ca_verification != Some(true) {
        known.ca_cert_hashes = ca
            .map(|ca| pki::public_key_hash(&ca.public))
            .transpose()?
            .into_iter()
            .collect();
    }
    let token = known
        .token
        .clone()
        .map_or_else(generate, SecretString::from);
    known.token = Some(token.expose_secret().to_owned());
    let complete = Discovery {
        bootstrap_token: Some(known),
        ..discovery
    };
    // Stored first, so that an interrupted reconcile leaves no unknown token behind.
    remember(scope, subject, &complete).await?;
    extend(&workload, &token, now).await?;
    Ok(complete)
}

/// Token in the spec.
pub(super) fn of_config(config: &KubeadmConfig) -> Option<SecretString> {
    let discovery = config
        .spec
        .join_configuration
        .as_ref()?
        .discovery
        .as_ref()?;
    discovery
        .bootstrap_token
        .as_ref()?
        .token
        .clone()
        .map(SecretString::from)
}

/// Extends `token` by [`TTL`] from now, if less than five sixths are left. A missing token is created: it is new, or
/// was deleted, and the user data of the machine cannot be changed any more.
pub(super) async fn extend(
    workload: &Client,
    token: &SecretString,
    now: Timestamp,
) -> Result<(), BootstrapError> {
    let Some((id, secret)) = split(token) else {
        return Ok(());
    };
    let secrets: Api<Secret> = Api::namespaced(workload.clone(), "kube-system");
    let name = format!("bootstrap-token-{id}");
    let known = secrets.get_opt(&name).await;
    let known = known.map_err(BootstrapError::api(format!(
        "reading secret kube-system/{name}"
    )))?;
    let Some(known) = known else {
        return store(&secrets, &id, &secret, now).await;
    };
    if !needs_extension(expiration(&known), now) {
        return Ok(());
    }
    let patch = json!({
        "metadata": {"resourceVersion": known.resource_version()},
        "stringData": {"expiration": rfc3339(later(now))},
    });
    let written = secrets
        .patch(&name, &PatchParams::default(), &Patch::Merge(&patch))
        .await;
    written.map_err(BootstrapError::api(format!(
        "extending secret kube-system/{name}"
    )))?;
    Ok(())
}

/// True if less than five sixths of the lifetime are left. A token without expiration is not extended.
fn needs_extension(expiration: Option<Timestamp>, now: Timestamp) -> bool {
    let left = |end: Timestamp| end.as_second().saturating_sub(now.as_second());
    let enough = i64::try_from(TTL.as_secs() * 5 / 6).unwrap_or(i64::MAX);
    expiration.is_some_and(|end| left(end) < enough)
}

fn later(now: Timestamp) -> Timestamp {
    let life = SignedDuration::try_from(TTL).unwrap_or(SignedDuration::ZERO);
    now.checked_add(life).unwrap_or(now)
}

fn expiration(secret: &Secret) -> Option<Timestamp> {
    let bytes = &secret.data.as_ref()?.get("expiration")?.0;
    std::str::from_utf8(bytes).ok()?.parse().ok()
}

fn split(token: &SecretString) -> Option<(String, SecretString)> {
    let (id, secret) = token.expose_secret().split_once('.')?;
    Some((id.to_owned(), SecretString::from(secret)))
}

fn generate() -> SecretString {
    SecretString::from(format!("{}.{}", random(6), random(16)))
}

async fn store(
    secrets: &Api<Secret>,
    id: &str,
    secret: &SecretString,
    now: Timestamp,
) -> Result<(), BootstrapError> {
    let text = |value: &str| ByteString(value.as_bytes().to_vec());
    let data = [
        ("token-id", id),
        ("token-secret", secret.expose_secret()),
        ("expiration", &rfc3339(later(now))),
        ("usage-bootstrap-signing", "true"),
        ("usage-bootstrap-authentication", "true"),
        (
            "auth-extra-groups",
            "system:bootstrappers:kubeadm:default-node-token",
        ),
        ("description", "token of a machine that is about to join"),
    ];
    let object = Secret {
        metadata: ObjectMeta {
            name: Some(format!("bootstrap-token-{id}")),
            namespace: Some("kube-system".to_owned()),
            ..ObjectMeta::default()
        },
        type_: Some("bootstrap.kubernetes.io/token".to_owned()),
        data: Some(
            data.map(|(key, value)| (key.to_owned(), text(value)))
                .into(),
        ),
        ..Secret::default()
    };
    let created = secrets.create(&PostParams::default(), &object).await;
    created.map_err(BootstrapError::api(
        "creating a bootstrap token in kube-system",
    ))?;
    Ok(())
}

/// Random characters of bootstrap tokens, from a cryptographic generator.
fn random(length: usize) -> String {
    const ALPHABET: &[u8] = b"abcdefghijklmnopqrstuvwxyz0123456789";
    let mut source = rand::rng();
    (0..length)
        .map(|_| char::from(ALPHABET[source.random_range(0..ALPHABET.len())]))
        .collect()
}

/// Stores the discovery section in the spec of the KubeadmConfig, so that the next reconcile uses the same token.
async fn remember(
    scope: &Scope,
    subject: &mut Subject,
    discovery: &Discovery,
) -> Result<(), BootstrapError> {
    let known = subject.config.spec.join_configuration.as_ref();
    if known.and_then(|join| join.discovery.as_ref()) == Some(discovery) {
        return Ok(());
    }
    let name = subject.config.name_any();
    let patch = json!({
        "metadata": {"resourceVersion": subject.config.resource_version()},
        "spec": {"joinConfiguration": {"discovery": discovery}},
    });
    let configs: Api<KubeadmConfig> = scope.context.api(&subject.key.namespace);
    let written = configs
        .patch(&name, &PatchParams::default(), &Patch::Merge(&patch))
        .await;
    let written = written.map_err(BootstrapError::api(format!(
        "writing the token into KubeadmConfig {name}"
    )))?;
    // The status patch needs the new resourceVersion.
    subject.config = Arc::new(written);
    Ok(())
}

/// Completes the cluster section of the kubeconfig for file discovery.
fn complete_file(
    file: &mut api::bootstrap::v1beta2::FileDiscovery,
    subject: &Subject,
    certificates: &Certificates,
) {
    use base64::Engine;
    let Some(kubeconfig) = &mut file.kube_config else {
        return;
    };
    let cluster = kubeconfig.cluster.get_or_insert_default();
    if cluster.server.is_none() {
        cluster.server = subject
            .cluster
            .endpoint()
            .map(|(host, port)| format!("https://{}", crate::kubeadm::host_port(host, port)));
    }
    let trusted = cluster.insecure_skip_tls_verify == Some(true);
    if cluster.certificate_authority_data.is_none() && !trusted {
        let encode = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
        cluster.certificate_authority_data = certificates
            .get(Purpose::Cluster)
            .map(|ca| encode(&ca.public));
    }
}

#[cfg(test)]
mod tests;
