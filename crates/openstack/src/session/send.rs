//! Sending of requests: token, headers, retries, errors, metrics and tracing.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{HeaderValue, Method, StatusCode, header};
use secrecy::ExposeSecret;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::Instant;

use super::auth::{identity_url, url_path};
use super::{Session, Token, catalog};
use crate::answer;
use crate::call::{Call, Class};
use crate::error::{Asked, Error, ErrorKind, Result, retry_after};
use crate::metrics::RequestLabels;
use crate::service::Service;
use crate::transport::Limits;

/// Maximum wait within a call; the caller gets longer waits as an error.
const LONGEST_WAIT: Duration = Duration::from_secs(1);
/// Waits before the second and third attempt when the cloud requests none.
const BACKOFF: [Duration; 2] = [Duration::from_millis(100), Duration::from_millis(400)];

/// Request without a response.
struct Failure {
    error: Error,
    never_sent: bool,
    /// True if a repetition would fail in the same way: after a timeout, or with an answer that is too large.
    repeats: bool,
}

/// Answer to a request.
pub(super) struct Answered {
    pub(super) response: http::Response<Bytes>,
    /// Path of the request's URL.
    pub(super) path: String,
    /// Host and port of the request's URL.
    pub(super) host: String,
    /// Time at which the request was sent.
    pub(super) asked: Instant,
}

impl Answered {
    /// Returns the error in the answer.
    pub(super) fn error(&self, service: Service, method: &Method) -> Error {
        let asked = Asked {
            service,
            method,
            path: &self.path,
            host: &self.host,
        };
        Error::from_response(&asked, &self.response)
    }
}

impl Session {
    /// Returns the object under `key` of the answer.
    pub(crate) async fn one<T: DeserializeOwned>(&self, call: Call, key: &str) -> Result<T> {
        let (service, method, path) = (call.service, call.method.clone(), call.path.clone());
        let mut value = self.send(call).await?;
        let inner = if key.is_empty() {
            Some(&mut value)
        } else {
            value.get_mut(key)
        };
        let protocol =
            |message| Error::new(ErrorKind::Protocol, message).at(service, &method, &path);
        let Some(inner) = inner else {
            return Err(protocol(format!("the answer has no `{key}`")));
        };
        answer::typed(inner.take())
            .map_err(|error| protocol(format!("`{key}` is not as expected: {error}")))
    }

    /// Sends a call whose answer is ignored.
    pub(crate) async fn done(&self, call: Call) -> Result<()> {
        self.send(call).await.map(|_| ())
    }

    /// Returns the answer of a call as JSON; null if it has no body.
    pub(crate) async fn send(&self, call: Call) -> Result<Value> {
        self.send_sized(call).await.map(|(value, _)| value)
    }

    /// Returns the path of a service's API; `None` for a service that the catalog lacks.
    pub(crate) fn path(&self, token: &Token, service: Service) -> Option<String> {
        let endpoint = catalog::endpoint(&self.shared.config, token, service).ok()?;
        Some(url_path(&endpoint, ""))
    }

    /// Returns the answer of a call as JSON, and the bytes of its text. Boxed, so that the code behind the call is
    /// compiled once.
    pub(super) fn send_sized(&self, call: Call) -> BoxFuture<'_, Result<(Value, usize)>> {
        self.sent(call).boxed()
    }

    async fn sent(&self, call: Call) -> Result<(Value, usize)> {
        if let Some(error) = &call.error {
            return Err(error.clone());
        }
        let token = self.valid_token().await?;
        let answered = self.attempts(&call, &token).await?;
        // The token may have been revoked before its expiry: one more attempt, with a new one.
        let answered = if answered.response.status() == StatusCode::UNAUTHORIZED {
            let token = self.replace_token(&token).await?;
            self.attempts(&call, &token).await?
        } else {
            answered
        };
        let (status, body) = (answered.response.status(), answered.response.body());
        // Several services return their version list with status 300.
        let is_answer =
            status.is_success() || (call.root && status == StatusCode::MULTIPLE_CHOICES);
        if !is_answer {
            return Err(answered.error(call.service, &call.method));
        }
        if body.is_empty() || status == StatusCode::NO_CONTENT {
            return Ok((Value::Null, 0));
        }
        let value = answer::json(body).map_err(|why| {
            Error::new(
                ErrorKind::Protocol,
                format!("the answer of {} {why}", answered.host),
            )
            .at(call.service, &call.method, &answered.path)
        })?;
        Ok((value, body.len()))
    }

    /// Sends a request, and safely repeats it up to two times, for about a second in total.
    async fn attempts(&self, call: &Call, token: &Arc<Token>) -> Result<Answered> {
        let config = &self.shared.config;
        let mut endpoint = catalog::endpoint(config, token, call.service)
            .map_err(|error| error.at(call.service, &call.method, &call.path))?;
        if call.root {
            endpoint = root_of(&endpoint, call.service, &identity_url(config));
        }
        let path = url_path(&endpoint, &call.path);
        let mut backoff = BACKOFF.iter();
        loop {
            let request = self.request(call, &endpoint, token).map_err(|message| {
                Error::new(ErrorKind::Invalid, message).at(call.service, &call.method, &path)
            })?;
            let limits = self.shared.timeouts.limits(call.class);
            let wait = match self
                .transmit(call.service, call.route, &path, request, limits)
                .await
            {
                Ok(answered) => {
                    match wait_before_repeating(&answered.response, &call.method, &mut backoff) {
                        None => return Ok(answered),
                        Some(wait) => wait,
                    }
                }
                Err(failure) => {
                    // A request that the cloud may have processed is repeated only if it changes nothing.
                    let safe =
                        failure.never_sent || (call.method == Method::GET && !failure.repeats);
                    match backoff.next() {
                        Some(default) if safe => *default,
                        _ => return Err(failure.error),
                    }
                }
            };
            tokio::time::sleep(wait).await;
        }
    }

    fn request(
        &self,
        call: &Call,
        endpoint: &str,
        token: &Token,
    ) -> Result<http::Request<Bytes>, String> {
        let mut request = http::Request::builder()
            .method(call.method.clone())
            .uri(call.url(endpoint))
            .header(header::ACCEPT, "application/json")
            .header(header::USER_AGENT, &self.shared.user_agent);
        if call.body.is_some() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        if let Some(version) = call.microversion {
            let name = call.service.microversion_type();
            request = request.header("OpenStack-API-Version", format!("{name} {version}"));
            if call.service == Service::Compute {
                request = request.header("X-OpenStack-Nova-API-Version", version);
            }
        }
        if let Some(revision) = call.revision {
            let condition = format!("revision_number={revision}");
            request = request.header(header::IF_MATCH, condition);
        }
        let mut secret = HeaderValue::from_str(token.secret.expose_secret())
            .map_err(|_| "the token is not a header value".to_owned())?;
        secret.set_sensitive(true);
        let body = call.body.as_ref().map(|body| Bytes::from(body.to_string()));
        request
            .header("X-Auth-Token", secret)
            .body(body.unwrap_or_default())
            .map_err(|error| format!("`{endpoint}` gives no valid URL: {error}"))
    }

    /// Sends a request of the login.
    pub(super) async fn exchange(
        &self,
        service: Service,
        route: &'static str,
        path: &str,
        request: http::Request<Bytes>,
    ) -> Result<Answered> {
        let limits = self.shared.timeouts.limits(Class::Read);
        self.transmit(service, route, path, request, limits)
            .await
            .map_err(|failure| failure.error)
    }

    /// Sends, counts and traces one request.
    async fn transmit(
        &self,
        service: Service,
        route: &'static str,
        path: &str,
        request: http::Request<Bytes>,
        limits: Limits,
    ) -> Result<Answered, Failure> {
        let method = request.method().clone();
        let host = host_of(request.uri());
        let at_once = match self.poll {
            true => &self.shared.polls_at_once,
            false => &self.shared.at_once,
        };
        // The semaphore is never closed, so this does not fail.
        let _permit = at_once.acquire().await;
        let begun = Instant::now();
        let result = self.shared.transport.send(request, limits).await;
        let took = begun.elapsed();
        let status = result
            .as_ref()
            .map_or(0, |response| response.status().as_u16());
        let millis = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        tracing::debug!(%service, %method, path, status, millis, "request to the cloud");
        let labels = RequestLabels {
            service: service.name(),
            method: method_name(&method),
            route,
            status,
            poll: if self.poll { "true" } else { "false" },
        };
        self.shared.metrics.observe(labels, took);
        match result {
            Ok(response) => Ok(Answered {
                response,
                path: path.to_owned(),
                host,
                asked: begun,
            }),
            Err(error) => {
                let (kind, message) = match error.too_large {
                    true => (
                        ErrorKind::Protocol,
                        format!("{host} is not used: {}", error.message),
                    ),
                    false => (
                        ErrorKind::Unreachable,
                        format!("{host} cannot be reached: {}", error.message),
                    ),
                };
                Err(Failure {
                    never_sent: error.never_sent,
                    repeats: error.timed_out || error.too_large,
                    error: Error::new(kind, message).at(service, &method, path),
                })
            }
        }
    }
}

/// Returns host and port of a URL, without user and password.
fn host_of(url: &http::Uri) -> String {
    let authority = url.authority().map_or("", |authority| authority.as_str());
    let host = authority.rsplit_once('@').map_or(authority, |(_, it)| it);
    host.to_owned()
}

/// Returns the wait before a repetition of the request, if the response permits one.
fn wait_before_repeating(
    response: &http::Response<Bytes>,
    method: &Method,
    backoff: &mut std::slice::Iter<'_, Duration>,
) -> Option<Duration> {
    match response.status() {
        // The request was not processed, whatever the method.
        StatusCode::TOO_MANY_REQUESTS => {}
        // After these, a create may have been processed: a repetition could create a second object.
        StatusCode::SERVICE_UNAVAILABLE | StatusCode::BAD_GATEWAY if method != Method::POST => {}
        _ => return None,
    }
    let default = *backoff.next()?;
    match retry_after(response.headers()) {
        None => Some(default),
        Some(asked) => (asked <= LONGEST_WAIT).then_some(asked),
    }
}

/// Returns the URL of a service's version list: Nova, Cinder and Placement have the list at the versioned URL (Cinder
/// without the project), the others above it.
fn root_of(endpoint: &str, service: Service, identity: &str) -> String {
    let up = |url: &str| {
        url.rsplit_once('/')
            .map_or_else(|| url.to_owned(), |(parent, _)| parent.to_owned())
    };
    match service {
        Service::Compute | Service::Placement => endpoint.to_owned(),
        Service::Identity => identity.to_owned(),
        Service::Volume => match endpoint.find("/v3") {
            Some(start) => endpoint.get(..start + 3).unwrap_or(endpoint).to_owned(),
            None => endpoint.to_owned(),
        },
        Service::Network | Service::Image | Service::LoadBalancer | Service::KeyManager => {
            up(endpoint)
        }
    }
}

fn method_name(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::HEAD => "HEAD",
        _ => "OTHER",
    }
}
