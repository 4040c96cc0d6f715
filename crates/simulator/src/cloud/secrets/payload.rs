//! The payload of a secret: text, or bytes.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;

use crate::cloud::call::{Answer, Call, Reply};
use crate::cloud::document::{Doc, Fields};
use crate::cloud::fault::Fault;

/// Barbican's default of `max_allowed_secret_in_bytes`.
const LIMIT: usize = 20_000;
const TEXT: &str = "text/plain";
const BYTES: &str = "application/octet-stream";

/// Payload with its type.
pub(super) struct Payload {
    bytes: Bytes,
    content_type: &'static str,
}

impl Payload {
    /// Returns the [`Payload`] of a creation, if given.
    pub(super) fn given(given: &Doc) -> Result<Option<Self>, Fault> {
        if !given.given("payload") {
            if given.given("payload_content_type") {
                return Err(schema(
                    "payload must be provided when payload_content_type is supplied.",
                    "payload",
                ));
            }
            return Ok(None);
        }
        let payload = given.text("payload");
        if payload.trim().is_empty() {
            return Err(schema(
                "If 'payload' specified, must be non empty.",
                "payload",
            ));
        }
        let content_type = known(given.text("payload_content_type"))?;
        let bytes = match (content_type, given.text("payload_content_encoding")) {
            (BYTES, "base64") => STANDARD
                .decode(payload)
                .map_err(|_| schema("Invalid payload for payload_content_encoding", "payload"))?,
            (BYTES, _) => {
                return Err(schema(
                    "payload_content_encoding must be specified when payload_content_type is application/octet-stream.",
                    "payload_content_encoding",
                ));
            }
            _ => payload.as_bytes().to_vec(),
        };
        Self::of_size(Bytes::from(bytes), content_type).map(Some)
    }

    /// Returns the [`Payload`] in the body of a PUT.
    pub(super) fn raw(call: &Call<'_>) -> Result<Self, Fault> {
        let header = |name: &str| call.headers.get(name).and_then(|it| it.to_str().ok());
        let content_type = known(header("content-type").unwrap_or_default())?;
        let bytes = if header("content-encoding") == Some("base64") {
            let decoded = STANDARD.decode(&call.raw_body);
            Bytes::from(decoded.map_err(|_| Fault::bad("The payload is not base64."))?)
        } else {
            call.raw_body.clone()
        };
        if bytes.is_empty() {
            return Err(Fault::bad("No data supplied to process."));
        }
        Self::of_size(bytes, content_type)
    }

    /// Returns the first byte.
    pub(super) fn first(&self) -> Option<u8> {
        self.bytes.first().copied()
    }

    /// Stores the payload in the secret.
    pub(super) fn keep(&self, doc: &mut Doc) {
        doc.set("_payload", STANDARD.encode(&self.bytes));
        doc.set("_content_type", self.content_type);
    }

    /// Answers with the payload, if the caller accepts its type.
    pub(super) fn reply(self, call: &Call<'_>) -> Answer {
        let accept = call.headers.get("accept").and_then(|it| it.to_str().ok());
        let accepted = accept.is_none_or(|accept| {
            accept.split(',').any(|part| {
                let kind = part.split(';').next().unwrap_or_default().trim();
                kind == "*/*" || kind == self.content_type
            })
        });
        if !accepted {
            return Err(Fault::new(
                406,
                "NotAcceptable",
                "Secret payload retrieval issue seen - Not Acceptable.",
            ));
        }
        Ok(Reply {
            raw: Some((self.content_type, self.bytes)),
            ..Reply::empty(200)
        })
    }

    fn of_size(bytes: Bytes, content_type: &'static str) -> Result<Self, Fault> {
        if bytes.len() > LIMIT {
            return Err(Fault::new(
                413,
                "RequestEntityTooLarge",
                format!("Provided information too large to process. Maximum is {LIMIT} bytes."),
            ));
        }
        Ok(Self {
            bytes,
            content_type,
        })
    }
}

/// Returns the [`Payload`] of a stored secret.
pub(super) fn of(doc: &Doc) -> Result<Payload, Fault> {
    let content_type = known(doc.text("_content_type"))?;
    let bytes = STANDARD.decode(doc.text("_payload")).unwrap_or_default();
    if bytes.is_empty() {
        return Err(Fault::missing(
            "Not Found. Sorry but your secret has no payload.",
        ));
    }
    Ok(Payload {
        bytes: Bytes::from(bytes),
        content_type,
    })
}

fn known(text: &str) -> Result<&'static str, Fault> {
    match text.split(';').next().unwrap_or_default().trim() {
        "" | TEXT => Ok(TEXT),
        BYTES => Ok(BYTES),
        other => Err(schema(
            &format!(
                "payload_content_type {other} is not one of text/plain, application/octet-stream"
            ),
            "payload_content_type",
        )),
    }
}

fn schema(problem: &str, property: &str) -> Fault {
    Fault::bad(format!(
        "Provided object does not match schema 'Secret': {problem} Invalid property: '{property}'"
    ))
}
