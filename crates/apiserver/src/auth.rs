//! Who a request comes from: client certificates, static tokens, bootstrap tokens, service account tokens.

mod bootstrap;
pub(crate) mod impersonation;
pub(crate) mod rules;
pub(crate) mod service_account;
pub(crate) mod tls;

use std::sync::Arc;

use http::{HeaderMap, header};
use rustls::server::danger::ClientCertVerifier;
use rustls_pki_types::{CertificateDer, UnixTime};
use secrecy::ExposeSecret as _;
use sha2::{Digest as _, Sha256};
use x509_parser::prelude::{FromDer as _, X509Certificate};

use crate::error::ApiError;
use crate::options::Options;
use crate::server::{Core, OpenError};
use crate::user::UserInfo;

use service_account::Signer;

/// What users are recognised by.
pub(crate) struct Authenticator {
    client_ca: Option<Arc<dyn ClientCertVerifier>>,
    /// Digests, so that comparing tells nothing about the tokens by its duration.
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

    /// The user of a client certificate; none when it is signed by nobody we believe.
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

    /// The user of a bearer token.
    pub(crate) fn token(&self, core: &Core, token: &str) -> Option<UserInfo> {
        let wanted = digest(token);
        if let Some((_, user)) = self.tokens.iter().find(|(known, _)| *known == wanted) {
            return Some(user.clone());
        }
        bootstrap::user(core, token, jiff::Timestamp::now())
            .or_else(|| self.signer.user(core, token, jiff::Timestamp::now()))
    }
}

/// The user of a request over the network: anonymous without credentials, 401 with wrong ones.
pub(crate) fn authenticate(
    core: &Core,
    headers: &HeaderMap,
    certificate: Option<&UserInfo>,
) -> Result<UserInfo, ApiError> {
    let authenticated = |mut user: UserInfo| {
        user.groups.push("system:authenticated".to_owned());
        user
    };
    if let Some(user) = certificate {
        return Ok(authenticated(user.clone()));
    }
    let Some(value) = headers.get(header::AUTHORIZATION) else {
        return Ok(UserInfo::anonymous());
    };
    let token = value
        .to_str()
        .ok()
        .and_then(|value| value.strip_prefix("Bearer "))
        .map(str::trim);
    let token = token.ok_or_else(ApiError::unauthorized)?;
    core.authenticator
        .token(core, token)
        .map(authenticated)
        .ok_or_else(ApiError::unauthorized)
}

fn digest(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}
