use api::kube::api::DynamicObject;
use serde_json::{Value, json};

use super::{question, stable};

fn object(metadata: Value) -> DynamicObject {
    let spec = json!({ "flavor": "small" });
    serde_json::from_value(json!({
        "apiVersion": "a.example/v1", "kind": "A", "metadata": metadata, "spec": spec, "status": { "ready": true },
    }))
    .unwrap()
}

#[test]
fn a_trial_that_changes_nothing_is_equal() {
    let live = object(json!({ "name": "x", "uid": "1", "resourceVersion": "7", "generation": 1 }));
    let after = object(json!({
        "name": "x", "uid": "1", "resourceVersion": "8", "generation": 2, "managedFields": [{ "manager": "m" }],
        "annotations": { "topology.cluster.x-k8s.io/dry-run": "" },
    }));
    assert_eq!(stable(&live), stable(&after));
    let labelled = object(json!({ "name": "x", "uid": "1", "labels": { "a": "b" } }));
    assert_ne!(stable(&live), stable(&labelled));
}

#[test]
fn a_question_is_asked_again_when_either_side_changes_but_not_with_the_status() {
    let wanted = json!({ "spec": { "flavor": "small" } });
    let known = |flavor: &str, ready: bool, version: &str| {
        json!({
            "metadata": { "name": "x", "resourceVersion": version, "labels": { "a": "b" } },
            "spec": { "flavor": flavor }, "status": { "ready": ready },
        })
    };
    let first = question(&wanted, Some(&known("small", false, "1")));
    assert_eq!(first, question(&wanted, Some(&known("small", true, "2"))));
    assert_ne!(first, question(&wanted, Some(&known("large", false, "1"))));
    assert_ne!(
        first,
        question(&json!({ "spec": {} }), Some(&known("small", false, "1")))
    );
}
