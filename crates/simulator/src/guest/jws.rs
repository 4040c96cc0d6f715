//! The signature of `cluster-info`: a detached JWS (RFC 7515, appendix F) with HS256 and the secret of a bootstrap
//! token, as created by the bootstrap signer of kube-controller-manager.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use secrecy::{ExposeSecret as _, SecretString};

/// Returns the detached signature of `content` with the token `id`.`secret`.
pub(crate) fn sign(content: &str, id: &str, secret: &SecretString) -> String {
    // Byte by byte as written by the Go library of kube-controller-manager.
    let header = URL_SAFE_NO_PAD.encode(format!(r#"{{"alg":"HS256","kid":"{id}"}}"#));
    let signature = hmac::sign(&key(secret), signed(&header, content).as_bytes());
    format!("{header}..{}", URL_SAFE_NO_PAD.encode(signature))
}

/// True if `signature` is the signature of `content` with the token `id`.`secret`.
pub(crate) fn verify(signature: &str, content: &str, id: &str, secret: &SecretString) -> bool {
    let Some((header, mac)) = signature.split_once("..") else {
        return false;
    };
    let Some(claims) = URL_SAFE_NO_PAD
        .decode(header)
        .ok()
        .and_then(|json| serde_json::from_slice::<serde_json::Value>(&json).ok())
    else {
        return false;
    };
    let Ok(mac) = URL_SAFE_NO_PAD.decode(mac) else {
        return false;
    };
    claims.get("alg").is_some_and(|alg| alg == "HS256")
        && claims.get("kid").is_some_and(|kid| kid == id)
        && hmac::verify(&key(secret), signed(header, content).as_bytes(), &mac).is_ok()
}

fn key(secret: &SecretString) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, secret.expose_secret().as_bytes())
}

fn signed(header: &str, content: &str) -> String {
    format!("{header}.{}", URL_SAFE_NO_PAD.encode(content))
}

#[cfg(test)]
mod tests;
