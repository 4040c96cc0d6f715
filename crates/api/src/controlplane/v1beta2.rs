//! [`KubeadmControlPlane`] and [`KubeadmControlPlaneTemplate`], version v1beta2.
//!
//! Names and types of Cluster API 1.15.

mod status;
mod template;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bootstrap::v1beta2::KubeadmConfigSpec;
use crate::core::v1beta2::{
    ConditionGate, ContractReference, MachineDeletion, MachineTaint, TemplateMeta,
};

pub use status::*;
pub use template::*;

/// The control plane machines of a cluster, managed with kubeadm.
#[derive(CustomResource, JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "controlplane.cluster.x-k8s.io",
    version = "v1beta2",
    kind = "KubeadmControlPlane",
    plural = "kubeadmcontrolplanes",
    shortname = "kcp",
    namespaced,
    status = "KubeadmControlPlaneStatus",
    category = "cluster-api",
    derive = "PartialEq",
    doc = "The control plane machines of a cluster, managed with kubeadm.",
    label("cluster.x-k8s.io/v1beta1", "v1beta1"),
    label("cluster.x-k8s.io/v1beta2", "v1beta2"),
    scale(
        spec_replicas_path = ".spec.replicas",
        status_replicas_path = ".status.replicas",
        label_selector_path = ".status.selector"
    ),
    printcolumn(
        name = "Cluster",
        type_ = "string",
        description = "The cluster",
        json_path = r".metadata.labels['cluster\.x-k8s\.io/cluster-name']"
    ),
    printcolumn(
        name = "Available",
        type_ = "string",
        description = "Availability of the control plane",
        json_path = r#".status.conditions[?(@.type=="Available")].status"#
    ),
    printcolumn(
        name = "Desired",
        type_ = "integer",
        description = "Desired number of machines",
        json_path = ".spec.replicas"
    ),
    printcolumn(
        name = "Current",
        type_ = "integer",
        description = "Number of machines that exist",
        json_path = ".status.replicas"
    ),
    printcolumn(
        name = "Ready",
        type_ = "integer",
        description = "Number of ready machines",
        json_path = ".status.readyReplicas"
    ),
    printcolumn(
        name = "Available",
        type_ = "integer",
        description = "Number of available machines",
        json_path = ".status.availableReplicas"
    ),
    printcolumn(
        name = "Up-to-date",
        type_ = "integer",
        description = "Number of machines that match the spec",
        json_path = ".status.upToDateReplicas"
    ),
    printcolumn(
        name = "Paused",
        type_ = "string",
        description = "True if reconciliation is paused",
        json_path = r#".status.conditions[?(@.type=="Paused")].status"#,
        priority = 10
    ),
    printcolumn(
        name = "Initialized",
        type_ = "boolean",
        description = "True once the first machine runs an API server",
        json_path = ".status.initialization.controlPlaneInitialized"
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    ),
    printcolumn(
        name = "Version",
        type_ = "string",
        description = "The Kubernetes version",
        json_path = ".spec.version"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct KubeadmControlPlaneSpec {
    /// Number of machines: an odd number, unless etcd is external. Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// The Kubernetes version, as `v1.34.2`.
    #[schemars(length(min = 1, max = 256))]
    pub version: String,
    /// Template of the machines.
    pub machine_template: ControlPlaneMachineTemplate,
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

/// Template for the machines of a control plane ([`KubeadmControlPlaneSpec::machine_template`]).
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ControlPlaneMachineTemplate {
    /// Labels and annotations of the machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<TemplateMeta>,
    /// The machines' spec.
    pub spec: ControlPlaneMachineSpec,
}

/// Spec of control plane machines ([`ControlPlaneMachineTemplate::spec`]).
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ControlPlaneMachineSpec {
    /// The template of their infrastructure.
    pub infrastructure_ref: ContractReference,
    /// Further conditions that a machine's `Ready` waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = 32),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["conditionType"])
    )]
    pub readiness_gates: Vec<ConditionGate>,
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

/// Strategy for the replacement of machines when the spec changes.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct Rollout {
    /// Further criteria of an outdated machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<RolloutBefore>,
    /// Machines created before this time are outdated once it has passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<crate::shape::Time>")]
    pub after: Option<Time>,
    /// In which order machines are created and deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<RolloutStrategy>,
}

/// Further criteria of an outdated machine.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct RolloutBefore {
    /// Days before the expiry of the API server certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 7))]
    pub certificates_expiry_days: Option<i32>,
}

/// Order of creation and deletion of machines during a rollout ([`Rollout::strategy`]).
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct RolloutStrategy {
    /// The strategy.
    #[serde(rename = "type")]
    pub type_: RolloutType,
    /// Settings of `RollingUpdate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rolling_update: Option<RollingUpdate>,
}

/// Strategy of a rollout ([`RolloutStrategy::type_`]).
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum RolloutType {
    /// One machine after the other.
    #[default]
    RollingUpdate,
}

/// Settings of `RollingUpdate`.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct RollingUpdate {
    /// Maximum number of machines beyond `replicas`: 0 or 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<crate::shape::IntOrString>")]
    pub max_surge: Option<IntOrString>,
}

/// Rules for the replacement of broken machines.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct Remediation {
    /// Maximum number of attempts in a row. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_retry: Option<i32>,
    /// The pause between tries, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub retry_period_seconds: Option<i32>,
    /// After how many seconds without a failure the count starts again; 3600 when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub min_healthy_period_seconds: Option<i32>,
}

/// Template for the names of machines.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[schemars(extend("minProperties" = 1))]
pub struct MachineNaming {
    /// A template with `{{ .cluster.name }}`, `{{ .kubeadmControlPlane.name }}` and `{{ .random }}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub template: Option<String>,
}
