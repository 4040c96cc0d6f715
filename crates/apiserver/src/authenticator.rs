//! Credentials with an identity of their own: client certificates, static tokens, bootstrap tokens, tokens of service
//! accounts.

mod bootstrap;
pub(crate) mod service_account;

use std::sync::Arc;

use rustls::server::danger::ClientCertVerifier;
use rustls_pki_types::{CertificateDer, UnixTime};
use secrecy::ExposeSecret as _;
use sha2::{Digest as _, Sha256};
use x509_parser::prelude::{FromDer as _, X509Certificate};

use crate::options::Options;
use crate::store::{OpenError, Store};
use crate::tls;
use crate::user::UserInfo;

use service_account::Signer;

/// Credentials accepted by the server.
pub(crate) struct Authenticator {
    client_ca: Option<Arc<dyn ClientCertVerifier>>,
    /// Digests: the duration of a comparison reveals nothing about a token.
    tokens: Vec<([u8; 32], UserInfo)>,
    pub(crate) signer: Signer,
}

impl Authenticator {
    pub(crate) fn new(options: &Options) -> Result<Self, OpenError> {
        let client_ca = match &options.client_ca {
            Some(pem) => Some(
                tls::client_verifier(pem).map_err(|error| OpenError::Option {
                    option: "client_ca",
                    problem: error.to_string(),
                })?,
            ),
            None => None,
        };
        let signer = Signer::new(
            options.service_account_key.as_ref(),
            &options.service_account_issuer,
        )
        .map_err(|problem| OpenError::Option {
            option: "service_account_key",
            problem,
        })?;
        let tokens = options
            .tokens
            .iter()
            .map(|(token, user)| (digest(token.expose_secret()), user.clone()))
            .collect();
        Ok(Self {
            client_ca,
            tokens,
            signer,
        })
    }

    /// User of a client certificate; `None` without a signature of a trusted authority.
    pub(crate) fn certificate(&self, chain: &[CertificateDer<'_>]) -> Option<UserInfo> {
        let (leaf, intermediates) = chain.split_first()?;
        let verifier = self.client_ca.as_ref()?;
        verifier
            .verify_client_cert(leaf, intermediates, UnixTime::now())
            .ok()?;
        let (_, certificate) = X509Certificate::from_der(leaf).ok()?;
        let subject = certificate.subject();
        let name = subject.iter_common_name().next()?.as_str().ok()?.to_owned();
        let groups = subject
            .iter_organization()
            .filter_map(|group| group.as_str().ok().map(str::to_owned));
        let credential = Sha256::digest(leaf.as_ref());
        Some(
            UserInfo {
                name,
                groups: groups.collect(),
                ..UserInfo::default()
            }
            .known_by(format!("X509SHA256={credential:x}")),
        )
    }

    /// Default audience of tokens.
    pub(crate) fn audience(&self) -> &str {
        &self.signer.issuer
    }

    /// User of a bearer token with one of `audiences`.
    ///
    /// # Errors
    /// The reason why a service account token is invalid. Other tokens are either known or unknown.
    pub(crate) fn token(
        &self,
        store: &Store,
        token: &str,
        audiences: &[String],
    ) -> Result<Bearer, String> {
        let now = jiff::Timestamp::now();
        let wanted = digest(token);
        let known = self.tokens.iter().find(|(known, _)| *known == wanted);
        let known = known.map(|(_, user)| user.clone());
        if let Some(user) = known.or_else(|| bootstrap::user(store, token, now)) {
            // Static and bootstrap tokens have no audiences, and are valid for this server only.
            let audience = self.audience();
            if !audiences.iter().any(|wanted| wanted == audience) {
                return Err(UNKNOWN.to_owned());
            }
            return Ok(Bearer {
                user,
                audiences: vec![audience.to_owned()],
            });
        }
        match self.signer.bearer(store, token, audiences, now) {
            Ok(Some(bearer)) => Ok(bearer),
            Ok(None) => Err(UNKNOWN.to_owned()),
            Err(why) => Err(format!("[{UNKNOWN}, {why}]")),
        }
    }
}

/// Error for an unknown token.
pub(crate) const UNKNOWN: &str = "invalid bearer token";

/// User of a token, and the requested audiences for which the token is valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bearer {
    pub(crate) user: UserInfo,
    pub(crate) audiences: Vec<String>,
}

fn digest(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}
