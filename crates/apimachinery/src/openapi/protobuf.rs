//! OpenAPI v2 document in protobuf, as requested by client-go: the messages of gnostic
//! (`github.com/google/gnostic-models/openapiv2`) that the document needs.

use serde_json::Value;

use crate::kinds::shape::protobuf::wire::Writer;
use crate::value::items;

type Message = fn(&Value) -> Vec<u8>;

/// Type of a field of a message, which determines the encoding of its JSON.
enum Part {
    Text,
    Texts,
    Flag,
    Whole,
    Number,
    /// Any JSON, as YAML.
    Any,
    Anys,
    One(Message),
    Each(Message),
}

/// Encodes the document.
pub fn document(document: &Value) -> Vec<u8> {
    use Part::{One, Text, Texts};
    let fields = [
        ("swagger", 1, Text),
        ("info", 2, One(info)),
        ("host", 3, Text),
        ("basePath", 4, Text),
        ("schemes", 5, Texts),
        ("consumes", 6, Texts),
        ("produces", 7, Texts),
        ("paths", 8, One(|value| named(2, value, path))),
        ("definitions", 9, One(|value| named(1, value, schema))),
    ];
    message(document, &fields, 16)
}

fn info(value: &Value) -> Vec<u8> {
    let fields = [
        ("title", 1, Part::Text),
        ("version", 2, Part::Text),
        ("description", 3, Part::Text),
    ];
    message(value, &fields, 7)
}

fn path(value: &Value) -> Vec<u8> {
    use Part::{Each, One};
    let fields = [
        ("get", 2, One(operation)),
        ("put", 3, One(operation)),
        ("post", 4, One(operation)),
        ("delete", 5, One(operation)),
        ("options", 6, One(operation)),
        ("head", 7, One(operation)),
        ("patch", 8, One(operation)),
        ("parameters", 9, Each(parameter)),
    ];
    message(value, &fields, 10)
}

fn operation(value: &Value) -> Vec<u8> {
    use Part::{Each, Flag, One, Text, Texts};
    let fields = [
        ("tags", 1, Texts),
        ("summary", 2, Text),
        ("description", 3, Text),
        ("operationId", 5, Text),
        ("produces", 6, Texts),
        ("consumes", 7, Texts),
        ("parameters", 8, Each(parameter)),
        ("responses", 9, One(|value| named(1, value, response))),
        ("schemes", 10, Texts),
        ("deprecated", 11, Flag),
    ];
    message(value, &fields, 13)
}

/// Encodes a parameter: a body parameter, or one of four others with different field numbers.
fn parameter(value: &Value) -> Vec<u8> {
    use Part::{Any, Flag, One, Text};
    if value["$ref"].is_string() {
        return within(2, &message(value, &[("$ref", 1, Text)], 0));
    }
    if value["in"] == "body" {
        let fields = [
            ("description", 1, Text),
            ("name", 2, Text),
            ("in", 3, Text),
            ("required", 4, Flag),
            ("schema", 5, One(schema)),
        ];
        return within(1, &within(1, &message(value, &fields, 6)));
    }
    let (kind, shift) = match value["in"].as_str() {
        Some("header") => (1, 0),
        Some("formData") => (2, 1),
        Some("query") => (3, 1),
        _ => (4, 0),
    };
    let fields = [
        ("required", 1, Flag),
        ("in", 2, Text),
        ("description", 3, Text),
        ("name", 4, Text),
        ("type", 5 + shift, Text),
        ("format", 6 + shift, Text),
        ("default", 9 + shift, Any),
        ("uniqueItems", 19 + shift, Flag),
    ];
    within(
        1,
        &within(2, &within(kind, &message(value, &fields, 22 + shift))),
    )
}

/// Encodes a response with its schema.
fn response(value: &Value) -> Vec<u8> {
    let schema: Message = |value| within(1, &schema(value));
    let fields = [
        ("description", 1, Part::Text),
        ("schema", 2, Part::One(schema)),
    ];
    within(1, &message(value, &fields, 5))
}

fn schema(value: &Value) -> Vec<u8> {
    use Part::{Any, Anys, Each, Flag, Number, One, Text, Texts, Whole};
    let fields = [
        ("$ref", 1, Text),
        ("format", 2, Text),
        ("title", 3, Text),
        ("description", 4, Text),
        ("default", 5, Any),
        ("multipleOf", 6, Number),
        ("maximum", 7, Number),
        ("exclusiveMaximum", 8, Flag),
        ("minimum", 9, Number),
        ("exclusiveMinimum", 10, Flag),
        ("maxLength", 11, Whole),
        ("minLength", 12, Whole),
        ("pattern", 13, Text),
        ("maxItems", 14, Whole),
        ("minItems", 15, Whole),
        ("uniqueItems", 16, Flag),
        ("maxProperties", 17, Whole),
        ("minProperties", 18, Whole),
        ("required", 19, Texts),
        ("enum", 20, Anys),
        ("additionalProperties", 21, One(additional)),
        ("type", 22, One(types)),
        ("items", 23, One(|value| within(1, &schema(value)))),
        ("allOf", 24, Each(schema)),
        ("properties", 25, One(|value| named(1, value, schema))),
        ("discriminator", 26, Text),
        ("readOnly", 27, Flag),
        ("example", 30, Any),
    ];
    message(value, &fields, 31)
}

fn additional(value: &Value) -> Vec<u8> {
    match value {
        Value::Bool(flag) => {
            let mut message = Writer::default();
            message.number(2, u64::from(*flag));
            message.finish()
        }
        value => within(1, &schema(value)),
    }
}

fn types(value: &Value) -> Vec<u8> {
    let mut message = Writer::default();
    match value {
        Value::String(text) => message.bytes(1, text.as_bytes()),
        value => texts(1, value, &mut message),
    }
    message.finish()
}

/// Encodes a message by its fields. `extensions` is the number of the field for `x-` keys, or 0.
fn message(value: &Value, fields: &[(&str, u64, Part)], extensions: u64) -> Vec<u8> {
    let mut message = Writer::default();
    for (name, number, part) in fields {
        if let Some(value) = value.get(*name) {
            put(*number, part, value, &mut message);
        }
    }
    let all = value.as_object().into_iter().flatten();
    for (name, value) in all.filter(|(name, _)| extensions > 0 && name.starts_with("x-")) {
        message.bytes(extensions, &entry(name, &any(value)));
    }
    message.finish()
}

fn put(number: u64, part: &Part, value: &Value, message: &mut Writer) {
    match part {
        Part::Text => message.bytes(number, value.as_str().unwrap_or_default().as_bytes()),
        Part::Texts => texts(number, value, message),
        Part::Flag => message.number(number, u64::from(value == &Value::Bool(true))),
        Part::Whole => message.number(number, value.as_i64().unwrap_or_default().cast_unsigned()),
        Part::Number => message.fixed(number, value.as_f64().unwrap_or_default().to_bits()),
        Part::Any => message.bytes(number, &any(value)),
        Part::Anys => {
            for item in items(value) {
                message.bytes(number, &any(item));
            }
        }
        Part::One(of) => message.bytes(number, &of(value)),
        Part::Each(of) => {
            for item in items(value) {
                message.bytes(number, &of(item));
            }
        }
    }
}

fn texts(number: u64, value: &Value, message: &mut Writer) {
    for item in items(value).filter_map(Value::as_str) {
        message.bytes(number, item.as_bytes());
    }
}

/// Encodes a map as named entries.
fn named(number: u64, value: &Value, of: Message) -> Vec<u8> {
    let mut message = Writer::default();
    for (name, value) in value.as_object().into_iter().flatten() {
        message.bytes(number, &entry(name, &of(value)));
    }
    message.finish()
}

fn entry(name: &str, value: &[u8]) -> Vec<u8> {
    let mut message = Writer::default();
    message.bytes(1, name.as_bytes());
    message.bytes(2, value);
    message.finish()
}

/// Encodes any JSON as YAML: JSON is YAML.
fn any(value: &Value) -> Vec<u8> {
    within(2, format!("{value}\n").as_bytes())
}

fn within(number: u64, content: &[u8]) -> Vec<u8> {
    let mut message = Writer::default();
    message.bytes(number, content);
    message.finish()
}
