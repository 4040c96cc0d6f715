use api::core::v1beta2::Machine;
use serde_json::{Value, json};

use super::{PRE_TERMINATE, is_drained, is_held};

fn machine(annotations: Value, reason: &str) -> Machine {
    serde_json::from_value(json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
        "metadata": {"name": "m", "annotations": annotations, "deletionTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"clusterName": "c", "bootstrap": {}, "infrastructureRef": {"apiGroup": "i", "kind": "k", "name": "m"}},
        "status": {"conditions": [{"type": "Deleting", "status": "True", "reason": reason, "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]},
    }))
    .unwrap()
}

#[test]
fn a_member_stays_until_its_node_is_drained_and_only_our_hook_is_left() {
    let ours = json!({PRE_TERMINATE: ""});
    let both =
        json!({PRE_TERMINATE: "", "pre-terminate.delete.hook.machine.cluster.x-k8s.io/x": ""});
    let waiting = "WaitingForPreTerminateHook";
    assert!(is_held(&machine(ours.clone(), waiting)));
    assert!(!is_held(&machine(json!({}), waiting)));
    for (annotations, reason, version, expected) in [
        (&ours, waiting, "v1.34.1", true),
        (&ours, "DrainingNode", "v1.34.1", false),
        (&both, waiting, "v1.34.1", false),
        (&both, "DrainingNode", "v1.30.2", true),
    ] {
        assert_eq!(
            is_drained(&machine(annotations.clone(), reason), version),
            expected,
            "{reason} {version}"
        );
    }
}
