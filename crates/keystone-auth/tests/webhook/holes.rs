//! Known holes of the Go webhook, from the token to the answer of a review: those of security. docs/guides/keystone-authentication.md
//! names the tests of the others.

use std::sync::Arc;
use std::time::Duration;

use crate::log::Log;
use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{HeaderValue, Request, Response};
use jiff::Timestamp;
use keystone_auth::keystone::Http;
use keystone_auth::policy::{Mode, Policy};
use keystone_auth::sync::Config;
use keystone_auth::tokens::{self, Tokens};
use keystone_auth::webhook::Webhook;
use keystone_auth::{Metrics, user};
use openstack::transport::{Limits, Transport, TransportError};
use serde_json::{Value, json};
use tracing::instrument::WithSubscriber as _;

/// Keystone of tokens with their identity in the text: `NAME.DOMAIN.GROUP`, of the project p1.
struct Fake;

impl Transport for Fake {
    fn send(
        &self,
        request: Request<Bytes>,
        _: Limits,
    ) -> BoxFuture<'static, Result<Response<Bytes>, TransportError>> {
        let token = request.headers()["x-auth-token"].to_str().unwrap();
        let mut parts = token.split('.').map(str::to_owned);
        let mut part = || parts.next().unwrap_or_default();
        let (name, domain, group) = (part(), part(), part());
        let body = if request.uri().path().ends_with("/groups") {
            json!({"groups": [{"id": "g", "name": group, "domain_id": domain}]})
        } else {
            let domain = json!({"id": domain, "name": format!("name-of-{domain}")});
            let id = format!("id-of-{name}-{group}").replace(':', "-");
            let user = json!({"id": id, "name": name, "domain": domain});
            let project = json!({"id": "p1", "name": "demo"});
            json!({"token": {"user": user, "project": project, "roles": [{"name": "member"}], "expires_at": "2999-01-01T00:00:00Z"}})
        };
        let answer = Response::new(Bytes::from(body.to_string()));
        async move { Ok(answer) }.boxed()
    }
}

fn webhook(users: user::Options) -> Webhook {
    let (time, agent) = (Duration::from_secs(10), HeaderValue::from_static("test"));
    let url = "http://k/v3".to_owned();
    let keystone = Http::new(url, Arc::new(Fake), time, &agent, Metrics::default()).unwrap();
    let options = tokens::Options::default();
    let (keystone, metrics) = (Arc::new(keystone), Metrics::default());
    let tokens = Tokens::new(keystone, options, Timestamp::now, metrics.clone());
    Webhook::new(tokens, users, Vec::new(), metrics)
}

async fn status(webhook: &Webhook, body: &Value) -> Value {
    let answer = webhook.answer(body.to_string().as_bytes()).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let answer: Value = serde_json::from_slice(&answer.body).unwrap();
    answer["status"].clone()
}

async fn review(webhook: &Webhook, token: &str) -> Value {
    let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}});
    status(webhook, &body).await
}

/// True if the user of a token may do this, as asked by an API server with the user's review.
async fn may(webhook: &Webhook, token: &str, verb: &str, resource: &str) -> bool {
    let user = review(webhook, token).await["user"].clone();
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    let attributes = json!({"verb": verb, "resource": resource, "subresource": subresource, "namespace": "default"});
    let spec = json!({"user": user["username"], "groups": user["groups"], "extra": user["extra"], "resourceAttributes": attributes});
    let body = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec});
    status(webhook, &body).await["allowed"] == true
}

fn formats(username: &str, group: &str) -> user::Options {
    user::Options {
        username: username.parse().unwrap(),
        group: group.parse().unwrap(),
        ..user::Options::default()
    }
}

#[tokio::test]
async fn a_user_of_another_domain_has_the_name_only_by_default_and_the_log_says_so_once() {
    let log = Log::default();
    let go = webhook(user::Options::default());
    let reviews = async {
        for token in ["admin.d1.ops", "admin.d1.x", "admin.d2.ops", "admin.d3.ops"] {
            assert_eq!(review(&go, token).await["user"]["username"], "admin");
        }
    };
    reviews.with_subscriber(log.subscriber()).await;
    let log = log.text();
    assert_eq!(log.matches("users of several domains").count(), 1, "{log}");
    let qualified = webhook(formats("%n@%D", "%n"));
    for (token, name) in [
        ("admin.d1.ops", "admin@name-of-d1"),
        ("admin.d2.ops", "admin@name-of-d2"),
    ] {
        assert_eq!(review(&qualified, token).await["user"]["username"], name);
    }
    let restricted = webhook(user::Options {
        domains: ["d1".to_owned()].into(),
        ..user::Options::default()
    });
    assert_eq!(
        review(&restricted, "admin.d1.x").await["authenticated"],
        true
    );
    let refused = review(&restricted, "admin.d2.x").await;
    assert_eq!(refused["authenticated"], false);
    assert_eq!(refused["user"], Value::Null);
}

#[tokio::test]
async fn names_of_kubernetes_come_from_role_mappings_alone() {
    let webhook = webhook(user::Options::default());
    let refused = review(&webhook, "system:kube-controller-manager.d1.ops").await;
    assert_eq!(refused["authenticated"], false);
    for group in ["system:masters", "keystone:system", "keystone:domain:d1"] {
        let token = format!("alice.d1.{group}");
        assert_eq!(
            review(&webhook, &token).await["user"]["groups"],
            json!(["p1"])
        );
    }
    let mappings = "role-mappings:\n- keystone-role: member\n  groups: [\"system:masters\"]\n";
    webhook.set_sync(Config::parse(mappings).unwrap());
    let groups = review(&webhook, "alice.d1.ops").await["user"]["groups"].clone();
    assert_eq!(groups, json!(["ops", "p1", "system:masters"]));
}

#[tokio::test]
async fn a_group_named_like_a_project_is_not_that_project_in_a_policy() {
    let policy = r#"[{"users": {"roles": ["member"], "projects": ["p2"]}, "resource_permissions": {"*/*": ["*"]}}]"#;
    let compiled = |mode| Policy::compile(policy, mode).unwrap().policy;
    let webhook = webhook(formats("%n", "%d:%n"));
    for mode in [Mode::Compatible, Mode::Strict] {
        webhook.set_policy(compiled(mode));
        assert!(!may(&webhook, "alice.d1.p2", "get", "pods").await);
    }
    // Bindings of the group do not apply either, once its name has the domain.
    let groups = review(&webhook, "alice.d1.p2").await["user"]["groups"].clone();
    assert_eq!(groups, json!(["d1:p2", "p1"]));
}

#[tokio::test]
async fn an_entry_for_everybody_is_as_in_go_but_named_and_an_error_in_strict_mode() {
    let webhook = webhook(user::Options::default());
    let resource =
        r#""resource": {"verbs": ["*"], "resources": ["*"], "version": "*", "namespace": "*"}"#;
    for (policy, words) in [
        (format!("[{{{resource}}}]"), "match"),
        (format!("[{{{resource}, \"match\": []}}]"), "match"),
        (
            r#"[{"resource_permissions": {"*/*": ["*"]}}]"#.to_owned(),
            "users",
        ),
    ] {
        let compiled = Policy::compile(&policy, Mode::Compatible).unwrap();
        let doubts: Vec<String> = compiled.doubts.iter().map(ToString::to_string).collect();
        assert!(
            doubts.iter().any(|it| it.contains(words)),
            "{policy}: {doubts:?}"
        );
        webhook.set_policy(compiled.policy);
        assert!(
            may(&webhook, "alice.d1.ops", "delete", "secrets").await,
            "{policy}"
        );
        let error = Policy::compile(&policy, Mode::Strict).unwrap_err();
        assert!(error.to_string().starts_with("line 1, column "), "{error}");
    }
}

#[tokio::test]
async fn a_policy_that_reads_pods_gives_no_shell_in_strict_mode() {
    let policy = r#"[{"users": {"roles": ["member"], "projects": ["demo"]}, "resource_permissions": {"default/pods": ["get", "list"]}}]"#;
    let webhook = webhook(user::Options::default());
    for (mode, shell) in [(Mode::Compatible, true), (Mode::Strict, false)] {
        webhook.set_policy(Policy::compile(policy, mode).unwrap().policy);
        assert!(may(&webhook, "alice.d1.ops", "get", "pods").await);
        for resource in ["pods/exec", "pods/attach", "pods/portforward"] {
            assert_eq!(
                may(&webhook, "alice.d1.ops", "get", resource).await,
                shell,
                "{resource}"
            );
        }
    }
}
