use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn set(fields: Value) -> Set {
    Set::read(&fields).unwrap()
}

#[test]
fn sets_are_encoded_as_they_were_decoded() {
    for fields in [
        json!({}),
        json!({"f:spec": {}}),
        json!({"f:spec": {".": {}, "f:replicas": {}}}),
        json!({"f:spec": {"f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}}}}}),
        json!({"f:metadata": {"f:finalizers": {".": {}, "v:\"a/b\"": {}, "v:1": {}}}}),
        json!({"f:a": {"i:3": {}}, "f:k": {"v:\"\\u003c\"": {}}}),
    ] {
        assert_eq!(set(fields.clone()).write(), fields);
    }
}

#[test]
fn malformed_field_sets_are_rejected() {
    for fields in [
        json!([]),
        json!("x"),
        json!({"f": {}}),
        json!({"": {}}),
        json!({"fx": {}}),
        json!({"k:[1]": {}}),
        json!({"v:": {}}),
        json!({"i:x": {}}),
        json!({"f:a": 1}),
    ] {
        assert!(Set::read(&fields).is_err(), "{fields}");
    }
    assert!(set(json!({"x:unknown": {}, "f:a": {}})).has(&[Element::Field("a".into())]));
}

#[test]
fn paths_are_printed_as_in_conflicts() {
    let fields = json!({"f:spec": {"f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {"f:name": {}}}, "f:set": {"v:\"a\"": {}}}});
    let paths: Vec<String> = set(fields)
        .paths()
        .iter()
        .map(|path| path_text(path))
        .collect();
    assert_eq!(
        paths,
        [
            ".spec.ports[port=80,protocol=\"TCP\"].name",
            ".spec.set[=\"a\"]"
        ]
    );
}

#[test]
fn differences_remove_a_field_with_or_without_its_descendants() {
    let all = set(json!({"f:a": {".": {}, "f:b": {}}, "f:c": {}}));
    let a = set(json!({"f:a": {}}));
    assert_eq!(
        all.difference(&a).write(),
        json!({"f:a": {"f:b": {}}, "f:c": {}})
    );
    assert_eq!(all.recursive_difference(&a).write(), json!({"f:c": {}}));
}

pub(crate) fn any_set() -> impl Strategy<Value = Set> {
    let element = prop_oneof![
        "[a-c]".prop_map(Element::Field),
        (0_i64..2).prop_map(|i| Element::Value(Item(json!(i)))),
        "[a-b]".prop_map(|name| Element::Key(vec![("name".into(), Item(json!(name)))])),
    ];
    prop::collection::vec(prop::collection::vec(element, 1..4), 0..8).prop_map(|paths| {
        let mut set = Set::default();
        for path in paths {
            set.insert(&path);
        }
        set
    })
}

proptest! {
    #[test]
    fn set_operations_obey_the_laws_of_sets(a in any_set(), b in any_set(), c in any_set()) {
        let same = |x: &Set, y: &Set| x.write() == y.write();
        prop_assert!(same(&a.union(&b), &b.union(&a)));
        prop_assert!(same(&a.intersection(&b), &b.intersection(&a)));
        prop_assert!(same(&a.union(&b).union(&c), &a.union(&b.union(&c))));
        prop_assert!(same(&a.intersection(&b).intersection(&c), &a.intersection(&b.intersection(&c))));
        prop_assert!(same(&a.intersection(&b.union(&c)), &a.intersection(&b).union(&a.intersection(&c))));
        prop_assert!(same(&a.union(&a), &a));
        prop_assert!(a.difference(&a).is_empty());
        prop_assert!(a.difference(&b).intersection(&b).is_empty());
        prop_assert!(same(&a.difference(&b).union(&a.intersection(&b)), &a));
        prop_assert!(a.recursive_difference(&b).difference(&a.difference(&b)).is_empty());
        for path in a.paths() {
            prop_assert!(a.has(&path) && a.union(&b).has(&path));
            prop_assert_eq!(a.intersection(&b).has(&path), b.has(&path));
            prop_assert_eq!(a.difference(&b).has(&path), !b.has(&path));
        }
    }

    #[test]
    fn sets_survive_encoding(a in any_set()) {
        prop_assert_eq!(Set::read(&a.write()).unwrap().write(), a.write());
    }

    #[test]
    fn reading_never_panics(fields in crate::patch::any_json(), key in "[fkvix.]?:?\\PC{0,8}") {
        let _ = Set::read(&fields);
        let _ = Set::read(&json!({key: fields}));
    }
}
