//! Condition `TopologyReconciled`, with upstream's reasons, and the versions that an upgrade still passes.

use api::conditions::{self, Reason, Type, Verdict};
use api::core::v1beta2::{Cluster, ClusterStatus, UpgradeStep};
use api::kube::ResourceExt;
use api::kube::runtime::controller::Action;
use operator::controller::RESYNC;
use operator::patch;
use topology::upgrade::Plan;

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

/// Maximum number of versions in a plan, by the schema.
const MAX_PLAN: usize = 32;

/// Writes a changed condition, and the plan if it is known.
pub(super) async fn write(
    runner: &Runner,
    cluster: &Cluster,
    verdict: Verdict,
    plan: Option<&Plan>,
) -> Result<Action, Error> {
    let mut after = cluster.clone();
    let generation = cluster.metadata.generation;
    let status = after.status.get_or_insert_default();
    conditions::set(&mut status.conditions, verdict, generation, runner.now());
    if let Some(plan) = plan {
        set_plan(status, plan);
    }
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

/// Sets both lists. The counters beside them are of the controller of Clusters, which keeps the lists.
fn set_plan(status: &mut ClusterStatus, plan: &Plan) {
    let steps = |versions: &[String]| -> Option<Vec<UpgradeStep>> {
        let versions = versions.iter().take(MAX_PLAN).cloned();
        let steps: Vec<_> = versions.map(|version| UpgradeStep { version }).collect();
        (!steps.is_empty()).then_some(steps)
    };
    let (plane, workers) = (steps(&plan.control_plane), steps(&plan.workers));
    if plane.is_some() || status.control_plane.is_some() {
        status.control_plane.get_or_insert_default().upgrade_plan = plane;
    }
    if workers.is_some() || status.workers.is_some() {
        status.workers.get_or_insert_default().upgrade_plan = workers;
    }
}
