//! Processing of HTTP requests: routing, delays, authentication, one transaction, recording.

use std::sync::atomic::Ordering;
use std::time::Instant;

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use bytes::Bytes;
use futures::stream;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use http_body_util::BodyExt;
use serde_json::{Value, json};

use super::base::Base;
use super::call::{Answer, Call, Reply, Who};
use super::fault::{Fault, webob};
use super::injection::Action;
use super::journal::Entry;
use super::lag;
use super::query::Query;
use super::route::{Access, Found, Parameters, Route, Routes};
use super::service::Service;
use super::{Cloud, Write, balancer, clock, compute, control, identity, image, network, placement};
use super::{secrets, version, volume};

/// Returns all operations of all services.
pub(crate) fn routes() -> Routes {
    let mut routes = Routes::default();
    version::routes(&mut routes);
    identity::routes(&mut routes);
    compute::routes(&mut routes);
    network::routes(&mut routes);
    image::routes(&mut routes);
    volume::routes(&mut routes);
    balancer::routes(&mut routes);
    placement::routes(&mut routes);
    secrets::routes(&mut routes);
    routes
}

/// Answers one request.
pub(crate) async fn answer(cloud: &Cloud, base: &Base, request: Request) -> Response {
    let full = request.uri().path().to_owned();
    let (segment, path) = match full.trim_start_matches('/').split_once('/') {
        Some((segment, rest)) => (segment, format!("/{rest}")),
        None => (full.trim_start_matches('/'), "/".to_owned()),
    };
    match Service::of_segment(segment) {
        Some(service) => answer_of(cloud, base, service, &path, request).await,
        None => roots(base.url(), segment),
    }
}

/// Returns the response to a refused request of the operator's interface.
pub(crate) fn refused(fault: &Fault) -> Response {
    let headers = Vec::new();
    respond(Service::Control, Err(fault.clone()), "", headers, true)
}

/// Answers one request for a [`Service`]. `path` is relative to the service.
pub(crate) async fn answer_of(
    cloud: &Cloud,
    base: &Base,
    service: Service,
    path: &str,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    let raw_query = parts.uri.query().unwrap_or_default();
    let incoming = Incoming {
        service,
        method: parts.method,
        path: canonical(service, path.trim_end_matches('/')),
        query: Query::parse(raw_query),
        raw_query,
        headers: &parts.headers,
    };
    if service == Service::Control {
        let body = read(body, 1 << 20).await.unwrap_or_default();
        return respond(
            service,
            control::answer(cloud, &incoming, &body),
            &request_id(),
            Vec::new(),
            true,
        );
    }
    openstack(cloud, base, &incoming, body).await
}

/// Answers a request to a service by Keystone's first administrator. See [`Cloud::asked`].
pub(crate) fn asked(
    cloud: &Cloud,
    service: Service,
    method: &Method,
    path: &str,
    body: &Value,
) -> (u16, Value) {
    let token = uuid::Uuid::new_v4().to_string();
    {
        let mut core = cloud.inner.core.lock();
        core.state.begin(cloud.inner.clock.now());
        let _ = identity::operator(&mut core.state, &token);
        core.state.commit();
    }
    let (path, raw_query) = path.split_once('?').unwrap_or((path, ""));
    let mut headers = HeaderMap::new();
    if let Ok(token) = HeaderValue::from_str(&token) {
        headers.insert("x-auth-token", token);
    }
    let version = HeaderValue::from_static("compute 2.84");
    headers.insert("openstack-api-version", version);
    let incoming = Incoming {
        service,
        method: method.clone(),
        path: path.to_owned(),
        query: Query::parse(raw_query),
        raw_query,
        headers: &headers,
    };
    let base = Base::one("http://simulated");
    let bytes = match body {
        Value::Null => Bytes::new(),
        body => Bytes::from(body.to_string()),
    };
    let reply = match cloud.inner.routes.find(service, method, &incoming.path) {
        Found::Route(route, parameters) => {
            transact(cloud, &base, &incoming, route, parameters, bytes).reply
        }
        Found::OtherMethod | Found::Nothing => no_route(cloud, &incoming),
    };
    let mut core = cloud.inner.core.lock();
    core.state.begin(cloud.inner.clock.now());
    core.state
        .remove(super::kind::Kind::Token, &identity::hashed(&token));
    core.state.commit();
    match reply {
        Ok(reply) => {
            let raw = reply.raw.map(|(_, text)| text);
            let raw = raw.and_then(|text| serde_json::from_slice(&text).ok());
            (reply.status, reply.body.or(raw).unwrap_or_default())
        }
        Err(fault) => {
            let (status, request_id) = (fault.status, request_id());
            let (_, text) = fault.render(service, &request_id, true);
            (status, serde_json::from_slice(&text).unwrap_or_default())
        }
    }
}

/// Request with the path relative to the service.
pub(crate) struct Incoming<'a> {
    pub(crate) service: Service,
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) query: Query,
    pub(crate) raw_query: &'a str,
    pub(crate) headers: &'a HeaderMap,
}

async fn openstack(cloud: &Cloud, base: &Base, incoming: &Incoming<'_>, body: Body) -> Response {
    let started = Instant::now();
    let inner = &cloud.inner;
    let service = incoming.service;
    // HEAD is answered as GET; hyper omits the body.
    let head = incoming.method == Method::HEAD;
    let as_get = Method::GET;
    let mut found = inner.routes.find(service, &incoming.method, &incoming.path);
    if head && !matches!(found, Found::Route(..)) {
        found = inner.routes.find(service, &as_get, &incoming.path);
    }
    let (route, parameters) = match found {
        Found::Route(route, parameters) => (Some(route), parameters),
        Found::OtherMethod | Found::Nothing => (None, Vec::new()),
    };
    let pattern = route.map_or("unknown", |route| route.pattern);
    inner
        .journal
        .count(service, incoming.method.as_str(), pattern);

    let injected = injected(cloud, incoming, pattern);
    if let Some((action, _)) = &injected {
        tokio::time::sleep(action.delay()).await;
    }
    let pause = inner
        .settings
        .latency
        .request(service, &incoming.method, pattern);
    if !pause.is_zero() {
        tokio::time::sleep(pause).await;
    }
    let request_id = request_id();
    let mut outcome = Outcome::default();
    let instead = injected.filter(|(action, _)| action.replaces());
    let before = instead.as_ref().filter(|(_, after_change)| !after_change);
    if before.is_none() {
        let body = read(body, limit(service)).await;
        outcome = match (route, body) {
            (_, None) => Outcome::from_reply(Err(Fault::new(
                413,
                "RequestTooLarge",
                "Request is too large.",
            ))),
            (None, _) => Outcome {
                headers: if service == Service::Identity {
                    vec![("vary", "X-Auth-Token".to_owned())]
                } else {
                    Vec::new()
                },
                ..Outcome::from_reply(no_route(cloud, incoming))
            },
            (Some(route), Some(body)) => run(cloud, base, incoming, route, parameters, body),
        };
    }
    if let Some((action, _)) = instead {
        outcome.reply = match garbled(&action) {
            Instead::Reply(reply) => reply,
            Instead::Drop => return dropped(),
        };
    }
    let error = outcome
        .reply
        .as_ref()
        .err()
        .map(|fault| without_values(&fault.message).to_owned());
    let status = match &outcome.reply {
        Ok(reply) => reply.status,
        Err(fault) => fault.status,
    };
    let mut headers = outcome.headers;
    if has_request_id(service, pattern, status) {
        headers.push(("x-openstack-request-id", request_id.clone()));
        let empty = matches!(&outcome.reply, Ok(reply) if reply.body.is_none());
        let deleted = incoming.method == Method::DELETE && empty || status == 401;
        if service == Service::Compute || service == Service::Volume && !deleted {
            headers.push(("x-compute-request-id", request_id.clone()));
        }
    }
    let json = accepts_json(incoming.headers);
    let response = respond(service, outcome.reply, &request_id, headers, json);
    inner.journal.log(Entry {
        time: clock::zulu_micros(inner.clock.now()),
        request_id,
        service: service.segment(),
        method: incoming.method.to_string(),
        path: match incoming.raw_query {
            "" => incoming.path.clone(),
            query => format!("{}?{query}", incoming.path),
        },
        status: response.status().as_u16(),
        milliseconds: started.elapsed().as_secs_f64() * 1000.0,
        project_id: outcome.project_id,
        error,
    });
    response
}

/// Returns the message of an error for the log, without quoted values: services quote rejected values, which may
/// contain a password.
fn without_values(message: &str) -> &str {
    message
        .split_once(" Value: ")
        .map_or(message, |(before, _)| before)
}

struct Outcome {
    reply: Answer,
    project_id: String,
    headers: Vec<(&'static str, String)>,
}

impl Default for Outcome {
    fn default() -> Self {
        Self::from_reply(Ok(Reply::empty(200)))
    }
}

impl Outcome {
    fn from_reply(reply: Answer) -> Self {
        Self {
            reply,
            project_id: String::new(),
            headers: Vec::new(),
        }
    }
}

/// Runs an operation in its transaction, between the write hooks.
fn run(
    cloud: &Cloud,
    base: &Base,
    incoming: &Incoming<'_>,
    route: &Route,
    parameters: Parameters,
    raw_body: Bytes,
) -> Outcome {
    let inner = &cloud.inner;
    let writes = incoming.method != Method::GET
        && incoming.method != Method::HEAD
        && route.pattern != identity::TOKENS;
    let mut write = writes.then(|| Write {
        number: inner.writes.fetch_add(1, Ordering::SeqCst) + 1,
        service: incoming.service.segment(),
        method: incoming.method.as_str(),
        route: route.pattern,
        status: None,
    });
    if let (Some(write), Some(hook)) = (&write, inner.before_write.read().clone()) {
        hook(write);
    }
    let mut outcome = transact(cloud, base, incoming, route, parameters, raw_body);
    if let Some(write) = &mut write {
        write.status = Some(match &outcome.reply {
            Ok(reply) => reply.status,
            Err(fault) => fault.status,
        });
        if let Some(hook) = inner.on_write.read().clone() {
            hook(write);
        }
    }
    if let Err(fault) = &mut outcome.reply
        && fault.status == 401
    {
        let keystone = format!("Keystone uri=\"{}\"", base.root(Service::Identity));
        outcome.headers.push(("www-authenticate", keystone));
    }
    outcome
}

fn transact(
    cloud: &Cloud,
    base: &Base,
    incoming: &Incoming<'_>,
    route: &Route,
    parameters: Parameters,
    raw_body: Bytes,
) -> Outcome {
    let inner = &cloud.inner;
    let mut core = inner.core.lock();
    let now = inner.clock.now();
    let mut world_changed = core.settle(&inner.settings, now);
    if let Some(since) = lag::since(&inner.settings, now) {
        core.state.remember(now, since);
    }
    core.state.begin(now);
    let mut call = Call {
        state: &mut core.state,
        settings: &inner.settings,
        service: incoming.service,
        base,
        path: &incoming.path,
        parameters,
        query: incoming.query.clone(),
        headers: incoming.headers,
        raw_body,
        body: Value::Null,
        who: Who::default(),
        version: 0,
        answered: None,
    };
    let mut reply = serve(&mut call, route);
    let answered = call.answered.take();
    let project_id = std::mem::take(&mut call.who.project_id);
    drop(call);
    if reply.is_ok() {
        match core.commit() {
            Ok(changed) => world_changed |= changed,
            Err(error) => {
                tracing::error!(%error, "a request to the simulated cloud was not stored");
                reply = Err(Fault::new(500, "InternalServerError", error.to_string()));
            }
        }
    } else {
        core.state.roll_back();
    }
    drop(core);
    if world_changed || incoming.method != Method::GET {
        inner.note(world_changed);
    }
    Outcome {
        reply,
        project_id,
        headers: headers(incoming.service, route, answered.as_deref()),
    }
}

/// Authenticates, checks roles and version, decodes the body and calls the handler.
fn serve(call: &mut Call<'_>, route: &Route) -> Answer {
    if route.access != Access::Open {
        call.who =
            identity::authenticate(call, &route.method).ok_or_else(Fault::unauthenticated)?;
    }
    // Placement checks roles first.
    if call.service == Service::Placement {
        allow(call, route)?;
    }
    call.answered = version::answered(call.service, call.headers);
    call.version = version::negotiate(call.service, call.headers)?;
    let path = call.parameter("project");
    if call.service == Service::Volume && !path.is_empty() && path != call.who.project_id {
        return Err(Fault::bad("Malformed request url"));
    }
    allow(call, route)?;
    let binary = match call.service {
        Service::Image => route.method != Method::POST,
        Service::Secrets => route.method == Method::PUT,
        // Forms.
        Service::Identity => route.pattern.starts_with(identity::OIDC),
        _ => false,
    };
    if !call.raw_body.is_empty() && !binary && route.method != Method::GET {
        call.body = serde_json::from_slice(&call.raw_body).map_err(|_| bad_json(call.service))?;
    }
    lag::handle(call, route)
}

/// Returns the version headers of an answer, and `Vary`.
fn headers(service: Service, route: &Route, answered: Option<&str>) -> Vec<(&'static str, String)> {
    match (service, answered) {
        (Service::Identity, _) => vec![("vary", "X-Auth-Token".to_owned())],
        // Nova's list of versions has no version header.
        (Service::Compute, _) if route.pattern == "/" => Vec::new(),
        (_, Some(version)) => version::headers(service, version),
        _ => Vec::new(),
    }
}

/// True if an answer has a request id. The version lists of some services have none, and errors of token validation
/// come before the id is created.
fn has_request_id(service: Service, pattern: &str, status: u16) -> bool {
    match service {
        Service::Compute | Service::Network => pattern != "/",
        Service::Image => pattern != "/" && pattern != "/versions" && status != 401,
        Service::LoadBalancer => status != 401,
        _ => true,
    }
}

fn allow(call: &Call<'_>, route: &Route) -> Result<(), Fault> {
    let allowed = match route.access {
        Access::Open | Access::Token => true,
        Access::Reader => call.who.has("reader"),
        Access::Member => call.who.has("member"),
        Access::Admin => call.who.admin(),
    };
    if allowed {
        return Ok(());
    }
    let what = route
        .pattern
        .split('/')
        .filter(|part| !part.is_empty() && !part.contains('{'));
    let what: Vec<&str> = what.skip(1).collect();
    let what = what.join(":");
    let verb = match route.method {
        Method::POST => "create",
        Method::PUT | Method::PATCH => "update",
        Method::DELETE => "delete",
        _ => "get",
    };
    Err(Fault::forbidden(match call.service {
        Service::Compute => {
            format!("Policy doesn't allow os_compute_api:{what}:{verb} to be performed.")
        }
        Service::Volume => format!("Policy doesn't allow volume:{verb} to be performed."),
        Service::Network => format!("(rule:{verb}_{what}) is disallowed by policy"),
        Service::LoadBalancer => "Policy does not allow this request to be performed.".to_owned(),
        _ => format!(
            "You are not authorized to perform the requested action: identity:{verb}_{what}."
        ),
    }))
}

fn bad_json(service: Service) -> Fault {
    Fault::bad(match service {
        Service::Compute | Service::Volume => "Malformed request body",
        Service::Network => "Cannot understand JSON",
        Service::LoadBalancer => "Request is not in valid JSON format",
        Service::Image => "Malformed JSON in request body.",
        _ => "Expecting to find valid JSON in request body.",
    })
}

fn injected(cloud: &Cloud, incoming: &Incoming<'_>, pattern: &str) -> Option<(Action, bool)> {
    let inner = &cloud.inner;
    if !inner.injections.any() {
        return None;
    }
    let project = {
        let core = inner.core.lock();
        identity::project_of(&core.state, incoming.headers)
    };
    let service = incoming.service.segment();
    inner
        .injections
        .apply(service, incoming.method.as_str(), pattern, &project)
}

enum Instead {
    Reply(Answer),
    Drop,
}

fn garbled(action: &Action) -> Instead {
    if action.drop {
        return Instead::Drop;
    }
    if action.garbage {
        let bytes = Bytes::from_static(b"<html>\xff\xfe{\"not\": json");
        return Instead::Reply(Ok(Reply {
            status: action.status.unwrap_or(200),
            raw: Some(("application/json", bytes)),
            ..Reply::default()
        }));
    }
    let status = action.status.unwrap_or(500);
    let message = action.message.clone().unwrap_or_else(|| {
        "The server has either erred or is incapable of performing the requested operation."
            .to_owned()
    });
    let mut fault = Fault::new(status, "InjectedFault", message);
    fault.retry_after = action.retry_after;
    Instead::Reply(Err(fault))
}

/// Returns a response whose body fails before the first byte, so that hyper closes the connection.
fn dropped() -> Response {
    let broken = stream::iter([Err::<Bytes, _>(std::io::Error::other(
        "connection dropped on purpose",
    ))]);
    Response::new(Body::from_stream(broken))
}

fn no_route(cloud: &Cloud, incoming: &Incoming<'_>) -> Answer {
    let other = matches!(
        cloud
            .inner
            .routes
            .find(incoming.service, &incoming.method, &incoming.path),
        Found::OtherMethod
    );
    let (status, text) = if other {
        (
            405,
            "405 Method Not Allowed\n\nThe method specified is not allowed for this resource.\n\n   ",
        )
    } else {
        (
            404,
            "404 Not Found\n\nThe resource could not be found.\n\n   ",
        )
    };
    let title = if other {
        "Method Not Allowed"
    } else {
        "Not Found"
    };
    if incoming.service == Service::Network {
        let message = "The resource could not be found.";
        return Err(Fault::new(status, "HTTPNotFound", message));
    }
    let kind = match incoming.service {
        Service::Compute | Service::Volume | Service::Image if accepts_json(incoming.headers) => {
            return Ok(Reply::with(status, webob(status, title, "")));
        }
        Service::Identity => "text/html; charset=UTF-8",
        _ => "text/plain; charset=UTF-8",
    };
    Ok(Reply {
        status,
        raw: Some((kind, Bytes::from_static(text.as_bytes()))),
        ..Reply::default()
    })
}

fn respond(
    service: Service,
    answer: Answer,
    request_id: &str,
    headers: Vec<(&'static str, String)>,
    json: bool,
) -> Response {
    let (status, kind, body, mut extra) = match answer {
        Ok(reply) => match (reply.raw, reply.body) {
            (Some((kind, bytes)), _) => (reply.status, Some(kind), bytes, reply.headers),
            (None, Some(body)) => {
                let bytes = Bytes::from(body.to_string());
                (reply.status, Some("application/json"), bytes, reply.headers)
            }
            (None, None) => {
                let kind = empty_type(service, reply.status);
                (reply.status, kind, Bytes::new(), reply.headers)
            }
        },
        Err(fault) => {
            let (kind, bytes) = fault.render(service, request_id, json);
            let wait = fault
                .retry_after
                .map(|seconds| ("retry-after", seconds.to_string()));
            (
                fault.status,
                Some(kind),
                Bytes::from(bytes),
                wait.into_iter().collect(),
            )
        }
    };
    extra.extend(headers);
    let mut response = Response::new(Body::from(body));
    *response.status_mut() =
        StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    if let Some(kind) = kind.filter(|kind| !kind.is_empty()) {
        response
            .headers_mut()
            .insert("content-type", HeaderValue::from_static(kind));
    }
    for (name, value) in extra {
        if let Ok(value) = HeaderValue::from_str(&value) {
            response.headers_mut().append(name, value);
        }
    }
    response
}

/// Returns the content type of a service's empty answers.
fn empty_type(service: Service, status: u16) -> Option<&'static str> {
    match service {
        Service::Compute => Some("application/json"),
        Service::Volume if status != 204 => Some("text/html; charset=UTF-8"),
        Service::Image => Some("text/html; charset=UTF-8"),
        _ => None,
    }
}

/// True if errors of webob may be JSON. For clients that accept any type, webob chooses HTML.
fn accepts_json(headers: &HeaderMap) -> bool {
    headers.get_all("accept").iter().any(|value| {
        value
            .to_str()
            .is_ok_and(|text| text.contains("application/json"))
    })
}

/// Rewrites `/v2` to `/v2.0`: Octavia answers under both, and its version document points to `/v2`.
fn canonical(service: Service, path: &str) -> String {
    match path.strip_prefix("/v2/") {
        Some(rest) if service == Service::LoadBalancer => format!("/v2.0/{rest}"),
        _ => path.to_owned(),
    }
}

fn roots(base: &str, segment: &str) -> Response {
    let services: Vec<Value> = Service::OPENSTACK
        .iter()
        .map(|service| json!(format!("{base}/{}/", service.segment())))
        .collect();
    let status = if segment.is_empty() { 200 } else { 404 };
    let body = json!({"simulated": "OpenStack", "services": services});
    respond(
        Service::Control,
        Ok(Reply::with(status, body)),
        &request_id(),
        Vec::new(),
        true,
    )
}

fn request_id() -> String {
    format!("req-{}", uuid::Uuid::new_v4())
}

/// Returns the body limit in bytes: the default of oslo.middleware where the service uses it; more for bulk bodies and
/// image data.
fn limit(service: Service) -> usize {
    match service {
        Service::Compute | Service::Identity | Service::Volume => 114_688,
        Service::Image => 64 << 20,
        _ => 4 << 20,
    }
}

async fn read(body: Body, limit: usize) -> Option<Bytes> {
    let limited = http_body_util::Limited::new(body, limit);
    limited
        .collect()
        .await
        .ok()
        .map(http_body_util::Collected::to_bytes)
}
