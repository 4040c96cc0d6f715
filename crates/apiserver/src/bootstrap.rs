//! Namespaces and priority classes of every cluster, created when a server opens.

use std::sync::Arc;

use apimachinery::time::seconds;
use serde_json::{Value, json};

use crate::controlplane;
use crate::core::Core;
use crate::namespaces::{SERVER, create_defaults, create_missing};
use crate::store::OpenError;

const PRIORITY_CLASSES: &str = "scheduling.k8s.io/priorityclasses";
/// Priority classes for essential pods of a cluster (`rest.PostStartHook` of `pkg/registry/scheduling`).
const SYSTEM_CLASSES: [(&str, i64, &str); 2] = [
    (
        "system-node-critical",
        2_000_001_000,
        "Used for system critical pods that must not be moved from their current node.",
    ),
    (
        "system-cluster-critical",
        2_000_000_000,
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
    ),
];
const ALWAYS: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// Creates missing default namespaces with their objects, and the Service of the server.
pub(crate) async fn create(core: &Arc<Core>) -> Result<(), OpenError> {
    fill(core).await.map_err(|problem| OpenError::Option {
        option: "store",
        problem,
    })
}

async fn fill(core: &Core) -> Result<(), String> {
    for name in ALWAYS {
        create_missing(core, SERVER, "/namespaces", name, || namespace(name)).await?;
    }
    let open: Vec<String> = {
        let state = core.store.read();
        let all = state.range("/namespaces", "", None);
        let open = all.filter(|namespace| !namespace.facts.deleting);
        open.map(|namespace| namespace.name().to_owned()).collect()
    };
    for namespace in open {
        create_defaults(core, &namespace).await?;
    }
    for (name, value, description) in SYSTEM_CLASSES {
        let class = || priority_class(name, value, description);
        create_missing(core, SERVER, PRIORITY_CLASSES, name, class).await?;
    }
    controlplane::keep(core).await
}

fn namespace(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {
            "name": name, "uid": uuid::Uuid::new_v4().to_string(),
            "creationTimestamp": seconds(jiff::Timestamp::now()),
            "labels": {"kubernetes.io/metadata.name": name},
        },
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    })
}

fn priority_class(name: &str, value: i64, description: &str) -> Value {
    json!({
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
        "metadata": {
            "name": name, "uid": uuid::Uuid::new_v4().to_string(), "generation": 1,
            "creationTimestamp": seconds(jiff::Timestamp::now()),
        },
        "value": value, "description": description, "preemptionPolicy": "PreemptLowerPriority",
    })
}
