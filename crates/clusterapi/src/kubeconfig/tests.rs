use std::collections::BTreeMap;

use api::bootstrap::v1beta2::EncryptionAlgorithm;
use api::k8s_openapi::ByteString;
use api::k8s_openapi::api::core::v1::Secret;
use api::k8s_openapi::jiff::{SignedDuration, Timestamp};
use secrecy::ExposeSecret;
use serde_json::Value;

use super::{document, expires_soon};
use crate::pki::{KeyMaterial, Purpose, client, generate};

fn now() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

fn pair() -> (KeyMaterial, KeyMaterial) {
    let algorithm = EncryptionAlgorithm::EcdsaP256;
    let ca = generate(Purpose::Cluster, algorithm, 3650, now()).unwrap();
    let client = client(&ca, "kubernetes-admin", "system:masters", algorithm, now()).unwrap();
    (ca, client)
}

#[test]
fn names_are_those_that_clusterctl_users_know() {
    let (ca, client) = pair();
    let text = document("demo", "https://203.0.113.5:6443", &ca, &client);
    let read: Value = serde_saphyr::from_str(text.expose_secret()).unwrap();
    assert_eq!(read["current-context"], "demo-admin@demo");
    assert_eq!(read["clusters"][0]["name"], "demo");
    assert_eq!(
        read["clusters"][0]["cluster"]["server"],
        "https://203.0.113.5:6443"
    );
    assert_eq!(read["users"][0]["name"], "demo-admin");
    kube::config::Kubeconfig::from_yaml(text.expose_secret()).unwrap();
}

#[test]
fn the_certificate_is_renewed_in_the_second_half_of_its_life() {
    let (ca, client) = pair();
    let text = document("demo", "https://x:1", &ca, &client);
    let value = ByteString(text.expose_secret().as_bytes().to_vec());
    let secret = Secret {
        data: Some(BTreeMap::from([("value".to_owned(), value)])),
        ..Secret::default()
    };
    let after = |days: i64| {
        now()
            .checked_add(SignedDuration::from_hours(24 * days))
            .unwrap()
    };
    for (days, expected) in [(0, false), (182, false), (183, true), (400, true)] {
        assert_eq!(expires_soon(&secret, after(days)), expected, "{days}");
    }
    assert!(
        !expires_soon(&Secret::default(), now()),
        "what cannot be read is not ours to judge"
    );
}
