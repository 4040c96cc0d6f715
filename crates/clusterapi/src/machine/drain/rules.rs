//! MachineDrainRules: the order of evictions, and Pods to skip or to wait for.

use std::collections::BTreeMap;

use api::core::v1beta2::{Cluster, DrainBehavior, Machine, MachineDrainRule};
use api::k8s_openapi::api::core::v1::{Namespace, Pod};
use api::k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use api::kube::api::ListParams;
use api::kube::{Client, ResourceExt};
use api::selector::selects;
use operator::client::Api;
use operator::decode::{self, NotDecoded};

use crate::error::{Doing, is_absent};
use crate::{Context, Error};

type Labels = BTreeMap<String, String>;

/// Treatment of a Pod by the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Treatment {
    /// Evict, in this order.
    Drain(i32),
    /// Leave the Pod.
    Skip,
    /// Wait for the completion of the Pod.
    WaitCompleted,
}

/// Rules for one machine, sorted by name: the first match for each Pod counts.
#[derive(Debug, Default)]
pub(crate) struct Rules(Vec<MachineDrainRule>);

impl Rules {
    /// Reads the rules of the namespace of `machine`. Not cached, because drains are rare.
    ///
    /// # Errors
    /// When the rules cannot be read or decoded.
    pub(crate) async fn for_machine(ctx: &Context, machine: &Machine) -> Result<Self, Error> {
        let namespace = machine.namespace().unwrap_or_default();
        let api: Api<MachineDrainRule> = Api::namespaced(ctx.client.clone(), &namespace);
        let listed = match decode::list(&api, &ListParams::default()).await {
            // The kind is not installed.
            Err(error) if is_absent(&error) => return Ok(Self::default()),
            other => other.doing(|| format!("listing the MachineDrainRules of {namespace}"))?,
        };
        NotDecoded::check::<MachineDrainRule>(&listed.undecodable, |_| true)?;
        let cluster = ctx.clusters.get(&namespace, &machine.spec.cluster_name);
        Ok(Self::select(listed.objects, machine, cluster.as_deref()))
    }

    /// Selection of the `rules` for `machine`.
    fn select(rules: Vec<MachineDrainRule>, machine: &Machine, cluster: Option<&Cluster>) -> Self {
        let none = Labels::new();
        let of_cluster = cluster.map_or(&none, ResourceExt::labels);
        let mut rules: Vec<_> = rules
            .into_iter()
            .filter(|rule| {
                let any = rule.spec.machines.as_deref();
                any.is_none_or(|any| {
                    any.iter().any(|one| {
                        allows(one.selector.as_ref(), machine.labels())
                            && allows(one.cluster_selector.as_ref(), of_cluster)
                    })
                })
            })
            .collect();
        rules.sort_by_key(ResourceExt::name_any);
        Self(rules)
    }

    /// [`Labels`] of the Namespaces of the workload cluster, if a rule selects by them.
    ///
    /// # Errors
    /// When the Namespaces cannot be read.
    pub(super) async fn namespaces(
        &self,
        client: &Client,
    ) -> Result<BTreeMap<String, Labels>, Error> {
        let pods = self
            .0
            .iter()
            .flat_map(|rule| rule.spec.pods.iter().flatten());
        if !pods
            .into_iter()
            .any(|pods| pods.namespace_selector.is_some())
        {
            return Ok(BTreeMap::new());
        }
        let all = Api::<Namespace>::all(client.clone());
        let all = all.list(&ListParams::default()).await;
        let all = all.doing_remotely(|| "listing Namespaces".to_owned())?;
        let labels = all
            .into_iter()
            .map(|namespace| (namespace.name_any(), namespace.labels().clone()));
        Ok(labels.collect())
    }

    /// [`Treatment`] of `pod` by the first matching rule; without one, eviction in order 0.
    pub(super) fn treatment(&self, pod: &Pod, namespaces: &BTreeMap<String, Labels>) -> Treatment {
        let none = Labels::new();
        let namespace = namespaces.get(&pod.namespace().unwrap_or_default());
        let namespace = namespace.unwrap_or(&none);
        let mut rules = self.0.iter();
        let found = rules.find(|rule| {
            let any = rule.spec.pods.as_deref();
            any.is_none_or(|any| {
                any.iter().any(|one| {
                    allows(one.selector.as_ref(), pod.labels())
                        && allows(one.namespace_selector.as_ref(), namespace)
                })
            })
        });
        match found.map(|rule| &rule.spec.drain) {
            None => Treatment::Drain(0),
            Some(drain) => match drain.behavior {
                DrainBehavior::Drain => Treatment::Drain(drain.order.unwrap_or(0)),
                DrainBehavior::Skip => Treatment::Skip,
                DrainBehavior::WaitCompleted => Treatment::WaitCompleted,
            },
        }
    }
}

/// True if the [`Labels`] match; an absent or empty selector matches any.
fn allows(selector: Option<&LabelSelector>, labels: &Labels) -> bool {
    selector.is_none_or(|selector| selects(selector, labels))
}

#[cfg(test)]
mod tests;
