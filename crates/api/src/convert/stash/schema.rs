//! The check of values that a stash brings back, by the schema of their version.
//!
//! An API server converts parts of objects, too: required fields may be absent.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use regex::Regex;
use serde_json::Value;

use super::path::Step;

/// Knowledge of a place in an object.
pub(super) enum Spot<'a> {
    /// Its schema.
    Schema(&'a JSONSchemaProps),
    /// Any value may be there.
    Free,
}

/// The schema at `steps`; `None` where no field may be.
pub(super) fn at<'a>(root: &'a JSONSchemaProps, steps: &[Step]) -> Option<Spot<'a>> {
    let mut schema = root;
    for step in steps {
        let next = match step {
            Step::Member(name) => member(schema, name),
            Step::Element(_) => match &schema.items {
                Some(JSONSchemaPropsOrArray::Schema(items)) => Some(&**items),
                _ => None,
            },
        };
        match next {
            Some(next) => schema = next,
            None => return is_free(schema).then_some(Spot::Free),
        }
    }
    Some(Spot::Schema(schema))
}

fn member<'a>(schema: &'a JSONSchemaProps, name: &str) -> Option<&'a JSONSchemaProps> {
    if let Some(found) = schema.properties.as_ref().and_then(|all| all.get(name)) {
        return Some(found);
    }
    match &schema.additional_properties {
        Some(JSONSchemaPropsOrBool::Schema(values)) => Some(values),
        _ => None,
    }
}

fn is_free(schema: &JSONSchemaProps) -> bool {
    let says_nothing = schema.type_.is_none() && schema.x_kubernetes_int_or_string != Some(true);
    says_nothing
        || schema.x_kubernetes_preserve_unknown_fields == Some(true)
        || matches!(
            schema.additional_properties,
            Some(JSONSchemaPropsOrBool::Bool(true))
        )
}

/// True if an object with so many other members may have one more.
pub(super) fn has_room(schema: &JSONSchemaProps, others: usize) -> bool {
    within(others + 1, None, schema.max_properties)
}

/// True if the schema admits the value, or a part of it.
pub(crate) fn admits(schema: &JSONSchemaProps, value: &Value) -> bool {
    if let Some(values) = &schema.enum_
        && !values.iter().any(|known| known.0 == *value)
    {
        return false;
    }
    let type_ = schema.type_.as_deref();
    match value {
        Value::Null => true,
        Value::Bool(_) => matches!(type_, None | Some("boolean")),
        Value::Number(number) => {
            let fits = match type_ {
                Some("integer") => number.is_i64() || number.is_u64(),
                Some("number") => true,
                Some(_) => false,
                None => true,
            };
            let number = number.as_f64().unwrap_or_default();
            fits && schema.minimum.is_none_or(|least| number >= least)
                && schema.maximum.is_none_or(|most| number <= most)
                && (schema.format.as_deref() != Some("int32") || number.abs() <= 2_147_483_648.0)
        }
        Value::String(text) => {
            matches!(type_, None | Some("string"))
                && within(text.chars().count(), schema.min_length, schema.max_length)
                && schema.pattern.as_deref().is_none_or(|it| matches(it, text))
        }
        Value::Array(items) => {
            let of = match &schema.items {
                Some(JSONSchemaPropsOrArray::Schema(of)) => Some(of),
                _ => None,
            };
            matches!(type_, None | Some("array"))
                && within(items.len(), None, schema.max_items)
                && items
                    .iter()
                    .all(|item| of.is_none_or(|of| admits(of, item)))
        }
        Value::Object(fields) => {
            matches!(type_, None | Some("object"))
                && within(fields.len(), None, schema.max_properties)
                && fields
                    .iter()
                    .all(|(name, value)| match member(schema, name) {
                        Some(of) => admits(of, value),
                        None => is_free(schema),
                    })
        }
    }
}

fn within(count: usize, least: Option<i64>, most: Option<i64>) -> bool {
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    least.is_none_or(|least| count >= least) && most.is_none_or(|most| count <= most)
}

/// True if a text matches a pattern of a schema. One that is no pattern matches nothing.
fn matches(pattern: &str, text: &str) -> bool {
    static KNOWN: LazyLock<Mutex<HashMap<String, Option<Regex>>>> = LazyLock::new(Mutex::default);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let regex = match known.get(pattern) {
        Some(regex) => regex,
        None => known
            .entry(pattern.to_owned())
            .or_insert_with(|| Regex::new(pattern).ok()),
    };
    regex.as_ref().is_some_and(|regex| regex.is_match(text))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(schema: Value) -> JSONSchemaProps {
        serde_json::from_value(schema).unwrap()
    }

    #[test]
    fn what_the_schema_refuses_is_not_admitted() {
        let schema = of(json!({"type": "object", "maxProperties": 2, "properties": {
            "size": {"type": "integer", "format": "int32", "minimum": 1},
            "kind": {"type": "string", "enum": ["a", "b"]},
            "tags": {"type": "array", "maxItems": 2, "items": {"type": "string", "pattern": "^[^,]+$"}},
        }}));
        for good in [
            json!({}),
            json!({"size": 1, "kind": "a"}),
            json!({"tags": ["x"]}),
            json!(null),
        ] {
            assert!(admits(&schema, &good), "{good}");
        }
        for bad in [
            json!("text"),
            json!({"other": 1}),
            json!({"size": 0}),
            json!({"size": "1"}),
            json!({"size": 3_000_000_000_u32}),
            json!({"size": 1.5}),
            json!({"kind": "c"}),
            json!({"tags": ["a,b"]}),
            json!({"tags": ["a", "b", "c"]}),
            json!({"size": 1, "kind": "a", "tags": []}),
        ] {
            assert!(!admits(&schema, &bad), "{bad}");
        }
    }

    #[test]
    fn a_place_without_a_field_in_the_schema_has_none() {
        let schema = of(json!({"type": "object", "properties": {
            "list": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}}},
            "map": {"type": "object", "additionalProperties": {"type": "string"}},
            "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        }}));
        let member = |name: &str| Step::Member(name.to_owned());
        assert!(at(&schema, &[member("list"), Step::Element(0), member("a")]).is_some());
        assert!(at(&schema, &[member("list"), Step::Element(0), member("b")]).is_none());
        assert!(at(&schema, &[member("map"), member("x")]).is_some());
        assert!(at(&schema, &[member("map"), member("x"), member("y")]).is_none());
        assert!(at(&schema, &[member("any"), member("x"), member("y")]).is_some());
        assert!(at(&schema, &[member("metadata")]).is_none());
    }
}
