//! Templates for OpenStackClusters and OpenStackMachines.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::cluster::OpenStackClusterSpec;
use super::machine::OpenStackMachineSpec;
use crate::infra::schema;

/// The spec of an OpenStackClusterTemplate.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "infrastructure.cluster.x-k8s.io",
    version = "v1beta2",
    kind = "OpenStackClusterTemplate",
    plural = "openstackclustertemplates",
    shortname = "osct",
    category = "cluster-api",
    derive = "PartialEq",
    namespaced,
    doc = "The template of OpenStackClusters for a ClusterClass."
)]
pub struct OpenStackClusterTemplateSpec {
    /// The template.
    pub template: OpenStackClusterTemplateResource,
}

/// OpenStackCluster to create ([`OpenStackClusterTemplateSpec::template`]).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OpenStackClusterTemplateResource {
    /// Labels and annotations of the OpenStackCluster. Mutable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<ObjectMeta>,
    /// Spec of the clusters. Immutable.
    pub spec: OpenStackClusterSpec,
}

/// Metadata for objects from a template ([`OpenStackClusterTemplateResource::metadata`]).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("minProperties" = 1))]
pub struct ObjectMeta {
    /// Labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

/// The spec of an OpenStackMachineTemplate.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "infrastructure.cluster.x-k8s.io",
    version = "v1beta2",
    kind = "OpenStackMachineTemplate",
    plural = "openstackmachinetemplates",
    shortname = "osmt",
    category = "cluster-api",
    status = "OpenStackMachineTemplateStatus",
    derive = "PartialEq",
    namespaced,
    doc = "The template of OpenStackMachines."
)]
pub struct OpenStackMachineTemplateSpec {
    /// The template.
    pub template: OpenStackMachineTemplateResource,
}

/// OpenStackMachine to create ([`OpenStackMachineTemplateSpec::template`]).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OpenStackMachineTemplateResource {
    /// Spec of the machines. Immutable but for the ports' allowed address pairs.
    pub spec: OpenStackMachineSpec,
}

/// The resources of a template's machines, for scaling up from zero.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OpenStackMachineTemplateStatus {
    /// The conditions of the object.
    #[schemars(schema_with = "schema::conditions")]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// Resources of one machine.
    #[schemars(schema_with = "schema::quantities")]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub capacity: BTreeMap<String, Quantity>,
    /// The node of one machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_info: Option<NodeInfo>,
}

/// Node of a machine ([`OpenStackMachineTemplateStatus::node_info`]).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("minProperties" = 1))]
#[serde(rename_all = "camelCase")]
pub struct NodeInfo {
    /// The operating system, such as `linux`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operating_system: Option<String>,
}
