use api::core::v1beta2::{ClusterClass, Topology};
use serde_json::{Value, json};

use super::{defaulted, problems};
use crate::variables::definitions;

fn class(spec: Value) -> ClusterClass {
    let reference = |kind: &str| json!({ "apiVersion": "g.io/v1", "kind": kind, "name": "a" });
    let mut whole = json!({
        "infrastructure": { "templateRef": reference("FakeClusterTemplate") },
        "controlPlane": {
            "templateRef": reference("PlaneTemplate"),
            "machineInfrastructure": { "templateRef": reference("FakeMachineTemplate") },
        },
        "workers": { "machineDeployments": [{
            "class": "default-worker",
            "bootstrap": { "templateRef": reference("ConfigTemplate") },
            "infrastructure": { "templateRef": reference("FakeMachineTemplate") },
        }] },
        "variables": [
            { "name": "size", "required": false, "schema": { "openAPIV3Schema": { "type": "integer", "default": 1 } } },
            { "name": "disk", "required": false, "schema": { "openAPIV3Schema": {
                "type": "object", "properties": { "type": { "type": "string", "default": "ssd" }, "gib": { "type": "integer" } },
            } } },
        ],
    });
    for (name, value) in spec.as_object().unwrap() {
        whole[name] = value.clone();
    }
    serde_json::from_value(json!({ "metadata": { "name": "small" }, "spec": whole })).unwrap()
}

fn topology(more: Value) -> Topology {
    let mut whole = json!({
        "classRef": { "name": "small" }, "version": "v1.34.1",
        "workers": { "machineDeployments": [{ "class": "default-worker", "name": "md-0" }] },
    });
    for (name, value) in more.as_object().unwrap() {
        whole[name] = value.clone();
    }
    serde_json::from_value(whole).unwrap()
}

fn paths(class: &ClusterClass, topology: &Topology, reached: Option<&str>) -> Vec<String> {
    let definitions = definitions(class.variables()).unwrap();
    let found = problems(class, &definitions, topology, reached);
    found.into_iter().map(|error| error.path).collect()
}

#[test]
fn defaults_reach_the_cluster_and_the_overrides_of_its_parts() {
    let class = class(json!({}));
    let definitions = definitions(class.variables()).unwrap();
    let given = topology(json!({
        "controlPlane": { "variables": { "overrides": [{ "name": "disk", "value": { "gib": 5 } }] } },
        "workers": { "machineDeployments": [{
            "class": "default-worker", "name": "md-0",
            "variables": { "overrides": [{ "name": "disk", "value": {} }] },
        }] },
    }));
    let after = serde_json::to_value(defaulted(&given, &definitions)).unwrap();
    assert_eq!(after["variables"], json!([{ "name": "size", "value": 1 }]));
    let plane = &after["controlPlane"]["variables"]["overrides"];
    assert_eq!(
        *plane,
        json!([{ "name": "disk", "value": { "gib": 5, "type": "ssd" } }])
    );
    let worker = &after["workers"]["machineDeployments"][0]["variables"]["overrides"];
    assert_eq!(
        *worker,
        json!([{ "name": "disk", "value": { "type": "ssd" } }])
    );
}

#[test]
fn a_topology_must_fit_its_class() {
    let plain = class(json!({}));
    assert_eq!(
        paths(&plain, &topology(json!({})), None),
        Vec::<String>::new()
    );
    let deployments = |fields: Value| {
        let mut one = json!({ "class": "default-worker", "name": "md-0" });
        for (name, value) in fields.as_object().unwrap() {
            one[name] = value.clone();
        }
        topology(json!({ "workers": { "machineDeployments": [one] } }))
    };
    let cases = [
        (
            deployments(json!({ "class": "big" })),
            "spec.topology.workers.machineDeployments[0].class",
        ),
        (
            deployments(json!({ "healthCheck": { "enabled": true } })),
            "spec.topology.workers.machineDeployments[0].healthCheck.enabled",
        ),
        (
            deployments(
                json!({ "variables": { "overrides": [{ "name": "size", "value": "x" }] } }),
            ),
            "spec.topology.workers.machineDeployments[0].variables.overrides[0].value",
        ),
        (
            topology(
                json!({ "controlPlane": { "variables": { "overrides": [{ "name": "none", "value": 1 }] } } }),
            ),
            "spec.topology.controlPlane.variables.overrides[0].name",
        ),
        (
            topology(json!({ "controlPlane": { "healthCheck": { "enabled": true } } })),
            "spec.topology.controlPlane.healthCheck.enabled",
        ),
        (
            topology(json!({ "variables": [{ "name": "none", "value": 1 }] })),
            "spec.topology.variables[0].name",
        ),
    ];
    for (topology, path) in cases {
        assert_eq!(paths(&plain, &topology, None), [path]);
    }
}

#[test]
fn versions_are_those_of_the_class() {
    let at = |version: &str| topology(json!({ "version": version }));
    let (none, refused) = (
        Vec::<String>::new(),
        vec!["spec.topology.version".to_owned()],
    );
    assert_eq!(paths(&class(json!({})), &at("v1.35.0"), None), none);
    let listing = class(json!({ "kubernetesVersions": ["v1.34.1", "v1.35.0"] }));
    assert_eq!(paths(&listing, &at("v1.35.0"), Some("v1.34.1")), none);
    assert_eq!(paths(&listing, &at("v1.34.2"), Some("v1.34.1")), refused);
    assert_eq!(paths(&listing, &at("v1.33.0"), None), refused);
    assert_eq!(
        paths(&listing, &at("v1.33.0"), Some("v1.33.0")),
        none,
        "it is there"
    );
}
