//! The verbs on objects.

pub(crate) mod admit;
mod delete;
mod hooked;
mod kept;
mod meta;
mod patch;
mod read;
mod scale;
pub(crate) mod strategy;
pub(crate) mod view;
mod warnings;
mod watch;
mod write;

use std::sync::Arc;

use apimachinery::kinds::shape::protobuf::encode;
use apimachinery::kinds::{Resource, Version};
use apimachinery::schema::json_type;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use serde_json::Value;

use crate::body::{self, Body};
use crate::conversion;
use crate::error::ApiError;
use crate::http::accept::{Accept, Encoding, Form, PROTOBUF};
use crate::http::decode::{self, Decoded};
use crate::http::go_json;
use crate::http::query::Query;
use crate::server::Core;
use crate::services::Reservations;
use crate::user::UserInfo;

pub(crate) use delete::{DeleteOptions, FOREGROUND, ORPHAN, Propagation, delete_object};
pub(crate) use warnings::Warnings;
pub(crate) use write::{definitions_beside, edit, failed_write};

/// A request for objects with its parsed path and its resource.
pub(crate) struct Call {
    pub(crate) core: Arc<Core>,
    pub(crate) user: UserInfo,
    pub(crate) resource: Arc<Resource>,
    /// The version in the URL.
    pub(crate) version: String,
    /// Empty for cluster-scoped resources and for requests across all namespaces.
    pub(crate) namespace: String,
    pub(crate) name: Option<String>,
    pub(crate) subresource: Option<String>,
    pub(crate) query: Query,
    pub(crate) accept: Accept,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// What it has chosen for a Service that is not stored yet.
    pub(crate) reservations: Reservations,
}

/// The answer of a verb.
pub(crate) enum Answer {
    /// An object or a list, serialised in the requested form.
    Bytes(u16, Bytes),
    /// An object or a list as a value.
    Value(u16, Value),
    /// A watch.
    Stream(Body),
}

impl Call {
    pub(crate) fn group(&self) -> &str {
        &self.resource.group
    }

    /// The version in the URL; routing checks that it exists.
    pub(crate) fn version(&self) -> &Version {
        self.resource
            .version(&self.version)
            .unwrap_or_else(|| self.resource.stored_version())
    }

    pub(crate) fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }

    pub(crate) fn not_found(&self) -> ApiError {
        ApiError::not_found(self.group(), &self.resource.plural, self.name())
    }

    pub(crate) fn dry_run(&self, kind: &str) -> Result<bool, ApiError> {
        self.query.dry_run(kind)
    }

    /// `fieldManager`, or the program that sends the request.
    pub(crate) fn manager(&self) -> String {
        let agent = self
            .headers
            .get(header::USER_AGENT)
            .and_then(|value| value.to_str().ok());
        let default = apimachinery::patch::managed::default_manager(agent.unwrap_or("unknown"));
        self.query.get("fieldManager").unwrap_or(default).to_owned()
    }

    fn content_type(&self) -> Option<&str> {
        self.headers
            .get(header::CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
    }

    pub(crate) fn decode(&self) -> Result<Decoded, ApiError> {
        decode::decode(&self.body, self.content_type())
    }

    /// Decodes the object in the body of a create or an update. A body that is not an object is rejected as by Go's
    /// decoders.
    pub(crate) fn decode_object(&self) -> Result<Decoded, ApiError> {
        let unrecognized = |why: &str| {
            ApiError::bad_request(format!(
                "the object provided is unrecognized (must be of type {}): {why} ({})",
                self.resource.kind,
                go_json::summary(&self.body)
            ))
        };
        let parse = "couldn't get version/kind; json parse error:";
        let json = self.content_type().is_none_or(|media| {
            let others = ["application/yaml", "application/vnd.kubernetes.protobuf"];
            !others.iter().any(|other| media.starts_with(other))
        });
        let mut decoded = self.decode().map_err(|error| match error.code {
            400 if json => unrecognized(&format!("{parse} {}", error.message)),
            400 => unrecognized(&error.message),
            _ => error,
        })?;
        if decoded.value.is_null() && !self.resource.is_custom() {
            decoded.value = Value::Object(serde_json::Map::new());
        }
        let kind = json_type(&decoded.value);
        match &decoded.value {
            Value::Object(fields) => {
                for field in ["apiVersion", "kind"] {
                    let wrong = fields
                        .get(field)
                        .filter(|value| !value.is_string() && !value.is_null());
                    if let Some(wrong) = wrong {
                        return Err(unrecognized(&format!(
                            "{parse} json: cannot unmarshal {} into Go struct field .{field} of type string",
                            json_type(wrong)
                        )));
                    }
                }
            }
            Value::Null => {}
            _ => {
                return Err(unrecognized(&format!(
                    "{parse} json: cannot unmarshal {kind} into Go value of type struct {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}"
                )));
            }
        }
        if self.resource.is_custom() && decoded.value["kind"].as_str().is_none_or(str::is_empty) {
            let body = String::from_utf8_lossy(&self.body);
            return Err(unrecognized(&format!(
                "Object 'Kind' is missing in '{body}'"
            )));
        }
        Ok(decoded)
    }
}

/// Answers a request for objects.
pub(crate) async fn answer(call: Call, method: &Method) -> Result<Response<Body>, ApiError> {
    let mut warnings = Warnings::default();
    if let Some(warning) = &call.version().warning {
        warnings.0.push(warning.clone());
    }
    let answer = verb(&call, method, &mut warnings).await;
    let mut response = match answer {
        // Warnings are sent with errors, too.
        Err(error) => crate::http::failure_in(&error, call.accept.encoding),
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
        return Err(ApiError::not_acceptable(crate::http::accept::ACCEPTED));
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
            Method::GET => conversion::resolve(&call.core, || read::get(call)).await,
            Method::PUT => write::update(call, warnings).await,
            Method::PATCH => patch::patch(call, warnings).await,
            Method::DELETE if call.subresource.is_none() => delete::delete(call, warnings).await,
            _ => Err(ApiError::method_not_allowed()),
        },
        (Some(_), Some("scale")) => match *method {
            Method::GET => conversion::resolve(&call.core, || scale::get(call)).await,
            Method::PUT | Method::PATCH => {
                scale::update(call, method == Method::PATCH, warnings).await
            }
            _ => Err(ApiError::method_not_allowed()),
        },
        (Some(_), Some(subresource)) => match *method {
            Method::POST => crate::special::subresource(call, subresource, warnings).await,
            _ => Err(ApiError::method_not_allowed()),
        },
    }
}

/// Completes an answer whose object is never stored.
pub(crate) fn complete_unstored(object: &mut Value, status: &Value) {
    let _ = meta::of(object);
    if let Some(fields) = object.as_object_mut() {
        fields.insert("status".to_owned(), status.clone());
    }
}

/// Encodes a watch, of which each piece is one or more lines of JSON.
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

/// A whole answer as JSON, or in the encoding that the client accepts if there is one for it.
pub(crate) fn respond(code: u16, json: Bytes, encoding: Encoding) -> Response<Body> {
    let value = || serde_json::from_slice::<Value>(&json).ok();
    let other = match encoding {
        Encoding::Json => None,
        Encoding::Yaml => value()
            .and_then(|value| serde_saphyr::to_string(&value).ok())
            .map(|text| (Bytes::from(text), "application/yaml")),
        Encoding::Protobuf => value()
            .and_then(|value| encode::encode(&value))
            .map(|bytes| (Bytes::from(bytes), PROTOBUF)),
    };
    let (bytes, media) = other.unwrap_or((json, "application/json"));
    let mut response = Response::new(body::full(bytes));
    *response.status_mut() =
        StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static(media));
    response
}
