//! Resolves an `identityRef` to a cloud.

use api::conditions::{Reason, Type};
use api::infra::v1alpha1::OpenStackClusterIdentity;
use api::infra::v1beta2::{IdentityRef, IdentityType};
use api::k8s_openapi::api::core::v1::{Namespace, Secret};
use api::selector;
use kube::Client;
use openstack::{Cloud, CloudConfig, CloudPool};
use operator::client::Api;
use operator::retry::Retry;

use crate::problem::{self, Problem};

/// Access to credentials and clouds.
#[derive(Clone, Copy)]
pub(crate) struct Access<'a> {
    /// [`Client`] of the API server with Secrets.
    pub(crate) client: &'a Client,
    /// [`CloudPool`] with the sessions.
    pub(crate) pool: &'a CloudPool,
    /// Certificates of authorities, in PEM, for clouds without certificates.
    pub(crate) ca: Option<&'a str>,
}

/// Authenticated session with the [`Cloud`] selected by `identity` for an object in `namespace`.
///
/// # Errors
/// A [`Problem`] with the credentials: missing, malformed, not allowed in this namespace, rejected, or the cloud is not
/// reachable.
pub(crate) async fn cloud(
    access: Access<'_>,
    namespace: &str,
    identity: &IdentityRef,
) -> Result<Cloud, Problem> {
    let Access { client, pool, ca } = access;
    let (namespace, name) = secret(client, namespace, identity).await?;
    let of_secret = |problem: Problem| problem.of_secret(&namespace, &name);
    let config = config(client, &namespace, &name, identity).await;
    let config = with_authorities(config.map_err(of_secret)?, ca);
    pool.get(&config).await.map_err(|error| {
        let doing = format!(
            "log in to cloud {} of Secret {namespace}/{name}",
            identity.cloud_name
        );
        of_secret(Problem::cloud(
            Type::OpenStackAuthenticationSucceeded,
            REASON,
            &doing,
            &error,
        ))
    })
}

/// [`CloudConfig`] with these authorities, unless Secret or entry have some.
fn with_authorities(config: CloudConfig, ca: Option<&str>) -> CloudConfig {
    match config.ca_pem.is_none() && config.cacert.is_none() {
        true => config.with_ca(ca),
        false => config,
    }
}

/// [`CloudConfig`] selected by `identity` for an object in `namespace`, with its credentials. Sends no request to the
/// cloud.
///
/// # Errors
/// A [`Problem`] with the credentials: missing, malformed, or not allowed in this namespace.
pub async fn cloud_config(
    client: &Client,
    namespace: &str,
    identity: &IdentityRef,
) -> Result<CloudConfig, Problem> {
    let (namespace, name) = secret(client, namespace, identity).await?;
    config(client, &namespace, &name, identity).await
}

/// Namespace and name of the Secret with the credentials.
async fn secret(
    client: &Client,
    namespace: &str,
    identity: &IdentityRef,
) -> Result<(String, String), Problem> {
    match identity.type_ {
        IdentityType::Secret => Ok((namespace.to_owned(), identity.name.clone())),
        IdentityType::ClusterIdentity => shared(client, namespace, &identity.name).await,
    }
}

const REASON: Reason = Reason::OpenStackAuthenticationFailed;

fn refused(message: String) -> Problem {
    Problem::new(Type::OpenStackAuthenticationSucceeded, REASON, message)
}

async fn config(
    client: &Client,
    namespace: &str,
    name: &str,
    identity: &IdentityRef,
) -> Result<CloudConfig, Problem> {
    let secrets = Api::<Secret>::namespaced(client.clone(), namespace);
    let secret = secrets.get_opt(name).await.map_err(kubernetes)?.ok_or_else(|| {
        refused(format!(
            "Secret {namespace}/{name}, which identityRef names, does not exist: create it with \
             the key clouds.yaml"
        ))
    })?;
    let data = secret.data.unwrap_or_default();
    let value = |key: &str| {
        let text = data.get(key).map(|value| std::str::from_utf8(&value.0));
        text.transpose().map_err(|_| {
            refused(format!(
                "Secret {namespace}/{name}: the value of the key {key} is not text"
            ))
        })
    };
    let clouds = value("clouds.yaml")?
        .ok_or_else(|| refused(format!("Secret {namespace}/{name} has no key clouds.yaml")))?;
    let ca = certificates(value("cacert")?)
        .map_err(|why| refused(format!("Secret {namespace}/{name}: the key cacert {why}")))?;
    let config = CloudConfig::parse(clouds, &identity.cloud_name).map_err(|error| {
        refused(format!(
            "Secret {namespace}/{name}: {}",
            operator::words::chain(&error)
        ))
    })?;
    Ok(config.with_ca(ca).with_region(identity.region.clone()))
}

/// Certificates of the key `cacert`; blank text, as written by the templates of the Go provider, selects the system's.
fn certificates(text: Option<&str>) -> Result<Option<&str>, &'static str> {
    match text.map(str::trim) {
        None | Some("") => Ok(None),
        Some(text) if text.contains("-----BEGIN CERTIFICATE-----") => Ok(Some(text)),
        Some(_) => Err(
            "has no certificate: it needs certificates in PEM (-----BEGIN CERTIFICATE-----), or \
             nothing, for the authorities that the system trusts",
        ),
    }
}

/// Secret of an [`OpenStackClusterIdentity`] open to objects in `namespace`, as namespace and name.
async fn shared(client: &Client, namespace: &str, name: &str) -> Result<(String, String), Problem> {
    let identities = Api::<OpenStackClusterIdentity>::all(client.clone());
    let identity = identities
        .get_opt(name)
        .await
        .map_err(kubernetes)?
        .ok_or_else(|| {
            refused(format!(
                "OpenStackClusterIdentity {name}, which identityRef names, does not exist"
            ))
        })?;
    // As in the Go provider, an identity without selector, or with an empty one, is allowed in all namespaces.
    if let Some(selector) = &identity.spec.namespace_selector {
        let namespaces = Api::<Namespace>::all(client.clone());
        let found = namespaces.get_opt(namespace).await.map_err(kubernetes)?;
        let labels = found
            .and_then(|found| found.metadata.labels)
            .unwrap_or_default();
        if !selector::selects(selector, &labels) {
            return Err(refused(format!(
                "OpenStackClusterIdentity {name} may not be used in namespace {namespace}: its \
                 namespaceSelector does not select it"
            )));
        }
    }
    let secret = identity.spec.secret_ref;
    Ok((secret.namespace, secret.name))
}

fn kubernetes(error: kube::Error) -> Problem {
    let when = error.when();
    let why = operator::words::of_request(&error);
    let message = format!("the credentials cannot be read: {why}");
    Problem {
        when,
        ..Problem::new(Type::OpenStackAuthenticationSucceeded, REASON, message)
    }
}

/// True if the credentials may be the cause of a failed request: after any failed login, with whatever status.
pub(crate) fn is_authentication(error: &openstack::Error) -> bool {
    let is_refusal = matches!(
        error.kind(),
        openstack::ErrorKind::Unauthenticated | openstack::ErrorKind::Unreachable
    );
    is_refusal || error.is_login()
}

/// The problem for a failed list request.
pub(crate) fn listing(error: &openstack::Error) -> Problem {
    if is_authentication(error) {
        return Problem::cloud(
            Type::OpenStackAuthenticationSucceeded,
            REASON,
            "read the cloud",
            error,
        );
    }
    let message = error.cause("read the cloud");
    Problem {
        when: problem::when(error),
        ..Problem::new(Type::Ready, Reason::OpenStackError, message)
    }
}

#[cfg(test)]
mod tests;
