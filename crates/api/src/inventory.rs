//! Inventory of `clusterctl` in a management cluster: an object of the kind Provider for each [`Provider`].

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};

use crate::decode::decoded;
use crate::names::{CLUSTERCTL_LABEL, PROVIDER_LABEL};
use crate::providers::Provider;

/// Group and version of the kind.
pub const API_VERSION: &str = "clusterctl.cluster.x-k8s.io/v1alpha3";
/// Label of all parts of the inventory.
const CORE_LABEL: &str = "clusterctl.cluster.x-k8s.io/core";

/// [`CustomResourceDefinition`] of Provider, as created by `clusterctl init`. `None` never: the text is a valid
/// definition.
#[must_use]
pub fn definition() -> Option<CustomResourceDefinition> {
    let text = |description: &str| json!({ "type": "string", "description": description });
    let column = |name: &str, kind: &str, path: &str| json!({ "name": name, "type": kind, "jsonPath": path });
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": "providers.clusterctl.cluster.x-k8s.io",
            "labels": { CLUSTERCTL_LABEL: "", CORE_LABEL: "inventory" },
        },
        "spec": {
            "group": "clusterctl.cluster.x-k8s.io",
            "names": {
                "kind": "Provider", "listKind": "ProviderList", "plural": "providers", "singular": "provider",
                "categories": ["cluster-api"],
            },
            "scope": "Namespaced",
            "versions": [{
                "name": "v1alpha3", "served": true, "storage": true, "subresources": {},
                "additionalPrinterColumns": [
                    column("Age", "date", ".metadata.creationTimestamp"),
                    column("Type", "string", ".type"),
                    column("Provider", "string", ".providerName"),
                    column("Version", "string", ".version"),
                ],
                "schema": { "openAPIV3Schema": {
                    "type": "object",
                    "description": "A provider of this management cluster, for clusterctl.",
                    "properties": {
                        "apiVersion": text("Group and version."),
                        "kind": text("The kind."),
                        "metadata": { "type": "object" },
                        "providerName": text("Its name."),
                        "type": text("Its type."),
                        "version": text("The version of the provider whose API it has."),
                        "watchedNamespace": text("Without effect."),
                    },
                } },
            }],
        },
    });
    decoded(&definition).ok()
}

/// Objects in `namespace`, in the order of installation.
#[must_use]
pub fn providers(namespace: &str) -> Vec<Value> {
    let all = Provider::ALL.into_iter();
    all.map(|provider| provided(provider, namespace)).collect()
}

fn provided(provider: Provider, namespace: &str) -> Value {
    json!({
        "apiVersion": API_VERSION,
        "kind": "Provider",
        "metadata": {
            "name": provider.label(),
            "namespace": namespace,
            "labels": { CLUSTERCTL_LABEL: "", CORE_LABEL: "inventory", PROVIDER_LABEL: provider.label() },
        },
        "providerName": provider.name(),
        "type": type_of(provider),
        "version": provider.upstream(),
    })
}

/// Type in the spelling of clusterctl.
fn type_of(provider: Provider) -> &'static str {
    match provider {
        Provider::Core => "CoreProvider",
        Provider::Bootstrap => "BootstrapProvider",
        Provider::ControlPlane => "ControlPlaneProvider",
        Provider::Infrastructure => "InfrastructureProvider",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inventory_has_one_core_provider_and_each_other_once_as_clusterctl_names_them() {
        assert!(definition().is_some());
        let all = providers("ferrostack-system");
        let printed: Vec<String> = all
            .iter()
            .map(|it| {
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                format!(
                    "{} {} {}",
                    text(&it["metadata"]["name"]),
                    text(&it["type"]),
                    text(&it["providerName"])
                )
            })
            .collect();
        assert_eq!(
            printed,
            [
                "cluster-api CoreProvider cluster-api",
                "bootstrap-kubeadm BootstrapProvider kubeadm",
                "control-plane-kubeadm ControlPlaneProvider kubeadm",
                "infrastructure-openstack InfrastructureProvider openstack",
            ]
        );
    }
}
