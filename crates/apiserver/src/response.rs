//! Responses: of errors, of documents, and of objects in the encoding accepted by the client.

use apimachinery::kinds::shape::protobuf::encode;
use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use serde_json::Value;

use crate::body::{self, Body};
use crate::error::ApiError;
use crate::request::accept::{Encoding, PROTOBUF};

/// [`Response`] for an [`ApiError`].
pub(crate) fn failure(error: &ApiError) -> Response<Body> {
    failure_in(error, Encoding::Json)
}

/// [`Response`] for an [`ApiError`] in the [`Encoding`] accepted by the client.
pub(crate) fn failure_in(error: &ApiError, encoding: Encoding) -> Response<Body> {
    let mut response = respond(error.code, error.status().to_string().into(), encoding);
    let retry = error
        .details
        .as_ref()
        .map(|details| &details["retryAfterSeconds"]);
    if let Some(seconds) = retry.and_then(Value::as_i64) {
        let seconds = HeaderValue::from(seconds);
        response.headers_mut().insert(header::RETRY_AFTER, seconds);
    }
    response
}

/// [`Response`] without a [`Body`].
pub(crate) fn empty(code: u16) -> Response<Body> {
    let mut response = text(code, "");
    response.headers_mut().remove(header::CONTENT_TYPE);
    response
}

/// JSON document outside of the API's objects.
pub(crate) fn json_document(value: Value) -> Response<Body> {
    respond(200, value.to_string().into(), Encoding::Json)
}

/// A plain-text [`Response`].
pub(crate) fn text(code: u16, text: &str) -> Response<Body> {
    let mut response = Response::new(body::full(text.to_owned()));
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::OK);
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, plain);
    response
}

/// Whole answer as JSON, or in the [`Encoding`] accepted by the client if the object has one.
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
