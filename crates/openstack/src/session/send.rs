//! The one place where requests are made: token, headers, retries, errors, metrics, tracing.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderValue, Method, StatusCode, header};
use secrecy::ExposeSecret;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::auth::{identity_url, url_path};
use super::{Session, Token, catalog};
use crate::call::Call;
use crate::error::{Error, ErrorKind, Result, retry_after};
use crate::lenient;
use crate::metrics::RequestLabels;
use crate::service::Service;

/// Waits inside a call stay below this; longer ones are the caller's to schedule.
const LONGEST_WAIT: Duration = Duration::from_secs(1);
/// Before the second and third attempt when the cloud does not say.
const BACKOFF: [Duration; 2] = [Duration::from_millis(100), Duration::from_millis(400)];

impl Session {
    /// The object under `key` of the answer.
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
        lenient::from_value(inner.take())
            .map_err(|error| protocol(format!("`{key}` is not as expected: {error}")))
    }

    /// A call whose answer does not matter.
    pub(crate) async fn done(&self, call: Call) -> Result<()> {
        self.send(call).await.map(|_| ())
    }

    /// The answer of a call as JSON; null if it has no body.
    pub(crate) async fn send(&self, call: Call) -> Result<Value> {
        if let Some(error) = &call.error {
            return Err(error.clone());
        }
        let token = self.valid_token().await?;
        let response = self.attempts(&call, &token).await?;
        let response = if response.status() == StatusCode::UNAUTHORIZED {
            let token = self.replace_token(&token).await?;
            self.attempts(&call, &token).await?
        } else {
            response
        };
        let (service, method, path) = (call.service, &call.method, call.path.as_str());
        let (status, body) = (response.status(), response.body());
        // A version list comes with 300 at the root of several services.
        let is_answer =
            status.is_success() || (call.root && status == StatusCode::MULTIPLE_CHOICES);
        if !is_answer {
            return Err(Error::from_response(
                service,
                method,
                path,
                status,
                response.headers(),
                body,
            ));
        }
        if body.is_empty() || status == StatusCode::NO_CONTENT {
            return Ok(Value::Null);
        }
        serde_json::from_slice(body).map_err(|error| {
            Error::new(
                ErrorKind::Protocol,
                format!("the answer is not JSON: {error}"),
            )
            .at(service, method, path)
        })
    }

    /// Repeats what is safe to repeat, a few times and for about a second at most.
    async fn attempts(&self, call: &Call, token: &Arc<Token>) -> Result<http::Response<Bytes>> {
        let idempotent = call.method != Method::POST;
        let mut backoff = BACKOFF.iter();
        loop {
            let wait = match self.attempt(call, token).await {
                Ok(response) => match may_repeat(&response, idempotent) {
                    None => return Ok(response),
                    Some(asked) => match (asked, backoff.next()) {
                        (Some(asked), Some(_)) if asked <= LONGEST_WAIT => asked,
                        (None, Some(own)) => *own,
                        _ => return Ok(response),
                    },
                },
                Err((error, never_sent)) => match backoff.next() {
                    Some(own) if never_sent || call.method == Method::GET => *own,
                    _ => return Err(error),
                },
            };
            tokio::time::sleep(wait).await;
        }
    }

    async fn attempt(
        &self,
        call: &Call,
        token: &Arc<Token>,
    ) -> Result<http::Response<Bytes>, (Error, bool)> {
        let config = &self.shared.config;
        let mut endpoint = catalog::endpoint(config, token, call.service)
            .map_err(|error| (error.at(call.service, &call.method, &call.path), false))?;
        if call.root {
            endpoint = root_of(&endpoint, call.service, &identity_url(config));
        }
        let path = url_path(&endpoint, &call.path);
        let body = call.body.as_ref().map(|body| Bytes::from(body.to_string()));
        let mut request = http::Request::builder()
            .method(call.method.clone())
            .uri(call.url(&endpoint))
            .header(header::ACCEPT, "application/json")
            .header(header::USER_AGENT, &self.shared.user_agent);
        if body.is_some() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        if let Some(version) = call.microversion {
            let name = call.service.microversion_type();
            request = request.header("OpenStack-API-Version", format!("{name} {version}"));
            if call.service == Service::Compute {
                request = request.header("X-OpenStack-Nova-API-Version", version);
            }
        }
        let invalid = |message: String| {
            let error = Error::new(ErrorKind::Invalid, message);
            (error.at(call.service, &call.method, &path), false)
        };
        let mut secret = HeaderValue::from_str(token.secret.expose_secret())
            .map_err(|_| invalid("the token is not a header value".to_owned()))?;
        secret.set_sensitive(true);
        let request = request
            .header("X-Auth-Token", secret)
            .body(body.unwrap_or_default())
            .map_err(|error| invalid(format!("no valid URL: {error}")))?;
        let timeout = self.shared.timeouts.of(call.class);
        self.transmit(call.service, call.route, &path, request, timeout)
            .await
    }

    /// One request of the login.
    pub(super) async fn exchange(
        &self,
        service: Service,
        route: &'static str,
        path: &str,
        request: http::Request<Bytes>,
        timeout: Duration,
    ) -> Result<http::Response<Bytes>> {
        self.transmit(service, route, path, request, timeout)
            .await
            .map_err(|(error, _)| error)
    }

    /// Sends, counts and traces one request. The error says whether it never left.
    async fn transmit(
        &self,
        service: Service,
        route: &'static str,
        path: &str,
        request: http::Request<Bytes>,
        timeout: Duration,
    ) -> Result<http::Response<Bytes>, (Error, bool)> {
        let method = request.method().clone();
        let begun = Instant::now();
        let result = self.shared.transport.send(request, timeout).await;
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
        result.map_err(|error| {
            let never_sent = error.never_sent;
            (
                Error::new(ErrorKind::Unreachable, error.message).at(service, &method, path),
                never_sent,
            )
        })
    }
}

/// Whether a response invites a repetition, and after which wait.
fn may_repeat(response: &http::Response<Bytes>, idempotent: bool) -> Option<Option<Duration>> {
    match response.status() {
        // Nothing was done, whatever the method.
        StatusCode::TOO_MANY_REQUESTS => Some(retry_after(response.headers())),
        StatusCode::SERVICE_UNAVAILABLE | StatusCode::BAD_GATEWAY if idempotent => {
            Some(retry_after(response.headers()))
        }
        _ => None,
    }
}

/// Where a service lists its versions: Nova, Cinder and Placement at the versioned URL (Cinder
/// without its project), the others above it.
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
        Service::Network | Service::Image | Service::LoadBalancer => up(endpoint),
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
