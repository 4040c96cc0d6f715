//! Digest of the input of a plan, in sixteen hexadecimal digits: another digest means another input.

use serde_json::Value as Json;
use sha2::{Digest as _, Sha256};

use super::{Observed, Plan, label};
use crate::desired::Graph;
use crate::held::{Credentials, UID};

/// Digest of the requested object, the desired objects, the existing objects (without fields written by controllers),
/// and the plan. The digest is keyed with a password of the cloud, so that nobody can try contents of Secrets.
pub fn digest(
    asked: &Json,
    graph: &Graph,
    held: &Credentials,
    objects: &[Json],
    plan: &Plan,
) -> String {
    let mut hash = Sha256::new();
    let mut add = |text: &str| {
        hash.update((text.len() as u64).to_be_bytes());
        hash.update(text.as_bytes());
    };
    add(held.password("names").expose());
    // Some of it is in no object of the cloud: `paused`.
    add(&asked.to_string());
    for (step, object) in graph.objects() {
        add(&step.name);
        add(&object.exposed().to_string());
    }
    let observed = Observed::from_objects(objects);
    let wanted: Vec<_> = graph.objects().map(|(_, it)| it.reference()).collect();
    for (reference, object) in &observed.objects {
        if label(object, UID) == Some(&graph.uid) || wanted.contains(&reference) {
            add(&reference.to_string());
            add(&settled(object).to_string());
        }
    }
    // With what is written to RabbitMQ and Keystone.
    add(&serde_json::to_string(plan).unwrap_or_default());
    let bytes = hash.finalize();
    bytes.iter().take(8).map(|it| format!("{it:02x}")).collect()
}

/// Object without fields that change on their own.
fn settled(object: &Json) -> Json {
    let mut settled = object.clone();
    if let Some(fields) = settled.as_object_mut() {
        fields.remove("status");
    }
    if let Some(metadata) = settled.get_mut("metadata").and_then(Json::as_object_mut) {
        for field in [
            "managedFields",
            "resourceVersion",
            "generation",
            "annotations",
        ] {
            metadata.remove(field);
        }
    }
    settled
}
