use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::{BoxFuture, join_all};
use futures::{FutureExt as _, StreamExt as _, stream};
use serde_json::json;

use super::*;
use crate::keystone::{Group, Named, Scope};

/// A Keystone that takes a second, and answers by the token: the user's name, or `refused`, `down`, `ends-in-SECONDS`.
#[derive(Default)]
struct Fake {
    asked: AtomicUsize,
    /// Questions for the groups of a user.
    groups: AtomicUsize,
    down: Mutex<bool>,
}

impl Keystone for Fake {
    fn validate(&self, token: SecretString) -> BoxFuture<'_, Result<Validated, NotValidated>> {
        async move {
            self.asked.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(Duration::from_secs(1)).await;
            if *self.down.lock() {
                return Err(NotValidated::Outage {
                    reason: "Keystone is down".to_owned(),
                    retry_after: None,
                });
            }
            let token = token.expose_secret();
            if token.starts_with("refused") {
                return Err(NotValidated::Refused("unknown".to_owned()));
            }
            let seconds = token
                .strip_prefix("ends-in-")
                .map_or(3600, |it| it.parse().unwrap());
            // Of one user there are several tokens.
            let token = token.split('/').next().unwrap();
            Ok(Validated {
                identity: Identity {
                    user: Named {
                        id: format!("id-of-{token}").into(),
                        name: token.into(),
                    },
                    domain: Named::default(),
                    scope: Scope::Unscoped,
                    trust: false,
                    roles: Box::default(),
                    groups: None,
                    access_rules: None,
                },
                expires_at: now() + jiff::SignedDuration::from_secs(seconds),
            })
        }
        .boxed()
    }

    fn groups<'a>(
        &'a self,
        user_id: &'a str,
        token: SecretString,
    ) -> BoxFuture<'a, Result<Option<Groups>, NotValidated>> {
        async move {
            let asked = self.groups.fetch_add(1, Ordering::Relaxed);
            let group = Group {
                group: Named {
                    id: asked.to_string().into(),
                    name: format!("of {user_id}").into(),
                },
                domain_id: Box::default(),
            };
            let may = !token.expose_secret().ends_with("/restricted");
            Ok(may.then(|| Groups::from([Arc::new(group)])))
        }
        .boxed()
    }
}

fn now() -> Timestamp {
    Timestamp::UNIX_EPOCH
}

fn tokens(options: Options) -> (Arc<Fake>, Tokens) {
    let fake = Arc::new(Fake::default());
    let keystone: Arc<dyn Keystone> = fake.clone();
    (
        fake,
        Tokens::new(keystone, options, now, Metrics::default()),
    )
}

async fn name(tokens: &Tokens, token: &str) -> Result<String, String> {
    match tokens.identify(&SecretString::from(token)).await {
        Ok(identity) => Ok(identity.user.name.to_string()),
        Err(Denied::Refused(reason)) => Err(reason.to_string()),
        Err(Denied::Unavailable { reason, busy }) => Err(format!("unavailable {busy}: {reason}")),
    }
}

async fn after(seconds: u64) {
    tokio::time::advance(Duration::from_secs(seconds)).await;
}

#[tokio::test(start_paused = true)]
async fn identities_are_kept_for_the_ttl_and_refusals_for_ten_seconds() {
    let (keystone, tokens) = tokens(Options::default());
    let asked = || keystone.asked.load(Ordering::Relaxed);
    for _ in 0..3 {
        assert_eq!(name(&tokens, "alice").await.unwrap(), "alice");
        assert_eq!(name(&tokens, "refused").await.unwrap_err(), "unknown");
    }
    assert_eq!(asked(), 2);
    after(11).await;
    name(&tokens, "alice").await.unwrap();
    name(&tokens, "refused").await.unwrap_err();
    assert_eq!(asked(), 3);
    after(50).await;
    name(&tokens, "alice").await.unwrap();
    assert_eq!(asked(), 4);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_kept_past_the_end_of_the_token() {
    let (keystone, tokens) = tokens(Options::default());
    let asked = || keystone.asked.load(Ordering::Relaxed);
    name(&tokens, "ends-in-5").await.unwrap();
    after(4).await;
    name(&tokens, "ends-in-5").await.unwrap();
    assert_eq!(asked(), 1);
    after(1).await;
    name(&tokens, "ends-in-5").await.unwrap();
    assert_eq!(asked(), 2);
    for token in ["ends-in-0", "ends-in--5"] {
        let refused = name(&tokens, token).await.unwrap_err();
        assert!(
            refused.contains("has expired, by the clock of this webhook"),
            "{refused}"
        );
    }
    let without = Options {
        ttl: Duration::ZERO,
        ..Options::default()
    };
    let (keystone, tokens) = self::tokens(without);
    for _ in 0..3 {
        name(&tokens, "alice").await.unwrap();
    }
    assert_eq!(keystone.asked.load(Ordering::Relaxed), 3);
}

#[tokio::test(start_paused = true)]
async fn the_groups_of_a_user_are_asked_for_once_in_a_ttl_whatever_tokens_it_has() {
    let (keystone, tokens) = tokens(Options::default());
    let asked = || {
        let count = |it: &AtomicUsize| it.load(Ordering::Relaxed);
        (count(&keystone.asked), count(&keystone.groups))
    };
    let groups = async |token: &str| {
        let identity = tokens.identify(&SecretString::from(token)).await.unwrap();
        let groups = identity.groups.iter().flat_map(|groups| groups.iter());
        groups
            .map(|it| format!("{} {}", it.group.id, it.group.name))
            .collect::<Vec<_>>()
    };
    // A token without the right to list groups says nothing of other tokens.
    assert_eq!(groups("alice/restricted").await, [""; 0]);
    assert_eq!(groups("alice/1").await, ["1 of id-of-alice"]);
    assert_eq!(groups("bob/1").await, ["2 of id-of-bob"]);
    assert_eq!(asked(), (3, 3));
    after(50).await;
    assert_eq!(groups("alice/2").await, ["1 of id-of-alice"]);
    assert_eq!(groups("alice/restricted").await, [""; 0]);
    assert_eq!(asked(), (4, 3));
    // An identity is cached no longer than its groups.
    after(10).await;
    assert_eq!(groups("alice/2").await, ["3 of id-of-alice"]);
    assert_eq!(asked(), (5, 4));
    let (keystone, tokens) = self::tokens(Options {
        ask_for_groups: false,
        ..Options::default()
    });
    let identity = tokens.identify(&"alice".to_owned().into()).await.unwrap();
    assert_eq!(identity.groups, None);
    assert_eq!(keystone.groups.load(Ordering::Relaxed), 0);
}

#[tokio::test(start_paused = true)]
async fn many_who_ask_about_a_token_are_one_question() {
    let (keystone, tokens) = tokens(Options::default());
    let all = join_all((0..64).map(|_| name(&tokens, "alice"))).await;
    assert!(all.iter().all(|name| name.as_deref() == Ok("alice")));
    assert_eq!(keystone.asked.load(Ordering::Relaxed), 1);
    assert!(tokens.flights.lock().is_empty());
    // Whoever asks first may go away.
    let first = tokio::time::timeout(Duration::from_millis(500), name(&tokens, "bob"));
    let (first, second) = tokio::join!(first, name(&tokens, "bob"));
    assert!(first.is_err());
    assert_eq!(second.unwrap(), "bob");
}

#[tokio::test(start_paused = true)]
async fn each_token_has_its_own_identity_however_many_ask_at_once() {
    let options = Options {
        new_per_second: 10_000,
        ..Options::default()
    };
    let (_, tokens) = tokens(options);
    let asked = (0..3000)
        .map(|number| format!("user-{}", number % 300))
        .collect::<Vec<_>>();
    let all = join_all(asked.iter().map(|token| name(&tokens, token))).await;
    for (token, name) in asked.iter().zip(all) {
        assert_eq!(name.as_ref(), Ok(token));
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_no_token_of_keystone_is_refused_without_asking() {
    let (keystone, tokens) = tokens(Options::default());
    let jwt = |claims: serde_json::Value| {
        let part = |value: &serde_json::Value| URL_SAFE_NO_PAD.encode(value.to_string());
        format!("{}.{}.c2ln", part(&json!({"alg": "RS256"})), part(&claims))
    };
    let long = "a".repeat(64 << 10);
    for (token, words) in [
        ("", "is empty"),
        (long.as_str(), "longer than any"),
        ("a b", "characters"),
        ("a\nb", "characters"),
        ("ä", "characters"),
        (
            &jwt(
                json!({"iss": "https://kubernetes.default.svc", "sub": "system:serviceaccount:a:b"}),
            ),
            "of the cluster",
        ),
    ] {
        let refused = name(&tokens, token).await.unwrap_err();
        assert!(refused.contains(words), "{refused}");
    }
    assert_eq!(keystone.asked.load(Ordering::Relaxed), 0);
    // JWS tokens of Keystone have no issuer, and what only looks like one is asked about.
    let of_keystone = jwt(json!({"sub": "u", "openstack_methods": ["password"], "iss": "x"}));
    for token in [
        &of_keystone,
        "eyJ.x.y",
        "eyJ.e30.y",
        "gAAAAA.b.c",
        "eyJ.W10.a",
    ] {
        assert!(name(&tokens, token).await.is_ok(), "{token}");
    }
}

#[tokio::test(start_paused = true)]
async fn new_tokens_are_limited_and_known_ones_are_not() {
    let options = Options {
        new_per_second: 5,
        ..Options::default()
    };
    let (keystone, tokens) = tokens(options);
    name(&tokens, "alice").await.unwrap();
    after(10).await;
    let names: Vec<String> = (0..20).map(|number| format!("refused-{number}")).collect();
    let all = join_all(names.iter().map(|token| name(&tokens, token))).await;
    let busy = all.iter().filter(|it| matches!(it, Err(reason) if reason.starts_with("unavailable true: there are too many"))).count();
    assert_eq!(busy, 15);
    assert_eq!(keystone.asked.load(Ordering::Relaxed), 6);
    assert_eq!(name(&tokens, "alice").await.unwrap(), "alice");
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_wrong_tokens_does_not_drive_out_users() {
    let options = Options {
        entries: 100,
        new_per_second: 100_000,
        ..Options::default()
    };
    let (keystone, tokens) = tokens(options);
    name(&tokens, "alice").await.unwrap();
    let names: Vec<String> = (0..1000)
        .map(|number| format!("refused-{number}"))
        .collect();
    join_all(names.iter().map(|token| name(&tokens, token))).await;
    let asked = keystone.asked.load(Ordering::Relaxed);
    name(&tokens, "alice").await.unwrap();
    assert_eq!(keystone.asked.load(Ordering::Relaxed), asked);
}

#[tokio::test(start_paused = true)]
async fn while_keystone_is_down_known_users_go_on_and_others_are_told_at_once() {
    let (keystone, tokens) = tokens(Options::default());
    name(&tokens, "alice").await.unwrap();
    *keystone.down.lock() = true;
    assert_eq!(tokens.outage(), None);
    for number in 0..3 {
        let error = name(&tokens, &format!("new-{number}")).await.unwrap_err();
        assert_eq!(error, "unavailable false: Keystone is down");
    }
    assert_eq!(tokens.outage().as_deref(), Some("Keystone is down"));
    let (asked, begun) = (keystone.asked.load(Ordering::Relaxed), Instant::now());
    for number in 0..100 {
        name(&tokens, &format!("newer-{}", number % 50))
            .await
            .unwrap_err();
        assert_eq!(name(&tokens, "alice").await.unwrap(), "alice");
    }
    assert_eq!(
        (keystone.asked.load(Ordering::Relaxed), begun.elapsed()),
        (asked, Duration::ZERO)
    );
    // Nobody is known for longer than otherwise.
    after(60).await;
    assert!(name(&tokens, "alice").await.is_err());
    *keystone.down.lock() = false;
    after(60).await;
    assert_eq!(name(&tokens, "alice").await.unwrap(), "alice");
    assert_eq!(tokens.outage(), None);
    // An outage is not remembered as a refusal.
    assert_eq!(name(&tokens, "new-1").await.unwrap(), "new-1");
}

/// Size in bytes of each of 10 000 identities of tokens, by structure: the entries, and one copy of each shared part.
async fn bytes_for_each_of(users: usize) -> usize {
    const TOKENS: usize = 10_000;
    let (_, tokens) = tokens(Options {
        ttl: Duration::from_secs(36_000),
        new_per_second: 1_000_000,
        ..Options::default()
    });
    let texts: Vec<String> = (0..TOKENS)
        .map(|it| format!("{:032x}/{it}", it % users))
        .collect();
    let identities = stream::iter(&texts).map(|text| async {
        let identity = tokens.identify(&SecretString::from(text.as_str())).await;
        identity.unwrap()
    });
    let all: Vec<_> = identities.buffered(users.min(64)).collect().await;
    let distinct: std::collections::BTreeMap<_, _> =
        all.iter().map(|it| (Arc::as_ptr(it), it)).collect();
    assert_eq!(distinct.len(), users);
    let shared: usize = distinct.values().map(|it| it.size()).sum();
    shared / TOKENS + Cache::<Arc<Identity>>::ENTRY
}

#[tokio::test(start_paused = true)]
async fn tokens_of_one_user_share_what_is_known_of_it() {
    let (few, many) = (bytes_for_each_of(8).await, bytes_for_each_of(10_000).await);
    assert!(few <= 75, "{few} bytes for each token of a few users");
    assert!(
        many <= 435,
        "{many} bytes for each token of a user of its own, with a group of its own"
    );
}

#[test]
fn nothing_prints_a_token() {
    let (_, tokens) = tokens(Options::default());
    assert!(!format!("{tokens:?}").contains("keystone:"));
}
