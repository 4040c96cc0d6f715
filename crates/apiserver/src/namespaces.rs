//! The namespaces that every cluster has.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::crd::seconds;
use crate::server::{Core, OpenError};
use crate::store::{Draft, Place, Write, WriteError};

const ALWAYS: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// Makes the namespaces that every cluster has, where they are missing.
pub(crate) async fn bootstrap(core: &Arc<Core>) -> Result<(), OpenError> {
    let collection: Arc<str> = "/namespaces".into();
    for name in ALWAYS {
        if core.store.get(&collection, name).is_some() {
            continue;
        }
        let place = Place {
            collection: Arc::clone(&collection),
            key: name.into(),
        };
        let write = Write {
            place,
            expect: 0,
            draft: Draft::new(&namespace(name)),
            delete: false,
            serve: None,
        };
        match core.store.write(write).await {
            Ok(_) | Err(WriteError::Conflict) => {}
            Err(WriteError::Failed(problem)) => {
                return Err(OpenError::Option {
                    option: "store",
                    problem,
                });
            }
        }
    }
    Ok(())
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
