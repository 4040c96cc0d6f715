use serde_json::{Value, json};

use super::validate;
use crate::admission::{FieldError, Review};

fn cluster(topology: &Value, annotations: Value) -> Value {
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "metadata": { "name": "demo", "annotations": annotations }, "spec": { "topology": topology },
    })
}

fn topology(version: &str) -> Value {
    json!({ "classRef": { "name": "c" }, "version": version })
}

fn paths(object: &Value, old: Option<&Value>) -> Vec<String> {
    let mut errors: Vec<FieldError> = Vec::new();
    let review = Review {
        object,
        old,
        dry_run: false,
    };
    validate(review.change(), &mut errors);
    errors.into_iter().map(|error| error.path).collect()
}

#[test]
fn a_topology_is_accepted_without_its_class() {
    assert_eq!(
        paths(&cluster(&topology("v1.34.1"), json!({})), None),
        Vec::<String>::new()
    );
}

#[test]
fn what_has_no_effect_is_rejected_with_its_field() {
    let taint = json!([{ "key": "node.kubernetes.io/not-ready", "effect": "NoSchedule", "propagation": "Always" }]);
    let deployment = json!({ "class": "w", "name": "md-0", "taints": taint });
    let pool = json!({ "class": "w", "name": "mp-0" });
    let mut wanted = topology("v1.34.1");
    wanted["controlPlane"] = json!({ "taints": taint });
    wanted["workers"] = json!({ "machineDeployments": [deployment], "machinePools": [pool] });
    let concurrency = json!({ "topology.cluster.x-k8s.io/upgrade-concurrency": "0" });
    assert_eq!(
        paths(&cluster(&wanted, concurrency), None),
        [
            "spec.topology.workers.machinePools",
            "spec.topology.controlPlane.taints[0].key",
            "spec.topology.workers.machineDeployments[0].taints[0].key",
            "metadata.annotations[topology.cluster.x-k8s.io/upgrade-concurrency]",
        ]
    );
}

#[test]
fn the_name_of_a_deployment_is_a_value_of_a_label() {
    let mut wanted = topology("v1.34.1");
    wanted["workers"] = json!({ "machineDeployments": [{ "class": "w", "name": "md 0" }] });
    let found = paths(&cluster(&wanted, json!({})), None);
    assert_eq!(found, ["spec.topology.workers.machineDeployments[0].name"]);
}

#[test]
fn a_version_cannot_go_back_and_a_topology_is_added_only_on_request() {
    let (old, new) = (topology("v1.34.1"), topology("v1.33.9"));
    let old = cluster(&old, json!({}));
    let back = paths(&cluster(&new, json!({})), Some(&old));
    assert_eq!(back, ["spec.topology.version"]);
    let none = cluster(&Value::Null, json!({}));
    assert_eq!(
        paths(&cluster(&new, json!({})), Some(&none)),
        ["spec.topology"]
    );
    let may = json!({ "unsafe.topology.cluster.x-k8s.io/disable-update-class-name-check": "" });
    assert_eq!(
        paths(&cluster(&new, may), Some(&none)),
        Vec::<String>::new()
    );
}
