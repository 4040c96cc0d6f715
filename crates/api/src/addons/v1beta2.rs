//! `addons.cluster.x-k8s.io/v1beta2`, the stored version.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::core::v1beta2::Deprecated;

/// The `apiVersion` of the objects in this module.
pub const API_VERSION: &str = "addons.cluster.x-k8s.io/v1beta2";

/// Manifests, and the workload clusters to which they are applied.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[kube(
    group = "addons.cluster.x-k8s.io",
    version = "v1beta2",
    kind = "ClusterResourceSet",
    doc = "Manifests in ConfigMaps and Secrets that are applied to the selected workload clusters.",
    namespaced,
    status = "ClusterResourceSetStatus",
    derive = "PartialEq",
    derive = "Default",
    category = "cluster-api",
    label("cluster.x-k8s.io/provider", "cluster-api"),
    label("cluster.x-k8s.io/v1beta1", "v1beta1"),
    label("cluster.x-k8s.io/v1beta2", "v1beta2"),
    printcolumn(
        name = "Applied",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"ResourcesApplied\")].status"
    ),
    printcolumn(
        name = "Paused",
        type_ = "string",
        priority = 10,
        json_path = ".status.conditions[?(@.type==\"Paused\")].status"
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
pub struct ClusterResourceSetSpec {
    /// Selector of the Clusters of the namespace that get the resources. Must not be empty, and cannot be changed.
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    #[schemars(with = "crate::shape::LabelSelector")]
    pub cluster_selector: LabelSelector,
    /// The ConfigMaps and Secrets whose manifests are applied, in this order.
    #[schemars(length(min = 1, max = 100))]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub resources: Vec<ResourceRef>,
    /// Strategy for a changed ConfigMap or Secret: `ApplyOnce` or `Reconcile`. `ApplyOnce` when unset; cannot be changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategy: Option<Strategy>,
}

/// Strategy for a changed ConfigMap or Secret: `ApplyOnce` or `Reconcile`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Strategy {
    /// Missing objects are created once; nothing is changed afterwards.
    #[default]
    ApplyOnce,
    /// A changed ConfigMap or Secret is applied again.
    Reconcile,
}

/// A ConfigMap or Secret in the namespace of the set.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct ResourceRef {
    /// The kind.
    pub kind: ResourceKind,
    /// The name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

impl std::fmt::Display for ResourceRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.kind.as_str(), self.name)
    }
}

/// Kind of an object with manifests ([`ResourceRef::kind`]).
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
pub enum ResourceKind {
    /// A Secret of the type [`SECRET_TYPE`](super::SECRET_TYPE).
    Secret,
    /// A ConfigMap.
    #[default]
    ConfigMap,
}

impl ResourceKind {
    /// The name of the kind.
    pub fn as_str(self) -> &'static str {
        match self {
            ResourceKind::Secret => "Secret",
            ResourceKind::ConfigMap => "ConfigMap",
        }
    }
}

/// The state of a set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct ClusterResourceSetStatus {
    /// Observations, one per type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    #[schemars(with = "Vec<crate::shape::Condition>")]
    pub conditions: Vec<Condition>,
    /// Generation of the spec that this status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub observed_generation: Option<i64>,
    /// Fields of former versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<Deprecated>,
}

impl ClusterResourceSet {
    /// True if the set is being deleted.
    pub fn is_deleting(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// [`Strategy`] of the set, or the default.
    pub fn strategy(&self) -> Strategy {
        self.spec.strategy.unwrap_or_default()
    }
}

/// Record of the resources that were applied to one workload cluster.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[kube(
    group = "addons.cluster.x-k8s.io",
    version = "v1beta2",
    kind = "ClusterResourceSetBinding",
    doc = "Record of the resources that ClusterResourceSets have applied to the Cluster of this name.",
    namespaced,
    derive = "PartialEq",
    derive = "Default",
    category = "cluster-api",
    label("cluster.x-k8s.io/provider", "cluster-api"),
    label("cluster.x-k8s.io/v1beta1", "v1beta1"),
    label("cluster.x-k8s.io/v1beta2", "v1beta2"),
    printcolumn(name = "Cluster", type_ = "string", json_path = ".spec.clusterName"),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
pub struct ClusterResourceSetBindingSpec {
    /// The Cluster.
    #[schemars(length(min = 1, max = 63))]
    pub cluster_name: String,
    /// The sets, with their resources.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 100))]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub bindings: Option<Vec<ResourceSetBinding>>,
}

/// The resources of one set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceSetBinding {
    /// The name of the set.
    #[schemars(length(min = 1, max = 253))]
    pub cluster_resource_set_name: String,
    /// Resources of the set, with the result of each.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 100))]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub resources: Option<Vec<ResourceBinding>>,
}

/// Result of the application of a resource.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceBinding {
    /// The kind of the resource.
    pub kind: ResourceKind,
    /// The name of the resource.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The hash of the data that was applied.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub hash: Option<String>,
    /// Time of the last application, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<crate::shape::Time>")]
    pub last_applied_time: Option<Time>,
    /// True if all manifests of the resource were applied.
    pub applied: bool,
}

impl ClusterResourceSetBinding {
    /// True if the binding is being deleted.
    pub fn is_deleting(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// Bindings for the resources of one [`ClusterResourceSet`], by name.
    pub fn of_set(&self, name: &str) -> &[ResourceBinding] {
        let mut sets = self.spec.bindings.iter().flatten();
        let found = sets.find(|set| set.cluster_resource_set_name == name);
        found
            .and_then(|set| set.resources.as_deref())
            .unwrap_or_default()
    }
}
