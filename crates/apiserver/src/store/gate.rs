//! Gate in front of the store: accepted objects are neither nested too deeply nor too large, and can be read back
//! unchanged.
//!
//! Objects from all sources (JSON, YAML, protobuf with embedded JSON, a patch, a webhook, a controller) become a
//! [`Draft`] here and nowhere else. With an unreadable object, the next start would reject the database.

use std::fmt;

use apimachinery::kinds::Registry;
use apimachinery::schema::{self, MAX_BYTES, MAX_DEPTH};
use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::{Map, Value};

use super::object::{Draft, Object};

/// Reason why an object cannot be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unstorable {
    /// JSON readers stop at 128 levels, and lists, watches and reviews nest an object a few levels deeper than the
    /// store does.
    #[error(
        "the object is nested deeper than {MAX_DEPTH} levels, its managed fields included; at most that many can be stored"
    )]
    TooDeep,
    /// The message of kube-apiserver.
    #[error("etcdserver: request is too large")]
    TooLarge,
    /// A bug of this server.
    #[error("the object would not read back as it was written; nothing was stored")]
    Unreadable,
}

/// Checks an [`Object`] before storage. `previous` is the object to replace: the new one may keep its depth and size, so
/// that the object can still be edited and deleted.
pub(crate) fn pass(value: &Value, previous: Option<&Object>) -> Result<Draft, Unstorable> {
    let was_too_deep = |previous: &Object| schema::too_deep(&previous.value());
    if schema::too_deep(value) && !previous.is_some_and(was_too_deep) {
        return Err(Unstorable::TooDeep);
    }
    let draft = Draft::new(value);
    let bytes = size(value, draft.length());
    if bytes > MAX_BYTES && previous.is_none_or(|previous| draft.length() > previous.length()) {
        return Err(Unstorable::TooLarge);
    }
    if reads_back(&draft.preview(), value) {
        Ok(draft)
    } else {
        tracing::error!(
            kind = value["kind"].as_str(),
            name = value["metadata"]["name"].as_str(),
            "an object would not read back as it was written"
        );
        Err(Unstorable::Unreadable)
    }
}

/// Size of an object for the limit. etcd stores custom objects and definitions as JSON and the others as protobuf,
/// with the bare length of texts and no names of fields.
fn size(value: &Value, length: usize) -> usize {
    let api_version = value["apiVersion"].as_str().unwrap_or_default();
    let group = api_version.rsplit_once('/').map_or("", |(group, _)| group);
    let in_json = group == "apiextensions.k8s.io" || !Registry::is_built_in(group);
    if in_json || length <= MAX_BYTES {
        length
    } else {
        text_bytes(value)
    }
}

/// Total size of all texts in a value in bytes. Recursion is bounded: the depth has been checked.
fn text_bytes(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(text_bytes).sum(),
        Value::Object(fields) => fields.values().map(text_bytes).sum(),
        _ => 0,
    }
}

/// True if `bytes`, parsed as the store parses them, equal `value` except for the resource version.
fn reads_back(bytes: &[u8], value: &Value) -> bool {
    let mut from = serde_json::Deserializer::from_slice(bytes);
    let expected = Expected {
        value,
        place: Level::Root,
    };
    expected.deserialize(&mut from).is_ok() && from.end().is_ok()
}

/// Compares a parsed value with another one without building a value.
#[derive(Clone, Copy)]
struct Expected<'a> {
    value: &'a Value,
    place: Level,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Metadata,
    Inner,
}

const REVISION: &str = "resourceVersion";

impl Expected<'_> {
    fn is<E: serde::de::Error>(self, found: &Value) -> Result<(), E> {
        if self.value == found {
            Ok(())
        } else {
            Err(E::custom("another value"))
        }
    }

    /// Expected number of fields. The metadata is always written, with the resource version, and the version is not
    /// compared.
    fn fields(self, fields: &Map<String, Value>) -> usize {
        match self.place {
            Level::Root => fields.len() + usize::from(!fields.contains_key("metadata")),
            Level::Metadata => fields.len() + usize::from(!fields.contains_key(REVISION)),
            Level::Inner => fields.len(),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Expected<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Expected<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the value that was written")
    }

    fn visit_bool<E: serde::de::Error>(self, found: bool) -> Result<(), E> {
        self.is(&Value::from(found))
    }

    fn visit_i64<E: serde::de::Error>(self, found: i64) -> Result<(), E> {
        self.is(&Value::from(found))
    }

    fn visit_u64<E: serde::de::Error>(self, found: u64) -> Result<(), E> {
        self.is(&Value::from(found))
    }

    fn visit_f64<E: serde::de::Error>(self, found: f64) -> Result<(), E> {
        // Without the feature `float_roundtrip`, serde_json parses some fractions with another last digit.
        let near = |value: f64| value.to_bits().abs_diff(found.to_bits()) <= 2;
        match self.value.as_f64() {
            Some(value) if self.value.is_f64() && near(value) => Ok(()),
            _ => Err(E::custom("another number")),
        }
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        self.is(&Value::Null)
    }

    fn visit_str<E: serde::de::Error>(self, found: &str) -> Result<(), E> {
        match self.value {
            Value::String(text) if text == found => Ok(()),
            _ => Err(E::custom("another text")),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut found: A) -> Result<(), A::Error> {
        let Value::Array(items) = self.value else {
            return Err(A::Error::custom("a list"));
        };
        for value in items {
            let item = Expected {
                value,
                place: Level::Inner,
            };
            if found.next_element_seed(item)?.is_none() {
                return Err(A::Error::custom("a shorter list"));
            }
        }
        match found.next_element::<IgnoredAny>()? {
            None => Ok(()),
            Some(_) => Err(A::Error::custom("a longer list")),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut found: A) -> Result<(), A::Error> {
        let empty = Map::new();
        let fields = match (self.value, self.place) {
            (Value::Object(fields), _) => fields,
            (Value::Null, Level::Metadata) => &empty,
            _ => return Err(A::Error::custom("an object")),
        };
        let mut count = 0;
        while let Some(name) = found.next_key::<std::borrow::Cow<'_, str>>()? {
            count += 1;
            if self.place == Level::Metadata && name == REVISION {
                found.next_value::<IgnoredAny>()?;
                continue;
            }
            let place = match self.place {
                Level::Root if name == "metadata" => Level::Metadata,
                _ => Level::Inner,
            };
            let value = match (fields.get(&*name), place) {
                (Some(value), _) => value,
                (None, Level::Metadata) => &Value::Null,
                (None, _) => return Err(A::Error::custom("another field")),
            };
            found.next_value_seed(Expected { value, place })?;
        }
        if count == self.fields(fields) {
            Ok(())
        } else {
            Err(A::Error::custom("other fields"))
        }
    }
}

#[cfg(test)]
mod tests;
