//! etcd members of a control plane: health, removal together with machines, and removal of leftovers.

use api::core::v1beta2::Machine;
use api::k8s_openapi::api::core::v1::{Node, Secret};
use api::kube::ResourceExt;
use operator::client::Api;

use super::etcd::{self, Member, Nodes, Target, View};
use super::membership::{self, Standing};
use super::observe::{Observation, Reached, has_external_etcd};
use super::plan::Step;
use super::{ControlPlaneError, Duties, Scope, Subject, error, hooks};
use crate::pki::{Purpose, store};

/// Observed state of etcd. Members are queried once the control plane is initialized.
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

/// Delays the addition of a machine until a member that has just joined is connected. A member that counts another
/// one as disconnected rejects the new one. The delay is short: a working connection may count as disconnected until
/// a restart of either member, and other members accept the new one ([`joining`](super::joining)).
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

/// Drained [`Machine`]s that wait for the removal of their members, longest deletion first.
fn waiting<'a>(subject: &Subject, machines: &[&'a Machine]) -> Vec<&'a Machine> {
    let version = &subject.plane.spec.version;
    let waits = |machine: &&Machine| hooks::is_held(machine) && hooks::is_drained(machine, version);
    let mut waiting: Vec<_> = machines.iter().copied().filter(waits).collect();
    waiting.sort_by_key(|machine| hooks::deleted_at(machine));
    waiting
}

/// UIDs of [`Machine`]s being deleted that wait until etcd can do without their members.
pub(super) fn held(subject: &Subject, machines: &[&Machine], view: &View) -> Vec<String> {
    let (Some(members), true) = (view.members(), machines.iter().any(|it| !it.is_deleting()))
    else {
        return Vec::new();
    };
    let kept = |machine: &&Machine| {
        let member = membership::on(machine, machines, members);
        member.is_some_and(|member| !may_go(members, member))
    };
    let waiting = waiting(subject, machines).into_iter().filter(kept);
    waiting.filter_map(ResourceExt::uid).collect()
}

/// Removes the hook of one machine per reconcile, after its member: of the machine with the longest deletion that can
/// go.
pub(super) async fn release(
    scope: &Scope,
    subject: &Subject,
    seen: &Observation,
    duties: &mut Duties,
) {
    let machines: Vec<_> = seen.machines.iter().map(|seen| &seen.machine).collect();
    let others = machines.iter().any(|other| !other.is_deleting());
    // A failed removal may have been done all the same.
    let mut tried = Vec::new();
    for machine in waiting(subject, &machines) {
        // With the last machine all of etcd is deleted.
        if others && let Err(why) = can_go(seen, machine, &machines, &tried) {
            let name = machine.name_any();
            duties.wait([format!("The deletion of Machine {name} waits: {why}")]);
            continue;
        }
        let member = seen
            .etcd
            .members()
            .and_then(|it| membership::on(machine, &machines, it));
        if let Some(member) = member.filter(|_| others) {
            let removed = remove(scope, subject, seen, member).await;
            if duties.note(removed).is_none() {
                tried.push(member.id);
                continue;
            }
        }
        let api: Api<Machine> = scope.context.api(&subject.key.namespace);
        duties.note(hooks::remove(&api, machine).await);
        return;
    }
}

/// Reason why etcd cannot do without the member of `machine` now, with or without the members `tried`.
fn can_go(
    seen: &Observation,
    machine: &Machine,
    machines: &[&Machine],
    tried: &[u64],
) -> Result<(), String> {
    let members = match (&seen.etcd, &seen.workload) {
        (View::External, _) => return Ok(()),
        (View::Known(members), Some(_)) => members,
        (View::Known(_), None) => return Err("the workload cluster cannot be reached".to_owned()),
        (View::Unknown(why), _) => return Err(format!("etcd cannot be asked: {why}")),
        (View::NoQuorum(members), _) => return Err(etcd::without_quorum(members)),
    };
    let Some(member) = membership::on(machine, machines, members) else {
        return Ok(());
    };
    let rest = members.iter().filter(|it| !tried.contains(&it.id));
    let rest: Vec<_> = rest.cloned().collect();
    match may_go(members, member) && may_go(&rest, member) {
        true => Ok(()),
        false => Err("etcd would lose its quorum without its member".to_owned()),
    }
}

/// Removes a leftover member without a Node. Does nothing while a machine has neither a Node nor an address, because
/// its member could not be recognised.
pub(super) async fn collect(
    scope: &Scope,
    subject: &Subject,
    seen: &Observation,
) -> Result<(), ControlPlaneError> {
    let (View::Known(members), Some(workload)) = (&seen.etcd, &seen.workload) else {
        return Ok(());
    };
    let machines: Vec<_> = seen.machines.iter().map(|seen| &seen.machine).collect();
    if machines.iter().copied().any(membership::is_unknown) {
        return Ok(());
    }
    let known = known(&machines, members, workload);
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

/// True if `member` can be removed without losing the quorum.
fn may_go(members: &[Member], member: &Member) -> bool {
    Standing::from_member(member).may_go(etcd::count(members))
}

/// Removes a [`Member`]; leadership is transferred to the newest machine that is not being deleted.
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

/// Names and addresses at which [`Member`]s may run.
fn known(machines: &[&Machine], members: &[Member], workload: &Reached) -> Nodes {
    let mut known = Nodes::default();
    // kubeadm starts a member before the kubelet registers its Node.
    let on = |machine: &&Machine| membership::on(machine, machines, members);
    let joining = machines.iter().filter_map(on);
    known
        .names
        .extend(joining.map(|member| member.name.clone()));
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
