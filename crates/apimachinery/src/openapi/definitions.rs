//! Definitions of kinds, and of all referenced types.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{Model, builtin};

const V2_PREFIX: &str = "#/definitions/";
const V3_PREFIX: &str = "#/components/schemas/";
const DELETE_OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";
const STATUS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Status";
const SCALE: &str = "io.k8s.api.autoscaling.v1.Scale";
const METADATA: &str = "Standard object's metadata. More info: https://git.k8s.io/community/contributors/\
                        devel/sig-architecture/api-conventions.md#metadata";
const API_VERSION: &str = "APIVersion defines the versioned schema of this representation of an object. Servers should convert \
     recognized schemas to the latest internal value, and may reject unrecognized values. More info: \
     https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources";
const KIND: &str = "Kind is a string value representing the REST resource this object represents. Servers may infer this \
     from the endpoint the client submits requests to. Cannot be updated. In CamelCase. More info: \
     https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds";
/// Descriptions of the two fields of an embedded object.
const EMBEDDED_API_VERSION: &str = "apiVersion defines the versioned schema of this representation of an object. More info: \
     https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources";
const EMBEDDED_KIND: &str = "kind is a string value representing the type of this object. In CamelCase. More info: \
     https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds";

/// Version of OpenAPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    V2,
    V3,
}

impl Dialect {
    pub(super) fn reference(self, name: &str) -> String {
        match self {
            Self::V2 => format!("{V2_PREFIX}{name}"),
            Self::V3 => format!("{V3_PREFIX}{name}"),
        }
    }
}

/// Returns the name of the definition of a [`Model`]: `io.k8s.api.apps.v1.Deployment`, `com.example.v1.Foo`.
pub(super) fn name_of(model: &Model<'_>) -> String {
    if model.schema.is_none() {
        return builtin::name(model.group, model.version, model.kind);
    }
    let reversed: Vec<&str> = model.group.rsplit('.').collect();
    format!("{}.{}.{}", reversed.join("."), model.version, model.kind)
}

/// Returns definitions by name.
pub(super) fn collect(models: &[Model<'_>], dialect: Dialect) -> Map<String, Value> {
    let mut all = builtin::definitions();
    let mut wanted: Vec<String> = Vec::new();
    let mut result = Map::new();
    if !models.is_empty() {
        wanted.extend([builtin::OBJECT_META, DELETE_OPTIONS, STATUS].map(str::to_owned));
    }
    if models
        .iter()
        .any(|model| model.subresources.contains(&"scale"))
    {
        wanted.push(SCALE.to_owned());
    }
    for model in models {
        match model.schema {
            None => wanted.push(name_of(model)),
            Some(schema) => {
                result.insert(name_of(model), custom(model, schema, dialect));
            }
        }
    }
    let mut seen = BTreeSet::new();
    while let Some(name) = wanted.pop() {
        if !seen.insert(name.clone()) {
            continue;
        }
        let Some(definition) = all.remove(&name) else {
            continue;
        };
        references(&definition, &mut wanted);
        result.insert(name, translate(definition, dialect));
    }
    result
}

fn references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value.as_str().and_then(|text| text.strip_prefix(V2_PREFIX)) {
                    Some(target) if name == "$ref" => found.push(target.to_owned()),
                    _ => references(value, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}

/// Converts a built-in definition from the stored form, between the two versions of OpenAPI.
fn translate(definition: Value, dialect: Dialect) -> Value {
    let Value::Object(mut fields) = definition else {
        return definition;
    };
    let v2 = fields.remove("x-kubernetes-v2-schema");
    if let (Some(v2), Dialect::V2) = (v2, dialect) {
        return v2;
    }
    let translate_all = |value: Value| match value {
        Value::Object(properties) => Value::Object(
            properties
                .into_iter()
                .map(|(name, p)| (name, translate(p, dialect)))
                .collect(),
        ),
        other => other,
    };
    if dialect == Dialect::V2 {
        fields.remove("default");
    }
    let mut result = Map::new();
    for (name, value) in fields {
        let value = match name.as_str() {
            "properties" => translate_all(value),
            "items" | "additionalProperties" => translate(value, dialect),
            _ => value,
        };
        result.insert(name, value);
    }
    if dialect == Dialect::V3
        && let Some(Value::String(reference)) = result.remove("$ref")
    {
        let reference = json!({"$ref": reference.replacen(V2_PREFIX, V3_PREFIX, 1)});
        // Keywords beside a reference are ignored, so the reference is wrapped in `allOf`.
        if result.is_empty() {
            return reference;
        }
        result.insert("allOf".to_owned(), json!([reference]));
    }
    Value::Object(result)
}

/// Returns the definition of a custom resource.
fn custom(model: &Model<'_>, schema: &Value, dialect: Dialect) -> Value {
    let mut definition = match dialect {
        Dialect::V3 => {
            let mut schema = schema.clone();
            unfold(&mut schema);
            schema
        }
        Dialect::V2 => simplify(schema),
    };
    add_type(&mut definition, dialect, API_VERSION, KIND);
    add_embedded(&mut definition, dialect);
    definition["x-kubernetes-group-version-kind"] =
        json!([{"group": model.group, "version": model.version, "kind": model.kind}]);
    definition
}

/// Adds `apiVersion`, `kind` and `metadata`, which schemas of definitions omit.
fn add_type(definition: &mut Value, dialect: Dialect, api_version: &str, kind: &str) {
    let Some(fields) = definition.as_object_mut() else {
        return;
    };
    let opaque = fields.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true));
    if dialect == Dialect::V2 && opaque {
        return;
    }
    let properties = fields.entry("properties").or_insert_with(|| json!({}));
    let Value::Object(properties) = properties else {
        return;
    };
    let reference = json!({"$ref": dialect.reference(builtin::OBJECT_META)});
    let metadata = match dialect {
        Dialect::V2 => {
            json!({"$ref": dialect.reference(builtin::OBJECT_META), "description": METADATA})
        }
        Dialect::V3 => json!({"allOf": [reference], "description": METADATA}),
    };
    properties.insert("metadata".to_owned(), metadata);
    properties.insert(
        "apiVersion".to_owned(),
        json!({"type": "string", "description": api_version}),
    );
    properties.insert(
        "kind".to_owned(),
        json!({"type": "string", "description": kind}),
    );
}

/// Unfolds `x-kubernetes-int-or-string`, unless the schema does so itself
/// (`apiextensions-apiserver/pkg/apiserver/schema/unfold.go`).
fn unfold(schema: &mut Value) {
    let Some(fields) = schema.as_object_mut() else {
        return;
    };
    if let Some(Value::Object(properties)) = fields.get_mut("properties") {
        properties.values_mut().for_each(unfold);
    }
    for name in ["items", "additionalProperties"] {
        if let Some(child) = fields.get_mut(name) {
            unfold(child);
        }
    }
    let either = json!([{"type": "integer"}, {"type": "string"}]);
    let within = fields.get("allOf").and_then(|all| all.get(0));
    let spelt_out = fields.get("anyOf") == Some(&either)
        || within.is_some_and(|first| first.get("anyOf") == Some(&either));
    if fields.get("x-kubernetes-int-or-string") != Some(&Value::Bool(true)) || spelt_out {
        return;
    }
    if fields.contains_key("anyOf") {
        let all = fields.entry("allOf").or_insert_with(|| json!([]));
        if let Value::Array(all) = all {
            all.insert(0, json!({ "anyOf": either }));
        }
    } else {
        fields.insert("anyOf".to_owned(), either);
    }
}

/// Adds `apiVersion`, `kind` and `metadata` to embedded objects. Recursion is bounded: the schema has been compiled.
fn add_embedded(schema: &mut Value, dialect: Dialect) {
    let Some(fields) = schema.as_object_mut() else {
        return;
    };
    if let Some(Value::Object(properties)) = fields.get_mut("properties") {
        properties
            .values_mut()
            .for_each(|property| add_embedded(property, dialect));
    }
    for name in ["items", "additionalProperties"] {
        if let Some(child) = fields.get_mut(name) {
            add_embedded(child, dialect);
        }
    }
    if fields.get("x-kubernetes-embedded-resource") != Some(&Value::Bool(true)) {
        return;
    }
    add_type(schema, dialect, EMBEDDED_API_VERSION, EMBEDDED_KIND);
    let required = schema
        .get("required")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let missing = ["kind", "apiVersion"].map(Value::from).into_iter();
    let missing: Vec<Value> = missing.filter(|name| !required.contains(name)).collect();
    schema["required"] = required.into_iter().chain(missing).collect();
}

/// Reduces a schema to the keywords of OpenAPI v2 clients: no junctors, no nullable, no types above unknown fields
/// (`apiextensions-apiserver/pkg/controller/openapi/v2`).
fn simplify(schema: &Value) -> Value {
    let Value::Object(fields) = schema else {
        return schema.clone();
    };
    let flag =
        |fields: &Map<String, Value>, name: &str| fields.get(name) == Some(&Value::Bool(true));
    let opaque = flag(fields, "x-kubernetes-preserve-unknown-fields");
    let nullable = flag(fields, "nullable");
    let mut result = Map::new();
    for (name, value) in fields {
        let kept = match name.as_str() {
            "allOf" | "anyOf" | "oneOf" | "not" | "nullable" | "default" => continue,
            "items" | "properties" if opaque || nullable => continue,
            "type" if nullable || (opaque && value == "object") => continue,
            "type" if value == "array" && (opaque || !fields.contains_key("items")) => continue,
            "properties" => match value {
                Value::Object(properties) => Value::Object(
                    properties
                        .iter()
                        .map(|(name, p)| (name.clone(), simplify(p)))
                        .collect(),
                ),
                other => other.clone(),
            },
            "items" | "additionalProperties" => simplify(value),
            "required" => {
                // Nullable fields are not required, for clients that cannot send null.
                let may_be_null = |name: &Value| {
                    let property = fields.get("properties").zip(name.as_str());
                    let property = property.and_then(|(all, name)| all.get(name));
                    property
                        .and_then(Value::as_object)
                        .is_some_and(|p| flag(p, "nullable"))
                };
                let names = value.as_array().into_iter().flatten();
                names.filter(|name| !may_be_null(name)).cloned().collect()
            }
            _ => value.clone(),
        };
        result.insert(name.clone(), kept);
    }
    Value::Object(result)
}
