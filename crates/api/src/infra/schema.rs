//! Parts of schemas that cannot be derived from a Rust type.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

/// The schema of a list of `metav1.Condition`, a map by type with the limits of its Go type.
pub(crate) fn conditions(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "required": ["lastTransitionTime", "message", "reason", "status", "type"],
            "properties": {
                "lastTransitionTime": {"type": "string", "format": "date-time"},
                "message": {"type": "string", "maxLength": 32768},
                "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0},
                "reason": {"type": "string", "minLength": 1, "maxLength": 1024,
                    "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"},
                "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
                "type": {"type": "string", "maxLength": 316,
                    "pattern": "^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"},
            },
        },
    })
}

/// The schema of a list of Cluster API's conditions in v1beta1 of our group.
pub(crate) fn v1beta1_conditions(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "items": {
            "type": "object",
            "required": ["lastTransitionTime", "status", "type"],
            "properties": {
                "lastTransitionTime": {"type": "string", "format": "date-time"},
                "message": {"type": "string", "minLength": 1, "maxLength": 10240},
                "reason": {"type": "string", "minLength": 1, "maxLength": 256},
                "severity": {"type": "string", "maxLength": 32},
                "status": {"type": "string"},
                "type": {"type": "string", "minLength": 1, "maxLength": 256},
            },
        },
    })
}

/// The schema of a map from resource name to quantity.
pub(crate) fn quantities(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "additionalProperties": {
            "pattern": "^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))))?$",
            "x-kubernetes-int-or-string": true,
        },
    })
}

/// The schema of an integer of any size.
pub(crate) fn integer(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "integer"})
}

/// The schema of a set of Neutron tags: not empty, and without the comma that separates them in a query.
pub(crate) fn tag_filter(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "x-kubernetes-list-type": "set",
        "items": {"type": "string", "minLength": 1, "pattern": "^[^,]+$"},
    })
}

/// The schema of an object with exactly one of `members`.
pub(crate) fn one_of(members: Value, about: &str) -> Schema {
    json_schema!({
        "description": about,
        "type": "object",
        "minProperties": 1,
        "maxProperties": 1,
        "properties": members,
    })
}

/// The schema of an id that OpenStack generated.
pub(crate) fn uuid(about: &str) -> Value {
    json!({"type": "string", "format": "uuid", "description": about})
}
