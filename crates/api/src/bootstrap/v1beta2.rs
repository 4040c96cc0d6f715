//! [`KubeadmConfig`] and [`KubeadmConfigTemplate`], version v1beta2.
//!
//! Names and types of Cluster API 1.15. Secret content is referenced: files and passwords can be in a Secret
//! (`contentFrom`, `passwdFrom`).

mod kubeadm;
mod node;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::core::v1beta2::{Deprecated, TemplateMeta};

pub use kubeadm::*;
pub use node::*;

/// First boot of a machine that becomes a Node of a kubeadm cluster.
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
    doc = "First boot of a machine that becomes a Node of a kubeadm cluster.",
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
        description = "True if reconciliation is paused",
        json_path = r#".status.conditions[?(@.type=="Paused")].status"#,
        priority = 10
    ),
    printcolumn(
        name = "Data secret created",
        type_ = "string",
        description = "True once the bootstrap data exists",
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
    /// Configuration for `kubeadm init` on the first control plane machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub init_configuration: Option<InitConfiguration>,
    /// Configuration for `kubeadm join` on every other machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub join_configuration: Option<JoinConfiguration>,
    /// Files written before any command runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 200), extend("x-kubernetes-list-type" = "atomic"))]
    pub files: Vec<File>,
    /// Partitions and filesystems created on first boot.
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

/// The observed state of a KubeadmConfig.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct KubeadmConfigStatus {
    /// Observations, one per type: `Ready`, `DataSecretAvailable`, `CertificatesAvailable`, `Paused`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 32),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
    )]
    #[schemars(with = "Vec<crate::shape::Condition>")]
    pub conditions: Vec<Condition>,
    /// Progress of the initialization, which the Machine controller awaits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initialization: Option<KubeadmConfigInitialization>,
    /// The Secret that contains the bootstrap data (keys `value` and `format`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub data_secret_name: Option<String>,
    /// The generation that this status is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub observed_generation: Option<i64>,
    /// Fields of the previous contract version alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<Deprecated>,
}

/// First-time provisioning of a [`KubeadmConfig`] ([`KubeadmConfigStatus::initialization`]).
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct KubeadmConfigInitialization {
    /// The Secret with the bootstrap data exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_secret_created: Option<bool>,
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
    /// Template of each clone.
    pub template: KubeadmConfigTemplateResource,
}

/// Metadata and spec of a cloned [`KubeadmConfig`].
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct KubeadmConfigTemplateResource {
    /// Labels and annotations of the clones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<TemplateMeta>,
    /// The clones' spec.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minProperties" = 1))]
    pub spec: Option<KubeadmConfigSpec>,
}
