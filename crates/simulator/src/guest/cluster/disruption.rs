//! Disruption controller: writes the status of PodDisruptionBudgets.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::super::api::{Api, Error};
use crate::disruption::{Scales, replacing, scales_of, status};
use crate::json::text;

/// All PodDisruptionBudgets of the cluster.
const BUDGETS: &str = "/apis/policy/v1/poddisruptionbudgets";

/// Updates the status of all budgets; returns their number, and the time until the next update.
pub(super) async fn reconcile(api: &Api) -> Result<(usize, Option<Duration>), Error> {
    let budgets = api.list(BUDGETS).await?;
    let now = Timestamp::now();
    let mut again = None;
    let namespaces: BTreeSet<&str> = budgets
        .iter()
        .map(|budget| text(&budget["metadata"]["namespace"]))
        .collect();
    for namespace in namespaces {
        let pods = api
            .list(&format!("/api/v1/namespaces/{namespace}/pods"))
            .await?;
        let scales = scales(api, namespace).await?;
        let of_namespace = |budget: &&Value| budget["metadata"]["namespace"] == namespace;
        for budget in budgets.iter().filter(of_namespace) {
            let wanted = status(budget, &pods, &scales, now);
            if wanted.status != budget["status"] {
                let name = text(&budget["metadata"]["name"]);
                let path =
                    format!("/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets/{name}");
                // At the version of the read: an eviction consumes the allowance of the budget.
                let patch = json!({
                    "metadata": {"resourceVersion": budget["metadata"]["resourceVersion"]},
                    "status": replacing(&budget["status"], wanted.status),
                });
                api.patch(&format!("{path}/status"), &patch).await?;
            }
            again = again.into_iter().chain(wanted.again).min();
        }
    }
    let wait = again.map(|at| Duration::try_from(at.duration_since(now)).unwrap_or_default());
    Ok((budgets.len(), wait))
}

async fn scales(api: &Api, namespace: &str) -> Result<Scales, Error> {
    let apps = |kind: &str| format!("/apis/apps/v1/namespaces/{namespace}/{kind}");
    let deployments = api.list(&apps("deployments")).await?;
    let sets = api.list(&apps("replicasets")).await?;
    let stateful = api.list(&apps("statefulsets")).await?;
    let controllers = format!("/api/v1/namespaces/{namespace}/replicationcontrollers");
    let controllers = api.list(&controllers).await?;
    let others = stateful.iter().chain(&controllers);
    Ok(scales_of(&deployments, &sets, others))
}
