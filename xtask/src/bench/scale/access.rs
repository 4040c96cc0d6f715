//! Management API of an `up`, by the kubeconfig in its data directory.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::Value;

use crate::https::Access;

/// [`Access`] by a kubeconfig with a client certificate.
pub(super) fn of(kubeconfig: &Path) -> anyhow::Result<Access> {
    let read = std::fs::read_to_string(kubeconfig);
    let text = read.with_context(|| kubeconfig.display().to_string())?;
    let document: Value = serde_saphyr::from_str(&text)?;
    let (cluster, user) = (
        &document["clusters"][0]["cluster"],
        &document["users"][0]["user"],
    );
    let data = |object: &Value, field: &str| -> anyhow::Result<Vec<u8>> {
        let text = object[field].as_str();
        let text = text.with_context(|| format!("{field} in {}", kubeconfig.display()))?;
        Ok(STANDARD.decode(text)?)
    };
    let server = cluster["server"].as_str().unwrap_or_default();
    let address = server.trim_start_matches("https://").parse();
    let mut roots = rustls::RootCertStore::empty();
    let authority = data(cluster, "certificate-authority-data")?;
    roots.add(CertificateDer::from_pem_slice(&authority)?)?;
    let certificate = CertificateDer::from_pem_slice(&data(user, "client-certificate-data")?)?;
    let key = PrivateKeyDer::from_pem_slice(&data(user, "client-key-data")?)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_client_auth_cert(vec![certificate], key)?;
    Ok(Access {
        address: address.with_context(|| server.to_owned())?,
        tls: Arc::new(tls),
    })
}
