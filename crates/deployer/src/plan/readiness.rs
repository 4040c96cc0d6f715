//! Readiness of needed steps, read from the objects.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;

use super::{Observed, Plan};
use crate::desired::{Graph, Step};
use crate::object::{ObjectKind, Reference};

/// Sets the waits of each step with actions.
pub(super) fn waits(graph: &Graph, plan: &mut Plan, observed: &Observed<'_>) {
    let busy: BTreeSet<&str> = plan
        .steps
        .iter()
        .filter(|step| !step.actions.is_empty())
        .map(|step| step.name.as_str())
        .collect();
    let reasons: BTreeMap<&str, Option<String>> = graph
        .steps
        .iter()
        .zip(&plan.steps)
        .map(|(step, planned)| {
            // What the plan does itself is in its order, and so is what is written after it.
            let writes = step.objects.is_empty();
            let follows = writes && step.needs.iter().any(|need| busy.contains(need.as_str()));
            let reason = match planned.actions.is_empty() && !follows {
                true => unready(step, observed),
                false => None,
            };
            (step.name.as_str(), reason)
        })
        .collect();
    for planned in &mut plan.steps {
        if planned.actions.is_empty() {
            continue;
        }
        let needs = planned.needs.iter();
        planned.waits = needs
            .filter_map(|need| reasons.get(need.as_str())?.clone())
            .collect();
    }
}

/// Reason why a step is not ready.
fn unready(step: &Step, observed: &Observed<'_>) -> Option<String> {
    if step.objects.is_empty() && !step.writes.is_empty() {
        return Some(unknown(&step.name));
    }
    step.objects.iter().find_map(|object| {
        let reference = object.reference();
        let problem = problem(reference, observed.get(reference)?)?;
        Some(format!("{}: {reference} {problem}", step.name))
    })
}

/// Message for a step whose readiness is unknown.
pub(super) fn unknown(step: &str) -> String {
    format!("{step}: not known here")
}

/// Reason why an object is not ready.
pub(super) fn problem(reference: &Reference, there: &Json) -> Option<String> {
    if there
        .pointer("/metadata/deletionTimestamp")
        .is_some_and(|it| !it.is_null())
    {
        return Some("is being deleted".to_owned());
    }
    let number = |path: &str| there.pointer(path).and_then(Json::as_i64).unwrap_or(0);
    let wanted = there
        .pointer("/spec/replicas")
        .and_then(Json::as_i64)
        .unwrap_or(1);
    let stale = || number("/status/observedGeneration") < number("/metadata/generation");
    match reference.kind {
        ObjectKind::StatefulSet => {
            let (updated, ready) = (
                number("/status/updatedReplicas"),
                number("/status/readyReplicas"),
            );
            if stale() {
                Some("has not been processed by its controller".to_owned())
            } else if updated < wanted {
                Some(format!("has updated {updated} of {wanted} replicas"))
            } else {
                (ready < wanted).then(|| format!("has {ready} of {wanted} replicas ready"))
            }
        }
        ObjectKind::Deployment => {
            let (all, updated, available) = (
                number("/status/replicas"),
                number("/status/updatedReplicas"),
                number("/status/availableReplicas"),
            );
            if stale() {
                Some("has not been processed by its controller".to_owned())
            } else if updated < wanted {
                Some(format!("has updated {updated} of {wanted} replicas"))
            } else if all > updated {
                let s = if all - updated == 1 { "" } else { "s" };
                Some(format!("has {} old replica{s}", all - updated))
            } else {
                (available < wanted)
                    .then(|| format!("has {available} of {wanted} replicas available"))
            }
        }
        ObjectKind::DaemonSet => {
            let (wanted, ready) = (
                number("/status/desiredNumberScheduled"),
                number("/status/numberReady"),
            );
            if stale() {
                Some("has not been processed by its controller".to_owned())
            } else if wanted == 0 {
                Some(format!("has no node: none has the label {}", labels(there)))
            } else {
                (ready < wanted).then(|| format!("is ready on {ready} of {wanted} nodes"))
            }
        }
        ObjectKind::Job => {
            if holds(there, "Complete") {
                None
            } else if has_failed(there) {
                Some(format!("has failed: kubectl logs job/{}", reference.name))
            } else {
                Some("has not completed".to_owned())
            }
        }
        ObjectKind::ConfigMap
        | ObjectKind::Secret
        | ObjectKind::Service
        | ObjectKind::NetworkPolicy
        | ObjectKind::PersistentVolumeClaim => None,
    }
}

/// Labels of the nodes of a DaemonSet, as written by users.
fn labels(there: &Json) -> String {
    let selector = there.pointer("/spec/template/spec/nodeSelector");
    let labels = selector.and_then(Json::as_object).into_iter().flatten();
    let labels: Vec<String> = labels
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    labels.join(",")
}

/// True if a Job has failed for good.
pub(super) fn has_failed(job: &Json) -> bool {
    holds(job, "Failed")
}

fn holds(object: &Json, kind: &str) -> bool {
    let conditions = object.pointer("/status/conditions");
    let mut conditions = conditions.and_then(Json::as_array).into_iter().flatten();
    conditions.any(|it| it["type"] == kind && it["status"] == "True")
}

/// True if the Pods of a program are being replaced, after the program was ready once.
pub(super) fn is_rolling(reference: &Reference, there: &Json) -> bool {
    let number = |path: &str| there.pointer(path).and_then(Json::as_i64).unwrap_or(0);
    let seen = number("/status/observedGeneration");
    let (all, updated) = (
        number("/status/replicas"),
        number("/status/updatedReplicas"),
    );
    let stale = seen > 0 && seen < number("/metadata/generation");
    match reference.kind {
        ObjectKind::Deployment => stale || all > updated,
        // Its Pod is gone before the new one is there.
        ObjectKind::StatefulSet => stale || seen > 1 && problem(reference, there).is_some(),
        _ => false,
    }
}
