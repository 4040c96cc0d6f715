use serde_json::{Value, json};

use crate::admission::default_object;
use crate::admission::tests::paths;

fn set(spec: &Value) -> Value {
    json!({
        "apiVersion": "addons.cluster.x-k8s.io/v1beta2", "kind": "ClusterResourceSet",
        "metadata": { "name": "cni", "namespace": "default" }, "spec": spec,
    })
}

fn good() -> Value {
    set(&json!({
        "clusterSelector": { "matchLabels": { "a": "b" } }, "strategy": "ApplyOnce",
        "resources": [{ "kind": "ConfigMap", "name": "cni" }],
    }))
}

#[test]
fn resources_are_applied_once_by_default() {
    let mut object = good();
    object["spec"].as_object_mut().unwrap().remove("strategy");
    default_object(&mut object, None);
    assert_eq!(object["spec"]["strategy"], "ApplyOnce");
    assert_eq!(paths(&object, None), Vec::<String>::new());
}

#[test]
fn each_wrong_field_is_named() {
    let cases = [
        (json!({ "clusterSelector": {} }), "spec.clusterSelector"),
        (
            json!({ "clusterSelector": { "matchLabels": {}, "matchExpressions": [] } }),
            "spec.clusterSelector",
        ),
        (
            json!({ "clusterSelector": { "matchExpressions": [{ "key": "a", "operator": "Like" }] } }),
            "spec.clusterSelector.matchExpressions[0]",
        ),
        (json!({ "strategy": "Sometimes" }), "spec.strategy"),
        (
            json!({ "resources": [{ "kind": "Pod", "name": "a" }] }),
            "spec.resources[0].kind",
        ),
    ];
    for (change, path) in cases {
        let mut object = good();
        for (name, value) in change.as_object().unwrap() {
            object["spec"][name] = value.clone();
        }
        assert!(paths(&object, None).contains(&path.to_owned()), "{object}");
    }
}

#[test]
fn strategy_selector_and_cluster_cannot_be_changed() {
    let mut changed = good();
    changed["spec"]["strategy"] = json!("Reconcile");
    changed["spec"]["clusterSelector"] = json!({ "matchLabels": { "a": "c" } });
    let wrong = ["spec.strategy", "spec.clusterSelector"];
    assert_eq!(paths(&changed, Some(&good())), wrong);
    let mut more = good();
    more["spec"]["resources"] = json!([{ "kind": "Secret", "name": "other" }]);
    assert_eq!(paths(&more, Some(&good())), Vec::<String>::new());
    let binding = |cluster: &str| {
        json!({
            "apiVersion": "addons.cluster.x-k8s.io/v1beta2", "kind": "ClusterResourceSetBinding",
            "metadata": { "name": "demo" }, "spec": { "clusterName": cluster },
        })
    };
    let moved = paths(&binding("other"), Some(&binding("demo")));
    assert_eq!(moved, ["spec.clusterName"]);
}
