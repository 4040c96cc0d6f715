//! Validation of the schemas of a CustomResourceDefinition
//! (`apiextensions-apiserver/pkg/apiserver/schema/validation.go` and `pkg/apis/apiextensions/validation`).

mod extensions;

use serde_json::{Map, Value};

use super::{FieldError, path::Path};

/// Junctors. Their branches may have value validation only.
const JUNCTORS: [&str; 3] = ["anyOf", "allOf", "oneOf"];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

/// Appends errors for a schema that is not structural.
pub(super) fn check(schema: &Value, errors: &mut Vec<FieldError>) {
    let mut structural = Vec::new();
    check_node(schema, Level::Root, Path::Root, &mut structural);
    check_completeness(schema, schema, Path::Root, Path::Root, &mut structural);
    structural.sort_by_key(ToString::to_string);
    errors.append(&mut structural);
}

/// Appends errors of keywords and extensions.
pub(super) fn check_extensions(schema: &Value, errors: &mut Vec<FieldError>) {
    if schema.get("nullable") == Some(&Value::Bool(true)) {
        errors.push(FieldError::forbidden(
            "nullable",
            "nullable cannot be true at the root",
        ));
    }
    extensions::check(
        schema,
        Path::Root,
        extensions::Context::default(),
        true,
        errors,
    );
}

/// Appends errors of unknown types, and of objects with both named and additional properties. Of the keyword rules,
/// Cluster API applies only these to the variables of a ClusterClass.
pub(super) fn check_types(schema: &Value, errors: &mut Vec<FieldError>) {
    extensions::check_types(schema, Path::Root, errors);
}

/// Recursion is bounded: the depth of the schema has been checked.
fn check_node(schema: &Value, level: Level, path: Path<'_>, errors: &mut Vec<FieldError>) {
    let Value::Object(fields) = schema else {
        return;
    };
    let at = |name: &str| path.field(name).bracketed();
    let kind = fields
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let flag = |name: &str| fields.get(name) == Some(&Value::Bool(true));
    let embedded = flag("x-kubernetes-embedded-resource");
    let preserve = flag("x-kubernetes-preserve-unknown-fields");
    let int_or_string = flag("x-kubernetes-int-or-string");

    match fields.get("items") {
        Some(items @ Value::Object(_)) => {
            check_node(items, Level::Item, path.field("items"), errors);
        }
        _ if kind == "array" => errors.push(FieldError::required(at("items"), "must be specified")),
        _ => {}
    }
    let properties = path.field("properties");
    for (name, property) in object(fields, "properties") {
        check_node(property, Level::Field, properties.key(name), errors);
    }
    if let Some(additional) = fields.get("additionalProperties").filter(|a| !a.is_null()) {
        if level == Level::Root {
            let detail = "must not be used at the root";
            errors.push(FieldError::forbidden(at("additionalProperties"), detail));
        }
        if embedded {
            let detail = "must not be used if x-kubernetes-embedded-resource is set";
            errors.push(FieldError::forbidden(at("additionalProperties"), detail));
        }
        check_node(
            additional,
            Level::Field,
            path.field("additionalProperties"),
            errors,
        );
    }
    if int_or_string {
        for name in [
            "x-kubernetes-preserve-unknown-fields",
            "x-kubernetes-embedded-resource",
        ] {
            if flag(name) {
                let detail = "must be false if x-kubernetes-int-or-string is true";
                errors.push(FieldError::invalid(at(name), &Value::Bool(true), detail));
            }
        }
    }
    check_validation(fields, false, path, errors);

    let wrong_type = |errors: &mut Vec<FieldError>, detail: &str| {
        errors.push(if kind.is_empty() {
            FieldError::required(at("type"), detail)
        } else {
            FieldError::invalid(at("type"), &Value::from(kind), detail)
        });
    };
    if embedded && kind != "object" {
        wrong_type(
            errors,
            "must be object if x-kubernetes-embedded-resource is true",
        );
    } else if kind.is_empty() && !int_or_string && !preserve {
        let detail = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        errors.push(FieldError::required(at("type"), detail));
    }
    if level == Level::Root && !kind.is_empty() && kind != "object" {
        wrong_type(errors, "must be object at the root");
    }
    if level == Level::Root || embedded {
        check_meta(fields, level, path, errors);
    }
    if embedded && !preserve && object(fields, "properties").next().is_none() {
        let detail = "must not be empty if x-kubernetes-embedded-resource is true without \
                      x-kubernetes-preserve-unknown-fields";
        errors.push(FieldError::required(at("properties"), detail));
    }
}

/// Checks `apiVersion`, `kind` and `metadata` at the root of an object.
fn check_meta(
    fields: &Map<String, Value>,
    level: Level,
    path: Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let properties = path.field("properties");
    for (name, expected) in [
        ("kind", "string"),
        ("apiVersion", "string"),
        ("metadata", "object"),
    ] {
        let Some(property) = fields.get("properties").and_then(|all| all.get(name)) else {
            continue;
        };
        let kind = property
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or_default();
        if kind != expected {
            let at = properties.key(name).field("type").bracketed();
            let detail = format!("must be {expected}");
            errors.push(FieldError::invalid(at, &Value::from(kind), detail));
        }
        if name == "metadata" && level == Level::Root {
            let allowed = |name: &str, value: &Value| match name {
                "type" | "description" | "title" => true,
                "properties" => value.as_object().is_some_and(|properties| {
                    properties
                        .keys()
                        .all(|name| matches!(name.as_str(), "name" | "generateName"))
                }),
                _ => is_zero(value),
            };
            let plain = property
                .as_object()
                .is_some_and(|p| p.iter().all(|(n, v)| allowed(n, v)));
            if !plain {
                let detail = "must not specify anything other than name and generateName, but \
                              metadata is implicitly specified";
                errors.push(FieldError::forbidden(
                    properties.key(name).bracketed(),
                    detail,
                ));
            }
        }
    }
}

/// Checks the value validation of a schema or, if `nested`, of a branch.
fn check_validation(
    fields: &Map<String, Value>,
    nested: bool,
    path: Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    for junctor in JUNCTORS {
        let branches = array(fields, junctor);
        let path = path.field(junctor);
        for (i, branch) in branches.iter().enumerate() {
            // The two patterns for `int-or-string` in plain OpenAPI are allowed.
            let first = junctor == "allOf" && i == 0 && !nested;
            let spelled = junctor == "anyOf" && is_int_or_string(branches);
            if spelled {
                continue;
            }
            let skip_any_of = first
                && branch
                    .as_object()
                    .is_some_and(|b| is_int_or_string(array(b, "anyOf")));
            check_branch(branch, skip_any_of, path.index(i), errors);
        }
    }
    if let Some(branch) = fields.get("not").filter(|not| !not.is_null()) {
        check_branch(branch, false, path.field("not"), errors);
    }
}

fn check_branch(branch: &Value, skip_any_of: bool, path: Path<'_>, errors: &mut Vec<FieldError>) {
    let Value::Object(fields) = branch else {
        return;
    };
    if skip_any_of {
        let mut rest = fields.clone();
        rest.remove("anyOf");
        check_validation(&rest, true, path, errors);
    } else {
        check_validation(fields, true, path, errors);
    }
    if let Some(items) = fields.get("items") {
        check_branch(items, false, path.field("items"), errors);
    }
    let properties = path.field("properties");
    for (name, property) in object(fields, "properties") {
        check_branch(property, false, properties.key(name), errors);
        if name == "metadata" {
            let detail = "must not be specified in a nested context";
            errors.push(FieldError::forbidden(
                properties.key(name).bracketed(),
                detail,
            ));
        }
    }
    for (name, detail) in [
        ("type", "must be empty to be structural"),
        ("additionalProperties", "must be undefined to be structural"),
        ("default", "must be undefined to be structural"),
        ("title", "must be empty to be structural"),
        ("description", "must be empty to be structural"),
        ("nullable", "must be false to be structural"),
        (
            "x-kubernetes-preserve-unknown-fields",
            "must be false to be structural",
        ),
        (
            "x-kubernetes-embedded-resource",
            "must be false to be structural",
        ),
        (
            "x-kubernetes-int-or-string",
            "must be false to be structural",
        ),
        (
            "x-kubernetes-list-map-keys",
            "must be empty to be structural",
        ),
        (
            "x-kubernetes-list-type",
            "must be undefined to be structural",
        ),
        (
            "x-kubernetes-map-type",
            "must be undefined to be structural",
        ),
        ("x-kubernetes-validations", "must be empty to be structural"),
    ] {
        if fields.get(name).is_some_and(|value| !is_zero(value)) {
            errors.push(FieldError::forbidden(path.field(name).bracketed(), detail));
        }
    }
}

/// Checks that every field validated in a branch is declared outside of branches.
fn check_completeness(
    branch: &Value,
    schema: &Value,
    schema_path: Path<'_>,
    branch_path: Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let Value::Object(fields) = branch else {
        return;
    };
    for junctor in JUNCTORS {
        let path = branch_path.field(junctor);
        for (i, branch) in array(fields, junctor).iter().enumerate() {
            check_inner(branch, schema, schema_path, path.index(i), errors);
        }
    }
    if let Some(not) = fields.get("not") {
        check_inner(not, schema, schema_path, branch_path.field("not"), errors);
    }
}

/// Checks a branch, or a property or item inside one.
fn check_inner(
    branch: &Value,
    schema: &Value,
    schema_path: Path<'_>,
    branch_path: Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    check_completeness(branch, schema, schema_path, branch_path, errors);
    let Value::Object(fields) = branch else {
        return;
    };
    if let Some(items) = fields.get("items") {
        let at = (schema_path.field("items"), branch_path.field("items"));
        match schema.get("items") {
            Some(schema) => check_inner(items, schema, at.0, at.1, errors),
            None => errors.push(undeclared(at.0, at.1)),
        }
    }
    let places = (
        schema_path.field("properties"),
        branch_path.field("properties"),
    );
    for (name, property) in object(fields, "properties") {
        let at = (places.0.key(name), places.1.key(name));
        match schema.get("properties").and_then(|all| all.get(name)) {
            Some(schema) => check_inner(property, schema, at.0, at.1, errors),
            None => errors.push(undeclared(at.0, at.1)),
        }
    }
}

fn undeclared(schema_path: Path<'_>, branch_path: Path<'_>) -> FieldError {
    let detail = format!("because it is defined in {}", branch_path.bracketed());
    FieldError::required(schema_path.bracketed(), detail)
}

fn is_int_or_string(branches: &[Value]) -> bool {
    let only = |branch: &Value, kind: &str| {
        branch.as_object().is_some_and(|fields| {
            fields.get("type").and_then(Value::as_str) == Some(kind)
                && fields
                    .iter()
                    .all(|(name, value)| name == "type" || is_zero(value))
        })
    };
    matches!(branches, [a, b] if only(a, "integer") && only(b, "string"))
}

fn object<'a>(
    fields: &'a Map<String, Value>,
    name: &str,
) -> impl Iterator<Item = (&'a String, &'a Value)> {
    fields
        .get(name)
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
}

fn array<'a>(fields: &'a Map<String, Value>, name: &str) -> &'a [Value] {
    fields
        .get(name)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// True if Go decodes the value to the zero value.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}
