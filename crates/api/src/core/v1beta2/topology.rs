use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    ConditionGate, DeletionOrder, MachineDeletion, MachineTaint, Rollout, RolloutAfter,
    TemplateMeta,
};

/// Cluster in terms of a ClusterClass.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Topology {
    /// The ClusterClass.
    pub class_ref: ClassReference,
    /// Version of Kubernetes.
    #[schemars(length(min = 1, max = 256))]
    pub version: String,
    /// The control plane.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control_plane: Option<ControlPlaneTopology>,
    /// The worker machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workers: Option<WorkersTopology>,
    /// Values of the class's variables.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1000))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub variables: Option<Vec<Variable>>,
}

/// Reference to a ClusterClass ([`Topology::class_ref`]).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClassReference {
    /// Name of the class.
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
    )]
    pub name: String,
    /// Namespace of the class; the Cluster's when unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 63),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
    )]
    pub namespace: Option<String>,
}

/// Control plane in terms of a ClusterClass ([`Topology::control_plane`]).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ControlPlaneTopology {
    /// Labels and annotations of the control plane and its machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<TemplateMeta>,
    /// Number of machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// Conditions under which machines are replaced without a change of the spec.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollout: Option<RolloutAfter>,
    /// Health checks of the machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health_check: Option<ControlPlaneHealthCheckTopology>,
    /// Rules for the deletion of machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion: Option<MachineDeletion>,
    /// Further conditions that the machines' `Ready` takes into account.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["conditionType"]))]
    pub readiness_gates: Option<Vec<ConditionGate>>,
    /// Taints of the machines' Nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["key", "effect"]))]
    pub taints: Option<Vec<MachineTaint>>,
    /// Values of variables for the control plane alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variables: Option<VariableOverrides>,
}

/// Worker machines in terms of a ClusterClass ([`Topology::workers`]).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkersTopology {
    /// MachineDeployments.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 2000))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub machine_deployments: Option<Vec<MachineDeploymentTopology>>,
    /// MachinePools.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 2000))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub machine_pools: Option<Vec<MachinePoolTopology>>,
}

/// One MachineDeployment of a topology.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineDeploymentTopology {
    /// Labels and annotations of the deployment and its machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<TemplateMeta>,
    /// Class of the deployment.
    #[schemars(length(min = 1, max = 256))]
    pub class: String,
    /// Name of the deployment within the topology.
    #[schemars(
        length(min = 1, max = 63),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
    )]
    pub name: String,
    /// Failure domain for the machines, such as an availability zone.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub failure_domain: Option<String>,
    /// Number of machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// Health checks of the machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health_check: Option<HealthCheckTopology>,
    /// Rules for the deletion of machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion: Option<MachineDeploymentDeletionTopology>,
    /// Seconds for which a machine must be ready before it counts as available.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub min_ready_seconds: Option<i32>,
    /// Further conditions that the machines' `Ready` takes into account.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["conditionType"]))]
    pub readiness_gates: Option<Vec<ConditionGate>>,
    /// Time and strategy of the rollout of changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollout: Option<Rollout>,
    /// Taints of the machines' Nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["key", "effect"]))]
    pub taints: Option<Vec<MachineTaint>>,
    /// Values of variables for this deployment alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variables: Option<VariableOverrides>,
}

/// Rules for the deletion of the machines of a deployment ([`MachineDeploymentTopology::deletion`]).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineDeploymentDeletionTopology {
    /// Order in which machines are deleted when there are too many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<DeletionOrder>,
    /// Seconds that draining may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub node_drain_timeout_seconds: Option<i32>,
    /// Seconds that detaching volumes may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub node_volume_detach_timeout_seconds: Option<i32>,
    /// Seconds for which deleting the Node is tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub node_deletion_timeout_seconds: Option<i32>,
}

/// One MachinePool of a topology.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachinePoolTopology {
    /// Labels and annotations of the pool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<TemplateMeta>,
    /// Class of the pool.
    #[schemars(length(min = 1, max = 256))]
    pub class: String,
    /// Name of the pool within the topology.
    #[schemars(
        length(min = 1, max = 63),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
    )]
    pub name: String,
    /// Failure domains that are allowed for the machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 100), inner(length(min = 1, max = 256)))]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub failure_domains: Option<Vec<String>>,
    /// Rules for the deletion of machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion: Option<MachineDeletion>,
    /// Seconds for which a machine must be ready before it counts as available.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub min_ready_seconds: Option<i32>,
    /// Number of machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// Taints of the machines' Nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["key", "effect"]))]
    pub taints: Option<Vec<MachineTaint>>,
    /// Values of variables for this pool alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variables: Option<VariableOverrides>,
}

/// Health checks of control plane machines in a topology ([`ControlPlaneTopology::health_check`]).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ControlPlaneHealthCheckTopology {
    /// Enables the health check. Default: as the class has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// The criteria of an unhealthy machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checks: Option<HealthChecks>,
    /// Remediation of unhealthy machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remediation: Option<ControlPlaneHealthRemediation>,
}

/// Remediation of unhealthy control plane machines, one at a time ([`ControlPlaneHealthCheckTopology::remediation`]).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ControlPlaneHealthRemediation {
    /// Under which circumstances machines are replaced at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trigger_if: Option<RemediationTrigger>,
    /// A template of an object that replaces the machine instead of its owner.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template_ref: Option<VersionedReference>,
}

/// Health checks of worker machines in a topology ([`MachineDeploymentTopology::health_check`]).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HealthCheckTopology {
    /// Enables the health check. Default: as the class has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// The criteria of an unhealthy machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checks: Option<HealthChecks>,
    /// Remediation of unhealthy machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remediation: Option<HealthRemediation>,
}

/// The criteria of an unhealthy machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HealthChecks {
    /// Seconds within which a Node must appear.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub node_startup_timeout_seconds: Option<i32>,
    /// Conditions of the Node.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 100))]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub unhealthy_node_conditions: Option<Vec<UnhealthyCondition>>,
    /// Conditions of the Machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 100))]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub unhealthy_machine_conditions: Option<Vec<UnhealthyMachineCondition>>,
}

/// A condition of a Machine that makes it unhealthy when it lasts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnhealthyMachineCondition {
    /// Type of the condition; none of those that health checks themselves decide.
    #[serde(rename = "type")]
    #[schemars(length(min = 1, max = 316))]
    #[schemars(regex(
        pattern = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
    ))]
    #[schemars(extend("x-kubernetes-validations" = [{
        "rule": "!(self in ['Ready','Available','HealthCheckSucceeded','OwnerRemediated','ExternallyRemediated'])",
        "message": "type must not be one of: Ready, Available, HealthCheckSucceeded, OwnerRemediated, ExternallyRemediated",
    }]))]
    pub type_: String,
    /// Status of the condition.
    pub status: UnhealthyStatus,
    /// Seconds that it must have lasted.
    #[schemars(range(min = 0))]
    pub timeout_seconds: i32,
}

/// Status of an [`UnhealthyMachineCondition`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum UnhealthyStatus {
    /// The condition is true.
    True,
    /// The condition is false.
    False,
    /// The status is unknown.
    Unknown,
}

impl UnhealthyStatus {
    /// The value in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            UnhealthyStatus::True => "True",
            UnhealthyStatus::False => "False",
            UnhealthyStatus::Unknown => "Unknown",
        }
    }
}

/// A condition of a Node that makes its machine unhealthy when it lasts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnhealthyCondition {
    /// Type of the condition.
    #[serde(rename = "type")]
    #[schemars(length(min = 1))]
    pub type_: String,
    /// Status of the condition.
    #[schemars(length(min = 1))]
    pub status: String,
    /// Seconds that it must have lasted.
    #[schemars(range(min = 0))]
    pub timeout_seconds: i32,
}

/// Remediation of unhealthy machines.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HealthRemediation {
    /// Maximum number of machines that are replaced at a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<crate::shape::IntOrString>")]
    pub max_in_flight: Option<IntOrString>,
    /// Under which circumstances machines are replaced at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trigger_if: Option<RemediationTrigger>,
    /// A template of an object that replaces the machine instead of its owner.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template_ref: Option<VersionedReference>,
}

/// Under which circumstances machines are replaced at all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RemediationTrigger {
    /// At most this many machines are unhealthy.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<crate::shape::IntOrString>")]
    pub unhealthy_less_than_or_equal_to: Option<IntOrString>,
    /// The number of unhealthy machines lies in this range, such as `[3-5]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32), regex(pattern = r"^\[[0-9]+-[0-9]+\]$"))]
    pub unhealthy_in_range: Option<String>,
}

/// Reference to an object in the same namespace, including the version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VersionedReference {
    /// Group and version.
    #[schemars(length(min = 1, max = 317))]
    #[schemars(regex(
        pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\/[a-z]([-a-z0-9]*[a-z0-9])?$"
    ))]
    pub api_version: String,
    /// Kind.
    #[schemars(length(min = 1, max = 63))]
    #[schemars(regex(pattern = r"^[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?$"))]
    pub kind: String,
    /// Name.
    #[schemars(length(min = 1, max = 253))]
    #[schemars(regex(
        pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
    ))]
    pub name: String,
}

/// Values of variables for one part of a topology, as in [`ControlPlaneTopology::variables`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VariableOverrides {
    /// The values.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1000))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub overrides: Option<Vec<Variable>>,
}

/// The value of one variable.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Variable {
    /// Name of the variable.
    #[schemars(length(min = 1, max = 256))]
    pub name: String,
    /// Value of the variable, of the type that the class declares.
    #[schemars(schema_with = "anything")]
    pub value: Value,
}

/// Schema for any value.
pub(super) fn anything(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "x-kubernetes-preserve-unknown-fields": true })
}
