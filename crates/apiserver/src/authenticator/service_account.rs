//! Service account tokens: JSON Web Tokens signed with the server's key (TokenRequest).
//!
//! Source of the rules and messages: `pkg/serviceaccount` of kube-apiserver.

mod bound;

use apimachinery::schema::go_quote;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use ring::rand::SystemRandom;
use ring::signature::{self, EcdsaKeyPair, KeyPair as _, RsaKeyPair, UnparsedPublicKey};
use rustls_pki_types::PrivateKeyDer;
use rustls_pki_types::pem::PemObject as _;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};
use std::sync::OnceLock;

use super::Bearer;
use crate::store::Store;

/// Signs and verifies tokens.
pub(crate) struct Signer {
    /// Generated at first use if the options have none.
    key: OnceLock<Option<Key>>,
    pub(crate) issuer: String,
}

enum Key {
    Rsa(Box<RsaKeyPair>),
    Ecdsa(Box<EcdsaKeyPair>),
}

/// Reference to an object in a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reference {
    pub(crate) name: String,
    /// Empty for a Node that does not exist.
    pub(crate) uid: String,
}

/// Subject of a token: an account, and the bound object, if any.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    pub(crate) namespace: String,
    pub(crate) account: Reference,
    pub(crate) pod: Option<Reference>,
    pub(crate) secret: Option<Reference>,
    /// For a pod: its Node.
    pub(crate) node: Option<Reference>,
}

/// Lifetime of a token.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lifetime {
    pub(crate) seconds: i64,
    /// Age in seconds after which the use of the token counts as stale; `None`: not tracked.
    pub(crate) warn_after: Option<i64>,
}

/// Tolerated difference of clocks in seconds (`jwt.DefaultLeeway`).
const LEEWAY: i64 = 60;

impl Signer {
    /// Signer with a key in PEM.
    pub(crate) fn new(key: Option<&SecretString>, issuer: &str) -> Result<Self, String> {
        let signer = Self {
            key: OnceLock::new(),
            issuer: issuer.to_owned(),
        };
        if let Some(pem) = key {
            let key = Key::read(pem.expose_secret())?;
            // The cell is empty, so this does not fail.
            let _ = signer.key.set(Some(key));
        }
        Ok(signer)
    }

    /// Issues a token for a [`Subject`], valid from `now` on. `None` if no key could be generated.
    pub(crate) fn token(
        &self,
        subject: &Subject,
        audiences: &[String],
        lifetime: Lifetime,
        now: Timestamp,
    ) -> Option<String> {
        let key = self.key()?;
        let issued = now.as_second();
        let named = |reference: &Reference| match reference.uid.as_str() {
            "" => json!({"name": reference.name}),
            uid => json!({"name": reference.name, "uid": uid}),
        };
        let mut about = json!({
            "namespace": subject.namespace, "serviceaccount": named(&subject.account),
        });
        let bound = [
            ("pod", &subject.pod),
            ("secret", &subject.secret),
            ("node", &subject.node),
        ];
        for (kind, reference) in bound {
            if let Some(reference) = reference {
                about[kind] = named(reference);
            }
        }
        if let Some(seconds) = lifetime.warn_after {
            about["warnafter"] = Value::from(issued + seconds);
        }
        let claims = json!({
            "aud": audiences, "exp": issued + lifetime.seconds, "iat": issued, "nbf": issued, "iss": self.issuer,
            "jti": uuid::Uuid::new_v4().to_string(), "kubernetes.io": about,
            "sub": format!("system:serviceaccount:{}:{}", subject.namespace, subject.account.name),
        });
        let header = json!({"alg": key.algorithm(), "kid": key.id()});
        let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let message = format!("{}.{}", encode(&header), encode(&claims));
        let signature = key.sign(message.as_bytes())?;
        Some(format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }

    /// User of a token; `None` without a signature of this server.
    ///
    /// # Errors
    /// The reason why the token is invalid: lifetime, audiences, or deletion of the bound object.
    pub(crate) fn bearer(
        &self,
        store: &Store,
        token: &str,
        audiences: &[String],
        now: Timestamp,
    ) -> Result<Option<Bearer>, String> {
        let Some(claims) = self.claims(token) else {
            return Ok(None);
        };
        let named: Vec<String> = match &claims["aud"] {
            Value::String(one) => vec![one.clone()],
            many => many
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(owned)
                .collect(),
        };
        let common: Vec<String> = named
            .iter()
            .filter(|audience| audiences.contains(audience))
            .cloned()
            .collect();
        if common.is_empty() {
            return Err(format!(
                "token audiences {} is invalid for the target audiences {}",
                quoted(&named),
                quoted(audiences)
            ));
        }
        let now = now.as_second();
        if claims["exp"]
            .as_i64()
            .is_none_or(|until| now - LEEWAY > until)
        {
            return Err("service account token has expired".to_owned());
        }
        if claims["nbf"]
            .as_i64()
            .is_some_and(|from| now + LEEWAY < from)
        {
            return Err("service account token is not valid yet".to_owned());
        }
        let user = bound::user(store, &claims, now - LEEWAY)?;
        Ok(Some(Bearer {
            user: match claims["jti"].as_str() {
                Some(id) => user.known_by(format!("JTI={id}")),
                None => user,
            },
            audiences: common,
        }))
    }

    /// Claims of a token with a signature of this server.
    fn claims(&self, token: &str) -> Option<Value> {
        let (message, signature) = token.rsplit_once('.')?;
        let (_, claims) = message.split_once('.')?;
        // No key, no token.
        let key = self.key.get()?.as_ref()?;
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        key.verify(message.as_bytes(), &signature)?;
        let claims: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).ok()?).ok()?;
        (claims["iss"] == self.issuer.as_str()).then_some(claims)
    }

    fn key(&self) -> Option<&Key> {
        self.key.get_or_init(Key::generate).as_ref()
    }
}

impl Key {
    fn read(pem: &str) -> Result<Self, String> {
        let der =
            PrivateKeyDer::from_pem_slice(pem.as_bytes()).map_err(|error| error.to_string())?;
        let refused = |error: ring::error::KeyRejected| error.to_string();
        match der {
            PrivateKeyDer::Pkcs1(der) => {
                let pair = RsaKeyPair::from_der(der.secret_pkcs1_der()).map_err(refused)?;
                Ok(Self::Rsa(Box::new(pair)))
            }
            PrivateKeyDer::Pkcs8(der) => {
                let der = der.secret_pkcs8_der();
                if let Ok(pair) = RsaKeyPair::from_pkcs8(der) {
                    return Ok(Self::Rsa(Box::new(pair)));
                }
                let pair = EcdsaKeyPair::from_pkcs8(
                    &signature::ECDSA_P256_SHA256_FIXED_SIGNING,
                    der,
                    &SystemRandom::new(),
                );
                Ok(Self::Ecdsa(Box::new(pair.map_err(refused)?)))
            }
            _ => Err("it must be an RSA key, or a P-256 key in PKCS #8".to_owned()),
        }
    }

    fn generate() -> Option<Self> {
        let random = SystemRandom::new();
        let algorithm = &signature::ECDSA_P256_SHA256_FIXED_SIGNING;
        let der = EcdsaKeyPair::generate_pkcs8(algorithm, &random).ok()?;
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, der.as_ref(), &random).ok()?;
        Some(Self::Ecdsa(Box::new(pair)))
    }

    fn algorithm(&self) -> &'static str {
        match self {
            Self::Rsa(_) => "RS256",
            Self::Ecdsa(_) => "ES256",
        }
    }

    fn public(&self) -> &[u8] {
        match self {
            Self::Rsa(pair) => pair.public_key().as_ref(),
            Self::Ecdsa(pair) => pair.public_key().as_ref(),
        }
    }

    fn id(&self) -> String {
        use sha2::Digest as _;
        URL_SAFE_NO_PAD.encode(sha2::Sha256::digest(self.public()))
    }

    fn sign(&self, message: &[u8]) -> Option<Vec<u8>> {
        let random = SystemRandom::new();
        match self {
            Self::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(
                    &signature::RSA_PKCS1_SHA256,
                    &random,
                    message,
                    &mut signature,
                )
                .ok()?;
                Some(signature)
            }
            Self::Ecdsa(pair) => Some(pair.sign(&random, message).ok()?.as_ref().to_vec()),
        }
    }

    fn verify(&self, message: &[u8], signature: &[u8]) -> Option<()> {
        let algorithm: &dyn signature::VerificationAlgorithm = match self {
            Self::Rsa(_) => &signature::RSA_PKCS1_2048_8192_SHA256,
            Self::Ecdsa(_) => &signature::ECDSA_P256_SHA256_FIXED,
        };
        UnparsedPublicKey::new(algorithm, self.public())
            .verify(message, signature)
            .ok()
    }
}

fn owned(text: &Value) -> Option<String> {
    text.as_str().map(str::to_owned)
}

/// List of strings in Go's format.
fn quoted(texts: &[String]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| go_quote(text)).collect();
    format!("[{}]", texts.join(" "))
}

#[cfg(test)]
mod tests;
