//! etcd member of a joining machine, in cases where etcd would reject kubeadm's own addition (docs/adr/0034).
//!
//! A member that counts another one as disconnected rejects each new member, and of two members `kubeadm join` may
//! ask the same one each time. kubeadm does not add a member with a listed peer URL (`addMember` in
//! `util/etcd/etcd.go` of kubeadm 1.34), so the learner is added here, through a member that accepts it. kubeadm
//! starts and promotes the learner.

use api::controlplane::v1beta2::KubeadmControlPlane;
use api::core::v1beta2::{Machine, MachineAddressType};
use api::kube::ResourceExt;

use super::etcd::{Member, View};
use super::observe::Observation;
use super::{ControlPlaneError, Scope, Subject, members, membership};

/// Feature gate of kubeadm for members that join as learners.
const LEARNER_MODE: &str = "EtcdLearnerMode";
/// Arguments of etcd that may set a peer URL other than the machine's address.
const PEER_URLS: [&str; 2] = ["initial-advertise-peer-urls", "listen-peer-urls"];

/// Joining machine, with the host of the peer URL for kubeadm's addition.
#[derive(Debug)]
pub(super) struct Joining<'a> {
    machine: &'a Machine,
    host: &'a str,
}

/// Machine that is to become a member next to at least two others; `None` if its peer URL is not certain.
pub(super) fn joining<'a>(
    plane: &KubeadmControlPlane,
    seen: &'a Observation,
) -> Option<Joining<'a>> {
    let members = seen.etcd.members()?;
    // A single member has no others to count as disconnected. etcd takes one learner at a time.
    let voters = members.iter().filter(|member| !member.learner).count();
    if voters < 2 || voters < members.len() || !has_peer_url_of_its_address(plane) {
        return None;
    }
    let machines: Vec<_> = seen.machines.iter().map(|seen| &seen.machine).collect();
    let machine = machines.iter().copied().find(|machine| {
        let member = membership::on(machine, &machines, members);
        member.is_none() && machine.metadata.deletion_timestamp.is_none()
    })?;
    let host = only_address(machine)?;
    let listed = members.iter().any(|member| member.host == host);
    (!listed && seen.is_young(machine)).then_some(Joining { machine, host })
}

/// Adds the learner of a joining machine while a member counts another one as disconnected. Idempotent: the next
/// reconcile finds the learner in the list.
pub(super) async fn add_learner(
    scope: &Scope,
    subject: &Subject,
    seen: &Observation,
) -> Result<(), ControlPlaneError> {
    let (View::Known(list), Some(workload)) = (&seen.etcd, &seen.workload) else {
        return Ok(());
    };
    let Some(Joining { machine, host }) = joining(&subject.plane, seen) else {
        return Ok(());
    };
    let nodes = workload.etcd_nodes();
    let target = members::target(subject, workload, &nodes);
    let Some((wrong, other)) = scope.etcd.disconnected(&target, list).await else {
        return Ok(());
    };
    // A silent member would hide the reason of the others' refusal.
    let asked = |it: &&Member| it.id != wrong.id && !it.learner && it.is_healthy();
    let accepting: Vec<&Member> = list.iter().filter(asked).collect();
    let added = scope.etcd.add_learner(&target, &accepting, host).await;
    let by = added.map_err(ControlPlaneError::Etcd)?;
    let (machine, wrong, other) = (machine.name_any(), &wrong.name, &other.name);
    let note = format!(
        "added the etcd member of Machine {machine} through {by}: {wrong} counts {other} as disconnected, and would reject it"
    );
    let plane = subject.plane.as_ref();
    let events = &scope.events;
    events
        .normal(plane, "EtcdMemberAdded", "AddEtcdMember", note)
        .await;
    Ok(())
}

/// True if kubeadm adds members as learners, at the addresses of their machines.
fn has_peer_url_of_its_address(plane: &KubeadmControlPlane) -> bool {
    let Ok(version) = plane.spec.version.parse::<api::version::Version>() else {
        return false;
    };
    let spec = plane.spec.kubeadm_config_spec.as_ref();
    let cluster = spec.and_then(|spec| spec.cluster_configuration.as_ref());
    let learners = cluster.and_then(|cluster| cluster.feature_gates.get(LEARNER_MODE));
    let etcd = cluster.and_then(|cluster| cluster.etcd.as_ref()?.local.as_ref());
    let mut arguments = etcd.into_iter().flat_map(|etcd| &etcd.extra_args);
    let join = spec.and_then(|spec| spec.join_configuration.as_ref()?.control_plane.as_ref());
    let endpoint = join.and_then(|join| join.local_api_endpoint.as_ref());
    // The gate is enabled by default since 1.29.
    !version.is_before_minor(1, 29)
        && learners != Some(&false)
        && !arguments.any(|argument| PEER_URLS.contains(&argument.name.as_str()))
        && endpoint.is_none_or(|endpoint| endpoint.advertise_address.is_none())
}

/// Internal address of a [`Machine`] with a single one: kubeadm announces the address of the default route.
fn only_address(machine: &Machine) -> Option<&str> {
    let status = machine.status.as_ref()?;
    let internal = |type_| type_ == MachineAddressType::InternalIP;
    let mut addresses = status.addresses.iter().flatten();
    let first = addresses.find(|address| internal(address.type_))?;
    let another = addresses.any(|address| internal(address.type_));
    (!another).then_some(first.address.as_str())
}

#[cfg(test)]
mod tests;
