//! Parsing of the error formats of all services.

use std::time::Duration;

use http::{HeaderMap, StatusCode, header};
use serde_json::{Map, Value};

use super::{ErrorKind, printable};

/// Maximum length of a cloud's message, in characters. Longer messages are stack traces.
const LONGEST_MESSAGE: usize = 600;
/// Maximum length of a request id; real ids have 40 characters.
const LONGEST_REQUEST_ID: usize = 64;

/// Error in a response: the message, and the type name of some services.
pub(super) struct Fault {
    pub(super) message: String,
    pub(super) name: String,
}

/// Reads the fault from the body of an error response of any service; `None` for a body in no form of OpenStack.
pub(super) fn fault(body: &[u8]) -> Option<Fault> {
    let Ok(Value::Object(fields)) = serde_json::from_slice(body) else {
        return None;
    };
    let mut fault = of_pecan(&fields)
        .or_else(|| of_webob(&fields))
        .or_else(|| of_placement(&fields))
        .or_else(|| named(&fields))?;
    fault.message = printable::line(&sentence(&fault.message), LONGEST_MESSAGE);
    (!fault.message.is_empty()).then_some(fault)
}

/// Returns the class of a response with this status and fault.
pub(super) fn kind(status: StatusCode, headers: &HeaderMap, fault: Option<&Fault>) -> ErrorKind {
    let contains = |words: &[&str]| {
        let text = fault.map(|fault| format!("{} {}", fault.name, fault.message));
        let text = text.unwrap_or_default().to_ascii_lowercase();
        words.iter().any(|word| text.contains(word))
    };
    let over_quota = || {
        contains(&[
            "quota",
            "overlimit",
            "limitexceeded",
            "limit exceeded",
            "maximum number of",
            "exceeds allowed",
        ])
    };
    match status.as_u16() {
        401 => ErrorKind::Unauthenticated,
        // A proxy or a wrong URL says nothing of the object.
        404 | 410 if fault.is_none() => ErrorKind::Protocol,
        404 | 410 => ErrorKind::Absent,
        403 | 413 if over_quota() => ErrorKind::Quota,
        403 => ErrorKind::Denied,
        409 if over_quota() => ErrorKind::Quota,
        409 if contains(&[
            "already exist",
            "duplicate",
            "ipaddressinuse",
            "ipaddressalreadyallocated",
        ]) =>
        {
            ErrorKind::Conflict
        }
        409 if contains(&[
            "in use",
            "inuse",
            "immutable",
            "pending",
            "while it is in",
            "invalid state",
            "try again",
            "retry",
            "concurrent",
            "active state",
        ]) =>
        {
            ErrorKind::Busy
        }
        409 => ErrorKind::Conflict,
        412 => ErrorKind::Busy,
        413 if headers.contains_key(header::RETRY_AFTER) => transient(headers),
        408 | 425 | 429 => transient(headers),
        501 | 505 => ErrorKind::Invalid,
        500..=599 => transient(headers),
        300..=399 => ErrorKind::Protocol,
        _ => ErrorKind::Invalid,
    }
}

/// Returns `Retry-After` in seconds. OpenStack does not send HTTP dates.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds: f64 = headers
        .get(header::RETRY_AFTER)?
        .to_str()
        .ok()?
        .trim()
        .parse()
        .ok()?;
    // No service means more than a day; the limit keeps the conversion in range.
    (0.0..=86_400.0)
        .contains(&seconds)
        .then(|| Duration::from_secs_f64(seconds))
}

/// Returns the id of the request in the logs of the cloud.
pub(super) fn request_id(headers: &HeaderMap) -> Option<String> {
    ["x-openstack-request-id", "x-compute-request-id"]
        .iter()
        .find_map(|name| headers.get(*name))
        .and_then(|value| value.to_str().ok())
        .map(|id| printable::line(id, LONGEST_REQUEST_ID))
}

fn transient(headers: &HeaderMap) -> ErrorKind {
    ErrorKind::Transient {
        retry_after: retry_after(headers),
    }
}

/// Octavia: `{"faultcode", "faultstring", "debuginfo"}`.
fn of_pecan(fields: &Map<String, Value>) -> Option<Fault> {
    has_only(fields, &["faultcode", "faultstring", "debuginfo"])?;
    Some(Fault {
        message: text(fields, "faultstring")?,
        name: text(fields, "faultcode")?,
    })
}

/// Glance, and unknown paths of a service: `{"code", "title", "message"}`. Barbican, and some answers of Octavia:
/// `description` for `message`.
fn of_webob(fields: &Map<String, Value>) -> Option<Fault> {
    has_only(fields, &["code", "title", "message", "description"])?;
    fields.get("code")?;
    text(fields, "title")?;
    Some(Fault {
        message: text(fields, "message").or_else(|| text(fields, "description"))?,
        name: String::new(),
    })
}

/// Placement: `{"errors": [{"status", "title", "detail", "request_id", "code"}]}`.
fn of_placement(fields: &Map<String, Value>) -> Option<Fault> {
    has_only(fields, &["errors"])?;
    let first = fields.get("errors")?.as_array()?.first()?.as_object()?;
    first.get("status")?;
    text(first, "title")?;
    Some(Fault {
        message: text(first, "detail")?,
        name: String::new(),
    })
}

/// Reads an object under one name. Neutron: `{"NeutronError": {"type", "message", "detail"}}`, or a text. Keystone:
/// `{"error": {"code", "title", "message"}}`. Nova and Cinder: `{"badRequest": {"code", "message"}}`.
fn named(fields: &Map<String, Value>) -> Option<Fault> {
    let (name, inner) = fields.iter().next().filter(|_| fields.len() == 1)?;
    if name == "NeutronError" {
        return of_neutron(inner);
    }
    let inner = inner.as_object()?;
    inner.get("code")?.as_u64()?;
    if name == "error" {
        text(inner, "title")?;
    } else if !NOVA.contains(&name.as_str()) {
        return None;
    }
    Some(Fault {
        message: text(inner, "message")?,
        name: name.clone(),
    })
}

/// Names of faults of Nova and Cinder, `_fault_names` of both.
const NOVA: [&str; 11] = [
    "badRequest",
    "unauthorized",
    "forbidden",
    "itemNotFound",
    "badMethod",
    "conflictingRequest",
    "badMediaType",
    "overLimit",
    "notImplemented",
    "serviceUnavailable",
    "computeFault",
];

fn of_neutron(inner: &Value) -> Option<Fault> {
    let fault = match inner {
        Value::String(message) => Fault {
            message: message.clone(),
            name: String::new(),
        },
        Value::Object(inner) => Fault {
            message: text(inner, "message")?,
            name: text(inner, "type")?,
        },
        _ => return None,
    };
    Some(fault)
}

fn text(fields: &Map<String, Value>, key: &str) -> Option<String> {
    fields.get(key)?.as_str().map(str::to_owned)
}

/// Checks that an object has no other members: an error of another program has more.
fn has_only(fields: &Map<String, Value>, keys: &[&str]) -> Option<()> {
    fields
        .keys()
        .all(|key| keys.contains(&key.as_str()))
        .then_some(())
}

/// Returns a message on one line. webob puts HTML into its JSON.
fn sentence(message: &str) -> String {
    let text = match message.contains("<br") {
        true => without_markup(message),
        false => message.to_owned(),
    };
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the text of a piece of HTML, without tags.
fn without_markup(html: &str) -> String {
    let mut text = String::new();
    let mut inside = false;
    for letter in html.chars() {
        match letter {
            '<' => {
                inside = true;
                text.push(' ');
            }
            '>' => inside = false,
            _ if !inside => text.push(letter),
            _ => {}
        }
    }
    text
}
