use api::k8s_openapi::api::core::v1::{NodeCondition, NodeStatus, NodeSystemInfo};

use super::*;

#[test]
fn texts_of_a_node_are_cut_before_a_machine_has_them() {
    let mut node = Node {
        status: Some(NodeStatus {
            node_info: Some(NodeSystemInfo {
                kubelet_version: "v".repeat(1 << 20),
                os_image: "Debian GNU/Linux 13".to_owned(),
                ..NodeSystemInfo::default()
            }),
            conditions: Some(vec![NodeCondition {
                message: Some("m".repeat(60 << 10)),
                ..NodeCondition::default()
            }]),
            ..NodeStatus::default()
        }),
        ..Node::default()
    };
    slim(&mut node);
    let status = node.status.unwrap();
    let info = status.node_info.unwrap();
    assert_eq!(info.kubelet_version.chars().count(), LONGEST);
    assert!(info.kubelet_version.ends_with('…'));
    assert_eq!(info.os_image, "Debian GNU/Linux 13");
    let message = status.conditions.unwrap().remove(0).message.unwrap();
    assert_eq!(message.chars().count(), printable::MESSAGE_LIMIT);
}
