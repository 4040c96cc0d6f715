//! Every kind with two versions, with any object that is valid by its schema, and any part of one.

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::convert;

/// Any part of a value that is valid by the schema: every field may be absent, even required ones.
fn part_of(schema: &JSONSchemaProps) -> BoxedStrategy<Value> {
    if let Some(values) = &schema.enum_ {
        let values: Vec<_> = values.iter().map(|value| value.0.clone()).collect();
        return proptest::sample::select(values).boxed();
    }
    if schema.x_kubernetes_int_or_string == Some(true) {
        return prop_oneof![(0..9_i32).prop_map(Value::from), Just(json!("25%"))].boxed();
    }
    match schema.type_.as_deref() {
        Some("object") => object(schema),
        Some("array") => {
            let Some(JSONSchemaPropsOrArray::Schema(items)) = &schema.items else {
                return Just(json!([])).boxed();
            };
            let items = proptest::collection::vec(part_of(items), 0..3);
            let is_set = schema.x_kubernetes_list_type.as_deref() == Some("set");
            let unique = move |mut items: Vec<Value>| {
                if is_set {
                    items.dedup();
                }
                Value::from(items)
            };
            items.prop_map(unique).boxed()
        }
        Some("string") => text(schema),
        Some("integer" | "number") => (0..4_i32).prop_map(Value::from).boxed(),
        Some("boolean") => any::<bool>().prop_map(Value::from).boxed(),
        // A value of any kind.
        _ => prop_oneof![Just(json!("a")), Just(json!({"b": []})), Just(json!(1))].boxed(),
    }
}

fn object(schema: &JSONSchemaProps) -> BoxedStrategy<Value> {
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &schema.additional_properties {
        return proptest::collection::btree_map("[ab/.]{1,2}", part_of(values), 0..3)
            .prop_map(|map| json!(map))
            .boxed();
    }
    let Some(properties) = &schema.properties else {
        return Just(json!({})).boxed();
    };
    let names: Vec<_> = properties.keys().cloned().collect();
    // Few fields at once, so that deep objects stay small.
    let weight = (4.0 / names.len() as f64).clamp(0.1, 0.7);
    let values: Vec<_> = properties
        .values()
        .map(|schema| proptest::option::weighted(weight, part_of(schema)))
        .collect();
    let build = move |values: Vec<Option<Value>>| {
        let set = names.iter().cloned().zip(values);
        let set: BTreeMap<_, _> = set
            .filter_map(|(name, value)| Some((name, value?)))
            .collect();
        json!(set)
    };
    values.prop_map(build).boxed()
}

fn text(schema: &JSONSchemaProps) -> BoxedStrategy<Value> {
    let about = schema.description.as_deref().unwrap_or_default();
    let texts: &[&str] = if about.contains("A duration such as") {
        &["10m", "1h0m0s", "1.5s", "0", "99999999h"]
    } else if schema.format.as_deref() == Some("date-time") {
        &["2026-01-01T00:00:00Z"]
    } else {
        &["", "a", "b", "x/y", "Ready"]
    };
    proptest::sample::select(texts.to_vec())
        .prop_map(Value::from)
        .boxed()
}

/// The object as converted for server-side apply after it removed fields: `null` for what lost its last member.
fn emptied(value: &Value) -> Value {
    match value {
        Value::Object(fields) if fields.is_empty() => Value::Null,
        Value::Array(items) if items.is_empty() => Value::Null,
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| (name.clone(), emptied(value)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        Value::Array(items) => items.iter().map(emptied).collect(),
        plain => plain.clone(),
    }
}

/// A kind's `apiVersion`, its other `apiVersion`, and an object with any part of spec and status.
fn any_object() -> impl Strategy<Value = (String, String, Value)> {
    let mut all = Vec::new();
    for crd in crate::crds::all() {
        let versions: Vec<_> = crd.spec.versions.iter().map(|v| v.name.clone()).collect();
        if versions.len() < 2 {
            continue;
        }
        for version in &crd.spec.versions {
            let schema = version
                .schema
                .as_ref()
                .and_then(|s| s.open_api_v3_schema.as_ref());
            let properties = schema
                .and_then(|s| s.properties.clone())
                .unwrap_or_default();
            let part = |name: &str| match properties.get(name) {
                Some(schema) => proptest::option::weighted(0.9, part_of(schema)).boxed(),
                None => Just(None).boxed(),
            };
            let group = crd.spec.group.clone();
            let this = format!("{group}/{}", version.name);
            let other = versions.iter().find(|name| **name != version.name).unwrap();
            let other = format!("{group}/{other}");
            let kind = crd.spec.names.kind.clone();
            let build = move |(spec, status): (Option<Value>, Option<Value>)| {
                let mut object =
                    json!({"apiVersion": this, "kind": kind, "metadata": {"name": "x"}});
                for (name, value) in [("spec", spec), ("status", status)] {
                    if let Some(value) = value {
                        object[name] = value;
                    }
                }
                (this.clone(), other.clone(), object)
            };
            all.push((part("spec"), part("status")).prop_map(build).boxed());
        }
    }
    proptest::strategy::Union::new(all)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_part_of_any_object_is_converted_and_its_spec_comes_back(
        (version, other, object) in any_object()
    ) {
        let there = convert(object.clone(), &other);
        prop_assert!(there.is_ok(), "{}: {:?}", object, there);
        let there = there.unwrap();
        prop_assert_eq!(&there["apiVersion"], &json!(other));
        let back = convert(there, &version).unwrap();
        prop_assert_eq!(back.get("spec"), object.get("spec"));
        prop_assert_eq!(back.get("status").is_some(), object.get("status").is_some());
    }

    #[test]
    fn what_server_side_apply_leaves_of_an_object_is_converted(
        (version, other, object) in any_object()
    ) {
        let there = convert(emptied(&object), &other);
        prop_assert!(there.is_ok(), "{}: {:?}", emptied(&object), there);
        prop_assert!(convert(there.unwrap(), &version).is_ok());
    }
}
