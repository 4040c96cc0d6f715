use serde_json::json;

use super::*;

#[test]
fn the_suites_kinds_are_converted_defaulted_and_validated() {
    let object = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
        "kind": "OpenStackCluster",
        "metadata": {"name": "demo", "namespace": "default"},
        "spec": {"identityRef": {"name": "secret", "cloudName": "cloud"}},
    });
    let to = "infrastructure.cluster.x-k8s.io/v1beta2";
    let mut object = Rules.convert(object, to).unwrap();
    assert_eq!(object["apiVersion"], to);
    Rules.default(&mut object, None);
    assert!(Rules.validate(&object, None, false).is_ok());

    object["spec"]["managedSubnets"] = json!([{"cidr": "not a range"}]);
    let errors = Rules.validate(&object, None, false).unwrap_err();
    assert!(
        errors[0].path.starts_with("spec.managedSubnets"),
        "{}",
        errors[0].path
    );
}

#[test]
fn definitions_with_several_versions_name_a_conversion_and_no_webhook() {
    for definition in api::crds::all().into_iter().map(converted) {
        let several = definition.spec.versions.len() > 1;
        let conversion = definition
            .spec
            .conversion
            .map(|one| (one.strategy, one.webhook));
        let expected = several.then(|| ("Webhook".to_owned(), None));
        assert_eq!(conversion, expected, "{:?}", definition.metadata.name);
    }
}

#[test]
fn options_of_an_openstack_object_are_judged_by_the_table_of_its_release() {
    let cloud = |option: &str| {
        json!({
            "apiVersion": "ferrostack.dev/v1alpha1",
            "kind": "OpenStack",
            "metadata": {"name": "cloud", "namespace": "openstack"},
            "spec": {"release": "2026.1", "services": {"nova": {"config": {"scheduler": {option: 2}}}}},
        })
    };
    let (valid, broken) = (cloud("workers"), cloud("wrokers"));
    assert_eq!(Rules.validate(&valid, None, false), Ok(()));
    for old in [None, Some(&valid)] {
        let errors = Rules.validate(&broken, old, false).unwrap_err();
        assert_eq!(
            errors[0].path,
            "spec.services.nova.config.scheduler.wrokers"
        );
        assert!(
            errors[0].message.contains("did you mean workers?"),
            "{}",
            errors[0].message
        );
    }
    // Stored before the rule: other fields can be written.
    let mut other = broken.clone();
    other["spec"]["paused"] = true.into();
    assert_eq!(Rules.validate(&other, Some(&broken), false), Ok(()));
}

#[test]
fn what_the_definition_rejects_the_parameters_reject_as_well() {
    use api::openstack::crd::{REJECTED, REJECTED_OF_SERVICES};
    let of_services = REJECTED_OF_SERVICES.map(|(field, _)| format!("services.nova.{field}"));
    let paths = REJECTED.map(|(path, ..)| path.to_owned()).into_iter();
    for path in paths.chain(of_services) {
        let mut spec = json!({"release": "zed"});
        let mut at = &mut spec;
        for step in path.split('.') {
            at = &mut at[step];
        }
        *at = json!({});
        let error = deployer::Parameters::read(&spec).unwrap_err();
        assert_eq!(error.path, path);
    }
}

#[test]
fn variables_and_patches_of_a_class_are_judged() {
    let class = |variable: &str| {
        let template = |kind: &str| json!({"templateRef": {"apiVersion": "a.io/v1", "kind": kind, "name": "a"}});
        json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2",
            "kind": "ClusterClass",
            "metadata": {"name": "demo", "namespace": "default"},
            "spec": {
                "infrastructure": template("ATemplate"),
                "controlPlane": template("BTemplate"),
                "variables": [{"name": "size", "required": true, "schema": {"openAPIV3Schema": {"type": "integer"}}}],
                "patches": [{"name": "p", "definitions": [{
                    "selector": {"apiVersion": "a.io/v1", "kind": "ATemplate", "matchResources": {"infrastructureCluster": true}},
                    "jsonPatches": [{"op": "add", "path": "/spec/x", "valueFrom": {"variable": variable}}],
                }]}],
            },
        })
    };
    let (valid, broken) = (class("size"), class("sizes"));
    assert_eq!(Rules.validate(&valid, None, false), Ok(()));
    let path = "spec.patches[0].definitions[0].jsonPatches[0].valueFrom.variable";
    for old in [None, Some(&valid)] {
        let errors = Rules.validate(&broken, old, false).unwrap_err();
        assert_eq!((errors.len(), errors[0].path.as_str()), (1, path));
    }
    let mut other = broken.clone();
    other["spec"]["kubernetesVersions"] = json!(["v1.34.1"]);
    assert_eq!(Rules.validate(&other, Some(&broken), false), Ok(()));
}

#[test]
fn clusterctl_finds_every_kind_of_a_provider_and_those_that_it_lists_itself() {
    let all = definitions();
    let names: BTreeSet<String> = all
        .iter()
        .filter_map(|it| it.metadata.name.clone())
        .collect();
    assert_eq!(names.len(), api::crds::all().len() + 2);
    assert!(names.contains("machinepools.cluster.x-k8s.io"));
    assert!(names.contains("providers.clusterctl.cluster.x-k8s.io"));
    for definition in all {
        let labels = definition.metadata.labels.unwrap_or_default();
        let of_clouds = definition.spec.group == "ferrostack.dev";
        assert_eq!(
            labels.contains_key(CLUSTERCTL_LABEL),
            !of_clouds,
            "{:?}",
            definition.metadata.name
        );
    }
}

#[test]
fn a_machine_pool_is_refused_with_what_to_use_instead() {
    let pool = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachinePool",
        "metadata": {"name": "pool", "namespace": "default"},
        "spec": {"clusterName": "demo", "template": {"spec": {"clusterName": "demo"}}},
    });
    let errors = Rules.validate(&pool, None, false).unwrap_err();
    let printed: Vec<String> = errors
        .iter()
        .map(|error| format!("{}: {}", error.path, error.message))
        .collect();
    assert_eq!(
        printed,
        ["kind: MachinePools are not built: use a MachineDeployment"]
    );
}
