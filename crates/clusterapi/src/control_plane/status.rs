//! Status of a control plane.

use std::collections::BTreeMap;

use api::conditions::{self, Reason, Status, Type, Verdict};
use api::controlplane::v1beta2::{
    ControlPlaneInitialization, KubeadmControlPlane, KubeadmControlPlaneStatus,
};
use api::core::v1beta2::{Machine, VersionCount};
use api::k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use api::k8s_openapi::jiff::Timestamp;
use api::kube::ResourceExt;
use api::names::{CLUSTER_NAME_LABEL, CONTROL_PLANE_LABEL};
use api::version::Version;

use super::coredns::CoreDns;
use super::etcd::View;
use super::health::{self, Component};
use super::observe::Observation;
use super::plan::{Etcd, Facts, Step, is_progress};
use super::{ControlPlaneError, Duties, error, etcd, pause, quorum, recovery, remediation};
use crate::news::{self, BLOCKED, PendingEvent};
use crate::summary::{self, Reasons};

/// Error of a failed write of the status.
pub(super) fn failed(source: kube::Error) -> ControlPlaneError {
    error::doing("writing the status of the KubeadmControlPlane")(source)
}

/// Object with the status of a paused control plane.
pub(super) fn paused(
    plane: &KubeadmControlPlane,
    reason: &str,
    now: Timestamp,
) -> KubeadmControlPlane {
    let mut after = plane.clone();
    let status = after
        .status
        .get_or_insert_with(KubeadmControlPlaneStatus::default);
    pause::record(
        &mut status.conditions,
        Some(reason),
        plane.metadata.generation,
        now,
    );
    after
}

/// Object with the status of a control plane being deleted.
pub(super) fn deleting(
    plane: &KubeadmControlPlane,
    workers: &[String],
    machines: &[Machine],
    now: Timestamp,
) -> KubeadmControlPlane {
    let mut after = plane.clone();
    let generation = plane.metadata.generation;
    let cluster = plane
        .labels()
        .get(CLUSTER_NAME_LABEL)
        .cloned()
        .unwrap_or_default();
    let status = after
        .status
        .get_or_insert_with(KubeadmControlPlaneStatus::default);
    let refs: Vec<_> = machines.iter().collect();
    count(status, &cluster, &refs);
    let names = |names: &[&str]| summary::some_of(names);
    let (reason, message) = if !workers.is_empty() {
        let workers: Vec<_> = workers.iter().map(String::as_str).collect();
        let message = format!(
            "Waiting for worker Machines to be deleted: {}",
            names(&workers)
        );
        (Reason::WaitingForWorkersDeletion, message)
    } else if machines.is_empty() {
        (Reason::DeletionCompleted, String::new())
    } else {
        let machines: Vec<_> = machines
            .iter()
            .filter_map(|m| m.metadata.name.as_deref())
            .collect();
        let message = format!("Waiting for Machines to be deleted: {}", names(&machines));
        (Reason::WaitingForMachineDeletion, message)
    };
    let available = Verdict::new(Type::Available, false, Reason::NotAvailable)
        .because("* Control plane metadata.deletionTimestamp is set");
    for verdict in [
        available,
        Verdict::new(Type::Deleting, true, reason).because(message),
    ] {
        conditions::set(&mut status.conditions, verdict, generation, now);
    }
    after
}

/// Object with the status for the observed state and the current [`Step`].
pub(super) fn after(
    plane: &KubeadmControlPlane,
    seen: &Observation,
    step: &Step,
    problem: Option<&ControlPlaneError>,
    duties: &Duties,
) -> KubeadmControlPlane {
    let now = seen.now;
    let mut after = plane.clone();
    let generation = plane.metadata.generation;
    let cluster = plane
        .labels()
        .get(CLUSTER_NAME_LABEL)
        .cloned()
        .unwrap_or_default();
    let machines: Vec<_> = seen.machines.iter().map(|seen| &seen.machine).collect();
    let status = after
        .status
        .get_or_insert_with(KubeadmControlPlaneStatus::default);
    count(status, &cluster, &machines);
    if seen.facts.initialized {
        status.initialization = Some(ControlPlaneInitialization {
            control_plane_initialized: Some(true),
        });
    }
    let last = remediation::last(plane, &seen.machines);
    status.last_remediation = last
        .map(remediation::status)
        .or(status.last_remediation.take());
    status.observed_generation = generation;
    let of_coredns = core_dns(&status.conditions, &seen.coredns);
    let of_recovery = seen.recovery.verdict(plane, &status.conditions);
    let of_duties = duties.verdict(&status.conditions);
    let verdicts = verdicts(seen, step, problem).into_iter();
    let optional = of_coredns.into_iter().chain(of_recovery).chain(of_duties);
    for verdict in verdicts.chain(optional) {
        conditions::set(&mut status.conditions, verdict, generation, now);
    }
    pause::record(&mut status.conditions, None, generation, now);
    after
}

/// Object with the status while its machines are unknown: the reported state of machines stays.
pub(super) fn unseen(
    plane: &KubeadmControlPlane,
    duties: &Duties,
    now: Timestamp,
) -> KubeadmControlPlane {
    let mut after = plane.clone();
    let status = after
        .status
        .get_or_insert_with(KubeadmControlPlaneStatus::default);
    if let Some(verdict) = duties.verdict(&status.conditions) {
        conditions::set(
            &mut status.conditions,
            verdict,
            plane.metadata.generation,
            now,
        );
    }
    after
}

/// [`Condition`] of CoreDNS, set from the first problem on. Upstream has no such condition.
fn core_dns(before: &[Condition], state: &CoreDns) -> Option<Verdict> {
    const TYPE: Type = Type::CoreDNSUpToDate;
    let reason = match state {
        CoreDns::Blocked(why) => {
            let why = format!("CoreDNS stays as it is: {why}");
            return Some(Verdict::new(TYPE, false, Reason::NotUpToDate).because(why));
        }
        CoreDns::NotRead => return None,
        CoreDns::Skipped => Reason::Skipped,
        // The upgrade has been applied.
        CoreDns::InOrder | CoreDns::Outdated(_) => Reason::UpToDate,
    };
    conditions::find(before, TYPE).map(|_| Verdict::new(TYPE, true, reason))
}

/// Events for the changes of the status.
pub(super) fn news(before: &KubeadmControlPlane, after: &KubeadmControlPlane) -> Vec<PendingEvent> {
    let list = |plane: &KubeadmControlPlane| {
        let status = plane.status.clone().unwrap_or_default();
        status.conditions
    };
    let (before, after) = (list(before), list(after));
    let news = news::rollout(&before, &after).into_iter();
    let blocked = news::blocked(&before, &after, "ControlPlaneUnhealthy");
    let of_recovery = recovery::news(&before, &after);
    let of_duties = news::of_duties(&before, &after);
    let paused = news::pause(&before, &after);
    news.chain(blocked)
        .chain(of_recovery)
        .chain(of_duties)
        .chain(paused)
        .collect()
}

fn count(status: &mut KubeadmControlPlaneStatus, cluster: &str, machines: &[&Machine]) {
    let holding = |type_: Type| {
        let holds = machines
            .iter()
            .filter(|m| conditions::is_true(m.conditions(), type_));
        Some(i32::try_from(holds.count()).unwrap_or(i32::MAX))
    };
    status.selector = Some(format!(
        "{CLUSTER_NAME_LABEL}={cluster},{CONTROL_PLANE_LABEL}"
    ));
    status.replicas = Some(i32::try_from(machines.len()).unwrap_or(i32::MAX));
    status.ready_replicas = holding(Type::Ready);
    status.available_replicas = holding(Type::Available);
    status.up_to_date_replicas = holding(Type::UpToDate);
    status.versions = versions(machines);
    status.version = status.versions.first().map(|oldest| oldest.version.clone());
}

/// Versions of the [`Machine`]s, oldest first.
fn versions(machines: &[&Machine]) -> Vec<VersionCount> {
    let mut counts: BTreeMap<&str, i32> = BTreeMap::new();
    for version in machines
        .iter()
        .filter_map(|machine| machine.spec.version.as_deref())
    {
        *counts.entry(version).or_default() += 1;
    }
    let mut versions: Vec<_> = counts
        .into_iter()
        .map(|(version, count)| VersionCount {
            version: version.to_owned(),
            replicas: Some(count),
        })
        .collect();
    versions.sort_by_key(|count| count.version.parse::<Version>().ok());
    versions
}

fn verdicts(seen: &Observation, step: &Step, problem: Option<&ControlPlaneError>) -> Vec<Verdict> {
    let facts = &seen.facts;
    let certificates = certificates(problem);
    let etcd = etcd(seen);
    let components = components(seen);
    vec![
        available(facts, &certificates, &etcd, seen),
        initialized(facts),
        certificates,
        etcd,
        components,
        machines(
            seen,
            Type::MachinesReady,
            Type::Ready,
            Reasons {
                good: Reason::Ready,
                bad: Reason::NotReady,
                unknown: Reason::ReadyUnknown,
            },
        ),
        machines(
            seen,
            Type::MachinesUpToDate,
            Type::UpToDate,
            Reasons {
                good: Reason::UpToDate,
                bad: Reason::NotUpToDate,
                unknown: Reason::UpToDateUnknown,
            },
        ),
        rolling_out(facts, step),
        scaling_up(facts, step),
        scaling_down(facts, step),
        remediating(seen),
        Verdict::new(Type::Deleting, false, Reason::NotDeleting),
    ]
}

fn certificates(problem: Option<&ControlPlaneError>) -> Verdict {
    match problem {
        None => Verdict::new(Type::CertificatesAvailable, true, Reason::Available),
        Some(problem) => Verdict::new(Type::CertificatesAvailable, false, Reason::NotAvailable)
            .because(operator::words::chain(problem)),
    }
}

fn initialized(facts: &Facts) -> Verdict {
    if facts.initialized {
        return Verdict::new(Type::Initialized, true, Reason::Initialized);
    }
    Verdict::new(Type::Initialized, false, Reason::NotInitialized).because(uninitialized(facts))
}

/// Awaited step of an uninitialized control plane.
fn uninitialized(facts: &Facts) -> &'static str {
    match facts.infrastructure {
        true => summary::FIRST_NODE,
        false => summary::INFRASTRUCTURE,
    }
}

fn etcd(seen: &Observation) -> Verdict {
    let verdict = |status: Status, reason| Verdict::new(Type::EtcdClusterHealthy, status, reason);
    let unknown = |text: &str| verdict(Status::Unknown, Reason::HealthUnknown).because(text);
    if !seen.facts.initialized {
        return unknown(uninitialized(&seen.facts));
    }
    let members = match &seen.etcd {
        View::External => {
            return verdict(Status::True, Reason::Healthy).because("etcd is external");
        }
        View::Unknown(why) => return unknown(why),
        View::Known(_) if seen.etcd.is_settled() => return verdict(Status::True, Reason::Healthy),
        View::Known(members) | View::NoQuorum(members) => members,
    };
    let count = etcd::count(members);
    let mut lines = vec![format!(
        "{} of {} voting members are healthy, {} are needed",
        count.voters.saturating_sub(count.unhealthy),
        count.voters,
        quorum::quorum(count.voters)
    )];
    for member in members {
        let name = match member.name.as_str() {
            "" => &member.host,
            name => name,
        };
        let learner = member.learner.then(|| "it is still a learner".to_owned());
        if let Some(problem) = member.problem.clone().or(learner) {
            lines.push(format!("* etcd member {name}: {problem}"));
        }
    }
    verdict(Status::False, Reason::NotHealthy).because(lines.join("\n"))
}

/// True if etcd has its quorum; always true for an external etcd.
fn has_quorum(facts: &Facts) -> bool {
    match facts.etcd {
        Etcd::External => true,
        Etcd::Unknown(_) => false,
        Etcd::Known(members) => members.has_quorum(),
    }
}

fn components(seen: &Observation) -> Verdict {
    let type_ = Type::ControlPlaneComponentsHealthy;
    let unknown =
        |text: &str| Verdict::new(type_, Status::Unknown, Reason::HealthUnknown).because(text);
    if !seen.facts.initialized {
        return unknown(uninitialized(&seen.facts));
    }
    if !seen.facts.reachable {
        return unknown("The workload cluster cannot be reached");
    }
    let apps = [
        Component::ApiServer,
        Component::ControllerManager,
        Component::Scheduler,
    ];
    let mut lines = Vec::new();
    for machine in &seen.machines {
        let bad = |verdict: &&Verdict| {
            apps.iter().any(|app| verdict.type_ == app.condition())
                && verdict.status != Status::True
        };
        let problems: Vec<_> = machine
            .verdicts
            .iter()
            .filter(bad)
            .map(|verdict| verdict.type_)
            .collect();
        if !problems.is_empty() {
            let name = machine.machine.name_any();
            lines.push(format!(
                "* Machine {name}: {} not true",
                problems.join(", ")
            ));
        }
    }
    if lines.is_empty() {
        return Verdict::new(type_, true, Reason::Healthy);
    }
    Verdict::new(type_, false, Reason::NotHealthy).because(lines.join("\n"))
}

/// Available: the control plane is initialized, etcd has its quorum, and at least one machine runs every component.
fn available(facts: &Facts, certificates: &Verdict, etcd: &Verdict, seen: &Observation) -> Verdict {
    let mut lines = Vec::new();
    if !facts.initialized {
        lines.push(format!("* {}", uninitialized(facts)));
    } else if !facts.reachable {
        lines.push("* The workload cluster cannot be reached".to_owned());
    } else {
        let whole = |machine: &super::observe::Seen| {
            health::gates(seen.etcd == View::External)
                .iter()
                .all(|gate| {
                    let verdict = machine
                        .verdicts
                        .iter()
                        .find(|verdict| verdict.type_ == *gate);
                    verdict.is_some_and(|verdict| verdict.status == Status::True)
                })
        };
        // The cause of the next line, where both are there.
        if !has_quorum(facts) {
            lines.push(format!("* etcd: {}", etcd.message));
        }
        if !seen.machines.iter().any(whole) {
            lines.push(
                "* There are no Machines with healthy control plane components, at least 1 required"
                    .to_owned(),
            );
        }
    }
    if certificates.status != Status::True {
        lines.push("* Control plane certificates are not available".to_owned());
    }
    if lines.is_empty() {
        return Verdict::new(Type::Available, true, Reason::Available);
    }
    Verdict::new(Type::Available, false, Reason::NotAvailable).because(lines.join("\n"))
}

fn machines(seen: &Observation, type_: Type, from: Type, reasons: Reasons) -> Verdict {
    if seen.machines.is_empty() {
        return Verdict::new(type_, true, Reason::NoReplicas);
    }
    // The conditions that are about to be written take precedence over the stored ones.
    let fresh: Vec<(String, Vec<Condition>)> = seen
        .machines
        .iter()
        .map(|machine| {
            let mut list = machine.machine.conditions().to_vec();
            for verdict in machine
                .verdicts
                .iter()
                .filter(|verdict| verdict.type_ == from)
            {
                conditions::set(&mut list, verdict.clone(), None, seen.now);
            }
            (machine.machine.name_any(), list)
        })
        .collect();
    let objects = fresh
        .iter()
        .map(|(name, list)| (name.as_str(), list.as_slice()));
    summary::aggregate(type_, from, objects, "Machine", reasons)
}

fn remediating(seen: &Observation) -> Verdict {
    let ill = seen.machines.iter().filter(|machine| {
        let found = conditions::find(machine.machine.conditions(), Type::OwnerRemediated);
        found.is_some_and(|found| found.status == "False")
    });
    let names: Vec<_> = ill
        .filter_map(|seen| seen.machine.metadata.name.as_deref())
        .collect();
    if names.is_empty() {
        return Verdict::new(Type::Remediating, false, Reason::NotRemediating);
    }
    let message = format!("Machines {}", summary::some_of(&names));
    Verdict::new(Type::Remediating, true, Reason::Remediating).because(message)
}

fn rolling_out(facts: &Facts, step: &Step) -> Verdict {
    let outdated: Vec<_> = facts
        .machines
        .iter()
        .filter(|m| !m.outdated.is_empty())
        .collect();
    if outdated.is_empty() {
        return Verdict::new(Type::RollingOut, false, Reason::NotRollingOut);
    }
    let mut reasons: Vec<_> = outdated
        .iter()
        .flat_map(|m| m.outdated.iter())
        .cloned()
        .collect();
    reasons.sort();
    reasons.dedup();
    let head = format!("Rolling out {} not up-to-date replicas", outdated.len());
    Verdict::new(Type::RollingOut, true, Reason::RollingOut).because(with_obstacles(
        format!("{head}\n{}", reasons.join("\n")),
        step,
    ))
}

fn scaling_up(facts: &Facts, step: &Step) -> Verdict {
    let count = facts.machines.len();
    if count >= facts.replicas {
        return Verdict::new(Type::ScalingUp, false, Reason::NotScalingUp);
    }
    let head = format!("Scaling up from {count} to {} replicas", facts.replicas);
    Verdict::new(Type::ScalingUp, true, Reason::ScalingUp).because(with_obstacles(head, step))
}

fn scaling_down(facts: &Facts, step: &Step) -> Verdict {
    let count = facts.machines.len();
    if count <= facts.replicas {
        return Verdict::new(Type::ScalingDown, false, Reason::NotScalingDown);
    }
    let head = format!("Scaling down from {count} to {} replicas", facts.replicas);
    Verdict::new(Type::ScalingDown, true, Reason::ScalingDown).because(with_obstacles(head, step))
}

/// `head` with the obstacles to the creation or deletion of the next machine, or only with progress.
fn with_obstacles(head: String, step: &Step) -> String {
    let Step::Wait(problems) = step else {
        return head;
    };
    if problems.is_empty() {
        return head;
    }
    let lines: Vec<_> = problems.iter().map(|line| format!("* {line}")).collect();
    let lines = lines.join("\n");
    match (
        problems.iter().all(|line| is_progress(line)),
        head.lines().count(),
    ) {
        (true, _) => format!("{head}\nThis takes a moment:\n{lines}"),
        (false, 1) => format!("{head} {BLOCKED}\n{lines}"),
        (false, _) => format!("{head}\nThis {BLOCKED}\n{lines}"),
    }
}
