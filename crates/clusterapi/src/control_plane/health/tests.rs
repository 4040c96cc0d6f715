use std::sync::Arc;

use api::conditions::Status;
use api::k8s_openapi::api::core::v1::{Node, Pod};
use serde_json::{Value, json};

use super::{Component, View, gates, judge, node_of};
use crate::control_plane::etcd::{self, Member};

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
    etcd: etcd::View,
) -> Vec<(&'static str, Status, String)> {
    let view = View {
        pods,
        nodes,
        etcd: &etcd,
    };
    judge(Some("n"), Some(view))
        .into_iter()
        .map(|v| (v.type_, v.status, v.reason))
        .collect()
}

/// A member on the Node.
fn known(learner: bool) -> etcd::View {
    etcd::View::Known(vec![Member {
        name: "n".to_owned(),
        learner,
        ..Member::default()
    }])
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
    let all = verdicts(&pods, &nodes, known(false));
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
    let all = verdicts(&pods, &nodes, known(true));
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
    let unknown = etcd::View::Unknown("why".to_owned());
    for (node, view) in [
        (Some("n"), None),
        (
            None,
            Some(View {
                pods: &[],
                nodes: &[],
                etcd: &unknown,
            }),
        ),
        (
            Some("n"),
            Some(View {
                pods: &[],
                nodes: &[],
                etcd: &unknown,
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
fn a_member_says_what_is_wrong_with_it_and_one_that_cannot_be_asked_is_unknown() {
    let nodes = [node(json!({}))];
    let ill = Member {
        name: "n".to_owned(),
        problem: Some("etcd reports alarms: NOSPACE".to_owned()),
        ..Member::default()
    };
    let message = |etcd: &etcd::View| {
        let view = View {
            pods: &[],
            nodes: &nodes,
            etcd,
        };
        let all = judge(Some("n"), Some(view));
        let found = all.into_iter().find(|it| it.type_ == "EtcdMemberHealthy");
        found.map(|it| (it.status, it.message)).unwrap()
    };
    let words = "etcd reports alarms: NOSPACE".to_owned();
    assert_eq!(
        message(&etcd::View::Known(vec![ill])),
        (Status::False, words)
    );
    let words = "There is no etcd member on Node n".to_owned();
    assert_eq!(
        message(&etcd::View::Known(Vec::new())),
        (Status::False, words)
    );
    let unknown = etcd::View::Unknown("no answer".to_owned());
    assert_eq!(message(&unknown), (Status::Unknown, "No answer".to_owned()));
}

#[test]
fn an_external_etcd_is_not_looked_for() {
    let nodes = [node(json!({}))];
    let view = View {
        pods: &[],
        nodes: &nodes,
        etcd: &etcd::View::External,
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
