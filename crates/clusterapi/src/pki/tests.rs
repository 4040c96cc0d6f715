use api::bootstrap::v1beta2::EncryptionAlgorithm;
use api::k8s_openapi::jiff::{SignedDuration, Timestamp};
use rsa::pkcs1::EncodeRsaPrivateKey;
use rsa::pkcs8::{EncodePrivateKey, LineEnding};
use secrecy::{ExposeSecret, SecretString};

use super::{
    KeyMaterial, Purpose, client, expiry, generate, is_signed_by, key_pair, public_key_hash,
    split_tlv, tlv,
};

fn now() -> Timestamp {
    "2026-01-02T03:04:05Z".parse().unwrap()
}

fn ca(algorithm: EncryptionAlgorithm) -> KeyMaterial {
    generate(Purpose::Cluster, algorithm, 3650, now()).unwrap()
}

#[test]
fn every_algorithm_signs_client_certificates() {
    for algorithm in [
        EncryptionAlgorithm::EcdsaP256,
        EncryptionAlgorithm::EcdsaP384,
        EncryptionAlgorithm::Rsa2048,
    ] {
        let ca = ca(algorithm);
        let leaf = client(&ca, "kubernetes-admin", "system:masters", algorithm, now()).unwrap();
        assert!(is_signed_by(&leaf.public, &ca.public), "{algorithm:?}");
        let other = self::ca(EncryptionAlgorithm::EcdsaP256);
        assert!(!is_signed_by(&leaf.public, &other.public), "{algorithm:?}");
        let year = SignedDuration::from_hours(365 * 24);
        assert_eq!(
            expiry(&leaf.public).unwrap(),
            now().checked_add(year).unwrap()
        );
        let ten_years = SignedDuration::from_hours(3650 * 24);
        assert_eq!(
            expiry(&ca.public).unwrap(),
            now().checked_add(ten_years).unwrap()
        );
    }
}

#[test]
fn rsa_keys_are_written_as_kubeadm_does() {
    let sa = generate(
        Purpose::ServiceAccount,
        EncryptionAlgorithm::Rsa2048,
        1,
        now(),
    )
    .unwrap();
    assert!(sa.public.starts_with("-----BEGIN PUBLIC KEY-----"));
    let key = sa.private.unwrap();
    assert!(
        key.expose_secret()
            .starts_with("-----BEGIN RSA PRIVATE KEY-----")
    );
}

#[test]
fn the_hash_is_that_of_the_public_key() {
    // openssl x509 -pubkey | openssl pkey -pubin -outform der | sha256sum
    let hash = public_key_hash(include_str!("testdata/ca.crt")).unwrap();
    assert_eq!(hash, include_str!("testdata/ca.sha256").trim());
}

#[test]
fn keys_are_read_in_every_form_that_openssl_writes() {
    let rsa = rsa::RsaPrivateKey::new(&mut rsa::rand_core::OsRng, 2048).unwrap();
    let ec = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap();
    let sec1 = pem(
        "EC PRIVATE KEY",
        &with_parameters(&sec1_of(ec.serialized_der())),
    );
    for (name, pem) in [
        (
            "pkcs1",
            rsa.to_pkcs1_pem(LineEnding::LF).unwrap().to_string(),
        ),
        (
            "pkcs8",
            rsa.to_pkcs8_pem(LineEnding::LF).unwrap().to_string(),
        ),
        ("sec1", sec1),
        ("pkcs8 ec", ec.serialize_pem()),
    ] {
        let material = KeyMaterial {
            public: "".into(),
            private: Some(SecretString::from(pem)),
        };
        assert!(key_pair(&material).is_ok(), "{name}");
    }
}

/// The ECPrivateKey in a PrivateKeyInfo.
fn sec1_of(pkcs8: &[u8]) -> Vec<u8> {
    let (_, body, _) = split_tlv(pkcs8).unwrap();
    let (_, _, rest) = split_tlv(body).unwrap();
    let (_, _, rest) = split_tlv(rest).unwrap();
    split_tlv(rest).unwrap().1.to_vec()
}

/// The same ECPrivateKey with the curve as parameters, as `openssl ecparam -genkey` writes it.
fn with_parameters(sec1: &[u8]) -> Vec<u8> {
    let (_, body, _) = split_tlv(sec1).unwrap();
    let (_, version, rest) = split_tlv(body).unwrap();
    let (_, key, rest) = split_tlv(rest).unwrap();
    let curve = [0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
    let parts = [
        tlv(2, version),
        tlv(4, key),
        tlv(0xa0, &curve),
        rest.to_vec(),
    ];
    tlv(0x30, &parts.concat())
}

fn pem(label: &str, der: &[u8]) -> String {
    use base64::Engine;
    let text = base64::engine::general_purpose::STANDARD.encode(der);
    format!("-----BEGIN {label}-----\n{text}\n-----END {label}-----\n")
}

#[test]
fn what_is_no_key_is_refused_without_showing_it() {
    let ca = KeyMaterial {
        public: "".into(),
        private: Some(SecretString::from("hunter2")),
    };
    let error = key_pair(&ca).unwrap_err().to_string();
    assert!(!error.contains("hunter2"), "{error}");
    assert!(!format!("{ca:?}").contains("hunter2"));
    assert!(expiry("no certificate").is_err());
    assert!(public_key_hash("").is_err());
}

#[test]
fn der_lengths_are_read_as_written() {
    for length in [0, 1, 127, 128, 255, 256, 5000] {
        let value = vec![7; length];
        let der = tlv(4, &value);
        assert_eq!(
            split_tlv(&der),
            Some((4, value.as_slice(), &[][..])),
            "{length}"
        );
    }
    for bad in [
        &[][..],
        &[4],
        &[4, 5, 1],
        &[4, 0x83, 0, 0, 1],
        &[4, 0x82, 1],
    ] {
        assert_eq!(split_tlv(bad), None);
    }
}
