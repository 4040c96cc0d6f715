//! A thousand users at once, whose tokens end and are revoked meanwhile, while the policy is replaced.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::log::Log;
use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::{BoxFuture, join_all};
use http::{HeaderValue, Request, Response};
use jiff::{SignedDuration, Timestamp};
use keystone_auth::keystone::Http;
use keystone_auth::policy::{Mode, Policy};
use keystone_auth::tokens::{self, Tokens};
use keystone_auth::webhook::Webhook;
use keystone_auth::{Metrics, user};
use openstack::transport::{Limits, Transport, TransportError};
use parking_lot::Mutex;
use serde_json::{Value, json};

const USERS: usize = 1000;
/// Tokens of each user, one after the other.
const ROUNDS: usize = 6;
const POLICIES: usize = 100;
/// Part of every token.
const CANARY: &str = "tell-nobody";

/// A token, as Keystone knows it.
#[derive(Clone)]
struct Known {
    user: usize,
    expires_at: Timestamp,
}

/// Keystone that answers in any order, and repeats tokens in its refusals.
#[derive(Default)]
struct Fake {
    known: Mutex<HashMap<String, Known>>,
    /// Questions about each token.
    asked: Mutex<HashMap<String, usize>>,
    requests: AtomicUsize,
    /// Requests about a token with another one.
    mixed_up: AtomicUsize,
}

impl Fake {
    fn answer(&self, request: &Request<Bytes>) -> Response<Bytes> {
        let header = |name: &str| request.headers().get(name).map(|it| it.to_str().unwrap());
        let asker = header("x-auth-token").unwrap().to_owned();
        let known = self.known.lock().get(&asker).cloned();
        let known = known.filter(|it| it.expires_at > Timestamp::now());
        let of = |status: u16, body: Value| {
            let response = Response::builder().status(status);
            response.body(Bytes::from(body.to_string())).unwrap()
        };
        let Some(known) = known else {
            let words = format!("{asker} {:?}", request.headers());
            return of(
                401,
                json!({"error": {"code": 401, "title": "x", "message": words}}),
            );
        };
        let number = known.user;
        if request.uri().path().ends_with("/groups") {
            let group = json!({"id": format!("g{number}"), "name": format!("group-{number}"), "domain_id": "d"});
            let fits = request.uri().path().contains(&format!("/users/u{number}/"));
            self.mixed_up
                .fetch_add(usize::from(!fits), Ordering::Relaxed);
            return of(200, json!({"groups": [group]}));
        }
        let fits = header("x-subject-token") == Some(&asker);
        self.mixed_up
            .fetch_add(usize::from(!fits), Ordering::Relaxed);
        *self.asked.lock().entry(asker).or_default() += 1;
        let user = json!({"id": format!("u{number}"), "name": format!("user-{number}"), "domain": {"id": "d", "name": "D"}});
        let project = json!({"id": format!("p{number}"), "name": format!("project-{number}")});
        of(
            200,
            json!({"token": {"user": user, "project": project, "roles": [{"name": "member"}], "expires_at": known.expires_at}}),
        )
    }
}

impl Transport for Keystone {
    fn send(
        &self,
        request: Request<Bytes>,
        _: Limits,
    ) -> BoxFuture<'static, Result<Response<Bytes>, TransportError>> {
        let fake = Arc::clone(&self.0);
        async move {
            // Answers overtake each other.
            let turns = fake.requests.fetch_add(1, Ordering::Relaxed) % 7;
            for _ in 0..turns {
                tokio::task::yield_now().await;
            }
            Ok(fake.answer(&request))
        }
        .boxed()
    }
}

struct Keystone(Arc<Fake>);

struct World {
    keystone: Arc<Fake>,
    webhook: Webhook,
    metrics: Metrics,
    accepted: AtomicUsize,
    refused: AtomicUsize,
}

impl World {
    fn new(ttl: Duration) -> Self {
        let (keystone, metrics) = (Arc::new(Fake::default()), Metrics::default());
        let transport = Arc::new(Keystone(Arc::clone(&keystone)));
        let (time, agent) = (Duration::from_secs(10), HeaderValue::from_static("test"));
        let url = "http://k/v3".to_owned();
        let http = Http::new(url, transport, time, &agent, metrics.clone()).unwrap();
        let options = tokens::Options {
            ttl,
            refused_ttl: Duration::from_millis(1),
            new_per_second: 1_000_000,
            ..tokens::Options::default()
        };
        let tokens = Tokens::new(Arc::new(http), options, Timestamp::now, metrics.clone());
        let users = user::Options::default();
        let webhook = Webhook::new(tokens, users, Vec::new(), metrics.clone());
        Self {
            keystone,
            webhook,
            metrics,
            accepted: AtomicUsize::new(0),
            refused: AtomicUsize::new(0),
        }
    }

    /// A new token of a user, which is good for so many milliseconds.
    fn login(&self, user: usize, round: usize, millis: i64) -> String {
        let token = format!("{CANARY}-{user}-{round}");
        let expires_at = Timestamp::now() + SignedDuration::from_millis(millis);
        let mut known = self.keystone.known.lock();
        known.insert(token.clone(), Known { user, expires_at });
        token
    }

    fn revoke(&self, token: &str) {
        self.keystone.known.lock().remove(token);
    }

    /// True if the token is accepted, and only for this user.
    async fn is_accepted(&self, token: &str, user: usize) -> bool {
        let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}});
        let answer = self.webhook.answer(body.to_string().as_bytes()).await;
        let text = String::from_utf8(answer.body).unwrap();
        assert!(!text.contains(CANARY), "{text}");
        let status = serde_json::from_str::<Value>(&text).unwrap()["status"].clone();
        let is_accepted = answer.status == 200 && status["authenticated"] == true;
        if is_accepted {
            let expected = json!({"username": format!("user-{user}"), "uid": format!("u{user}"),
                "groups": [format!("group-{user}"), format!("p{user}")]});
            for key in ["username", "uid", "groups"] {
                assert_eq!(status["user"][key], expected[key], "{status}");
            }
            self.accepted.fetch_add(1, Ordering::Relaxed);
        } else {
            assert!(matches!(answer.status.as_u16(), 200 | 429 | 503), "{text}");
            assert!(status["user"].is_null(), "{text}");
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
        is_accepted
    }

    async fn may_list_pods(&self, user: usize) -> bool {
        let extra = json!({"alpha.kubernetes.io/identity/roles": ["member"], "alpha.kubernetes.io/identity/project/name": ["shared"]});
        let attributes = json!({"verb": "list", "resource": "pods", "namespace": "n"});
        let spec = json!({"user": format!("user-{user}"), "extra": extra, "resourceAttributes": attributes});
        let body = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec});
        let answer = self.webhook.answer(body.to_string().as_bytes()).await;
        let answer: Value = serde_json::from_slice(&answer.body).unwrap();
        answer["status"]["allowed"] == true
    }
}

/// Life of one user, with tokens that expire or are revoked.
async fn lives(world: &World, user: usize) {
    for round in 0..ROUNDS {
        let is_short = (user + round).is_multiple_of(5);
        let token = world.login(user, round, if is_short { 2 } else { 3_600_000 });
        let (first, second) = tokio::join!(
            world.is_accepted(&token, user),
            world.is_accepted(&token, user)
        );
        assert!(
            is_short || first && second,
            "user {user} is refused wrongly"
        );
        assert!(world.may_list_pods(user).await, "a review has failed");
        world.revoke(&token);
        world.is_accepted(&token, user).await;
    }
}

fn policy(number: usize) -> Policy {
    let rules = json!([
        {"users": {"roles": ["nobody"], "projects": [format!("p{number}")]}, "resource_permissions": {"*/*": ["*"]}},
        {"users": {"roles": ["member"], "projects": ["shared"]}, "resource_permissions": {"n/pods": ["list"], format!("n{number}/*"): ["get"]}},
    ]);
    Policy::compile(&rules.to_string(), Mode::Compatible)
        .unwrap()
        .policy
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_thousand_users_at_once_are_themselves_or_refused_and_nothing_tells_their_tokens() {
    let log = Log::default();
    tracing::subscriber::set_global_default(log.subscriber()).unwrap();
    let world = Arc::new(World::new(Duration::from_millis(200)));
    world.webhook.set_policy(policy(0));
    let done = Arc::new(AtomicBool::new(false));
    let (changed, over) = (Arc::clone(&world), Arc::clone(&done));
    let changes = tokio::spawn(async move {
        let mut count = 0;
        while count < POLICIES || !over.load(Ordering::Relaxed) {
            count += 1;
            changed.webhook.set_policy(policy(count % POLICIES));
            tokio::task::yield_now().await;
        }
        count
    });
    let users = (0..USERS).map(|user| {
        let world = Arc::clone(&world);
        tokio::spawn(async move { lives(&world, user).await })
    });
    for user in join_all(users).await {
        user.unwrap();
    }
    done.store(true, Ordering::Relaxed);
    assert!(changes.await.unwrap() >= POLICIES);
    assert_eq!(world.keystone.mixed_up.load(Ordering::Relaxed), 0);
    let accepted = world.accepted.load(Ordering::Relaxed);
    assert!(accepted >= USERS * ROUNDS, "{accepted}");
    // A revoked token is accepted until the end of its time in the cache.
    let token = world.login(0, ROUNDS, 3_600_000);
    assert!(world.is_accepted(&token, 0).await);
    world.revoke(&token);
    let ends = async {
        while world.is_accepted(&token, 0).await {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), ends)
        .await
        .unwrap();
    assert!(world.refused.load(Ordering::Relaxed) > 0);
    nothing_tells(&world, &log);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sixty_four_who_ask_about_a_new_token_are_one_request() {
    let world = Arc::new(World::new(Duration::from_secs(3600)));
    for round in 0..20 {
        let token = world.login(1, round, 3_600_000);
        let all = (0..64).map(|_| {
            let (world, token) = (Arc::clone(&world), token.clone());
            tokio::spawn(async move { world.is_accepted(&token, 1).await })
        });
        let all = join_all(all).await;
        assert!(all.into_iter().all(|accepted| accepted.unwrap()));
        assert_eq!(world.keystone.asked.lock()[&token], 1);
    }
}

fn nothing_tells(world: &World, log: &Log) {
    let text = log.text();
    assert!(text.contains("a token is refused"), "the log is kept");
    let line = text.lines().find(|line| line.contains(CANARY));
    assert_eq!(line, None);
    let mut registry = prometheus_client::registry::Registry::default();
    world.metrics.register(&mut registry);
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    assert!(text.contains("authenticated") && !text.contains(CANARY));
    assert!(!format!("{:?}", world.webhook).contains(CANARY));
}
