//! Schemas in the form of kube-apiserver's Go type (`JSONSchemaProps`): empty fields are omitted, and numbers without a
//! fraction are integers.

use serde_json::{Number, Value};

/// Fields whose values are a schema or a list of schemas.
const SCHEMA: [&str; 3] = ["items", "additionalProperties", "not"];
const SCHEMAS: [&str; 3] = ["allOf", "anyOf", "oneOf"];
const NAMED: [&str; 3] = ["properties", "patternProperties", "definitions"];
/// Fields whose values are arbitrary JSON.
const RAW: [&str; 3] = ["default", "example", "enum"];

/// Converts the schemas of all versions of a definition to the Go form.
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

/// True if `omitempty` omits a value. Pointer fields, such as numbers and some flags, are written whenever set.
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

/// `65535.0` becomes `65535`: Go writes whole floats below 1e21 without a fraction.
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
fn empty_fields_are_omitted_and_whole_floats_become_integers() {
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
