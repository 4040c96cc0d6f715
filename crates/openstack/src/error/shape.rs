//! Parsing of the error formats of all services.

use std::time::Duration;

use http::{HeaderMap, StatusCode, header};
use serde_json::Value;

use super::ErrorKind;

/// Longer messages are HTML pages or stack traces.
const LONGEST_MESSAGE: usize = 600;

/// The error in a response: its message, and the type name that some services send.
pub(super) struct Fault {
    pub(super) message: String,
    pub(super) name: String,
}

/// Reads the fault out of an error response of any service.
pub(super) fn fault(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Fault {
    let text = String::from_utf8_lossy(body);
    let is_html = text.trim_start().starts_with('<')
        || headers
            .get(header::CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
            .is_some_and(|value| value.contains("html"));
    let mut fault = match serde_json::from_slice::<Value>(body) {
        Ok(value) => from_json(&value),
        Err(_) if is_html => Fault {
            message: without_markup(&text),
            name: String::new(),
        },
        Err(_) => Fault {
            message: text.trim().to_owned(),
            name: String::new(),
        },
    };
    if fault.message.is_empty() {
        fault.message = status.canonical_reason().unwrap_or("no message").to_owned();
    }
    if let Some((end, _)) = fault.message.char_indices().nth(LONGEST_MESSAGE) {
        fault.message.truncate(end);
        fault.message.push('…');
    }
    fault
}

/// The class of a response with this status and fault.
pub(super) fn kind(status: StatusCode, headers: &HeaderMap, fault: &Fault) -> ErrorKind {
    let contains = |words: &[&str]| {
        let text = format!("{} {}", fault.name, fault.message).to_ascii_lowercase();
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

/// `Retry-After` in seconds. OpenStack does not send HTTP dates.
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

/// The id of the request in the logs of the cloud.
pub(super) fn request_id(headers: &HeaderMap) -> Option<String> {
    ["x-openstack-request-id", "x-compute-request-id"]
        .iter()
        .find_map(|name| headers.get(*name))
        .and_then(|value| value.to_str().ok())
        .map(str::to_owned)
}

fn transient(headers: &HeaderMap) -> ErrorKind {
    ErrorKind::Transient {
        retry_after: retry_after(headers),
    }
}

/// Neutron `{"NeutronError": {type, message}}` (or a bare string), Nova and Cinder
/// `{"badRequest": {message}}`, Keystone `{"error": {message}}`, Octavia `{"faultstring"}`,
/// Glance `{"message"}`, Placement `{"errors": [{detail}]}`.
fn from_json(value: &Value) -> Fault {
    let text = |value: &Value, key: &str| {
        value
            .get(key)
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty())
            .map(str::to_owned)
    };
    let words = |value: &Value| {
        ["message", "faultstring", "detail", "title", "description"]
            .iter()
            .find_map(|key| text(value, key))
    };
    let name = |value: &Value| {
        ["type", "faultcode"]
            .iter()
            .find_map(|key| text(value, key))
    };
    let inner = match value {
        Value::String(text) => {
            return Fault {
                message: text.clone(),
                name: String::new(),
            };
        }
        Value::Object(map) if words(value).is_none() => {
            map.iter().find_map(|(key, inner)| match inner {
                Value::Object(_) => Some((key.clone(), inner)),
                Value::Array(list) => list.first().map(|first| (key.clone(), first)),
                Value::String(_) => Some((key.clone(), inner)),
                _ => None,
            })
        }
        _ => Some((String::new(), value)),
    };
    let Some((key, inner)) = inner else {
        return Fault {
            message: String::new(),
            name: String::new(),
        };
    };
    let message = match inner {
        Value::String(text) => text.clone(),
        other => words(other).unwrap_or_default(),
    };
    // Glance may embed HTML in the JSON message.
    let message = if message.contains("<br") {
        without_markup(&message)
    } else {
        message
    };
    Fault {
        message: message.trim().to_owned(),
        name: name(inner).unwrap_or(key),
    }
}

/// The text of an HTML error page, without its title, tags and blank lines.
fn without_markup(html: &str) -> String {
    let body = html
        .find("<body")
        .map_or(html, |start| html.get(start..).unwrap_or(html));
    let mut text = String::new();
    let mut inside = false;
    for letter in body.chars() {
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
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
