use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::patch::any_json;

fn pod(doc: Value, patch: Value) -> Value {
    strategic(&doc, &patch, ("", "v1", "Pod")).unwrap()
}

#[test]
fn lists_with_a_merge_key_are_merged_by_it() {
    let doc =
        json!({"spec": {"containers": [{"name": "a", "image": "x"}, {"name": "b", "image": "y"}]}});
    for (patch, expected) in [
        (
            json!([{"name": "b", "image": "z"}]),
            json!([{"name": "a", "image": "x"}, {"name": "b", "image": "z"}]),
        ),
        (
            json!([{"name": "c", "image": "z"}]),
            json!([{"name": "c", "image": "z"}, {"name": "a", "image": "x"}, {"name": "b", "image": "y"}]),
        ),
        (
            json!([{"name": "a", "$patch": "delete"}]),
            json!([{"name": "b", "image": "y"}]),
        ),
        (
            json!([{"$patch": "replace"}, {"name": "c"}]),
            json!([{"name": "c"}]),
        ),
        (
            json!([{"name": "a", "image": null, "env": [{"name": "E", "value": "1"}]}]),
            json!([{"name": "a", "env": [{"name": "E", "value": "1"}]}, {"name": "b", "image": "y"}]),
        ),
    ] {
        let merged = pod(doc.clone(), json!({"spec": {"containers": patch}}));
        let found = merged["spec"]["containers"].as_array().unwrap();
        let expected = expected.as_array().unwrap();
        assert_eq!(found.len(), expected.len(), "{patch}");
        assert!(
            expected.iter().all(|item| found.contains(item)),
            "{patch}: {found:?}"
        );
    }
}

#[test]
fn lists_are_sorted_by_the_order_of_the_patch() {
    let doc = json!({"spec": {"containers": [{"name": "a"}, {"name": "server"}, {"name": "b"}]}});
    let patch = json!({"spec": {
        "$setElementOrder/containers": [{"name": "b"}, {"name": "a"}],
        "containers": [{"name": "b", "image": "x"}],
    }});
    assert_eq!(
        pod(doc, patch)["spec"]["containers"],
        json!([{"name": "server"}, {"name": "b", "image": "x"}, {"name": "a"}])
    );
}

#[test]
fn lists_of_scalars_are_sets_or_replaced() {
    let doc = json!({
        "metadata": {"finalizers": ["a", "b"]},
        "spec": {"containers": [{"name": "c", "args": ["x", "y"]}]},
    });
    let patch = json!({
        "metadata": {"finalizers": ["c"], "$deleteFromPrimitiveList/finalizers": ["a"]},
        "spec": {"containers": [{"name": "c", "args": ["z"]}]},
    });
    assert_eq!(
        pod(doc, patch),
        json!({
            "metadata": {"finalizers": ["c", "b"]},
            "spec": {"containers": [{"name": "c", "args": ["z"]}]},
        })
    );
}

#[test]
fn maps_are_merged_replaced_or_deleted() {
    let doc = json!({"metadata": {"labels": {"a": "1", "b": "2"}}, "spec": {"hostNetwork": true}});
    for (labels, expected) in [
        (json!({"a": null, "c": "3"}), json!({"b": "2", "c": "3"})),
        (json!({"$patch": "replace", "c": "3"}), json!({"c": "3"})),
        (json!({"$patch": "delete"}), json!({})),
        (json!({"$retainKeys": ["b"]}), json!({"b": "2"})),
    ] {
        let merged = pod(doc.clone(), json!({"metadata": {"labels": labels}}));
        assert_eq!(merged["metadata"]["labels"], expected);
    }
}

#[test]
fn a_volume_source_replaces_another() {
    let doc = json!({"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}});
    let patch = json!({"spec": {"volumes": [
        {"name": "v", "$retainKeys": ["name", "secret"], "secret": {"secretName": "s"}},
    ]}});
    assert_eq!(
        pod(doc, patch)["spec"]["volumes"],
        json!([{"name": "v", "secret": {"secretName": "s"}}])
    );
}

#[test]
fn contradictory_patches_are_rejected() {
    let doc = json!({"spec": {"containers": [{"name": "a"}]}, "metadata": {"labels": {}}});
    for (patch, code) in [
        (json!([]), 400),
        (json!({"metadata": {"$retainKeys": "x"}}), 400),
        (json!({"metadata": {"labels": {"$patch": "frob"}}}), 500),
        (json!({"spec": {"containers": [{"image": "x"}]}}), 500),
        (json!({"spec": {"containers": [{"$patch": "delete"}]}}), 500),
        (
            json!({"spec": {"$setElementOrder/containers": [{"name": "b"}], "containers": [{"name": "a"}]}}),
            500,
        ),
    ] {
        let error = strategic(&doc, &patch, ("", "v1", "Pod")).unwrap_err();
        assert_eq!(error.code(), code, "{patch}: {error}");
    }
}

proptest! {
    #[test]
    fn no_patch_panics(doc in any_json(), patch in any_json(), spec in any_json()) {
        let _ = strategic(&doc, &patch, ("", "v1", "Pod"));
        let _ = strategic(&json!({"spec": doc}), &json!({"spec": patch}), ("apps", "v1", "Deployment"));
        let _ = strategic(&json!({"spec": {"containers": spec}}), &json!({"spec": {"containers": patch}}), ("", "v1", "Pod"));
    }
}
