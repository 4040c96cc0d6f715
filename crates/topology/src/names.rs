//! Names, labels and annotations of the objects of a topology.
//!
//! Names that upstream draws at random are computed here: an object has the same name each time, so that
//! nothing is created twice after an interruption. A template has the name of its content, so that a changed template
//! is a new one ([why](../../../docs/adr/0045-names-of-a-topology.md)).

use serde_json::Value;
use sha2::{Digest, Sha256};

/// Field manager of server-side apply, as upstream names it.
pub const FIELD_MANAGER: &str = "capi-topology";
/// Label: the object belongs to a topology; the value is empty.
pub const OWNED_LABEL: &str = "topology.cluster.x-k8s.io/owned";
/// Label: the name of a MachineDeployment in the topology.
pub const DEPLOYMENT_LABEL: &str = "topology.cluster.x-k8s.io/deployment-name";
/// Annotation of a dry run: webhooks let templates change.
pub const DRY_RUN_ANNOTATION: &str = "topology.cluster.x-k8s.io/dry-run";

/// The characters of generated names, as in Kubernetes.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
/// The number of characters of the computed part of a name.
const LENGTH: usize = 5;

/// The computed part of a name, from what distinguishes the object.
pub fn suffix(parts: &[&str]) -> String {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update(part.as_bytes());
        digest.update([0]);
    }
    let bytes = digest.finalize();
    let letters = bytes.iter().take(LENGTH);
    letters
        .map(|byte| char::from(ALPHABET[usize::from(*byte) % ALPHABET.len()]))
        .collect()
}

/// The name of a template of the Cluster with this UID, from its content.
pub fn of_template(prefix: &str, uid: &str, template: &Value) -> String {
    // The keys of objects are sorted.
    let content = template["spec"].to_string();
    let suffix = suffix(&[uid, prefix, &content]);
    crate::class::shortened(&format!("{prefix}-{suffix}"), &suffix)
}

#[cfg(test)]
mod tests;
