//! Condition `TopologyReconciled`, with upstream's reasons.

use api::conditions::{self, Reason, Type, Verdict};
use api::core::v1beta2::Cluster;
use api::kube::ResourceExt;
use api::kube::runtime::controller::Action;
use operator::controller::RESYNC;
use operator::patch;

use super::Runner;
use crate::Error;
use crate::error::{Doing, is_absent};

/// Type of the condition.
pub(super) const TYPE: Type = Type::TopologyReconciled;

/// Condition of a Cluster being deleted.
pub(super) fn deleting() -> Verdict {
    Verdict::new(TYPE, false, Reason::Deleting).because("Cluster is deleting")
}

/// Condition of a paused Cluster.
pub(super) fn paused(why: &str) -> Verdict {
    Verdict::new(TYPE, false, Reason::Paused).because(why)
}

/// Writes a changed condition.
pub(super) async fn write(
    runner: &Runner,
    cluster: &Cluster,
    verdict: Verdict,
) -> Result<Action, Error> {
    let mut after = cluster.clone();
    let generation = cluster.metadata.generation;
    let list = &mut after.status.get_or_insert_default().conditions;
    conditions::set(list, verdict, generation, runner.now());
    let api = runner.api::<Cluster>(&cluster.namespace().unwrap_or_default());
    match patch::status(&api, cluster, &after).await {
        Err(error) if is_absent(&error) => {}
        other => {
            let name = cluster.name_any();
            other.doing(|| format!("writing the topology's condition of Cluster {name}"))?;
        }
    }
    Ok(Action::requeue(RESYNC))
}
