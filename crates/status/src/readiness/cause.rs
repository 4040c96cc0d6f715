//! Reason why an object is not ready, in simple terms, found in the object that causes the delay.

use api::conditions::{Reason, Type};

use crate::readiness::{reach, summary, waits_for};
use crate::snapshot::{Condition, Item, Kind, Snapshot};

/// Reason why an object is not ready.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cause {
    /// One line without the types of conditions.
    pub text: String,
    /// True if the object needs intervention.
    pub failing: bool,
}

impl Cause {
    fn waiting(text: impl Into<String>) -> Option<Self> {
        Some(Self {
            text: text.into(),
            failing: false,
        })
    }
}

/// Annotation that pauses one object.
pub const PAUSED: &str = "cluster.x-k8s.io/paused";

/// [`Cause`] of an unready [`Item`]; `None` if ready. A paused object is not ready whatever its conditions say: the
/// conditions are from before the pause.
pub fn cause(snapshot: &Snapshot, item: &Item) -> Option<Cause> {
    if let Some(paused) = paused(item) {
        return Some(paused);
    }
    let found = match item.kind {
        _ if item.is_deleting() => deleting(item),
        Kind::Cluster => of_cluster(snapshot, item),
        Kind::OpenStackCluster | Kind::OpenStackMachine => of_infrastructure(item),
        Kind::Other => of_provider(item),
        Kind::KubeadmControlPlane => of_control_plane(snapshot, item),
        Kind::MachineDeployment => of_deployment(snapshot, item),
        Kind::MachineSet => blocked(item).or_else(|| of_conditions(item)),
        Kind::Machine => of_machine(snapshot, item),
    }?;
    let waits_in_vain = !found.failing && snapshot.cluster_of(item).is_some_and(is_paused);
    match waits_in_vain {
        true => Cause::waiting("its Cluster is paused"),
        false => Some(found),
    }
}

/// True if no controller acts on an object until a user resumes the object.
pub fn is_paused(item: &Item) -> bool {
    paused(item).is_some()
}

/// True if the spec pauses the object. That of a MachineDeployment is set by `rollout pause`.
pub(crate) fn has_paused_spec(item: &Item) -> bool {
    let has_field = matches!(item.kind, Kind::Cluster | Kind::MachineDeployment);
    has_field && item.field("/spec/paused") == true
}

/// [`Cause`] of a pause, and the way to resume the object.
fn paused(item: &Item) -> Option<Cause> {
    if has_paused_spec(item) {
        return Cause::waiting("paused by spec.paused: set it to false to resume");
    }
    let annotations = item.object.metadata.annotations.as_ref();
    annotations.filter(|it| it.contains_key(PAUSED))?;
    Cause::waiting(format!(
        "paused by the annotation {PAUSED}: remove it to resume"
    ))
}

fn of_cluster(snapshot: &Snapshot, cluster: &Item) -> Option<Cause> {
    // A failing part is the cause for everything that waits for it. Availability allows for some failures.
    let failing = |parts: &[Kind]| {
        parts
            .iter()
            .flat_map(|kind| snapshot.belonging(cluster, *kind))
            .filter_map(|part| cause(snapshot, part))
            .find(|cause| cause.failing)
    };
    if is_true(cluster, Type::Available) {
        return failing(&[
            Kind::OpenStackCluster,
            Kind::KubeadmControlPlane,
            Kind::MachineDeployment,
            Kind::Machine,
        ]);
    }
    if let Some(unreached) = reach::cause(snapshot, cluster) {
        return Some(unreached);
    }
    if !is_true(cluster, Type::InfrastructureReady)
        && let Some(infra) = snapshot.infrastructure(cluster)
        && let Some(cause) = cause(snapshot, infra)
    {
        return Some(cause);
    }
    if !is_true(cluster, Type::ControlPlaneInitialized)
        && let Some(plane) = snapshot.control_plane(cluster)
        && let Some(cause) = cause(snapshot, plane)
    {
        return Some(cause);
    }
    failing(&[Kind::KubeadmControlPlane, Kind::MachineDeployment])
        .or_else(|| of_conditions(cluster))
}

fn of_infrastructure(item: &Item) -> Option<Cause> {
    let Some(ready) = item.condition(Type::Ready) else {
        return Cause::waiting(match item.kind {
            Kind::OpenStackCluster => "creating the network",
            _ => "not reconciled yet",
        });
    };
    if ready.status != "True" {
        return Some(of_condition(&ready));
    }
    // What the spec asks for and does not get: a bastion, of which Ready says nothing.
    let mut others = item.conditions();
    let missing = others.find(|it| it.status == "False" && is_failure(it.reason))?;
    Some(of_condition(&missing))
}

/// [`Cause`] of an object of another provider, by the fields that the contract of Cluster API requires of all
/// providers.
fn of_provider(item: &Item) -> Option<Cause> {
    let summary = [Type::Ready, Type::Available].into_iter();
    let mut summary = summary.filter_map(|type_| item.condition(type_));
    match summary.next() {
        Some(summary) => (summary.status != "True").then(|| of_condition(&summary)),
        None => {
            let unready = item.field("/status/initialization/provisioned") == false
                || item.field("/status/ready") == false;
            unready.then(|| Cause::waiting("not ready")).flatten()
        }
    }
}

fn of_control_plane(snapshot: &Snapshot, plane: &Item) -> Option<Cause> {
    if is_true(plane, Type::Available) && has_all(plane) {
        return None;
    }
    // Its machines fail, too, and cannot be replaced before that.
    if let Some(recovery) = recovery(plane) {
        return Some(recovery);
    }
    let machines: Vec<&Item> = snapshot.owned(plane, Kind::Machine).collect();
    let failing = machines
        .iter()
        .filter_map(|machine| cause(snapshot, machine))
        .find(|cause| cause.failing);
    if failing.is_some() {
        return failing;
    }
    if let Some(blocked) = blocked(plane) {
        return Some(blocked);
    }
    if !is_true(plane, Type::Initialized) {
        return Cause::waiting(match machines.is_empty() {
            true => "waiting for the network and the load balancer",
            false => "waiting for the first control plane node",
        });
    }
    of_conditions(plane).or_else(|| counted(plane))
}

fn of_deployment(snapshot: &Snapshot, deployment: &Item) -> Option<Cause> {
    let sets: Vec<&Item> = snapshot.owned(deployment, Kind::MachineSet).collect();
    let failing = sets
        .iter()
        .flat_map(|set| snapshot.owned(set, Kind::Machine))
        .filter_map(|machine| of_machine(snapshot, machine))
        .find(|cause| cause.failing);
    let blocked = blocked(deployment).or_else(|| sets.iter().find_map(|set| blocked(set)));
    if blocked.is_some() || failing.is_some() {
        return blocked.or(failing);
    }
    if is_true(deployment, Type::Available) && has_all(deployment) {
        return None;
    }
    counted(deployment).or_else(|| of_conditions(deployment))
}

fn of_machine(snapshot: &Snapshot, machine: &Item) -> Option<Cause> {
    if is_true(machine, Type::Ready) && machine.field("/status/phase") == "Running" {
        return None;
    }
    if unremediated(machine).is_some() {
        return unreplaced(snapshot, machine);
    }
    if let Some(infra) = machine.condition(Type::InfrastructureReady)
        && infra.status != "True"
        && is_failure(infra.reason)
    {
        return Some(of_condition(&infra));
    }
    let is_worker = !machine
        .object
        .metadata
        .labels
        .as_ref()
        .is_some_and(|labels| labels.contains_key("cluster.x-k8s.io/control-plane"));
    let waits_for_init = is_worker && machine.field("/spec/bootstrap/dataSecretName").is_null();
    let is_cluster_of_machine = |cluster: &&Item| machine.belongs_to(cluster);
    if waits_for_init
        && let Some(cluster) = snapshot.of_kind(Kind::Cluster).find(is_cluster_of_machine)
        && !is_true(cluster, Type::ControlPlaneInitialized)
    {
        return Cause::waiting("waiting for the first control plane node");
    }
    of_conditions(machine)
}

/// [`Condition`] of a control plane whose etcd has lost its quorum.
pub fn lost_quorum(item: &Item) -> Option<Condition<'_>> {
    let found = item.condition(Type::EtcdRecovered)?;
    (found.status == "False").then_some(found)
}

/// [`Cause`] of a delayed recovery of etcd: the user has to act, unless machines are being deleted.
pub fn recovery(item: &Item) -> Option<Cause> {
    let found = lost_quorum(item)?;
    Some(Cause {
        text: summary(found.message),
        failing: ![Reason::DeletingLostMachines, Reason::WaitingForEtcd]
            .iter()
            .any(|it| found.reason == *it),
    })
}

/// [`Condition`] with the request to replace a machine after a failed health check, until the machine is replaced.
pub fn unremediated(machine: &Item) -> Option<Condition<'_>> {
    if machine.kind != Kind::Machine || machine.is_deleting() {
        return None;
    }
    let is_false = |type_: Type| machine.condition(type_).filter(|it| it.status == "False");
    is_false(Type::HealthCheckSucceeded)?;
    is_false(Type::OwnerRemediated).or_else(|| is_false(Type::ExternallyRemediated))
}

/// [`Cause`] of the delayed replacement of a machine after a failed health check, or after a preflight check of its
/// MachineSet.
fn unreplaced(snapshot: &Snapshot, machine: &Item) -> Option<Cause> {
    let of_machine = remediation(machine)?;
    let blocked = blocked_set(snapshot, machine).and_then(blocked);
    match blocked.filter(|_| !of_machine.failing) {
        Some(blocked) => Some(held_back(machine, &blocked.text)),
        None => Some(of_machine),
    }
}

/// MachineSet of a Machine, if blocked until a user intervenes.
pub fn blocked_set<'a>(snapshot: &'a Snapshot, machine: &Item) -> Option<&'a Item> {
    let mut sets = snapshot.of_kind(Kind::MachineSet);
    let set = sets.find(|set| machine.is_owned_by(set))?;
    blocked(set).is_some_and(|it| it.failing).then_some(set)
}

/// [`Cause`] of the delayed replacement of a machine after a failed health check; the user has to act unless the cause
/// passes.
pub fn remediation(machine: &Item) -> Option<Cause> {
    let found = unremediated(machine)?;
    if found.reason == Reason::WaitingForRemediation {
        return Cause::waiting("failed its health check, and is being replaced");
    }
    let held = held_back(machine, &summary(found.message));
    Some(Cause {
        failing: !passes(found.message),
        ..held
    })
}

fn held_back(machine: &Item, why: &str) -> Cause {
    let health = machine.condition(Type::HealthCheckSucceeded);
    let health = health.map(|it| summary(it.message)).unwrap_or_default();
    let health = match health.as_str() {
        "" => String::new(),
        health => format!(" ({})", lower_case_start(health)),
    };
    Cause {
        text: format!(
            "failed its health check{health}, and is not replaced: {}",
            lower_case_start(why)
        ),
        failing: true,
    }
}

/// True if the problem in a message ends by itself.
pub fn passes(message: &str) -> bool {
    const STARTS: [&str; 5] = [
        "changing ",
        "creating ",
        "deleting ",
        "preparing ",
        "waiting",
    ];
    const PARTS: [&str; 5] = [
        "are being ",
        "is being ",
        "not reported yet",
        "not yet reported",
        "the last try was",
    ];
    let lower = message.to_lowercase();
    let starts = |words: &&str| lower.starts_with(words);
    STARTS.iter().any(starts) || PARTS.iter().any(|words| lower.contains(words))
}

/// [`Cause`] of an object that may not create or delete machines: a failure, unless the reason passes by itself.
pub fn blocked(item: &Item) -> Option<Cause> {
    let types = [Type::RollingOut, Type::ScalingUp].into_iter();
    let mut conditions = types.filter_map(|type_| item.condition(type_));
    let (_, why) =
        conditions.find_map(|condition| condition.message.split_once("is blocked because:"))?;
    let reasons: Vec<&str> = why
        .lines()
        .map(|line| line.trim().trim_start_matches("* "))
        .filter(|line| !line.is_empty())
        .collect();
    let failing = !reasons
        .iter()
        .all(|reason| reason.starts_with("Waiting for "));
    let reasons: Vec<_> = reasons.into_iter().map(lower_case_start).collect();
    let reasons = reasons.join("; ");
    let text = match failing {
        true => format!("blocked: {reasons}"),
        false => reasons,
    };
    Some(Cause { text, failing })
}

fn deleting(item: &Item) -> Option<Cause> {
    let deleting = item.condition(Type::Deleting);
    let message = deleting
        .map(|deleting| deleting.message)
        .unwrap_or_default();
    Cause::waiting(match message {
        "" => "being deleted".to_owned(),
        // `* MachineDeployments: a, b` or `* OpenStackCluster a`, which lead to the next objects.
        list if item.kind == Kind::Cluster && list.starts_with("* ") => format!(
            "waiting for the deletion of {}",
            summary(list).replacen("s: ", "s ", 1)
        ),
        message => in_users_words(without_conditions(&summary(message))),
    })
}

/// `InfrastructureReady: InstanceReady: waiting for ...` without the leading condition types.
pub fn without_conditions(message: &str) -> &str {
    let is_type = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_uppercase())
            && text.chars().all(|c| c.is_ascii_alphanumeric())
    };
    match message.split_once(": ") {
        Some((first, rest)) if is_type(first) => without_conditions(rest),
        _ => message,
    }
}

/// [`Cause`] in the conditions of the [`Item`].
fn of_conditions(item: &Item) -> Option<Cause> {
    let text = waits_for(item)?;
    Cause::waiting(in_users_words(without_conditions(&text)))
}

fn counted(item: &Item) -> Option<Cause> {
    let count = |field: &str| item.field(field).as_i64().unwrap_or(0);
    let (wanted, ready) = (count("/spec/replicas"), count("/status/readyReplicas"));
    (ready != wanted)
        .then(|| Cause::waiting(format!("{ready} of {wanted} machines are ready")))
        .flatten()
}

fn has_all(item: &Item) -> bool {
    counted(item).is_none()
}

pub(crate) fn is_true(item: &Item, type_: Type) -> bool {
    item.condition(type_).is_some_and(|c| c.status == "True")
}

fn of_condition(condition: &Condition<'_>) -> Cause {
    let text = match condition.message {
        "" => condition.reason.to_owned(),
        message => in_users_words(without_conditions(&summary(message))),
    };
    Cause {
        text,
        failing: is_failure(condition.reason),
    }
}

/// True if a reason requires intervention.
pub fn is_failure(reason: &str) -> bool {
    let words = [
        "Failed",
        "Error",
        "Deleted",
        "NotFound",
        "Unknown",
        "IdentityShared",
    ];
    reason.starts_with("Invalid") || words.iter().any(|word| reason.ends_with(word))
}

/// Nova's message for an exhausted quota, shortened: `quota of instances: 10 of 10 used`. Text after the message stays.
fn quota(text: &str) -> Option<String> {
    let (words, rest) = match text.split_once(" (") {
        Some((words, rest)) => (words, format!(" ({rest}")),
        None => (text, String::new()),
    };
    let (names, numbers) = words
        .strip_prefix("Quota exceeded for ")?
        .split_once(": Requested ")?;
    let (_, numbers) = numbers.split_once(", but already used ")?;
    let (used, limits) = numbers.split_once(" of ")?;
    let limits = limits.strip_suffix(names)?.trim_end();
    let each: Vec<String> = names
        .split(", ")
        .zip(used.split(", ").zip(limits.split(", ")))
        .map(|(name, (used, limit))| format!("{name}: {used} of {limit} used"))
        .collect();
    Some(format!("quota of {}{rest}", each.join(", ")))
}

/// Messages of conditions name objects and fields exactly; progress output only needs the current activity.
fn in_users_words(text: &str) -> String {
    if let Some(quota) = quota(text) {
        return quota;
    }
    let text = match text.split_once(" is being deleted: ") {
        Some((_, detail)) => lower_case_start(without_conditions(detail)),
        None => lower_case_start(text),
    };
    // Its id says less than the name of the machine, which is beside it.
    let text = match text
        .strip_prefix("server ")
        .and_then(|rest| rest.split_once(' '))
    {
        Some((id, rest)) if is_id(id) => format!("the server {rest}"),
        _ => text,
    };
    let is = |start: &str, end: &str| text.starts_with(start) && text.ends_with(end);
    let network = "waiting for the network and the load balancer";
    let first_node = "waiting for the first control plane node";
    let short = match text.as_str() {
        _ if text.starts_with("creating load balancer ") => "creating the load balancer",
        _ if text.starts_with("changing load balancer ") => "changing the load balancer",
        _ if text.starts_with("deleting load balancer ") => "deleting the load balancer",
        _ if text.starts_with("creating server ") => "creating the server",
        _ if text.starts_with("deleting server ") => "deleting the server",
        "waiting for the Cluster's infrastructure" => network,
        // Objects that have no conditions yet.
        _ if is("waiting for ", " to create the infrastructure") => network,
        _ if is("waiting for ", " to initialize the control plane") => first_node,
        _ if is("waiting for ", " to create the machine") => "waiting for the server",
        _ if is("waiting for ", " to create the bootstrap data") => "preparing the user data",
        "waiting for the bootstrap data of the Machine" => "preparing the user data",
        _ if text.starts_with("waiting for the node to join the cluster")
            || text.starts_with("waiting for the node of the Machine") =>
        {
            "waiting for the node to join"
        }
        _ => return text,
    };
    short.to_owned()
}

/// True if a word is an id made by OpenStack.
fn is_id(word: &str) -> bool {
    word.len() == 36
        && word
            .bytes()
            .all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
}

/// Conditions begin with a capital, progress output does not. Names keep their capitals.
fn lower_case_start(text: &str) -> String {
    const NAMES: [&str; 15] = [
        "Cinder",
        "Cluster",
        "Glance",
        "Keystone",
        "Kubernetes",
        "Machine",
        "Machines",
        "Neutron",
        "Node",
        "Nodes",
        "Nova",
        "Octavia",
        "Pod",
        "Pods",
        "Secret",
    ];
    let first = text.split(' ').next().unwrap_or_default();
    let is_word = !first.is_empty() && first.bytes().skip(1).all(|byte| byte.is_ascii_lowercase());
    match text.chars().next() {
        Some(c) if is_word && !NAMES.contains(&first) => {
            format!("{}{}", c.to_ascii_lowercase(), &text[c.len_utf8()..])
        }
        _ => text.to_owned(),
    }
}

#[cfg(test)]
pub(crate) mod tests;
