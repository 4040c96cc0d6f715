use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;

fn object(spec: Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Foo", "metadata": {"name": "a", "uid": "u"}, "spec": spec})
}

/// A list with the given number of nested lists.
fn nested(levels: usize) -> Value {
    (0..levels).fold(json!(1), |inner, _| json!([inner]))
}

fn stored(value: &Value) -> Object {
    Draft::new(value).at(7, Arc::from("a"))
}

/// Any JSON value, with fractions and texts that need escaping.
fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".*".prop_map(Value::from),
    ];
    leaf.prop_recursive(8, 64, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            proptest::collection::btree_map(".*", inner, 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

proptest! {
    #[test]
    fn accepted_objects_are_read_back_as_they_were_written(spec in values(), labels in values()) {
        let mut value = object(spec);
        value["metadata"]["labels"] = labels;
        let written = pass(&value, None).expect("it passes").at(9, Arc::from("a")).json();
        let read = Object::load(9, Arc::from("a"), written.to_vec()).expect("it loads");
        prop_assert_eq!(&read.value()["metadata"]["resourceVersion"], "9");
        prop_assert!(reads_back(&written, &value));
    }
}

#[test]
fn the_deepest_accepted_object_is_readable_in_lists_and_watches() {
    let deepest = object(nested(MAX_DEPTH - 1));
    assert_eq!(schema::depth(&deepest), MAX_DEPTH);
    let json = pass(&deepest, None)
        .expect("it passes")
        .at(9, Arc::from("a"))
        .json();
    let json = String::from_utf8(json.to_vec()).expect("text");
    let forms = [
        format!(r#"{{"items":[{json}]}}"#),
        format!(r#"{{"type":"ADDED","object":{{"rows":[{{"object":{json}}}]}}}}"#),
        format!(r#"{{"request":{{"objects":[{json}]}}}}"#),
    ];
    for form in forms {
        serde_json::from_str::<Value>(&form).expect("it is read");
    }
    let deeper = object(nested(MAX_DEPTH));
    assert_eq!(pass(&deeper, None).err(), Some(Unstorable::TooDeep));
}

#[test]
fn stored_objects_above_the_limits_can_be_edited_unless_they_grow() {
    let deep = |levels| object(nested(levels));
    let previous = stored(&deep(MAX_DEPTH + 2));
    assert!(pass(&deep(MAX_DEPTH + 1), Some(&previous)).is_ok());
    // An object that readers could not parse never passes.
    let deeper = pass(&deep(128), Some(&previous));
    assert_eq!(deeper.err(), Some(Unstorable::Unreadable));

    let large = |bytes| object(json!("x".repeat(bytes)));
    let previous = stored(&large(MAX_BYTES + 100));
    assert!(pass(&large(MAX_BYTES + 50), Some(&previous)).is_ok());
    let larger = pass(&large(MAX_BYTES + 200), Some(&previous));
    assert_eq!(larger.err(), Some(Unstorable::TooLarge));
}

#[test]
fn the_size_of_custom_objects_is_their_json_and_that_of_built_in_ones_their_texts() {
    let escaped = "\n".repeat(MAX_BYTES / 3 * 2);
    let custom = object(json!(escaped));
    assert_eq!(pass(&custom, None).err(), Some(Unstorable::TooLarge));
    let text =
        |text: &str| json!({"apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": text});
    assert!(pass(&text(&escaped), None).is_ok());
    let longer = text(&"x".repeat(MAX_BYTES + 1));
    assert_eq!(pass(&longer, None).err(), Some(Unstorable::TooLarge));
}

#[test]
fn values_that_would_be_written_differently_are_rejected() {
    for wrong in [
        json!([1]),
        json!({"metadata": [1]}),
        json!({"metadata": "a"}),
    ] {
        assert_eq!(pass(&wrong, None).err(), Some(Unstorable::Unreadable));
    }
    for right in [
        json!({}),
        json!({"metadata": null}),
        json!({"metadata": {"resourceVersion": "5"}}),
    ] {
        assert!(pass(&right, None).is_ok(), "{right}");
    }
    let written = br#"{"metadata":{"resourceVersion":"0"},"a":[1,2],"b":"c"}"#;
    for other in [
        json!({"a": [1], "b": "c"}),
        json!({"a": [1, 2, 3], "b": "c"}),
        json!({"a": [1, 2]}),
        json!({"a": [1, 2], "b": "d"}),
        json!({"a": [1, 2], "b": "c", "d": 1}),
    ] {
        assert!(!reads_back(written, &other), "{other}");
    }
    assert!(reads_back(written, &json!({"a": [1, 2], "b": "c"})));
}
