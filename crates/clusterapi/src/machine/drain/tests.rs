use api::k8s_openapi::api::core::v1::{NodeSpec, PodStatus, Taint};
use api::k8s_openapi::apimachinery::pkg::apis::meta::v1::{OwnerReference, Time};

use super::*;

fn now() -> Timestamp {
    Timestamp::from_second(1_000).unwrap()
}

fn pod(change: impl FnOnce(&mut Pod)) -> Pod {
    let mut pod = Pod::default();
    change(&mut pod);
    pod
}

fn labelled(value: &str, phase: &str) -> Pod {
    pod(|pod| {
        pod.metadata.labels = Some([(DRAIN_LABEL.to_owned(), value.to_owned())].into());
        pod.status = Some(PodStatus {
            phase: Some(phase.to_owned()),
            ..PodStatus::default()
        });
    })
}

fn deleted(second: i64) -> Pod {
    let at = Timestamp::from_second(second).unwrap();
    pod(|pod| pod.metadata.deletion_timestamp = Some(Time(at)))
}

#[test]
fn every_sort_of_pod_meets_its_fate() {
    let mirror = pod(|pod| {
        pod.metadata.annotations =
            Some([("kubernetes.io/config.mirror".to_owned(), "x".to_owned())].into());
    });
    let daemon = pod(|pod| {
        let owner = OwnerReference {
            kind: "DaemonSet".to_owned(),
            controller: Some(true),
            ..OwnerReference::default()
        };
        pod.metadata.owner_references = Some(vec![owner]);
    });
    let cases = [
        ("plain", pod(|_| {}), false, Fate::Evict(0)),
        ("mirror", mirror, false, Fate::Leave),
        ("daemon", daemon, false, Fate::Leave),
        ("skipped", labelled("skip", "Running"), false, Fate::Leave),
        (
            "waits",
            labelled("wait-completed", "Running"),
            false,
            Fate::WaitCompleted,
        ),
        (
            "completed",
            labelled("Wait-Completed", "Succeeded"),
            false,
            Fate::Leave,
        ),
        ("going", deleted(900), false, Fate::Wait(0)),
        ("stuck on a dead node", deleted(900), true, Fate::Leave),
        ("within its grace", deleted(1_100), true, Fate::Wait(0)),
    ];
    for (what, pod, unreachable, expected) in cases {
        let by_default = Treatment::Drain(0);
        assert_eq!(
            fate(&pod, by_default, unreachable, now()),
            expected,
            "{what}"
        );
    }
}

#[test]
fn a_rule_decides_unless_the_pod_has_a_label() {
    let cases = [
        (pod(|_| {}), Treatment::Drain(-3), Fate::Evict(-3)),
        (deleted(900), Treatment::Drain(7), Fate::Wait(7)),
        (pod(|_| {}), Treatment::Skip, Fate::Leave),
        (pod(|_| {}), Treatment::WaitCompleted, Fate::WaitCompleted),
        (
            labelled("skip", "Running"),
            Treatment::Drain(7),
            Fate::Leave,
        ),
        (
            labelled("wait-completed", "Running"),
            Treatment::Skip,
            Fate::WaitCompleted,
        ),
        (
            labelled("other", "Failed"),
            Treatment::WaitCompleted,
            Fate::Leave,
        ),
    ];
    for (pod, treatment, expected) in cases {
        assert_eq!(
            fate(&pod, treatment, false, now()),
            expected,
            "{pod:?} {treatment:?}"
        );
    }
}

#[test]
fn a_node_is_unreachable_when_it_is_tainted_so() {
    let mut node = Node::default();
    assert!(!is_unreachable(&node));
    let taint = Taint {
        key: "node.kubernetes.io/unreachable".to_owned(),
        ..Taint::default()
    };
    node.spec = Some(NodeSpec {
        taints: Some(vec![taint]),
        ..NodeSpec::default()
    });
    assert!(is_unreachable(&node));
}
