use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use openstack::transport::{Limits, SharedTransport, Transport, TransportError};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::*;
use crate::metrics::Metrics;

type Answered = http::Response<Bytes>;

/// What is sent, and what is answered to a path.
struct Recorded {
    requests: Mutex<Vec<http::Request<Bytes>>>,
    answer: Box<dyn Fn(&str) -> Answered + Send + Sync>,
}

impl Transport for Recorded {
    fn send(
        &self,
        request: http::Request<Bytes>,
        limits: Limits,
    ) -> BoxFuture<'static, Result<Answered, TransportError>> {
        assert!(limits.time <= Duration::from_secs(10) && limits.body <= 1 << 20);
        let answer = (self.answer)(request.uri().path());
        self.requests.lock().push(request);
        async move { Ok(answer) }.boxed()
    }
}

fn answered(status: u16, body: impl Into<Bytes>) -> Answered {
    http::Response::builder()
        .status(status)
        .body(body.into())
        .unwrap()
}

fn json_of(body: &Value) -> Answered {
    answered(200, body.to_string())
}

fn token(more: &Value) -> Value {
    let mut token = json!({
        "user": {"id": "u1", "name": "alice", "domain": {"id": "default", "name": "Default"}, "password_expires_at": null},
        "roles": [{"id": "r1", "name": "member"}],
        "expires_at": "2026-11-28T19:00:00.000000Z",
        "issued_at": "2026-11-28T18:00:00.000000Z",
        "methods": ["password"],
        "audit_ids": ["x"],
    });
    for (key, value) in more.as_object().unwrap() {
        token[key] = value.clone();
    }
    json!({"token": token})
}

fn keystone(answer: impl Fn(&str) -> Answered + Send + Sync + 'static) -> (Arc<Recorded>, Http) {
    let recorded = Arc::new(Recorded {
        requests: Mutex::default(),
        answer: Box::new(answer),
    });
    let transport: SharedTransport = recorded.clone();
    let agent = http::HeaderValue::from_static("test");
    let time = Duration::from_secs(10);
    let keystone = Http::new(
        "http://k/identity/v3".to_owned(),
        transport,
        time,
        agent,
        Metrics::default(),
    );
    (recorded, keystone)
}

async fn validated(keystone: &Http) -> Result<Identity, NotValidated> {
    keystone.validate(SecretString::from("secret-token")).await
}

#[tokio::test]
async fn a_token_is_asked_about_with_itself_and_nothing_of_it_is_kept() {
    let project = json!({"project": {"id": "p1", "name": "demo", "domain": {"id": "default", "name": "Default"}}, "is_domain": false});
    let groups = json!({"groups": [{"id": "g1", "name": "ops", "domain_id": "default"}], "links": {"next": null}});
    let (recorded, keystone) = keystone(move |path| match path {
        "/identity/v3/auth/tokens" => json_of(&token(&project)),
        "/identity/v3/users/u1/groups" => json_of(&groups),
        other => panic!("{other}"),
    });
    let identity = validated(&keystone).await.unwrap();
    assert_eq!((&*identity.user.id, &*identity.user.name), ("u1", "alice"));
    assert_eq!(
        (&*identity.domain.id, &*identity.domain.name),
        ("default", "Default")
    );
    assert_eq!(identity.roles, ["member"]);
    let (id, name) = ("p1".to_owned(), "demo".to_owned());
    assert_eq!(identity.scope, Scope::Project(Named { id, name }));
    assert_eq!(identity.groups[0].group.name, "ops");
    assert_eq!(identity.expires_at, "2026-11-28T19:00:00Z".parse().unwrap());
    let requests = recorded.requests.lock();
    assert_eq!(requests.len(), 2);
    let header = |index: usize, name: &str| requests[index].headers().get(name).cloned();
    assert_eq!(requests[0].uri().query(), Some("nocatalog"));
    for name in ["x-auth-token", "x-subject-token"] {
        let value = header(0, name).unwrap();
        assert!(value == "secret-token" && value.is_sensitive());
    }
    assert_eq!(header(0, "openstack-identity-access-rules").unwrap(), "1.0");
    assert_eq!(header(1, "x-auth-token").unwrap(), "secret-token");
    assert_eq!(header(1, "x-subject-token"), None);
    assert!(!format!("{keystone:?}").contains("secret"));
}

#[tokio::test]
async fn scopes_trusts_rules_and_federated_groups_are_read() {
    let domain = json!({"id": "d1", "name": "x"});
    for (more, scope) in [
        (json!({}), Scope::Unscoped),
        (json!({"system": {"all": true}}), Scope::System),
        (
            json!({"domain": domain}),
            Scope::Domain(Named {
                id: "d1".to_owned(),
                name: "x".to_owned(),
            }),
        ),
        (
            json!({"project": domain, "is_domain": true}),
            Scope::Domain(Named {
                id: "d1".to_owned(),
                name: "x".to_owned(),
            }),
        ),
    ] {
        let body = token(&more);
        let (_, keystone) = keystone(move |path| match path.ends_with("groups") {
            true => answered(403, ""),
            false => json_of(&body),
        });
        assert_eq!(validated(&keystone).await.unwrap().scope, scope, "{more}");
    }
    let more = json!({
        "OS-TRUST:trust": {"id": "t"},
        "application_credential": {"id": "a", "access_rules": [{"id": "1", "service": "compute", "method": "GET", "path": "/v2.1/servers"}]},
        "user": {"id": "u1", "name": "alice", "domain": {"id": "Federated", "name": "Federated"},
            "OS-FEDERATION": {"identity_provider": {"id": "i"}, "protocol": {"id": "openid"}, "groups": [{"id": "g1"}, {"id": "g2", "name": "ops"}]}},
    });
    let (recorded, keystone) = keystone(move |_| json_of(&token(&more)));
    let identity = validated(&keystone).await.unwrap();
    assert!(identity.trust);
    assert_eq!(identity.access_rules.unwrap()[0].service, "compute");
    let names: Vec<&str> = identity
        .groups
        .iter()
        .map(|it| it.group.name.as_str())
        .collect();
    assert_eq!(names, ["g1", "ops"]);
    assert_eq!(recorded.requests.lock().len(), 1);
}

#[tokio::test]
async fn whatever_keystone_answers_is_a_refusal_or_an_outage() {
    let project = json!({"project": {"id": "p1", "name": "demo"}});
    let good = token(&project).to_string();
    let half = good.as_bytes()[..good.len() / 2].to_vec();
    let without = |key: &str| {
        let mut body = token(&project);
        body["token"].as_object_mut().unwrap().remove(key);
        body.to_string()
    };
    let refused = |status: u16| (answered(status, "{}"), true, "Keystone ");
    let outage = |status: u16| (answered(status, "secret-token"), false, "Keystone answers ");
    let mut of_another = answered(200, good.clone());
    of_another
        .headers_mut()
        .insert("x-subject-token", "other".parse().unwrap());
    let both = token(&json!({"project": {"id": "p"}, "domain": {"id": "d"}}));
    for (answer, is_refused, words) in [
        refused(401),
        refused(403),
        refused(404),
        outage(300),
        outage(400),
        outage(429),
        outage(500),
        outage(502),
        outage(503),
        (
            answered(200, "<html>secret-token</html>"),
            false,
            "is not that to a token",
        ),
        (answered(200, half), false, "is not that to a token"),
        (answered(200, ""), false, "is not that to a token"),
        (answered(200, "{}"), false, "missing field `token`"),
        (
            answered(200, without("user")),
            false,
            "missing field `user`",
        ),
        (
            answered(200, without("expires_at")),
            false,
            "missing field `expires_at`",
        ),
        (json_of(&both), false, "a project and a domain"),
        (
            json_of(&token(&json!({"project": {"name": "x"}}))),
            false,
            "an id is missing",
        ),
        (
            json_of(&token(&json!({"user": {"id": "", "name": "x"}}))),
            false,
            "the id of the user is empty",
        ),
        (
            json_of(&token(&json!({"user": {"id": "../x", "name": "x"}}))),
            false,
            "the id of the user is none",
        ),
        (of_another, false, "for another token"),
    ] {
        let status = answer.status();
        let (_, keystone) = keystone(move |_| answer.clone());
        let error = validated(&keystone).await.unwrap_err();
        assert_eq!(
            matches!(error, NotValidated::Refused(_)),
            is_refused,
            "{status} {error}"
        );
        let text = error.to_string();
        assert!(
            text.contains(words) && !text.contains("secret-token"),
            "{status} {text}"
        );
    }
}

#[tokio::test]
async fn groups_that_are_kept_from_users_are_none_and_others_have_to_be_known() {
    let project = json!({"project": {"id": "p1", "name": "demo"}});
    for (status, expected) in [
        (403, Ok(())),
        (404, Ok(())),
        (401, Err(true)),
        (500, Err(false)),
        (200, Err(false)),
    ] {
        let body = token(&project);
        let (_, keystone) = keystone(move |path| match path.ends_with("groups") {
            true => answered(status, "{}"),
            false => json_of(&body),
        });
        let result = validated(&keystone).await;
        let result = result
            .map(|_| ())
            .map_err(|error| matches!(error, NotValidated::Refused(_)));
        assert_eq!(result, expected, "{status}");
    }
}

#[tokio::test]
async fn keystone_may_ask_to_be_left_alone() {
    for (value, expected) in [("7", Some(7)), ("soon", None), ("-1", None)] {
        let (_, keystone) = keystone(move |_| {
            let mut answer = answered(429, "");
            answer
                .headers_mut()
                .insert("retry-after", value.parse().unwrap());
            answer
        });
        let Err(NotValidated::Outage { retry_after, .. }) = validated(&keystone).await else {
            panic!("{value}");
        };
        assert_eq!(retry_after, expected.map(Duration::from_secs));
    }
}

#[test]
fn the_path_before_the_version_is_kept() {
    for (url, expected) in [
        ("https://k:5000", "https://k:5000/v3"),
        ("https://k:5000/", "https://k:5000/v3"),
        ("https://k:5000/v3/", "https://k:5000/v3"),
        ("http://k/identity", "http://k/identity/v3"),
        ("http://k/identity/v3", "http://k/identity/v3"),
        ("http://k/identity/v2.0/", "http://k/identity/v3"),
    ] {
        assert_eq!(normal_url(url).unwrap(), expected);
    }
    for wrong in [
        "",
        "k",
        "ftp://k",
        "https://",
        "https://u:p@k",
        "https://k/v3?x=y",
        "k:5000",
    ] {
        let error = normal_url(wrong).unwrap_err();
        assert!(
            error.starts_with("the URL of Keystone ") && !error.contains("u:p"),
            "{error}"
        );
    }
}
