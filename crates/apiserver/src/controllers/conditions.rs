//! Conditions of a namespace being deleted, as of the namespace controller
//! (`pkg/controller/namespace/deletion/status_condition_utils.go` of Kubernetes).

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// Remaining content of a namespace.
#[derive(Debug, Default)]
pub(super) struct Left {
    /// Number of objects of each resource, as `configmaps.` or `deployments.apps`.
    resources: BTreeMap<String, usize>,
    /// Number of objects with each finalizer.
    finalizers: BTreeMap<String, usize>,
}

impl Left {
    /// Counts a remaining object.
    pub(super) fn count(&mut self, plural: &str, group: &str, finalizers: &[Box<str>]) {
        increment(&mut self.resources, &format!("{plural}.{group}"));
        for finalizer in finalizers {
            increment(&mut self.finalizers, finalizer);
        }
    }

    /// Conditions of a namespace; unchanged conditions keep their transition time.
    pub(super) fn conditions(&self, before: &Value, now: &str) -> Value {
        let remaining = joined(&self.resources, |name, count| {
            format!("{name} has {count} resource instances")
        });
        let finalizers = joined(&self.finalizers, |name, count| {
            format!("{name} in {count} resource instances")
        });
        let rows = [
            (
                "NamespaceDeletionDiscoveryFailure",
                None,
                "ResourcesDiscovered",
                "All resources successfully discovered",
            ),
            (
                "NamespaceDeletionGroupVersionParsingFailure",
                None,
                "ParsedGroupVersions",
                "All legacy kube types successfully parsed",
            ),
            (
                "NamespaceDeletionContentFailure",
                None,
                "ContentDeleted",
                "All content successfully deleted, may be waiting on finalization",
            ),
            (
                "NamespaceContentRemaining",
                remaining.map(|what| {
                    let message = format!("Some resources are remaining: {what}");
                    ("SomeResourcesRemain", message)
                }),
                "ContentRemoved",
                "All content successfully removed",
            ),
            (
                "NamespaceFinalizersRemaining",
                finalizers.map(|what| {
                    let message =
                        format!("Some content in the namespace has finalizers remaining: {what}");
                    ("SomeFinalizersRemain", message)
                }),
                "ContentHasNoFinalizers",
                "All content-preserving finalizers finished",
            ),
        ];
        let mut conditions = before.as_array().cloned().unwrap_or_default();
        for (kind, problem, reason, message) in rows {
            let (status, reason, message) = match problem {
                Some((reason, message)) => ("True", reason, message),
                None => ("False", reason, message.to_owned()),
            };
            let found = conditions.iter_mut().find(|one| one["type"] == kind);
            match found {
                Some(condition) => {
                    if condition["status"] != status {
                        condition["lastTransitionTime"] = Value::from(now);
                    }
                    condition["status"] = Value::from(status);
                    condition["reason"] = Value::from(reason);
                    condition["message"] = Value::from(message);
                }
                None => conditions.push(json!({
                    "type": kind, "status": status, "lastTransitionTime": now,
                    "reason": reason, "message": message,
                })),
            }
        }
        Value::Array(conditions)
    }
}

fn increment(counts: &mut BTreeMap<String, usize>, name: &str) {
    match counts.get_mut(name) {
        Some(count) => *count += 1,
        None => {
            counts.insert(name.to_owned(), 1);
        }
    }
}

fn joined(counts: &BTreeMap<String, usize>, one: impl Fn(&str, usize) -> String) -> Option<String> {
    let mut all: Vec<String> = counts.iter().map(|(name, n)| one(name, *n)).collect();
    all.sort();
    (!all.is_empty()).then(|| all.join(", "))
}

#[cfg(test)]
mod tests;
