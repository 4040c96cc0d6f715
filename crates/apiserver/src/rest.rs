//! Verbs on objects.

mod admit;
pub(crate) mod definitions;
mod delete;
mod eviction;
mod hooked;
mod kept;
mod meta;
mod patch;
mod read;
mod scale;
mod special;
pub(crate) mod strategy;
mod watch;
mod write;

use apimachinery::kinds::shape::protobuf::encode;
use bytes::Bytes;
use http::{HeaderValue, Method, Response, header};
use serde_json::Value;

use crate::body::{self, Body};
use crate::call::{Answer, Call, Warnings};
use crate::conversion;
use crate::error::ApiError;
use crate::request::accept::{self, Encoding, Form};
use crate::response::{failure_in, respond};

pub(crate) use delete::{DeleteOptions, FOREGROUND, ORPHAN, Propagation, delete_object};
pub(crate) use write::{edit, failed_write};

/// Answers a [`Call`].
pub(crate) async fn answer(call: Call, method: &Method) -> Result<Response<Body>, ApiError> {
    let mut warnings = Warnings::default();
    if let Some(warning) = &call.version().warning {
        warnings.0.push(warning.clone());
    }
    let answer = verb(&call, method, &mut warnings).await;
    let mut response = match answer {
        // Warnings are sent with errors, too.
        Err(error) => failure_in(&error, call.accept.encoding),
        Ok(Answer::Bytes(code, bytes)) => respond(code, bytes, call.accept.encoding),
        Ok(Answer::Value(code, value)) => {
            let bytes = serde_json::to_vec(&value).map_err(ApiError::internal)?;
            respond(code, bytes.into(), call.accept.encoding)
        }
        Ok(Answer::Stream(stream)) => stream_in(stream, call.accept.encoding),
    };
    for warning in warnings.into_headers() {
        if let Ok(value) = HeaderValue::from_str(&format!("299 - {warning:?}")) {
            response.headers_mut().append(header::WARNING, value);
        }
    }
    Ok(response)
}

async fn verb(call: &Call, method: &Method, warnings: &mut Warnings) -> Result<Answer, ApiError> {
    let whole = call
        .subresource
        .as_deref()
        .is_none_or(|sub| sub == "status");
    if call.accept.form == Form::Table && !whole {
        return Err(ApiError::not_acceptable(accept::ACCEPTED));
    }
    match (&call.name, call.subresource.as_deref()) {
        (None, _) => match *method {
            Method::GET if call.query.flag("watch") => watch::watch(call).await,
            Method::GET => read::list(call).await,
            Method::POST => write::create(call, warnings).await,
            Method::DELETE => delete::delete_collection(call, warnings).await,
            _ => Err(ApiError::method_not_allowed()),
        },
        (Some(_), None | Some("status" | "finalize" | "approval")) => match *method {
            Method::GET => conversion::resolve(call.core.converter(), || read::get(call)).await,
            Method::PUT => write::update(call, warnings).await,
            Method::PATCH => patch::patch(call, warnings).await,
            Method::DELETE if call.subresource.is_none() => delete::delete(call, warnings).await,
            _ => Err(ApiError::method_not_allowed()),
        },
        (Some(_), Some("scale")) => match *method {
            Method::GET => conversion::resolve(call.core.converter(), || scale::get(call)).await,
            Method::PUT | Method::PATCH => {
                scale::update(call, method == Method::PATCH, warnings).await
            }
            _ => Err(ApiError::method_not_allowed()),
        },
        (Some(_), Some(subresource)) => match *method {
            Method::POST => special::subresource(call, subresource, warnings).await,
            _ => Err(ApiError::method_not_allowed()),
        },
    }
}

/// Completes an answer with an object that is never stored.
pub(crate) fn complete_unstored(object: &mut Value, status: &Value) {
    let _ = meta::of(object);
    if let Some(fields) = object.as_object_mut() {
        fields.insert("status".to_owned(), status.clone());
    }
}

/// Encodes a watch. Each piece is one or more lines of JSON.
fn stream_in(stream: Body, encoding: Encoding) -> Response<Body> {
    let (stream, media) = match encoding {
        Encoding::Protobuf => (
            body::mapped(stream, protobuf_events),
            "application/vnd.kubernetes.protobuf;stream=watch",
        ),
        _ => (stream, "application/json"),
    };
    let mut response = Response::new(stream);
    let media = HeaderValue::from_static(media);
    response.headers_mut().insert(header::CONTENT_TYPE, media);
    response
}

/// Encodes events as protobuf. For an event without such an encoding the client gets an error and lists again.
fn protobuf_events(lines: &Bytes) -> Bytes {
    let failure = || {
        let status = ApiError::internal("the object has no form in protobuf").status();
        let event = serde_json::json!({"type": "ERROR", "object": status});
        encode::event(event.to_string().as_bytes()).unwrap_or_default()
    };
    let lines = lines.split(|byte| *byte == b'\n');
    let events = lines
        .filter(|line| !line.is_empty())
        .map(|line| encode::event(line).unwrap_or_else(failure));
    events.collect::<Vec<_>>().concat().into()
}
