//! Edits from schemas of v1beta2 to schemas of v1beta1.

use serde_json::{Map, Value, json};

/// Schema of the conditions of v1beta1, with severities.
pub(crate) fn old_conditions() -> Value {
    json!({
        "type": "array",
        "description": "Conditions with severities.",
        "items": {
            "type": "object",
            "required": ["lastTransitionTime", "status", "type"],
            "properties": {
                "type": text(1, 256, "The condition's type."),
                "status": {"type": "string", "description": "True, False or Unknown."},
                "severity": {"type": "string", "maxLength": 32, "description": "Severity of a false condition: `Error`, `Warning` or `Info`."},
                "reason": text(1, 256, "A word for machines."),
                "message": text(1, 10240, "A sentence for people."),
                "lastTransitionTime": {"type": "string", "format": "date-time", "description": "Time of the last change of the status, RFC 3339."},
            },
        },
    })
}

/// Schema of the conditions of v1beta2 (`metav1.Condition`).
pub(crate) fn conditions() -> Value {
    json!({
        "type": "array",
        "maxItems": 32,
        "description": "Observations, one per type.",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "required": ["lastTransitionTime", "message", "reason", "status", "type"],
            "properties": {
                "type": {"type": "string", "maxLength": 316, "description": "The condition's type."},
                "status": {"type": "string", "enum": ["True", "False", "Unknown"], "description": "Status of the condition: `True`, `False` or `Unknown`."},
                "reason": text(1, 1024, "A word for machines."),
                "message": {"type": "string", "maxLength": 32768, "description": "A sentence for people."},
                "lastTransitionTime": {"type": "string", "format": "date-time", "description": "Time of the last change of the status, RFC 3339."},
                "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0, "description": "The generation that it is about."},
            },
        },
    })
}

/// Removes the rules unique to v1beta2: CEL rules, and rules against empty lists and objects.
pub(crate) fn relax(schema: &mut Value) {
    let Some(fields) = schema.as_object_mut() else {
        return;
    };
    for rule in ["minProperties", "x-kubernetes-validations"] {
        fields.remove(rule);
    }
    if fields.get("type") == Some(&json!("array")) {
        fields.remove("minItems");
        for name in ["x-kubernetes-list-type", "x-kubernetes-list-map-keys"] {
            fields.remove(name);
        }
    }
    if let Some(Value::Object(properties)) = fields.get_mut("properties") {
        properties.values_mut().for_each(relax);
    }
    if let Some(items) = fields.get_mut("items") {
        relax(items);
    }
}

/// Schema of a duration.
pub(crate) fn duration(description: &str) -> Value {
    // Durations in Go's syntax; others have no conversion to seconds.
    let pattern = "^[-+]?(0|(([0-9]+(\\.[0-9]*)?|\\.[0-9]+)(ns|us|\u{b5}s|\u{3bc}s|ms|s|m|h))+)$";
    json!({"type": "string", "pattern": pattern,
        "description": format!("{description} A duration such as 4m0s.")})
}

/// Schema of a string with limited length.
pub(crate) fn text(least: u32, most: u32, description: &str) -> Value {
    json!({"type": "string", "minLength": least, "maxLength": most, "description": description})
}

/// Schema of a property, created if absent.
pub(crate) fn property<'a>(schema: &'a mut Value, name: &str) -> &'a mut Value {
    &mut schema["properties"][name]
}

/// Sets the schema of a property.
pub(crate) fn set(schema: &mut Value, name: &str, value: Value) {
    schema["properties"][name] = value;
}

/// Removes a property.
pub(crate) fn remove(schema: &mut Value, name: &str) -> Option<Value> {
    let taken = schema
        .get_mut("properties")
        .and_then(Value::as_object_mut)?
        .remove(name);
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|known| known != name);
        if required.is_empty() {
            let fields: Option<&mut Map<String, Value>> = schema.as_object_mut();
            fields.map(|fields| fields.remove("required"));
        }
    }
    taken
}

/// Removes a keyword of a schema.
pub(crate) fn forget(schema: &mut Value, rule: &str) {
    if let Some(fields) = schema.as_object_mut() {
        fields.remove(rule);
    }
}
