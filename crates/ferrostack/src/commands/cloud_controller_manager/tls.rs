//! TLS of the manager's server, by `--tls-min-version` and `--tls-cipher-suites`.

use std::sync::Arc;

use anyhow::bail;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::version::{TLS12, TLS13};
use rustls::{ServerConfig, SupportedProtocolVersion};
use secrecy::{ExposeSecret, SecretString};

use crate::cli::CloudControllerManager;

#[cfg(test)]
mod tests;

/// Rejects unknown names of cipher suites.
pub(super) fn check(args: &CloudControllerManager) -> anyhow::Result<()> {
    let offered = names(&provider(&[]));
    let is_known = |name: &str| offered.contains(&current(name)) || OTHERS.contains(&name);
    match listed(args).iter().find(|name| !is_known(name)) {
        None => Ok(()),
        Some(name) => bail!(
            "--tls-cipher-suites: `{name}` is no cipher suite that Kubernetes' flags know: remove it; the server has {}",
            offered.join(", ")
        ),
    }
}

/// [`ServerConfig`] for a certificate and key, both PEM.
pub(super) fn config(
    args: &CloudControllerManager,
    certificate: &str,
    key: &SecretString,
) -> anyhow::Result<Arc<ServerConfig>> {
    let chain: Vec<_> =
        CertificateDer::pem_slice_iter(certificate.as_bytes()).collect::<Result<_, _>>()?;
    let key = PrivateKeyDer::from_pem_slice(key.expose_secret().as_bytes())?;
    let provider = provider(listed(args));
    let versions = versions(args, &provider);
    let builder = ServerConfig::builder_with_provider(Arc::new(provider));
    let builder = builder.with_protocol_versions(&versions)?;
    let mut config = builder.with_no_client_auth().with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// Suites of the flag; as in Go, an empty value is no list.
fn listed(args: &CloudControllerManager) -> &[String] {
    match args.tls_cipher_suites.iter().all(String::is_empty) {
        true => &[],
        false => &args.tls_cipher_suites,
    }
}

/// [`CryptoProvider`] with all suites of TLS 1.3, which cannot be chosen in Go, either, and the listed suites of TLS
/// 1.2, or all without a list.
fn provider(listed: &[String]) -> CryptoProvider {
    let mut provider = ring::default_provider();
    let is_listed = |name: &str| listed.iter().any(|listed| current(listed) == name);
    provider.cipher_suites.retain(|suite| {
        let name = suite.suite().as_str();
        suite.tls13().is_some() || listed.is_empty() || name.is_some_and(is_listed)
    });
    provider
}

/// Names of a [`CryptoProvider`]'s suites of TLS 1.2.
fn names(provider: &CryptoProvider) -> Vec<&'static str> {
    let older = provider.cipher_suites.iter();
    let older = older.filter(|suite| suite.tls13().is_none());
    older.filter_map(|suite| suite.suite().as_str()).collect()
}

/// Versions of TLS; 1.2 only if not forbidden, and with a suite.
fn versions(
    args: &CloudControllerManager,
    provider: &CryptoProvider,
) -> Vec<&'static SupportedProtocolVersion> {
    let is_newest = args.tls_min_version.as_deref() == Some("VersionTLS13");
    match is_newest || names(provider).is_empty() {
        true => vec![&TLS13],
        false => vec![&TLS13, &TLS12],
    }
}

/// Current name for one of the two names that Go had before RFC 7905, still accepted by Kubernetes.
fn current(name: &str) -> &str {
    match name {
        "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305" => "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
        "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305" => "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
        name => name,
    }
}

/// Other suites known to Go: the suites of TLS 1.3, always on, and suites missing in this server, without an effect in
/// a list.
const OTHERS: &[&str] = &[
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_RC4_128_SHA",
    "TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_RC4_128_SHA",
    "TLS_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_RSA_WITH_AES_256_CBC_SHA",
    "TLS_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_RSA_WITH_RC4_128_SHA",
];
