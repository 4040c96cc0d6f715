use api::k8s_openapi::api::core::v1::{NodeCondition, NodeSpec, NodeStatus, Taint};
use api::k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// Node with the taint `unreachable`, added at one second, and not ready since another.
fn silent(added: Option<i64>, not_ready: Option<i64>) -> Node {
    let taint = Taint {
        key: UNREACHABLE.to_owned(),
        effect: "NoExecute".to_owned(),
        time_added: added.map(|second| Time(at(second))),
        ..Taint::default()
    };
    let ready = NodeCondition {
        type_: "Ready".to_owned(),
        status: "Unknown".to_owned(),
        last_transition_time: not_ready.map(|second| Time(at(second))),
        ..NodeCondition::default()
    };
    let mut node = Node::default();
    node.metadata.name = Some("a".to_owned());
    node.spec = Some(NodeSpec {
        taints: Some(vec![taint]),
        ..NodeSpec::default()
    });
    node.status = Some(NodeStatus {
        conditions: Some(vec![ready]),
        ..NodeStatus::default()
    });
    node
}

#[test]
fn a_wait_ends_with_its_limit_or_ten_minutes_into_a_silence() {
    let since = |second| Silence {
        who: "the kubelet".to_owned(),
        since: Some(at(second)),
    };
    let unknown = Silence {
        who: "the API server".to_owned(),
        since: None,
    };
    let (early, late) = (since(-5_000), since(300));
    // Limit, silent party, and the second from which the wait, begun at 0, is over.
    let cases: [(Option<i32>, Option<&Silence>, Option<i64>); 8] = [
        (None, None, None),
        (Some(0), None, None),
        (Some(60), None, Some(60)),
        // A silence from before the wait still gets its time.
        (None, Some(&early), Some(600)),
        (None, Some(&late), Some(900)),
        (None, Some(&unknown), Some(600)),
        // A limit says how long, and 0 says for ever, whoever is silent.
        (Some(0), Some(&early), None),
        (Some(3_600), Some(&early), Some(3_600)),
    ];
    for (limit, silence, end) in cases {
        let over = |second| is_over(at(0), limit, silence, at(second));
        match end {
            Some(end) => assert!(over(end) && !over(end - 1), "{limit:?} {silence:?}"),
            None => assert!(!over(999_999), "{limit:?} {silence:?}"),
        }
    }
}

#[test]
fn a_kubelet_is_silent_since_its_taint_or_since_its_node_is_not_ready() {
    let since = |node: &Node| Silence::of_kubelet(node).map(|silence| silence.since);
    assert_eq!(since(&silent(Some(7), Some(5))), Some(Some(at(7))));
    assert_eq!(since(&silent(None, Some(5))), Some(Some(at(5))));
    assert_eq!(since(&silent(None, None)), Some(None));
    assert_eq!(since(&Node::default()), None);
}

#[test]
fn the_condition_says_who_is_silent_since_when_and_when_the_wait_ends() {
    let silence = Silence::of_kubelet(&silent(Some(60), None)).unwrap();
    assert_eq!(
        silence.message(at(0), "nodeDrainTimeoutSeconds"),
        "The kubelet of Node a has not answered since 1970-01-01T00:01:00Z; the wait ends at 1970-01-01T00:11:00Z \
         (spec.deletion.nodeDrainTimeoutSeconds is not set)"
    );
    let health = Health {
        last_success: Some(at(30)),
        ..Health::default()
    };
    let silence = Silence::of_api_server("default/demo", &health);
    assert!(
        silence
            .message(at(0), "nodeVolumeDetachTimeoutSeconds")
            .starts_with(
                "The API server of cluster default/demo has not answered since 1970-01-01T00:00:30Z"
            )
    );
}
