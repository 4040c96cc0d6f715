use serde_json::{Value, json};

use crate::admission::Review;

fn paths(spec: &Value) -> Vec<String> {
    let object = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineDrainRule",
        "metadata": { "name": "rule", "namespace": "default" }, "spec": spec,
    });
    let review = Review {
        object: &object,
        old: None,
        dry_run: false,
    };
    let errors = crate::admission::validate(review).err().unwrap_or_default();
    errors.into_iter().map(|error| error.path).collect()
}

#[test]
fn each_wrong_field_is_named() {
    let drain = json!({ "behavior": "Drain", "order": 3 });
    let by = |value: &str| json!({ "selector": { "matchLabels": { "app": value } } });
    let like = |field: &str| json!({ field: { "matchExpressions": [{ "key": "a", "operator": "Like" }] } });
    let cases = [
        (json!({ "drain": drain }), None),
        (json!({ "drain": { "behavior": "Skip" } }), None),
        (
            json!({ "drain": drain, "pods": [by("a"), by("b")], "machines": [{ "selector": {} }] }),
            None,
        ),
        (json!({}), Some("spec")),
        (
            json!({ "drain": { "behavior": "Skip", "order": 0 } }),
            Some("spec.drain.order"),
        ),
        (
            json!({ "drain": { "behavior": "WaitCompleted", "order": 1 } }),
            Some("spec.drain.order"),
        ),
        (
            json!({ "drain": { "behavior": "Evict" } }),
            Some("spec.drain.behavior"),
        ),
        (
            json!({ "drain": drain, "pods": [by("a"), by("b"), by("a")] }),
            Some("spec.pods[2]"),
        ),
        (
            json!({ "drain": drain, "pods": [like("namespaceSelector")] }),
            Some("spec.pods[0].namespaceSelector.matchExpressions[0]"),
        ),
        (
            json!({ "drain": drain, "machines": [by("a"), like("clusterSelector")] }),
            Some("spec.machines[1].clusterSelector.matchExpressions[0]"),
        ),
    ];
    for (spec, expected) in cases {
        let expected: Vec<_> = expected.into_iter().map(str::to_owned).collect();
        let found = paths(&spec);
        assert!(
            found == expected || !expected.is_empty() && found.contains(&expected[0]),
            "{spec}: {found:?}"
        );
    }
}
