//! Health of a control plane machine, from its Node and its static Pods.

use std::sync::Arc;

use api::conditions::{Reason, Status, Type, Verdict};
use api::k8s_openapi::api::core::v1::{Node, Pod};
use api::kube::ResourceExt;

use super::etcd;

/// Static Pod of the control plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Component {
    ApiServer,
    ControllerManager,
    Scheduler,
    Etcd,
}

impl Component {
    pub(super) const ALL: [Component; 4] = [
        Component::ApiServer,
        Component::ControllerManager,
        Component::Scheduler,
        Component::Etcd,
    ];

    /// Prefix of the Pod's name, and the value of its label `component`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Component::ApiServer => "kube-apiserver",
            Component::ControllerManager => "kube-controller-manager",
            Component::Scheduler => "kube-scheduler",
            Component::Etcd => "etcd",
        }
    }

    /// Type of the Machine's condition.
    pub(super) fn condition(self) -> Type {
        match self {
            Component::ApiServer => Type::APIServerPodHealthy,
            Component::ControllerManager => Type::ControllerManagerPodHealthy,
            Component::Scheduler => Type::SchedulerPodHealthy,
            Component::Etcd => Type::EtcdPodHealthy,
        }
    }
}

/// Condition of a Machine for its etcd member.
pub(super) const ETCD_MEMBER: Type = Type::EtcdMemberHealthy;
/// Condition of a Machine for the last label that kubeadm sets on the Node.
pub(super) const LABELS_AND_TAINTS: Type = Type::NodeKubeadmLabelsAndTaintsSet;
/// Label of control plane Nodes, set by kubeadm.
const ROLE: &str = "node-role.kubernetes.io/control-plane";

/// Readiness gates of a control plane machine. Two do not apply to an external etcd.
pub(super) fn gates(external_etcd: bool) -> Vec<Type> {
    let components = Component::ALL
        .into_iter()
        .filter(|c| !(external_etcd && *c == Component::Etcd));
    let member = (!external_etcd).then_some(ETCD_MEMBER);
    std::iter::once(LABELS_AND_TAINTS)
        .chain(components.map(Component::condition))
        .chain(member)
        .collect()
}

/// Observed state of the workload cluster.
#[derive(Clone, Copy, Debug)]
pub(super) struct View<'a> {
    pub(super) pods: &'a [Arc<Pod>],
    pub(super) nodes: &'a [Arc<Node>],
    pub(super) etcd: &'a etcd::View,
}

/// Conditions of the machine on `node`. `node` is unset until found by the Machine controller; `view` is unset while
/// the workload cluster cannot be reached.
pub(super) fn judge(node: Option<&str>, view: Option<View<'_>>) -> Vec<Verdict> {
    let external = view.is_some_and(|view| *view.etcd == etcd::View::External);
    let all = |status: Status, reason: Reason, message: &str| {
        let verdict = |type_| Verdict::new(type_, status, reason).because(message);
        gates(external).into_iter().map(verdict).collect()
    };
    let Some(view) = view else {
        let message = "The workload cluster cannot be reached";
        return all(Status::Unknown, Reason::ConnectionDown, message);
    };
    let Some(node) = node else {
        let message = "Waiting for the node of the Machine to join the cluster";
        return all(Status::Unknown, Reason::InspectionFailed, message);
    };
    let Some(object) = view.nodes.iter().find(|known| known.name_any() == node) else {
        return all(
            Status::Unknown,
            Reason::InspectionFailed,
            &format!("Node {node} does not exist"),
        );
    };
    let mut verdicts = vec![labels_and_taints(object)];
    for component in Component::ALL {
        if !(external && component == Component::Etcd) {
            verdicts.push(pod(component, node, view.pods));
        }
    }
    if !external {
        verdicts.push(member(node, view.etcd));
    }
    verdicts
}

/// Node of a static [`Pod`] of `component`.
pub(super) fn node_of(pod: &Pod, component: Component) -> Option<&str> {
    let name = pod.metadata.name.as_deref()?;
    name.strip_prefix(component.name())?.strip_prefix('-')
}

/// True if the Pod's condition `Ready` is true, and the [`Pod`] is not being deleted.
pub(super) fn is_ready(pod: &Pod) -> bool {
    let conditions = pod
        .status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten());
    let ready = conditions
        .filter(|c| c.type_ == "Ready")
        .any(|c| c.status == "True");
    ready && pod.metadata.deletion_timestamp.is_none()
}

fn labels_and_taints(node: &Node) -> Verdict {
    let verdict = |holds, reason: Reason| Verdict::new(LABELS_AND_TAINTS, holds, reason);
    if node.labels().contains_key(ROLE) {
        verdict(true, Reason::Set)
    } else {
        verdict(false, Reason::NotSet)
            .because(format!("Node {} has no label {ROLE}", node.name_any()))
    }
}

fn pod(component: Component, node: &str, pods: &[Arc<Pod>]) -> Verdict {
    let type_ = component.condition();
    let of_node = |pod: &&Arc<Pod>| node_of(pod, component) == Some(node);
    let Some(pod) = pods.iter().find(of_node) else {
        let name = format!("{}-{node}", component.name());
        return Verdict::new(type_, false, Reason::DoesNotExist)
            .because(format!("Pod {name} does not exist"));
    };
    if pod.metadata.deletion_timestamp.is_some() {
        return Verdict::new(type_, false, Reason::Deleting);
    }
    if is_ready(pod) {
        return Verdict::new(type_, true, Reason::Running);
    }
    let phase = pod
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    match phase {
        Some("Failed" | "Succeeded") => {
            let message = format!("Pod {} has terminated", pod.name_any());
            Verdict::new(type_, false, Reason::Failed).because(message)
        }
        Some("Unknown") | None => Verdict::new(type_, Status::Unknown, Reason::InspectionFailed)
            .because(format!("Nothing is known of Pod {}", pod.name_any())),
        Some(_) => {
            let message = waiting(pod).unwrap_or_else(|| "Waiting to become ready".to_owned());
            Verdict::new(type_, false, Reason::Provisioning).because(message)
        }
    }
}

/// Reason for a waiting container, as reported by the kubelet.
fn waiting(pod: &Pod) -> Option<String> {
    let statuses = pod.status.as_ref()?.container_statuses.as_ref()?;
    let waiting = statuses
        .iter()
        .find_map(|status| status.state.as_ref()?.waiting.as_ref())?;
    waiting.message.clone().or_else(|| waiting.reason.clone())
}

fn member(node: &str, etcd: &etcd::View) -> Verdict {
    let ill = |why: &str| Verdict::new(ETCD_MEMBER, false, Reason::NotHealthy).because(why);
    if let etcd::View::Unknown(why) = etcd {
        return Verdict::new(ETCD_MEMBER, Status::Unknown, Reason::InspectionFailed)
            .because(why.as_str());
    }
    if let etcd::View::NoQuorum(members) = etcd {
        let known = members.iter().find(|member| member.name == node);
        let problem = known.and_then(|member| member.problem.clone());
        return ill(&problem.unwrap_or_else(|| etcd::without_quorum(members)));
    }
    match etcd.on(node) {
        Some(member) if member.learner => ill("The etcd member is still a learner"),
        Some(member) => match &member.problem {
            None => Verdict::new(ETCD_MEMBER, true, Reason::Healthy),
            Some(problem) => ill(problem),
        },
        None => ill(&format!("There is no etcd member on Node {node}")),
    }
}

#[cfg(test)]
mod tests;
