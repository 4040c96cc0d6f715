use serde_json::{Value, json};

use crate::addons::v1beta2::{ClusterResourceSet, ClusterResourceSetBinding};
use crate::convert::convert;

const OLD: &str = "addons.cluster.x-k8s.io/v1beta1";
const NEW: &str = "addons.cluster.x-k8s.io/v1beta2";

fn object(version: &str, kind: &str, spec: &Value) -> Value {
    json!({ "apiVersion": version, "kind": kind, "metadata": { "name": "x" }, "spec": spec })
}

#[test]
fn a_set_keeps_its_spec_and_its_conditions_move() {
    let spec = json!({
        "clusterSelector": { "matchLabels": { "cni": "calico" } },
        "resources": [{ "kind": "ConfigMap", "name": "a" }, { "kind": "Secret", "name": "b" }],
        "strategy": "Reconcile",
    });
    let mut new = object(NEW, "ClusterResourceSet", &spec);
    let condition = json!({
        "type": "ResourcesApplied", "status": "False", "reason": "NotApplied", "message": "no",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    new["status"] = json!({ "conditions": [condition], "observedGeneration": 1 });
    let old = convert(new.clone(), OLD).unwrap();
    assert_eq!(old["spec"], spec);
    assert_eq!(old["status"]["v1beta2"]["conditions"][0], condition);
    assert_eq!(old["status"]["conditions"][0]["severity"], "Info");
    let again = convert(old, NEW).unwrap();
    assert_eq!((&again["spec"], &again["status"]), (&spec, &new["status"]));
    let typed: ClusterResourceSet = serde_json::from_value(again).unwrap();
    assert_eq!(serde_json::to_value(typed.spec).unwrap(), spec);
}

#[test]
fn a_binding_is_the_same_in_both_versions() {
    let spec = json!({ "clusterName": "demo", "bindings": [{
        "clusterResourceSetName": "cni",
        "resources": [{
            "kind": "ConfigMap", "name": "a", "hash": "sha256:00", "applied": true,
            "lastAppliedTime": "2026-01-01T00:00:00Z",
        }],
    }]});
    let old = object(OLD, "ClusterResourceSetBinding", &spec);
    let new = convert(old.clone(), NEW).unwrap();
    assert_eq!(new["spec"], spec);
    let typed: ClusterResourceSetBinding = serde_json::from_value(new.clone()).unwrap();
    assert!(typed.of_set("cni")[0].applied && typed.of_set("other").is_empty());
    assert_eq!(serde_json::to_value(typed.spec).unwrap(), spec);
    assert_eq!(convert(new, OLD).unwrap(), old);
}
