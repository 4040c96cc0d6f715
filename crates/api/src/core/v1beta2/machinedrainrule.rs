use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Treatment of Pods when the Node of a machine is drained.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[kube(
    group = "cluster.x-k8s.io",
    version = "v1beta2",
    kind = "MachineDrainRule",
    doc = "Rule about Pods that are evicted, skipped or waited for when the Node of a machine is drained.",
    namespaced,
    derive = "PartialEq",
    derive = "Default",
    category = "cluster-api",
    label("cluster.x-k8s.io/provider", "cluster-api"),
    label("cluster.x-k8s.io/v1beta1", "v1beta1"),
    label("cluster.x-k8s.io/v1beta2", "v1beta2"),
    printcolumn(
        name = "Behavior",
        type_ = "string",
        json_path = ".spec.drain.behavior"
    ),
    printcolumn(name = "Order", type_ = "string", json_path = ".spec.drain.order"),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
pub struct MachineDrainRuleSpec {
    /// Treatment of the Pods that the rule selects.
    pub drain: DrainRule,
    /// The machines of the namespace that the rule applies to: those that match one of the selectors; all when unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32))]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub machines: Option<Vec<DrainedMachines>>,
    /// The Pods that the rule applies to: those that match one of the selectors; all when unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32))]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub pods: Option<Vec<DrainedPods>>,
}

/// Treatment of selected Pods during a drain ([`MachineDrainRuleSpec::drain`]).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DrainRule {
    /// Treatment of the Pods: `Drain` evicts them, `Skip` leaves them, `WaitCompleted` waits until they have completed.
    pub behavior: DrainBehavior,
    /// Pods of a higher order are evicted after those of a lower one are gone; 0 when unset. Only with `Drain`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<i32>,
}

/// Treatment of a Pod during a drain ([`DrainRule::behavior`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DrainBehavior {
    /// The Pod is evicted.
    #[default]
    Drain,
    /// The Pod stays.
    Skip,
    /// The Pod is never evicted; the drain waits for the Pod's completion.
    WaitCompleted,
}

/// Machines by their labels and those of their Cluster, both of which must match.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct DrainedMachines {
    /// The labels of the machine; any when unset or empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    #[schemars(with = "Option<crate::shape::LabelSelector>")]
    pub selector: Option<LabelSelector>,
    /// The labels of the Cluster; any when unset or empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    #[schemars(with = "Option<crate::shape::LabelSelector>")]
    pub cluster_selector: Option<LabelSelector>,
}

/// Pods by their labels and those of their Namespace, both of which must match.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct DrainedPods {
    /// The labels of the Pod; any when unset or empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    #[schemars(with = "Option<crate::shape::LabelSelector>")]
    pub selector: Option<LabelSelector>,
    /// The labels of the Namespace; any when unset or empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    #[schemars(with = "Option<crate::shape::LabelSelector>")]
    pub namespace_selector: Option<LabelSelector>,
}
