//! Keystone by the [`Session`]s of `openstack`, with the token itself, as in the Go program, or with a service user.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{HeaderValue, Request, Response, StatusCode};
use openstack::SubjectToken;
use openstack::transport::{Limits, SharedTransport, Transport, TransportError};
use openstack::{CloudConfig, Error, ErrorKind, Session, SessionOptions, Timeouts};
use secrecy::SecretString;

use super::{Group, Groups, Keystone, Named, NotValidated, Validated, answer};
use crate::metrics::Metrics;

/// Maximum size of an answer in bytes: tokens are requested without the catalog.
const LARGEST: usize = 1 << 20;
/// Maximum number of requests of a session at a time; the number of tokens in validation is limited elsewhere.
const AT_ONCE: usize = 64;
const UNKNOWN: &str = "Keystone does not accept the token: it is unknown, expired or revoked";

/// Keystone at a URL. Each request has the token of its own user, or of the service user; requests share only
/// connections.
pub struct Http {
    url: String,
    options: SessionOptions,
    /// Session with the tokens of others, without a login.
    nobody: Session,
    service: ArcSwapOption<Session>,
}

impl Http {
    /// Keystone at `url`, a result of [`normal_url`]. `timeout` is for each request.
    ///
    /// # Errors
    /// Errors of [`Session::new`].
    pub fn new(
        url: String,
        transport: SharedTransport,
        timeout: Duration,
        user_agent: &HeaderValue,
        metrics: Metrics,
    ) -> openstack::Result<Self> {
        let transport: SharedTransport = Arc::new(Counted { transport, metrics });
        let options = SessionOptions {
            transport: Some(transport),
            timeouts: Timeouts {
                read: timeout,
                list: timeout,
                write: timeout,
            },
            most_at_once: AT_ONCE,
            user_agent: user_agent.to_str().ok().map(str::to_owned),
            ..SessionOptions::default()
        };
        let nobody = Session::new(CloudConfig::of_keystone("keystone", &url), &options)?;
        Ok(Self {
            url,
            options,
            nobody,
            service: ArcSwapOption::empty(),
        })
    }

    /// Validates tokens with the login of a service user from now on. Only the credential counts: URL, authorities
    /// and time are taken from this Keystone.
    ///
    /// # Errors
    /// Errors of [`Session::new`].
    pub fn set_service_user(&self, cloud: CloudConfig) -> openstack::Result<()> {
        let cloud = CloudConfig {
            auth_url: self.url.clone(),
            ..cloud
        };
        let session = Session::new(cloud, &self.options)?;
        self.service.store(Some(Arc::new(session)));
        Ok(())
    }

    /// [`Session`] of the service user, if any.
    pub fn service_user(&self) -> Option<Arc<Session>> {
        self.service.load_full()
    }

    async fn validated(&self, token: SecretString) -> Result<Validated, NotValidated> {
        let token = SubjectToken::from(token);
        let described = match self.service_user() {
            Some(session) => {
                let described = session.identity().describe(&token).await;
                described.map_err(|error| {
                    if error.kind() == ErrorKind::Denied {
                        self.log_in_anew(&session);
                    }
                    told_the_service_user(&error)
                })
            }
            None => {
                let described = self.nobody.identity().describe_by_itself(&token).await;
                described.map_err(|error| told_the_token(&error))
            }
        };
        answer::validated(described?).map_err(|why| {
            outage(format!(
                "the answer of Keystone is not that to a token: {why}"
            ))
        })
    }

    /// Replaces the session, so that the next request logs in: a token has the user's roles at the time of the login.
    fn log_in_anew(&self, session: &Arc<Session>) {
        if let Ok(new) = Session::new(session.config().clone(), &self.options) {
            // Another task may have replaced the session already.
            self.service.compare_and_swap(session, Some(Arc::new(new)));
        }
    }

    /// Requested with the token of the user, who has the right to list the groups: a service user would need more
    /// rights.
    async fn groups_of(
        &self,
        user_id: &str,
        token: SecretString,
    ) -> Result<Option<Groups>, NotValidated> {
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
        if !user_id.chars().all(is_plain) {
            return Err(outage("the id of the user is none".to_owned()));
        }
        let token = SubjectToken::from(token);
        let identity = self.nobody.identity();
        let kept = [Some(StatusCode::FORBIDDEN), Some(StatusCode::NOT_FOUND)];
        match identity.groups_by_itself(user_id, &token).await {
            Ok(groups) => Ok(Some(groups.into_iter().map(group).map(Arc::new).collect())),
            Err(error) if kept.contains(&error.status()) => {
                tracing::debug!(
                    "Keystone does not list the groups of a user: it counts as in none"
                );
                Ok(None)
            }
            Err(error) if error.kind() == ErrorKind::Unauthenticated => Err(NotValidated::Refused(
                "Keystone does not accept the token any more".to_owned(),
            )),
            Err(error) => Err(unanswered(&error)),
        }
    }
}

impl std::fmt::Debug for Http {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Http")
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

impl Keystone for Http {
    fn validate(&self, token: SecretString) -> BoxFuture<'_, Result<Validated, NotValidated>> {
        self.validated(token).boxed()
    }

    fn groups<'a>(
        &'a self,
        user_id: &'a str,
        token: SecretString,
    ) -> BoxFuture<'a, Result<Option<Groups>, NotValidated>> {
        self.groups_of(user_id, token).boxed()
    }
}

/// Transport that counts requests, with a lower limit on the size of answers than other services have.
#[derive(Debug)]
struct Counted {
    transport: SharedTransport,
    metrics: Metrics,
}

impl Transport for Counted {
    fn send(
        &self,
        request: Request<Bytes>,
        limits: Limits,
    ) -> BoxFuture<'static, Result<Response<Bytes>, TransportError>> {
        let limits = Limits {
            body: limits.body.min(LARGEST),
            ..limits
        };
        let (sent, metrics) = (self.transport.send(request, limits), self.metrics.clone());
        async move {
            let answered = sent.await;
            let status = answered.as_ref().map_or(0, |it| it.status().as_u16());
            metrics.keystone(status);
            answered
        }
        .boxed()
    }
}

/// Meaning of an [`Error`] for a token that validated itself.
fn told_the_token(error: &Error) -> NotValidated {
    match error.kind() {
        ErrorKind::Unauthenticated | ErrorKind::Absent => NotValidated::Refused(UNKNOWN.to_owned()),
        ErrorKind::Denied => {
            NotValidated::Refused("Keystone forbids the token to be validated by itself".to_owned())
        }
        _ => unanswered(error),
    }
}

/// Meaning of an [`Error`] for a token validated by the service user: no such token, or unknown.
fn told_the_service_user(error: &Error) -> NotValidated {
    let status = error.status().map(|it| format!(" ({it})"));
    let status = status.unwrap_or_default();
    match error.kind() {
        ErrorKind::Unauthenticated | ErrorKind::Denied | ErrorKind::Invalid if error.is_login() => {
            outage(format!("the service user cannot log in{status}"))
        }
        ErrorKind::Absent => NotValidated::Refused(UNKNOWN.to_owned()),
        ErrorKind::Denied => outage(
            "Keystone forbids the service user to ask about tokens: it needs the role `service`, or to read the whole cloud"
                .to_owned(),
        ),
        ErrorKind::Unauthenticated => {
            outage(format!("Keystone does not accept the service user{status}"))
        }
        _ => unanswered(error),
    }
}

/// Error for an answer of Keystone without a verdict on the token, or for no answer at all. Keystone's words are not
/// repeated: a proxy may quote headers of the request.
fn unanswered(error: &Error) -> NotValidated {
    let reason = match (error.kind(), error.status()) {
        (_, Some(status)) => format!("Keystone answers {status}"),
        (ErrorKind::Unreachable, None) => format!("Keystone: {}", error.message()),
        (ErrorKind::Protocol, None) => format!(
            "the answer of Keystone is not that to a token: {}",
            error.message()
        ),
        (_, None) => "Keystone cannot be asked".to_owned(),
    };
    NotValidated::Outage {
        reason,
        retry_after: error.retry_after(),
    }
}

fn outage(reason: String) -> NotValidated {
    NotValidated::Outage {
        reason,
        retry_after: None,
    }
}

fn group(it: openstack::identity::Group) -> Group {
    Group {
        group: Named {
            id: it.id.into(),
            name: it.name.into(),
        },
        domain_id: it.domain_id.into(),
    }
}

/// URL of Keystone with the path of version 3, after any given path.
///
/// # Errors
/// Anything but an http or https URL without a user, a query and a fragment.
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
