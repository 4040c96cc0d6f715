//! [`KubeadmControlPlaneTemplate`]: template for the control planes of a ClusterClass.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{MachineNaming, Remediation, Rollout};
use crate::bootstrap::v1beta2::KubeadmConfigSpec;
use crate::core::v1beta2::{MachineDeletion, MachineTaint, TemplateMeta};

/// The template of the control planes of a ClusterClass.
#[derive(CustomResource, JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "controlplane.cluster.x-k8s.io",
    version = "v1beta2",
    kind = "KubeadmControlPlaneTemplate",
    plural = "kubeadmcontrolplanetemplates",
    namespaced,
    category = "cluster-api",
    derive = "PartialEq",
    doc = "The template of the control planes of a ClusterClass.",
    label("cluster.x-k8s.io/v1beta1", "v1beta1"),
    label("cluster.x-k8s.io/v1beta2", "v1beta2"),
    printcolumn(
        name = "ClusterClass",
        type_ = "string",
        description = "The ClusterClass that owns this template",
        json_path = r#".metadata.ownerReferences[?(@.kind=="ClusterClass")].name"#
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct KubeadmControlPlaneTemplateSpec {
    /// Template of each control plane.
    pub template: KubeadmControlPlaneTemplateResource,
}

/// Metadata and spec of a control plane created from a [`KubeadmControlPlaneTemplate`].
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct KubeadmControlPlaneTemplateResource {
    /// Labels and annotations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<TemplateMeta>,
    /// The spec, without what the Cluster's topology defines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<KubeadmControlPlaneTemplateResourceSpec>,
}

/// Spec of a control plane without replicas, version and infrastructure: these are set by the topology.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct KubeadmControlPlaneTemplateResourceSpec {
    /// Template of the machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_template: Option<TemplateMachineTemplate>,
    /// Bootstrap configuration of the machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minProperties" = 1))]
    pub kubeadm_config_spec: Option<KubeadmConfigSpec>,
    /// Strategy for the replacement of machines when the spec changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<Rollout>,
    /// Rules for the replacement of broken machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remediation: Option<Remediation>,
    /// Template for the names of machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_naming: Option<MachineNaming>,
}

/// Template for the machines of a templated control plane
/// ([`KubeadmControlPlaneTemplateResourceSpec::machine_template`]).
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct TemplateMachineTemplate {
    /// Labels and annotations of the machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<TemplateMeta>,
    /// The machines' spec.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<TemplateMachineSpec>,
}

/// Spec of the machines of a templated control plane ([`TemplateMachineTemplate::spec`]).
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct TemplateMachineSpec {
    /// Timeouts of the deletion, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion: Option<MachineDeletion>,
    /// Taints that Cluster API keeps on the Nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = 64),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["key", "effect"])
    )]
    pub taints: Vec<MachineTaint>,
}
