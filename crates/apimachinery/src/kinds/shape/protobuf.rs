//! Kubernetes protobuf, used by typed clients of client-go for built-in kinds.
//!
//! An object is in an envelope (`runtime.Unknown`) after the four bytes `k8s\0`. Field numbers are printed from the Go
//! types (`protobuf.json`, `tests/kubernetes/tools/shapes -protobuf`). The type of a field follows from its shape; the
//! shapes of definitions, lists and failures are in `wire.json`.

pub mod encode;
pub(crate) mod wire;

use std::collections::HashMap;
use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::time::MICROSECONDS;
use super::{Entries, Entry, Field, KINDS, STRUCTS, Shape, Struct, field};
use wire::{Reader, Wire};

const MAGIC: &[u8] = b"k8s\0";
/// Maximum nesting of messages, as for JSON.
const DEPTH: usize = 100;

type Numbers = HashMap<u64, &'static str>;

static NUMBERS: LazyLock<HashMap<&'static str, Numbers>> = LazyLock::new(|| {
    // Embedded in the program; a test parses the file.
    serde_json::from_str(include_str!("../protobuf.json")).unwrap_or_default()
});

/// Structs of `wire.json`, and its kinds.
type Others = (
    HashMap<&'static str, Struct>,
    HashMap<&'static str, &'static str>,
);

static OTHERS: LazyLock<Others> = LazyLock::new(|| {
    // Embedded in the program; a test parses the file.
    let entries: Entries = serde_json::from_str(include_str!("../wire.json")).unwrap_or_default();
    let (mut structs, mut kinds) = (HashMap::new(), HashMap::new());
    for (name, entry) in entries {
        match entry {
            Entry::Kind(of) => {
                kinds.insert(name, of);
            }
            Entry::Struct(fields) => {
                let fields = fields.into_iter().map(|(name, text)| (name, field(text)));
                let of = Struct {
                    name: name.rsplit('.').next().unwrap_or(name),
                    fields: fields.collect(),
                    defaults: Map::new(),
                    computed: None,
                };
                structs.insert(name, of);
            }
        }
    }
    (structs, kinds)
});

/// Type of a definition's schema, a branch of several unions.
const SCHEMA: &str = "apiextensions.v1.JSONSchemaProps";

fn structure_of(name: &str) -> Option<&'static Struct> {
    STRUCTS.get(name).or_else(|| OTHERS.0.get(name))
}

/// Returns the name of a kind's struct.
fn kind_of(api_version: &str, kind: &str) -> Option<&'static str> {
    let slash = if api_version.contains('/') { "" } else { "/" };
    let key = format!("{slash}{api_version}, Kind={kind}");
    let found = KINDS.get(key.as_str());
    found.or_else(|| OTHERS.1.get(key.as_str())).copied()
}

/// Decodes an object; `None` for kinds without known field numbers.
pub fn decode(bytes: &[u8]) -> Result<Option<Value>, String> {
    let raw = bytes.strip_prefix(MAGIC).ok_or(
        "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]",
    )?;
    if raw.is_empty() {
        return Err("empty body".to_owned());
    }
    let (mut api_version, mut kind, mut content) = (String::new(), String::new(), &[][..]);
    let mut envelope = Reader::new(raw);
    while let Some((number, wire)) = envelope.next()? {
        match (number, wire) {
            (1, Wire::Bytes(meta)) => {
                let mut meta = Reader::new(meta);
                while let Some((number, wire)) = meta.next()? {
                    match (number, wire) {
                        (1, Wire::Bytes(bytes)) => api_version = text(bytes)?,
                        (2, Wire::Bytes(bytes)) => kind = text(bytes)?,
                        _ => {}
                    }
                }
            }
            (2, Wire::Bytes(bytes)) => content = bytes,
            _ => {}
        }
    }
    let name = if kind == "DeleteOptions" {
        Some("meta.v1.DeleteOptions")
    } else {
        kind_of(&api_version, &kind)
    };
    let Some(name) = name else {
        return Ok(None);
    };
    let mut object = match structure(name, content, DEPTH)? {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    object.insert("apiVersion".to_owned(), Value::from(api_version));
    object.insert("kind".to_owned(), Value::from(kind));
    Ok(Some(Value::Object(object)))
}

fn structure(name: &str, bytes: &[u8], depth: usize) -> Result<Value, String> {
    let mut object = Map::new();
    if let (Some(shape), Some(numbers)) = (structure_of(name), NUMBERS.get(name)) {
        fields(shape, numbers, bytes, &mut object, depth)?;
    }
    Ok(Value::Object(object))
}

fn fields(
    shape: &Struct,
    numbers: &Numbers,
    bytes: &[u8],
    object: &mut Map<String, Value>,
    depth: usize,
) -> Result<(), String> {
    let deeper = depth.checked_sub(1).ok_or("nested too deep")?;
    let mut reader = Reader::new(bytes);
    while let Some((number, wire)) = reader.next()? {
        let Some(&name) = numbers.get(&number) else {
            continue;
        };
        // The fields of an embedded type are inlined.
        if let Some(embedded) = name.strip_prefix('@') {
            if let (Some(numbers), Wire::Bytes(bytes)) = (NUMBERS.get(embedded), wire) {
                fields(shape, numbers, bytes, object, deeper)?;
            }
            continue;
        }
        if let Some(field) = shape.fields.get(name) {
            put(object, name, field, wire, deeper).map_err(|why| format!("{name}: {why}"))?;
        }
    }
    Ok(())
}

fn put(
    object: &mut Map<String, Value>,
    name: &'static str,
    field: &Field,
    wire: Wire<'_>,
    depth: usize,
) -> Result<(), String> {
    match &field.shape {
        Shape::List(item) => {
            let item = value(name, item, wire, depth)?;
            let list = object.entry(name).or_insert_with(|| json!([]));
            if let Some(list) = list.as_array_mut() {
                list.push(item);
            }
        }
        Shape::Map(of) => {
            let (key, value) = entry(name, of, wire, depth)?;
            let map = object.entry(name).or_insert_with(|| json!({}));
            if let Some(map) = map.as_object_mut() {
                map.insert(key, value);
            }
        }
        Shape::Pointer(to) => {
            object.insert(name.to_owned(), value(name, to, wire, depth)?);
        }
        shape => {
            let value = value(name, shape, wire, depth)?;
            // Go writes fields that are not pointers even if they are zero.
            if field.always || !is_nothing(&value) {
                object.insert(name.to_owned(), value);
            }
        }
    }
    Ok(())
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(_) | Value::Object(_) => false,
    }
}

/// Decodes an entry of a map. Lists in maps are messages with a field `items`.
fn entry(name: &str, of: &Shape, wire: Wire<'_>, depth: usize) -> Result<(String, Value), String> {
    let Wire::Bytes(bytes) = wire else {
        return Err(WRONG.to_owned());
    };
    let (mut key, mut found) = (String::new(), None);
    let mut reader = Reader::new(bytes);
    while let Some((number, wire)) = reader.next()? {
        match (number, wire, of) {
            (1, Wire::Bytes(bytes), _) => key = text(bytes)?,
            (2, Wire::Bytes(bytes), Shape::List(item)) => {
                let mut items = Vec::new();
                let mut list = Reader::new(bytes);
                while let Some((_, wire)) = list.next()? {
                    items.push(value(name, item, wire, depth)?);
                }
                found = Some(Value::Array(items));
            }
            (2, wire, of) => found = Some(value(name, of, wire, depth)?),
            _ => {}
        }
    }
    let empty = match of {
        Shape::Text | Shape::Bytes => Value::from(""),
        Shape::List(_) => json!([]),
        _ => Value::Null,
    };
    Ok((key, found.unwrap_or(empty)))
}

const WRONG: &str = "wrong wire type";

fn value(name: &str, shape: &Shape, wire: Wire<'_>, depth: usize) -> Result<Value, String> {
    Ok(match (shape, wire) {
        (Shape::Pointer(to), wire) => value(name, to, wire, depth)?,
        (Shape::Text, Wire::Bytes(bytes)) => Value::from(text(bytes)?),
        (Shape::Bool, Wire::Number(number)) => Value::from(number != 0),
        (Shape::Integer(_), Wire::Number(number)) => Value::from(number.cast_signed()),
        (Shape::Float, Wire::Fixed(bits)) => float(f64::from_bits(bits)),
        (Shape::Bytes, Wire::Bytes(bytes)) => Value::from(STANDARD.encode(bytes)),
        (Shape::Quantity, Wire::Bytes(bytes)) => Value::from(text(part(bytes, 1)?)?),
        (Shape::Time, Wire::Bytes(bytes)) => time(bytes, MICROSECONDS.contains(&name))?,
        (Shape::IntOrString, Wire::Bytes(bytes)) => int_or_string(bytes)?,
        (Shape::Any, Wire::Bytes(bytes)) => {
            let raw = part(bytes, 1)?;
            if raw.is_empty() {
                Value::Null
            } else {
                serde_json::from_slice(raw).map_err(|error| error.to_string())?
            }
        }
        (
            Shape::Struct(union @ ("schema-or-bool" | "schema-or-list" | "schema-or-strings")),
            Wire::Bytes(bytes),
        ) => schema_or(union, bytes, depth)?,
        (Shape::Struct(of), Wire::Bytes(bytes)) => structure(of, bytes, depth)?,
        _ => return Err(WRONG.to_owned()),
    })
}

/// Returns a number in the JSON form of Go: whole numbers have no fraction.
fn float(number: f64) -> Value {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if number.fract() == 0.0 && number.abs() < EXACT {
        // In range and whole.
        #[expect(clippy::cast_possible_truncation)]
        return Value::from(number as i64);
    }
    Value::from(number)
}

/// Decodes a union of a schema and another type.
fn schema_or(union: &str, bytes: &[u8], depth: usize) -> Result<Value, String> {
    let deeper = depth.checked_sub(1).ok_or("nested too deep")?;
    let (mut flag, mut schema, mut list) = (false, None, Vec::new());
    let mut reader = Reader::new(bytes);
    while let Some((number, wire)) = reader.next()? {
        match (union, number, wire) {
            ("schema-or-bool", 1, Wire::Number(number)) => flag = number != 0,
            ("schema-or-bool", 2, Wire::Bytes(bytes)) | (_, 1, Wire::Bytes(bytes)) => {
                schema = Some(structure(SCHEMA, bytes, deeper)?);
            }
            ("schema-or-strings", 2, Wire::Bytes(bytes)) => list.push(Value::from(text(bytes)?)),
            ("schema-or-list", 2, Wire::Bytes(bytes)) => {
                list.push(structure(SCHEMA, bytes, deeper)?);
            }
            _ => {}
        }
    }
    Ok(match (union, schema) {
        (_, Some(schema)) => schema,
        ("schema-or-bool", None) => Value::from(flag),
        _ => Value::Array(list),
    })
}

fn text(bytes: &[u8]) -> Result<String, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "no UTF-8")?;
    Ok(text.to_owned())
}

/// Returns the bytes of a field of a message; empty if the field is missing.
fn part(bytes: &[u8], wanted: u64) -> Result<&[u8], String> {
    let mut reader = Reader::new(bytes);
    let mut found = &[][..];
    while let Some((number, wire)) = reader.next()? {
        if let Wire::Bytes(bytes) = wire
            && number == wanted
        {
            found = bytes;
        }
    }
    Ok(found)
}

/// Decodes a time; null for Go's zero time, which is an empty message.
fn time(bytes: &[u8], micro: bool) -> Result<Value, String> {
    let (mut seconds, mut nanoseconds) = (None, 0);
    let mut reader = Reader::new(bytes);
    while let Some((number, wire)) = reader.next()? {
        match (number, wire) {
            (1, Wire::Number(number)) => seconds = Some(number.cast_signed()),
            (2, Wire::Number(number)) => nanoseconds = i32::try_from(number).unwrap_or(0),
            _ => {}
        }
    }
    let time = seconds.and_then(|seconds| jiff::Timestamp::new(seconds, nanoseconds).ok());
    Ok(match time {
        None => Value::Null,
        Some(time) if micro => Value::from(time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()),
        Some(time) => Value::from(crate::time::seconds(time)),
    })
}

fn int_or_string(bytes: &[u8]) -> Result<Value, String> {
    let (mut is_text, mut number, mut string) = (false, 0, String::new());
    let mut reader = Reader::new(bytes);
    while let Some((field, wire)) = reader.next()? {
        match (field, wire) {
            (1, Wire::Number(kind)) => is_text = kind == 1,
            (2, Wire::Number(value)) => number = value.cast_signed(),
            (3, Wire::Bytes(bytes)) => string = text(bytes)?,
            _ => {}
        }
    }
    Ok(if is_text {
        Value::from(string)
    } else {
        Value::from(number)
    })
}

#[cfg(test)]
mod tests;
