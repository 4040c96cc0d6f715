//! Service account tokens: JSON Web Tokens signed with the server's key (TokenRequest).

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

use crate::server::Core;
use crate::user::UserInfo;

/// Signs tokens, and knows its own again.
pub(crate) struct Signer {
    /// Made at first use when none was given.
    key: OnceLock<Option<Key>>,
    pub(crate) issuer: String,
}

enum Key {
    Rsa(Box<RsaKeyPair>),
    Ecdsa(Box<EcdsaKeyPair>),
}

/// The account that a token is for.
#[derive(Clone, Debug)]
pub(crate) struct Account {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
}

impl Signer {
    /// A signer with a key in PEM.
    pub(crate) fn new(key: Option<&SecretString>, issuer: &str) -> Result<Self, String> {
        let signer = Self {
            key: OnceLock::new(),
            issuer: issuer.to_owned(),
        };
        if let Some(pem) = key {
            let key = Key::read(pem.expose_secret())?;
            // Just made, so nothing is there.
            let _ = signer.key.set(Some(key));
        }
        Ok(signer)
    }

    /// A token for an account, from `now` for `seconds`. None when no key could be made.
    pub(crate) fn token(
        &self,
        account: &Account,
        audiences: &[String],
        seconds: i64,
        now: Timestamp,
    ) -> Option<String> {
        let key = self.key()?;
        let issued = now.as_second();
        let claims = json!({
            "aud": audiences, "exp": issued + seconds, "iat": issued, "nbf": issued, "iss": self.issuer,
            "jti": uuid::Uuid::new_v4().to_string(),
            "kubernetes.io": {
                "namespace": account.namespace,
                "serviceaccount": {"name": account.name, "uid": account.uid},
            },
            "sub": format!("system:serviceaccount:{}:{}", account.namespace, account.name),
        });
        let header = json!({"alg": key.algorithm(), "kid": key.id()});
        let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let message = format!("{}.{}", encode(&header), encode(&claims));
        let signature = key.sign(message.as_bytes())?;
        Some(format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }

    /// The user of a token that we signed, for an account that still is the same.
    pub(crate) fn user(&self, core: &Core, token: &str, now: Timestamp) -> Option<UserInfo> {
        let (message, signature) = token.rsplit_once('.')?;
        let (_, claims) = message.split_once('.')?;
        // No key, no tokens of ours.
        let key = self.key.get()?.as_ref()?;
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        key.verify(message.as_bytes(), &signature)?;
        let claims: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).ok()?).ok()?;
        let timely =
            claims["exp"].as_i64()? > now.as_second() && claims["iss"] == self.issuer.as_str();
        if !timely {
            return None;
        }
        let account = &claims["kubernetes.io"];
        let namespace = account["namespace"].as_str()?;
        let name = account["serviceaccount"]["name"].as_str()?;
        let uid = account["serviceaccount"]["uid"].as_str()?;
        let stored = core
            .store
            .get("/serviceaccounts", &format!("{namespace}/{name}"))?;
        if *stored.facts.uid != *uid {
            return None;
        }
        let user = UserInfo {
            name: format!("system:serviceaccount:{namespace}:{name}"),
            uid: uid.to_owned(),
            groups: vec![
                "system:serviceaccounts".to_owned(),
                format!("system:serviceaccounts:{namespace}"),
            ],
            ..UserInfo::default()
        };
        Some(match claims["jti"].as_str() {
            Some(id) => user.known_by(format!("JTI={id}")),
            None => user,
        })
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
