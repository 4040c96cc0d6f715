use api::bootstrap::v1beta2::EncryptionAlgorithm;
use secrecy::SecretString;

use super::super::{client, generate};
use super::*;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn now() -> Timestamp {
    at("2026-01-02T03:04:05Z")
}

fn material(purpose: Purpose, algorithm: EncryptionAlgorithm, since: Timestamp) -> KeyMaterial {
    generate(purpose, algorithm, 365, since).unwrap()
}

fn ca() -> KeyMaterial {
    material(Purpose::Cluster, EncryptionAlgorithm::EcdsaP256, now())
}

fn leaf() -> KeyMaterial {
    let algorithm = EncryptionAlgorithm::EcdsaP256;
    client(
        &ca(),
        "kubernetes-admin",
        "system:masters",
        algorithm,
        now(),
    )
    .unwrap()
}

fn with_key(material: &KeyMaterial, key: Option<&str>) -> KeyMaterial {
    KeyMaterial {
        public: material.public.clone(),
        private: key.map(SecretString::from),
    }
}

fn with_public(material: &KeyMaterial, public: &str) -> KeyMaterial {
    KeyMaterial {
        public: public.into(),
        private: material.private.clone(),
    }
}

#[test]
fn what_is_generated_can_be_used() {
    use EncryptionAlgorithm::{EcdsaP256, EcdsaP384, Rsa2048};
    for algorithm in [EcdsaP256, EcdsaP384, Rsa2048] {
        for purpose in Purpose::ALL {
            let material = material(purpose, algorithm, now());
            assert_eq!(
                problem(purpose, &material, now()),
                None,
                "{purpose:?} {algorithm:?}"
            );
        }
    }
    assert_eq!(problem(Purpose::EtcdClient, &leaf(), now()), None);
}

/// Name, purpose, material, and the expected problem: true for the key, with words of the message.
type Case<'a> = (&'a str, Purpose, KeyMaterial, Option<(bool, &'a str)>);

#[test]
fn what_users_supply_is_refused_with_the_part_that_is_wrong() {
    let (ca, other) = (ca(), ca());
    let old = material(
        Purpose::Cluster,
        EncryptionAlgorithm::EcdsaP256,
        at("2020-01-01T00:00:00Z"),
    );
    let future = material(
        Purpose::Cluster,
        EncryptionAlgorithm::EcdsaP256,
        at("2030-01-01T00:00:00Z"),
    );
    let rsa = material(Purpose::ServiceAccount, EncryptionAlgorithm::Rsa2048, now());
    let sa = material(
        Purpose::ServiceAccount,
        EncryptionAlgorithm::EcdsaP256,
        now(),
    );
    let crossed = |one: &KeyMaterial, key: &KeyMaterial| KeyMaterial {
        public: one.public.clone(),
        private: key.private.clone(),
    };
    let half = &ca.public[..ca.public.len() / 2];
    // The part is `tls.key` where the third field is true.
    let cases: [Case<'_>; 18] = [
        (
            "a CA without its key",
            Purpose::Cluster,
            with_key(&ca, None),
            None,
        ),
        (
            "another key",
            Purpose::Cluster,
            crossed(&ca, &other),
            Some((true, "does not belong to what is stored in tls.crt")),
        ),
        (
            "a key of another algorithm",
            Purpose::Etcd,
            crossed(&ca, &rsa),
            Some((true, "does not belong")),
        ),
        (
            "no key",
            Purpose::Cluster,
            with_key(&ca, Some("hunter2")),
            Some((true, "is not a private key")),
        ),
        (
            "an empty key",
            Purpose::Cluster,
            with_key(&ca, Some("")),
            Some((true, "is not a private key")),
        ),
        (
            "a certificate as the key",
            Purpose::Cluster,
            with_key(&ca, Some(&ca.public)),
            Some((true, "is not a private key")),
        ),
        (
            "expired",
            Purpose::Cluster,
            old.clone(),
            Some((false, "has expired at 2020-12-31T00:00:00Z")),
        ),
        (
            "expired, without its key",
            Purpose::FrontProxy,
            with_key(&old, None),
            Some((false, "has expired")),
        ),
        (
            "not valid yet",
            Purpose::Cluster,
            future,
            Some((false, "is not valid before 2029-12-31T23:55:00Z")),
        ),
        (
            "no CA",
            Purpose::Cluster,
            leaf(),
            Some((false, "is not the certificate of an authority")),
        ),
        (
            "no CA of etcd",
            Purpose::Etcd,
            leaf(),
            Some((false, "is not the certificate of an authority")),
        ),
        (
            "no certificate",
            Purpose::Cluster,
            with_public(&ca, "hunter2"),
            Some((false, "is not a certificate")),
        ),
        (
            "half a certificate",
            Purpose::Cluster,
            with_public(&ca, half),
            Some((false, "is not a certificate")),
        ),
        (
            "a public key in place of a CA",
            Purpose::Cluster,
            with_public(&ca, &sa.public),
            Some((false, "is not a certificate")),
        ),
        (
            "no public key",
            Purpose::ServiceAccount,
            with_public(&sa, "hunter2"),
            Some((false, "is not a public key")),
        ),
        (
            "another service account key",
            Purpose::ServiceAccount,
            crossed(&sa, &rsa),
            Some((true, "does not belong")),
        ),
        // kube-apiserver reads the public key of a certificate, too.
        (
            "a certificate for service accounts",
            Purpose::ServiceAccount,
            ca.clone(),
            None,
        ),
        (
            "a client certificate of etcd with another key",
            Purpose::EtcdClient,
            crossed(&leaf(), &other),
            Some((true, "does not belong")),
        ),
    ];
    for (what, purpose, material, expected) in cases {
        let found = problem(purpose, &material, now());
        match (&found, expected) {
            (None, None) => {}
            (Some(found), Some((is_key, why))) => {
                assert!(
                    found.is_key == is_key && found.why.contains(why),
                    "{what}: {found:?}"
                );
                assert!(!found.why.contains("hunter2"), "{what}");
            }
            _ => panic!("{what}: {found:?} instead of {expected:?}"),
        }
    }
}
