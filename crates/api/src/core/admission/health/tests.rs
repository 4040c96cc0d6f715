use serde_json::{Value, json};

use crate::admission::default_object;
use crate::admission::tests::paths;

fn check(spec: &Value) -> Value {
    let mut spec = spec.clone();
    spec["clusterName"] = json!("demo");
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineHealthCheck",
        "metadata": { "name": "workers", "namespace": "default" },
        "spec": spec,
    })
}

#[test]
fn a_node_may_take_ten_minutes_by_default() {
    let mut object = check(&json!({ "selector": { "matchLabels": { "a": "b" } } }));
    default_object(&mut object, None);
    assert_eq!(object["spec"]["checks"]["nodeStartupTimeoutSeconds"], 600);
    assert_eq!(
        object["metadata"]["labels"]["cluster.x-k8s.io/cluster-name"],
        "demo"
    );
    assert_eq!(paths(&object, None), Vec::<String>::new());
    let mut off = check(&json!({
        "selector": { "matchLabels": { "a": "b" } }, "checks": { "nodeStartupTimeoutSeconds": 0 },
    }));
    default_object(&mut off, None);
    assert_eq!(off["spec"]["checks"]["nodeStartupTimeoutSeconds"], 0);
    assert_eq!(paths(&off, None), Vec::<String>::new());
}

#[test]
fn each_wrong_field_is_named() {
    let good = json!({ "matchLabels": { "a": "b" } });
    let trigger = |value: Value| json!({ "selector": good, "remediation": { "triggerIf": value } });
    let expression = |value: Value| json!({ "selector": { "matchExpressions": [value] } });
    let cases = [
        (json!({ "selector": {} }), "spec.selector"),
        (
            json!({ "selector": { "matchLabels": {} } }),
            "spec.selector",
        ),
        (
            expression(json!({ "key": "a", "operator": "Equals", "values": ["b"] })),
            "spec.selector.matchExpressions[0]",
        ),
        (
            expression(json!({ "key": "a", "operator": "In" })),
            "spec.selector.matchExpressions[0]",
        ),
        (
            expression(json!({ "key": "a", "operator": "Exists", "values": ["b"] })),
            "spec.selector.matchExpressions[0]",
        ),
        (
            json!({ "selector": good, "checks": { "nodeStartupTimeoutSeconds": 29 } }),
            "spec.checks.nodeStartupTimeoutSeconds",
        ),
        (
            trigger(json!({ "unhealthyLessThanOrEqualTo": "many" })),
            "spec.remediation.triggerIf.unhealthyLessThanOrEqualTo",
        ),
        (
            trigger(json!({ "unhealthyLessThanOrEqualTo": -1 })),
            "spec.remediation.triggerIf.unhealthyLessThanOrEqualTo",
        ),
        (
            trigger(json!({ "unhealthyInRange": "[5-3]" })),
            "spec.remediation.triggerIf.unhealthyInRange",
        ),
        (
            trigger(json!({ "unhealthyInRange": "[1-99999999999]" })),
            "spec.remediation.triggerIf.unhealthyInRange",
        ),
    ];
    for (spec, path) in cases {
        assert_eq!(paths(&check(&spec), None), [path], "{spec}");
    }
    let before = check(&json!({ "selector": good }));
    let mut after = before.clone();
    after["spec"]["clusterName"] = json!("other");
    assert_eq!(paths(&after, Some(&before)), ["spec.clusterName"]);
}
