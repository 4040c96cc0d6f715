use axum::body::{Body, to_bytes};
use axum::http::Request;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use jiff::Timestamp;
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use tower::ServiceExt as _;

use super::*;
use crate::keystone::{Groups, Identity, Keystone, Named, NotValidated, Scope, Validated};
use crate::policy::Mode;
use crate::tokens;

/// Knows alice and a user of another domain; `down` is an outage.
struct Fake;

impl Keystone for Fake {
    fn validate(&self, token: SecretString) -> BoxFuture<'_, Result<Validated, NotValidated>> {
        let named = |id: &str, name: &str| Named {
            id: id.into(),
            name: name.into(),
        };
        let answer = match token.expose_secret() {
            "down" => Err(NotValidated::Outage {
                reason: "Keystone answers 500".to_owned(),
                retry_after: None,
            }),
            name @ ("alice" | "system:admin") => Ok(Validated {
                identity: Identity {
                    user: named("u1", name),
                    domain: named("default", "Default"),
                    scope: Scope::Project(named("p1", "demo")),
                    trust: false,
                    roles: ["dev".into()].into(),
                    groups: None,
                    access_rules: None,
                },
                expires_at: Timestamp::MAX,
            }),
            _ => Err(NotValidated::Refused("unknown".to_owned())),
        };
        async move { answer }.boxed()
    }

    fn groups<'a>(
        &'a self,
        _: &'a str,
        _: SecretString,
    ) -> BoxFuture<'a, Result<Option<Groups>, NotValidated>> {
        async { Ok(None) }.boxed()
    }
}

fn webhook(audiences: &[&str]) -> Webhook {
    let tokens = Tokens::new(
        Arc::new(Fake),
        tokens::Options::default(),
        Timestamp::now,
        Metrics::default(),
    );
    let audiences = audiences.iter().map(|it| (*it).to_owned()).collect();
    Webhook::new(
        tokens,
        user::Options::default(),
        audiences,
        Metrics::default(),
    )
}

async fn asked(router: &Router, path: &str, body: impl Into<Body>) -> (u16, Value) {
    let request = Request::post(path).body(body.into()).unwrap();
    let response = router.clone().oneshot(request).await.unwrap();
    let status = response.status().as_u16();
    let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    (status, serde_json::from_slice(&body).unwrap_or_default())
}

fn token(token: &str, audiences: &[&str]) -> String {
    json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token, "audiences": audiences}}).to_string()
}

fn access(user: &Value, resource: &str) -> String {
    let attributes = json!({"verb": "get", "resource": resource, "namespace": "n"});
    json!({"apiVersion": "authorization.k8s.io/v1beta1", "kind": "SubjectAccessReview", "spec": {"user": user["username"],
        "group": user["groups"], "extra": user["extra"], "resourceAttributes": attributes}}).to_string()
}

const POLICY: &str = r#"[{"users": {"roles": ["dev"], "projects": ["demo"]}, "resource_permissions": {"n/pods": ["get"]}}]"#;

#[tokio::test]
async fn a_user_logs_in_and_may_do_what_the_policy_says() {
    let webhook = Arc::new(webhook(&[]));
    let router = router(
        Arc::clone(&webhook),
        &["/webhook".to_owned(), "/other".to_owned()],
    );
    let (status, answer) = asked(
        &router,
        "/webhook",
        token("alice", &["https://kubernetes.default.svc"]),
    )
    .await;
    assert_eq!(
        (status, &answer["status"]["authenticated"]),
        (200, &json!(true))
    );
    assert_eq!(answer["status"]["audiences"], Value::Null);
    let user = answer["status"]["user"].clone();
    assert_eq!(
        (&user["username"], &user["groups"]),
        (&json!("alice"), &json!(["p1"]))
    );
    for (policy, resource, expected) in [
        ("[]", "pods", false),
        (POLICY, "pods", true),
        (POLICY, "secrets", false),
    ] {
        webhook.set_policy(Policy::compile(policy, Mode::Strict).unwrap().policy);
        let (status, answer) = asked(&router, "/other", access(&user, resource)).await;
        assert_eq!(
            (status, &answer["status"]["allowed"]),
            (200, &json!(expected)),
            "{answer}"
        );
        assert_eq!(answer["status"]["denied"], Value::Null);
        assert_eq!(answer["apiVersion"], "authorization.k8s.io/v1beta1");
    }
    let (_, answer) = asked(
        &router,
        "/other",
        access(&json!({"username": "system:anonymous"}), "pods"),
    )
    .await;
    assert_eq!(answer["status"]["allowed"], false);
}

#[tokio::test]
async fn a_refused_token_is_an_answer_and_an_outage_is_none() {
    let webhook = Arc::new(webhook(&[]));
    let (router, health) = (
        router(Arc::clone(&webhook), &["/webhook".to_owned()]),
        health(webhook),
    );
    let ready = async || {
        let request = Request::get("/readyz").body(Body::empty()).unwrap();
        let response = health.clone().oneshot(request).await.unwrap();
        let status = response.status().as_u16();
        let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        (status, String::from_utf8_lossy(&body).into_owned())
    };
    for (name, reason) in [
        ("nobody", "unknown"),
        ("system:admin", "begins with system:"),
        ("", "is empty"),
    ] {
        let (status, answer) = asked(&router, "/webhook", token(name, &[])).await;
        assert_eq!(
            (status, &answer["status"]["authenticated"]),
            (200, &json!(false))
        );
        assert!(
            answer["status"]["error"].as_str().unwrap().contains(reason),
            "{answer}"
        );
        assert_eq!(answer["status"]["user"], Value::Null);
    }
    assert_eq!(ready().await, (200, "ok".to_owned()));
    for _ in 0..3 {
        let request = Request::post("/webhook")
            .body(Body::from(token("down", &[])))
            .unwrap();
        let response = router.clone().oneshot(request).await.unwrap();
        // With Retry-After, API servers would ask for a minute before they refuse.
        assert_eq!(
            (
                response.status().as_u16(),
                response.headers().get("retry-after")
            ),
            (503, None)
        );
        let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        let status: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(
            (&status["kind"], &status["message"]),
            (&json!("Status"), &json!("Keystone answers 500"))
        );
    }
    let (status, reason) = ready().await;
    assert!(
        status == 503 && reason.starts_with("Keystone answers 500"),
        "{reason}"
    );
}

#[tokio::test]
async fn audiences_are_those_that_both_know() {
    let router = router(Arc::new(webhook(&["a", "b"])), &["/webhook".to_owned()]);
    for (audiences, authenticated, answered) in [
        (&["b", "c", "a"][..], true, json!(["b", "a"])),
        (&["c"], false, Value::Null),
        (&[], true, Value::Null),
    ] {
        let (_, answer) = asked(&router, "/webhook", token("alice", audiences)).await;
        assert_eq!(
            (
                &answer["status"]["authenticated"],
                &answer["status"]["audiences"]
            ),
            (&json!(authenticated), &answered)
        );
    }
}

#[tokio::test]
async fn other_requests_are_refused() {
    let router = router(Arc::new(webhook(&[])), &["/webhook".to_owned()]);
    let (status, answer) = asked(&router, "/webhook", "[]").await;
    assert_eq!((status, &answer["reason"]), (400, &json!("BadRequest")));
    assert_eq!(asked(&router, "/", token("alice", &[])).await.0, 404);
    assert_eq!(
        asked(&router, "/webhook", vec![b' '; LARGEST + 1]).await.0,
        413
    );
    let request = Request::get("/webhook").body(Body::empty()).unwrap();
    assert_eq!(router.oneshot(request).await.unwrap().status(), 405);
}

#[tokio::test]
async fn roles_are_mapped_in_the_answer_and_not_in_what_follows() {
    let (sender, mut logins) = mpsc::channel(1);
    let webhook = webhook(&[]).with_logins(sender);
    let answer = async |webhook: &Webhook| {
        let answer = webhook.answer(token("alice", &[]).as_bytes()).await;
        serde_json::from_slice::<Value>(&answer.body).unwrap()
    };
    let mappings = "role-mappings:\n- keystone-role: dev\n  username: shared\n  groups: [\"system:masters\"]\n";
    webhook.set_sync(Config::parse(mappings).unwrap());
    let user = answer(&webhook).await["status"]["user"].clone();
    assert_eq!(
        (&user["username"], &user["groups"]),
        (&json!("shared"), &json!(["p1", "system:masters"]))
    );
    // Nothing is to be written.
    assert!(logins.try_recv().is_err());
    let config = format!("data-types-to-sync: [projects]\n{mappings}");
    webhook.set_sync(Config::parse(&config).unwrap());
    // A login never waits.
    for _ in 0..3 {
        answer(&webhook).await;
    }
    let login = logins.try_recv().unwrap();
    assert_eq!(
        (&*login.name, login.groups),
        ("alice", vec!["p1".to_owned()])
    );
}
