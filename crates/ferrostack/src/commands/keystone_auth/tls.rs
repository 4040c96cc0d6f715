//! TLS of the webhook, with the current certificate of its file.

use std::sync::Arc;

use jiff::Timestamp;
use keystone_auth::reload::Apply;
use parking_lot::RwLock;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::version::{TLS12, TLS13};
use rustls::{RootCertStore, ServerConfig};

/// The settings of new connections.
#[derive(Clone, Debug, Default)]
pub(super) struct Certificates(Arc<RwLock<Option<Arc<ServerConfig>>>>);

impl Certificates {
    /// [`Apply`] function to replace the settings: takes certificate, key and, if clients need certificates, their
    /// authorities.
    pub(super) fn replacing(&self) -> Apply {
        let current = Arc::clone(&self.0);
        Box::new(move |texts| {
            let config = match texts {
                [certificate, key] => config(certificate, key, None),
                [certificate, key, clients] => config(certificate, key, Some(clients)),
                _ => return Err("there is no certificate".to_owned()),
            };
            *current.write() = Some(Arc::new(config?));
            if let Some(why) = texts
                .first()
                .and_then(|it| out_of_time(it, Timestamp::now()))
            {
                tracing::error!("{why}: API servers refuse it");
            }
            Ok(())
        })
    }

    /// Current [`ServerConfig`].
    pub(super) fn current(&self) -> impl Fn() -> Option<Arc<ServerConfig>> + Send + Sync + 'static {
        let current = Arc::clone(&self.0);
        move || current.read().clone()
    }
}

/// [`ServerConfig`] for a certificate and its key, all PEM.
///
/// # Errors
/// If a text cannot be read, or if key and certificate do not match.
pub(super) fn config(
    certificate: &str,
    key: &str,
    clients: Option<&str>,
) -> Result<ServerConfig, String> {
    let chain: Vec<CertificateDer<'static>> = certificates("the certificate", certificate)?;
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes())
        .map_err(|error| format!("the key cannot be read: {error}"))?;
    let provider = Arc::new(ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider));
    let builder = builder
        .with_protocol_versions(&[&TLS13, &TLS12])
        .map_err(|error| error.to_string())?;
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some(clients) => {
            let mut roots = RootCertStore::empty();
            for authority in certificates("--client-ca-file", clients)? {
                roots
                    .add(authority)
                    .map_err(|error| format!("--client-ca-file: {error}"))?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            builder.with_client_cert_verifier(verifier.build().map_err(|error| error.to_string())?)
        }
    };
    let mut config = builder
        .with_single_cert(chain, key)
        .map_err(|error| format!("the certificate and the key: {error}"))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

/// Reason why clients refuse a certificate, in PEM, at this time; `None` for a valid one.
pub(super) fn out_of_time(certificate: &str, now: Timestamp) -> Option<String> {
    let leaf = CertificateDer::from_pem_slice(certificate.as_bytes()).ok()?;
    let (_, leaf) = x509_parser::parse_x509_certificate(&leaf).ok()?;
    let (from, until) = (leaf.validity().not_before, leaf.validity().not_after);
    let now = now.as_second();
    if now > until.timestamp() {
        return Some(format!(
            "the certificate has expired: it was valid until {until}"
        ));
    }
    (now < from.timestamp()).then(|| format!("the certificate is not valid before {from}"))
}

fn certificates(what: &str, pem: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    let all = all.map_err(|error| format!("{what} cannot be read: {error}"))?;
    match all.is_empty() {
        true => Err(format!("{what}: there is no certificate")),
        false => Ok(all),
    }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;

    use super::*;
    use crate::pki;

    fn issued() -> (String, String, String) {
        let (authority, identity) = pki::self_issued("test", vec!["localhost".to_owned()]).unwrap();
        let key = identity.key.expose_secret().to_owned();
        (authority, identity.certificate, key)
    }

    #[test]
    fn a_certificate_is_valid_for_its_time() {
        let (_, certificate, _) = issued();
        let at = |time: Timestamp| out_of_time(&certificate, time);
        assert_eq!(at(Timestamp::now()), None);
        assert!(
            at(Timestamp::UNIX_EPOCH)
                .unwrap()
                .contains("not valid before")
        );
        assert!(at(Timestamp::MAX).unwrap().contains("has expired"));
        assert_eq!(out_of_time("", Timestamp::now()), None);
    }

    #[test]
    fn a_certificate_needs_its_key_and_what_is_cut_off_is_refused() {
        let ((authority, certificate, key), (_, other, _)) = (issued(), issued());
        assert!(config(&certificate, &key, None).is_ok());
        assert!(config(&certificate, &key, Some(&authority)).is_ok());
        let half = |text: &str| text[..text.len() / 2].to_owned();
        for (certificate, key, clients, words) in [
            (
                other.as_str(),
                key.as_str(),
                None,
                "the certificate and the key",
            ),
            (&half(&certificate), &key, None, "the certificate"),
            (&certificate, &half(&key), None, "the key cannot be read"),
            ("", &key, None, "there is no certificate"),
            (&certificate, "", None, "the key cannot be read"),
            (
                &certificate,
                &key,
                Some(""),
                "--client-ca-file: there is no certificate",
            ),
        ] {
            let error = config(certificate, key, clients).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }
}
