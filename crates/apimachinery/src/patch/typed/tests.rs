use serde_json::json;

use super::*;
use crate::schema::Schema;

fn schema() -> Schema {
    Schema::compile(&json!({
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": {
            "size": {"type": "integer"},
            "name": {"type": "string"},
            "list": {"type": "array", "items": {"type": "string"}},
            "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "map": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k", "p"],
                    "items": {"type": "object", "required": ["k"], "properties": {
                        "k": {"type": "string"}, "p": {"type": "string", "default": "TCP"}, "v": {"type": "integer"}}}},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"a": {"type": "string"}}},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        }}},
    }))
    .unwrap_or_else(|errors| panic!("{errors:?}"))
}

fn with<T>(run: impl Fn(Type<'_>) -> T) -> T {
    let schema = schema();
    run(Type::Node {
        node: schema.root(),
        preserve: false,
        root: true,
    })
}

#[test]
fn field_sets_contain_leaves_items_and_atomic_values() {
    let object = json!({"spec": {
        "size": 1, "list": ["a"], "set": ["x"], "labels": {"l": "1"}, "whole": {"a": "b"},
        "map": [{"k": "a", "v": 1}], "free": {"x": {"y": [1]}},
    }});
    let set = with(|of| field_set(&object, of));
    assert_eq!(
        set.write(),
        json!({"f:spec": {
            "f:size": {}, "f:list": {}, "f:set": {"v:\"x\"": {}}, "f:labels": {"f:l": {}}, "f:whole": {},
            "f:map": {"k:{\"k\":\"a\",\"p\":\"TCP\"}": {".": {}, "f:k": {}, "f:v": {}}},
            "f:free": {"f:x": {".": {}, "f:y": {}}},
        }})
    );
}

#[test]
fn merging_replaces_leaves_and_keeps_the_order_of_lists() {
    let base = json!({"spec": {"size": 1, "set": ["a", "b"], "list": ["a"], "labels": {"x": "1"},
        "map": [{"k": "a", "v": 1}, {"k": "b", "v": 2}]}});
    let over = json!({"spec": {"size": 2, "set": ["b", "c"], "list": ["b"], "labels": {"y": "2"},
        "map": [{"k": "b", "v": 3}, {"k": "c"}]}});
    let merged = with(|of| merge(&base, &over, of).unwrap());
    assert_eq!(
        merged,
        json!({"spec": {"size": 2, "set": ["a", "b", "c"], "list": ["b"], "labels": {"x": "1", "y": "2"},
            "map": [{"k": "a", "v": 1}, {"k": "b", "v": 3}, {"k": "c"}]}})
    );
    let twice = json!({"spec": {"set": ["a", "a"]}});
    assert_eq!(
        with(|of| merge(&base, &twice, of)).unwrap_err(),
        "duplicate entries for key [=\"a\"]"
    );
}

#[test]
fn comparing_distinguishes_added_modified_and_removed_fields() {
    let old = json!({"spec": {"size": 1, "name": "a", "map": [{"k": "a", "v": 1}]}});
    let new = json!({"spec": {"size": 2, "labels": {"x": "1"}, "map": [{"k": "b"}]}});
    let changed = with(|of| compare(&old, &new, of));
    assert_eq!(changed.modified.write(), json!({"f:spec": {"f:size": {}}}));
    assert_eq!(
        changed.added.write(),
        json!({"f:spec": {
            "f:labels": {".": {}, "f:x": {}},
            "f:map": {"k:{\"k\":\"b\",\"p\":\"TCP\"}": {".": {}, "f:k": {}}},
        }})
    );
    assert_eq!(
        changed.removed.write(),
        json!({"f:spec": {"f:name": {}, "f:map": {"k:{\"k\":\"a\",\"p\":\"TCP\"}": {".": {}, "f:k": {}, "f:v": {}}}}})
    );
}

#[test]
fn removing_removes_items_and_fields() {
    let object =
        json!({"spec": {"size": 1, "set": ["a", "b"], "map": [{"k": "a", "v": 1}, {"k": "b"}]}});
    let gone = Set::read(&json!({"f:spec": {
        "f:size": {}, "f:set": {"v:\"a\"": {}}, "f:map": {"k:{\"k\":\"a\",\"p\":\"TCP\"}": {"f:v": {}}},
    }}))
    .unwrap();
    assert_eq!(
        with(|of| remove(&object, &gone, of)),
        json!({"spec": {"set": ["b"], "map": [{"k": "a"}, {"k": "b"}]}})
    );
}

#[test]
fn type_errors_name_their_path() {
    for (spec, expected) in [
        (
            json!({"nothing": 1}),
            ".spec.nothing: field not declared in schema",
        ),
        (
            json!({"size": "x"}),
            ".spec.size: expected numeric (int or float), got string",
        ),
        (json!({"map": [{"v": 1}]}), ""),
        (
            json!({"map": [1]}),
            ".spec.map: element 0: associative list with keys may not have non-map elements",
        ),
        (
            json!({"set": ["a", "a"]}),
            ".spec.set: duplicate entries for key [=\"a\"]",
        ),
        (
            json!({"list": {}}),
            ".spec.list: expected list, got &{map[]}",
        ),
    ] {
        let object = json!({ "spec": spec });
        let found = with(|of| validate(&object, of, false))
            .err()
            .unwrap_or_default();
        assert_eq!(found, expected);
    }
    let twice = json!({"spec": {"set": ["a", "a"]}});
    assert!(with(|of| validate(&twice, of, true)).is_ok());
}

#[test]
fn fields_of_a_value_that_became_atomic_are_owned_as_one() {
    let before = Set::read(
        &json!({"f:spec": {"f:whole": {"f:a": {}}, "f:list": {"v:\"x\"": {}}, "f:size": {}}}),
    )
    .unwrap();
    let after = with(|of| reconcile(&before, of)).unwrap();
    assert_eq!(
        after.write(),
        json!({"f:spec": {"f:whole": {}, "f:list": {}, "f:size": {}}})
    );
    assert!(with(|of| reconcile(&after, of)).is_none());
}
