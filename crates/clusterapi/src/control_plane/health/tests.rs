use std::sync::Arc;

use api::conditions::Status;
use api::k8s_openapi::api::core::v1::{Node, Pod};
use serde_json::{Value, json};

use super::{Component, View, gates, judge, node_of};
use crate::control_plane::etcd::Member;

fn pod(name: &str, status: Value) -> Arc<Pod> {
    Arc::new(serde_json::from_value(json!({"metadata": {"name": name}, "status": status})).unwrap())
}

fn ready(name: &str) -> Arc<Pod> {
    pod(
        name,
        json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}),
    )
}

fn node(labels: Value) -> Arc<Node> {
    Arc::new(serde_json::from_value(json!({"metadata": {"name": "n", "labels": labels}})).unwrap())
}

fn verdicts(
    pods: &[Arc<Pod>],
    nodes: &[Arc<Node>],
    members: &[Member],
) -> Vec<(&'static str, Status, String)> {
    let view = View {
        pods,
        nodes,
        members,
        external_etcd: false,
    };
    judge(Some("n"), Some(view))
        .into_iter()
        .map(|v| (v.type_, v.status, v.reason))
        .collect()
}

fn status_of(list: &[(&'static str, Status, String)], type_: &str) -> (Status, String) {
    let found = list.iter().find(|verdict| verdict.0 == type_).unwrap();
    (found.1, found.2.clone())
}

#[test]
fn a_machine_with_all_its_pods_is_well() {
    let pods: Vec<_> = Component::ALL
        .iter()
        .map(|c| ready(&format!("{}-n", c.name())))
        .collect();
    let nodes = [node(json!({"node-role.kubernetes.io/control-plane": ""}))];
    let members = [Member {
        node: "n".to_owned(),
        healthy: true,
        learner: false,
    }];
    let all = verdicts(&pods, &nodes, &members);
    assert_eq!(all.len(), gates(false).len());
    assert!(
        all.iter().all(|verdict| verdict.1 == Status::True),
        "{all:?}"
    );
}

#[test]
fn each_trouble_has_its_reason() {
    let nodes = [node(json!({}))];
    let waiting = json!({"phase": "Pending", "containerStatuses": [{"name": "x", "ready": false,
        "image": "", "imageID": "", "restartCount": 0,
        "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}]});
    let mut leaving = Pod::clone(&ready("kube-scheduler-n"));
    leaving.metadata.deletion_timestamp =
        Some(serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap());
    let pods = [
        pod("kube-apiserver-n", waiting),
        pod("kube-controller-manager-n", json!({"phase": "Failed"})),
        Arc::new(leaving),
    ];
    let learner = [Member {
        node: "n".to_owned(),
        healthy: true,
        learner: true,
    }];
    let all = verdicts(&pods, &nodes, &learner);
    for (type_, reason) in [
        ("NodeKubeadmLabelsAndTaintsSet", "NotSet"),
        ("APIServerPodHealthy", "Provisioning"),
        ("ControllerManagerPodHealthy", "Failed"),
        ("SchedulerPodHealthy", "Deleting"),
        ("EtcdPodHealthy", "DoesNotExist"),
        ("EtcdMemberHealthy", "NotHealthy"),
    ] {
        assert_eq!(
            status_of(&all, type_),
            (Status::False, reason.to_owned()),
            "{type_}"
        );
    }
}

#[test]
fn what_cannot_be_seen_is_unknown() {
    for (node, view) in [
        (Some("n"), None),
        (
            None,
            Some(View {
                pods: &[],
                nodes: &[],
                members: &[],
                external_etcd: false,
            }),
        ),
        (
            Some("n"),
            Some(View {
                pods: &[],
                nodes: &[],
                members: &[],
                external_etcd: false,
            }),
        ),
    ] {
        let all = judge(node, view);
        assert_eq!(all.len(), gates(false).len());
        assert!(
            all.iter().all(|verdict| verdict.status == Status::Unknown),
            "{all:?}"
        );
    }
}

#[test]
fn an_external_etcd_is_not_looked_for() {
    let nodes = [node(json!({}))];
    let view = View {
        pods: &[],
        nodes: &nodes,
        members: &[],
        external_etcd: true,
    };
    let all = judge(Some("n"), Some(view));
    assert!(
        all.iter().all(|verdict| !verdict.type_.starts_with("Etcd")),
        "{all:?}"
    );
}

#[test]
fn pods_are_told_apart_by_name() {
    let pod = ready("etcd-n-1");
    assert_eq!(node_of(&pod, Component::Etcd), Some("n-1"));
    assert_eq!(node_of(&pod, Component::Scheduler), None);
}
