//! Keystone over HTTP, asked by the token itself, as the Go program does.

use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{HeaderMap, HeaderValue, Request, StatusCode, header};
use openstack::transport::{Limits, SharedTransport};
use secrecy::{ExposeSecret, SecretString};

use super::answer::{Groups, Validated};
use super::{Group, Identity, Keystone, NotValidated};
use crate::metrics::Metrics;

/// The largest answer, in bytes: tokens are asked for without the catalog.
const LARGEST: usize = 1 << 20;
/// The longest word of an answer in a reason.
const WORDS: usize = 200;

/// Keystone at a URL. Each request has the token of its own user, and nothing is shared between requests but connections.
#[derive(Debug)]
pub struct Http {
    url: String,
    transport: SharedTransport,
    timeout: Duration,
    user_agent: HeaderValue,
    metrics: Metrics,
}

impl Http {
    /// Keystone at `url`, which [`normal_url`] returned. `timeout` is for each request.
    pub fn new(
        url: String,
        transport: SharedTransport,
        timeout: Duration,
        user_agent: HeaderValue,
        metrics: Metrics,
    ) -> Self {
        Self {
            url,
            transport,
            timeout,
            user_agent,
            metrics,
        }
    }

    async fn identity(&self, token: &SecretString) -> Result<Identity, NotValidated> {
        let answer = self.get("/auth/tokens?nocatalog", token, true).await?;
        let (headers, body) = match answer.status {
            StatusCode::OK | StatusCode::NON_AUTHORITATIVE_INFORMATION => {
                (answer.headers, answer.body)
            }
            StatusCode::UNAUTHORIZED | StatusCode::NOT_FOUND => {
                return Err(NotValidated::Refused(
                    "Keystone does not accept the token: it is unknown, expired or revoked"
                        .to_owned(),
                ));
            }
            StatusCode::FORBIDDEN => {
                return Err(NotValidated::Refused(
                    "Keystone forbids the token to be validated by itself".to_owned(),
                ));
            }
            _ => return Err(answer.outage()),
        };
        let subject = headers.get("x-subject-token");
        if subject.is_some_and(|it| it.as_bytes() != token.expose_secret().as_bytes()) {
            return Err(outage("Keystone has answered for another token"));
        }
        let validated: Validated = json(&body)?;
        let (identity, is_federated) = validated.identity().map_err(|why| {
            outage(&format!(
                "the answer of Keystone is not that to a token: {why}"
            ))
        })?;
        if is_federated {
            return Ok(identity);
        }
        let groups = self.groups(&identity.user.id, token).await?;
        Ok(Identity { groups, ..identity })
    }

    /// The groups of the user, none if the cloud keeps them from its users.
    async fn groups(&self, user: &str, token: &SecretString) -> Result<Vec<Group>, NotValidated> {
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
        if !user.chars().all(is_plain) {
            return Err(outage("the id of the user is none"));
        }
        let answer = self
            .get(&format!("/users/{user}/groups"), token, false)
            .await?;
        match answer.status {
            StatusCode::OK => Ok(json::<Groups>(&answer.body)?.groups()),
            StatusCode::FORBIDDEN | StatusCode::NOT_FOUND => {
                tracing::debug!(
                    "Keystone does not list the groups of a user: it counts as in none"
                );
                Ok(Vec::new())
            }
            StatusCode::UNAUTHORIZED => Err(NotValidated::Refused(
                "Keystone does not accept the token any more".to_owned(),
            )),
            _ => Err(answer.outage()),
        }
    }

    async fn get(
        &self,
        path: &str,
        token: &SecretString,
        is_subject: bool,
    ) -> Result<Answer, NotValidated> {
        let none = |_| NotValidated::Refused("this is no token of Keystone".to_owned());
        let mut secret = HeaderValue::from_str(token.expose_secret()).map_err(none)?;
        secret.set_sensitive(true);
        let mut request = Request::get(format!("{}{path}", self.url))
            .header(header::ACCEPT, "application/json")
            .header(header::USER_AGENT, &self.user_agent)
            .header("x-auth-token", &secret);
        if is_subject {
            request = request
                .header("x-subject-token", secret)
                // Without it, Keystone denies that there are tokens with access rules.
                .header("openstack-identity-access-rules", "1.0");
        }
        let request = request.body(Bytes::new());
        let request = request.map_err(|error| outage(&format!("the URL of Keystone: {error}")))?;
        let limits = Limits {
            time: self.timeout,
            body: LARGEST,
            fault: LARGEST,
        };
        let answered = self.transport.send(request, limits).await;
        let status = answered
            .as_ref()
            .map_or(0, |answer| answer.status().as_u16());
        self.metrics.keystone(status);
        let answered =
            answered.map_err(|error| outage(&format!("Keystone cannot be reached: {error}")))?;
        let (parts, body) = answered.into_parts();
        Ok(Answer {
            status: parts.status,
            headers: parts.headers,
            body,
        })
    }
}

impl Keystone for Http {
    fn validate(&self, token: SecretString) -> BoxFuture<'_, Result<Identity, NotValidated>> {
        async move { self.identity(&token).await }.boxed()
    }
}

struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

impl Answer {
    /// That Keystone answers something that says nothing of the token. Its body is not repeated: a proxy may put headers of the
    /// request in there.
    fn outage(&self) -> NotValidated {
        let value = self.headers.get(header::RETRY_AFTER);
        let seconds = value.and_then(|value| value.to_str().ok()?.trim().parse().ok());
        NotValidated::Outage {
            reason: format!("Keystone answers {}", self.status),
            retry_after: seconds.map(Duration::from_secs),
        }
    }
}

fn json<T: serde::de::DeserializeOwned>(body: &Bytes) -> Result<T, NotValidated> {
    serde_json::from_slice(body).map_err(|error| {
        let mut words = error.to_string();
        words.retain(|letter| !letter.is_control());
        let words: String = words.chars().take(WORDS).collect();
        outage(&format!(
            "the answer of Keystone is not that to a token: {words}"
        ))
    })
}

fn outage(reason: &str) -> NotValidated {
    NotValidated::Outage {
        reason: reason.to_owned(),
        retry_after: None,
    }
}

/// A URL of Keystone with the path of its version 3, whatever path there is before it.
///
/// # Errors
/// What is no http or https URL, or has a user, a query or a fragment.
pub fn normal_url(url: &str) -> Result<String, String> {
    let wrong = |why: &str| {
        format!("the URL of Keystone {why}: write it as https://keystone.example.org/identity/v3")
    };
    let parsed: http::Uri = url.trim().parse().map_err(|_| wrong("is no URL"))?;
    let scheme = parsed.scheme_str().unwrap_or_default();
    if scheme != "http" && scheme != "https" {
        return Err(wrong("is no http or https URL"));
    }
    let authority = parsed.authority().map_or("", |it| it.as_str());
    if authority.is_empty() || authority.contains('@') {
        return Err(wrong("has no host, or a user"));
    }
    if parsed.query().is_some() {
        return Err(wrong("has a query"));
    }
    let path = parsed.path().trim_end_matches('/');
    let path = path.strip_suffix("/v2.0").unwrap_or(path);
    let version = match path.ends_with("/v3") {
        true => "",
        false => "/v3",
    };
    Ok(format!("{scheme}://{authority}{path}{version}"))
}
