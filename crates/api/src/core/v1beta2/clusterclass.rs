use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    ConditionGate, ControlPlaneHealthRemediation, Deprecated, HealthChecks, HealthRemediation,
    MachineDeletion, MachineDeploymentDeletionTopology, MachineTaint, RolloutStrategy,
    TemplateMeta, VersionedReference,
};

mod patch;
mod variable;

pub use patch::*;
pub use variable::*;

/// The templates of clusters, and how values of variables change them.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[kube(
    group = "cluster.x-k8s.io",
    version = "v1beta2",
    kind = "ClusterClass",
    plural = "clusterclasses",
    doc = "Templates from which the objects of a cluster are created.",
    namespaced,
    status = "ClusterClassStatus",
    derive = "PartialEq",
    derive = "Default",
    shortname = "cc",
    category = "cluster-api",
    label("cluster.x-k8s.io/provider", "cluster-api"),
    label("cluster.x-k8s.io/v1beta1", "v1beta1"),
    label("cluster.x-k8s.io/v1beta2", "v1beta2"),
    printcolumn(
        name = "Paused",
        type_ = "string",
        priority = 10,
        json_path = ".status.conditions[?(@.type==\"Paused\")].status"
    ),
    printcolumn(
        name = "Variables Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"VariablesReady\")].status"
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
pub struct ClusterClassSpec {
    /// Further conditions that `Available` of the Clusters takes into account.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["conditionType"]))]
    pub availability_gates: Option<Vec<ConditionGate>>,
    /// The template of the infrastructure of the cluster as a whole.
    pub infrastructure: InfrastructureClass,
    /// The templates of the control plane.
    pub control_plane: ControlPlaneClass,
    /// The templates of the worker machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minProperties" = 1))]
    pub workers: Option<WorkersClass>,
    /// Variables, whose values a Cluster has in its topology.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1000))]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub variables: Option<Vec<ClassVariable>>,
    /// Changes of the templates, applied in this order.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1000))]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub patches: Option<Vec<ClassPatch>>,
    /// Rules for the upgrade of Clusters.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minProperties" = 1))]
    pub upgrade: Option<ClassUpgrade>,
    /// The versions of Kubernetes that Clusters may have, ascending; an upgrade passes at least one of each minor.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 100), inner(length(min = 1, max = 256)))]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub kubernetes_versions: Option<Vec<String>>,
}

/// Rules for the upgrade of Clusters of a class ([`ClusterClassSpec::upgrade`]).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClassUpgrade {
    /// Decisions of a runtime extension.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minProperties" = 1))]
    pub external: Option<ExternalUpgrade>,
}

/// Decisions of a runtime extension about upgrades ([`ClassUpgrade::external`]).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExternalUpgrade {
    /// The extension that names the versions which an upgrade passes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub generate_upgrade_plan_extension: Option<String>,
}

/// Reference to a template, in [`ControlPlaneClass`] and [`MachineDeploymentClass`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClassTemplate {
    /// The template, in the namespace of the class.
    pub template_ref: VersionedReference,
}

/// Template for the names of objects, as in [`InfrastructureClass::naming`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClassNaming {
    /// A Go template over `.cluster.name`, `.random` and, of workers, `.machineDeployment.topologyName`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub template: Option<String>,
}

/// The template of the infrastructure of the cluster as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InfrastructureClass {
    /// The template, in the namespace of the class.
    pub template_ref: VersionedReference,
    /// Templates for the names of the objects.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minProperties" = 1))]
    pub naming: Option<ClassNaming>,
}

/// The templates of the control plane.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ControlPlaneClass {
    /// Labels and annotations of the control plane and its machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minProperties" = 1))]
    pub metadata: Option<TemplateMeta>,
    /// The template of the control plane, in the namespace of the class.
    pub template_ref: VersionedReference,
    /// The template of the machines; only for control planes that have machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine_infrastructure: Option<ClassTemplate>,
    /// Health checks of the machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minProperties" = 1))]
    pub health_check: Option<ControlPlaneHealthCheckClass>,
    /// Templates for the names of the objects.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minProperties" = 1))]
    pub naming: Option<ClassNaming>,
    /// Rules for the deletion of machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minProperties" = 1))]
    pub deletion: Option<MachineDeletion>,
    /// Taints of the machines' Nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["key", "effect"]))]
    pub taints: Option<Vec<MachineTaint>>,
    /// Further conditions that the machines' `Ready` takes into account.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["conditionType"]))]
    pub readiness_gates: Option<Vec<ConditionGate>>,
}

/// Health checks of the control plane machines of a class ([`ControlPlaneClass::health_check`]).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ControlPlaneHealthCheckClass {
    /// The criteria of an unhealthy machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minProperties" = 1))]
    pub checks: Option<HealthChecks>,
    /// Remediation of unhealthy machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minProperties" = 1))]
    pub remediation: Option<ControlPlaneHealthRemediation>,
}

/// Health checks of the worker machines of a class ([`MachineDeploymentClass::health_check`]).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HealthCheckClass {
    /// The criteria of an unhealthy machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minProperties" = 1))]
    pub checks: Option<HealthChecks>,
    /// Remediation of unhealthy machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minProperties" = 1))]
    pub remediation: Option<HealthRemediation>,
}

/// The templates of the worker machines.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkersClass {
    /// Classes of MachineDeployments.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 100))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["class"]))]
    pub machine_deployments: Option<Vec<MachineDeploymentClass>>,
    /// Classes of MachinePools.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 100))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["class"]))]
    pub machine_pools: Option<Vec<MachinePoolClass>>,
}

/// A class of MachineDeployments.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineDeploymentClass {
    /// Labels and annotations of the deployments and their machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minProperties" = 1))]
    pub metadata: Option<TemplateMeta>,
    /// The name of the class.
    #[schemars(length(min = 1, max = 256))]
    pub class: String,
    /// The template of what the machines run on their first boot.
    pub bootstrap: ClassTemplate,
    /// The template of the machines.
    pub infrastructure: ClassTemplate,
    /// Health checks of the machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minProperties" = 1))]
    pub health_check: Option<HealthCheckClass>,
    /// Failure domain for the machines, such as an availability zone.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub failure_domain: Option<String>,
    /// Templates for the names of the objects.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minProperties" = 1))]
    pub naming: Option<ClassNaming>,
    /// Rules for the deletion of machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minProperties" = 1))]
    pub deletion: Option<MachineDeploymentDeletionTopology>,
    /// Taints of the machines' Nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["key", "effect"]))]
    pub taints: Option<Vec<MachineTaint>>,
    /// Seconds for which a machine must be ready before it counts as available.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub min_ready_seconds: Option<i32>,
    /// Further conditions that the machines' `Ready` takes into account.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["conditionType"]))]
    pub readiness_gates: Option<Vec<ConditionGate>>,
    /// Rollout of changes to the machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minProperties" = 1))]
    pub rollout: Option<ClassRollout>,
}

/// Rollout of changes to the machines.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClassRollout {
    /// Strategy for the replacement of machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minProperties" = 1))]
    pub strategy: Option<RolloutStrategy>,
}

/// A class of MachinePools.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachinePoolClass {
    /// Labels and annotations of the pools.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minProperties" = 1))]
    pub metadata: Option<TemplateMeta>,
    /// The name of the class.
    #[schemars(length(min = 1, max = 256))]
    pub class: String,
    /// The template of what the machines run on their first boot.
    pub bootstrap: ClassTemplate,
    /// The template of the pool's machines.
    pub infrastructure: ClassTemplate,
    /// Failure domains that are allowed for the machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 100), inner(length(min = 1, max = 256)))]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub failure_domains: Option<Vec<String>>,
    /// Templates for the names of the objects.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minProperties" = 1))]
    pub naming: Option<ClassNaming>,
    /// Rules for the deletion of machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minProperties" = 1))]
    pub deletion: Option<MachineDeletion>,
    /// Taints of the machines' Nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["key", "effect"]))]
    pub taints: Option<Vec<MachineTaint>>,
    /// Seconds for which a machine must be ready before it counts as available.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub min_ready_seconds: Option<i32>,
}

/// Observed state of a class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterClassStatus {
    /// Observations, one a type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    #[schemars(with = "Vec<crate::shape::Condition>")]
    pub conditions: Vec<Condition>,
    /// The definitions of all variables, with where they come from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000))]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub variables: Vec<ClassStatusVariable>,
    /// Generation of the spec that this status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Fields of former versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<Deprecated>,
}

impl ClusterClass {
    /// [`MachineDeploymentClass`] by name.
    pub fn machine_deployment(&self, class: &str) -> Option<&MachineDeploymentClass> {
        let all = self.machine_deployments();
        all.iter().find(|known| known.class == class)
    }

    /// All [`MachineDeploymentClass`]es.
    pub fn machine_deployments(&self) -> &[MachineDeploymentClass] {
        let workers = self.spec.workers.as_ref();
        let all = workers.and_then(|workers| workers.machine_deployments.as_deref());
        all.unwrap_or_default()
    }

    /// Variables of the class.
    pub fn variables(&self) -> &[ClassVariable] {
        self.spec.variables.as_deref().unwrap_or_default()
    }

    /// Patches of the class, in order.
    pub fn patches(&self) -> &[ClassPatch] {
        self.spec.patches.as_deref().unwrap_or_default()
    }

    /// [`VersionedReference`]s to templates, each with the path of its field.
    pub fn templates(&self) -> Vec<(String, &VersionedReference)> {
        let spec = &self.spec;
        let mut all = vec![
            (
                "spec.infrastructure.templateRef".to_owned(),
                &spec.infrastructure.template_ref,
            ),
            (
                "spec.controlPlane.templateRef".to_owned(),
                &spec.control_plane.template_ref,
            ),
        ];
        if let Some(machines) = &spec.control_plane.machine_infrastructure {
            let path = "spec.controlPlane.machineInfrastructure.templateRef";
            all.push((path.to_owned(), &machines.template_ref));
        }
        for (at, class) in self.machine_deployments().iter().enumerate() {
            let path = format!("spec.workers.machineDeployments[{at}]");
            let bootstrap = format!("{path}.bootstrap.templateRef");
            all.push((bootstrap, &class.bootstrap.template_ref));
            let infrastructure = format!("{path}.infrastructure.templateRef");
            all.push((infrastructure, &class.infrastructure.template_ref));
        }
        all
    }
}
