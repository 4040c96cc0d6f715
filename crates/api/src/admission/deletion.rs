//! Rejection of deletions while other objects refer to the deleted one.

use serde_json::Value;

use crate::core::v1beta2::API_VERSION;

/// Maximum number of referring objects in a message.
const NAMED: usize = 3;

/// Kind of objects with references to a deleted one, in any namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Referrers {
    /// API version of the kind.
    pub api_version: &'static str,
    /// The kind.
    pub kind: &'static str,
    /// Plural of the kind.
    pub plural: &'static str,
}

/// [`Referrers`] to examine before the deletion of `object`; `None` if deletion is always possible.
#[must_use]
pub fn referrers(object: &Value) -> Option<Referrers> {
    let is_class = object["kind"] == "ClusterClass" && object["apiVersion"] == API_VERSION;
    is_class.then_some(Referrers {
        api_version: API_VERSION,
        kind: "Cluster",
        plural: "clusters",
    })
}

/// Accepts or rejects the deletion of `object`, by all objects of the [`Referrers`].
///
/// # Errors
/// Reason against the deletion: a ClusterClass still in use by Clusters.
pub fn deletion<'a>(
    object: &Value,
    referrers: impl IntoIterator<Item = &'a Value>,
) -> Result<(), String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let metadata = &object["metadata"];
    let (namespace, name) = (text(&metadata["namespace"]), text(&metadata["name"]));
    let uses = |cluster: &Value| {
        let class = &cluster["spec"]["topology"]["classRef"];
        let place = class["namespace"].as_str();
        let place = place.map_or_else(|| text(&cluster["metadata"]["namespace"]), str::to_owned);
        class["name"] == name.as_str() && place == namespace
    };
    let users = referrers.into_iter().filter(|cluster| uses(cluster));
    let users = users.map(|it| {
        let metadata = &it["metadata"];
        format!(
            "{}/{}",
            text(&metadata["namespace"]),
            text(&metadata["name"])
        )
    });
    let users: Vec<String> = users.collect();
    if users.is_empty() {
        return Ok(());
    }
    let more = match users.len().checked_sub(NAMED) {
        None | Some(0) => String::new(),
        Some(more) => format!(" and {more} more"),
    };
    let named = users.iter().take(NAMED).map(String::as_str);
    Err(format!(
        "ClusterClass cannot be deleted because it is used by {} Cluster(s): {}{more}. Delete these first, or give them another class",
        users.len(),
        named.collect::<Vec<_>>().join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn class() -> Value {
        json!({"apiVersion": API_VERSION, "kind": "ClusterClass", "metadata": {"name": "quick", "namespace": "classes"}})
    }

    fn cluster(namespace: &str, name: &str, class: Value) -> Value {
        json!({"apiVersion": API_VERSION, "kind": "Cluster", "metadata": {"name": name, "namespace": namespace},
            "spec": {"topology": {"classRef": class}}})
    }

    #[test]
    fn a_class_can_be_deleted_while_no_cluster_of_any_namespace_refers_to_it() {
        let others = [
            cluster("classes", "a", json!({"name": "other"})),
            cluster("else", "b", json!({"name": "quick"})),
            json!({"apiVersion": API_VERSION, "kind": "Cluster", "metadata": {"name": "c", "namespace": "classes"}, "spec": {}}),
        ];
        assert_eq!(deletion(&class(), &others), Ok(()));
        let here = cluster("classes", "d", json!({"name": "quick"}));
        let there = cluster(
            "else",
            "e",
            json!({"name": "quick", "namespace": "classes"}),
        );
        for user in [&here, &there] {
            let error = deletion(&class(), others.iter().chain([user])).unwrap_err();
            assert!(error.contains("used by 1 Cluster(s): "), "{error}");
        }
        let many: Vec<Value> = (0..5)
            .map(|at| cluster("classes", &format!("c{at}"), json!({"name": "quick"})))
            .collect();
        let error = deletion(&class(), &many).unwrap_err();
        assert!(
            error.contains("classes/c0, classes/c1, classes/c2 and 2 more."),
            "{error}"
        );
    }

    #[test]
    fn other_kinds_can_be_deleted_whatever_refers_to_them() {
        assert!(referrers(&class()).is_some());
        assert_eq!(
            referrers(&cluster("a", "b", json!({"name": "quick"}))),
            None
        );
    }
}
