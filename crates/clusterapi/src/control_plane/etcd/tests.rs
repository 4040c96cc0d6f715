use std::sync::Arc;

use api::k8s_openapi::api::core::v1::{Node, Pod};
use serde_json::json;

use super::{Member, count, judge};
use crate::control_plane::quorum::Members;

#[test]
fn a_member_is_a_pod_and_a_healthy_one_has_a_node() {
    let pod = |name: &str, ready: &str| -> Arc<Pod> {
        Arc::new(
            serde_json::from_value(json!({
                "metadata": {"name": name},
                "status": {"conditions": [{"type": "Ready", "status": ready}]},
            }))
            .unwrap(),
        )
    };
    let node = |name: &str| -> Arc<Node> {
        Arc::new(serde_json::from_value(json!({"metadata": {"name": name}})).unwrap())
    };
    let pods = [
        pod("etcd-a", "True"),
        pod("etcd-b", "False"),
        pod("etcd-c", "True"),
        pod("kube-scheduler-a", "True"),
    ];
    let members = judge(&pods, &[node("a"), node("b")]);
    let seen: Vec<_> = members
        .iter()
        .map(|m| (m.node.as_str(), m.healthy))
        .collect();
    assert_eq!(seen, [("a", true), ("b", false), ("c", false)]);
    assert_eq!(
        count(&members),
        Members {
            voters: 3,
            unhealthy: 2,
            learners: 0
        }
    );
    let learner = Member {
        node: "d".to_owned(),
        healthy: false,
        learner: true,
    };
    assert_eq!(
        count(&[learner]),
        Members {
            voters: 0,
            unhealthy: 0,
            learners: 1
        }
    );
}
