//! Validation of the taints of machines.

use serde_json::Value;

use crate::change::FieldError;

/// Taints managed by Cluster API.
const OF_CLUSTER_API: [&str; 2] = [
    "node.cluster.x-k8s.io/uninitialized",
    "node.cluster.x-k8s.io/outdated-revision",
];
/// Prefixes of taints managed by Kubernetes: for the conditions of a Node, and until a cloud controller manager has
/// initialised the Node.
const OF_KUBERNETES: [&str; 2] = ["node.kubernetes.io/", "node.cloudprovider.kubernetes.io/"];
/// Taint of Kubernetes for users.
const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

/// Rejects taints managed by other controllers. `list` is a list of taints at `path`.
pub(crate) fn reserved(list: Option<&Value>, path: &str, errors: &mut Vec<FieldError>) {
    let list = list.and_then(Value::as_array).into_iter().flatten();
    for (at, taint) in list.enumerate() {
        let key = taint.get("key").and_then(Value::as_str).unwrap_or_default();
        let by = if OF_CLUSTER_API.contains(&key) {
            "Cluster API"
        } else if key != OUT_OF_SERVICE && OF_KUBERNETES.iter().any(|it| key.starts_with(it)) {
            "Kubernetes"
        } else {
            continue;
        };
        let message = format!("{key} is set and removed by {by} itself: choose another key");
        errors.push(FieldError::new(format!("{path}[{at}].key"), message));
    }
}
