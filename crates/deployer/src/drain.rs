//! Drain of compute nodes, and removal of the records of a deleted node. Pure.
//!
//! ```text
//!   guard   a Pod and a PodDisruptionBudget on each compute node: the eviction of the Pod, and with it `kubectl drain`,
//!           waits until the budget opens
//!   fleet   what Nova and Neutron have: services, servers, migrations, agents
//!   turn    places and fleet → requests to both, and the condition
//! ```
//!
//! The annotations of a budget are the record of a [`Place`]: name of the node, id of the compute service, time of the
//! cordon. A service is enabled or deleted by the recorded id or by our reason in Nova, never by name alone.

mod fleet;
mod guard;
mod story;
mod turn;

pub use self::fleet::{Fleet, detail_of, details_of, next_page};
pub use self::guard::{BUDGET, GuardWrite, Place, Standing, Verb, are_left, guards, left, places};
pub use self::story::{REASONS, Story, Summary};
pub use self::turn::{Answer, Asked, Memory, Store, Turn, Write, lists, needs_answers, turn};

use serde_json::Value as Json;

use crate::cloud::Cloud;

/// Objects of the cluster, as input of [`places`] and [`guards`].
#[derive(Clone, Copy)]
pub struct Observed<'a> {
    /// Nodes of the cluster.
    pub nodes: &'a [Json],
    /// Pods of the namespace.
    pub pods: &'a [Json],
    /// PodDisruptionBudgets of the namespace.
    pub budgets: &'a [Json],
}

/// True if the compute nodes of a [`Cloud`] have guards.
pub fn is_guarded(cloud: &Cloud) -> bool {
    cloud.parameters.drain().is_some()
}

/// Time from the cordon in which migrations are started, in seconds; `None` in a cloud without compute nodes.
pub fn timeout(cloud: &Cloud) -> Option<u64> {
    let compute = cloud.parameters.compute.as_ref()?;
    Some(compute.drain.timeout.0)
}

fn text(value: &Json) -> &str {
    value.as_str().unwrap_or_default()
}

fn items(value: &Json) -> impl Iterator<Item = &Json> {
    value.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests;
