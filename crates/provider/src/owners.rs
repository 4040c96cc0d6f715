//! Namespaces and owners of objects.

use kube::ResourceExt;

/// The namespace of a namespaced object.
pub(crate) fn namespace<K: ResourceExt>(object: &K) -> String {
    object.namespace().unwrap_or_default()
}

/// The name of the owner of `kind` in the core API group of Cluster API.
pub(crate) fn owner<'a, K: ResourceExt>(object: &'a K, kind: &str) -> Option<&'a str> {
    object
        .owner_references()
        .iter()
        .find(|owner| owner.kind == kind && owner.api_version.starts_with("cluster.x-k8s.io/"))
        .map(|owner| owner.name.as_str())
}

/// Name of the Cluster of `object`: its owner, or the one in its label.
pub(crate) fn of_cluster<K: ResourceExt>(object: &K) -> Option<&str> {
    let label = object.labels().get(api::names::CLUSTER_NAME_LABEL);
    owner(object, "Cluster").or(label.map(String::as_str))
}
