//! KubeadmConfig and KubeadmConfigTemplate, version v1beta2.
//!
//! Names and shapes are those of Cluster API 1.15. Secrets do not live here: files and passwords can
//! point to a Secret (`contentFrom`, `passwdFrom`).

mod kubeadm;
mod node;

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use kubeadm::*;
pub use node::*;

/// What a machine runs on its first boot to become a Node of a cluster made with kubeadm.
#[derive(CustomResource, JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "bootstrap.cluster.x-k8s.io",
    version = "v1beta2",
    kind = "KubeadmConfig",
    plural = "kubeadmconfigs",
    namespaced,
    status = "KubeadmConfigStatus",
    category = "cluster-api",
    derive = "PartialEq",
    doc = "What a machine runs on its first boot to become a Node of a cluster made with kubeadm.",
    label("cluster.x-k8s.io/v1beta1", "v1beta1"),
    label("cluster.x-k8s.io/v1beta2", "v1beta2"),
    printcolumn(
        name = "Cluster",
        type_ = "string",
        description = "The cluster that the machine belongs to",
        json_path = r".metadata.labels['cluster\.x-k8s\.io/cluster-name']"
    ),
    printcolumn(
        name = "Paused",
        type_ = "string",
        description = "Whether reconciliation is paused",
        json_path = r#".status.conditions[?(@.type=="Paused")].status"#,
        priority = 10
    ),
    printcolumn(
        name = "Data secret created",
        type_ = "string",
        description = "Whether the bootstrap data exists",
        json_path = ".status.initialization.dataSecretCreated"
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct KubeadmConfigSpec {
    /// The part of kubeadm's configuration that concerns the whole cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_configuration: Option<ClusterConfiguration>,
    /// What `kubeadm init` is given on the first control plane machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub init_configuration: Option<InitConfiguration>,
    /// What `kubeadm join` is given on every other machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub join_configuration: Option<JoinConfiguration>,
    /// Files written before any command runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 200), extend("x-kubernetes-list-type" = "atomic"))]
    pub files: Vec<File>,
    /// Partitions and filesystems made on first boot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_setup: Option<DiskSetup>,
    /// Lines of `/etc/fstab`, each a list of its columns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = 100),
        inner(length(min = 1, max = 100), inner(length(min = 1, max = 512))),
        extend("x-kubernetes-list-type" = "atomic")
    )]
    pub mounts: Vec<Vec<String>>,
    /// Commands run early in the boot, before files are written; skipped by Ignition.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = 1000),
        inner(length(min = 1, max = 10240)),
        extend("x-kubernetes-list-type" = "atomic")
    )]
    pub boot_commands: Vec<String>,
    /// Commands run before kubeadm.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = 1000),
        inner(length(min = 1, max = 10240)),
        extend("x-kubernetes-list-type" = "atomic")
    )]
    pub pre_kubeadm_commands: Vec<String>,
    /// Commands run after kubeadm succeeded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = 1000),
        inner(length(min = 1, max = 10240)),
        extend("x-kubernetes-list-type" = "atomic")
    )]
    pub post_kubeadm_commands: Vec<String>,
    /// Users added to the machine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub users: Vec<User>,
    /// The machine's time servers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ntp: Option<Ntp>,
    /// The format of the bootstrap data; `cloud-config` when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<Format>,
    /// The number after kubeadm's `--v`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verbosity: Option<i32>,
    /// Settings of the format `ignition`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignition: Option<Ignition>,
}

/// What was made of a KubeadmConfig.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct KubeadmConfigStatus {
    /// What is the case: `Ready`, `DataSecretAvailable`, `CertificatesAvailable`, `Paused`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 32),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
    )]
    pub conditions: Vec<Condition>,
    /// What the Machine controller waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initialization: Option<KubeadmConfigInitialization>,
    /// The Secret that holds the bootstrap data (keys `value` and `format`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub data_secret_name: Option<String>,
    /// The generation that this status is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub observed_generation: Option<i64>,
    /// What only the previous contract version has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<KubeadmConfigDeprecated>,
}

/// First-time provisioning of a KubeadmConfig.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct KubeadmConfigInitialization {
    /// The Secret with the bootstrap data exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_secret_created: Option<bool>,
}

/// Fields kept for readers of contract version v1beta1.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KubeadmConfigDeprecated {
    /// Status in the words of v1beta1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub v1beta1: Option<KubeadmConfigV1Beta1Status>,
}

/// Status of a KubeadmConfig in the words of v1beta1.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KubeadmConfigV1Beta1Status {
    /// Conditions with severities.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<OldCondition>,
    /// A word for a terminal failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub failure_reason: Option<String>,
    /// A sentence for a terminal failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 10240))]
    pub failure_message: Option<String>,
}

/// A condition of contract version v1beta1.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OldCondition {
    /// The condition's type.
    #[serde(rename = "type")]
    #[schemars(length(min = 1, max = 256))]
    pub type_: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// How bad a false condition is: `Error`, `Warning`, `Info` or empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub severity: Option<String>,
    /// A word for machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub reason: Option<String>,
    /// A sentence for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 10240))]
    pub message: Option<String>,
    /// When the status changed last.
    #[schemars(extend("format" = "date-time"))]
    pub last_transition_time: String,
}

/// From what the KubeadmConfigs of a MachineDeployment are cloned.
#[derive(CustomResource, JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "bootstrap.cluster.x-k8s.io",
    version = "v1beta2",
    kind = "KubeadmConfigTemplate",
    plural = "kubeadmconfigtemplates",
    namespaced,
    category = "cluster-api",
    derive = "PartialEq",
    doc = "From what the KubeadmConfigs of a MachineDeployment are cloned.",
    label("cluster.x-k8s.io/v1beta1", "v1beta1"),
    label("cluster.x-k8s.io/v1beta2", "v1beta2"),
    printcolumn(
        name = "ClusterClass",
        type_ = "string",
        description = "The ClusterClass that owns this template",
        json_path = r#".metadata.ownerReferences[?(@.kind=="ClusterClass")].name"#
    ),
    printcolumn(
        name = "Cluster",
        type_ = "string",
        description = "The Cluster that owns this template",
        json_path = r#".metadata.ownerReferences[?(@.kind=="Cluster")].name"#
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct KubeadmConfigTemplateSpec {
    /// What each clone gets.
    pub template: KubeadmConfigTemplateResource,
}

/// Metadata and spec of a cloned KubeadmConfig.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct KubeadmConfigTemplateResource {
    /// Labels and annotations of the clones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<TemplateMetadata>,
    /// The clones' spec.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minProperties" = 1))]
    pub spec: Option<KubeadmConfigSpec>,
}

/// Labels and annotations that a template hands on.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct TemplateMetadata {
    /// Labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}
