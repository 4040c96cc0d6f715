//! Replacement of machines with a failed health check.
//!
//! A MachineHealthCheck marks a machine (`HealthCheckSucceeded` and `OwnerRemediated` are false). The machine is
//! deleted if the control plane remains available, and the next reconcile creates another. The number of consecutive
//! retries is stored in annotations, as upstream: on the control plane between deletion and creation, then on the new
//! machine.

use std::time::Duration;

use api::conditions::{self, Reason, Type, Verdict};
use api::controlplane::v1beta2::{KubeadmControlPlane, LastRemediation, Remediation};
use api::core::v1beta2::{Machine, MachineStatus};
use api::k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use api::k8s_openapi::jiff::Timestamp;
use api::kube::ResourceExt;
use api::kube::api::{Patch, PatchParams};
use operator::client::Api;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::observe::{Observation, Seen};
use super::plan::{Facts, MachineFacts};
use super::quorum::Members;
use super::{ControlPlaneError, Scope, Subject, error, machines};

/// Annotation of the control plane from the deletion of a machine until its replacement exists.
pub(super) const IN_PROGRESS: &str = "controlplane.cluster.x-k8s.io/remediation-in-progress";
/// Annotation of a machine that replaced another.
pub(super) const FOR: &str = "controlplane.cluster.x-k8s.io/remediation-for";
/// Annotation that requests the replacement of a machine.
const REMEDIATE: &str = "cluster.x-k8s.io/remediate-machine";
/// Default period without a failure after which the retry count is reset.
const MIN_HEALTHY: Duration = Duration::from_secs(3600);

/// Value of both annotations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Record {
    pub(super) machine: String,
    pub(super) timestamp: Timestamp,
    pub(super) retry_count: i32,
}

/// Decision about unhealthy machines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// No machine is unhealthy.
    Nothing,
    /// Machines are unhealthy, but none can be replaced now: the most urgent one first, each with the reason.
    Blocked(Vec<(String, String)>),
    /// A machine is replaced.
    Replace { machine: String, retry_count: i32 },
}

/// Deletes a machine that has to be replaced. Returns true if there is one, even if blocked: the control plane gets
/// no other change meanwhile.
pub(super) async fn act(
    scope: &Scope,
    subject: &Subject,
    seen: &Observation,
) -> Result<bool, ControlPlaneError> {
    let settings = subject.plane.spec.remediation.clone().unwrap_or_default();
    let last = last(&subject.plane, &seen.machines);
    match decide(
        &candidates(seen),
        &seen.facts,
        &settings,
        last.as_ref(),
        seen.now,
    ) {
        Decision::Nothing => Ok(false),
        Decision::Blocked(machines) => {
            for (machine, why) in machines {
                let verdict =
                    Verdict::new(Type::OwnerRemediated, false, Reason::RemediationDeferred)
                        .because(why);
                write_condition(scope, subject, seen, &machine, verdict).await?;
            }
            Ok(true)
        }
        Decision::Replace {
            machine,
            retry_count,
        } => {
            let record = Record {
                machine: machine.clone(),
                timestamp: seen.now,
                retry_count,
            };
            remember(scope, subject, &record).await?;
            machines::delete(scope, subject, seen, &machine).await?;
            let note = format!("replacing Machine {machine}, which failed its health check");
            let plane = subject.plane.as_ref();
            scope
                .events
                .normal(plane, "MachineRemediated", "Remediate", note)
                .await;
            Ok(true)
        }
    }
}

/// Last known remediation: of the control plane, or else the latest one of a machine.
pub(super) fn last(plane: &KubeadmControlPlane, machines: &[Seen]) -> Option<Record> {
    let read = |text: &String| serde_json::from_str::<Record>(text).ok();
    let in_progress = plane.annotations().get(IN_PROGRESS).and_then(read);
    let of_machines = machines
        .iter()
        .filter_map(|seen| seen.machine.annotations().get(FOR));
    in_progress.or_else(|| {
        of_machines
            .filter_map(read)
            .max_by_key(|record| record.timestamp)
    })
}

/// The field `status.lastRemediation`.
pub(super) fn status(record: Record) -> LastRemediation {
    LastRemediation {
        machine: record.machine,
        time: Time(record.timestamp),
        retry_count: record.retry_count,
    }
}

/// Machine that waits for remediation.
#[derive(Clone, Debug, Default)]
pub(super) struct Candidate {
    pub(super) name: String,
    /// True if the replacement was requested with the annotation.
    pub(super) asked: bool,
    pub(super) created: Timestamp,
}

fn candidates(seen: &Observation) -> Vec<Candidate> {
    let is_false = |machine: &Machine, type_: Type| {
        conditions::find(machine.conditions(), type_).is_some_and(|found| found.status == "False")
    };
    let ill = seen
        .machines
        .iter()
        .map(|seen| &seen.machine)
        .filter(|machine| {
            !machine.is_deleting()
                && is_false(machine, Type::HealthCheckSucceeded)
                && is_false(machine, Type::OwnerRemediated)
        });
    ill.map(|machine| Candidate {
        name: machine.name_any(),
        asked: machine.annotations().contains_key(REMEDIATE),
        created: machine
            .metadata
            .creation_timestamp
            .as_ref()
            .map_or(Timestamp::MAX, |t| t.0),
    })
    .collect()
}

pub(super) fn decide(
    candidates: &[Candidate],
    facts: &Facts,
    settings: &Remediation,
    last: Option<&Record>,
    now: Timestamp,
) -> Decision {
    let facts_of = |name: &str| facts.machines.iter().find(|machine| machine.name == name);
    // Order: requested, no Node, etcd unhealthy, component unhealthy; among equals the oldest.
    let urgency = |candidate: &&Candidate| {
        let machine = facts_of(&candidate.name);
        let no_node = machine.is_none_or(|machine| machine.node.is_none());
        let ill = |word: &str| {
            machine.is_some_and(|machine| machine.problems.iter().any(|p| p.contains(word)))
        };
        (
            !candidate.asked,
            !no_node,
            !ill("Etcd"),
            !ill("Pod"),
            candidate.created,
        )
    };
    let mut candidates: Vec<_> = candidates.iter().collect();
    candidates.sort_by_key(urgency);
    let names: Vec<_> = candidates.iter().map(|it| it.name.as_str()).collect();
    let mut blocked = Vec::new();
    for name in &names {
        let machine = (*name).to_owned();
        let judged = obstacle(facts, name, &names);
        match judged.map_or_else(|| retries(settings, last, now), Err) {
            Ok(retry_count) => {
                return Decision::Replace {
                    machine,
                    retry_count,
                };
            }
            Err(why) => blocked.push((machine, why)),
        }
    }
    match blocked.is_empty() {
        true => Decision::Nothing,
        false => Decision::Blocked(blocked),
    }
}

/// Reason why the control plane would not remain available without `name`, one of the `ill` machines.
fn obstacle(facts: &Facts, name: &str, ill: &[&str]) -> Option<String> {
    let others: Vec<&MachineFacts> = facts
        .machines
        .iter()
        .filter(|machine| machine.name != name)
        .collect();
    let starts = |machine: &&&MachineFacts| {
        machine.node.is_none() && !machine.deleting && !ill.contains(&machine.name.as_str())
    };
    if !facts.initialized {
        // No state is lost: the initialization starts again.
        let begun = others.iter().any(|it| it.node.is_some() || starts(&it));
        return begun.then(|| "other machines are being initialized".to_owned());
    }
    if others.is_empty() {
        return Some("it is the only control plane machine: nothing would be left".to_owned());
    }
    // Without the last staying machine, the held machines would go, and etcd with them.
    if others.iter().all(|it| it.deleting) {
        return Some("all other machines are being deleted: nothing would be left".to_owned());
    }
    // A machine whose member etcd cannot do without waits for the replacement of others.
    if let Some(going) = others.iter().find(|it| it.deleting && !it.held) {
        return Some(format!("Machine {} is being deleted", going.name));
    }
    if let Some(coming) = others.iter().find(starts) {
        return Some(format!("Machine {} is being provisioned", coming.name));
    }
    if !facts.reachable {
        return Some("the workload cluster cannot be reached, so etcd is unknown".to_owned());
    }
    let machine = facts.machines.iter().find(|machine| machine.name == name)?;
    let safe = |members: Members| machine.membership.may_go(members);
    facts.etcd.obstacle(safe, " without it")
}

/// Retry count of this remediation, or the reason for a wait.
fn retries(settings: &Remediation, last: Option<&Record>, now: Timestamp) -> Result<i32, String> {
    let Some(last) = last else { return Ok(0) };
    let seconds = |value: Option<i32>, default: Duration| {
        value.map_or(default.as_secs(), |value| u64::try_from(value).unwrap_or(0))
    };
    let passed =
        u64::try_from(now.as_second().saturating_sub(last.timestamp.as_second())).unwrap_or(0);
    if passed >= seconds(settings.min_healthy_period_seconds, MIN_HEALTHY) {
        return Ok(0);
    }
    let pause = seconds(settings.retry_period_seconds, Duration::ZERO);
    if passed < pause {
        return Err(format!(
            "the last try was {passed} s ago, the next may be after {pause} s"
        ));
    }
    let count = last.retry_count.saturating_add(1);
    match settings.max_retry {
        Some(most) if count > most => Err(format!("it was tried {most} times already (maxRetry)")),
        _ => Ok(count),
    }
}

async fn remember(
    scope: &Scope,
    subject: &Subject,
    record: &Record,
) -> Result<(), ControlPlaneError> {
    let text = serde_json::to_string(record).unwrap_or_default();
    annotate(scope, subject, Some(&text)).await
}

/// Sets or removes the annotation of a remediation in progress.
pub(super) async fn annotate(
    scope: &Scope,
    subject: &Subject,
    text: Option<&str>,
) -> Result<(), ControlPlaneError> {
    let planes: Api<KubeadmControlPlane> = scope.context.api(&subject.key.namespace);
    let patch = json!({"metadata": {"annotations": {IN_PROGRESS: text}}});
    let params = PatchParams::default();
    let patched = planes
        .patch(&subject.plane.name_any(), &params, &Patch::Merge(&patch))
        .await;
    patched
        .map(drop)
        .map_err(error::doing("recording a remediation"))
}

async fn write_condition(
    scope: &Scope,
    subject: &Subject,
    seen: &Observation,
    name: &str,
    verdict: Verdict,
) -> Result<(), ControlPlaneError> {
    let machines: Api<Machine> = scope.context.api(&subject.key.namespace);
    let known = seen
        .machines
        .iter()
        .find(|seen| seen.machine.name_any() == name);
    let current = known.and_then(|seen| conditions::find(seen.machine.conditions(), verdict.type_));
    if current.is_some_and(|current| current.message == verdict.message) {
        return Ok(());
    }
    // Read again, because other conditions have been written since.
    let action = || error::doing(format!("writing the status of Machine {name}"));
    let Some(before) = machines.get_opt(name).await.map_err(action())? else {
        return Ok(());
    };
    let mut after = before.clone();
    let status = after.status.get_or_insert_with(MachineStatus::default);
    conditions::set(
        &mut status.conditions,
        verdict,
        before.metadata.generation,
        seen.now,
    );
    operator::patch::status(&machines, &before, &after)
        .await
        .map(drop)
        .map_err(action())
}

#[cfg(test)]
mod tests;
