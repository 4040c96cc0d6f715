use std::{fs, path::PathBuf};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::patch::any_json;

mod crds;
mod messages;
mod refused;

fn compile(schema: Value) -> Schema {
    Schema::compile(&schema).unwrap_or_else(|errors| panic!("{errors:#?}"))
}

/// A schema with a field of each form.
fn sample() -> Schema {
    compile(json!({
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "required": ["a"],
                "properties": {
                    "a": {"type": "string", "minLength": 1, "default": "x"},
                    "b": {"type": "integer", "nullable": true, "default": 3},
                    "c": {"type": "array", "items": {
                        "type": "object",
                        "properties": {"a": {"type": "string", "default": "y"}, "b": {"type": "number"}},
                    }},
                    "ab": {"type": "object", "additionalProperties": {"type": "string", "default": "z"}},
                    "ac": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
                           "properties": {"a": {"type": "object", "properties": {"b": {"type": "string"}}}}},
                    "bc": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]},
                    "ba": {"type": "object", "additionalProperties": true},
                },
            },
            "a": {"type": "object", "properties": {"a": {"type": "string"}}},
        },
    }))
}

#[test]
fn unknown_fields_are_dropped_and_named() {
    let schema = sample();
    let mut object = json!({
        "apiVersion": "a/v1", "kind": "K", "metadata": {"name": "x", "foo": 1},
        "foo": 1,
        "spec": {
            "foo": 1,
            "c": [{"bar": 1, "a": "k"}, {"b": 2}],
            "ab": {"k": "v"},
            "ac": {"free": {"x": 1}, "a": {"b": "k", "c": 1}},
            "ba": {"k": {"v": 1}, "l": 1},
        },
    });
    assert_eq!(
        schema.prune(&mut object),
        [
            "foo",
            "spec.ac.a.c",
            "spec.ba.k.v",
            "spec.c[0].bar",
            "spec.foo"
        ]
    );
    assert_eq!(
        object,
        json!({
            "apiVersion": "a/v1", "kind": "K", "metadata": {"name": "x", "foo": 1},
            "spec": {
                "c": [{"a": "k"}, {"b": 2}],
                "ab": {"k": "v"},
                "ac": {"free": {"x": 1}, "a": {"b": "k"}},
                "ba": {"k": {}, "l": 1},
            },
        })
    );
}

#[test]
fn defaults_replace_absent_fields_and_nulls_that_are_not_nullable() {
    let mut object =
        json!({"spec": {"a": null, "b": null, "c": [{}, null], "ab": {"k": null}, "bc": null}});
    sample().default(&mut object).unwrap();
    assert_eq!(
        object,
        json!({"spec": {"a": "x", "b": null, "c": [{"a": "y"}, null], "ab": {"k": "z"}}})
    );
    let mut object = json!({"spec": {}});
    sample().default(&mut object).unwrap();
    assert_eq!(object, json!({"spec": {"a": "x", "b": 3}}));
    let mut object = json!({});
    sample().default(&mut object).unwrap();
    assert_eq!(object, json!({}));
}

#[test]
fn invalid_values_stay_accepted_while_they_are_unchanged() {
    let schema = compile(json!({
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": {
            "size": {"type": "integer", "maximum": 5},
            "other": {"type": "string"},
            "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "map": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
                    "items": {"type": "object", "required": ["k"], "properties": {
                        "k": {"type": "string"}, "v": {"type": "integer", "maximum": 5}}}},
        }}},
    }));
    let old = json!({"spec": {"size": 9, "set": ["a", "a"], "map": [{"k": "a", "v": 9}]}});
    let paths = |new: Value| -> Vec<String> {
        schema
            .validate(&new, Some(&old))
            .into_iter()
            .map(|error| error.path)
            .collect()
    };
    assert!(paths(json!({"spec": {"size": 9, "set": ["a", "a"], "other": "x", "map": [{"k": "b"}, {"k": "a", "v": 9}]}})).is_empty());
    assert_eq!(paths(json!({"spec": {"size": 8}})), ["spec.size"]);
    assert_eq!(
        paths(json!({"spec": {"map": [{"k": "a", "v": 8}]}})),
        ["spec.map[0].v"]
    );
    assert_eq!(schema.validate(&old, None).len(), 3);
}

#[test]
fn objects_nested_too_deeply_are_rejected_without_recursion() {
    let schema = compile(json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}));
    let mut deep = json!({});
    for _ in 0..5_000 {
        deep = Value::Object([("a".to_owned(), deep)].into_iter().collect());
    }
    assert!(schema.prune(&mut deep).is_empty());
    schema.default(&mut deep).unwrap();
    let errors = schema.validate(&deep, None);
    assert_eq!(
        errors[0].to_string(),
        "<nil>: Forbidden: must not be nested deeper than 120"
    );
    assert!(Schema::compile(&deep).is_err());
    // Dropping a value recurses, so it is taken apart level by level.
    while let Some(inner) = deep.as_object_mut().and_then(|fields| fields.remove("a")) {
        deep = inner;
    }
}

fn any_object() -> impl Strategy<Value = Value> {
    let spec = prop::collection::btree_map("a|b|c|ab|ac|bc|ba|d", any_json(), 0..6)
        .prop_map(|fields| Value::Object(fields.into_iter().collect()));
    (spec, any_json())
        .prop_map(|(spec, a)| json!({"spec": spec, "a": a, "metadata": {"name": "x"}}))
}

proptest! {
    #[test]
    fn pruning_is_idempotent(object in any_object()) {
        let schema = sample();
        let mut once = object;
        schema.prune(&mut once);
        let mut twice = once.clone();
        prop_assert_eq!(schema.prune(&mut twice), Vec::<String>::new());
        prop_assert_eq!(twice, once);
    }

    #[test]
    fn defaulting_is_idempotent(object in any_object()) {
        let schema = sample();
        let mut once = object;
        schema.default(&mut once).unwrap();
        let mut twice = once.clone();
        schema.default(&mut twice).unwrap();
        prop_assert_eq!(twice, once);
    }

    #[test]
    fn validation_never_panics_and_an_unchanged_object_is_always_accepted(object in any_object(), old in any_object()) {
        let schema = sample();
        let _ = schema.validate(&object, None);
        let _ = schema.validate(&object, Some(&old));
        let mut object = object;
        schema.prune(&mut object);
        object.as_object_mut().unwrap().remove("metadata");
        let mut errors = schema.validate(&object, Some(&object));
        errors.retain(|error| !error.path.starts_with("spec.ac") && !error.path.starts_with("spec.ba"));
        let free = object.pointer("/spec/ac").is_some() || object.pointer("/spec/ba").is_some();
        prop_assert!(free || errors.is_empty(), "{errors:?}");
    }

    #[test]
    fn compiling_anything_never_panics(schema in any_json(), odd in any_schema()) {
        let _ = Schema::compile(&schema);
        if let Ok(schema) = Schema::compile(&odd) {
            let _ = schema.validate(&json!({"a": {"b": [1, null, "x"]}}), None);
        }
    }
}

/// Schemas of valid keywords, mostly with invalid values.
fn any_schema() -> impl Strategy<Value = Value> {
    let keyword = prop::sample::select(vec![
        "properties",
        "items",
        "additionalProperties",
        "type",
        "default",
        "enum",
        "allOf",
        "anyOf",
        "not",
        "required",
        "maximum",
        "maxLength",
        "pattern",
        "format",
        "nullable",
        "x-kubernetes-list-type",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-validations",
        "x-kubernetes-int-or-string",
        "x-kubernetes-preserve-unknown-fields",
        "a",
        "rule",
    ]);
    let leaf = prop_oneof![
        prop::sample::select(vec![
            "object",
            "array",
            "string",
            "integer",
            "map",
            "set",
            "self.a",
            "[(",
            "date-time"
        ])
        .prop_map(Value::from),
        Just(json!(true)),
        Just(json!(1)),
        Just(json!(null)),
        Just(json!([{"rule": "self.a == oldSelf.a"}])),
    ];
    leaf.prop_recursive(5, 40, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map(keyword.clone().prop_map(str::to_owned), inner, 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

#[test]
fn rejecting_an_object_with_many_violations_costs_as_much_as_it_is_long() {
    let texts =
        json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"});
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "additionalProperties": texts},
        "known": {"type": "object", "additionalProperties": {"type": "object", "properties": {}}},
    }});
    let schema = Schema::compile(&schema).expect("a schema");
    let key = "k".repeat(100_000);
    let numbers: Vec<Value> = (0..50_000).map(|n| json!(n / 2)).collect();
    let fields: Value = (0..50_000).map(|n| (n.to_string(), json!(1))).collect();
    let mut object = json!({"spec": {&key: numbers}, "known": {&key: fields}});
    let unknown = schema.prune(&mut object);
    assert!(
        (1..=100).contains(&unknown.len()),
        "{} unknown",
        unknown.len()
    );
    let errors = schema.validate(&object, None);
    assert!((1..=600).contains(&errors.len()), "{} errors", errors.len());
}

#[test]
fn nulls_of_the_metadata_of_an_embedded_object_are_pruned() {
    let schema = json!({"type": "object", "properties": {
        "free": {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true},
        "strict": {"type": "object", "x-kubernetes-embedded-resource": true, "properties": {"spec": {"type": "object"}}},
    }});
    let schema = compile(schema);
    let inner = |labels: bool| {
        let mut object = json!({"apiVersion": "v1", "kind": "A", "metadata": {"name": "a"}});
        if labels {
            object["metadata"]["labels"] = json!(null);
        }
        object
    };
    let mut object = json!({"free": inner(true), "strict": inner(true)});
    assert!(schema.prune(&mut object).is_empty());
    assert_eq!(
        object,
        json!({"free": inner(false), "strict": inner(false)})
    );
}
