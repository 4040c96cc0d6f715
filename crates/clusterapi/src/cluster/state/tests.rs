use api::core::v1beta2::{ContractReference, MachineDeploymentSpec};
use api::kube::api::TypeMeta;
use serde_json::{Value, json};

use super::*;
use crate::external::Contract;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn cluster() -> Cluster {
    let mut cluster = Cluster::new("demo", Default::default());
    cluster.spec.infrastructure_ref = Some(ContractReference::new("i", "OpenStackCluster", "demo"));
    cluster.spec.control_plane_ref =
        Some(ContractReference::new("c", "KubeadmControlPlane", "demo"));
    cluster
}

fn there(kind: &str, data: Value) -> Referenced {
    let types = TypeMeta {
        api_version: "g/v1".to_owned(),
        kind: kind.to_owned(),
    };
    let object = DynamicObject {
        types: Some(types),
        metadata: Default::default(),
        data,
    };
    Referenced::There(Arc::new(object), Contract::V1Beta2)
}

fn facts(infrastructure: Referenced, control_plane: Referenced) -> Facts {
    Facts {
        infrastructure,
        control_plane,
        machines: Vec::new(),
        sets: Vec::new(),
        deployments: Vec::new(),
        health: Health {
            connected: true,
            ..Health::default()
        },
    }
}

fn built() -> Referenced {
    let data = json!({
        "spec": { "controlPlaneEndpoint": { "host": "203.0.113.5", "port": 6443 } },
        "status": {
            "initialization": { "provisioned": true },
            "failureDomains": [{ "name": "nova", "controlPlane": true }],
        },
    });
    there("OpenStackCluster", data)
}

fn running(available: &str) -> Referenced {
    let data = json!({
        "spec": { "replicas": 3 },
        "status": {
            "initialization": { "controlPlaneInitialized": true },
            "replicas": 3, "readyReplicas": 2,
            "conditions": [{ "type": "Available", "status": available, "reason": "Seen" }],
        },
    });
    there("KubeadmControlPlane", data)
}

fn verdict(cluster: &Cluster, type_: &str) -> (String, String) {
    let found = conditions::find(cluster.conditions(), type_).unwrap();
    (found.status.clone(), found.message.clone())
}

#[test]
fn a_cluster_climbs_the_ladder_of_phases() {
    let bare = Cluster::new("demo", Default::default());
    let alone = desired(
        &bare,
        &facts(Referenced::Nothing, Referenced::Nothing),
        at(1),
    );
    assert_eq!(phase(&alone), ClusterPhase::Pending);
    let first = desired(
        &cluster(),
        &facts(Referenced::Missing, Referenced::Missing),
        at(1),
    );
    assert_eq!(phase(&first), ClusterPhase::Provisioning);
    assert_eq!(
        verdict(&first, "InfrastructureReady").1,
        "OpenStackCluster does not exist"
    );
    let second = desired(&first, &facts(built(), Referenced::Missing), at(2));
    assert_eq!(phase(&second), ClusterPhase::Provisioned);
    assert_eq!(second.endpoint(), Some(("203.0.113.5", 6443)));
    let domains = second.status.clone().unwrap().failure_domains.unwrap();
    assert_eq!(domains[0].name, "nova");
    let third = desired(&second, &facts(built(), running("True")), at(3));
    assert_eq!(verdict(&third, "Available").0, "True");
    let counts = third.status.clone().unwrap().control_plane.unwrap();
    assert_eq!(
        (counts.desired_replicas, counts.ready_replicas),
        (Some(3), Some(2))
    );
    assert_eq!(
        desired(&third, &facts(built(), running("True")), at(4)),
        third
    );
}

#[test]
fn an_endpoint_that_was_given_is_kept() {
    let mut cluster = cluster();
    cluster.spec.control_plane_endpoint = Some(api::core::v1beta2::ApiEndpoint {
        host: Some("api.example.org".to_owned()),
        port: Some(443),
    });
    let after = desired(&cluster, &facts(built(), Referenced::Missing), at(1));
    assert_eq!(after.endpoint(), Some(("api.example.org", 443)));
}

#[test]
fn what_was_provisioned_once_stays_so() {
    let done = desired(&cluster(), &facts(built(), running("True")), at(1));
    let waiting = || there("K", json!({}));
    let after = desired(&done, &facts(waiting(), waiting()), at(2));
    assert!(after.infrastructure_provisioned() && after.control_plane_initialized());
    assert_eq!(verdict(&after, "Available").0, "False");
}

#[test]
fn a_connection_that_is_being_established_changes_no_condition() {
    let connected = desired(&cluster(), &facts(built(), running("True")), at(1));
    let mut restarted = facts(built(), running("True"));
    restarted.health = Health::default();
    let after = desired(&connected, &restarted, at(2));
    assert_eq!(after.status, connected.status);
    restarted.health.problem = Some("connection refused".to_owned());
    let failed = desired(&after, &restarted, at(3));
    assert_eq!(verdict(&failed, "RemoteConnectionProbe").0, "False");
    let again = desired(&failed, &facts(built(), running("True")), at(4));
    assert_eq!(verdict(&again, "RemoteConnectionProbe").0, "True");
}

#[test]
fn the_uid_of_the_workload_cluster_is_recorded_once_and_stays() {
    let mut seen = facts(built(), running("True"));
    let recorded = |cluster: &Cluster| cluster.annotations().get(WORKLOAD_UID_ANNOTATION).cloned();
    let none = desired(&cluster(), &seen, at(1));
    assert_eq!(recorded(&none), None);
    seen.health.uid = Some("first".to_owned());
    let first = desired(&none, &seen, at(2));
    assert_eq!(recorded(&first).as_deref(), Some("first"));
    for uid in [Some("second".to_owned()), None] {
        seen.health.uid = uid;
        assert_eq!(recorded(&desired(&first, &seen, at(3))), recorded(&first));
    }
}

#[test]
fn each_part_speaks_in_the_summary() {
    let mut seen = facts(built(), running("False"));
    seen.health = Health {
        problem: Some("connection refused".to_owned()),
        ..Health::default()
    };
    let deployment = MachineDeployment::new("md", MachineDeploymentSpec::default());
    seen.deployments.push(Arc::new(deployment));
    let after = desired(&cluster(), &seen, at(1));
    let (status, message) = verdict(&after, "Available");
    assert_eq!(status, "False");
    for part in [
        "ControlPlaneAvailable",
        "WorkersAvailable",
        "connection refused",
    ] {
        assert!(message.contains(part), "{message}");
    }
    assert_eq!(
        after.status.unwrap().workers.unwrap().desired_replicas,
        Some(1)
    );
}
