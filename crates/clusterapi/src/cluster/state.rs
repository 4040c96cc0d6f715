//! Derives the spec and status of a [`Cluster`] from the observed state (pure).

use std::sync::Arc;

use api::conditions::{self, Reason, Type, Verdict};
use api::core::v1beta2::{
    Cluster, ClusterControlPlaneStatus, ClusterPhase, ClusterStatus, Machine, MachineDeployment,
    VersionCount, WorkersStatus,
};
use api::k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use api::k8s_openapi::jiff::Timestamp;
use api::kube::ResourceExt;
use api::kube::api::DynamicObject;
use api::names::WORKLOAD_UID_ANNOTATION;
use serde::Deserialize;

use super::descendants::{self, Descendants};
use super::facts::Facts;
use crate::duties::Duties;
use crate::external::{Referenced, absent, contract, deleted, mirrored};
use crate::remote::Health;
use crate::summary::{FIRST_NODE, INFRASTRUCTURE, Part, Reasons, aggregate, summarize};
use crate::{Error, counts, owners, pause};

/// Reason why infrastructure and control plane of a Cluster with a topology do not exist yet, in upstream's words.
const TOPOLOGY: &str = "Waiting for cluster topology to be reconciled";

/// Reasons of `TopologyReconciled` for an unavailable Cluster; the other reasons mean a change in progress.
const BROKEN: [Reason; 2] = [Reason::ReconcileFailed, Reason::ClusterClassNotReconciled];

/// [`Cluster`] to store.
pub(super) fn desired(cluster: &Cluster, facts: &Facts, now: Timestamp) -> Cluster {
    let mut after = cluster.clone();
    let mut status = after.status.take().unwrap_or_default();
    infrastructure(&mut after, &mut status, &facts.infrastructure);
    control_plane(&mut after, &mut status, facts);
    record_uid(&mut after, facts.health.uid.as_deref());
    count(&mut status, facts, cluster.spec.topology.is_some());
    after.status = Some(status);
    let mut verdicts = vec![
        infrastructure_ready(&after, &facts.infrastructure),
        control_plane_initialized(&after),
        control_plane_available(&after, &facts.control_plane),
        workers_available(facts),
        Verdict::new(Type::Deleting, false, Reason::NotDeleting),
        pause::verdict(None),
    ];
    verdicts.extend(remote_probe(&after, &facts.health));
    verdicts.extend(descendants::verdicts(
        &after,
        &Descendants::from_facts(facts),
        now,
    ));
    conclude(&mut after, verdicts, now);
    after
}

/// Counts the machines. The plans of an upgrade are of the controller of topologies, and stay.
fn count(status: &mut ClusterStatus, facts: &Facts, topology: bool) {
    let plane = status.control_plane.take().and_then(|it| it.upgrade_plan);
    let workers = status.workers.take().and_then(|it| it.upgrade_plan);
    status.control_plane = control_plane_counts(facts).map(|counts| ClusterControlPlaneStatus {
        upgrade_plan: plane.filter(|_| topology),
        ..counts
    });
    status.workers = Some(WorkersStatus {
        upgrade_plan: workers.filter(|_| topology),
        ..worker_counts(facts)
    });
}

/// Records the uid with which programs in the cluster mark their resources in the cloud: during the deletion of the
/// cluster, its API server may not answer any more. The first uid stays.
fn record_uid(cluster: &mut Cluster, uid: Option<&str>) {
    let known = cluster.annotations().contains_key(WORKLOAD_UID_ANNOTATION);
    if let Some(uid) = uid.filter(|_| !known) {
        let annotations = cluster.annotations_mut();
        annotations.insert(WORKLOAD_UID_ANNOTATION.to_owned(), uid.to_owned());
    }
}

/// Reports the [`Duties`] of the reconcile; the generation is observed if none failed.
pub(super) fn report(cluster: &mut Cluster, duties: &Duties<Error>, now: Timestamp) {
    let generation = cluster.metadata.generation;
    let status = cluster.status.get_or_insert_default();
    if duties.report(&mut status.conditions, generation, now) {
        status.observed_generation = generation;
    }
}

/// Sets `verdicts`, and derives `Available` and the phase from the conditions.
pub(super) fn conclude(cluster: &mut Cluster, verdicts: Vec<Verdict>, now: Timestamp) {
    let generation = cluster.metadata.generation;
    let mut status = cluster.status.take().unwrap_or_default();
    for verdict in verdicts {
        conditions::set(&mut status.conditions, verdict, generation, now);
    }
    let available = available(cluster, &status.conditions);
    conditions::set(&mut status.conditions, available, generation, now);
    cluster.status = Some(status);
    let phase = phase(cluster);
    if let Some(status) = cluster.status.as_mut() {
        status.phase = Some(phase);
    }
}

/// Phase, by the rules of Cluster API.
pub(super) fn phase(cluster: &Cluster) -> ClusterPhase {
    let referring =
        cluster.spec.infrastructure_ref.is_some() || cluster.spec.control_plane_ref.is_some();
    if cluster.metadata.deletion_timestamp.is_some() {
        ClusterPhase::Deleting
    } else if cluster.infrastructure_provisioned() && cluster.endpoint().is_some() {
        ClusterPhase::Provisioned
    } else if referring {
        ClusterPhase::Provisioning
    } else {
        ClusterPhase::Pending
    }
}

fn infrastructure(cluster: &mut Cluster, status: &mut ClusterStatus, seen: &Referenced) {
    let provisioned = match seen {
        // The controller of topologies creates the objects.
        Referenced::Nothing => cluster.spec.topology.is_none(),
        Referenced::There(object, version) if contract::provisioned(object, *version) => {
            take_endpoint(cluster, object);
            let domains = contract::failure_domains(object);
            status.failure_domains = (!domains.is_empty()).then_some(domains);
            true
        }
        _ => false,
    };
    if provisioned {
        status
            .initialization
            .get_or_insert_default()
            .infrastructure_provisioned = Some(true);
    }
}

fn control_plane(cluster: &mut Cluster, status: &mut ClusterStatus, facts: &Facts) {
    let initialized = match &facts.control_plane {
        Referenced::There(object, version) => {
            take_endpoint(cluster, object);
            contract::control_plane_initialized(object, *version)
        }
        // A control plane without a controller is initialized once one machine has a Node.
        Referenced::Nothing => facts
            .machines
            .iter()
            .any(|m| m.is_control_plane() && m.node_name().is_some()),
        _ => false,
    };
    if initialized {
        status
            .initialization
            .get_or_insert_default()
            .control_plane_initialized = Some(true);
    }
}

fn take_endpoint(cluster: &mut Cluster, object: &DynamicObject) {
    if cluster.endpoint().is_none()
        && let Some(endpoint) = contract::endpoint(object)
    {
        cluster.spec.control_plane_endpoint = Some(endpoint);
    }
}

fn control_plane_counts(facts: &Facts) -> Option<ClusterControlPlaneStatus> {
    let machines: Vec<_> = facts
        .machines
        .iter()
        .filter(|machine| machine.is_control_plane())
        .cloned()
        .collect();
    let seen = counts::of(&machines);
    let counted = ClusterControlPlaneStatus {
        desired_replicas: Some(seen.replicas),
        replicas: Some(seen.replicas),
        ready_replicas: Some(seen.ready),
        available_replicas: Some(seen.available),
        up_to_date_replicas: Some(seen.up_to_date),
        versions: counts::versions(&machines),
        upgrade_plan: None,
    };
    let Referenced::There(object, _) = &facts.control_plane else {
        return (!machines.is_empty()).then_some(counted);
    };
    let number =
        |path: &str, fallback: i32| Some(contract::number(object, path).unwrap_or(fallback));
    let versions = object.data.pointer("/status/versions");
    let versions = versions.and_then(|list| Vec::<VersionCount>::deserialize(list).ok());
    Some(ClusterControlPlaneStatus {
        desired_replicas: number("/spec/replicas", 1),
        replicas: number("/status/replicas", seen.replicas),
        ready_replicas: number("/status/readyReplicas", seen.ready),
        available_replicas: number("/status/availableReplicas", seen.available),
        up_to_date_replicas: number("/status/upToDateReplicas", seen.up_to_date),
        versions: versions
            .filter(|list| !list.is_empty())
            .or(counted.versions),
        upgrade_plan: None,
    })
}

fn worker_counts(facts: &Facts) -> WorkersStatus {
    let workers: Vec<Arc<Machine>> = facts
        .machines
        .iter()
        .filter(|machine| !machine.is_control_plane())
        .cloned()
        .collect();
    let of_deployments: i32 = facts.deployments.iter().map(|md| md.replicas()).sum();
    let alone = |owner: Option<&str>, kind: &str| owner != Some(kind);
    let sets = facts.sets.iter().filter(|set| {
        let owner = owners::controller_of(&set.metadata).map(|owner| owner.kind.as_str());
        alone(owner, "MachineDeployment")
    });
    let of_sets: i32 = sets.map(|set| set.replicas()).sum();
    let machines = workers.iter().filter(|machine| {
        let owner = owners::controller_of(&machine.metadata).map(|owner| owner.kind.as_str());
        alone(owner, "MachineSet")
    });
    let seen = counts::of(&workers);
    WorkersStatus {
        desired_replicas: Some(of_deployments + of_sets + counts::number(machines.count())),
        replicas: Some(seen.replicas),
        ready_replicas: Some(seen.ready),
        available_replicas: Some(seen.available),
        up_to_date_replicas: Some(seen.up_to_date),
        versions: counts::versions(&workers),
        upgrade_plan: None,
    }
}

fn infrastructure_ready(cluster: &Cluster, seen: &Referenced) -> Verdict {
    let type_ = Type::InfrastructureReady;
    let kind = cluster
        .spec
        .infrastructure_ref
        .as_ref()
        .map_or("", |reference| &reference.kind);
    match seen {
        Referenced::Nothing if cluster.spec.topology.is_some() => {
            Verdict::new(type_, false, Reason::DoesNotExist).because(TOPOLOGY)
        }
        Referenced::Nothing => Verdict::new(type_, true, Reason::NoInfrastructure)
            .because("spec.infrastructureRef is not set: the infrastructure is there already"),
        Referenced::There(object, version) => {
            let done = contract::provisioned(object, *version);
            mirrored(
                type_,
                object,
                Type::Ready,
                done,
                "create the infrastructure",
            )
        }
        Referenced::Missing if cluster.infrastructure_provisioned() => {
            deleted(type_, kind, "Cluster")
        }
        other => absent(type_, kind, other),
    }
}

fn control_plane_initialized(cluster: &Cluster) -> Verdict {
    match cluster.control_plane_initialized() {
        true => Verdict::new(Type::ControlPlaneInitialized, true, Reason::Initialized),
        false => Verdict::new(Type::ControlPlaneInitialized, false, Reason::NotInitialized)
            .because(match cluster.infrastructure_provisioned() {
                true => FIRST_NODE,
                false => INFRASTRUCTURE,
            }),
    }
}

fn control_plane_available(cluster: &Cluster, seen: &Referenced) -> Verdict {
    let type_ = Type::ControlPlaneAvailable;
    let kind = cluster
        .spec
        .control_plane_ref
        .as_ref()
        .map_or("", |reference| &reference.kind);
    match seen {
        Referenced::Nothing if cluster.spec.topology.is_some() => {
            Verdict::new(type_, false, Reason::DoesNotExist).because(TOPOLOGY)
        }
        Referenced::Nothing => match cluster.control_plane_initialized() {
            true => Verdict::new(type_, true, Reason::Available),
            false => Verdict::new(type_, false, Reason::NotAvailable).because(
                "spec.controlPlaneRef is not set, and no control plane machine has a Node",
            ),
        },
        Referenced::There(object, version) => {
            let done = contract::control_plane_initialized(object, *version);
            mirrored(
                type_,
                object,
                Type::Available,
                done,
                "initialize the control plane",
            )
        }
        Referenced::Missing if cluster.control_plane_initialized() => {
            deleted(type_, kind, "Cluster")
        }
        other => absent(type_, kind, other),
    }
}

fn workers_available(facts: &Facts) -> Verdict {
    let type_ = Type::WorkersAvailable;
    if facts.deployments.is_empty() {
        return Verdict::new(type_, true, Reason::NoWorkers);
    }
    let reasons = Reasons {
        good: Reason::Available,
        bad: Reason::NotAvailable,
        unknown: Reason::AvailableUnknown,
    };
    let names: Vec<_> = facts.deployments.iter().map(|md| md.name_any()).collect();
    let objects = names
        .iter()
        .zip(&facts.deployments)
        .map(|(name, md): (_, &Arc<MachineDeployment>)| (name.as_str(), md.conditions()));
    aggregate(
        type_,
        Type::Available,
        objects,
        "MachineDeployment",
        reasons,
    )
}

/// Condition of the connection; `None` during the first attempt to connect, so that the reported condition stays.
fn remote_probe(cluster: &Cluster, health: &Health) -> Option<Verdict> {
    let type_ = Type::RemoteConnectionProbe;
    if health.connected {
        return Some(Verdict::new(type_, true, Reason::ProbeSucceeded));
    }
    if health.is_connecting() && conditions::find(cluster.conditions(), type_).is_some() {
        return None;
    }
    let problem = health.problem.as_deref().unwrap_or("not tried yet");
    let text = match health.last_success {
        None => format!("Remote connection not established yet: {problem}"),
        Some(_) => format!("Remote connection probe failed: {problem}"),
    };
    Some(Verdict::new(type_, false, Reason::ProbeFailed).because(text))
}

fn available(cluster: &Cluster, list: &[Condition]) -> Verdict {
    let reasons = Reasons {
        good: Reason::Available,
        bad: Reason::NotAvailable,
        unknown: Reason::AvailableUnknown,
    };
    let mut parts = vec![
        Part::negative(Type::Deleting),
        Part::positive(Type::RemoteConnectionProbe),
        Part::positive(Type::InfrastructureReady),
        Part::positive(Type::ControlPlaneAvailable),
        Part::positive(Type::WorkersAvailable),
    ];
    // As upstream: a cluster is available during an upgrade.
    let topology = conditions::find(list, Type::TopologyReconciled);
    if topology.is_none_or(|found| BROKEN.iter().any(|it| found.reason == *it)) {
        parts.push(Part::positive(Type::TopologyReconciled).optional());
    }
    parts.extend(
        cluster
            .spec
            .availability_gates
            .iter()
            .flatten()
            .map(Part::gate),
    );
    summarize(Type::Available, list, &parts, reasons)
}

#[cfg(test)]
mod tests;
