use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ApiEndpoint, ConditionGate, ContractReference, Deprecated, Topology, VersionCount};

/// Desired state of a workload cluster.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[kube(
    group = "cluster.x-k8s.io",
    version = "v1beta2",
    kind = "Cluster",
    doc = "A Kubernetes cluster that is managed as objects.",
    namespaced,
    status = "ClusterStatus",
    derive = "PartialEq",
    derive = "Default",
    shortname = "cl",
    category = "cluster-api",
    label("cluster.x-k8s.io/provider", "cluster-api"),
    label("cluster.x-k8s.io/v1beta1", "v1beta1"),
    label("cluster.x-k8s.io/v1beta2", "v1beta2"),
    printcolumn(
        name = "ClusterClass",
        type_ = "string",
        json_path = ".spec.topology.classRef.name"
    ),
    printcolumn(
        name = "Available",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Available\")].status"
    ),
    printcolumn(
        name = "CP Desired",
        type_ = "integer",
        json_path = ".status.controlPlane.desiredReplicas"
    ),
    printcolumn(
        name = "CP Current",
        type_ = "integer",
        priority = 10,
        json_path = ".status.controlPlane.replicas"
    ),
    printcolumn(
        name = "CP Ready",
        type_ = "integer",
        priority = 10,
        json_path = ".status.controlPlane.readyReplicas"
    ),
    printcolumn(
        name = "CP Available",
        type_ = "integer",
        json_path = ".status.controlPlane.availableReplicas"
    ),
    printcolumn(
        name = "CP Up-to-date",
        type_ = "integer",
        json_path = ".status.controlPlane.upToDateReplicas"
    ),
    printcolumn(
        name = "W Desired",
        type_ = "integer",
        json_path = ".status.workers.desiredReplicas"
    ),
    printcolumn(
        name = "W Current",
        type_ = "integer",
        priority = 10,
        json_path = ".status.workers.replicas"
    ),
    printcolumn(
        name = "W Ready",
        type_ = "integer",
        priority = 10,
        json_path = ".status.workers.readyReplicas"
    ),
    printcolumn(
        name = "W Available",
        type_ = "integer",
        json_path = ".status.workers.availableReplicas"
    ),
    printcolumn(
        name = "W Up-to-date",
        type_ = "integer",
        json_path = ".status.workers.upToDateReplicas"
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
        json_path = ".spec.topology.version"
    )
)]
pub struct ClusterSpec {
    /// Pauses the controllers for the cluster and everything that belongs to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
    /// Addresses inside the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_network: Option<ClusterNetwork>,
    /// Address and port of the cluster's API server; set by the infrastructure provider unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control_plane_endpoint: Option<ApiEndpoint>,
    /// The control plane, such as a KubeadmControlPlane.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control_plane_ref: Option<ContractReference>,
    /// The infrastructure of the cluster as a whole, such as an OpenStackCluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub infrastructure_ref: Option<ContractReference>,
    /// A description of the cluster that a ClusterClass turns into objects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topology: Option<Topology>,
    /// Further conditions that `Available` takes into account.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["conditionType"]))]
    pub availability_gates: Option<Vec<ConditionGate>>,
}

/// Addresses inside a cluster ([`ClusterSpec::cluster_network`]).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterNetwork {
    /// Port that the API server binds; 6443 when unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65535))]
    pub api_server_port: Option<i32>,
    /// Addresses of Services.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub services: Option<NetworkRanges>,
    /// Addresses of Pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pods: Option<NetworkRanges>,
    /// Domain name of Services; `cluster.local` when unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub service_domain: Option<String>,
}

/// Ranges of addresses, for Services and for Pods of a [`ClusterNetwork`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkRanges {
    /// The ranges in CIDR notation, at most one an address family.
    #[schemars(length(min = 1, max = 100), inner(length(min = 1, max = 43)))]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub cidr_blocks: Vec<String>,
}

/// Observed state of a workload cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterStatus {
    /// Observations, one a type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    #[schemars(with = "Vec<crate::shape::Condition>")]
    pub conditions: Vec<Condition>,
    /// Steps of the first provisioning; a step that is done stays done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initialization: Option<ClusterInitialization>,
    /// Control plane machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control_plane: Option<ClusterControlPlaneStatus>,
    /// Worker machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workers: Option<WorkersStatus>,
    /// Failure domains for machines, as reported by the infrastructure provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 100))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub failure_domains: Option<Vec<FailureDomain>>,
    /// Phase in the life of the cluster, in one word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<ClusterPhase>,
    /// Generation of the spec that this status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Fields of former versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<Deprecated>,
}

/// Steps of a cluster's first provisioning ([`ClusterStatus::initialization`]).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterInitialization {
    /// True once the infrastructure provider has finished.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub infrastructure_provisioned: Option<bool>,
    /// True once the control plane has answered requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control_plane_initialized: Option<bool>,
}

/// Counters of control plane machines ([`ClusterStatus::control_plane`]).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterControlPlaneStatus {
    /// Machines wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub desired_replicas: Option<i32>,
    /// Machines there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// Machines whose `UpToDate` is true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub up_to_date_replicas: Option<i32>,
    /// Machines whose `Ready` is true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready_replicas: Option<i32>,
    /// Machines whose `Available` is true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub available_replicas: Option<i32>,
    /// Versions that run now, oldest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32))]
    pub versions: Option<Vec<VersionCount>>,
    /// Versions that an upgrade will pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32))]
    pub upgrade_plan: Option<Vec<UpgradeStep>>,
}

/// Counters of worker machines ([`ClusterStatus::workers`]).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkersStatus {
    /// Machines wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub desired_replicas: Option<i32>,
    /// Machines there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// Machines whose `UpToDate` is true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub up_to_date_replicas: Option<i32>,
    /// Machines whose `Ready` is true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready_replicas: Option<i32>,
    /// Machines whose `Available` is true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub available_replicas: Option<i32>,
    /// Versions that run now, oldest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32))]
    pub versions: Option<Vec<VersionCount>>,
    /// Versions that an upgrade will pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32))]
    pub upgrade_plan: Option<Vec<UpgradeStep>>,
}

/// One version that an upgrade will pass.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpgradeStep {
    /// Version of Kubernetes.
    #[schemars(length(min = 1, max = 256))]
    pub version: String,
}

/// A place where machines can be put, such as an availability zone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailureDomain {
    /// Name of the place.
    #[schemars(length(min = 1, max = 256))]
    pub name: String,
    /// Allows control plane machines in the failure domain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control_plane: Option<bool>,
    /// Further attributes of the failure domain, as reported by the provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attributes: Option<BTreeMap<String, String>>,
}

/// Phase in the life of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ClusterPhase {
    /// Nothing is referenced yet.
    Pending,
    /// The infrastructure is being provisioned.
    Provisioning,
    /// Infrastructure and endpoint exist.
    Provisioned,
    /// The cluster is being deleted.
    Deleting,
    /// An administrator has to act.
    Failed,
    /// The phase cannot be determined.
    Unknown,
}

impl Cluster {
    /// True if reconciliation of the whole cluster is paused.
    pub fn is_paused(&self) -> bool {
        self.spec.paused == Some(true)
    }

    /// True once the infrastructure has been provisioned.
    pub fn infrastructure_provisioned(&self) -> bool {
        self.initialization(|steps| steps.infrastructure_provisioned)
    }

    /// True once the control plane has served requests.
    pub fn control_plane_initialized(&self) -> bool {
        self.initialization(|steps| steps.control_plane_initialized)
    }

    /// Host and port of the endpoint, if both are set.
    pub fn endpoint(&self) -> Option<(&str, i32)> {
        let endpoint = self
            .spec
            .control_plane_endpoint
            .as_ref()
            .filter(|e| e.is_complete())?;
        Some((endpoint.host.as_deref()?, endpoint.port?))
    }

    /// The conditions of the status.
    pub fn conditions(&self) -> &[Condition] {
        self.status
            .as_ref()
            .map_or(&[], |status| &status.conditions)
    }

    fn initialization(&self, step: impl Fn(&ClusterInitialization) -> Option<bool>) -> bool {
        let status = self.status.as_ref();
        status
            .and_then(|status| status.initialization.as_ref())
            .and_then(step)
            == Some(true)
    }
}
