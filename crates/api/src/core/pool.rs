//! Kind MachinePool, for clients such as `clusterctl describe cluster` with lists of MachinePools. No controller
//! reconciles the kind, and no object can be created. The schema is MachineDeployment's, with edits of differing
//! fields.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Map, Value, json};

use super::GROUP;
use crate::crds;
use crate::decode::decoded;

/// The kind.
pub const KIND: &str = "MachinePool";
/// Reason for the rejection of every MachinePool.
pub const NOT_BUILT: &str = "MachinePools are not built: use a MachineDeployment";

/// Fields of a MachineDeployment's spec without a place in a MachinePool.
const NOT_IN_SPEC: [&str; 6] = [
    "rollout",
    "selector",
    "machineNaming",
    "remediation",
    "deletion",
    "paused",
];

/// [`CustomResourceDefinition`] with v1beta2 alone; `None` without a definition of MachineDeployments.
#[must_use]
pub fn definition() -> Option<CustomResourceDefinition> {
    let mut all = crds::of(&[GROUP]).into_iter();
    let mut deployment = all.find(|it| it.spec.names.kind == "MachineDeployment")?;
    deployment
        .spec
        .versions
        .retain(|version| version.name == "v1beta2");
    let mut value = serde_json::to_value(deployment).ok()?;
    edit(&mut value);
    decoded(&value).ok()
}

fn edit(definition: &mut Value) {
    let metadata = &mut definition["metadata"];
    metadata["name"] = json!("machinepools.cluster.x-k8s.io");
    if let Some(labels) = metadata["labels"].as_object_mut() {
        labels.remove("cluster.x-k8s.io/v1beta1");
    }
    let names = &mut definition["spec"]["names"];
    names["kind"] = json!(KIND);
    names["plural"] = json!("machinepools");
    names["singular"] = json!("machinepool");
    names["shortNames"] = json!(["mp"]);
    let version = &mut definition["spec"]["versions"][0];
    if let Some(scale) = version["subresources"]["scale"].as_object_mut() {
        scale.remove("labelSelectorPath");
    }
    // The first of two columns with this name is for a condition that MachinePools lack.
    if let Some(columns) = version["additionalPrinterColumns"].as_array_mut() {
        columns.retain(|column| column["name"] != "Available" || column["type"] == "integer");
    }
    let root = &mut version["schema"]["openAPIV3Schema"];
    root["description"] = json!(NOT_BUILT);
    let spec = &mut root["properties"]["spec"];
    spec["description"] = json!("A number of machines that the infrastructure manages as one.");
    if let Some(required) = spec["required"].as_array_mut() {
        required.retain(|name| name != "selector");
    }
    if let Some(fields) = spec["properties"].as_object_mut() {
        edit_spec(fields);
    }
    if let Some(fields) = root["properties"]["status"]["properties"].as_object_mut() {
        edit_status(fields);
    }
}

fn edit_spec(fields: &mut Map<String, Value>) {
    fields.retain(|name, _| !NOT_IN_SPEC.contains(&name.as_str()));
    let texts = |most: u32, longest: u32, description: &str| {
        json!({
            "type": "array", "description": description, "maxItems": most, "x-kubernetes-list-type": "atomic",
            "items": { "type": "string", "minLength": 1, "maxLength": longest },
        })
    };
    fields.insert(
        "providerIDList".to_owned(),
        texts(10_000, 512, "The ids of the machines."),
    );
    fields.insert(
        "failureDomains".to_owned(),
        texts(100, 256, "The failure domains of the machines."),
    );
}

fn edit_status(fields: &mut Map<String, Value>) {
    fields.remove("selector");
    let text = || json!({ "type": "string" });
    fields.insert("phase".to_owned(), text());
    fields.insert(
        "initialization".to_owned(),
        json!({
            "type": "object", "description": "Milestones of the initialization, which are never taken back.", "minProperties": 1,
            "properties": {
                "infrastructureProvisioned": { "type": "boolean" },
                "bootstrapDataSecretCreated": { "type": "boolean" },
            },
        }),
    );
    let names = [
        "apiVersion",
        "fieldPath",
        "kind",
        "name",
        "namespace",
        "resourceVersion",
        "uid",
    ];
    let properties: Map<String, Value> = names
        .into_iter()
        .map(|name| (name.to_owned(), text()))
        .collect();
    fields.insert(
        "nodeRefs".to_owned(),
        json!({
            "type": "array", "description": "The Nodes of the machines.", "maxItems": 10_000,
            "x-kubernetes-list-type": "atomic",
            "items": { "type": "object", "properties": properties, "x-kubernetes-map-type": "atomic" },
        }),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_has_the_fields_of_upstream_and_the_labels_by_which_clients_find_it() {
        let definition = definition().unwrap();
        let labels = definition.metadata.labels.clone().unwrap_or_default();
        assert_eq!(labels["cluster.x-k8s.io/v1beta2"], "v1beta2");
        assert_eq!(labels[crate::names::PROVIDER_LABEL], "cluster-api");
        assert_eq!(labels.get("cluster.x-k8s.io/v1beta1"), None);
        let value = serde_json::to_value(&definition).unwrap();
        let version = &value["spec"]["versions"][0];
        let fields = |of: &str| {
            let all = &version["schema"]["openAPIV3Schema"]["properties"][of]["properties"];
            let names: Vec<String> = all.as_object().unwrap().keys().cloned().collect();
            names.join(" ")
        };
        assert_eq!(
            fields("spec"),
            "clusterName failureDomains providerIDList replicas template"
        );
        assert_eq!(
            fields("status"),
            "availableReplicas conditions deprecated initialization nodeRefs observedGeneration phase readyReplicas replicas upToDateReplicas versions"
        );
        assert_eq!(version["storage"], true);
        assert_eq!(value["spec"]["versions"].as_array().unwrap().len(), 1);
    }
}
