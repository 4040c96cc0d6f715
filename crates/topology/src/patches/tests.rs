use api::core::v1beta2::{ClassPatch, Variable};
use serde_json::{Value, json};

use super::{Target, TemplateRole, apply};

const INFRA: &str = "infrastructure.cluster.x-k8s.io/v1beta2";

fn target(place: TemplateRole, kind: &str) -> Target {
    let builtin = match &place {
        TemplateRole::InfrastructureCluster => None,
        TemplateRole::MachineDeployment(class) => Some((
            "machineDeployment",
            json!({ "class": class, "version": "v1.33.0", "topologyName": "md-0" }),
        )),
        _ => Some(("controlPlane", json!({ "version": "v1.34.1" }))),
    };
    Target {
        place,
        object: json!({
            "apiVersion": INFRA, "kind": kind,
            "spec": { "template": { "spec": { "image": { "imageRef": { "name": "a" } }, "tags": ["x"] } } },
        }),
        builtin,
        overrides: Vec::new(),
    }
}

fn targets() -> Vec<Target> {
    vec![
        target(
            TemplateRole::InfrastructureCluster,
            "OpenStackClusterTemplate",
        ),
        target(
            TemplateRole::ControlPlaneMachines,
            "OpenStackMachineTemplate",
        ),
        target(
            TemplateRole::MachineDeployment("big-worker".to_owned()),
            "OpenStackMachineTemplate",
        ),
        target(
            TemplateRole::MachineDeployment("small".to_owned()),
            "OpenStackMachineTemplate",
        ),
    ]
}

fn patch(kind: &str, places: Value, changes: Value) -> ClassPatch {
    serde_json::from_value(json!({
        "name": "p",
        "definitions": [{
            "selector": { "apiVersion": INFRA, "kind": kind, "matchResources": places },
            "jsonPatches": changes,
        }],
    }))
    .unwrap()
}

fn values(json: Value) -> Vec<Variable> {
    let fields = json.as_object().cloned().unwrap_or_default().into_iter();
    fields
        .map(|(name, value)| Variable { name, value })
        .collect()
}

fn run(patches: &[ClassPatch], given: Value) -> Result<Vec<Value>, String> {
    let mut all = targets();
    let done = apply(
        patches,
        &mut all,
        &values(given),
        &json!({ "name": "demo" }),
    );
    done.map_err(|error| error.to_string())?;
    Ok(all
        .into_iter()
        .map(|target| target.object["spec"]["template"]["spec"].clone())
        .collect())
}

#[test]
fn selectors_name_places_and_classes_with_globs() {
    let add = || json!([{ "op": "add", "path": "/spec/template/spec/hit", "value": true }]);
    let cases = [
        (
            "OpenStackClusterTemplate",
            json!({ "infrastructureCluster": true }),
            vec![0],
        ),
        (
            "OpenStackMachineTemplate",
            json!({ "controlPlane": true }),
            vec![1],
        ),
        (
            "OpenStackMachineTemplate",
            json!({ "controlPlane": false }),
            vec![],
        ),
        (
            "OpenStackMachineTemplate",
            json!({ "machineDeploymentClass": { "names": ["small"] } }),
            vec![3],
        ),
        (
            "OpenStackMachineTemplate",
            json!({ "machineDeploymentClass": { "names": ["*-worker"] } }),
            vec![2],
        ),
        (
            "OpenStackMachineTemplate",
            json!({ "machineDeploymentClass": { "names": ["big*", "sm*"] } }),
            vec![2, 3],
        ),
        (
            "OpenStackMachineTemplate",
            json!({ "controlPlane": true, "machineDeploymentClass": { "names": ["*"] } }),
            vec![1, 2, 3],
        ),
        (
            "KubeadmConfigTemplate",
            json!({ "machineDeploymentClass": { "names": ["*"] } }),
            vec![],
        ),
    ];
    for (kind, places, hit) in cases {
        let specs = run(&[patch(kind, places.clone(), add())], json!({})).unwrap();
        let found: Vec<_> = (0..4).filter(|at| specs[*at]["hit"] == true).collect();
        assert_eq!(found, hit, "{kind} {places}");
    }
}

#[test]
fn values_come_from_the_patch_a_variable_or_a_template() {
    let changes = json!([
        { "op": "remove", "path": "/spec/template/spec/image/imageRef" },
        { "op": "add", "path": "/spec/template/spec/image/filter", "valueFrom": { "template":
            "name: {{ .imageName }}{{ if .addVersion }}-{{ .builtin.controlPlane.version }}{{ end }}\n" } },
        { "op": "replace", "path": "/spec/template/spec/tags", "valueFrom": { "variable": "tags" } },
        { "op": "add", "path": "/spec/template/spec/tags/-", "valueFrom": { "variable": "tags[0]" } },
        { "op": "add", "path": "/spec/template/spec/owner", "valueFrom": { "variable": "builtin.cluster.name" } },
        { "op": "add", "path": "/spec/template/spec/nothing", "value": null },
    ]);
    let place = json!({ "controlPlane": true });
    let given = json!({ "imageName": "ubuntu", "addVersion": true, "tags": ["y", 2] });
    let specs = run(&[patch("OpenStackMachineTemplate", place, changes)], given).unwrap();
    assert_eq!(
        specs[1],
        json!({ "image": { "filter": { "name": "ubuntu-v1.34.1" } }, "tags": ["y", 2, "y"], "owner": "demo", "nothing": null })
    );
    assert_eq!(specs[2]["image"], json!({ "imageRef": { "name": "a" } }));
}

#[test]
fn a_patch_applies_only_if_it_is_enabled() {
    let cases = [
        ("{{ if .imageRef }}true{{ end }}", json!({}), false),
        (
            "{{ if .imageRef }}true{{ end }}",
            json!({ "imageRef": "x" }),
            true,
        ),
        ("{{ .flag }}", json!({ "flag": false }), false),
        ("{{ .flag }}", json!({ "flag": true }), true),
        (
            "{{ if .ranges }}{{ gt (len .ranges) 0 }}{{ end }}",
            json!({ "ranges": [] }),
            false,
        ),
        (
            "{{ if .ranges }}{{ gt (len .ranges) 0 }}{{ end }}",
            json!({ "ranges": ["a"] }),
            true,
        ),
        (
            "{{ if .bastion }}{{ .bastion.enabled }}{{ end }}",
            json!({ "bastion": { "enabled": true } }),
            true,
        ),
        ("\"true\"", json!({}), false),
    ];
    for (enabled, given, applies) in cases {
        let mut patch = patch(
            "OpenStackClusterTemplate",
            json!({ "infrastructureCluster": true }),
            json!([{ "op": "add", "path": "/spec/template/spec/hit", "value": true }]),
        );
        patch.enabled_if = Some(enabled.to_owned());
        let specs = run(&[patch], given.clone()).unwrap();
        assert_eq!(specs[0]["hit"] == true, applies, "{enabled} {given}");
    }
}

#[test]
fn overrides_of_a_part_win() {
    let mut all = targets();
    all[1].overrides = values(json!({ "size": 2 }));
    let set = patch(
        "OpenStackMachineTemplate",
        json!({ "controlPlane": true, "machineDeploymentClass": { "names": ["*"] } }),
        json!([{ "op": "add", "path": "/spec/template/spec/size", "valueFrom": { "variable": "size" } }]),
    );
    apply(&[set], &mut all, &values(json!({ "size": 1 })), &json!({})).unwrap();
    let sizes: Vec<_> = all
        .iter()
        .map(|target| target.object["spec"]["template"]["spec"]["size"].clone())
        .collect();
    assert_eq!(sizes, [json!(null), json!(2), json!(1), json!(1)]);
}

#[test]
fn a_patch_that_fails_names_itself_and_its_field() {
    let place = || json!({ "infrastructureCluster": true });
    let cases = [
        (
            json!([{ "op": "remove", "path": "/spec/template/spec/absent" }]),
            "definitions[0].jsonPatches: ",
        ),
        (
            json!([{ "op": "add", "path": "/spec/x", "valueFrom": { "variable": "none" } }]),
            "definitions[0].jsonPatches[0].valueFrom.variable: variable none has no value",
        ),
        (
            json!([{ "op": "add", "path": "/spec/x", "valueFrom": { "template": "{{ .a.b.c | upper }}" } }]),
            "definitions[0].jsonPatches[0].valueFrom.template: line 1: upper: invalid value; expected string",
        ),
        (
            json!([{ "op": "add", "path": "/spec/x", "valueFrom": { "template": "a: [" } }]),
            "renders to text that is not YAML",
        ),
        (
            json!([{ "op": "add", "path": "/spec/x" }]),
            "neither value nor valueFrom is set",
        ),
    ];
    for (changes, words) in cases {
        let error = run(
            &[patch("OpenStackClusterTemplate", place(), changes.clone())],
            json!({}),
        )
        .unwrap_err();
        let start = "patch p of the ClusterClass cannot be applied to OpenStackClusterTemplate: ";
        assert!(
            error.starts_with(start) && error.contains(words),
            "{changes}: {error}"
        );
    }
}
