//! Removed versions in templates, with their replacement.

use serde_json::Value;

const CORE: &str = "cluster.x-k8s.io";
const INFRASTRUCTURE: &str = "infrastructure.cluster.x-k8s.io";

/// Sentence about each removed version of Cluster API or the OpenStack provider.
pub(crate) fn notes(name: &str, text: &str) -> Vec<String> {
    // What is no YAML is reported by whoever reads it.
    let parts = manifest::parts(name, text).unwrap_or_default();
    let mut versions: Vec<(String, Vec<String>)> = Vec::new();
    for part in &parts {
        let text = |field: &str| part.value[field].as_str().unwrap_or_default().to_owned();
        let (version, kind) = (text("apiVersion"), text("kind"));
        if !is_gone(&version, &part.value) {
            continue;
        }
        match versions.iter_mut().find(|(known, _)| *known == version) {
            Some((_, kinds)) if kinds.contains(&kind) => {}
            Some((_, kinds)) => kinds.push(kind),
            None => versions.push((version, vec![kind])),
        }
    }
    let versions = versions.iter();
    versions
        .map(|(version, kinds)| format!("note: template {name}: {}", words(version, kinds)))
        .collect()
}

/// True for an alpha version of a kind with later ones.
fn is_gone(api_version: &str, object: &Value) -> bool {
    let Some((group, version)) = api_version.split_once('/') else {
        return false;
    };
    let alpha = version.strip_prefix("v1alpha");
    let alpha = alpha.and_then(|number| number.parse::<u32>().ok());
    let of_cluster_api = group == CORE || group.ends_with(".cluster.x-k8s.io");
    // Runtime extensions and identities of a cluster still have their first versions.
    of_cluster_api && object["kind"].is_string() && alpha.is_some_and(|number| number > 2)
}

fn words(version: &str, kinds: &[String]) -> String {
    let kinds = kinds.join(", ");
    let advice = match version.split('/').next() {
        Some(INFRASTRUCTURE) => {
            "cluster-api-provider-openstack has served it until release 0.11 at the latest. Take the template of a later release, or rewrite it as v1beta1: \
             identityRef in place of cloudName, image.filter.name in place of image, managedSubnets in place of nodeCidr, lists in place of \
             texts for tags (docs/book/src/topics/crd-changes of that project)"
        }
        _ => "Take a template of v1beta1 or v1beta2",
    };
    format!("{kinds} of {version} will be rejected: the version is not served any more. {advice}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_of_an_alpha_version_gets_a_hint_for_each_version() {
        let document = |version: &str, kind: &str| {
            format!("---\napiVersion: {version}\nkind: {kind}\nmetadata: {{name: a}}\n")
        };
        let text = [
            document(
                "infrastructure.cluster.x-k8s.io/v1alpha7",
                "OpenStackCluster",
            ),
            document(
                "infrastructure.cluster.x-k8s.io/v1alpha7",
                "OpenStackMachineTemplate",
            ),
            document(
                "infrastructure.cluster.x-k8s.io/v1alpha7",
                "OpenStackMachineTemplate",
            ),
            document("cluster.x-k8s.io/v1alpha4", "Cluster"),
            document(
                "infrastructure.cluster.x-k8s.io/v1beta1",
                "OpenStackMachine",
            ),
            document(
                "infrastructure.cluster.x-k8s.io/v1alpha1",
                "OpenStackServer",
            ),
            document("cluster.x-k8s.io/v1beta1", "Machine"),
            document("example.org/v1alpha7", "Other"),
        ];
        let found = notes("t.yaml", &text.concat());
        assert_eq!(found.len(), 2, "{found:?}");
        let start = "note: template t.yaml: OpenStackCluster, OpenStackMachineTemplate of infrastructure.cluster.x-k8s.io/v1alpha7 will be rejected";
        assert!(found[0].starts_with(start), "{found:?}");
        assert!(
            found[0].contains("identityRef in place of cloudName"),
            "{found:?}"
        );
        assert!(
            found[1].contains("Cluster of cluster.x-k8s.io/v1alpha4"),
            "{found:?}"
        );
        assert!(notes("t.yaml", "a: [").is_empty());
    }
}
