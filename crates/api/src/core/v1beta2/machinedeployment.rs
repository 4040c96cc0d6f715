use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector, Time};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Deprecated, MachineNaming, MachineSetDeletion, MachineTemplate, VersionCount};

/// Desired number of machines of one template, and the rollout of changes of the template.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[kube(
    group = "cluster.x-k8s.io",
    version = "v1beta2",
    kind = "MachineDeployment",
    doc = "A number of machines whose template can be changed and is then rolled out.",
    namespaced,
    status = "MachineDeploymentStatus",
    derive = "PartialEq",
    derive = "Default",
    shortname = "md",
    category = "cluster-api",
    label("cluster.x-k8s.io/provider", "cluster-api"),
    label("cluster.x-k8s.io/v1beta1", "v1beta1"),
    label("cluster.x-k8s.io/v1beta2", "v1beta2"),
    scale(
        spec_replicas_path = ".spec.replicas",
        status_replicas_path = ".status.replicas",
        label_selector_path = ".status.selector"
    ),
    printcolumn(name = "Cluster", type_ = "string", json_path = ".spec.clusterName"),
    printcolumn(
        name = "Available",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Available\")].status"
    ),
    printcolumn(name = "Desired", type_ = "integer", json_path = ".spec.replicas"),
    printcolumn(name = "Current", type_ = "integer", json_path = ".status.replicas"),
    printcolumn(name = "Ready", type_ = "integer", json_path = ".status.readyReplicas"),
    printcolumn(
        name = "Available",
        type_ = "integer",
        json_path = ".status.availableReplicas"
    ),
    printcolumn(
        name = "Up-to-date",
        type_ = "integer",
        json_path = ".status.upToDateReplicas"
    ),
    printcolumn(
        name = "Paused",
        type_ = "string",
        priority = 10,
        json_path = ".status.conditions[?(@.type==\"Paused\")].status"
    ),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    ),
    printcolumn(
        name = "Version",
        type_ = "string",
        json_path = ".spec.template.spec.version"
    )
)]
pub struct MachineDeploymentSpec {
    /// The Cluster that the machines belong to.
    #[schemars(length(min = 1, max = 63))]
    pub cluster_name: String,
    /// Number of machines; 1 when unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// Time and strategy of the rollout of a changed template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollout: Option<Rollout>,
    /// Selector of the machines of this object; the template's labels must match.
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    #[schemars(with = "crate::shape::LabelSelector")]
    pub selector: LabelSelector,
    /// The template of the machines.
    pub template: MachineTemplate,
    /// Template for the names of the machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine_naming: Option<MachineNaming>,
    /// Rules for the replacement of unhealthy machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remediation: Option<Remediation>,
    /// Order in which machines are deleted when there are too many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion: Option<MachineSetDeletion>,
    /// Pauses the rollout of changes of the template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
}

/// Time and strategy of the rollout of a changed template.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rollout {
    /// Machines created before this moment are replaced once it has passed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<crate::shape::Time>")]
    pub after: Option<Time>,
    /// Strategy for the replacement of machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategy: Option<RolloutStrategy>,
}

/// Strategy for the replacement of machines.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutStrategy {
    /// Initiator of the replacement.
    #[serde(rename = "type")]
    pub type_: RolloutType,
    /// Bounds of a rolling update.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rolling_update: Option<RollingUpdate>,
}

/// Initiator of the replacement of machines ([`RolloutStrategy::type_`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RolloutType {
    /// The controller, step by step.
    #[default]
    RollingUpdate,
    /// The user, by deleting machines.
    OnDelete,
}

/// Bounds of a rolling update: numbers, or percentages of the replicas ([`RolloutStrategy::rolling_update`]).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RollingUpdate {
    /// Maximum of missing machines: a number, or a percentage that rounds down. Default: 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<crate::shape::IntOrString>")]
    pub max_unavailable: Option<IntOrString>,
    /// Maximum of machines beyond the replicas: a number, or a percentage that rounds up. Default: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<crate::shape::IntOrString>")]
    pub max_surge: Option<IntOrString>,
}

/// Rules for the replacement of unhealthy machines.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Remediation {
    /// Maximum of machines that are replaced at a time: a number, or a percentage of the replicas.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<crate::shape::IntOrString>")]
    pub max_in_flight: Option<IntOrString>,
}

/// Observed state of a deployment of machines.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineDeploymentStatus {
    /// Observations, one a type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    #[schemars(with = "Vec<crate::shape::Condition>")]
    pub conditions: Vec<Condition>,
    /// Generation of the spec that this status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The selector as text, for the scale subresource.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 4096))]
    pub selector: Option<String>,
    /// Machines there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// Machines whose `Ready` is true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready_replicas: Option<i32>,
    /// Machines whose `Available` is true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub available_replicas: Option<i32>,
    /// Machines whose `UpToDate` is true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub up_to_date_replicas: Option<i32>,
    /// Versions that run now.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 100))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["version"]))]
    pub versions: Option<Vec<VersionCount>>,
    /// Phase in the life of the deployment, in one word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<MachineDeploymentPhase>,
    /// Fields of former versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<Deprecated>,
}

/// Phase in the life of a deployment of machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum MachineDeploymentPhase {
    /// Machines are missing.
    ScalingUp,
    /// There are too many machines.
    ScalingDown,
    /// All machines exist.
    Running,
    /// An administrator has to act.
    Failed,
    /// The phase cannot be determined.
    Unknown,
}

impl MachineDeployment {
    /// The desired number of machines.
    pub fn replicas(&self) -> i32 {
        self.spec.replicas.unwrap_or(1)
    }

    /// True if the deployment is being deleted.
    pub fn is_deleting(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// The conditions of the status.
    pub fn conditions(&self) -> &[Condition] {
        self.status
            .as_ref()
            .map_or(&[], |status| &status.conditions)
    }
}
