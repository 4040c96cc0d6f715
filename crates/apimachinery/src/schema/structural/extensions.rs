//! Checks of keywords and extensions in all schemas, including junctor branches.

use serde_json::{Map, Value, json};

use super::{JUNCTORS, array, object};
use crate::schema::{FieldError, path::Path};

const META: [&str; 3] = ["apiVersion", "kind", "metadata"];
const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

/// Keywords that the enclosing schemas forbid.
#[derive(Clone, Copy, Default)]
pub(super) struct Context<'a> {
    inside_meta: bool,
    no_defaults: Option<&'a str>,
}

/// Recursion is bounded: the depth of the schema has been checked.
pub(super) fn check(
    schema: &Value,
    path: Path<'_>,
    context: Context<'_>,
    root: bool,
    errors: &mut Vec<FieldError>,
) {
    let Value::Object(fields) = schema else {
        return;
    };
    check_keywords(fields, path, context, errors);
    check_lists_and_maps(fields, path, errors);

    if let Some(additional) = fields.get("additionalProperties").filter(|a| !a.is_null()) {
        let allows = additional == &Value::Bool(true);
        if object(fields, "properties").next().is_some() && !allows {
            let at = path.field("additionalProperties").bracketed();
            let detail = "additionalProperties and properties are mutual exclusive";
            errors.push(FieldError::forbidden(at, detail));
        }
        let mut context = context;
        if context.inside_meta {
            let why = "inside additionalProperties applying to object metadata";
            context.no_defaults = Some(why);
        }
        check(
            additional,
            path.field("additionalProperties"),
            context,
            false,
            errors,
        );
    }
    let embedded = fields.get("x-kubernetes-embedded-resource") == Some(&Value::Bool(true));
    let properties = path.field("properties");
    for (name, property) in object(fields, "properties") {
        let mut context = context;
        let why = format!("in top-level {name}");
        if (root || embedded) && META.contains(&name.as_str()) {
            context.inside_meta = true;
            if root {
                context.no_defaults = Some(&why);
            }
        }
        check(property, properties.key(name), context, false, errors);
    }
    if let Some(items) = fields.get("items") {
        check(items, path.field("items"), context, false, errors);
    }
    if let Some(not) = fields.get("not") {
        check(not, path.field("not"), context, false, errors);
    }
    for junctor in JUNCTORS {
        let path = path.field(junctor);
        for (i, branch) in array(fields, junctor).iter().enumerate() {
            check(branch, path.index(i), context, false, errors);
        }
    }
}

/// Checks the two rules of [`super::check_types`]. Recursion is bounded: the depth of the schema has been checked.
pub(super) fn check_types(schema: &Value, path: Path<'_>, errors: &mut Vec<FieldError>) {
    let Value::Object(fields) = schema else {
        return;
    };
    let kind = fields
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or_default();
    if !kind.is_empty() && !TYPES.contains(&kind) {
        let at = path.field("type").bracketed();
        let supported = TYPES.map(str::to_owned);
        errors.push(FieldError::not_supported(at, &kind.into(), &supported));
    }
    if let Some(additional) = fields.get("additionalProperties").filter(|a| !a.is_null()) {
        let path = path.field("additionalProperties");
        if object(fields, "properties").next().is_some() {
            let detail = "additionalProperties and properties are mutually exclusive";
            errors.push(FieldError::forbidden(path.bracketed(), detail));
        }
        if additional.is_boolean() {
            let detail = "must be a schema";
            errors.push(FieldError::invalid(path.bracketed(), additional, detail));
        }
        check_types(additional, path, errors);
    }
    let properties = path.field("properties");
    for (name, property) in object(fields, "properties") {
        check_types(property, properties.key(name), errors);
    }
    for name in ["items", "not"] {
        if let Some(inner) = fields.get(name) {
            check_types(inner, path.field(name), errors);
        }
    }
    for junctor in JUNCTORS {
        let path = path.field(junctor);
        for (i, branch) in array(fields, junctor).iter().enumerate() {
            check_types(branch, path.index(i), errors);
        }
    }
}

fn check_keywords(
    fields: &Map<String, Value>,
    path: Path<'_>,
    context: Context<'_>,
    errors: &mut Vec<FieldError>,
) {
    let at = |name: &str| path.field(name).bracketed();
    let present = |name: &str| fields.get(name).is_some_and(|value| !value.is_null());
    let kind = fields
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or_default();
    if !kind.is_empty() && kind != "null" && !TYPES.contains(&kind) {
        let supported = TYPES.map(str::to_owned);
        errors.push(FieldError::not_supported(
            at("type"),
            &kind.into(),
            &supported,
        ));
    }
    if let Some(why) = context.no_defaults.filter(|_| present("default")) {
        errors.push(FieldError::forbidden(
            at("default"),
            format!("must not be set {why}"),
        ));
    }
    let filled = |name: &str| match fields.get(name) {
        None | Some(Value::Null) => false,
        Some(Value::Object(inner)) if name != "dependencies" => !inner.is_empty(),
        Some(Value::String(text)) if name == "id" => !text.is_empty(),
        Some(_) => true,
    };
    for name in [
        "id",
        "additionalItems",
        "patternProperties",
        "definitions",
        "dependencies",
        "$ref",
    ] {
        if filled(name) {
            errors.push(FieldError::forbidden(
                at(name),
                format!("{name} is not supported"),
            ));
        }
    }
    if kind == "null" {
        let detail = "type cannot be set to null, use nullable as an alternative";
        errors.push(FieldError::forbidden(at("type"), detail));
    }
    if fields.get("items").is_some_and(Value::is_array) {
        let detail = "items must be a schema object and not an array";
        errors.push(FieldError::forbidden(at("items"), detail));
    }
    let embedded = fields.get("x-kubernetes-embedded-resource") == Some(&Value::Bool(true));
    if context.inside_meta && embedded {
        let detail = "must not be used inside of resource meta";
        errors.push(FieldError::forbidden(
            at("x-kubernetes-embedded-resource"),
            detail,
        ));
    }
    if fields.get("uniqueItems") == Some(&Value::Bool(true)) {
        let detail =
            "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        errors.push(FieldError::forbidden(at("uniqueItems"), detail));
    }
    if fields.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
        let at = at("x-kubernetes-preserve-unknown-fields");
        errors.push(FieldError::invalid(
            at,
            &Value::Bool(false),
            "must be true or undefined",
        ));
    }
}

fn check_lists_and_maps(fields: &Map<String, Value>, path: Path<'_>, errors: &mut Vec<FieldError>) {
    let at = |name: &str| path.field(name).bracketed();
    let text = |name: &str| fields.get(name).and_then(Value::as_str);
    let kind = text("type").unwrap_or_default();
    let mut wrong_type = |detail: &str| {
        errors.push(if kind.is_empty() {
            FieldError::required(at("type"), detail)
        } else {
            FieldError::invalid(at("type"), &kind.into(), detail)
        });
    };
    let (map_type, list_type) = (
        text("x-kubernetes-map-type"),
        text("x-kubernetes-list-type"),
    );
    if map_type.is_some() && kind != "object" {
        wrong_type("must be object if x-kubernetes-map-type is specified");
    }
    if list_type.is_some() && kind != "array" {
        wrong_type("must be array if x-kubernetes-list-type is specified");
    }
    if let Some(given) = map_type.filter(|given| !matches!(*given, "atomic" | "granular")) {
        let supported = ["atomic", "granular"].map(str::to_owned);
        let at = at("x-kubernetes-map-type");
        errors.push(FieldError::not_supported(at, &given.into(), &supported));
    }
    if let Some(given) = list_type.filter(|given| !matches!(*given, "atomic" | "set" | "map")) {
        let supported = ["atomic", "set", "map"].map(str::to_owned);
        let at = at("x-kubernetes-list-type");
        errors.push(FieldError::not_supported(at, &given.into(), &supported));
    }
    let keys = array(fields, "x-kubernetes-list-map-keys");
    if !keys.is_empty() && list_type != Some("map") {
        let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
        let at = at("x-kubernetes-list-type");
        errors.push(match list_type {
            None => FieldError::required(at, detail),
            Some(given) => FieldError::invalid(at, &given.into(), detail),
        });
    }
    let items = fields.get("items").and_then(Value::as_object);
    match (list_type, items) {
        (Some("set"), Some(items)) if kind == "array" => check_set(items, path, errors),
        (Some("map"), items) => check_map(keys, items, path, errors),
        _ => {}
    }
    if let (Some(list_type @ ("set" | "map")), Some(items)) = (list_type, items)
        && items.get("nullable") == Some(&Value::Bool(true))
    {
        let at = path.field("items").field("nullable").bracketed();
        let detail = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
        errors.push(FieldError::forbidden(at, detail));
    }
}

fn check_set(items: &Map<String, Value>, path: Path<'_>, errors: &mut Vec<FieldError>) {
    let text = |name: &str| items.get(name).and_then(Value::as_str);
    let path = path.field("items");
    let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
    let list_type = text("x-kubernetes-list-type");
    match text("type") {
        Some("array") if list_type.is_some_and(|given| given != "atomic") => {
            let at = path.field("x-kubernetes-list-type").bracketed();
            errors.push(FieldError::invalid(at, &json!(list_type), detail));
        }
        Some("object") if text("x-kubernetes-map-type") != Some("atomic") => {
            let at = path.field("x-kubernetes-map-type").bracketed();
            errors.push(FieldError::invalid(at, &json!(list_type), detail));
        }
        _ => {}
    }
}

fn check_map(
    keys: &[Value],
    items: Option<&Map<String, Value>>,
    path: Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let keys_at = path.field("x-kubernetes-list-map-keys").bracketed();
    if keys.is_empty() {
        let detail = "must not be empty if x-kubernetes-list-type is map";
        errors.push(FieldError::required(keys_at.as_str(), detail));
    }
    let Some(items) = items else {
        let detail = "must have a schema if x-kubernetes-list-type is map";
        errors.push(FieldError::required(
            path.field("items").bracketed(),
            detail,
        ));
        return;
    };
    let path = path.field("items");
    let kind = items
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or_default();
    if kind != "object" {
        let detail = "must be object if parent array's x-kubernetes-list-type is map";
        errors.push(FieldError::invalid(
            path.field("type").bracketed(),
            &kind.into(),
            detail,
        ));
        return;
    }
    let all_keys = Value::from(keys.to_vec());
    let properties = path.field("properties");
    for (i, key) in keys.iter().filter_map(Value::as_str).enumerate() {
        let place = properties.key(key);
        match items.get("properties").and_then(|all| all.get(key)) {
            None => {
                let detail = "entries must all be names of item properties";
                errors.push(FieldError::invalid(keys_at.as_str(), &all_keys, detail));
            }
            Some(property) => {
                let type_of_key = property.get("type").and_then(Value::as_str);
                if matches!(type_of_key, Some("array" | "object")) {
                    let at = place.field("type").bracketed();
                    let detail =
                        "must be a scalar type if parent array's x-kubernetes-list-type is map";
                    errors.push(FieldError::invalid(at, &kind.into(), detail));
                }
                let required = array(items, "required").iter().any(|name| name == key);
                if !required && property.get("default").is_none_or(Value::is_null) {
                    let detail = "this property is in x-kubernetes-list-map-keys, so it must have \
                                  a default or be a required property";
                    errors.push(FieldError::required(
                        place.field("default").bracketed(),
                        detail,
                    ));
                }
                if property.get("nullable") == Some(&Value::Bool(true)) {
                    let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be \
                                  nullable";
                    errors.push(FieldError::forbidden(
                        place.field("nullable").bracketed(),
                        detail,
                    ));
                }
            }
        }
        if keys[..i].iter().any(|earlier| earlier == key) {
            let detail = "must not contain duplicate entries";
            errors.push(FieldError::invalid(keys_at.as_str(), &all_keys, detail));
        }
    }
}
