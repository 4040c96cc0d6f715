//! Keys for certificates that are the same whenever they are made.

use std::fmt;

use p256::SecretKey;
use p256::ecdsa::signature::Signer as _;
use p256::ecdsa::{Signature, SigningKey};
use p256::elliptic_curve::sec1::ToEncodedPoint as _;
use p256::pkcs8::{EncodePrivateKey as _, LineEnding};
use zeroize::Zeroizing;

use crate::Failure;

/// Key on the curve P-256 with deterministic signatures (RFC 6979).
pub struct EcdsaKey {
    secret: SecretKey,
    point: Vec<u8>,
}

impl EcdsaKey {
    /// Key with this secret number of 32 bytes; `None` for zero and for a number beyond the order of the curve.
    #[must_use]
    pub fn from_slice(secret: &[u8]) -> Option<Self> {
        let secret = SecretKey::from_slice(secret).ok()?;
        let point = secret.public_key().to_encoded_point(false);
        Some(Self {
            point: point.as_bytes().to_vec(),
            secret,
        })
    }

    /// Public key: both coordinates, uncompressed.
    #[must_use]
    pub fn point(&self) -> &[u8] {
        &self.point
    }

    /// Signature of a message by SHA-256, in DER.
    #[must_use]
    pub fn sign(&self, message: &[u8]) -> Vec<u8> {
        let signature: Signature = SigningKey::from(&self.secret).sign(message);
        signature.to_der().as_bytes().to_vec()
    }

    /// Secret key as PEM (PKCS #8).
    ///
    /// # Errors
    /// The key cannot be encoded.
    pub fn pem(&self) -> Result<Zeroizing<String>, Failure> {
        let pem = self.secret.to_pkcs8_pem(LineEnding::LF);
        Ok(pem.map_err(|error| error.to_string())?)
    }
}

impl fmt::Debug for EcdsaKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("********")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_secret_signs_with_the_same_bytes_which_others_verify() {
        use ring::signature::{ECDSA_P256_SHA256_ASN1, UnparsedPublicKey};
        let key = EcdsaKey::from_slice(&[7; 32]).unwrap();
        let signature = key.sign(b"text");
        assert_eq!(
            signature,
            EcdsaKey::from_slice(&[7; 32]).unwrap().sign(b"text")
        );
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, key.point())
            .verify(b"text", &signature)
            .unwrap();
        assert!(key.pem().unwrap().contains("PRIVATE KEY"));
        assert_eq!(format!("{key:?}"), "********");
    }

    #[test]
    fn zero_and_numbers_beyond_the_order_are_no_keys() {
        assert!(EcdsaKey::from_slice(&[0; 32]).is_none());
        assert!(EcdsaKey::from_slice(&[0xff; 32]).is_none());
    }
}
