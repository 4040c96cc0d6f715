use api::bootstrap::v1beta2::KubeadmConfig;
use api::controlplane::v1beta2::KubeadmControlPlane;
use api::core::v1beta2::Machine;
use api::k8s_openapi::jiff::Timestamp;
use api::kube::api::DynamicObject;
use serde_json::{Value, json};

use super::{Parts, config_spec, reasons};

fn plane(spec: Value) -> KubeadmControlPlane {
    let mut all = json!({
        "version": "v1.34.1",
        "machineTemplate": {"spec": {"infrastructureRef": {"apiGroup": "i", "kind": "OpenStackMachineTemplate", "name": "t"}}},
    });
    all.as_object_mut()
        .unwrap()
        .extend(spec.as_object().unwrap().clone());
    serde_json::from_value(json!({"apiVersion": "controlplane.cluster.x-k8s.io/v1beta2", "kind": "KubeadmControlPlane", "metadata": {"name": "p"}, "spec": all})).unwrap()
}

fn machine(version: &str) -> Machine {
    serde_json::from_value(json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
        "metadata": {"name": "m", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {
            "clusterName": "c", "version": version, "bootstrap": {},
            "infrastructureRef": {"apiGroup": "i", "kind": "OpenStackMachine", "name": "m"},
        },
        "status": {"certificatesExpiryDate": "2026-06-01T00:00:00Z"},
    }))
    .unwrap()
}

fn infrastructure(name: &str) -> DynamicObject {
    serde_json::from_value(json!({
        "apiVersion": "i/v1", "kind": "OpenStackMachine",
        "metadata": {"name": "m", "annotations": {
            "cluster.x-k8s.io/cloned-from-name": name,
            "cluster.x-k8s.io/cloned-from-groupkind": "OpenStackMachineTemplate.i",
        }},
    }))
    .unwrap()
}

fn config(spec: Value) -> KubeadmConfig {
    serde_json::from_value(json!({"apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2", "kind": "KubeadmConfig", "metadata": {"name": "m"}, "spec": spec})).unwrap()
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn outdated_because(
    plane: &KubeadmControlPlane,
    machine: &Machine,
    config: Option<&KubeadmConfig>,
    infrastructure: Option<&DynamicObject>,
) -> Vec<String> {
    reasons(
        plane,
        Parts {
            machine,
            config,
            infrastructure,
        },
        at("2026-02-01T00:00:00Z"),
    )
}

#[test]
fn a_machine_made_from_this_spec_is_current() {
    for spec in [
        json!({}),
        json!({"kubeadmConfigSpec": {"verbosity": 3, "initConfiguration": {"skipPhases": ["x"]}}}),
        json!({"kubeadmConfigSpec": {"joinConfiguration": {"nodeRegistration": {"name": "n"}}}}),
    ] {
        let plane = plane(spec);
        for init in [true, false] {
            let spec = serde_json::to_value(config_spec(&plane, init)).unwrap();
            let mut config = config(spec);
            if let Some(join) = &mut config.spec.join_configuration {
                join.discovery = Some(Default::default());
            }
            let found = infrastructure("t");
            let outdated_because =
                outdated_because(&plane, &machine("v1.34.1"), Some(&config), Some(&found));
            assert_eq!(outdated_because, Vec::<String>::new());
        }
    }
}

#[test]
fn what_differs_is_named() {
    let current = machine("v1.34.1");
    assert_eq!(
        outdated_because(&plane(json!({})), &machine("1.34.1"), None, None),
        Vec::<String>::new()
    );
    assert_eq!(
        outdated_because(&plane(json!({})), &machine("v1.33.0"), None, None),
        ["Version v1.33.0, v1.34.1 required"]
    );
    let other = infrastructure("other");
    assert_eq!(
        outdated_because(&plane(json!({})), &current, None, Some(&other)),
        ["OpenStackMachine is not up-to-date"]
    );
    let changed = plane(json!({"kubeadmConfigSpec": {"verbosity": 4}}));
    assert_eq!(
        outdated_because(&changed, &current, Some(&config(json!({}))), None),
        ["KubeadmConfig is not up-to-date"]
    );
}

#[test]
fn a_change_of_the_join_part_leaves_the_first_machine_alone() {
    let changed = plane(json!({"kubeadmConfigSpec": {"joinConfiguration": {"skipPhases": ["x"]}}}));
    let first = config(json!({}));
    let second = config(json!({"joinConfiguration": {"controlPlane": {}}}));
    assert!(outdated_because(&changed, &machine("v1.34.1"), Some(&first), None).is_empty());
    assert!(!outdated_because(&changed, &machine("v1.34.1"), Some(&second), None).is_empty());
}

/// The config of a machine for `spec`, as the Go control plane provider writes it.
fn of_go(mut spec: Value) -> KubeadmConfig {
    spec["clusterConfiguration"]["featureGates"]["ControlPlaneKubeletLocalMode"] = json!(true);
    config(spec)
}

#[test]
fn machines_of_the_go_control_plane_provider_are_current() {
    let arguments = json!({"nodeRegistration": {"kubeletExtraArgs": [{"name": "cloud-provider", "value": "external"}]}});
    let plane = plane(json!({"kubeadmConfigSpec": {
        "clusterConfiguration": {"controllerManager": {"extraArgs": [{"name": "v", "value": "2"}]}},
        "initConfiguration": arguments, "joinConfiguration": arguments,
    }}));
    for init in [true, false] {
        let ours = serde_json::to_value(config_spec(&plane, init)).unwrap();
        assert_eq!(
            ours["clusterConfiguration"]["featureGates"],
            json!({"ControlPlaneKubeletLocalMode": true})
        );
        assert_eq!(
            serde_json::to_value(of_go(ours.clone()).spec).unwrap(),
            ours
        );

        let mut without = ours.clone();
        let cluster = without["clusterConfiguration"].as_object_mut().unwrap();
        cluster.remove("featureGates");
        let mut off = ours.clone();
        off["clusterConfiguration"]["featureGates"]["ControlPlaneKubeletLocalMode"] = json!(false);
        let mut defaulted = ours.clone();
        let part = if init {
            "initConfiguration"
        } else {
            "joinConfiguration"
        };
        defaulted["format"] = json!("cloud-config");
        defaulted["files"] = json!([]);
        defaulted["clusterConfiguration"]["controlPlaneEndpoint"] = json!("192.0.2.1:6443");
        defaulted["clusterConfiguration"]["etcd"] = json!({"local": {"extraArgs": []}});
        defaulted[part]["nodeRegistration"]["imagePullPolicy"] = json!("IfNotPresent");
        defaulted[part]["timeouts"] = json!({"controlPlaneComponentHealthCheckSeconds": 60});
        let mut untainted = ours.clone();
        untainted[part]["nodeRegistration"]["taints"] = json!([]);
        for (spec, is_current) in [
            (without, true),
            (off, false),
            (defaulted, true),
            (untainted, false),
        ] {
            let reasons = outdated_because(
                &plane,
                &machine("v1.34.1"),
                Some(&config(spec.clone())),
                None,
            );
            assert_eq!(reasons.is_empty(), is_current, "{spec}: {reasons:?}");
        }
    }
}

#[test]
fn the_feature_gate_is_that_of_the_version() {
    for (version, has) in [
        ("v1.30.9", false),
        ("v1.31.0", true),
        ("v1.35.2", true),
        ("v1.36.0", false),
    ] {
        let plane = plane(json!({"version": version}));
        let spec = config_spec(&plane, true);
        assert_eq!(spec.cluster_configuration.is_some(), has, "{version}");
    }
}

#[test]
fn the_first_machine_is_current_in_either_form() {
    let plane = plane(json!({"kubeadmConfigSpec": {
        "initConfiguration": {"skipPhases": ["first"]},
        "joinConfiguration": {"skipPhases": ["further"], "caCertPath": "/ca.crt"},
    }}));
    for (phase, is_current) in [("first", true), ("further", true), ("former", false)] {
        let spec = json!({
            "initConfiguration": {"skipPhases": [phase]},
            // As left by a conversion from v1beta1.
            "joinConfiguration": {"timeouts": {"controlPlaneComponentHealthCheckSeconds": 60}},
        });
        let reasons = outdated_because(&plane, &machine("v1.34.1"), Some(&config(spec)), None);
        assert_eq!(reasons.is_empty(), is_current, "{phase}: {reasons:?}");
    }
}

#[test]
fn time_makes_machines_outdated() {
    let current = machine("v1.34.1");
    for (rollout, expected) in [
        (json!({"after": "2026-01-15T00:00:00Z"}), 1),
        (json!({"after": "2026-03-01T00:00:00Z"}), 0),
        (json!({"after": "2025-12-01T00:00:00Z"}), 0),
        (json!({"before": {"certificatesExpiryDays": 30}}), 0),
        (json!({"before": {"certificatesExpiryDays": 150}}), 1),
    ] {
        let plane = plane(json!({"rollout": rollout}));
        assert_eq!(
            outdated_because(&plane, &current, None, None).len(),
            expected,
            "{rollout}"
        );
    }
}
