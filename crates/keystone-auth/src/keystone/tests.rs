use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use openstack::transport::{Limits, SharedTransport, Transport, TransportError};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::*;
use crate::metrics::Metrics;

type Answered = http::Response<Bytes>;
/// From method and path.
type Answers = dyn Fn(&str, &str) -> Answered + Send + Sync;

/// Requests, and the answer for a path.
struct Recorded {
    requests: Mutex<Vec<http::Request<Bytes>>>,
    answer: Box<Answers>,
}

impl std::fmt::Debug for Recorded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Recorded")
    }
}

impl Transport for Recorded {
    fn send(
        &self,
        request: http::Request<Bytes>,
        limits: Limits,
    ) -> BoxFuture<'static, Result<Answered, TransportError>> {
        assert!(limits.time <= Duration::from_secs(10) && limits.body <= 1 << 20);
        let answer = (self.answer)(request.method().as_str(), request.uri().path());
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
    keystone_by_method(move |_, path| answer(path))
}

fn keystone_by_method(
    answer: impl Fn(&str, &str) -> Answered + Send + Sync + 'static,
) -> (Arc<Recorded>, Http) {
    let recorded = Arc::new(Recorded {
        requests: Mutex::default(),
        answer: Box::new(answer),
    });
    let transport: SharedTransport = recorded.clone();
    let agent = &http::HeaderValue::from_static("test");
    let time = Duration::from_secs(10);
    let keystone = Http::new(
        "http://k/identity/v3".to_owned(),
        transport,
        time,
        agent,
        Metrics::default(),
    )
    .unwrap();
    (recorded, keystone)
}

/// The identity, with groups that had to be asked for.
async fn validated(keystone: &Http) -> Result<Identity, NotValidated> {
    let token = || SecretString::from("secret-token");
    let Validated {
        mut identity,
        expires_at,
    } = keystone.validate(token()).await?;
    assert_eq!(expires_at.as_second() % 60, 0);
    if identity.groups.is_none() {
        identity.groups = keystone.groups(&identity.user.id, token()).await?;
    }
    Ok(identity)
}

/// A fault of OpenStack.
fn fault(status: u16) -> Answered {
    let error = json!({"code": status, "title": "x", "message": "secret-token"});
    answered(status, json!({"error": error}).to_string())
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
    assert_eq!(*identity.roles, ["member".into()]);
    let (id, name) = ("p1".into(), "demo".into());
    assert_eq!(identity.scope, Scope::Project(Named { id, name }));
    assert_eq!(&*identity.groups.unwrap()[0].group.name, "ops");
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
                id: "d1".into(),
                name: "x".into(),
            }),
        ),
        (
            json!({"project": domain, "is_domain": true}),
            Scope::Domain(Named {
                id: "d1".into(),
                name: "x".into(),
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
    assert_eq!(&*identity.access_rules.unwrap()[0].service, "compute");
    let names: Vec<&str> = identity
        .groups
        .iter()
        .flat_map(|groups| groups.iter())
        .map(|it| &*it.group.name)
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
    let refused = |status: u16| (fault(status), true, "Keystone ");
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
        (
            answered(401, "<html>secret-token</html>"),
            true,
            "Keystone ",
        ),
        // A proxy that has lost Keystone knows nothing of the token.
        outage(404),
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
        (answered(200, "{}"), false, "has no `token`"),
        (
            answered(200, without("user")),
            false,
            "the id of the user is empty",
        ),
        (answered(200, without("expires_at")), false, "it has no end"),
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
        (of_another, false, "is about another token"),
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
        (429, Err(false)),
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

/// Keystone with a service user, with these answers about a token, and these to logins.
fn with_service_user(
    logins: impl Fn(usize) -> Answered + Send + Sync + 'static,
    answers: impl Fn(usize) -> Answered + Send + Sync + 'static,
) -> (Arc<Recorded>, Http) {
    let (asked, logged_in) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let next = |count: &AtomicUsize| count.fetch_add(1, Ordering::Relaxed);
    let (recorded, keystone) = keystone_by_method(move |method, path| match (method, path) {
        ("POST", "/identity/v3/auth/tokens") => logins(next(&logged_in)),
        ("GET", "/identity/v3/auth/tokens") => answers(next(&asked)),
        ("GET", "/identity/v3/users/u1/groups") => answered(200, r#"{"groups": []}"#),
        other => panic!("{other:?}"),
    });
    let yaml = "clouds: {k: {auth: {auth_url: 'http://elsewhere', username: validator, user_domain_name: Default, \
        project_name: service, project_domain_name: Default, password: p}}}";
    let cloud = openstack::CloudConfig::parse(yaml, "k").unwrap();
    keystone.set_service_user(cloud).unwrap();
    (recorded, keystone)
}

/// Answer to a login; the token has this number.
fn login(number: usize) -> Answered {
    let body = json!({"token": {"user": {"id": "s"}, "project": {"id": "service"}, "catalog": [],
        "expires_at": "2999-01-01T00:00:00Z", "issued_at": "2026-01-01T00:00:00Z"}});
    let mut answer = answered(201, body.to_string());
    let token = format!("token-of-service-{number}").parse().unwrap();
    answer.headers_mut().insert("x-subject-token", token);
    answer
}

#[tokio::test]
async fn a_service_user_asks_one_question_for_a_token_and_logs_in_once() {
    let body = token(&json!({"project": {"id": "p1", "name": "demo"}}));
    let (recorded, keystone) = with_service_user(login, move |_| json_of(&body));
    for _ in 0..3 {
        let identity = keystone.validate("secret-token".to_owned().into()).await;
        assert_eq!(&*identity.unwrap().identity.user.name, "alice");
    }
    {
        let requests = recorded.requests.lock();
        assert_eq!(requests.len(), 4, "one login, and three questions");
        assert!(requests.iter().all(|it| it.uri().host() == Some("k")));
        let last = requests[3].headers();
        assert_eq!(last["x-auth-token"], "token-of-service-0");
        assert_eq!(last["x-subject-token"], "secret-token");
        assert_eq!(last["openstack-identity-access-rules"], "1.0");
    }
    // Groups are the user's own business.
    keystone
        .groups("u1", "secret-token".to_owned().into())
        .await
        .unwrap();
    let requests = recorded.requests.lock();
    assert_eq!(requests[4].headers()["x-auth-token"], "secret-token");
}

#[tokio::test]
async fn a_token_that_there_is_not_is_told_from_a_service_user_that_may_not_ask() {
    for (status, is_refused, words, logins) in [
        (404, true, "unknown, expired or revoked", 1),
        (403, false, "needs the role `service`", 1),
        // The session logs in again, once.
        (401, false, "does not accept the service user", 2),
        (500, false, "Keystone answers 500", 1),
    ] {
        let (recorded, keystone) = with_service_user(login, move |_| fault(status));
        let error = validated(&keystone).await.unwrap_err();
        assert_eq!(
            matches!(error, NotValidated::Refused(_)),
            is_refused,
            "{status}"
        );
        let text = error.to_string();
        assert!(
            text.contains(words) && !text.contains("secret-token"),
            "{text}"
        );
        let requests = recorded.requests.lock();
        assert_eq!(
            requests.iter().filter(|it| it.method() == "POST").count(),
            logins
        );
    }
    let good = token(&json!({"project": {"id": "p1", "name": "demo"}}));
    let (_, keystone) = with_service_user(login, move |number| match number {
        0 => fault(401),
        _ => json_of(&good),
    });
    assert_eq!(&*validated(&keystone).await.unwrap().user.name, "alice");
    // The token has the roles at the time of its login: later roles count from the next question on.
    let good = token(&json!({"project": {"id": "p1", "name": "demo"}}));
    let (recorded, keystone) = with_service_user(login, move |number| match number {
        0 => fault(403),
        _ => json_of(&good),
    });
    validated(&keystone).await.unwrap_err();
    assert_eq!(&*validated(&keystone).await.unwrap().user.name, "alice");
    let asked = recorded.requests.lock()[3].headers()["x-auth-token"].clone();
    assert_eq!(asked, "token-of-service-1");
    for (status, words) in [
        (401, "the service user cannot log in (401"),
        (403, "the service user cannot log in (403"),
        (404, "the service user cannot log in (404"),
        (503, "Keystone answers 503"),
    ] {
        let (_, keystone) = with_service_user(move |_| fault(status), |_| panic!("not logged in"));
        let error = validated(&keystone).await.unwrap_err();
        assert!(
            matches!(error, NotValidated::Outage { .. }),
            "{status} {error}"
        );
        assert!(error.to_string().starts_with(words), "{status} {error}");
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
