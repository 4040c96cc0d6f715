use proptest::prelude::*;
use serde_json::{Value, json};

use super::{super::PatchError, *};

fn merged(doc: Value, patch: Value) -> Value {
    let mut doc = doc;
    merge(&mut doc, &patch).unwrap();
    doc
}

#[test]
fn merge_patches_follow_the_table_of_rfc_7386() {
    for (doc, patch, result) in [
        (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
        (
            json!({"a": "b"}),
            json!({"b": "c"}),
            json!({"a": "b", "b": "c"}),
        ),
        (json!({"a": "b"}), json!({"a": null}), json!({})),
        (
            json!({"a": "b", "b": "c"}),
            json!({"a": null}),
            json!({"b": "c"}),
        ),
        (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
        (json!({"a": "c"}), json!({"a": ["b"]}), json!({"a": ["b"]})),
        (
            json!({"a": {"b": "c"}}),
            json!({"a": {"b": "d", "c": null}}),
            json!({"a": {"b": "d"}}),
        ),
        (
            json!({"a": [{"b": "c"}]}),
            json!({"a": [1]}),
            json!({"a": [1]}),
        ),
        (json!(["a", "b"]), json!(["c", "d"]), json!(["c", "d"])),
        (json!({"a": "b"}), json!(["c"]), json!(["c"])),
        (json!({"a": "foo"}), json!(null), json!(null)),
        (json!({"a": "foo"}), json!("bar"), json!("bar")),
        (
            json!({"e": null}),
            json!({"a": 1}),
            json!({"e": null, "a": 1}),
        ),
        (
            json!([1, 2]),
            json!({"a": "b", "c": null}),
            json!({"a": "b"}),
        ),
        (
            json!({}),
            json!({"a": {"bb": {"ccc": null}}}),
            json!({"a": {"bb": {}}}),
        ),
    ] {
        assert_eq!(
            merged(doc.clone(), patch.clone()),
            result,
            "{doc} + {patch}"
        );
    }
}

#[test]
fn json_patches_follow_rfc_6902() {
    for (doc, operations, result) in [
        (json!({"a": 1}), json!([]), json!({"a": 1})),
        (
            json!({"a": 1}),
            json!([{"op": "add", "path": "/b", "value": 2}]),
            json!({"a": 1, "b": 2}),
        ),
        (
            json!({"a": [1, 3]}),
            json!([{"op": "add", "path": "/a/1", "value": 2}]),
            json!({"a": [1, 2, 3]}),
        ),
        (
            json!({"a": [1]}),
            json!([{"op": "add", "path": "/a/1", "value": 2}]),
            json!({"a": [1, 2]}),
        ),
        (
            json!({"a": [1]}),
            json!([{"op": "add", "path": "/a/-", "value": [2]}]),
            json!({"a": [1, [2]]}),
        ),
        (
            json!({"a": 1}),
            json!([{"op": "add", "path": "", "value": [2]}]),
            json!([2]),
        ),
        (
            json!({"a": 1}),
            json!([{"op": "add", "path": "/a", "value": null}]),
            json!({"a": null}),
        ),
        (
            json!({"a": 1}),
            json!([{"op": "add", "path": "/", "value": 2}]),
            json!({"a": 1, "": 2}),
        ),
        (
            json!({"a": 1, "b": 2}),
            json!([{"op": "remove", "path": "/b"}]),
            json!({"a": 1}),
        ),
        (
            json!([1, 2, 3]),
            json!([{"op": "remove", "path": "/1"}]),
            json!([1, 3]),
        ),
        (
            json!({"a": 1}),
            json!([{"op": "replace", "path": "/a", "value": 2}]),
            json!({"a": 2}),
        ),
        (
            json!([1, [2]]),
            json!([{"op": "replace", "path": "/1/0", "value": 3}]),
            json!([1, [3]]),
        ),
        (
            json!({"a": {"b": 1}, "c": {}}),
            json!([{"op": "move", "from": "/a/b", "path": "/c/d"}]),
            json!({"a": {}, "c": {"d": 1}}),
        ),
        (
            json!([1, 2, 3]),
            json!([{"op": "move", "from": "/0", "path": "/2"}]),
            json!([2, 3, 1]),
        ),
        (
            json!({"a": [1]}),
            json!([{"op": "copy", "from": "/a", "path": "/b"}]),
            json!({"a": [1], "b": [1]}),
        ),
        (
            json!({"a/b": 1, "m~n": 2}),
            json!([{"op": "test", "path": "/a~1b", "value": 1}, {"op": "remove", "path": "/m~0n"}]),
            json!({"a/b": 1}),
        ),
        (
            json!({"~1": 1}),
            json!([{"op": "replace", "path": "/~01", "value": 2}]),
            json!({"~1": 2}),
        ),
        (
            json!({"a": 1}),
            json!([{"op": "test", "path": "/a", "value": 1.0}]),
            json!({"a": 1}),
        ),
        (
            json!({"a": 1}),
            json!([{"op": "test", "path": "/b", "value": null}]),
            json!({"a": 1}),
        ),
        (
            json!({"a": {"x": 1, "y": 2}}),
            json!([{"op": "test", "path": "/a", "value": {"y": 2, "x": 1}}]),
            json!({"a": {"x": 1, "y": 2}}),
        ),
        (
            json!({"-": 1}),
            json!([{"op": "replace", "path": "/-", "value": 2}]),
            json!({"-": 2}),
        ),
    ] {
        assert_eq!(
            json(&doc, &operations).unwrap(),
            result,
            "{doc} + {operations}"
        );
    }
}

#[test]
fn json_patches_that_do_not_match_the_object_are_rejected() {
    for (doc, operation) in [
        (json!({}), json!({"op": "remove", "path": "/a"})),
        (
            json!({}),
            json!({"op": "replace", "path": "/a", "value": 1}),
        ),
        (json!({}), json!({"op": "add", "path": "/a/b", "value": 1})),
        (json!({}), json!({"op": "test", "path": "/a", "value": 1})),
        (json!({}), json!({"op": "copy", "from": "/a", "path": "/b"})),
        (
            json!({"a": {"b": 1}}),
            json!({"op": "move", "from": "/a", "path": "/a/c"}),
        ),
        (json!([1]), json!({"op": "add", "path": "/2", "value": 1})),
        (json!([1]), json!({"op": "add", "path": "/01", "value": 1})),
        (json!([1]), json!({"op": "add", "path": "/+0", "value": 1})),
        (json!([1]), json!({"op": "add", "path": "/x", "value": 1})),
        (json!([1]), json!({"op": "remove", "path": "/-"})),
        (json!([1]), json!({"op": "remove", "path": "/1"})),
        (
            json!([1]),
            json!({"op": "remove", "path": "/99999999999999999999"}),
        ),
        (json!("a"), json!({"op": "add", "path": "/0", "value": 1})),
    ] {
        let error = json(&doc, &json!([operation])).unwrap_err();
        assert_eq!(
            (error.code(), error.reason()),
            (422, "Invalid"),
            "{doc} + {operation}"
        );
    }
}

#[test]
fn malformed_json_patches_are_rejected() {
    for operations in [
        json!({}),
        json!(["add"]),
        json!([{"op": "add", "path": 1, "value": 1}]),
    ] {
        assert_eq!(
            json(&json!({}), &operations).unwrap_err().code(),
            400,
            "{operations}"
        );
    }
    for operation in [
        json!({"path": "/a"}),
        json!({"op": "add", "path": "/a"}),
        json!({"op": "add", "value": 1}),
        json!({"op": "add", "path": "a", "value": 1}),
        json!({"op": "move", "path": "/a"}),
        json!({"op": "frob", "path": "/a"}),
    ] {
        let error = json(&json!({}), &json!([operation])).unwrap_err();
        assert_eq!(error.code(), 422, "{operation}");
    }
}

#[test]
fn json_patches_are_atomic() {
    let doc = json!({"a": 1});
    let operations = json!([
        {"op": "add", "path": "/b", "value": 2},
        {"op": "test", "path": "/a", "value": 5},
    ]);
    let error = json(&doc, &operations).unwrap_err();
    assert_eq!(error.to_string(), "testing value /a failed");
    assert_eq!(doc, json!({"a": 1}));
}

#[test]
fn patches_above_the_limits_are_rejected() {
    let many: Vec<Value> = vec![json!({"op": "test", "path": "/a"}); 10_001];
    let error = json(&json!({}), &Value::from(many)).unwrap_err();
    assert_eq!(error.code(), 413);

    let doubling: Vec<Value> =
        std::iter::once(json!({"op": "add", "path": "/a", "value": ["x".repeat(100)]}))
            .chain(std::iter::repeat_n(
                json!({"op": "copy", "from": "/a", "path": "/a/-"}),
                100,
            ))
            .collect();
    let error = json(&json!({}), &Value::from(doubling)).unwrap_err();
    assert!(
        matches!(
            error,
            PatchError::TooLarge { .. } | PatchError::Malformed { .. }
        ),
        "{error}"
    );
}

#[test]
fn nesting_is_limited_before_the_stack_overflows() {
    let mut operations = Vec::new();
    let mut path = String::new();
    for _ in 0..300 {
        path.push_str("/a");
        operations.push(json!({"op": "add", "path": path, "value": {}}));
    }
    assert_eq!(
        json(&json!({}), &Value::from(operations))
            .unwrap_err()
            .code(),
        400
    );

    let mut deep = json!(1);
    for _ in 0..200 {
        deep = json!({ "a": deep });
    }
    assert_eq!(merge(&mut json!({}), &deep).unwrap_err().code(), 400);
}

/// Any JSON value. Field names are few, so that patches often match fields of the object.
pub(crate) fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3_i64..10).prop_map(Value::from),
        Just(json!(1.5)),
        "[a-c~/]{0,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-c-~/]{1,2}", inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn any_operation() -> impl Strategy<Value = Value> {
    let path = "(/[a-c0-2-]{1,2}){0,3}(~0|~1|~)?";
    (
        prop::sample::select(vec!["add", "remove", "replace", "move", "copy", "test"]),
        path,
        path,
        any_json(),
    )
        .prop_map(
            |(op, path, from, value)| json!({"op": op, "path": path, "from": from, "value": value}),
        )
}

proptest! {
    #[test]
    fn no_patch_panics(doc in any_json(), patch in any_json(), operations in prop::collection::vec(any_operation(), 0..5)) {
        let _ = json(&doc, &patch);
        let _ = json(&doc, &Value::from(operations));
    }

    #[test]
    fn merging_is_idempotent(doc in any_json(), patch in any_json()) {
        let once = merged(doc, patch.clone());
        prop_assert_eq!(merged(once.clone(), patch), once);
    }

    #[test]
    fn a_merge_patch_computed_from_a_difference_yields_the_target(doc in any_json(), target in any_json()) {
        fn without_nulls(value: &Value) -> Value {
            match value {
                Value::Object(fields) => fields.iter().filter(|(_, v)| !v.is_null())
                    .map(|(n, v)| (n.clone(), without_nulls(v))).collect(),
                other => other.clone(),
            }
        }
        fn difference(doc: &Value, target: &Value) -> Value {
            let (Value::Object(doc), Value::Object(target)) = (doc, target) else { return target.clone() };
            let mut patch = Map::new();
            for name in doc.keys().filter(|name| !target.contains_key(*name)) {
                patch.insert(name.clone(), Value::Null);
            }
            for (name, value) in target {
                patch.insert(name.clone(), doc.get(name).map_or(value.clone(), |old| difference(old, value)));
            }
            Value::Object(patch)
        }
        let (doc, target) = (without_nulls(&doc), without_nulls(&target));
        prop_assert_eq!(merged(doc.clone(), difference(&doc, &target)), target);
    }
}
