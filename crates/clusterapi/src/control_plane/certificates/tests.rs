use std::sync::Arc;

use rcgen::{CertificateParams, KeyPair};
use rustls::ServerConfig;
use rustls_pki_types::PrivateKeyDer;
use serde_json::Value;
use tokio_rustls::TlsAcceptor;

use super::*;

fn machine(node: Option<&str>, deleting: bool) -> Machine {
    let mut machine = Machine::new("m", Default::default());
    machine.status =
        node.map(|node| serde_json::from_value(json!({"nodeRef": {"name": node}})).unwrap());
    if deleting {
        machine.metadata.deletion_timestamp =
            Some(serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap());
    }
    machine
}

fn config(spec: Value, annotated: bool) -> KubeadmConfig {
    let mut config = KubeadmConfig::new("m", serde_json::from_value(spec).unwrap());
    config.metadata.uid = Some("u".to_owned());
    if annotated {
        let expiry = "2027-01-01T00:00:00Z".to_owned();
        let annotations = config.annotations_mut();
        annotations.insert(CERTIFICATES_EXPIRY_ANNOTATION.to_owned(), expiry);
    }
    config
}

#[test]
fn an_expiry_is_read_once_of_each_machine_with_a_node() {
    let plain = || config(json!({}), false);
    for (machine, config, expected) in [
        (machine(Some("n"), false), Some(plain()), true),
        (machine(None, false), Some(plain()), false),
        (machine(Some("n"), true), Some(plain()), false),
        (machine(Some("n"), false), None, false),
        (
            machine(Some("n"), false),
            Some(config(json!({}), true)),
            false,
        ),
    ] {
        let found = unread(&machine, config.as_ref());
        assert_eq!(found.is_some(), expected, "{config:#?}");
        if let Some(found) = found {
            assert_eq!(found.pod(), "kube-apiserver-n");
        }
    }
}

#[test]
fn the_port_is_that_of_the_configuration() {
    let endpoint = json!({"localAPIEndpoint": {"bindPort": 7443}});
    for (spec, port) in [
        (json!({}), 6443),
        (json!({"initConfiguration": endpoint}), 7443),
        (
            json!({"joinConfiguration": {"controlPlane": endpoint}}),
            7443,
        ),
        (json!({"joinConfiguration": {"controlPlane": {}}}), 6443),
    ] {
        assert_eq!(super::port(&config(spec.clone(), false)), port, "{spec}");
    }
}

#[tokio::test]
async fn the_expiry_of_any_certificate_is_read_even_when_it_has_passed() {
    for (year, expected) in [
        (2020, "2020-02-01T00:00:00Z"),
        (2040, "2040-02-01T00:00:00Z"),
    ] {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.not_before = rcgen::date_time_ymd(2019, 1, 1);
        params.not_after = rcgen::date_time_ymd(year, 2, 1);
        let certificate = params.self_signed(&key).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
            )
            .unwrap();
        let (here, there) = tokio::io::duplex(1 << 16);
        let serving = TlsAcceptor::from(Arc::new(config)).accept(there);
        let (expiry, _) = tokio::join!(handshake::expiry(here), serving);
        assert_eq!(expiry.unwrap().to_string(), expected);
    }
}

#[tokio::test]
async fn a_server_without_tls_is_an_error() {
    let (here, there) = tokio::io::duplex(64);
    drop(there);
    assert!(handshake::expiry(here).await.is_err());
}
