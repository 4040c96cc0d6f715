use serde_json::{Value, json};

use crate::admission::{Review, tests::merge, validate};

fn class() -> Value {
    let reference = |kind: &str| json!({ "templateRef": { "apiVersion": "g.io/v1beta2", "kind": kind, "name": "a" } });
    let mut plane = reference("PlaneTemplate");
    plane["machineInfrastructure"] = reference("MachineTemplate");
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "ClusterClass", "metadata": { "name": "demo" },
        "spec": { "infrastructure": reference("InfraTemplate"), "controlPlane": plane },
    })
}

fn paths(spec: Value, old: Option<&Value>) -> Vec<String> {
    let mut object = class();
    merge(&mut object["spec"], &spec);
    let review = Review {
        object: &object,
        old,
        dry_run: false,
    };
    let errors = validate(review).err().unwrap_or_default();
    errors.into_iter().map(|error| error.path).collect()
}

#[test]
fn the_kinds_of_templates_cannot_change() {
    let old = class();
    let kind = |kind: &str| json!({ "templateRef": { "kind": kind } });
    assert_eq!(
        paths(
            json!({ "infrastructure": kind("OtherTemplate") }),
            Some(&old)
        ),
        ["spec.infrastructure.templateRef"]
    );
    assert_eq!(
        paths(
            json!({ "controlPlane": { "machineInfrastructure": null } }),
            Some(&old)
        ),
        ["spec.controlPlane.machineInfrastructure.templateRef"]
    );
    let other = json!({ "templateRef": { "apiVersion": "g.io/v1beta3", "name": "b" } });
    assert_eq!(
        paths(json!({ "infrastructure": other }), Some(&old)),
        Vec::<String>::new()
    );
}

#[test]
fn versions_ascend_by_minor_releases() {
    let versions = |versions: &[&str]| paths(json!({ "kubernetesVersions": versions }), None);
    let none = Vec::<String>::new();
    assert_eq!(
        versions(&["v1.33.1", "v1.33.4", "v1.34.0", "v1.35.0"]),
        none
    );
    for wrong in [
        &["v1.33.1", "1.34.0"][..],
        &["v1.33.1", "v1.33.1"],
        &["v1.33.1", "v1.35.0"],
        &["v1.33.1", "latest"],
    ] {
        assert_eq!(versions(wrong), ["spec.kubernetesVersions[1]"], "{wrong:?}");
    }
}
