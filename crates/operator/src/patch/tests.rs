use proptest::prelude::*;
use serde_json::json;

use super::*;

#[test]
fn a_patch_contains_only_differences() {
    let before = json!({"a": 1, "b": {"c": 2, "d": 3}, "gone": true});
    let after = json!({"a": 1, "b": {"c": 2, "d": 4}, "new": []});
    assert_eq!(
        diff(&before, &after),
        Some(json!({"b": {"d": 4}, "gone": null, "new": []}))
    );
    assert_eq!(diff(&before, &before), None);
}

fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (key, value) in fields {
        if value.is_null() {
            target.as_object_mut().unwrap().remove(key);
        } else {
            merge(
                target
                    .as_object_mut()
                    .unwrap()
                    .entry(key)
                    .or_insert(Value::Null),
                value,
            );
        }
    }
}

fn any_object() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        any::<i8>().prop_map(Value::from)
    ];
    let inner = leaf.prop_recursive(4, 24, 4, |inner| {
        prop::collection::btree_map("[a-d]", inner, 0..4)
            .prop_map(|fields| Value::Object(fields.into_iter().collect()))
    });
    prop::collection::btree_map("[a-d]", inner, 0..4)
        .prop_map(|fields| Value::Object(fields.into_iter().collect()))
}

proptest! {
    #[test]
    fn applying_the_patch_yields_the_desired_object(before in any_object(), after in any_object()) {
        let mut patched = before.clone();
        if let Some(patch) = diff(&before, &after) {
            merge(&mut patched, &patch);
        }
        prop_assert_eq!(patched, after);
    }
}
