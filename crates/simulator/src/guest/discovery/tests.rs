use proptest::prelude::*;
use secrecy::SecretString;
use serde_json::json;

use super::*;
use crate::guest::kubeadm::{self, NodeRegistration};
use crate::guest::objects::kubeadm::cluster_info_kubeconfig;
use crate::guest::pki::tests::{files, now};

fn token(secret: &str) -> Token {
    Token {
        id: "abcdef".to_owned(),
        secret: SecretString::from(secret),
    }
}

fn join(hashes: &[&str]) -> Join {
    Join {
        node: NodeRegistration::default(),
        endpoint: "127.0.0.1:6443".to_owned(),
        discovery_token: token("0123456789abcdef"),
        tls_token: token("0123456789abcdef"),
        ca_hashes: hashes.iter().map(|hash| (*hash).to_owned()).collect(),
        control_plane: None,
    }
}

#[test]
fn cluster_info_is_believed_for_its_signature_and_pinned_authority() {
    let pki = pki::Pki::load(&files(), false, now()).unwrap();
    let kubeconfig = cluster_info_kubeconfig(&pki.ca.pem, "127.0.0.1:6443");
    let info = |kubeconfig: &str, secret: &str| {
        let signature = jws::sign(kubeconfig, "abcdef", &SecretString::from(secret));
        json!({"data": {"kubeconfig": kubeconfig, "jws-kubeconfig-abcdef": signature}})
    };
    let good = info(&kubeconfig, "0123456789abcdef");
    let hash = pki.ca.hash();
    assert_eq!(
        believe(&good, &join(&[&hash])).unwrap().authority,
        pki.ca.der
    );
    assert!(
        believe(&good, &join(&[])).is_ok(),
        "verification switched off"
    );

    let never = |info: &Value, join: &Join, message: &str| match believe(info, join) {
        Err(Refusal::Never(text)) => assert!(text.contains(message), "{text}"),
        other => panic!("{other:?}"),
    };
    never(&good, &join(&["sha256:00"]), "pinned");
    never(
        &info(&kubeconfig, "1123456789abcdef"),
        &join(&[&hash]),
        "failed to verify JWS",
    );
    never(
        &info("clusters: []", "0123456789abcdef"),
        &join(&[&hash]),
        "couldn't parse",
    );
    never(
        &json!({"data": {"jws-kubeconfig-abcdef": "x"}}),
        &join(&[&hash]),
        "no kubeconfig key",
    );
    assert!(matches!(
        believe(&json!({}), &join(&[&hash])),
        Err(Refusal::NotYet(_))
    ));
}

#[tokio::test]
async fn unreachable_endpoints_say_so_in_kubeadms_words() {
    // Bound, so that no other process listens there, but not listening.
    let closed = tokio::net::TcpSocket::new_v4().unwrap();
    closed.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let port = closed.local_addr().unwrap().port();
    let endpoint = kubeadm::split_endpoint(&format!("127.0.0.1:{port}")).unwrap();
    let error = discover(&join(&["sha256:00"]), &endpoint, &Outside::default())
        .await
        .unwrap_err();
    assert!(matches!(error, Refusal::NotYet(text) if text.contains("connection refused")));
    let outside = ("10.255.255.1".to_owned(), 6443);
    let error = fetch(&outside, &Outside::default(), &Trust::Anybody, None, "/")
        .await
        .unwrap_err();
    assert!(error.contains("no route to host"), "{error}");
}

proptest! {
    #[test]
    fn whatever_a_server_answers_nothing_panics(text in "[-\\[\\]{}:, \na-z=\"]{0,120}") {
        let signature = jws::sign(&text, "abcdef", &SecretString::from("0123456789abcdef"));
        let info = json!({"data": {"kubeconfig": text, "jws-kubeconfig-abcdef": signature}});
        prop_assert!(believe(&info, &join(&[])).is_err());
    }
}
