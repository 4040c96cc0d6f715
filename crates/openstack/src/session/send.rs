//! Sending of requests: token, headers, retries, errors, metrics and tracing.

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

/// The maximum wait within a call; longer waits are returned to the caller.
const LONGEST_WAIT: Duration = Duration::from_secs(1);
/// The waits before the second and third attempt when the cloud requests none.
const BACKOFF: [Duration; 2] = [Duration::from_millis(100), Duration::from_millis(400)];

/// A request without a response.
struct Failure {
    error: Error,
    never_sent: bool,
    timed_out: bool,
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
        lenient::from_value(inner.take())
            .map_err(|error| protocol(format!("`{key}` is not as expected: {error}")))
    }

    /// Sends a call whose answer is ignored.
    pub(crate) async fn done(&self, call: Call) -> Result<()> {
        self.send(call).await.map(|_| ())
    }

    /// Returns the answer of a call as JSON; null if it has no body.
    pub(crate) async fn send(&self, call: Call) -> Result<Value> {
        if let Some(error) = &call.error {
            return Err(error.clone());
        }
        let token = self.valid_token().await?;
        let (path, response) = self.attempts(&call, &token).await?;
        let response = if response.status() == StatusCode::UNAUTHORIZED {
            let token = self.replace_token(&token).await?;
            self.attempts(&call, &token).await?.1
        } else {
            response
        };
        let (service, method, path) = (call.service, &call.method, path.as_str());
        let (status, body) = (response.status(), response.body());
        // Several services return their version list with status 300.
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

    /// Sends a request, and repeats it up to two times if that is safe, for about a second in total. Returns the
    /// response and the path of the request.
    async fn attempts(
        &self,
        call: &Call,
        token: &Arc<Token>,
    ) -> Result<(String, http::Response<Bytes>)> {
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
            let timeout = self.shared.timeouts.of(call.class);
            let wait = match self
                .transmit(call.service, call.route, &path, request, timeout)
                .await
            {
                Ok(response) => {
                    match wait_before_repeating(&response, &call.method, &mut backoff) {
                        None => return Ok((path, response)),
                        Some(wait) => wait,
                    }
                }
                Err(failure) => {
                    let safe =
                        failure.never_sent || (call.method == Method::GET && !failure.timed_out);
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
        timeout: Duration,
    ) -> Result<http::Response<Bytes>> {
        self.transmit(service, route, path, request, timeout)
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
        timeout: Duration,
    ) -> Result<http::Response<Bytes>, Failure> {
        let method = request.method().clone();
        let address = request
            .uri()
            .authority()
            .map(ToString::to_string)
            .unwrap_or_default();
        // The semaphore is never closed, so this does not fail.
        let _permit = self.shared.at_once.acquire().await;
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
        result.map_err(|error| Failure {
            never_sent: error.never_sent,
            timed_out: error.timed_out,
            error: Error::new(
                ErrorKind::Unreachable,
                format!("{address} cannot be reached: {}", error.message),
            )
            .at(service, &method, path),
        })
    }
}

/// The wait before the request is repeated, if its response permits that.
fn wait_before_repeating(
    response: &http::Response<Bytes>,
    method: &Method,
    backoff: &mut std::slice::Iter<'_, Duration>,
) -> Option<Duration> {
    match response.status() {
        // The request was not processed, whatever the method.
        StatusCode::TOO_MANY_REQUESTS => {}
        StatusCode::SERVICE_UNAVAILABLE | StatusCode::BAD_GATEWAY if method != Method::POST => {}
        _ => return None,
    }
    let default = *backoff.next()?;
    match retry_after(response.headers()) {
        None => Some(default),
        Some(asked) => (asked <= LONGEST_WAIT).then_some(asked),
    }
}

/// The URL of a service's version list: Nova, Cinder and Placement have it at the versioned URL (Cinder without the
/// project), the others above it.
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
