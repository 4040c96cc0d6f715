//! v1beta1 of the templates from which Cluster API makes OpenStackClusters and OpenStackMachines.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::cluster::{Condition, OpenStackClusterSpec};
use super::machine::OpenStackMachineSpec;
use crate::infra::schema;
use crate::infra::v1beta2::NodeInfo;

/// What an OpenStackClusterTemplate holds.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "infrastructure.cluster.x-k8s.io",
    version = "v1beta1",
    kind = "OpenStackClusterTemplate",
    plural = "openstackclustertemplates",
    shortname = "osct",
    category = "cluster-api",
    derive = "PartialEq",
    namespaced,
    doc = "What a ClusterClass makes OpenStackClusters from."
)]
pub struct OpenStackClusterTemplateSpec {
    /// The template.
    pub template: OpenStackClusterTemplateResource,
}

/// The OpenStackCluster to be made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OpenStackClusterTemplateResource {
    /// Its spec. Immutable.
    pub spec: OpenStackClusterSpec,
}

/// What an OpenStackMachineTemplate holds.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "infrastructure.cluster.x-k8s.io",
    version = "v1beta1",
    kind = "OpenStackMachineTemplate",
    plural = "openstackmachinetemplates",
    shortname = "osmt",
    category = "cluster-api",
    status = "OpenStackMachineTemplateStatus",
    derive = "PartialEq",
    namespaced,
    doc = "What OpenStackMachines are made from."
)]
pub struct OpenStackMachineTemplateSpec {
    /// The template.
    pub template: OpenStackMachineTemplateResource,
}

/// The OpenStackMachine to be made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OpenStackMachineTemplateResource {
    /// Its spec. Immutable but for the ports' allowed address pairs.
    pub spec: OpenStackMachineSpec,
}

/// What machines of a template will offer, for scaling up from zero.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OpenStackMachineTemplateStatus {
    /// What holds.
    #[schemars(schema_with = "schema::v1beta1_conditions")]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// Resources of one machine.
    #[schemars(schema_with = "schema::quantities")]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub capacity: BTreeMap<String, Quantity>,
    /// The node that one machine will be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_info: Option<NodeInfo>,
}
