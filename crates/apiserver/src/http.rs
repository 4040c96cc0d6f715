//! Routing of requests.

use std::sync::Arc;
use std::time::Instant;

use apimachinery::kinds::{Origin, Registry};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, Response, header};
use serde_json::json;

use crate::body::{Body, RequestBody};
use crate::call::Call;
use crate::core::Core;
use crate::discovery;
use crate::error::ApiError;
use crate::metrics::{self, Labels};
use crate::pods;
use crate::request::accept::{self, Form};
use crate::request::path::{Path, Route, Target};
use crate::request::query::Query;
use crate::request::{ServedVersion, decode};
use crate::response::{empty, failure, json_document, text};
use crate::rest;
use crate::user::UserInfo;

/// Answers an authorized [`Request`].
pub(crate) fn handle_target(
    core: Arc<Core>,
    user: UserInfo,
    target: Target,
    request: Request<RequestBody>,
) -> BoxFuture<'static, Response<Body>> {
    handled(core, user, target, request).boxed()
}

async fn handled(
    core: Arc<Core>,
    user: UserInfo,
    target: Target,
    request: Request<RequestBody>,
) -> Response<Body> {
    let (mut parts, body) = request.into_parts();
    let route = target.route;
    let query = Query::parse(parts.uri.query());
    let begun = Instant::now();
    let counted = Arc::clone(&core);
    let labels = Labels::for_route(&core.store.registry(), &route, &parts.method, &query);
    let running = counted.requests.begin(labels);
    let answer = match route {
        Route::Object(path) if pods::is_for_kubelet(&path) => {
            let request = pods::Request {
                core: &core,
                path: &path,
                query: &query,
                method: &parts.method,
                headers: &parts.headers,
                extensions: &mut parts.extensions,
            };
            pods::answer(request).await
        }
        Route::Object(path) if pods::is_for_node(&path) => {
            let request = pods::Request {
                core: &core,
                path: &path,
                query: &query,
                method: &parts.method,
                headers: &parts.headers,
                extensions: &mut parts.extensions,
            };
            match decode::collect(body).await {
                Ok(body) => pods::answer_node(request, body, &parts.uri).await,
                Err(error) => Err(error),
            }
        }
        Route::Object(path) => {
            objects(core, user, path, query, &parts.method, parts.headers, body).await
        }
        Route::Backup if parts.method == Method::POST => crate::backup::answer(&core).await,
        Route::Misplaced(path) => Ok(match target.path.as_str() {
            path if path.starts_with("//") || path.starts_with("/apis//") => not_found(),
            _ => missing(&path.group),
        }),
        Route::Unknown if target.path.starts_with("/openapi/v3/") => Ok(empty(404)),
        Route::Unknown => Ok(not_found()),
        // kube-apiserver routes these by path alone, whatever the method.
        route @ (Route::Root | Route::Metrics | Route::Health) => document(&core, &route, &parts),
        route if parts.method == Method::GET || parts.method == Method::HEAD => {
            document(&core, &route, &parts)
        }
        _ => Err(ApiError::method_not_allowed()),
    };
    let answer = answer.unwrap_or_else(|error| failure(&error));
    running.end(answer.status().as_u16(), begun.elapsed());
    answer
}

async fn objects(
    core: Arc<Core>,
    user: UserInfo,
    path: Path,
    query: Query,
    method: &Method,
    headers: HeaderMap,
    body: RequestBody,
) -> Result<Response<Body>, ApiError> {
    let method = if method == Method::HEAD {
        &Method::GET
    } else {
        method
    };
    let registry = Arc::clone(&core.store.registry());
    let Some(resource) = registry.find(&path.group, &path.plural) else {
        return Ok(missing(&path.group));
    };
    let Some(version) = resource
        .version(&path.version)
        .filter(|version| version.served)
    else {
        return Ok(missing(&path.group));
    };
    // Across all namespaces, custom objects can only be listed and watched (`possiblyAcrossAllNamespacesVerbs`).
    let across = match path.name {
        Some(_) => false,
        None => !resource.is_custom() || *method == Method::GET,
    };
    if path.namespace.is_some() && !resource.namespaced
        || path.namespace.is_none() && resource.namespaced && !across
    {
        return Ok(missing(&path.group));
    }
    if let Some(subresource) = path.subresource.as_deref() {
        let known = match subresource {
            "status" => version.status,
            "scale" => version.scale.is_some(),
            other => version.subresources.contains(&other),
        };
        if !known && resource.is_custom() && matches!(subresource, "status" | "scale") {
            let name = path.name.as_deref().unwrap_or_default();
            return Err(ApiError::not_found(&resource.group, &resource.plural, name));
        }
        if !known {
            return Err(ApiError::unknown_resource());
        }
    }
    if matches!(resource.origin, Origin::BuiltIn(traits) if traits.virtual_)
        && method != Method::POST
    {
        return Err(ApiError::method_not_allowed());
    }
    let wanted = headers
        .get(header::ACCEPT)
        .and_then(|value| value.to_str().ok());
    let Some(mut accept) = accept::negotiate(wanted, !resource.is_custom()) else {
        let streams = *method == Method::GET && path.name.is_none();
        return Err(accept::refused(wanted, !resource.is_custom(), streams));
    };
    if !matches!(*method, Method::GET)
        && accept.form == Form::Metadata
        && path.subresource.is_some()
    {
        accept.form = Form::Whole;
    }
    let body = decode::collect(body).await?;
    let version = path.version;
    let call = Call {
        reservations: core.services.reservations(),
        core,
        user,
        resource,
        version,
        namespace: path.namespace.unwrap_or_default(),
        name: path.name,
        subresource: path.subresource,
        query,
        accept,
        headers,
        body,
    };
    rest::answer(call, method).await
}

/// 404 as from kube-apiserver: a `Status` for built-in groups, plain text for groups of definitions.
fn missing(group: &str) -> Response<Body> {
    if Registry::is_built_in(group) {
        return failure(&ApiError::unknown_resource());
    }
    not_found()
}

/// 404 for an unknown path.
fn not_found() -> Response<Body> {
    text(404, "404 page not found\n")
}

fn document(core: &Core, route: &Route, request: &Parts) -> Result<Response<Body>, ApiError> {
    match route {
        Route::Version => {
            let served = request.extensions.get::<ServedVersion>();
            let version = served.map_or(&*core.options.kubernetes_version, |version| &*version.0);
            Ok(json_document(discovery::version(version)))
        }
        Route::Health => Ok(text(200, "ok")),
        Route::Metrics => {
            let mut all = metrics::text(core.stats(), &core.requests, &core.store);
            if let Some(more) = &core.options.more_metrics {
                all.push_str(&more());
            }
            let mut response = text(200, &all);
            let media = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores";
            let media = HeaderValue::from_static(media);
            response.headers_mut().insert(header::CONTENT_TYPE, media);
            Ok(response)
        }
        Route::Root => Ok(json_document(json!({"paths": [
            "/api", "/api/v1", "/apis", "/healthz", "/livez", "/metrics", "/openapi/v2", "/openapi/v3",
            "/readyz", "/version",
        ]}))),
        Route::Backup => Err(ApiError::method_not_allowed()),
        Route::Misplaced(_) | Route::Unknown => Ok(not_found()),
        route => discovery::document(core, route, &request.headers),
    }
}
