//! Tokens and their identities: Keystone's answers are cached for a while, and requests to Keystone kept to a minimum
//! (docs/adr/0071).

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use parking_lot::Mutex;
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest as _, Sha256};
use tokio::sync::{OnceCell, Semaphore};
use tokio::time::Instant;

use self::cache::Cache;
use self::circuit::Circuit;
use self::rate::Rate;
use self::shared::Shared;
use crate::keystone::{Group, Groups, Identity, Keystone, NotValidated, Validated};
use crate::metrics::Metrics;

mod cache;
mod circuit;
mod rate;
mod shared;
#[cfg(test)]
mod tests;

/// Maximum length of a token in bytes. Keystone's tokens have some hundred.
const LONGEST: usize = 8 << 10;
/// Maximum number of requests to Keystone at a time.
const AT_ONCE: usize = 64;
/// Maximum number of tokens that wait for Keystone.
const WAITING: usize = 1024;

/// Durations and limits of the caches.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Time for which an identity is cached; never past the expiry of its token. Zero: not at all.
    pub ttl: Duration,
    /// Time for which a refusal is cached.
    pub refused_ttl: Duration,
    /// Maximum number of cached identities, and of cached refusals.
    pub entries: usize,
    /// Maximum size of the cached identities in bytes.
    pub bytes: usize,
    /// Maximum number of new tokens per second in requests to Keystone.
    pub new_per_second: u32,
    /// True to ask Keystone for the groups of users; otherwise, users have only the groups of their tokens.
    pub ask_for_groups: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            ttl: Duration::from_secs(60),
            refused_ttl: Duration::from_secs(10),
            entries: 10_000,
            bytes: 32 << 20,
            new_per_second: 100,
            ask_for_groups: true,
        }
    }
}

/// Reason why a token has no identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Denied {
    /// The token is invalid.
    Refused(Arc<str>),
    /// The identity is unknown at the moment.
    Unavailable {
        /// Reason, for users.
        reason: Arc<str>,
        /// True if the cause is the number of tokens, and not Keystone.
        busy: bool,
    },
}

type Key = [u8; 32];
type Outcome = Result<Arc<Identity>, Denied>;

/// Identities of tokens.
pub struct Tokens {
    keystone: Arc<dyn Keystone>,
    options: Options,
    now: fn() -> Timestamp,
    identities: Mutex<Cache<Arc<Identity>>>,
    /// [`Groups`] by the ids of users, each with the end of its time in the cache.
    groups: Mutex<Cache<(Groups, Instant)>>,
    /// Common parts of the answers.
    shared: Mutex<(Shared<Identity>, Shared<Group>)>,
    refusals: Mutex<Cache<Arc<str>>>,
    flights: Mutex<HashMap<Key, Arc<OnceCell<Outcome>>>>,
    rate: Mutex<Rate>,
    circuit: Mutex<Circuit>,
    at_once: Semaphore,
    metrics: Metrics,
}

impl Tokens {
    /// Tokens of a Keystone. `now` is the time of day, for comparison with the expiry of tokens.
    pub fn new(
        keystone: Arc<dyn Keystone>,
        options: Options,
        now: fn() -> Timestamp,
        metrics: Metrics,
    ) -> Self {
        Self {
            keystone,
            options,
            now,
            identities: Mutex::new(Cache::new(options.entries, options.bytes)),
            groups: Mutex::new(Cache::new(options.entries, options.bytes)),
            shared: Mutex::default(),
            refusals: Mutex::new(Cache::new(options.entries, options.bytes)),
            flights: Mutex::default(),
            rate: Mutex::new(Rate::new(options.new_per_second)),
            circuit: Mutex::default(),
            at_once: Semaphore::new(AT_ONCE),
            metrics,
        }
    }

    /// Identity of a token.
    ///
    /// # Errors
    /// [`Denied`]: the token is refused, or its identity is unknown.
    pub async fn identify(&self, token: &SecretString) -> Outcome {
        if let Some(reason) = cannot_be(token.expose_secret()) {
            self.metrics.token("none");
            return Err(Denied::Refused(reason.into()));
        }
        let key: Key = Sha256::digest(token.expose_secret().as_bytes()).into();
        if let Some(known) = self.known(&key) {
            self.metrics.token("cache");
            return known;
        }
        let flight = self.flight(key)?;
        // If the asking task is dropped, the next one asks.
        let outcome = flight.get_or_init(|| self.ask(key, token)).await.clone();
        let mut flights = self.flights.lock();
        if flights.get(&key).is_some_and(|it| Arc::ptr_eq(it, &flight)) {
            flights.remove(&key);
        }
        outcome
    }

    /// Reason why Keystone is not asked at the moment; `None` if it is.
    pub fn outage(&self) -> Option<Arc<str>> {
        self.circuit.lock().open()
    }

    fn known(&self, key: &Key) -> Option<Outcome> {
        let now = Instant::now();
        if let Some(identity) = self.identities.lock().get(key, now) {
            return Some(Ok(identity));
        }
        let refused = self.refusals.lock().get(key, now)?;
        Some(Err(Denied::Refused(refused)))
    }

    /// Running question about a token, or a new one.
    fn flight(&self, key: Key) -> Result<Arc<OnceCell<Outcome>>, Denied> {
        let mut flights = self.flights.lock();
        if let Some(flight) = flights.get(&key) {
            return Ok(Arc::clone(flight));
        }
        // Questions without a remaining asker would stay for ever.
        if flights.len() >= WAITING {
            flights.retain(|_, flight| Arc::strong_count(flight) > 1);
        }
        if flights.len() >= WAITING || !self.rate.lock().take(Instant::now()) {
            self.metrics.token("none");
            return Err(Denied::Unavailable {
                reason: "there are too many new tokens".into(),
                busy: true,
            });
        }
        let flight = Arc::default();
        flights.insert(key, Arc::clone(&flight));
        Ok(flight)
    }

    async fn ask(&self, key: Key, token: &SecretString) -> Outcome {
        // The answer may have come between the look at the cache and the start of this question.
        if let Some(known) = self.known(&key) {
            return known;
        }
        if let Some(reason) = self.circuit.lock().enter(Instant::now()) {
            self.metrics.token("none");
            return Err(Denied::Unavailable {
                reason,
                busy: false,
            });
        }
        self.metrics.token("keystone");
        // The semaphore is never closed, so this does not fail.
        let _permit = self.at_once.acquire().await;
        let answer = self.validate(token).await;
        let now = Instant::now();
        match answer {
            Ok((validated, until)) => {
                self.circuit.lock().answered();
                self.keep(key, validated, until, now)
            }
            Err(NotValidated::Refused(reason)) => {
                self.circuit.lock().answered();
                Err(self.refuse(key, reason.into(), now))
            }
            Err(NotValidated::Outage {
                reason,
                retry_after,
            }) => {
                let reason: Arc<str> = reason.into();
                let mut circuit = self.circuit.lock();
                circuit.failed(Arc::clone(&reason), retry_after, now);
                Err(Denied::Unavailable {
                    reason,
                    busy: false,
                })
            }
        }
    }

    /// Identity of a token with the groups of its user, and the end of its time in the cache at the latest:
    /// identities end with their groups, so that groups are never older than an identity may be.
    async fn validate(&self, token: &SecretString) -> Result<(Validated, Instant), NotValidated> {
        let mut validated = self.keystone.validate(token.clone()).await?;
        let identity = &mut validated.identity;
        let now = Instant::now();
        let until = now + self.options.ttl;
        if identity.groups.is_some() || !self.options.ask_for_groups {
            identity.groups = identity.groups.take().map(|it| self.share(&it));
            return Ok((validated, until));
        }
        let user: Key = Sha256::digest(identity.user.id.as_bytes()).into();
        let known = self.groups.lock().get(&user, now);
        if let Some((groups, until)) = known {
            identity.groups = Some(groups);
            return Ok((validated, until));
        }
        let asked = self.keystone.groups(&identity.user.id, token.clone());
        identity.groups = asked.await?.map(|it| self.share(&it));
        // One token of a user may list groups that another one may not.
        if let Some(groups) = &identity.groups {
            let (size, value) = (identity.size(), (Arc::clone(groups), until));
            self.groups.lock().put(user, value, size, until, now);
        }
        Ok((validated, until))
    }

    /// Same groups, with one copy of each group shared with others.
    fn share(&self, groups: &Groups) -> Groups {
        let mut shared = self.shared.lock();
        groups
            .iter()
            .map(|it| shared.1.of(Group::clone(it)))
            .collect()
    }

    fn keep(&self, key: Key, validated: Validated, until: Instant, now: Instant) -> Outcome {
        let left = validated.expires_at.duration_since((self.now)());
        let left = Duration::try_from(left).unwrap_or_default();
        if left.is_zero() {
            let reason = "the token has expired, by the clock of this webhook";
            return Err(self.refuse(key, reason.into(), now));
        }
        let identity = self.shared.lock().0.of(validated.identity);
        let until = until.min(now + left);
        let size = identity.size();
        let mut identities = self.identities.lock();
        identities.put(key, Arc::clone(&identity), size, until, now);
        Ok(identity)
    }

    fn refuse(&self, key: Key, reason: Arc<str>, now: Instant) -> Denied {
        let until = now + self.options.refused_ttl;
        let mut refusals = self.refusals.lock();
        refusals.put(key, Arc::clone(&reason), reason.len(), until, now);
        Denied::Refused(reason)
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// Reason why a text is no token of Keystone, in any case.
fn cannot_be(token: &str) -> Option<&'static str> {
    if token.is_empty() {
        return Some("the token is empty");
    }
    if token.len() > LONGEST {
        return Some("the token is longer than any of Keystone");
    }
    if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Some("the token has characters that no token of Keystone has");
    }
    is_of_an_issuer(token)
        .then_some("this is a token of the cluster or of another issuer, and none of Keystone")
}

/// True for a JWT with an issuer, such as the tokens of service accounts; Keystone's tokens have none.
fn is_of_an_issuer(token: &str) -> bool {
    let mut parts = token.split('.');
    let (Some(head), Some(claims), Some(_), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return false;
    };
    if !head.starts_with("eyJ") {
        return false;
    }
    let claims = URL_SAFE_NO_PAD.decode(claims.trim_end_matches('='));
    let claims = claims
        .ok()
        .and_then(|text| serde_json::from_slice(&text).ok());
    claims.is_some_and(|claims: serde_json::Value| {
        claims.get("iss").is_some() && claims.get("openstack_methods").is_none()
    })
}
