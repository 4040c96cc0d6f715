//! No token is in a log of any level, in an answer, or in a metric.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{HeaderValue, Request, Response};
use jiff::Timestamp;
use keystone_auth::keystone::Http;
use keystone_auth::tokens::{self, Tokens};
use keystone_auth::webhook::Webhook;
use keystone_auth::{Metrics, user};
use openstack::transport::{Limits, Transport, TransportError};
use serde_json::json;
use tracing::instrument::WithSubscriber as _;

use crate::log::Log;

/// Part of every token here.
const SECRET: &str = "tell-nobody";

/// Keystone that repeats the headers of requests in its answers, as some proxies do.
struct Chatty;

impl Transport for Chatty {
    fn send(
        &self,
        request: Request<Bytes>,
        _: Limits,
    ) -> BoxFuture<'static, Result<Response<Bytes>, TransportError>> {
        let token = request.headers()["x-auth-token"]
            .to_str()
            .unwrap()
            .to_owned();
        let text = format!("{:?} {token}", request.headers());
        let user = json!({"id": "u1", "name": "alice", "domain": {"id": "d", "name": "D"}});
        let body = json!({"token": {"user": user, "project": {"id": "p", "name": "demo"}, "expires_at": "2999-01-01T00:00:00Z"}});
        let answer = |status: u16, body: String| {
            Response::builder()
                .status(status)
                .body(Bytes::from(body))
                .unwrap()
        };
        let answer = match token.strip_prefix(SECRET).unwrap_or_default() {
            "-good" if request.uri().path().ends_with("/groups") => {
                answer(200, json!({"groups": []}).to_string())
            }
            "-good" => answer(200, body.to_string()),
            "-html" => answer(200, format!("<html>{text}</html>")),
            "-wrong" => answer(200, json!({"token": {"user": text}}).to_string()),
            "-refused" => answer(401, text),
            "-slow" => {
                let error = TransportError {
                    message: "no answer within 10 s".to_owned(),
                    never_sent: false,
                    timed_out: true,
                    too_large: false,
                };
                return async move { Err(error) }.boxed();
            }
            _ => answer(500, text),
        };
        async move { Ok(answer) }.boxed()
    }
}

#[tokio::test]
async fn no_token_is_in_a_log_an_answer_or_a_metric() {
    let log = Log::default();
    let subscriber = log.subscriber();
    let metrics = Metrics::default();
    let (time, agent) = (Duration::from_secs(10), HeaderValue::from_static("test"));
    let keystone = Http::new(
        "http://k/v3".to_owned(),
        Arc::new(Chatty),
        time,
        &agent,
        metrics.clone(),
    )
    .unwrap();
    let options = tokens::Options::default();
    let tokens = Tokens::new(Arc::new(keystone), options, Timestamp::now, metrics.clone());
    let webhook = Webhook::new(
        tokens,
        user::Options::default(),
        Vec::new(),
        metrics.clone(),
    );
    let reviews = async {
        let mut statuses = Vec::new();
        for token in [
            "-good", "-good", "-refused", "-html", "-wrong", "-slow", "-500", "-later", " blank",
            "\n",
        ] {
            let spec = json!({"token": format!("{SECRET}{token}")});
            let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": spec});
            let answer = webhook.answer(body.to_string().as_bytes()).await;
            let text = String::from_utf8(answer.body).unwrap();
            assert!(!text.contains(SECRET), "{text}");
            statuses.push(answer.status.as_u16());
        }
        for body in [
            format!(r#"{{"spec": {{"token": ["{SECRET}"]}}}}"#),
            format!(r#"{{"apiVersion": "{SECRET}"#),
            format!(
                r#"{{"apiVersion": "v1", "kind": "TokenReview", "spec": {{"token": "{SECRET}"}}}}"#
            ),
        ] {
            let answer = webhook.answer(body.as_bytes()).await;
            let text = String::from_utf8(answer.body).unwrap();
            assert!(!text.contains(SECRET), "{text}");
            statuses.push(answer.status.as_u16());
        }
        statuses
    };
    let statuses = reviews.with_subscriber(subscriber).await;
    // Keystone is left alone after the fourth failure, which the last but two would be.
    assert_eq!(
        statuses,
        [
            200, 200, 200, 503, 503, 503, 503, 503, 200, 200, 400, 400, 400
        ]
    );
    let log = log.text();
    assert!(
        log.contains("a token is refused") && !log.contains(SECRET),
        "{log}"
    );
    let mut registry = prometheus_client::registry::Registry::default();
    metrics.register(&mut registry);
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    assert!(
        text.contains("keystone_requests_total{status=\"0\"} 1"),
        "{text}"
    );
    assert!(!text.contains(SECRET));
    assert!(!format!("{webhook:?}").contains(SECRET));
}

/// Keystone that refuses the login of a service user, and repeats the login in the refusal.
struct Refusing;

impl Transport for Refusing {
    fn send(
        &self,
        request: Request<Bytes>,
        _: Limits,
    ) -> BoxFuture<'static, Result<Response<Bytes>, TransportError>> {
        let body = String::from_utf8_lossy(request.body()).into_owned();
        assert!(body.contains(SECRET), "the login has the password");
        let error = json!({"code": 401, "title": "Unauthorized", "message": body});
        let answer = Response::builder().status(401);
        let answer = answer.body(Bytes::from(json!({"error": error}).to_string()));
        async move { Ok(answer.unwrap()) }.boxed()
    }
}

#[tokio::test]
async fn the_password_of_a_service_user_is_in_no_log_and_no_answer() {
    let log = Log::default();
    let (time, agent) = (Duration::from_secs(10), HeaderValue::from_static("test"));
    let metrics = Metrics::default();
    let url = "http://k/v3".to_owned();
    let keystone = Http::new(url, Arc::new(Refusing), time, &agent, metrics.clone()).unwrap();
    let yaml = format!(
        "clouds: {{k: {{auth: {{auth_url: 'http://k', user_id: s, password: {SECRET}, project_id: p}}}}}}"
    );
    let user = openstack::CloudConfig::parse(&yaml, "k").unwrap();
    keystone.set_service_user(user).unwrap();
    assert!(!format!("{keystone:?}").contains(SECRET));
    let options = tokens::Options::default();
    let tokens = Tokens::new(Arc::new(keystone), options, Timestamp::now, metrics.clone());
    let users = user::Options::default();
    let webhook = Webhook::new(tokens, users, Vec::new(), metrics);
    let reviews = async {
        for number in 0..5 {
            let spec = json!({"token": format!("{SECRET}-{number}")});
            let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": spec});
            let answer = webhook.answer(body.to_string().as_bytes()).await;
            let text = String::from_utf8(answer.body).unwrap();
            assert_eq!(answer.status, 503, "{text}");
            assert!(
                text.contains("the service user cannot log in (401"),
                "{text}"
            );
            assert!(!text.contains(SECRET), "{text}");
        }
    };
    reviews.with_subscriber(log.subscriber()).await;
    let log = log.text();
    assert!(
        log.contains("a token is not reviewed") && !log.contains(SECRET),
        "{log}"
    );
}
