//! Prerequisites of a control plane: certificates and the administrator's kubeconfig.

use api::bootstrap::v1beta2::{ClusterConfiguration, EncryptionAlgorithm};
use api::k8s_openapi::api::core::v1::Secret;
use api::k8s_openapi::jiff::{SignedDuration, Timestamp};
use operator::client::Api;

use super::observe::{has_external_etcd, is_initialized};
use super::{ControlPlaneError, Scope, Subject, owners};
use crate::kubeadm::host_port;
use crate::kubeconfig::{self, Outcome};
use crate::pki::store::{self, Recipe, StoreError};
use crate::pki::versions::Versions;
use crate::pki::{CA_DAYS, PkiError, Purpose};

/// Time after which unchanged Secrets are read again: certificates expire.
const VALID: SignedDuration = SignedDuration::from_hours(1);

/// Secrets of a control plane at the last successful check.
#[derive(Clone, Debug)]
pub(super) struct InOrder {
    versions: Versions,
    until: Timestamp,
}

/// Reads or creates certificates and kubeconfig, unless unchanged since the last successful check.
pub(super) async fn ensure(scope: &Scope, subject: &Subject) -> Result<(), ControlPlaneError> {
    // Before the read: a change in between is seen with the next event.
    let versions = scope.context.secrets.of(&subject.key);
    let now = scope.context.now();
    let known = scope.secrets.get(&subject.plane);
    if known.is_some_and(|known| known.versions == versions && now < known.until) {
        return Ok(());
    }
    read_or_create(scope, subject).await?;
    if is_complete(subject, &versions) {
        let until = now + VALID;
        let in_order = InOrder { versions, until };
        scope.secrets.insert(&subject.plane, in_order);
    }
    Ok(())
}

/// True if the watch has seen every Secret of a control plane. Secrets created by users without the label are not
/// watched.
fn is_complete(subject: &Subject, versions: &Versions) -> bool {
    let name = &subject.key.name;
    let external = has_external_etcd(&subject.plane);
    let purposes = Purpose::ALL.into_iter();
    let mut needed = purposes.filter(|it| !(external && *it == Purpose::Etcd));
    needed.all(|it| versions.contains_key(&it.secret_name(name)))
        && versions.contains_key(&kubeconfig::secret_name(name))
}

/// Reads or creates certificates and kubeconfig. Certificates need no infrastructure, so keys are generated while the
/// cloud provisions it.
async fn read_or_create(scope: &Scope, subject: &Subject) -> Result<(), ControlPlaneError> {
    let secrets: Api<Secret> = scope.context.api(&subject.key.namespace);
    let config = cluster_configuration(subject);
    let external = has_external_etcd(&subject.plane);
    let recipe = Recipe {
        owner: owners::controller(subject.plane.as_ref()),
        algorithm: config.encryption_algorithm,
        validity_days: config
            .ca_certificate_validity_period_days
            .unwrap_or(CA_DAYS),
        except: if external {
            vec![Purpose::Etcd]
        } else {
            Vec::new()
        },
    };
    let (name, now) = (&subject.key.name, scope.context.now());
    // A running cluster depends on its keys: new ones would not match.
    let certificates = if is_initialized(subject) {
        store::read(&secrets, name, now).await?
    } else {
        store::ensure(&secrets, name, &recipe, now).await?
    };
    let missing = certificates
        .missing()
        .into_iter()
        .find(|p| !recipe.except.contains(p));
    if let Some(purpose) = missing {
        let name = purpose.secret_name(name);
        return Err(StoreError::Lost { name }.into());
    }
    if external {
        store::read_external_etcd(&secrets, name, now).await?;
    }
    let (Some((host, port)), Some(ca)) = (
        subject.cluster.endpoint(),
        certificates.get(Purpose::Cluster),
    ) else {
        return Ok(());
    };
    if ca.private.is_none() {
        return existing_kubeconfig(&secrets, name).await;
    }
    let outcome = kubeconfig::ensure(
        &secrets,
        kubeconfig::Recipe {
            cluster: name.clone(),
            server: format!("https://{}", host_port(host, port)),
            ca: ca.clone(),
            // Not the default of the CA: the reconcile waits for this key, and RSA keys are slow to generate.
            algorithm: config
                .encryption_algorithm
                .unwrap_or(EncryptionAlgorithm::EcdsaP256),
            owner: recipe.owner,
        },
        now,
    );
    report(scope, subject, outcome.await?).await;
    Ok(())
}

/// Existing kubeconfig. Without the key of the CA no kubeconfig can be issued: users must supply one.
async fn existing_kubeconfig(
    secrets: &Api<Secret>,
    cluster: &str,
) -> Result<(), ControlPlaneError> {
    let name = kubeconfig::secret_name(cluster);
    let known = secrets.get_opt(&name).await;
    let known = known.map_err(|source| StoreError::Api { name, source })?;
    match known {
        Some(_) => Ok(()),
        None => Err(PkiError::Key {
            what: "the CA's tls.key (needed for the kubeconfig)",
        }
        .into()),
    }
}

async fn report(scope: &Scope, subject: &Subject, outcome: Outcome) {
    let (reason, note) = match outcome {
        Outcome::Rotated => ("KubeconfigRotated", "issued a new client certificate"),
        _ => return,
    };
    scope
        .events
        .normal(subject.plane.as_ref(), reason, "Rotate", note)
        .await;
}

fn cluster_configuration(subject: &Subject) -> ClusterConfiguration {
    let config = subject.plane.spec.kubeadm_config_spec.as_ref();
    config
        .and_then(|config| config.cluster_configuration.clone())
        .unwrap_or_default()
}
