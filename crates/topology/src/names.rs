//! Names, labels and annotations of the objects of a topology.
//!
//! Upstream's random names are computed here: an object has the same name each time, so that nothing is created twice
//! after an interruption. The name of a template depends on the content, so a changed template is a new object
//! ([why](../../../docs/adr/0045-names-of-a-topology.md)).

use serde_json::Value;
use sha2::{Digest, Sha256};

/// Field manager of server-side apply, under upstream's name.
pub const FIELD_MANAGER: &str = "capi-topology";
/// Label of the objects of a topology; the value is empty.
pub const OWNED_LABEL: &str = "topology.cluster.x-k8s.io/owned";
/// Label with the name of a MachineDeployment in the topology.
pub const DEPLOYMENT_LABEL: &str = "topology.cluster.x-k8s.io/deployment-name";
/// Annotation of a dry run: webhooks let templates change.
pub const DRY_RUN_ANNOTATION: &str = "topology.cluster.x-k8s.io/dry-run";

/// Characters of generated names, as in Kubernetes.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
/// Number of characters of the computed part of a name.
const LENGTH: usize = 5;

/// Returns the computed part of a name, from the `parts` that identify the object.
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

/// Returns the name of a template of the Cluster with this UID, from the content.
pub fn of_template(prefix: &str, uid: &str, template: &Value) -> String {
    // The keys of objects are sorted.
    let content = template["spec"].to_string();
    let suffix = suffix(&[uid, prefix, &content]);
    crate::class::shortened(&format!("{prefix}-{suffix}"), &suffix)
}

#[cfg(test)]
mod tests;
