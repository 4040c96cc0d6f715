use serde_json::{Value, json};

use super::*;

fn plane(version: &str) -> KubeadmControlPlane {
    let mut plane = KubeadmControlPlane::new("p", Default::default());
    plane.spec.version = version.to_owned();
    plane.metadata.uid = Some("plane".to_owned());
    plane
}

fn machine(spec: Value) -> Machine {
    let mut whole = json!({
        "clusterName": "demo", "version": "v1.34.1",
        "bootstrap": {"configRef": {"apiGroup": "b", "kind": "KubeadmConfig", "name": "m"}},
        "infrastructureRef": {"apiGroup": "i", "kind": "M", "name": "m"},
    });
    for (field, value) in spec.as_object().unwrap() {
        whole[field] = value.clone();
    }
    Machine::new("m", serde_json::from_value(whole).unwrap())
}

#[test]
fn a_machine_is_adopted_if_the_control_plane_could_have_created_it() {
    for (spec, version, expected) in [
        (json!({}), "v1.34.9", ""),
        (json!({}), "v1.35.0", ""),
        (json!({}), "v1.36.0", "neither that of v1.36.0"),
        (json!({}), "v1.33.0", "neither that of v1.33.0"),
        (
            json!({"clusterName": "other"}),
            "v1.34.1",
            "spec.clusterName is other",
        ),
        (
            json!({"version": null}),
            "v1.34.1",
            "not a Kubernetes version",
        ),
        (
            json!({"bootstrap": {"dataSecretName": "s"}}),
            "v1.34.1",
            "no KubeadmConfig",
        ),
    ] {
        let found = obstacle(&machine(spec.clone()), &plane(version), "demo");
        match expected {
            "" => assert_eq!(found, None, "{spec} {version}"),
            words => assert!(found.unwrap().contains(words), "{spec} {version}"),
        }
    }
}

#[test]
fn only_what_a_config_controls_is_taken_over() {
    let owner = |kind: &str, controller: bool| json!({"apiVersion": "v1", "kind": kind, "name": "x", "uid": "x", "controller": controller});
    for (owners, expected) in [
        (json!([]), false),
        (json!([owner("KubeadmConfig", false)]), false),
        (json!([owner("Other", true)]), false),
        (
            json!([owner("Other", false), owner("KubeadmConfig", true)]),
            true,
        ),
    ] {
        let mut metadata: ObjectMeta =
            serde_json::from_value(json!({ "ownerReferences": owners })).unwrap();
        assert_eq!(
            taken_over(&mut metadata, &plane("v1.34.1")),
            expected,
            "{owners}"
        );
        assert_eq!(
            owners::is_controlled_by(&metadata, &plane("v1.34.1")),
            expected
        );
        assert!(!taken_over(&mut metadata, &plane("v1.34.1")), "{owners}");
    }
}
