use serde_json::{Value, json};

use crate::controlplane::v1beta2::KubeadmControlPlane;
use crate::convert::convert;

const OLD: &str = "controlplane.cluster.x-k8s.io/v1beta1";
const NEW: &str = "controlplane.cluster.x-k8s.io/v1beta2";

fn old() -> Value {
    json!({
        "apiVersion": OLD,
        "kind": "KubeadmControlPlane",
        "metadata": {"name": "demo", "annotations": {"mine": "stays"}},
        "spec": {
            "replicas": 3,
            "version": "v1.30.1",
            "machineTemplate": {
                "metadata": {"labels": {"a": "b"}},
                "infrastructureRef": {
                    "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
                    "kind": "OpenStackMachineTemplate",
                    "name": "demo",
                    "namespace": "default",
                },
                "nodeDrainTimeout": "10m0s",
                "nodeDeletionTimeout": "30s",
                "readinessGates": [{"conditionType": "X"}],
            },
            "kubeadmConfigSpec": {"files": []},
            "rolloutBefore": {"certificatesExpiryDays": 21},
            "rolloutAfter": "2026-01-01T00:00:00Z",
            "rolloutStrategy": {"rollingUpdate": {"maxSurge": 0}},
            "remediationStrategy": {"maxRetry": 3, "retryPeriod": "5m0s", "minHealthyPeriod": "2h0m0s"},
            "machineNamingStrategy": {"template": "x-{{ .random }}"},
        },
        "status": {
            "initialized": true,
            "ready": true,
            "replicas": 3,
            "readyReplicas": 2,
            "updatedReplicas": 3,
            "unavailableReplicas": 1,
            "failureMessage": "no",
            "lastRemediation": {"machine": "m", "timestamp": "2026-01-01T00:00:00Z", "retryCount": 1},
            "v1beta2": {"readyReplicas": 2, "availableReplicas": 1, "upToDateReplicas": 3},
        },
    })
}

#[test]
fn every_field_moves_to_its_place_and_back() {
    let new = convert(old(), NEW).unwrap();
    assert_eq!(
        new["spec"],
        json!({
            "replicas": 3,
            "version": "v1.30.1",
            "machineTemplate": {
                "metadata": {"labels": {"a": "b"}},
                "spec": {
                    "infrastructureRef": {
                        "apiGroup": "infrastructure.cluster.x-k8s.io",
                        "kind": "OpenStackMachineTemplate",
                        "name": "demo",
                    },
                    "deletion": {"nodeDrainTimeoutSeconds": 600, "nodeDeletionTimeoutSeconds": 30},
                    "readinessGates": [{"conditionType": "X"}],
                },
            },
            "rollout": {
                "before": {"certificatesExpiryDays": 21},
                "after": "2026-01-01T00:00:00Z",
                "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0}},
            },
            "remediation": {"maxRetry": 3, "retryPeriodSeconds": 300, "minHealthyPeriodSeconds": 7200},
            "machineNaming": {"template": "x-{{ .random }}"},
        })
    );
    assert_eq!(
        new["status"],
        json!({
            "initialization": {"controlPlaneInitialized": true},
            "replicas": 3,
            "readyReplicas": 2,
            "availableReplicas": 1,
            "upToDateReplicas": 3,
            "lastRemediation": {"machine": "m", "time": "2026-01-01T00:00:00Z", "retryCount": 1},
            "deprecated": {"v1beta1": {
                "readyReplicas": 2,
                "updatedReplicas": 3,
                "unavailableReplicas": 1,
                "failureMessage": "no",
            }},
        })
    );
    serde_json::from_value::<KubeadmControlPlane>(new.clone()).unwrap();
    assert_eq!(convert(new, OLD).unwrap(), old());
}

#[test]
fn a_v1beta2_object_survives_a_visit_to_v1beta1() {
    let mut new = convert(old(), NEW).unwrap();
    new["metadata"]["annotations"] = json!({"mine": "stays"});
    new["spec"]["kubeadmConfigSpec"] =
        json!({"joinConfiguration": {"timeouts": {"etcdAPICallSeconds": 9}}});
    let there = convert(new.clone(), OLD).unwrap();
    assert_eq!(convert(there, NEW).unwrap(), new);
}

#[test]
fn readiness_in_v1beta1_follows_the_counters() {
    let object = |ready: i32| {
        json!({
            "apiVersion": NEW, "kind": "KubeadmControlPlane", "metadata": {},
            "spec": {"version": "v1.34.1"},
            "status": {"readyReplicas": ready},
        })
    };
    assert_eq!(
        convert(object(1), OLD).unwrap()["status"]["ready"],
        json!(true)
    );
    assert_eq!(
        convert(object(0), OLD).unwrap()["status"].get("ready"),
        None
    );
}

#[test]
fn a_template_is_converted_inside() {
    let old = json!({
        "apiVersion": OLD,
        "kind": "KubeadmControlPlaneTemplate",
        "metadata": {"name": "t"},
        "spec": {"template": {"spec": {
            "kubeadmConfigSpec": {"clusterConfiguration": {"apiServer": {"extraArgs": {"v": "1"}}}},
            "machineTemplate": {"nodeDrainTimeout": "1m0s"},
        }}},
    });
    let new = convert(old.clone(), NEW).unwrap();
    let inner = &new["spec"]["template"]["spec"];
    assert_eq!(
        inner["machineTemplate"]["spec"]["deletion"],
        json!({"nodeDrainTimeoutSeconds": 60})
    );
    assert_eq!(
        inner["kubeadmConfigSpec"]["clusterConfiguration"]["apiServer"]["extraArgs"],
        json!([{"name": "v", "value": "1"}])
    );
    assert_eq!(convert(new, OLD).unwrap(), old);
}
