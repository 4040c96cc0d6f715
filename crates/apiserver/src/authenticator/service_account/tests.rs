use super::*;
use crate::options::Options;
use crate::server::ApiServer;

const SERVER: &str = "https://kubernetes.default.svc.cluster.local";

fn reference(name: &str) -> Reference {
    Reference {
        name: name.to_owned(),
        uid: format!("uid-of-{name}"),
    }
}

fn subject() -> Subject {
    Subject {
        namespace: "ns".to_owned(),
        account: reference("sa"),
        pod: None,
        secret: None,
        node: None,
    }
}

fn payload(token: &str) -> Value {
    let claims = token.split('.').nth(1).unwrap();
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).unwrap()).unwrap()
}

fn token(signer: &Signer, subject: &Subject, audience: &str, now: Timestamp) -> String {
    let lifetime = Lifetime {
        seconds: 600,
        warn_after: None,
    };
    let audiences = [audience.to_owned()];
    signer.token(subject, &audiences, lifetime, now).unwrap()
}

#[test]
fn claims_are_those_of_kube_apiserver() {
    let signer = Signer::new(None, SERVER).unwrap();
    let now = Timestamp::now();
    let bound = Subject {
        pod: Some(reference("pod")),
        node: Some(Reference {
            name: "node".to_owned(),
            uid: String::new(),
        }),
        ..subject()
    };
    let lifetime = Lifetime {
        seconds: 31_536_000,
        warn_after: Some(3607),
    };
    let text = signer.token(&bound, &["a".to_owned()], lifetime, now);
    let mut claims = payload(&text.unwrap());
    let issued = now.as_second();
    assert!(claims["jti"].take().is_string());
    let expected = json!({
        "aud": ["a"], "exp": issued + 31_536_000, "iat": issued, "nbf": issued, "iss": SERVER, "jti": null,
        "sub": "system:serviceaccount:ns:sa",
        "kubernetes.io": {
            "namespace": "ns", "serviceaccount": {"name": "sa", "uid": "uid-of-sa"},
            "pod": {"name": "pod", "uid": "uid-of-pod"}, "node": {"name": "node"}, "warnafter": issued + 3607,
        },
    });
    assert_eq!(claims, expected);
}

#[tokio::test]
async fn a_token_is_valid_for_its_audiences_and_lifetime() {
    let server = ApiServer::open(Options::default()).await.unwrap();
    let core = server.core();
    let signer = &core.authenticator.signer;
    let now = Timestamp::now();
    let refused = |token: &str, audience: &str, after: i64| {
        let at = now + jiff::SignedDuration::from_secs(after);
        signer.bearer(&core.store, token, &[audience.to_owned()], at)
    };
    let vault = token(signer, &subject(), "vault", now);
    assert_eq!(
        refused(&vault, SERVER, 0).unwrap_err(),
        format!("token audiences [\"vault\"] is invalid for the target audiences [\"{SERVER}\"]")
    );
    // The account does not exist, so all earlier checks have passed.
    let missing = "serviceaccounts \"sa\" not found";
    for after in [0, 600, 660] {
        assert_eq!(
            refused(&vault, "vault", after).unwrap_err(),
            missing,
            "{after}"
        );
    }
    for (after, why) in [
        (661, "service account token has expired"),
        (-61, "service account token is not valid yet"),
    ] {
        assert_eq!(refused(&vault, "vault", after).unwrap_err(), why);
    }
    assert_eq!(refused("a.b.c", "vault", 0), Ok(None));
    let other = Signer::new(None, SERVER).unwrap();
    let forged = token(&other, &subject(), "vault", now);
    assert_eq!(refused(&forged, "vault", 0), Ok(None));
}
