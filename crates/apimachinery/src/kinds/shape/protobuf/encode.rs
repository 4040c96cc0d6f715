//! Encoding of objects as protobuf.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::wire::Writer;
use super::{MAGIC, NUMBERS, Numbers, SCHEMA, kind_of, structure_of};
use crate::kinds::shape::{Shape, Struct};

/// Encodes an object or a list in its envelope. Returns `None` if a part has no protobuf form, such as an unknown
/// field.
pub fn encode(object: &Value) -> Option<Vec<u8>> {
    let (api_version, kind) = (object["apiVersion"].as_str()?, object["kind"].as_str()?);
    let content = match kind_of(api_version, kind) {
        Some(name) => structure(name, object.as_object()?)?,
        None => list(api_version, kind.strip_suffix("List")?, object)?,
    };
    let mut about = Writer::default();
    about.bytes(1, api_version.as_bytes());
    about.bytes(2, kind.as_bytes());
    let mut envelope = Writer::default();
    envelope.bytes(1, &about.finish());
    envelope.bytes(2, &content);
    // Content encoding and content type are empty.
    envelope.bytes(3, b"");
    envelope.bytes(4, b"");
    Some([MAGIC, &envelope.finish()].concat())
}

/// Encodes an event of a watch, preceded by its length, from a line of JSON.
pub fn event(line: &[u8]) -> Option<Vec<u8>> {
    let event: Value = serde_json::from_slice(line).ok()?;
    let mut object = Writer::default();
    object.bytes(1, &encode(&event["object"])?);
    let mut message = Writer::default();
    message.bytes(1, event["type"].as_str()?.as_bytes());
    message.bytes(2, &object.finish());
    let message = message.finish();
    let length = u32::try_from(message.len()).ok()?;
    Some([&length.to_be_bytes(), message.as_slice()].concat())
}

/// The metadata of every list is field 1, and the items are field 2.
fn list(api_version: &str, kind: &str, list: &Value) -> Option<Vec<u8>> {
    let name = kind_of(api_version, kind)?;
    let mut message = Writer::default();
    let metadata = list["metadata"].as_object().cloned().unwrap_or_default();
    message.bytes(1, &structure("meta.v1.ListMeta", &metadata)?);
    for item in list["items"].as_array()? {
        message.bytes(2, &structure(name, item.as_object()?)?);
    }
    Some(message.finish())
}

fn structure(name: &str, object: &Map<String, Value>) -> Option<Vec<u8>> {
    let mut message = Writer::default();
    fields(
        structure_of(name)?,
        NUMBERS.get(name)?,
        object,
        &mut message,
    )?;
    Some(message.finish())
}

fn fields(
    shape: &Struct,
    numbers: &Numbers,
    object: &Map<String, Value>,
    message: &mut Writer,
) -> Option<()> {
    let mut numbers: Vec<_> = numbers.iter().collect();
    numbers.sort();
    for (&number, name) in numbers {
        // The fields of an embedded type are inlined.
        if let Some(embedded) = name.strip_prefix('@') {
            let mut within = Writer::default();
            fields(shape, NUMBERS.get(embedded)?, object, &mut within)?;
            message.bytes(number, &within.finish());
        } else if let Some(value) = object.get(*name).filter(|value| !value.is_null()) {
            put(number, &shape.fields.get(name)?.shape, value, message)?;
        }
    }
    Some(())
}

fn put(number: u64, shape: &Shape, value: &Value, message: &mut Writer) -> Option<()> {
    match shape {
        Shape::Pointer(to) => put(number, to, value, message)?,
        Shape::List(item) => {
            for value in value.as_array()? {
                put(number, item, value, message)?;
            }
        }
        Shape::Map(of) => {
            for (key, value) in value.as_object()? {
                let mut entry = Writer::default();
                entry.bytes(1, key.as_bytes());
                match of.as_ref() {
                    // Lists in maps are messages.
                    Shape::List(_) => {
                        let mut items = Writer::default();
                        put(1, of, value, &mut items)?;
                        entry.bytes(2, &items.finish());
                    }
                    of => put(2, of, value, &mut entry)?,
                }
                message.bytes(number, &entry.finish());
            }
        }
        Shape::Bool => message.number(number, u64::from(value.as_bool()?)),
        Shape::Integer(_) => message.number(number, integer(value)?),
        Shape::Float => message.fixed(number, value.as_f64()?.to_bits()),
        Shape::Text => message.bytes(number, value.as_str()?.as_bytes()),
        Shape::Bytes => message.bytes(number, &STANDARD.decode(value.as_str()?).ok()?),
        shape => message.bytes(number, &content(shape, value)?),
    }
    Some(())
}

/// Encodes the fields of a message.
fn content(shape: &Shape, value: &Value) -> Option<Vec<u8>> {
    let mut message = Writer::default();
    match shape {
        Shape::Quantity => match value {
            Value::String(text) => message.bytes(1, text.as_bytes()),
            number => message.bytes(1, number.to_string().as_bytes()),
        },
        Shape::Time => {
            let time: jiff::Timestamp = value.as_str()?.parse().ok()?;
            message.number(1, time.as_second().cast_unsigned());
            message.number(2, u64::try_from(time.subsec_nanosecond()).ok()?);
        }
        Shape::IntOrString => match value {
            Value::String(text) => {
                message.number(1, 1);
                message.bytes(3, text.as_bytes());
            }
            number => message.number(2, integer(number)?),
        },
        Shape::Any => message.bytes(1, value.to_string().as_bytes()),
        // Unions of schemas: a schema, or a schema and a flag, or a schema and a list.
        Shape::Struct("schema-or-bool") => match value {
            Value::Bool(flag) => message.number(1, u64::from(*flag)),
            schema => {
                message.number(1, 1);
                message.bytes(2, &structure(SCHEMA, schema.as_object()?)?);
            }
        },
        Shape::Struct("schema-or-list" | "schema-or-strings") => match value {
            Value::Array(items) => {
                for item in items {
                    match item {
                        Value::String(text) => message.bytes(2, text.as_bytes()),
                        schema => message.bytes(2, &structure(SCHEMA, schema.as_object()?)?),
                    }
                }
            }
            schema => message.bytes(1, &structure(SCHEMA, schema.as_object()?)?),
        },
        Shape::Struct(name) => return structure(name, value.as_object()?),
        _ => return None,
    }
    Some(message.finish())
}

fn integer(value: &Value) -> Option<u64> {
    value.as_i64().map(i64::cast_unsigned).or(value.as_u64())
}
