use api::controlplane::v1beta2::KubeadmControlPlane;
use api::core::v1beta2::Machine;
use serde_json::{Value, json};

use super::{has_peer_url_of_its_address, only_address};

fn known(version: &str, config: Value) -> bool {
    let plane: KubeadmControlPlane = serde_json::from_value(json!({
        "apiVersion": "controlplane.cluster.x-k8s.io/v1beta2",
        "kind": "KubeadmControlPlane",
        "metadata": {"name": "demo"},
        "spec": {
            "version": version,
            "machineTemplate": {"spec": {"infrastructureRef": {
                "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "OpenStackMachineTemplate", "name": "demo",
            }}},
            "kubeadmConfigSpec": config,
        },
    }))
    .unwrap();
    has_peer_url_of_its_address(&plane)
}

#[test]
fn the_peer_url_is_known_unless_the_configuration_may_set_another() {
    let arguments = |name: &str| {
        let local = json!({"extraArgs": [{"name": name, "value": "https://10.0.0.1:2380"}]});
        json!({"clusterConfiguration": {"etcd": {"local": local}}})
    };
    let gate =
        |on: bool| json!({"clusterConfiguration": {"featureGates": {"EtcdLearnerMode": on}}});
    let endpoint = |field: &str, value: Value| json!({"joinConfiguration": {"controlPlane": {"localAPIEndpoint": {field: value}}}});
    assert!(known("v1.34.2", json!({})));
    assert!(known("v1.29.0", gate(true)));
    assert!(known("v1.34.2", arguments("quota-backend-bytes")));
    assert!(known("v1.34.2", endpoint("bindPort", json!(6443))));
    assert!(!known("v1.28.9", json!({})), "no learner by default");
    assert!(!known("v1.34.2", gate(false)));
    assert!(!known("v1.34.2", arguments("initial-advertise-peer-urls")));
    assert!(!known("v1.34.2", arguments("listen-peer-urls")));
    assert!(!known(
        "v1.34.2",
        endpoint("advertiseAddress", json!("10.0.0.9"))
    ));
    assert!(!known("latest", json!({})));
}

#[test]
fn a_machine_of_one_internal_address_has_a_known_one() {
    let address = |addresses: Value| {
        let machine: Machine = serde_json::from_value(json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2",
            "kind": "Machine",
            "metadata": {"name": "demo"},
            "spec": {"clusterName": "demo", "bootstrap": {}, "infrastructureRef": {
                "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "OpenStackMachine", "name": "demo",
            }},
            "status": {"addresses": addresses},
        }))
        .unwrap();
        only_address(&machine).map(str::to_owned)
    };
    let internal = |address: &str| json!({"type": "InternalIP", "address": address});
    let name = json!({"type": "InternalDNS", "address": "demo"});
    let outside = json!({"type": "ExternalIP", "address": "203.0.113.5"});
    assert_eq!(address(json!([])), None);
    assert_eq!(address(json!([name, outside])), None);
    let one = address(json!([name, outside, internal("10.6.0.4")]));
    assert_eq!(one.as_deref(), Some("10.6.0.4"));
    assert_eq!(
        address(json!([internal("10.6.0.4"), internal("10.7.0.4")])),
        None
    );
}
