//! Objects of the management API kept by `up`: the CRDs and the inventory written at each start. Programs for
//! providers, such as clusterctl, would replace or delete such objects under the controllers of `up`.

use std::sync::{Arc, LazyLock};

use apiserver::Kept;
use kube::ResourceExt as _;
use serde_json::Value;

use installer::names::NAMESPACE;

/// Names of the built-in CRDs.
static DEFINITIONS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let definitions = ::management::definitions();
    definitions.iter().map(|it| it.name_any()).collect()
});

/// Reasons why no other client may change or delete an object.
pub(super) fn kept() -> Kept {
    Arc::new(|new, old| is_ours(old).then(|| reason(new, old)).flatten())
}

fn is_ours(object: &Value) -> bool {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let is_inside = object["metadata"]["namespace"] == NAMESPACE;
    match object["kind"].as_str().unwrap_or_default() {
        "CustomResourceDefinition" => DEFINITIONS.iter().any(|known| known == name),
        "Provider" => is_inside && object["apiVersion"] == ::api::inventory::API_VERSION,
        "Namespace" => name == NAMESPACE,
        _ => false,
    }
}

/// Reason against a change; metadata may change: labels and annotations are everybody's.
fn reason(new: Option<&Value>, old: &Value) -> Option<String> {
    let content = |object: &Value| {
        let fields = ["spec", "providerName", "type", "version"];
        fields.map(|field| object[field].clone())
    };
    let verb = match new {
        None => "deleted",
        Some(new) if content(new) != content(old) => "changed",
        Some(_) => return None,
    };
    Some(format!(
        "it is not {verb}: `ferrostack up` keeps it, since the providers are parts of the program. Another version of the program upgrades \
         them, and `ferrostack delete cluster` deletes a cluster"
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_up_writes_is_kept() {
        let kept = kept();
        let definition = |name: &str, scope: &str| json!({"kind": "CustomResourceDefinition", "metadata": {"name": name}, "spec": {"scope": scope}});
        let ours = definition("clusters.cluster.x-k8s.io", "Namespaced");
        assert!(
            kept(None, &ours)
                .unwrap()
                .starts_with("it is not deleted: ")
        );
        let changed = definition("clusters.cluster.x-k8s.io", "Cluster");
        assert!(
            kept(Some(&changed), &ours)
                .unwrap()
                .starts_with("it is not changed: ")
        );
        let mut labelled = ours.clone();
        labelled["metadata"]["labels"] = json!({"a": "b"});
        assert_eq!(kept(Some(&labelled), &ours), None);
        assert_eq!(
            kept(None, &definition("others.example.org", "Namespaced")),
            None
        );
        let provider = |namespace: &str| json!({"apiVersion": ::api::inventory::API_VERSION, "kind": "Provider", "metadata": {"name": "x", "namespace": namespace}});
        assert!(kept(None, &provider(NAMESPACE)).is_some());
        assert_eq!(kept(None, &provider("default")), None);
        let namespace = |name: &str| json!({"kind": "Namespace", "metadata": {"name": name}});
        assert!(kept(None, &namespace(NAMESPACE)).is_some());
        assert_eq!(kept(None, &namespace("default")), None);
    }
}
