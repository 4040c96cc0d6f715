//! Variables of every class: `builtin.cluster`, `builtin.controlPlane` and `builtin.machineDeployment`.

use std::collections::BTreeMap;

use api::core::v1beta2::{Cluster, NetworkRanges};
use api::kube::ResourceExt;
use serde_json::{Value, json};

/// Fields of all builtin variables, for reference by patches.
pub const PATHS: [&str; 27] = [
    "builtin.cluster.name",
    "builtin.cluster.namespace",
    "builtin.cluster.uid",
    "builtin.cluster.metadata.labels",
    "builtin.cluster.metadata.annotations",
    "builtin.cluster.topology.version",
    "builtin.cluster.topology.class",
    "builtin.cluster.topology.classNamespace",
    "builtin.cluster.network.serviceDomain",
    "builtin.cluster.network.services",
    "builtin.cluster.network.pods",
    "builtin.cluster.network.ipFamily",
    "builtin.cluster.metadata",
    "builtin.cluster.topology",
    "builtin.cluster.network",
    "builtin.controlPlane.name",
    "builtin.controlPlane.version",
    "builtin.controlPlane.replicas",
    "builtin.controlPlane.metadata.labels",
    "builtin.controlPlane.metadata.annotations",
    "builtin.machineDeployment.name",
    "builtin.machineDeployment.version",
    "builtin.machineDeployment.class",
    "builtin.machineDeployment.topologyName",
    "builtin.machineDeployment.replicas",
    "builtin.machineDeployment.metadata.labels",
    "builtin.machineDeployment.metadata.annotations",
];
/// Builtin variables of upstream without support here: the names of templates, which depend on the content of the
/// templates.
pub const NAMES_OF_TEMPLATES: [&str; 3] = [
    "builtin.controlPlane.machineTemplate.infrastructureRef.name",
    "builtin.machineDeployment.bootstrap.configRef.name",
    "builtin.machineDeployment.infrastructureRef.name",
];

/// Labels and annotations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    pub annotations: BTreeMap<String, String>,
}

impl Metadata {
    fn json(&self) -> Value {
        without_empty(json!({ "labels": self.labels, "annotations": self.annotations }))
    }
}

/// Returns `builtin.cluster`; empty without a topology.
pub fn cluster(cluster: &Cluster) -> Value {
    let topology = cluster.spec.topology.as_ref();
    let namespace = cluster.namespace().unwrap_or_default();
    let class = topology.map(|topology| &topology.class_ref);
    let class_namespace = class.and_then(|class| class.namespace.clone());
    let network = cluster.spec.cluster_network.clone().unwrap_or_default();
    let ranges = |ranges: &Option<NetworkRanges>| {
        let ranges = ranges.as_ref();
        ranges
            .map(|ranges| ranges.cidr_blocks.clone())
            .unwrap_or_default()
    };
    let (services, pods) = (ranges(&network.services), ranges(&network.pods));
    without_empty(json!({
        "name": cluster.name_any(),
        "namespace": namespace,
        "uid": cluster.uid(),
        "metadata": { "labels": cluster.labels(), "annotations": cluster.annotations() },
        "topology": {
            "version": topology.map(|topology| &topology.version),
            "class": class.map(|class| &class.name),
            "classNamespace": class_namespace.unwrap_or_else(|| namespace.clone()),
        },
        "network": {
            "serviceDomain": network.service_domain,
            "ipFamily": family(&services, &pods),
            "services": services,
            "pods": pods,
        },
    }))
}

/// Returns `builtin.controlPlane`.
pub fn control_plane(
    name: &str,
    version: &str,
    replicas: Option<i32>,
    metadata: &Metadata,
) -> Value {
    without_empty(json!({
        "name": name,
        "version": version,
        "replicas": replicas,
        "metadata": metadata.json(),
    }))
}

/// Returns `builtin.machineDeployment` for the deployment `name` of this class and place in the topology.
pub fn machine_deployment(
    (name, class, topology_name): (&str, &str, &str),
    version: &str,
    replicas: Option<i32>,
    metadata: &Metadata,
) -> Value {
    without_empty(json!({
        "name": name,
        "class": class,
        "topologyName": topology_name,
        "version": version,
        "replicas": replicas,
        "metadata": metadata.json(),
    }))
}

/// Returns the IP family of Services and Pods, under upstream's names.
fn family(services: &[String], pods: &[String]) -> &'static str {
    let of = |ranges: &[String]| {
        let six = ranges.iter().filter(|range| range.contains(':')).count();
        match (ranges.len() - six, six) {
            (0, 0) => None,
            (_, 0) => Some("IPv4"),
            (0, _) => Some("IPv6"),
            _ => Some("DualStack"),
        }
    };
    match (of(services), of(pods)) {
        (None, None) => "IPv4",
        (Some(one), None) | (None, Some(one)) => one,
        (Some(services), Some(pods)) if services == pods => services,
        (Some("DualStack"), Some(_)) | (Some(_), Some("DualStack")) => "DualStack",
        _ => "Invalid",
    }
}

/// Removes nulls, and empty texts, lists and objects: variables without a value have none.
fn without_empty(value: Value) -> Value {
    let Value::Object(fields) = value else {
        return value;
    };
    let fields = fields
        .into_iter()
        .map(|(name, value)| (name, without_empty(value)));
    let has_value = |value: &Value| match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        _ => true,
    };
    Value::Object(fields.filter(|(_, value)| has_value(value)).collect())
}

#[cfg(test)]
mod tests;
