//! PodDisruptionBudgets.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::cache::ObjectCache;
use super::object::{BUDGET, Write, text};
use crate::disruption::{replacing, scales_of, status};

pub(super) fn budgets(world: &ObjectCache) -> Vec<Write> {
    world
        .budgets
        .iter()
        .filter_map(|it| budget(it, world))
        .collect()
}

/// Writes a status that differs. An evicted Pod that is not deleted counts as disrupted until the next change.
fn budget(budget: &Value, world: &ObjectCache) -> Option<Write> {
    let namespace = text(&budget["metadata"]["namespace"]);
    let beside = |it: &&Value| it["metadata"]["namespace"] == namespace;
    let of = |all: &super::cache::Objects| all.iter().filter(beside).cloned().collect();
    let (pods, deployments): (Vec<Value>, Vec<Value>) = (of(&world.pods), of(&world.deployments));
    let (sets, stateful): (Vec<Value>, Vec<Value>) =
        (of(&world.replica_sets), of(&world.stateful_sets));
    let scales = scales_of(&deployments, &sets, stateful.iter());
    let wanted = status(budget, &pods, &scales, Timestamp::now()).status;
    (wanted != budget["status"]).then(|| Write::Patch {
        path: format!("{}/status", BUDGET.path(budget)),
        // At the version of the read: an eviction spends what the budget allows.
        body: json!({
            "metadata": {"resourceVersion": budget["metadata"]["resourceVersion"]},
            "status": replacing(&budget["status"], wanted),
        }),
    })
}
