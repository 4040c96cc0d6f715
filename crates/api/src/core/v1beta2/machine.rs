use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ConditionGate, ContractReference, Deprecated, TemplateMeta};

/// Desired state of a machine.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[kube(
    group = "cluster.x-k8s.io",
    version = "v1beta2",
    kind = "Machine",
    doc = "A host that runs, or will run, one Node of a cluster.",
    namespaced,
    status = "MachineStatus",
    derive = "PartialEq",
    derive = "Default",
    shortname = "ma",
    category = "cluster-api",
    label("cluster.x-k8s.io/provider", "cluster-api"),
    label("cluster.x-k8s.io/v1beta1", "v1beta1"),
    label("cluster.x-k8s.io/v1beta2", "v1beta2"),
    printcolumn(name = "Cluster", type_ = "string", json_path = ".spec.clusterName"),
    printcolumn(
        name = "Node Name",
        type_ = "string",
        json_path = ".status.nodeRef.name"
    ),
    printcolumn(
        name = "Provider ID",
        type_ = "string",
        priority = 10,
        json_path = ".spec.providerID"
    ),
    printcolumn(
        name = "Failure domain",
        type_ = "string",
        json_path = ".status.failureDomain"
    ),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status"
    ),
    printcolumn(
        name = "Available",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Available\")].status"
    ),
    printcolumn(
        name = "Up-to-date",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"UpToDate\")].status"
    ),
    printcolumn(
        name = "Internal-IP",
        type_ = "string",
        priority = 10,
        json_path = ".status.addresses[?(@.type==\"InternalIP\")].address"
    ),
    printcolumn(
        name = "External-IP",
        type_ = "string",
        priority = 10,
        json_path = ".status.addresses[?(@.type==\"ExternalIP\")].address"
    ),
    printcolumn(
        name = "OS-Image",
        type_ = "string",
        priority = 10,
        json_path = ".status.nodeInfo.osImage"
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
    printcolumn(name = "Version", type_ = "string", json_path = ".spec.version")
)]
pub struct MachineSpec {
    /// The Cluster that the machine belongs to.
    #[schemars(length(min = 1, max = 63))]
    pub cluster_name: String,
    /// Source of the machine's first-boot data: a bootstrap configuration, or a Secret.
    pub bootstrap: Bootstrap,
    /// The infrastructure of the machine, such as an OpenStackMachine.
    pub infrastructure_ref: ContractReference,
    /// Version of Kubernetes on the machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub version: Option<String>,
    /// Identity of the machine at the cloud, the same text as in the Node's spec.
    #[serde(rename = "providerID", skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub provider_id: Option<String>,
    /// Failure domain for the machine, such as an availability zone.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub failure_domain: Option<String>,
    /// Seconds for which the machine must be ready before it counts as available.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub min_ready_seconds: Option<i32>,
    /// Further conditions that `Ready` takes into account.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["conditionType"]))]
    pub readiness_gates: Option<Vec<ConditionGate>>,
    /// Rules for the deletion of the machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion: Option<MachineDeletion>,
    /// Taints of the machine's Node.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["key", "effect"]))]
    pub taints: Option<Vec<MachineTaint>>,
}

/// Source of a machine's first-boot data ([`MachineSpec::bootstrap`]).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Bootstrap {
    /// The object whose controller generates the data, such as a KubeadmConfig.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_ref: Option<ContractReference>,
    /// The Secret that contains the data.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 0, max = 253))]
    pub data_secret_name: Option<String>,
}

/// Rules for the deletion of a machine, as in [`MachineSpec`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineDeletion {
    /// Seconds that draining may take; 0 or unset is without end.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub node_drain_timeout_seconds: Option<i32>,
    /// Seconds that detaching volumes may take; 0 or unset is without end.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub node_volume_detach_timeout_seconds: Option<i32>,
    /// Seconds for which deleting the Node is tried; 0 is without end, unset is 10.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub node_deletion_timeout_seconds: Option<i32>,
}

/// A taint of a machine's Node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineTaint {
    /// Key of the taint.
    #[schemars(length(min = 1, max = 317))]
    #[schemars(regex(
        pattern = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\/)?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$"
    ))]
    pub key: String,
    /// Value of the taint.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    #[schemars(regex(pattern = r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$"))]
    pub value: Option<String>,
    /// Effect on Pods that do not tolerate the taint, such as `NoSchedule`.
    pub effect: TaintEffect,
    /// Propagation of the taint: `Always` keeps it on the Node, `OnInitialization` sets it once.
    pub propagation: TaintPropagation,
}

/// Effect of a [`MachineTaint`] on Pods without a toleration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum TaintEffect {
    /// Pods are not scheduled.
    NoSchedule,
    /// Pods are scheduled only if there is no better place.
    PreferNoSchedule,
    /// Pods are evicted.
    NoExecute,
}

/// Propagation of a [`MachineTaint`] to the machine's Node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum TaintPropagation {
    /// The Node has the taint as long as the machine.
    Always,
    /// The taint is set once, on a new Node.
    OnInitialization,
}

/// Template for the machines of a MachineSet or MachineDeployment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineTemplate {
    /// Labels and annotations of the machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<TemplateMeta>,
    /// Spec of the machines; its references name templates.
    pub spec: MachineSpec,
}

/// Observed state of a machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineStatus {
    /// Observations, one a type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    #[schemars(with = "Vec<crate::shape::Condition>")]
    pub conditions: Vec<Condition>,
    /// Steps of the first provisioning; a step that is done stays done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initialization: Option<MachineInitialization>,
    /// The machine's Node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_ref: Option<NodeReference>,
    /// System information of the Node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_info: Option<NodeInfo>,
    /// Time of the last change of the status, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<crate::shape::Time>")]
    pub last_updated: Option<Time>,
    /// Failure domain in which the machine was placed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub failure_domain: Option<String>,
    /// Addresses of the machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub addresses: Option<Vec<MachineAddress>>,
    /// Phase in the life of the machine, in one word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<MachinePhase>,
    /// Time at which the first of the machine's certificates expires.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<crate::shape::Time>")]
    pub certificates_expiry_date: Option<Time>,
    /// Generation of the spec that this status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Progress of the deletion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion: Option<MachineDeletionStatus>,
    /// Fields of former versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<Deprecated>,
}

/// Steps of a machine's first provisioning ([`MachineStatus::initialization`]).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineInitialization {
    /// True once the infrastructure provider has finished.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub infrastructure_provisioned: Option<bool>,
    /// True once the Secret with the first-boot data exists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bootstrap_data_secret_created: Option<bool>,
}

/// Node of a machine ([`MachineStatus::node_ref`]).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeReference {
    /// Name of the Node.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// System information of a Node, as in `status.nodeInfo` of the Node ([`MachineStatus::node_info`]).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeInfo {
    /// Processor architecture.
    pub architecture: String,
    /// Identity of this boot.
    #[serde(rename = "bootID")]
    pub boot_id: String,
    /// Container runtime and its version.
    pub container_runtime_version: String,
    /// Version of the kernel.
    pub kernel_version: String,
    /// Version of kube-proxy (no longer filled in by Kubernetes).
    pub kube_proxy_version: String,
    /// Version of kubelet.
    pub kubelet_version: String,
    /// Identity of the machine, as in `/etc/machine-id`.
    #[serde(rename = "machineID")]
    pub machine_id: String,
    /// Operating system, such as `linux`.
    pub operating_system: String,
    /// Name of the operating system's image.
    pub os_image: String,
    /// The machine's UUID, as reported by its firmware.
    #[serde(rename = "systemUUID")]
    pub system_uuid: String,
    /// Swap of the machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub swap: Option<NodeSwap>,
}

/// Swap of a machine ([`NodeInfo::swap`]).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeSwap {
    /// Size in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity: Option<i64>,
}

/// One address of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineAddress {
    /// Type of the address, such as `InternalIP`.
    #[serde(rename = "type")]
    pub type_: MachineAddressType,
    /// The address itself.
    #[schemars(length(min = 1, max = 256))]
    pub address: String,
}

/// Type of a [`MachineAddress`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum MachineAddressType {
    /// The host name.
    Hostname,
    /// Address reachable from outside.
    ExternalIP,
    /// An address inside the cluster's network.
    InternalIP,
    /// Name resolvable from outside.
    ExternalDNS,
    /// A name inside the cluster's network.
    InternalDNS,
}

/// Progress of a machine's deletion ([`MachineStatus::deletion`]).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineDeletionStatus {
    /// Time at which draining began.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<crate::shape::Time>")]
    pub node_drain_start_time: Option<Time>,
    /// Time at which waiting for volumes to be detached began.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<crate::shape::Time>")]
    pub wait_for_node_volume_detach_start_time: Option<Time>,
    /// Time at which waiting for the hooks before the drain began.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<crate::shape::Time>")]
    pub wait_for_pre_drain_hook_start_time: Option<Time>,
    /// Time at which waiting for the hooks before the infrastructure's deletion began.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<crate::shape::Time>")]
    pub wait_for_pre_terminate_hook_start_time: Option<Time>,
}

/// Phase in the life of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum MachinePhase {
    /// First-boot data is missing.
    Pending,
    /// The infrastructure is being provisioned.
    Provisioning,
    /// Infrastructure exists, the Node does not.
    Provisioned,
    /// The Node exists.
    Running,
    /// The machine is changed in place.
    Updating,
    /// The machine is being deleted.
    Deleting,
    /// The infrastructure is deleted.
    Deleted,
    /// An administrator has to act.
    Failed,
    /// The phase cannot be determined.
    Unknown,
}

impl Machine {
    /// True for a control plane machine.
    pub fn is_control_plane(&self) -> bool {
        let labels = self.metadata.labels.as_ref();
        labels.is_some_and(|labels| labels.contains_key(crate::names::CONTROL_PLANE_LABEL))
    }

    /// True if the machine is being deleted.
    pub fn is_deleting(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// True once the infrastructure has been provisioned.
    pub fn infrastructure_provisioned(&self) -> bool {
        self.initialization(|steps| steps.infrastructure_provisioned)
    }

    /// True once the Secret with the bootstrap data has existed.
    pub fn bootstrap_ready(&self) -> bool {
        self.initialization(|steps| steps.bootstrap_data_secret_created)
    }

    /// Name of the machine's Node; `None` if not known yet.
    pub fn node_name(&self) -> Option<&str> {
        self.status
            .as_ref()?
            .node_ref
            .as_ref()
            .map(|node| node.name.as_str())
    }

    /// The conditions of the status.
    pub fn conditions(&self) -> &[Condition] {
        self.status
            .as_ref()
            .map_or(&[], |status| &status.conditions)
    }

    fn initialization(&self, step: impl Fn(&MachineInitialization) -> Option<bool>) -> bool {
        let status = self.status.as_ref();
        status
            .and_then(|status| status.initialization.as_ref())
            .and_then(step)
            == Some(true)
    }
}
