//! Certificates of TLS listeners, stored in the key manager.

use std::collections::BTreeSet;

use load_balancing::Step as Part;
use openstack::SecretReference;
use openstack::loadbalancer::ListenerCreate;

use super::annotations::Given;
use super::plan::Step;
use super::{Rejection, Work};
use crate::context::Error;
use cloud_conf::LoadBalancer;

/// Annotation with the certificate, and the key of cloud.conf.
pub(super) const ANNOTATION: &str = "default-tls-container-ref";

/// Certificate of the Service. An empty annotation means no certificate, whatever cloud.conf has, as with the Go
/// manager.
///
/// # Errors
/// The annotation is not the URL of a secret or container.
pub(super) fn of(given: &Given<'_>, defaults: &LoadBalancer) -> Result<Option<String>, Rejection> {
    let reference = match given.raw(ANNOTATION) {
        None => defaults.tls_container.as_str(),
        Some(annotation) => annotation.trim(),
    };
    if reference.is_empty() {
        return Ok(None);
    }
    if !defaults.has_external_store && SecretReference::parse(reference).is_none() {
        return Err(given.wrong(
            ANNOTATION,
            "write the URL of a container or secret of the key manager, such as https://HOST/v1/containers/ID",
        ));
    }
    Ok(Some(reference.to_owned()))
}

fn certificate_of(listener: &ListenerCreate) -> Option<&str> {
    listener.default_tls_container_ref.as_deref()
}

/// Certificates that [`Step`]s add to listeners.
fn references(steps: &[Step]) -> BTreeSet<&str> {
    let mut found = BTreeSet::new();
    for step in steps {
        let listeners = match step {
            Step::Balancer(Part::Create(tree)) => tree.listeners.as_slice(),
            Step::Balancer(Part::CreateListener(listener)) => std::slice::from_ref(&**listener),
            Step::Balancer(Part::UpdateListener { change, .. }) => {
                found.extend(change.default_tls_container_ref.as_deref());
                continue;
            }
            _ => continue,
        };
        found.extend(listeners.iter().filter_map(certificate_of));
    }
    found
}

/// Asks the key manager for the certificates that [`Step`]s add to listeners: Octavia would reject the whole request.
/// Returns the [`Rejection`] of the first missing certificate. Listeners in order cost no request.
pub(super) async fn missing(work: &Work<'_>, steps: &[Step]) -> Result<Option<Rejection>, Error> {
    if work.settings.conf.load_balancer.has_external_store {
        return Ok(None);
    }
    let key_manager = work.cloud.session.key_manager();
    for reference in references(steps) {
        let Some(parsed) = SecretReference::parse(reference) else {
            continue;
        };
        let found = key_manager.has(&parsed).await;
        let found = found.map_err(Error::cloud(format!(
            "looking for the certificate {reference} (container-store = external in cloud.conf leaves this to the driver)"
        )))?;
        if !found {
            return Ok(Some(Rejection::new(format!(
                "annotation loadbalancer.openstack.org/{ANNOTATION}: `{reference}`: the key manager has no such secret or \
                 container that the project may read: `openstack secret container list` lists them"
            ))));
        }
    }
    Ok(None)
}
