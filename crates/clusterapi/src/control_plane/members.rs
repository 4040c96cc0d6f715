//! The etcd members of a control plane: their health, their removal with their machines, and the removal of leftovers.

use api::core::v1beta2::Machine;
use api::k8s_openapi::api::core::v1::{Node, Secret};
use api::kube::ResourceExt;
use api::kube::api::Api;

use super::etcd::{self, Member, Nodes, Target, View};
use super::observe::{Observation, Reached, has_external_etcd};
use super::plan::Step;
use super::{ControlPlaneError, Scope, Subject, error, hooks};
use crate::pki::{Purpose, store};

/// The observed state of etcd. The members are queried once the control plane is initialized.
pub(super) async fn observe(
    scope: &Scope,
    subject: &Subject,
    workload: Option<&Reached>,
    initialized: bool,
) -> View {
    if has_external_etcd(&subject.plane) {
        return View::External;
    }
    if !initialized {
        return View::Unknown("the control plane is not initialized".to_owned());
    }
    let Some(workload) = workload else {
        return View::Unknown("The workload cluster cannot be reached".to_owned());
    };
    if let Err(why) = trust(scope, subject).await {
        return View::Unknown(why);
    }
    let nodes = workload.etcd_nodes();
    scope.etcd.query(&target(subject, workload, &nodes)).await
}

/// Lets the addition of a machine wait until a member that has just joined is connected. A member that counts another one
/// as disconnected rejects the new one. It is not waited for longer: a connection that works may count as disconnected
/// until one of both is started again, and other members accept the new one ([`joining`](super::joining)).
pub(super) async fn before_addition(
    scope: &Scope,
    subject: &Subject,
    seen: &mut Observation,
    step: Step,
) -> Step {
    let (Step::Create { init: false, .. }, true) = (&step, seen.has_fresh_node()) else {
        return step;
    };
    let (View::Known(members), Some(workload)) = (&seen.etcd, &seen.workload) else {
        return step;
    };
    let nodes = workload.etcd_nodes();
    let target = target(subject, workload, &nodes);
    let Some((member, other)) = scope.etcd.disconnected(&target, members).await else {
        return step;
    };
    let (member, other) = (&member.name, &other.name);
    let why = format!("Waiting for the etcd member {member} to be connected to {other}");
    seen.awaits_etcd = true;
    Step::Wait(vec![why])
}

/// Removes the hook of the machine that has been deleting longest, after its member: one machine per reconcile.
pub(super) async fn release(
    scope: &Scope,
    subject: &Subject,
    seen: &Observation,
) -> Result<(), ControlPlaneError> {
    let machines = || seen.machines.iter().map(|seen| &seen.machine);
    let held = machines().filter(|machine| hooks::is_held(machine));
    let Some(machine) = held.min_by_key(|machine| hooks::deleted_at(machine)) else {
        return Ok(());
    };
    if !hooks::is_drained(machine, &subject.plane.spec.version) {
        return Ok(());
    }
    let others = machines().any(|other| !other.is_deleting());
    // With the last machine all of etcd is deleted.
    if others && !remove_member(scope, subject, seen, machine).await? {
        return Ok(());
    }
    let api: Api<Machine> = scope.context.api(&subject.key.namespace);
    hooks::remove(&api, machine).await
}

/// Removes the member of a machine, and returns whether it is gone. It is kept while etcd cannot be queried, and while
/// its removal would lose the quorum.
async fn remove_member(
    scope: &Scope,
    subject: &Subject,
    seen: &Observation,
    machine: &Machine,
) -> Result<bool, ControlPlaneError> {
    let members = match (&seen.etcd, &seen.workload) {
        (View::External, _) => return Ok(true),
        (View::Known(members), Some(_)) => members,
        _ => return Ok(false),
    };
    let member = machine.node_name().and_then(|node| seen.etcd.on(node));
    match member {
        None => Ok(true),
        Some(member) if may_go(members, member) => {
            remove(scope, subject, seen, member).await?;
            Ok(true)
        }
        Some(_) => Ok(false),
    }
}

/// Removes a leftover member, which runs on no Node. Does nothing while a machine has no Node yet.
pub(super) async fn collect(
    scope: &Scope,
    subject: &Subject,
    seen: &Observation,
) -> Result<(), ControlPlaneError> {
    let (View::Known(members), Some(workload)) = (&seen.etcd, &seen.workload) else {
        return Ok(());
    };
    let machines = || seen.machines.iter().map(|seen| &seen.machine);
    if machines().any(|machine| machine.node_name().is_none()) {
        return Ok(());
    }
    let known = known(machines(), workload);
    let Some(member) = etcd::orphan(members, &known) else {
        return Ok(());
    };
    // The cached Nodes may be outdated.
    if !member.name.is_empty() {
        let nodes: Api<Node> = Api::all(workload.client.clone());
        let found = nodes.get_metadata_opt(&member.name).await;
        let action = format!("reading Node {}", member.name);
        if found.map_err(error::remotely(action))?.is_some() {
            return Ok(());
        }
    }
    remove(scope, subject, seen, member).await?;
    let name = if member.name.is_empty() {
        &member.host
    } else {
        &member.name
    };
    let note = format!("removed etcd member {name}, which runs on no Node");
    let plane = subject.plane.as_ref();
    scope
        .events
        .normal(plane, "EtcdMemberRemoved", "RemoveEtcdMember", note)
        .await;
    Ok(())
}

/// Whether `member` can be removed without losing the quorum. A learner is not part of it.
fn may_go(members: &[Member], member: &Member) -> bool {
    member.learner || etcd::count(members).can_remove(member.is_healthy())
}

/// Removes a member; leadership is transferred to the newest machine that is not being deleted.
async fn remove(
    scope: &Scope,
    subject: &Subject,
    seen: &Observation,
    member: &Member,
) -> Result<(), ControlPlaneError> {
    let (View::Known(members), Some(workload)) = (&seen.etcd, &seen.workload) else {
        return Ok(());
    };
    let staying = seen
        .machines
        .iter()
        .rev()
        .filter(|seen| !seen.machine.is_deleting());
    let successors: Vec<String> = staying
        .filter_map(|seen| seen.machine.node_name().map(str::to_owned))
        .collect();
    let nodes = workload.etcd_nodes();
    let target = target(subject, workload, &nodes);
    let removed = scope.etcd.remove(&target, members, member.id, &successors);
    removed.await.map_err(ControlPlaneError::Etcd)
}

pub(super) fn target<'a>(
    subject: &'a Subject,
    workload: &'a Reached,
    nodes: &'a [String],
) -> Target<'a> {
    Target {
        key: &subject.key,
        client: &workload.client,
        nodes,
    }
}

/// The names and addresses at which members may run.
fn known<'a>(machines: impl Iterator<Item = &'a Machine>, workload: &Reached) -> Nodes {
    let mut known = Nodes::default();
    for node in &workload.nodes {
        known.names.insert(node.name_any());
        let status = node.status.as_ref();
        let addresses = status.and_then(|status| status.addresses.as_ref());
        let addresses = addresses.into_iter().flatten();
        known
            .addresses
            .extend(addresses.map(|it| it.address.clone()));
    }
    for machine in machines {
        known.names.extend(machine.node_name().map(str::to_owned));
        let status = machine.status.as_ref();
        let addresses = status.and_then(|status| status.addresses.as_ref());
        let addresses = addresses.into_iter().flatten();
        known
            .addresses
            .extend(addresses.map(|it| it.address.clone()));
    }
    known
}

/// Ensures a client certificate for etcd.
async fn trust(scope: &Scope, subject: &Subject) -> Result<(), String> {
    if scope.etcd.has(&subject.key) {
        return Ok(());
    }
    let secrets: Api<Secret> = scope.context.api(&subject.key.namespace);
    let now = scope.context.now();
    let read = store::read_one(&secrets, &subject.key.name, Purpose::Etcd, now).await;
    let name = Purpose::Etcd.secret_name(&subject.key.name);
    let ca = match read {
        Ok(Some(ca)) => ca,
        Ok(None) => return Err(format!("Secret {name} with the CA of etcd does not exist")),
        Err(source) => return Err(operator::words::chain(&source)),
    };
    let trusted = scope.etcd.trust(&subject.key, &ca, now);
    trusted.map_err(|why| format!("Secret {name}: {why}"))
}
