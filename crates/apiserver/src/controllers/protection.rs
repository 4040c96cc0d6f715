//! Removal of marks that admission has set on nodes, volumes and claims, once the reason is gone: the taint of nodes
//! that are not ready (node lifecycle controller), the finalizers of volumes and claims in use (protection
//! controllers).

use std::sync::Arc;

use serde_json::Value;

use super::{Collector, report};
use crate::rest::edit;
use crate::rest::strategy::{CLAIM_PROTECTION, NOT_READY, VOLUME_PROTECTION};
use crate::store::{Change, Object, ObjectKey};

pub(super) const CLAIM: &str = CLAIM_PROTECTION;
pub(super) const VOLUME: &str = VOLUME_PROTECTION;
const CLAIMS: &str = "/persistentvolumeclaims";

impl Collector<'_> {
    /// Removes the not-ready taint from a ready node.
    pub(super) async fn ready(&self, place: &ObjectKey, node: &Object) {
        if !is_due(&node.value()) {
            return;
        }
        let Some(resource) = self.resource(place) else {
            return;
        };
        let done = edit(self.core, &resource, &place.key, |node| {
            if !is_due(node) {
                return false;
            }
            let live = node.clone();
            untaint(node);
            self.record(&resource, &live, node);
            true
        });
        report(done.await.map(drop));
    }

    /// Releases the claims of a pod that is deleted or has ended.
    pub(super) async fn unused(&self, change: Change, pod: &Object) {
        let prefix = format!("{}/", pod.namespace());
        let waiting: Vec<Arc<str>> = {
            let state = self.core.store.read();
            let claims = state.range(CLAIMS, &prefix, None);
            let waiting = claims.filter(|claim| claim.facts.deleting);
            waiting.map(|claim| Arc::clone(&claim.key)).collect()
        };
        if waiting.is_empty() {
            return;
        }
        let pod = pod.value();
        if change != Change::Deleted && !has_ended(&pod) {
            return;
        }
        for key in waiting {
            let name = key.rsplit('/').next().unwrap_or_default();
            if uses(&pod, name) {
                let collection = CLAIMS.into();
                self.deleting(&ObjectKey { collection, key }).await;
            }
        }
    }

    /// True if a pod that has not ended uses a claim.
    pub(super) fn is_used(&self, place: &ObjectKey, claim: &Object) -> bool {
        if &*place.collection != CLAIMS {
            return false;
        }
        let prefix = format!("{}/", claim.namespace());
        let state = self.core.store.read();
        let mut pods = state.range("/pods", &prefix, None);
        pods.any(|pod| {
            let pod = pod.value();
            !has_ended(&pod) && uses(&pod, claim.name())
        })
    }
}

fn uses(pod: &Value, claim: &str) -> bool {
    let mut volumes = pod["spec"]["volumes"].as_array().into_iter().flatten();
    volumes.any(|volume| volume["persistentVolumeClaim"]["claimName"] == claim)
}

fn has_ended(pod: &Value) -> bool {
    matches!(
        pod["status"]["phase"].as_str(),
        Some("Succeeded" | "Failed")
    )
}

fn is_not_ready(taint: &Value) -> bool {
    taint["key"] == NOT_READY && taint["effect"] == "NoSchedule"
}

/// True if a node is ready and still has the not-ready taint.
fn is_due(node: &Value) -> bool {
    let conditions = node["status"]["conditions"]
        .as_array()
        .into_iter()
        .flatten();
    let mut ready = conditions.filter(|condition| condition["type"] == "Ready");
    let taints = node["spec"]["taints"].as_array().into_iter().flatten();
    ready.any(|condition| condition["status"] == "True") && taints.into_iter().any(is_not_ready)
}

fn untaint(node: &mut Value) {
    let Some(spec) = node.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    if let Some(taints) = spec.get_mut("taints").and_then(Value::as_array_mut) {
        taints.retain(|taint| !is_not_ready(taint));
        if taints.is_empty() {
            spec.remove("taints");
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_a_ready_node_loses_the_taint_and_keeps_its_others() {
        let taints = json!([
            {"key": NOT_READY, "effect": "NoSchedule"},
            {"key": NOT_READY, "effect": "NoExecute"},
        ]);
        let mut node = json!({"spec": {"taints": taints}});
        assert!(!is_due(&node));
        node["status"] = json!({"conditions": [{"type": "Ready", "status": "False"}]});
        assert!(!is_due(&node));
        node["status"]["conditions"][0]["status"] = json!("True");
        assert!(is_due(&node));
        untaint(&mut node);
        assert!(!is_due(&node));
        assert_eq!(
            node["spec"]["taints"],
            json!([{"key": NOT_READY, "effect": "NoExecute"}])
        );
    }
}
