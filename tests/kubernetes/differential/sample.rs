//! Objects made from a schema: with as little as it allows, with one field more, and wrong in each way that it can be.

use std::collections::BTreeSet;

use regex::Regex;
use serde_json::{Map, Value, json};

/// Texts of which one fits most patterns and formats.
const TEXTS: [&str; 16] = [
    "a",
    "A",
    "1",
    "v1",
    "v1.34.2",
    "10.6.0.0/24",
    "192.0.2.1",
    "Linux",
    "NoSchedule",
    "infrastructure.cluster.x-k8s.io",
    "fa:16:3e:00:00:01",
    "5m",
    "https://example.com",
    "Ready",
    "a/b",
    "debian@sha256:0000000000000000000000000000000000000000000000000000000000000000",
];

/// How deep a schema is followed.
const DEPTH: usize = 12;

/// A value with what the schema asks for and nothing else.
pub(crate) fn least(schema: &Value) -> Value {
    value(schema, false, 0)
}

/// A value with every field that there is.
pub(crate) fn most(schema: &Value) -> Value {
    value(schema, true, 0)
}

fn value(schema: &Value, whole: bool, depth: usize) -> Value {
    if let Some(choice) = schema["enum"].get(0) {
        return choice.clone();
    }
    if schema["x-kubernetes-int-or-string"] == true {
        return Value::from(1);
    }
    match schema["type"].as_str() {
        Some("boolean") => Value::from(true),
        Some("integer") => Value::from(schema["minimum"].as_f64().unwrap_or(1.0).max(1.0) as i64),
        Some("number") => Value::from(schema["minimum"].as_f64().unwrap_or(1.5)),
        Some("array") => {
            let wanted = usize::from(whole).max(bound(schema, "minItems"));
            let item = value(&schema["items"], whole, depth + 1);
            Value::Array(vec![item; wanted])
        }
        Some("string") => Value::from(text(schema)),
        _ if depth > DEPTH => json!({}),
        _ => object(schema, whole, depth),
    }
}

fn object(schema: &Value, whole: bool, depth: usize) -> Value {
    let no_fields = Map::new();
    let fields = schema["properties"].as_object().unwrap_or(&no_fields);
    let required = |name: &str| {
        let names = schema["required"].as_array();
        names.is_some_and(|names| names.iter().any(|required| required == name))
    };
    let most = match schema["maxProperties"].as_u64() {
        Some(most) => most as usize,
        None => usize::MAX,
    };
    let wanted = if whole {
        most
    } else {
        bound(schema, "minProperties")
    };
    let mut object = Map::new();
    for (name, field) in fields.iter().filter(|(name, _)| required(name)) {
        object.insert(name.clone(), value(field, whole, depth + 1));
    }
    for (name, field) in fields {
        if object.len() >= wanted {
            break;
        }
        if !object.contains_key(name) {
            object.insert(name.clone(), value(field, whole, depth + 1));
        }
    }
    if whole && schema["additionalProperties"].is_object() {
        let value = value(&schema["additionalProperties"], whole, depth + 1);
        object.insert("key".to_owned(), value);
    }
    if whole && schema["x-kubernetes-preserve-unknown-fields"] == true && fields.is_empty() {
        object.insert("any".to_owned(), json!({"list": [1, "a", null]}));
    }
    Value::Object(object)
}

fn text(schema: &Value) -> String {
    let shortest = bound(schema, "minLength");
    match schema["format"].as_str() {
        Some("date-time") => return "2025-01-02T03:04:05Z".to_owned(),
        Some("uuid") => return "6d2a5c5e-8c4c-4b0a-8a5c-0d9f3a1b2c3d".to_owned(),
        Some("ipv4") => return "192.0.2.1".to_owned(),
        Some("ipv6") => return "2001:db8::1".to_owned(),
        Some("byte") => return "YQ==".to_owned(),
        Some("duration") => return "5m".to_owned(),
        _ => {}
    }
    let pattern = schema["pattern"]
        .as_str()
        .and_then(|pattern| Regex::new(pattern).ok());
    let fits = |text: &&&str| {
        text.len() >= shortest
            && pattern
                .as_ref()
                .is_none_or(|pattern| pattern.is_match(text))
    };
    match TEXTS.iter().find(fits) {
        Some(text) => (*text).to_owned(),
        None => "a".repeat(shortest.max(1)),
    }
}

/// Values that are wrong: of the whole schema, and of each schema within it that was not `seen` yet, put where it
/// stands into a value that is right otherwise. All fields of an object are wrong at the same time, each in the same way.
pub(crate) fn wrong(schema: &Value, seen: &mut BTreeSet<String>) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    wrong_at(schema, String::new(), 0, seen, &mut found);
    found
}

type Way = fn(&Value) -> Option<Value>;

const WAYS: [(&str, Way); 4] = [
    ("of other types", of_another_type),
    ("too little", too_little),
    ("too much", too_much),
    ("null", |_| Some(Value::Null)),
];

fn wrong_at(
    schema: &Value,
    place: String,
    depth: usize,
    seen: &mut BTreeSet<String>,
    found: &mut Vec<(String, Value)>,
) {
    if depth > DEPTH || !seen.insert(bare(schema).to_string()) {
        return;
    }
    let right = least(schema);
    let Some(fields) = schema["properties"].as_object() else {
        // A list or a map: what is wrong within its items.
        for (within, list) in [("items", true), ("additionalProperties", false)] {
            if !schema[within].is_object() {
                continue;
            }
            let mut inner = Vec::new();
            wrong_at(
                &schema[within],
                format!("{place}/0"),
                depth + 1,
                seen,
                &mut inner,
            );
            found.extend(inner.into_iter().map(|(what, value)| {
                (
                    what,
                    if list {
                        json!([value])
                    } else {
                        json!({ "key": value })
                    },
                )
            }));
        }
        return;
    };
    found.push((format!("{place} empty"), json!({})));
    let mut more = right.clone();
    more["unknownField"] = json!({"a": 1});
    found.push((format!("{place} with an unknown field"), more));
    for (what, way) in WAYS {
        let mut spoilt = right.clone();
        for (name, field) in fields {
            if let Some(value) = way(field) {
                spoilt[name] = value;
            }
        }
        if spoilt != right {
            found.push((format!("{place} {what}"), spoilt));
        }
    }
    for (name, field) in fields {
        let mut inner = Vec::new();
        wrong_at(
            field,
            format!("{place}/{name}"),
            depth + 1,
            seen,
            &mut inner,
        );
        found.extend(inner.into_iter().map(|(what, value)| {
            let mut whole = right.clone();
            whole[name] = value;
            (what, whole)
        }));
    }
}

fn of_another_type(schema: &Value) -> Option<Value> {
    if schema["x-kubernetes-int-or-string"] == true {
        return Some(json!(1.5));
    }
    Some(match schema["type"].as_str()? {
        "string" => json!(5),
        "boolean" => json!("true"),
        "integer" | "number" => json!("1"),
        "array" => json!({}),
        _ => json!([]),
    })
}

fn too_little(schema: &Value) -> Option<Value> {
    match schema["type"].as_str()? {
        "string" if schema["enum"].is_array() => Some(json!("Other")),
        "string" => Some(json!("")),
        "integer" => Some(json!(schema["minimum"].as_f64()? as i64 - 1)),
        "array" => Some(json!([])),
        "object" => Some(json!({})),
        _ => None,
    }
}

fn too_much(schema: &Value) -> Option<Value> {
    match schema["type"].as_str()? {
        "string" if schema["maxLength"].is_u64() => {
            Some(Value::from("a".repeat(bound(schema, "maxLength") + 1)))
        }
        "string" if schema["pattern"].is_string() || schema["format"].is_string() => {
            Some(json!(" ,no\n"))
        }
        "integer" if schema["maximum"].is_number() => {
            Some(json!(schema["maximum"].as_f64()? as i64 + 1))
        }
        "integer" if schema["format"] == "int32" => Some(json!(1_i64 << 40)),
        "integer" => Some(json!(1.25)),
        "array" => {
            let count = bound(schema, "maxItems").clamp(1, 5_000) + 1;
            Some(Value::Array(vec![least(&schema["items"]); count]))
        }
        "object" if schema["maxProperties"].is_u64() => {
            let mut open = schema.clone();
            open.as_object_mut()?.remove("maxProperties");
            Some(most(&open))
        }
        _ => None,
    }
}

/// A schema without its words.
fn bare(schema: &Value) -> Value {
    match schema {
        Value::Object(fields) => fields
            .iter()
            .filter(|(name, value)| *name != "description" || !value.is_string())
            .map(|(name, value)| (name.clone(), bare(value)))
            .collect(),
        Value::Array(items) => items.iter().map(bare).collect(),
        other => other.clone(),
    }
}

fn bound(schema: &Value, name: &str) -> usize {
    schema[name].as_u64().unwrap_or(0) as usize
}

#[test]
fn samples_have_what_is_required_and_are_wrong_in_each_way() {
    let schema = json!({"type": "object", "required": ["a"], "properties": {
        "a": {"type": "string", "minLength": 1},
        "b": {"type": "array", "maxItems": 1, "items": {"type": "object", "properties": {"c": {"type": "integer", "maximum": 3}}}},
    }});
    assert_eq!(least(&schema), json!({"a": "a"}));
    assert_eq!(most(&schema), json!({"a": "a", "b": [{"c": 1}]}));
    let wrong = wrong(&schema, &mut BTreeSet::new());
    for expected in [
        json!({"a": 5, "b": {}}),
        json!({"a": "", "b": []}),
        json!({"a": null, "b": null}),
        json!({"a": "a", "b": [{"c": 4}]}),
        json!({"a": "a", "b": [{"c": "1"}]}),
    ] {
        assert!(
            wrong.iter().any(|(_, value)| *value == expected),
            "{expected} in {wrong:?}"
        );
    }
}
