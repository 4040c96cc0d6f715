//! The namespace of generated objects.

/// Kinds whose objects belong to no namespace.
const OF_THE_CLUSTER: [&str; 21] = [
    "APIService",
    "CertificateSigningRequest",
    "ClusterIssuer",
    "ClusterRole",
    "ClusterRoleBinding",
    "CSIDriver",
    "CSINode",
    "CustomResourceDefinition",
    "ExtensionConfig",
    "IngressClass",
    "MutatingWebhookConfiguration",
    "Namespace",
    "Node",
    "OpenStackClusterIdentity",
    "PersistentVolume",
    "PriorityClass",
    "RuntimeClass",
    "StorageClass",
    "ValidatingAdmissionPolicy",
    "ValidatingWebhookConfiguration",
    "VolumeAttachment",
];

/// Sets the namespace of every document with a namespaced object, as `clusterctl generate -n` does.
pub(super) fn set(name: &str, text: &str, namespace: &str) -> anyhow::Result<String> {
    let mut parts = Vec::new();
    for mut document in manifest::read(name, text)? {
        if !OF_THE_CLUSTER.contains(&document.text(&["kind"])) {
            document.value["metadata"]["namespace"] = namespace.into();
        }
        parts.push(serde_saphyr::to_string(&document.value)?);
    }
    Ok(parts.join("---\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_objects_that_have_a_namespace_get_one() {
        let text = "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n---\n\
                    apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1\nkind: OpenStackClusterIdentity\nmetadata: {name: b}\n";
        let text = set("f", text, "team").unwrap();
        let documents = manifest::read("f", &text).unwrap();
        assert_eq!(documents[0].text(&["metadata", "namespace"]), "team");
        assert_eq!(documents[1].text(&["metadata", "namespace"]), "");
    }
}
