//! Derives the spec and status of a [`Machine`] from the observed state (pure).

use std::time::Duration;

use api::conditions::{self, Reason, Status, Type, Verdict};
use api::core::v1beta2::{
    Machine, MachineInitialization, MachinePhase, MachineStatus, NodeInfo, NodeReference, NodeSwap,
};
use api::k8s_openapi::api::core::v1::{Node, NodeSystemInfo};
use api::k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use api::k8s_openapi::jiff::Timestamp;
use api::kube::ResourceExt;
use api::names::CERTIFICATES_EXPIRY_ANNOTATION;

use super::facts::{Facts, Seen};
use super::update;
use crate::duties::Duties;
use crate::external::{Referenced, absent, contract, deleted, mirrored};
use crate::remote::Health;
use crate::summary::{FIRST_NODE, INFRASTRUCTURE, Part, Reasons, summarize};
use crate::{Error, pause};

/// Time in which the conditions stay unchanged after the last response of a workload cluster.
const REMOTE_GRACE: Duration = Duration::from_secs(300);

/// [`Machine`] to store.
pub(super) fn desired(machine: &Machine, facts: &Facts, now: Timestamp) -> Machine {
    let mut after = machine.clone();
    let mut status = after.status.take().unwrap_or_default();
    bootstrap(&mut after, &mut status, &facts.bootstrap);
    infrastructure(&mut after, &mut status, &facts.infrastructure);
    if update::has_left(machine) && matches!(facts.node, Seen::Absent) {
        (status.node_ref, status.node_info) = (None, None);
    }
    if let Seen::Found(node) = &facts.node {
        status.node_ref = Some(NodeReference {
            name: node.name_any(),
        });
        status.node_info = node
            .status
            .as_ref()
            .and_then(|s| s.node_info.as_ref())
            .map(info);
    }
    status.certificates_expiry_date = certificates_expiry(machine, &facts.bootstrap);
    after.status = Some(status);
    let verdicts = [
        vec![
            bootstrap_ready(&after, &facts.bootstrap),
            infrastructure_ready(&after, facts),
        ],
        node_verdicts(&after, facts, now),
        vec![
            Verdict::new(Type::Deleting, false, Reason::NotDeleting),
            pause::verdict(None),
        ],
    ];
    conclude(&mut after, verdicts.concat(), now);
    after
}

/// Reports the [`Duties`] of the reconcile; the generation is observed if none failed.
pub(super) fn report(machine: &mut Machine, duties: &Duties<Error>, now: Timestamp) {
    let generation = machine.metadata.generation;
    let status = machine.status.get_or_insert_default();
    if duties.report(&mut status.conditions, generation, now) {
        status.observed_generation = generation;
    }
}

/// Sets `verdicts`, and derives `Ready`, `Available` and the phase from the conditions.
pub(super) fn conclude(machine: &mut Machine, verdicts: Vec<Verdict>, now: Timestamp) {
    let generation = machine.metadata.generation;
    let mut status = machine.status.take().unwrap_or_default();
    let list = &mut status.conditions;
    for verdict in verdicts {
        conditions::set(list, verdict, generation, now);
    }
    let ready = ready(machine, list);
    conditions::set(list, ready, generation, now);
    let available = available(machine, list, now);
    conditions::set(list, available, generation, now);
    let before = status.phase;
    machine.status = Some(status);
    let phase = phase(machine);
    if let Some(status) = machine.status.as_mut() {
        status.phase = Some(phase);
        if before != Some(phase) {
            status.last_updated = Some(Time(now));
        }
    }
}

/// Phase, by the rules of Cluster API.
pub(super) fn phase(machine: &Machine) -> MachinePhase {
    let provisioned = machine.infrastructure_provisioned();
    if machine.is_deleting() {
        MachinePhase::Deleting
    } else if crate::update::is_under_way(machine) {
        MachinePhase::Updating
    } else if provisioned && machine.node_name().is_some() {
        MachinePhase::Running
    } else if provisioned && machine.spec.provider_id.is_some() {
        MachinePhase::Provisioned
    } else if machine.bootstrap_ready() {
        MachinePhase::Provisioning
    } else {
        MachinePhase::Pending
    }
}

/// Time until the state changes without an event: the [`Machine`] becomes available, or [`REMOTE_GRACE`] ends.
pub(super) fn look_again(machine: &Machine, now: Timestamp) -> Option<Duration> {
    let available = conditions::find(machine.conditions(), Type::Available)?;
    if available.reason == Reason::WaitingForMinReadySeconds {
        let ready = conditions::find(machine.conditions(), Type::Ready)?;
        return Some(left(machine, ready, now)?.max(Duration::from_millis(100)));
    }
    let healthy = conditions::find(machine.conditions(), Type::NodeHealthy)?;
    (healthy.reason == Reason::ConnectionDown || machine.node_name().is_some())
        .then_some(REMOTE_GRACE)
}

fn bootstrap(machine: &mut Machine, status: &mut MachineStatus, seen: &Referenced) {
    let created = match seen {
        Referenced::There(object, version) if contract::data_secret_created(object, *version) => {
            let name = contract::text(object, "/status/dataSecretName");
            if let Some(name) = name {
                machine.spec.bootstrap.data_secret_name = Some(name.to_owned());
            }
            name.is_some()
        }
        Referenced::Nothing => machine
            .spec
            .bootstrap
            .data_secret_name
            .as_ref()
            .is_some_and(|name| !name.is_empty()),
        _ => false,
    };
    if created {
        initialization(status).bootstrap_data_secret_created = Some(true);
    }
}

fn infrastructure(machine: &mut Machine, status: &mut MachineStatus, seen: &Referenced) {
    let Referenced::There(object, version) = seen else {
        return;
    };
    if !contract::provisioned(object, *version) {
        return;
    }
    // By the contract the provider ID is set no later than `provisioned`.
    let Some(provider_id) = contract::text(object, "/spec/providerID") else {
        return;
    };
    machine.spec.provider_id = Some(provider_id.to_owned());
    let addresses = contract::addresses(object);
    if !addresses.is_empty() {
        status.addresses = Some(addresses);
    }
    let domain = contract::text(object, "/status/failureDomain")
        .or_else(|| contract::text(object, "/spec/failureDomain"))
        .map(str::to_owned)
        .or_else(|| machine.spec.failure_domain.clone());
    if domain.is_some() {
        status.failure_domain = domain;
    }
    initialization(status).infrastructure_provisioned = Some(true);
}

fn initialization(status: &mut MachineStatus) -> &mut MachineInitialization {
    status.initialization.get_or_insert_default()
}

fn certificates_expiry(machine: &Machine, bootstrap: &Referenced) -> Option<Time> {
    let of_bootstrap = match bootstrap {
        Referenced::There(object, _) => object.annotations().get(CERTIFICATES_EXPIRY_ANNOTATION),
        _ => None,
    };
    let text = machine
        .annotations()
        .get(CERTIFICATES_EXPIRY_ANNOTATION)
        .or(of_bootstrap)?;
    text.parse().ok().map(Time)
}

fn bootstrap_ready(machine: &Machine, seen: &Referenced) -> Verdict {
    let type_ = Type::BootstrapConfigReady;
    let kind = machine
        .spec
        .bootstrap
        .config_ref
        .as_ref()
        .map_or("", |reference| &reference.kind);
    match seen {
        Referenced::Nothing if machine.spec.bootstrap.data_secret_name.is_some() => {
            Verdict::new(type_, true, Reason::DataSecretProvided)
        }
        Referenced::Nothing => Verdict::new(type_, false, Reason::NotReady)
            .because("spec.bootstrap names neither a config nor a Secret"),
        Referenced::There(object, version) => {
            let done = contract::data_secret_created(object, *version);
            mirrored(
                type_,
                object,
                Type::Ready,
                done,
                "create the bootstrap data",
            )
        }
        // The bootstrap data has been used, so a deleted config is not a problem.
        Referenced::Missing if machine.bootstrap_ready() => {
            Verdict::new(type_, true, Reason::Ready)
                .because(format!("{kind} does not exist any more"))
        }
        other => absent(type_, kind, other),
    }
}

fn infrastructure_ready(machine: &Machine, facts: &Facts) -> Verdict {
    let type_ = Type::InfrastructureReady;
    let kind = &machine.spec.infrastructure_ref.kind;
    match &facts.infrastructure {
        Referenced::There(object, version) => {
            let done = contract::provisioned(object, *version);
            if done && contract::text(object, "/spec/providerID").is_none() {
                return Verdict::new(type_, false, Reason::NotReady)
                    .because(format!("{kind} is provisioned but has no spec.providerID"));
            }
            mirrored(type_, object, Type::Ready, done, "create the machine")
        }
        Referenced::Missing if machine.infrastructure_provisioned() => {
            deleted(type_, kind, "Machine")
        }
        other => absent(type_, kind, other),
    }
}

fn node_verdicts(machine: &Machine, facts: &Facts, now: Timestamp) -> Vec<Verdict> {
    let both = |status: Status, reason: Reason, message: String| {
        [Type::NodeReady, Type::NodeHealthy]
            .map(|type_| Verdict::new(type_, status, reason).because(message.clone()))
            .to_vec()
    };
    let waiting = |message: String| both(Status::Unknown, Reason::NodeDoesNotExist, message);
    let known = machine.node_name();
    match &facts.node {
        Seen::Found(node) => vec![node_ready(node), node_healthy(node)],
        Seen::Ambiguous(names) => both(
            Status::Unknown,
            Reason::NodeInspectionFailed,
            format!("Nodes {} have the same spec.providerID", names.join(", ")),
        ),
        Seen::Unreachable(health) if is_connecting(machine, facts, health) => Vec::new(),
        Seen::Unreachable(health) => unreachable(machine, facts, health, now),
        Seen::Absent if known.is_some() => both(
            Status::False,
            Reason::NodeDeleted,
            format!(
                "Node {} has been deleted while the Machine still exists",
                known.unwrap_or("")
            ),
        ),
        Seen::Absent => waiting(waiting_for(machine)),
        Seen::NotLooked if !facts.cluster.infrastructure_provisioned() => {
            waiting(INFRASTRUCTURE.to_owned())
        }
        Seen::NotLooked => waiting(format!(
            "Waiting for {} to create the machine",
            machine.spec.infrastructure_ref.kind
        )),
    }
}

/// True before the end of the first attempt to connect, so that the reported conditions stay.
fn is_connecting(machine: &Machine, facts: &Facts, health: &Health) -> bool {
    // Without both of these no attempt is started.
    let is_tried = facts.cluster.infrastructure_provisioned() && facts.cluster.endpoint().is_some();
    let reported = conditions::find(machine.conditions(), Type::NodeHealthy).is_some();
    health.is_connecting() && is_tried && reported
}

/// Conditions without a connection; empty until the end of [`REMOTE_GRACE`], so that the reported conditions stay.
fn unreachable(machine: &Machine, facts: &Facts, health: &Health, now: Timestamp) -> Vec<Verdict> {
    let answered = health.last_success.or(health.since);
    let silent = answered.is_none_or(|at| {
        Duration::try_from(now.duration_since(at)).unwrap_or_default() > REMOTE_GRACE
    });
    let known = conditions::find(machine.conditions(), Type::NodeHealthy);
    let reported = known.is_some_and(|known| known.reason != Reason::NodeDoesNotExist);
    if machine.node_name().is_some() && reported && !silent {
        return Vec::new();
    }
    let (reason, message) = if machine.node_name().is_some() {
        let why = health.problem.as_deref().unwrap_or("no connection");
        (
            Reason::ConnectionDown,
            format!("Remote connection down: {why}"),
        )
    } else if !facts.cluster.control_plane_initialized() {
        let waits = match machine.is_control_plane() {
            true => waiting_for(machine),
            false => FIRST_NODE.to_owned(),
        };
        (Reason::NodeDoesNotExist, waits)
    } else {
        let why = health.problem.as_deref().unwrap_or("no connection");
        (
            Reason::NodeDoesNotExist,
            format!("{}; remote connection down: {why}", waiting_for(machine)),
        )
    };
    [Type::NodeReady, Type::NodeHealthy]
        .map(|type_| Verdict::new(type_, Status::Unknown, reason).because(message.clone()))
        .to_vec()
}

fn waiting_for(machine: &Machine) -> String {
    let provider_id = machine.spec.provider_id.as_deref().unwrap_or_default();
    format!("Waiting for the node to join the cluster (spec.providerID {provider_id})")
}

fn node_ready(node: &Node) -> Verdict {
    let Some((status, reason, message)) = node_condition(node, "Ready") else {
        return Verdict::new(Type::NodeReady, Status::Unknown, Reason::NodeReadyUnknown)
            .because("* Node.Ready: Condition not yet reported");
    };
    let message = if status == Status::True {
        String::new()
    } else {
        line_of("Ready", message)
    };
    let verdict = match status {
        Status::True => Verdict::new(Type::NodeReady, status, Reason::NodeReady),
        Status::False => Verdict::new(Type::NodeReady, status, Reason::NodeNotReady),
        Status::Unknown if reason.is_empty() => {
            Verdict::new(Type::NodeReady, status, Reason::NodeReadyUnknown)
        }
        Status::Unknown => Verdict::from_reported(Type::NodeReady, status, reason),
    };
    verdict.because(message)
}

/// `Ready` must be true; the pressure conditions must be false.
fn node_healthy(node: &Node) -> Verdict {
    let expected = [
        ("Ready", Status::True),
        ("MemoryPressure", Status::False),
        ("DiskPressure", Status::False),
        ("PIDPressure", Status::False),
    ];
    let (mut bad, mut unknown) = (Vec::new(), Vec::new());
    for (type_, good) in expected {
        match node_condition(node, type_) {
            None if type_ == "Ready" => unknown.push(line_of(type_, "Condition not yet reported")),
            // A Node without pressure conditions is healthy.
            None => {}
            Some((status, _, _)) if status == good => {}
            Some((Status::Unknown, _, message)) => unknown.push(line_of(type_, message)),
            Some((_, _, message)) => bad.push(line_of(type_, message)),
        }
    }
    let (status, reason) = match (bad.is_empty(), unknown.is_empty()) {
        (false, _) => (Status::False, Reason::NodeNotHealthy),
        (true, false) => (Status::Unknown, Reason::NodeHealthUnknown),
        (true, true) => (Status::True, Reason::NodeHealthy),
    };
    bad.append(&mut unknown);
    Verdict::new(Type::NodeHealthy, status, reason).because(bad.join("\n"))
}

fn line_of(type_: &str, message: &str) -> String {
    format!("* Node.{type_}: {message}")
}

fn node_condition<'a>(node: &'a Node, type_: &str) -> Option<(Status, &'a str, &'a str)> {
    let list = node.status.as_ref()?.conditions.as_ref()?;
    let found = list.iter().find(|condition| condition.type_ == type_)?;
    let text = |text: &'a Option<String>| text.as_deref().unwrap_or_default();
    Some((
        Status::parse(&found.status),
        text(&found.reason),
        text(&found.message),
    ))
}

fn ready(machine: &Machine, list: &[Condition]) -> Verdict {
    let reasons = Reasons {
        good: Reason::Ready,
        bad: Reason::NotReady,
        unknown: Reason::ReadyUnknown,
    };
    let mut parts = vec![
        Part::negative(Type::Deleting),
        Part::negative(Type::Updating),
        Part::positive(Type::BootstrapConfigReady),
        Part::positive(Type::InfrastructureReady),
        Part::positive(Type::NodeHealthy),
        Part::positive(Type::HealthCheckSucceeded).optional(),
    ];
    parts.extend(
        machine
            .spec
            .readiness_gates
            .iter()
            .flatten()
            .map(Part::gate),
    );
    summarize(Type::Ready, list, &parts, reasons)
}

fn available(machine: &Machine, list: &[Condition], now: Timestamp) -> Verdict {
    match conditions::find(list, Type::Ready) {
        Some(ready) if ready.status == "True" => match left(machine, ready, now) {
            Some(_) => Verdict::new(Type::Available, false, Reason::WaitingForMinReadySeconds),
            None => Verdict::new(Type::Available, true, Reason::Available),
        },
        _ => Verdict::new(Type::Available, false, Reason::NotReady),
    }
}

/// Time for which the [`Machine`] must stay ready to become available; `None` if available.
fn left(machine: &Machine, ready: &Condition, now: Timestamp) -> Option<Duration> {
    let needed = u64::try_from(machine.spec.min_ready_seconds.unwrap_or(0)).unwrap_or(0);
    let lasted = now.duration_since(ready.last_transition_time.0);
    let lasted = Duration::try_from(lasted).unwrap_or_default();
    Duration::from_secs(needed)
        .checked_sub(lasted)
        .filter(|left| !left.is_zero())
}

fn info(info: &NodeSystemInfo) -> NodeInfo {
    NodeInfo {
        architecture: info.architecture.clone(),
        boot_id: info.boot_id.clone(),
        container_runtime_version: info.container_runtime_version.clone(),
        kernel_version: info.kernel_version.clone(),
        kube_proxy_version: info.kube_proxy_version.clone(),
        kubelet_version: info.kubelet_version.clone(),
        machine_id: info.machine_id.clone(),
        operating_system: info.operating_system.clone(),
        os_image: info.os_image.clone(),
        system_uuid: info.system_uuid.clone(),
        swap: info.swap.as_ref().map(|swap| NodeSwap {
            capacity: swap.capacity,
        }),
    }
}

#[cfg(test)]
mod tests;
