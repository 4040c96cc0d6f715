use proptest::prelude::*;
use serde_json::{Value, json};

use super::{ANNOTATION, Lists, Stash, put, take};

fn lists() -> Lists {
    Lists::with(&[("/spec/disks", &["name"])])
}

/// Restores a stash in an object with the spec `now`, after writing it to the annotation and reading it.
fn restored(before: &Value, back: &Value, now: &Value) -> Value {
    let mut stash = Stash::default();
    stash.add_spec(before, back, &lists());
    let mut object = json!({"spec": now});
    put(&mut object, "v1beta1", &stash);
    let kept = take(&mut object, "v1beta1");
    assert_eq!(kept, stash);
    kept.restore(&mut object, &lists());
    object["spec"].clone()
}

#[test]
fn an_element_is_found_by_its_merge_key_wherever_it_has_gone() {
    let before = json!({"disks": [{"name": "a", "old": 1}, {"name": "b", "old": 2}]});
    let back = json!({"disks": [{"name": "a"}, {"name": "b"}]});
    let now = json!({"disks": [{"name": "new"}, {"name": "b", "size": 5}]});
    let expected = json!({"disks": [{"name": "new"}, {"name": "b", "size": 5, "old": 2}]});
    assert_eq!(restored(&before, &back, &now), expected);
}

#[test]
fn an_element_without_merge_key_is_restored_only_where_it_is_unchanged() {
    let before = json!({"ports": [{"net": "a", "old": 1}, {"net": "b", "old": 2}]});
    let back = json!({"ports": [{"net": "a"}, {"net": "b"}]});
    let now = json!({"ports": [{"net": "b"}, {"net": "a", "trunk": true}]});
    let expected = json!({"ports": [{"net": "b", "old": 2}, {"net": "a", "trunk": true}]});
    assert_eq!(restored(&before, &back, &now), expected);
}

#[test]
fn an_element_without_its_key_does_not_hold_up_the_others() {
    let before = json!({"disks": [{"name": "a", "old": 1}, {"size": 1, "old": 2}]});
    let back = json!({"disks": [{"name": "a"}, {"size": 1}]});
    let now = json!({"disks": [{"name": "a"}, {"size": 2}]});
    let expected = json!({"disks": [{"name": "a", "old": 1}, {"size": 2}]});
    assert_eq!(restored(&before, &back, &now), expected);
    assert_eq!(restored(&before, &back, &back), before);
}

#[test]
fn of_equal_elements_none_is_mistaken_for_another() {
    let before = json!({"ports": [{"old": 1}, {"old": 2}, {}]});
    let back = json!({"ports": [{}, {}, {}]});
    assert_eq!(restored(&before, &back, &back), before);
    let now = json!({"ports": [{}, {}]});
    assert_eq!(restored(&before, &back, &now), now, "one of three is gone");
}

#[test]
fn a_field_is_restored_only_beside_those_that_it_belongs_to() {
    let before = json!({"flavor": "m1", "flavorID": "7"});
    let back = json!({"flavorID": "7"});
    assert_eq!(restored(&before, &back, &back), before);
    let now = json!({"flavorID": "8"});
    assert_eq!(restored(&before, &back, &now), now);
}

#[test]
fn a_field_does_not_bring_back_the_object_that_it_was_in() {
    let before = json!({"a": {"b": {"kept": 1, "lost": 2}, "gone": {"c": 3}}});
    let back = json!({"a": {"b": {"kept": 1}}});
    assert_eq!(restored(&before, &back, &back), before);
    let now = json!({"a": {}});
    assert_eq!(
        restored(&before, &back, &now),
        json!({"a": {"gone": {"c": 3}}})
    );
    assert_eq!(restored(&before, &back, &json!({})), json!({}));
}

#[test]
fn names_with_slashes_and_brackets_are_names() {
    let before = json!({"a/b": {"~": 1, "[0]": 2}, "#x 0 1": 3});
    assert_eq!(restored(&before, &json!({}), &json!({})), before);
}

#[test]
fn both_annotations_of_earlier_releases_are_read() {
    // Written by release 0.1: by index and the field's hash, and by the hash of the scalar fields beside it.
    let by_field = json!({"version": "v1beta1", "fields": {"/parts/0/layout": {"d": true}}});
    let by_fields_around = json!({"version": "v1beta1", "fields": {
        "/flavor": {"d": "m1", "h": "f6502475365b"},
        "/gone": {"d": 1, "h": "000000000000"}}});
    let mut object = json!({"spec": {"parts": [{}], "flavorID": "7"}, "metadata": {"annotations": {
        "cluster.x-k8s.io/ferrostack-conversion": by_field.to_string()}}});
    take(&mut object, "v1beta1").restore(&mut object, &lists());
    assert_eq!(object["spec"]["parts"], json!([{"layout": true}]));
    assert_eq!(object["metadata"].get("annotations"), None);

    object["metadata"]["annotations"] = json!({
        "infrastructure.cluster.x-k8s.io/ferrostack-conversion": by_fields_around.to_string()});
    take(&mut object, "v1beta1").restore(&mut object, &lists());
    assert_eq!(object["spec"]["flavor"], "m1");
    assert_eq!(object["spec"].get("gone"), None);
    assert_eq!(object["metadata"].get("annotations"), None);
}

#[test]
fn metadata_of_another_shape_is_left_alone() {
    for metadata in [json!("x"), json!({"annotations": 5}), Value::Null] {
        let mut object = json!({"metadata": metadata, "spec": {}});
        let _ = take(&mut object, "v1beta1");
        assert_eq!(object["metadata"], metadata);
    }
    let mut object = json!({"metadata": {"annotations": {ANNOTATION: "{"}}});
    assert_eq!(take(&mut object, "v1beta1"), Stash::default());
}

proptest! {
    #[test]
    fn a_stash_restores_what_was_lost(before in json_value(), back in json_value()) {
        prop_assert_eq!(restored(&before, &back, &back), before);
    }
}

/// Objects, lists and scalars.
fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(1)),
        Just(json!("a")),
        Just(json!({})),
        Just(json!([1, 2]))
    ];
    let inner = leaf.prop_recursive(4, 24, 3, |inner| {
        let object = proptest::collection::btree_map("[ab~/]{1,2}|name|disks", inner.clone(), 0..3);
        let list = proptest::collection::vec(inner, 0..3);
        prop_oneof![
            object.prop_map(|map| json!(map)),
            list.prop_map(Value::from)
        ]
    });
    proptest::collection::btree_map("[abc]|disks", inner, 0..3).prop_map(|map| json!(map))
}
