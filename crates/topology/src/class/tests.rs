use serde_json::{Value, json};

use super::{named, problems};

fn reference(kind: &str) -> Value {
    json!({ "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": kind, "name": "demo" })
}

fn class() -> Value {
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "ClusterClass", "metadata": { "name": "demo" },
        "spec": {
            "infrastructure": { "templateRef": reference("OpenStackClusterTemplate") },
            "controlPlane": {
                "templateRef": reference("KubeadmControlPlaneTemplate"),
                "machineInfrastructure": { "templateRef": reference("OpenStackMachineTemplate") },
            },
            "workers": { "machineDeployments": [{
                "class": "default-worker",
                "bootstrap": { "templateRef": reference("KubeadmConfigTemplate") },
                "infrastructure": { "templateRef": reference("OpenStackMachineTemplate") },
            }] },
            "variables": [{ "name": "image", "required": true, "schema": { "openAPIV3Schema": { "type": "string" } } }],
            "patches": [{
                "name": "image",
                "enabledIf": "{{ if .image }}true{{ end }}",
                "definitions": [{
                    "selector": {
                        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "OpenStackMachineTemplate",
                        "matchResources": { "controlPlane": true },
                    },
                    "jsonPatches": [{
                        "op": "add", "path": "/spec/template/spec/image", "valueFrom": { "variable": "image" },
                    }],
                }],
            }],
        },
    })
}

/// The class with one field replaced, by its JSON pointer below the spec.
fn with(pointer: &str, value: Value) -> Value {
    let mut class = class();
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    let parent = class["spec"].pointer_mut(parent).unwrap();
    match parent {
        Value::Array(items) if name == "-" => items.push(value),
        Value::Array(items) => items[name.parse::<usize>().unwrap()] = value,
        parent => parent[name] = value,
    }
    class
}

#[test]
fn a_class_whose_parts_fit_is_valid() {
    assert_eq!(problems(&class()), Vec::new());
}

#[test]
fn each_rule_names_its_field() {
    let change = "/patches/0/definitions/0/jsonPatches/0";
    let first = "spec.patches[0].definitions[0].jsonPatches[0]";
    let variable = || class()["spec"]["variables"][0].clone();
    let named = |name: &str| {
        let mut variable = variable();
        variable["name"] = json!(name);
        variable
    };
    let replaced = |field: Value| with(change, field);
    let from = |from: Value| replaced(json!({ "op": "add", "path": "/spec/x", "valueFrom": from }));
    let cases = [
        (with("/variables/-", variable()), "spec.variables[1].name"),
        (
            with("/variables/-", named("builtin")),
            "spec.variables[1].name",
        ),
        (with("/variables/-", named("a.b")), "spec.variables[1].name"),
        (
            with(
                "/variables/0/schema/openAPIV3Schema",
                json!({ "type": "array" }),
            ),
            "spec.variables[0].schema.openAPIV3Schema.items",
        ),
        (
            with("/patches/-", class()["spec"]["patches"][0].clone()),
            "spec.patches[1].name",
        ),
        (
            with("/patches/0/enabledIf", json!("{{ if }}")),
            "spec.patches[0].enabledIf",
        ),
        (
            with("/patches/0/definitions", json!([])),
            "spec.patches[0].definitions",
        ),
        (
            with(
                "/patches/0/definitions/0/selector/kind",
                json!("KubeadmConfigTemplate"),
            ),
            "spec.patches[0].definitions[0].selector",
        ),
        (
            with(
                "/patches/0/definitions/0/selector/matchResources",
                json!({ "machineDeploymentClass": { "names": ["x"] } }),
            ),
            "spec.patches[0].definitions[0].selector",
        ),
        (
            with(
                "/patches/0/definitions/0/selector/matchResources",
                json!({ "controlPlane": true, "machineDeploymentClass": { "names": ["a*b"] } }),
            ),
            "spec.patches[0].definitions[0].selector.matchResources.machineDeploymentClass.names[0]",
        ),
        (
            replaced(json!({ "op": "remove", "path": "/metadata/name" })),
            &format!("{first}.path"),
        ),
        (
            replaced(json!({ "op": "add", "path": "/spec/list/3", "value": 1 })),
            &format!("{first}.path"),
        ),
        (
            replaced(json!({ "op": "remove", "path": "/spec/list/0" })),
            &format!("{first}.path"),
        ),
        (replaced(json!({ "op": "add", "path": "/spec/x" })), first),
        (
            replaced(json!({ "op": "remove", "path": "/spec/x", "value": 1 })),
            first,
        ),
        (
            replaced(
                json!({ "op": "add", "path": "/spec/x", "value": 1, "valueFrom": { "variable": "image" } }),
            ),
            first,
        ),
        (
            from(json!({ "variable": "none" })),
            &format!("{first}.valueFrom.variable"),
        ),
        (
            from(json!({ "variable": "builtin.cluster.age" })),
            &format!("{first}.valueFrom.variable"),
        ),
        (
            from(json!({ "variable": "builtin.machineDeployment.infrastructureRef.name" })),
            &format!("{first}.valueFrom.variable"),
        ),
        (
            from(json!({ "template": "{{ nosuch }}" })),
            &format!("{first}.valueFrom.template"),
        ),
        (
            with(
                "/infrastructure/naming",
                json!({ "template": "{{ .machine }}" }),
            ),
            "spec.infrastructure.naming.template",
        ),
        (
            with(
                "/controlPlane/naming",
                json!({ "template": "A-{{ .random }}" }),
            ),
            "spec.controlPlane.naming.template",
        ),
        (
            with(
                "/workers/machineDeployments/0/naming",
                json!({ "template": "{{ " }),
            ),
            "spec.workers.machineDeployments[0].naming.template",
        ),
    ];
    for (class, path) in cases {
        let paths: Vec<_> = problems(&class)
            .into_iter()
            .map(|error| error.path)
            .collect();
        assert_eq!(paths, [path]);
    }
    for variable in [
        "image",
        "image.field",
        "builtin.cluster.network.pods[0]",
        "builtin.controlPlane.version",
    ] {
        let class = from(json!({ "variable": variable }));
        assert_eq!(problems(&class), Vec::new(), "{variable}");
    }
}

#[test]
fn names_are_rendered_and_cut() {
    let name = |template: &str, topology| named(template, "demo", "x2b4c", topology);
    assert_eq!(
        name("{{ .cluster.name }}-{{ .random }}", None),
        Ok("demo-x2b4c".to_owned())
    );
    let template = "{{ .cluster.name }}-{{ .machineDeployment.topologyName }}-{{ .random }}";
    assert_eq!(
        name(template, Some("md-0")),
        Ok("demo-md-0-x2b4c".to_owned())
    );
    assert!(name(template, None).is_err());
    let long = format!("{}-{{{{ .random }}}}", "a".repeat(80));
    let cut = name(&long, None).unwrap();
    assert_eq!((cut.len(), cut.ends_with("x2b4c")), (63, true));
}

/// Skipped if upstream's templates are not available.
#[test]
fn the_class_that_upstream_publishes_is_valid() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../shared/upstream/templates/capo-v0.15.0-beta.0/clusterclass-dev-test.yaml"
    );
    let Ok(text) = std::fs::read_to_string(path) else {
        skipped::because(format_args!("no published ClusterClass at {path}"));
        return;
    };
    let first = text.split("\n---\n").next().unwrap();
    let class: Value = serde_saphyr::from_str(first).unwrap();
    assert_eq!(class["kind"], "ClusterClass");
    assert_eq!(problems(&class), Vec::new());
}
