//! Certificates of listeners, read by Octavia from the key manager with the rights of the caller.

use crate::cloud::attribute::python_list;
use crate::cloud::call::Call;
use crate::cloud::document::{Doc, Fields};
use crate::cloud::fault::Fault;
use crate::cloud::secrets::{Certificate, certificate};

const TERMINATED: &str = "TERMINATED_HTTPS";
/// Fields that Octavia counts as references of certificates.
const CLIENT_CA: &str = "client_ca_tls_container_ref";
const DEFAULT: &str = "default_tls_container_ref";
const SNI: &str = "sni_container_refs";

/// Checks the references in the body of a creation.
pub(super) fn check_new(call: &Call<'_>, listener: &Doc) -> Result<(), Fault> {
    let has_one = listener.given(DEFAULT) || !listener.list(SNI).is_empty();
    if listener.text("protocol") == TERMINATED && !has_one {
        return Err(Fault::bad(format!(
            "Validation failure: An SNI or default certificate container reference must be provided for {TERMINATED} \
             protocol listeners."
        )));
    }
    check(call, listener.text("protocol"), listener)
}

/// Checks the certificate references in a body for a listener of this protocol, and each [`Certificate`] behind a
/// reference.
pub(super) fn check(call: &Call<'_>, protocol: &str, given: &Doc) -> Result<(), Fault> {
    let mut references: Vec<&str> = given.texts(SNI).collect();
    let default = given.text(DEFAULT);
    if !default.is_empty() {
        references.push(default);
    }
    let has_any = !references.is_empty() || given.given(CLIENT_CA);
    if has_any && protocol == "UDP" {
        return Err(Fault::bad(
            "Validation failure: UDP protocol listener does not support TLS or header insertion.",
        ));
    }
    if has_any && protocol != TERMINATED {
        return Err(Fault::bad(format!(
            "Validation failure: Certificate container references are only allowed on {TERMINATED} protocol listeners."
        )));
    }
    let mut unknown = Vec::new();
    for reference in references {
        match certificate(call, reference) {
            Certificate::Readable => {}
            Certificate::Unknown => unknown.push(reference),
            Certificate::Malformed => {
                return Err(Fault::bad(
                    "The PKCS12 bundle is unreadable. Please check the PKCS12 bundle validity. In addition, make sure \
                     it does not require a pass phrase. Error: not a PKCS12 bundle",
                ));
            }
        }
    }
    match unknown.is_empty() {
        true => Ok(()),
        false => Err(Fault::bad(format!(
            "Could not retrieve certificate: {}",
            python_list(&unknown)
        ))),
    }
}
