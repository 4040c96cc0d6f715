//! Webhook: reviews in, answers out.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use axum::Router;
use axum::extract::rejection::BytesRejection;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use bytes::Bytes;
use parking_lot::Mutex;
use secrecy::SecretString;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::metrics::Metrics;
use crate::policy::{self, Decision, Policy};
use crate::review::{self, AccessReview, Review, TokenReview};
use crate::subject::{Attributes, Subject};
use crate::sync::Config;
use crate::tokens::{Denied, Tokens};
use crate::user;

/// Maximum size of a review in bytes.
pub const LARGEST: usize = 1 << 20;
/// Minimum time between two logs of one reason for a refusal.
const QUIET: Duration = Duration::from_secs(60);
/// Maximum number of reasons in memory for this limit.
const REASONS: usize = 100;

/// Answers reviews.
pub struct Webhook {
    tokens: Tokens,
    users: user::Options,
    /// Audiences of tokens; only the API server if empty.
    audiences: Vec<String>,
    policy: ArcSwap<Policy>,
    sync: ArcSwap<Config>,
    logins: Option<mpsc::Sender<Subject>>,
    metrics: Metrics,
    quiet: Quiet,
    domains: Mutex<Domains>,
}

/// Answer over HTTP.
#[derive(Debug)]
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// Body, in JSON.
    pub body: Vec<u8>,
}

impl Webhook {
    /// Webhook without a policy, which permits nothing.
    pub fn new(
        tokens: Tokens,
        users: user::Options,
        audiences: Vec<String>,
        metrics: Metrics,
    ) -> Self {
        Self {
            tokens,
            users,
            audiences,
            policy: ArcSwap::default(),
            sync: ArcSwap::default(),
            logins: None,
            metrics,
            quiet: Quiet::default(),
            domains: Mutex::default(),
        }
    }

    /// Sends each user after a login, with the names before the mapping of roles. Without room in the channel, users
    /// are skipped: a later login sends them.
    #[must_use]
    pub fn with_logins(self, logins: mpsc::Sender<Subject>) -> Self {
        Self {
            logins: Some(logins),
            ..self
        }
    }

    /// Sets the [`Policy`].
    pub fn set_policy(&self, policy: Policy) {
        self.policy.store(Arc::new(policy));
    }

    /// Sets the [`Config`] of the steps after a login.
    pub fn set_sync(&self, config: Config) {
        self.sync.store(Arc::new(config));
    }

    /// [`Config`] of the steps after a login.
    pub fn sync(&self) -> Arc<Config> {
        self.sync.load_full()
    }

    /// Answers the body of a request.
    pub async fn answer(&self, body: &[u8]) -> Answer {
        let begun = Instant::now();
        let (kind, result, answer) = match review::decode(body) {
            Ok(Review::Token(review)) => {
                let (result, answer) = self.token(&review).await;
                ("token", result, answer)
            }
            Ok(Review::Access(review)) => {
                let (result, answer) = self.access(&review);
                ("access", result, answer)
            }
            Err(wrong) => {
                tracing::debug!(%wrong, "a request is no review");
                let answer = failure(StatusCode::BAD_REQUEST, "BadRequest", &wrong.to_string());
                ("none", "bad", answer)
            }
        };
        self.metrics.review(kind, result, begun.elapsed());
        answer
    }

    async fn token(&self, review: &TokenReview) -> (&'static str, Answer) {
        let audiences: Vec<String> = {
            let mut asked = review.audiences.iter();
            let ours = |it: &&String| self.audiences.contains(it);
            match self.audiences.is_empty() {
                true => Vec::new(),
                false => asked.by_ref().filter(ours).cloned().collect(),
            }
        };
        if !self.audiences.is_empty() && !review.audiences.is_empty() && audiences.is_empty() {
            return self.refused(review, "the token is for none of the audiences");
        }
        let user = match self.user(&review.token).await {
            Ok(user) => user,
            Err(Denied::Refused(reason)) => return self.refused(review, &reason),
            Err(Denied::Unavailable { reason, busy }) => {
                self.quiet.log(&reason, "a token is not reviewed");
                let (status, words) = match busy {
                    true => (StatusCode::TOO_MANY_REQUESTS, "TooManyRequests"),
                    false => (StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable"),
                };
                // Without Retry-After: an API server would ask fifty times, and its client wait for all attempts.
                return ("unavailable", failure(status, words, &reason));
            }
        };
        let answer = text(review.authenticated(&user, &audiences));
        ("authenticated", answer)
    }

    /// User of a token.
    ///
    /// # Errors
    /// [`Denied`]: the token is refused, or its identity is unknown.
    pub async fn user(&self, token: &SecretString) -> Result<Subject, Denied> {
        let identity = self.tokens.identify(token).await?;
        let user = user::user(&identity, &self.users);
        let user = user.map_err(|reason| Denied::Refused(reason.into()))?;
        self.look_at_domain(&identity.domain.id);
        let sync = self.sync.load();
        let mapped = user::mapped(&user, &sync.role_mappings);
        let has_more = !sync.data_types_to_sync.is_empty();
        if let Some(logins) = self.logins.as_ref().filter(|_| has_more) {
            // A login does not wait for the steps after it.
            let _ = logins.try_send(user);
        }
        Ok(mapped)
    }

    /// [`Decision`] of the policy on a request.
    pub fn decide(&self, subject: &Subject, attributes: &Attributes) -> Decision {
        policy::decide(&self.policy.load(), subject, attributes)
    }

    fn refused(&self, review: &TokenReview, reason: &str) -> (&'static str, Answer) {
        self.quiet.log(reason, "a token is refused");
        ("refused", text(review.refused(reason)))
    }

    fn access(&self, review: &AccessReview) -> (&'static str, Answer) {
        let decision = self.decide(&review.subject, &review.attributes);
        let result = match decision.allowed {
            true => "allowed",
            false => "no opinion",
        };
        (result, text(review.answer(&decision)))
    }

    /// Warns once if users of several domains log in with names that are unique in one domain only.
    fn look_at_domain(&self, id: &str) {
        if !self.users.username.is_ambiguous() || !self.users.domains.is_empty() {
            return;
        }
        let mut domains = self.domains.lock();
        match &domains.first {
            None => domains.first = Some(id.to_owned()),
            Some(first) if first != id && !domains.warned => {
                domains.warned = true;
                tracing::error!(
                    "users of several domains of Keystone log in, and whoever administers one of them chooses names that \
                     others have: restrict them by --allowed-domains, or qualify names by --username-format"
                );
            }
            Some(_) => {}
        }
    }
}

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webhook")
            .field("tokens", &self.tokens)
            .finish_non_exhaustive()
    }
}

#[derive(Default)]
struct Domains {
    first: Option<String>,
    warned: bool,
}

/// Limit on logs of a repeated reason.
#[derive(Default)]
struct Quiet(Mutex<HashMap<String, Instant>>);

impl Quiet {
    fn log(&self, reason: &str, what: &str) {
        let now = Instant::now();
        let mut known = self.0.lock();
        known.retain(|_, at| now.duration_since(*at) < QUIET);
        if known.contains_key(reason) || known.len() >= REASONS {
            return;
        }
        known.insert(reason.to_owned(), now);
        tracing::warn!(
            reason,
            "{what}; more of the same in the next minute are counted only"
        );
    }
}

/// Routes of reviews, and of nothing else.
pub fn router(webhook: Arc<Webhook>, paths: &[String]) -> Router {
    let mut router = Router::new();
    for path in paths {
        router = router.route(path, post(reviewed));
    }
    router
        .layer(DefaultBodyLimit::max(LARGEST))
        .with_state(webhook)
}

async fn reviewed(
    State(webhook): State<Arc<Webhook>>,
    body: Result<Bytes, BytesRejection>,
) -> Response {
    match body {
        Ok(body) => webhook.answer(&body).await.into_response(),
        Err(rejection) => rejection.into_response(),
    }
}

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        let mut response = (self.status, self.body).into_response();
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        );
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }
}

/// `/healthz` and `/livez`: the process answers. `/readyz`: 503 with the reason while Keystone does not answer.
pub fn health(webhook: Arc<Webhook>) -> Router {
    let ready = |State(webhook): State<Arc<Webhook>>| async move {
        match webhook.tokens.outage() {
            None => (StatusCode::OK, "ok".to_owned()),
            Some(reason) => (
                StatusCode::SERVICE_UNAVAILABLE,
                format!("{reason}; users whose tokens are known go on"),
            ),
        }
    };
    Router::new()
        .route("/healthz", get(|| async { "ok" }))
        .route("/livez", get(|| async { "ok" }))
        .route("/readyz", get(ready))
        .with_state(webhook)
}

fn text(body: serde_json::Result<Vec<u8>>) -> Answer {
    match body {
        Ok(body) => Answer {
            status: StatusCode::OK,
            body,
        },
        Err(error) => failure(
            StatusCode::INTERNAL_SERVER_ERROR,
            "InternalError",
            &error.to_string(),
        ),
    }
}

/// Status of Kubernetes, with a message that API servers log.
fn failure(status: StatusCode, reason: &str, message: &str) -> Answer {
    let body = json!({
        "apiVersion": "v1",
        "kind": "Status",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": status.as_u16(),
    });
    Answer {
        status,
        body: body.to_string().into_bytes(),
    }
}

#[cfg(test)]
mod tests;
