//! A schema as kube-apiserver's Go type writes it again (`JSONSchemaProps`): what is empty is left out, and numbers
//! without a fraction are whole.

use serde_json::{Number, Value};

/// Fields that hold schemas: one, a list of them, or a map of them.
const SCHEMA: [&str; 3] = ["items", "additionalProperties", "not"];
const SCHEMAS: [&str; 3] = ["allOf", "anyOf", "oneOf"];
const NAMED: [&str; 3] = ["properties", "patternProperties", "definitions"];
/// Fields whose values are JSON that nobody looks into.
const RAW: [&str; 3] = ["default", "example", "enum"];

/// Brings the schemas of all versions of a definition into this form.
pub(super) fn schemas(crd: &mut Value) {
    let versions = crd["spec"]["versions"].as_array_mut();
    for version in versions.into_iter().flatten() {
        if let Some(schema) = version.pointer_mut("/schema/openAPIV3Schema") {
            write(schema);
        }
    }
}

// Recursion is bounded: decoding bounds the depth.
fn write(schema: &mut Value) {
    let Value::Object(fields) = schema else {
        return;
    };
    fields.retain(|name, value| !is_left_out(name, value));
    for (name, value) in fields.iter_mut() {
        match name.as_str() {
            "maximum" | "minimum" | "multipleOf" => whole(value),
            "x-kubernetes-validations" => {
                for rule in value.as_array_mut().into_iter().flatten() {
                    if let Value::Object(rule) = rule {
                        rule.retain(|name, value| !is_left_out(name, value) || name == "rule");
                    }
                }
            }
            name if SCHEMA.contains(&name) => match value {
                Value::Array(all) => all.iter_mut().for_each(write),
                one => write(one),
            },
            name if SCHEMAS.contains(&name) => {
                value.as_array_mut().into_iter().flatten().for_each(write);
            }
            name if NAMED.contains(&name) => {
                let all = value.as_object_mut().into_iter().flatten();
                all.for_each(|(_, schema)| write(schema));
            }
            _ => {}
        }
    }
}

/// What `omitempty` leaves out. Numbers and some flags are pointers, which are written when they are there.
fn is_left_out(name: &str, value: &Value) -> bool {
    let pointer = matches!(
        name,
        "x-kubernetes-preserve-unknown-fields"
            | "x-kubernetes-list-type"
            | "x-kubernetes-map-type"
            | "additionalProperties"
            | "additionalItems"
            | "optionalOldSelf"
            | "reason"
            | "$ref"
            | "items"
            | "not"
            | "externalDocs"
    );
    match value {
        Value::Null => true,
        Value::Bool(false) => !pointer && !RAW.contains(&name),
        Value::String(text) => text.is_empty() && !pointer && !RAW.contains(&name),
        Value::Array(items) => items.is_empty() && !matches!(name, "default" | "example" | "items"),
        Value::Object(fields) => fields.is_empty() && NAMED.contains(&name),
        Value::Bool(true) | Value::Number(_) => false,
    }
}

/// `65535.0` is `65535`, as Go writes floats below 1e21.
fn whole(value: &mut Value) {
    if let Value::Number(number) = value
        && let Some(float) = number
            .as_f64()
            .filter(|_| !number.is_i64() && !number.is_u64())
        && float.fract() == 0.0
        && float.abs() < 9e15
    {
        *number = Number::from(float as i64);
    }
}

#[test]
fn what_is_empty_is_left_out_and_numbers_are_whole() {
    let mut crd = serde_json::json!({"spec": {"versions": [{"schema": {"openAPIV3Schema": {
        "type": "object", "required": [], "description": "", "properties": {
            "port": {"type": "integer", "minimum": 1.0, "maximum": 65535.0, "multipleOf": 0.5, "nullable": false, "default": 0},
            "text": {"type": "string", "default": "", "minLength": 0, "enum": [""], "x-kubernetes-validations": [{"rule": "true", "message": "", "fieldPath": ""}]},
            "list": {"type": "array", "default": [], "items": {"type": "object", "properties": {}}},
            "map": {"type": "object", "additionalProperties": {"type": "number", "maximum": 1.5, "default": null}},
        },
    }}}]}});
    schemas(&mut crd);
    let expected = serde_json::json!({"spec": {"versions": [{"schema": {"openAPIV3Schema": {
        "type": "object", "properties": {
            "port": {"type": "integer", "minimum": 1, "maximum": 65535, "multipleOf": 0.5, "default": 0},
            "text": {"type": "string", "default": "", "minLength": 0, "enum": [""], "x-kubernetes-validations": [{"rule": "true"}]},
            "list": {"type": "array", "default": [], "items": {"type": "object"}},
            "map": {"type": "object", "additionalProperties": {"type": "number", "maximum": 1.5}},
        },
    }}}]}});
    assert_eq!(crd, expected);
}
