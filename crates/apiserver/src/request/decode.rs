//! Decoding of request bodies: JSON, YAML or protobuf, with limits for size and depth, and detection of duplicate
//! fields.

pub(crate) mod duplicates;

use std::borrow::Cow;
use std::fmt;

use apimachinery::kinds::shape::protobuf as wire;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Limited};
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use self::duplicates::{Duplicates, Path};
use super::accept::ACCEPTED;
use super::go_json;
use crate::body::RequestBody;
use crate::error::ApiError;

/// Limit of request bodies in kube-apiserver, in bytes.
const LIMIT: usize = 3 * 1024 * 1024;

/// A decoded body.
#[derive(Clone, Debug)]
pub(crate) struct Decoded {
    pub(crate) value: Value,
    /// Paths of duplicate fields.
    pub(crate) duplicates: Vec<String>,
}

/// Reads a whole body.
pub(crate) async fn collect(body: RequestBody) -> Result<Bytes, ApiError> {
    match Limited::new(body, LIMIT).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => Err(ApiError::too_large()),
        Err(error) => Err(ApiError::bad_request(format!(
            "the request body cannot be read: {error}"
        ))),
    }
}

/// Decodes an object. `content_type` is the value of the header; without a value, the body is JSON.
pub(crate) fn decode(bytes: &[u8], content_type: Option<&str>) -> Result<Decoded, ApiError> {
    let media = content_type
        .unwrap_or("application/json")
        .split(';')
        .next()
        .unwrap_or_default()
        .trim();
    match media {
        "application/json" | "*/*" | "" => json(bytes),
        "application/yaml" => yaml(bytes),
        "application/vnd.kubernetes.protobuf" => protobuf(bytes),
        _ => Err(ApiError::unsupported_media_type(ACCEPTED)),
    }
}

/// Decodes protobuf of built-in kinds, the format of typed clients.
fn protobuf(bytes: &[u8]) -> Result<Decoded, ApiError> {
    match wire::decode(bytes) {
        Ok(Some(value)) => Ok(Decoded {
            value,
            duplicates: Vec::new(),
        }),
        Err(why) => Err(ApiError::bad_request(why)),
        // Clients fall back to JSON after this answer.
        Ok(None) => Err(ApiError::unsupported_media_type(
            "application/json, application/yaml",
        )),
    }
}

/// Decodes JSON. Malformed JSON is rejected with the messages of Go. As in Go, each byte of invalid UTF-8 becomes
/// U+FFFD.
pub(crate) fn json(bytes: &[u8]) -> Result<Decoded, ApiError> {
    let mut repaired = String::new();
    let bytes = if std::str::from_utf8(bytes).is_ok() {
        bytes
    } else if let Some(problem) = go_json::problem(bytes) {
        return Err(ApiError::bad_request(problem));
    } else {
        for chunk in bytes.utf8_chunks() {
            repaired.push_str(chunk.valid());
            let replaced = chunk.invalid().iter();
            repaired.extend(replaced.map(|_| char::REPLACEMENT_CHARACTER));
        }
        repaired.as_bytes()
    };
    let mut duplicates = Duplicates::default();
    let mut from = serde_json::Deserializer::from_slice(bytes);
    let seed = Seed {
        path: &Path::root(),
        duplicates: &mut duplicates,
    };
    let value = seed
        .deserialize(&mut from)
        .and_then(|value| from.end().map(|()| value))
        .map_err(|error| {
            ApiError::bad_request(go_json::problem(bytes).unwrap_or_else(|| error.to_string()))
        })?;
    let duplicates = duplicates.into_paths();
    Ok(Decoded { value, duplicates })
}

/// Decodes a single YAML document. JSON is a subset of YAML.
pub(crate) fn yaml(bytes: &[u8]) -> Result<Decoded, ApiError> {
    // Most "YAML" of clients is JSON, and the JSON parser is faster and reports more.
    if bytes.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{')
        && let Ok(decoded) = json(bytes)
    {
        return Ok(decoded);
    }
    // The message of the parser without its excerpt of the document.
    let failed = |error: &dyn fmt::Display| {
        let text = error.to_string();
        let text = text.lines().next().unwrap_or_default();
        ApiError::bad_request(format!("yaml: {}", text.trim_start_matches("error: ")))
    };
    let text = match wide(bytes) {
        Some(text) => Cow::Owned(text),
        None => Cow::Borrowed(std::str::from_utf8(bytes).map_err(|error| failed(&error))?),
    };
    let value = serde_saphyr::from_str(&text).map_err(|error| failed(&error))?;
    Ok(Decoded {
        value,
        duplicates: Vec::new(),
    })
}

/// Decodes UTF-16 after a byte order mark, as allowed in YAML.
fn wide(bytes: &[u8]) -> Option<String> {
    let unit = match bytes.get(..2)? {
        [0xff, 0xfe] => u16::from_le_bytes,
        [0xfe, 0xff] => u16::from_be_bytes,
        _ => return None,
    };
    let pairs = bytes[2..].chunks_exact(2);
    if !pairs.remainder().is_empty() {
        return None;
    }
    let units: Vec<u16> = pairs.map(|pair| unit([pair[0], pair[1]])).collect();
    String::from_utf16(&units).ok()
}

/// Builds a value and records duplicate fields; the last one wins, as in Go.
struct Seed<'a> {
    path: &'a Path<'a>,
    duplicates: &'a mut Duplicates,
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        loop {
            let path = self.path.item(list.len());
            let seed = Seed {
                path: &path,
                duplicates: &mut *self.duplicates,
            };
            match items.next_element_seed(seed)? {
                Some(item) => list.push(item),
                None => return Ok(Value::Array(list)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(name) = fields.next_key::<String>()? {
            let path = self.path.field(&name);
            if map.contains_key(&name) {
                self.duplicates.note(&path);
            }
            let value = fields.next_value_seed(Seed {
                path: &path,
                duplicates: &mut *self.duplicates,
            })?;
            map.insert(name, value);
        }
        Ok(Value::Object(map))
    }
}
