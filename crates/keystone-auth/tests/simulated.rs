//! The webhook on the simulated Keystone.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Request};
use jiff::Timestamp;
use keystone_auth::keystone::{Http, normal_url};
use keystone_auth::policy::{Mode, Policy};
use keystone_auth::tokens::{self, Tokens};
use keystone_auth::webhook::Webhook;
use keystone_auth::{Metrics, user};
use openstack::transport::{InProcess, Limits, SharedTransport};
use serde_json::{Value, json};
use simulator::cloud::{Cloud, Options};

const URL: &str = "http://cloud.test";

struct World {
    cloud: SharedTransport,
    webhook: Webhook,
}

impl World {
    async fn new() -> Self {
        let cloud = Cloud::open(Options::default()).await.unwrap();
        let cloud: SharedTransport = Arc::new(InProcess::new(cloud.router(URL)));
        let url = normal_url(&format!("{URL}/identity")).unwrap();
        let (time, agent) = (Duration::from_secs(10), HeaderValue::from_static("test"));
        let keystone =
            Http::new(url, Arc::clone(&cloud), time, &agent, Metrics::default()).unwrap();
        let tokens = Tokens::new(
            Arc::new(keystone),
            tokens::Options::default(),
            Timestamp::now,
            Metrics::default(),
        );
        let options = user::Options::default();
        let webhook = Webhook::new(tokens, options, Vec::new(), Metrics::default());
        Self { cloud, webhook }
    }

    /// A token of demo, with this scope.
    async fn token(&self, scope: Value) -> String {
        self.token_of("demo", scope).await
    }

    async fn token_of(&self, name: &str, scope: Value) -> String {
        let user = json!({"name": name, "domain": {"name": "Default"}, "password": "secret"});
        let identity = json!({"methods": ["password"], "password": {"user": user}});
        let body = json!({"auth": {"identity": identity, "scope": scope}});
        let request = Request::post(format!("{URL}/identity/v3/auth/tokens"));
        let request = request.header("content-type", "application/json");
        let request = request.body(Bytes::from(body.to_string())).unwrap();
        let limits = Limits::object(Duration::from_secs(10));
        let answer = self.cloud.send(request, limits).await.unwrap();
        assert_eq!(answer.status(), 201, "{answer:?}");
        answer.headers()["x-subject-token"]
            .to_str()
            .unwrap()
            .to_owned()
    }

    async fn revoke(&self, token: &str) {
        let request = Request::delete(format!("{URL}/identity/v3/auth/tokens"));
        let request = request
            .header("x-auth-token", token)
            .header("x-subject-token", token);
        let limits = Limits::object(Duration::from_secs(10));
        let answer = self
            .cloud
            .send(request.body(Bytes::new()).unwrap(), limits)
            .await;
        assert_eq!(answer.unwrap().status(), 204);
    }

    /// Enables or disables the user or the project demo, by an administrator.
    async fn enable(&self, kind: &str, enabled: bool) {
        let scope = json!({"project": {"name": "admin", "domain": {"name": "Default"}}});
        let admin = self.token_of("admin", scope).await;
        let limits = Limits::object(Duration::from_secs(10));
        let asked = async |request: http::request::Builder, body: Value| {
            let request = request.header("x-auth-token", &admin);
            let request = request.header("content-type", "application/json");
            let request = request.body(Bytes::from(body.to_string())).unwrap();
            let answer = self.cloud.send(request, limits).await.unwrap();
            assert_eq!(answer.status(), 200, "{answer:?}");
            serde_json::from_slice::<Value>(answer.body()).unwrap()
        };
        let list = format!("{URL}/identity/v3/{kind}s?name=demo");
        let found = asked(Request::get(list), json!({})).await;
        let id = found[format!("{kind}s")][0]["id"]
            .as_str()
            .unwrap()
            .to_owned();
        let one = format!("{URL}/identity/v3/{kind}s/{id}");
        asked(Request::patch(one), json!({kind: {"enabled": enabled}})).await;
    }

    async fn status(&self, api: &str, kind: &str, spec: Value) -> Value {
        let body = json!({"apiVersion": format!("{api}.k8s.io/v1"), "kind": kind, "spec": spec});
        let answer = self.webhook.answer(body.to_string().as_bytes()).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let answer: Value = serde_json::from_slice(&answer.body).unwrap();
        answer["status"].clone()
    }

    async fn review(&self, token: &str) -> Value {
        self.status("authentication", "TokenReview", json!({"token": token}))
            .await
    }
}

fn demo() -> Value {
    json!({"project": {"name": "demo", "domain": {"name": "Default"}}})
}

#[tokio::test]
async fn a_user_of_the_cloud_is_a_user_of_the_cluster() {
    let world = World::new().await;
    let token = world.token(demo()).await;
    let status = world.review(&token).await;
    assert_eq!(status["authenticated"], true, "{status}");
    let user = &status["user"];
    assert_eq!(user["username"], "demo");
    let extra = &user["extra"];
    assert_eq!(
        extra["alpha.kubernetes.io/identity/project/name"],
        json!(["demo"])
    );
    assert_eq!(
        extra["alpha.kubernetes.io/identity/user/domain/name"],
        json!(["Default"])
    );
    let role = extra["alpha.kubernetes.io/identity/roles"][0].clone();
    let policy = json!([{"users": {"roles": [role], "projects": ["demo"]}, "resource_permissions": {"default/pods": ["list"]}}]);
    world.webhook.set_policy(
        Policy::compile(&policy.to_string(), Mode::Strict)
            .unwrap()
            .policy,
    );
    for (namespace, expected) in [("default", true), ("kube-system", false)] {
        let attributes = json!({"verb": "list", "resource": "pods", "namespace": namespace});
        let spec = json!({"user": "demo", "groups": user["groups"], "extra": extra, "resourceAttributes": attributes});
        let status = world
            .status("authorization", "SubjectAccessReview", spec)
            .await;
        assert_eq!(status["allowed"], expected, "{status}");
    }
}

#[tokio::test]
async fn what_keystone_does_not_know_or_has_no_project_is_refused() {
    let world = World::new().await;
    let revoked = world.token(demo()).await;
    world.revoke(&revoked).await;
    let unscoped = world.token(json!("unscoped")).await;
    for (token, words) in [
        ("gAAAAAnone", "does not accept the token"),
        (&revoked, "does not accept the token"),
        (&unscoped, "for no project"),
    ] {
        let status = world.review(token).await;
        assert_eq!(status["authenticated"], false);
        assert!(
            status["error"].as_str().unwrap().contains(words),
            "{status}"
        );
    }
}

#[tokio::test]
async fn a_revoked_token_is_known_no_longer_than_the_cache_keeps_it() {
    let world = World::new().await;
    let token = world.token(demo()).await;
    assert_eq!(world.review(&token).await["authenticated"], true);
    world.revoke(&token).await;
    // The webhook does not ask about the token for a minute.
    assert_eq!(world.review(&token).await["authenticated"], true);
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(61)).await;
    tokio::time::resume();
    assert_eq!(world.review(&token).await["authenticated"], false);
}

#[tokio::test]
async fn tokens_of_another_cloud_and_of_what_is_disabled_are_refused() {
    let (world, other) = (World::new().await, World::new().await);
    let of_another = other.token(demo()).await;
    let refused = world.review(&of_another).await;
    assert_eq!(refused["authenticated"], false, "{refused}");
    for kind in ["user", "project"] {
        let token = world.token(demo()).await;
        world.enable(kind, false).await;
        let refused = world.review(&token).await;
        assert_eq!(refused["authenticated"], false, "{kind}: {refused}");
        assert!(refused["user"].is_null(), "{kind}: {refused}");
        world.enable(kind, true).await;
    }
}
