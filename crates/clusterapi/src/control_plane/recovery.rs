//! Recovery of a control plane after etcd has lost its quorum (docs/adr/0050).
//!
//! ```text
//!   lost        too few members answer: their names, and the steps for a person
//!   not named   etcd has a quorum again, without the members of some machines: a person has to name the survivor
//!   refused     the named machine cannot be the survivor
//!   deleting    the machines without a member, and then the annotation with the survivor
//! ```
//!
//! Nothing is changed without the annotation, nor while etcd has no quorum. A machine is deleted only if it had
//! joined, and a quorum lists the members without its Node and its addresses: such a machine can never be a member
//! again.

use api::conditions::{self, Reason, Type, Verdict};
use api::controlplane::v1beta2::KubeadmControlPlane;
use api::k8s_openapi::api::core::v1::Node;
use api::k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use api::kube::ResourceExt;
use api::kube::api::{Patch, PatchParams};
use api::names::ETCD_SURVIVOR_ANNOTATION as SURVIVOR;
use operator::client::Api;
use serde_json::json;

use super::etcd::{Member, View, without_quorum};
use super::health::LABELS_AND_TAINTS;
use super::observe::{Observation, Seen};
use super::{ControlPlaneError, Scope, Subject, error, machines, quorum};
use crate::news::PendingEvent;

mod words;

/// Condition of the control plane, set from the first loss on. Upstream has no such condition.
const TYPE: Type = Type::EtcdRecovered;

/// State of a recovery.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Recovery {
    /// The reported state stays: etcd cannot be asked, and the machines tell nothing.
    #[default]
    Unknown,
    /// No recovery is necessary.
    Nothing,
    /// The quorum is lost.
    Lost(Loss),
    /// Machines have joined and are no members of an etcd with a quorum, and no survivor is named.
    NotNamed {
        /// Machines without a member.
        outside: Vec<String>,
        /// Machines with a member.
        members: Vec<String>,
    },
    /// The named machine cannot be the survivor.
    Refused { named: String, why: String },
    /// A survivor is named, but etcd cannot be asked for its members.
    Unasked { named: String, why: String },
    /// The machines without a member are deleted.
    Deleting {
        survivor: String,
        /// Machines not yet being deleted.
        outside: Vec<String>,
        /// Machines being deleted.
        going: Vec<String>,
    },
    /// A survivor is named, and no machine has to be deleted.
    Done { survivor: String },
}

/// A lost quorum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Loss {
    /// Sentence with the number of answering members.
    head: String,
    /// Working machines.
    survivors: Vec<String>,
    /// Other machines, each with its known state.
    lost: Vec<(String, String)>,
    /// Machine named as the survivor.
    named: Option<String>,
    /// Reason why the named machine cannot be the survivor.
    objection: Option<String>,
}

/// Machine of the control plane.
#[derive(Clone, Debug, Default)]
struct Candidate {
    name: String,
    node: Option<String>,
    addresses: Vec<String>,
    deleting: bool,
    /// True if the machine has been a member: kubeadm labels the Node afterwards.
    joined: bool,
    /// Reason why server or Node do not work, as found by other controllers.
    gone: Option<String>,
}

impl Candidate {
    fn member<'a>(&self, members: &'a [Member]) -> Option<&'a Member> {
        let node = self.node.as_ref();
        members
            .iter()
            .find(|member| node == Some(&member.name) || self.addresses.contains(&member.host))
    }
}

/// State of the [`Recovery`] of a control plane.
pub(super) fn of(plane: &KubeadmControlPlane, seen: &Observation) -> Recovery {
    if !seen.facts.initialized || seen.connecting {
        return Recovery::Unknown;
    }
    let machines: Vec<_> = seen.machines.iter().map(|it| candidate(it, seen)).collect();
    let named = plane.annotations().get(SURVIVOR).map(String::as_str);
    decide(named, &machines, &seen.etcd)
}

fn candidate(seen: &Seen, around: &Observation) -> Candidate {
    let machine = &seen.machine;
    let status = machine.status.as_ref();
    let addresses = status.and_then(|status| status.addresses.as_ref());
    let of_node = |name: &str| {
        let verdict = seen
            .verdicts
            .iter()
            .find(|it| it.type_ == LABELS_AND_TAINTS);
        let labelled = verdict.is_some_and(|it| it.status == conditions::Status::True);
        let nodes = around.workload.iter().flat_map(|reached| &reached.nodes);
        // A deleted Node had joined.
        labelled || !nodes.into_iter().any(|node| node.name_any() == name)
    };
    let failed = [Type::InfrastructureReady, Type::HealthCheckSucceeded].into_iter();
    let mut failed = failed.filter_map(|type_| conditions::find(machine.conditions(), type_));
    let failed = failed.find(|condition| condition.status == "False");
    Candidate {
        name: machine.name_any(),
        node: machine.node_name().map(str::to_owned),
        addresses: addresses
            .into_iter()
            .flatten()
            .map(|address| address.address.clone())
            .collect(),
        deleting: machine.is_deleting(),
        joined: around.workload.is_some() && machine.node_name().is_some_and(of_node),
        gone: failed.map(|it| match it.message.lines().next() {
            Some(line) if !line.is_empty() => line.trim_start_matches("* ").to_owned(),
            _ => format!("{} is False: {}", it.type_, it.reason),
        }),
    }
}

fn decide(named: Option<&str>, machines: &[Candidate], etcd: &View) -> Recovery {
    let refused = |why: String| Recovery::Refused {
        named: named.unwrap_or_default().to_owned(),
        why,
    };
    match (etcd, named) {
        (View::External, None) => Recovery::Nothing,
        (View::External, Some(_)) => refused("etcd is external, and not managed here".to_owned()),
        (View::NoQuorum(members), _) => Recovery::Lost(loss(named, machines, members)),
        (View::Unknown(why), _) => match (loss_by_machines(named, machines), named) {
            (Some(loss), _) => Recovery::Lost(loss),
            (None, None) => Recovery::Unknown,
            (None, Some(named)) => Recovery::Unasked {
                named: named.to_owned(),
                why: why.clone(),
            },
        },
        (View::Known(members), None) => not_named(machines, members),
        (View::Known(members), Some(named)) => match objection(named, machines, members) {
            Some(why) => refused(why),
            None => named_by_a_person(named, machines, members),
        },
    }
}

/// Machines that have joined and are no [`Member`]s.
fn outside(machines: &[Candidate], members: &[Member]) -> Vec<String> {
    let outside = machines
        .iter()
        .filter(|it| it.joined && !it.deleting && it.member(members).is_none());
    outside.map(|it| it.name.clone()).collect()
}

fn not_named(machines: &[Candidate], members: &[Member]) -> Recovery {
    let outside = outside(machines, members);
    if outside.is_empty() {
        return Recovery::Nothing;
    }
    let inside = machines.iter().filter(|it| it.member(members).is_some());
    Recovery::NotNamed {
        members: inside.map(|it| it.name.clone()).collect(),
        outside,
    }
}

fn named_by_a_person(named: &str, machines: &[Candidate], members: &[Member]) -> Recovery {
    let outside = outside(machines, members);
    let going = machines.iter().filter(|it| it.deleting);
    let going: Vec<_> = going.map(|it| it.name.clone()).collect();
    let survivor = named.to_owned();
    if outside.is_empty() && going.is_empty() {
        return Recovery::Done { survivor };
    }
    Recovery::Deleting {
        survivor,
        outside,
        going,
    }
}

/// Reason why `named` is not a machine with a working [`Member`].
fn objection(named: &str, machines: &[Candidate], members: &[Member]) -> Option<String> {
    let machine = match find(named, machines) {
        Ok(machine) => machine,
        Err(why) => return Some(why),
    };
    match machine.member(members) {
        None => Some("its etcd is not a member".to_owned()),
        Some(member) if member.learner => Some("its etcd is a learner".to_owned()),
        Some(member) => {
            let problem = member.problem.as_ref();
            problem.map(|problem| format!("its etcd member does not work: {problem}"))
        }
    }
}

fn find<'a>(named: &str, machines: &'a [Candidate]) -> Result<&'a Candidate, String> {
    match machines.iter().find(|machine| machine.name == named) {
        None => Err("no Machine of this control plane has this name".to_owned()),
        Some(machine) if machine.deleting => Err("it is being deleted".to_owned()),
        Some(machine) => Ok(machine),
    }
}

/// Lost quorum, as reported by a [`Member`] without a leader.
fn loss(named: Option<&str>, machines: &[Candidate], members: &[Member]) -> Loss {
    let name = |member: &Member| {
        let of = |machine: &&Candidate| machine.member(std::slice::from_ref(member)).is_some();
        let machine = machines.iter().find(of);
        machine.map_or_else(
            || format!("of the etcd member {}", words::label(member)),
            |machine| machine.name.clone(),
        )
    };
    let voters = || members.iter().filter(|member| !member.learner);
    let lost = voters().filter_map(|member| Some((name(member), member.problem.clone()?)));
    Loss {
        head: without_quorum(members),
        survivors: voters().filter(|it| it.is_healthy()).map(name).collect(),
        lost: lost.collect(),
        named: named.map(str::to_owned),
        objection: named.and_then(|named| objection(named, machines, members)),
    }
}

/// Lost quorum, as concluded from the machines: a real API server without etcd forwards no port. `None` if enough
/// machines may work, or none does.
fn loss_by_machines(named: Option<&str>, machines: &[Candidate]) -> Option<Loss> {
    let joined = || machines.iter().filter(|it| it.node.is_some());
    let (works, all) = (
        joined().filter(|it| it.gone.is_none() && !it.deleting),
        joined().count(),
    );
    let survivors: Vec<_> = works.map(|it| it.name.clone()).collect();
    if survivors.is_empty() || survivors.len() >= quorum::quorum(all) {
        return None;
    }
    let lost = joined().filter(|it| !survivors.contains(&it.name));
    let lost = lost.map(|it| {
        let why = it.gone.clone();
        (
            it.name.clone(),
            why.unwrap_or_else(|| "it is being deleted".to_owned()),
        )
    });
    let objection = named.and_then(|named| match find(named, machines) {
        Ok(machine) if survivors.contains(&machine.name) => None,
        Ok(_) => Some("it does not work".to_owned()),
        Err(why) => Some(why),
    });
    Some(Loss {
        head: format!(
            "etcd cannot be asked, and of {all} machines that may be its members {} work, where {} are needed for a quorum",
            survivors.len(),
            quorum::quorum(all)
        ),
        lost: lost.collect(),
        survivors,
        named: named.map(str::to_owned),
        objection,
    })
}

impl Recovery {
    /// [`Condition`] of the control plane; `before` are its present conditions.
    pub(super) fn verdict(
        &self,
        plane: &KubeadmControlPlane,
        before: &[Condition],
    ) -> Option<Verdict> {
        let verdict = |reason| Some(Verdict::new(TYPE, false, reason));
        let verdict = match self {
            Recovery::Unknown => None,
            Recovery::Nothing | Recovery::Done { .. } => {
                conditions::find(before, TYPE)?;
                return Some(Verdict::new(TYPE, true, Reason::Recovered));
            }
            Recovery::Lost(_) => verdict(Reason::QuorumLost),
            Recovery::NotNamed { .. } => verdict(Reason::SurvivorNotNamed),
            Recovery::Refused { .. } => verdict(Reason::SurvivorRefused),
            Recovery::Unasked { .. } => verdict(Reason::WaitingForEtcd),
            Recovery::Deleting { .. } => verdict(Reason::DeletingLostMachines),
        };
        verdict.map(|verdict| verdict.because(words::message(self, &plane.name_any())))
    }
}

/// Event for a new state of the recovery.
pub(super) fn news(before: &[Condition], after: &[Condition]) -> Option<PendingEvent> {
    let is = conditions::find(after, TYPE)?;
    let was = conditions::find(before, TYPE);
    if was.is_some_and(|was| was.reason == is.reason) {
        return None;
    }
    let line = is.message.lines().next().unwrap_or_default();
    let see = format!("{line}. The condition {TYPE} has the next steps");
    Some(match Reason::parse(&is.reason)? {
        Reason::QuorumLost => PendingEvent::warning("EtcdQuorumLost", "RecoverEtcd", see),
        Reason::SurvivorNotNamed => {
            PendingEvent::warning("EtcdSurvivorNotNamed", "RecoverEtcd", see)
        }
        Reason::SurvivorRefused => {
            PendingEvent::warning("EtcdSurvivorRefused", "RecoverEtcd", line)
        }
        Reason::DeletingLostMachines => {
            PendingEvent::normal("DeletingLostMachines", "RecoverEtcd", line)
        }
        Reason::Recovered => {
            let note = "etcd has a quorum, and each machine that has joined is a member";
            PendingEvent::normal("EtcdRecovered", "RecoverEtcd", note)
        }
        _ => return None,
    })
}

/// Deletes the lost machines, and then removes the annotation with the survivor. Returns true during a recovery: no
/// other machine is created or deleted meanwhile.
pub(super) async fn act(
    scope: &Scope,
    subject: &Subject,
    seen: &Observation,
) -> Result<bool, ControlPlaneError> {
    match &seen.recovery {
        Recovery::Deleting {
            survivor, outside, ..
        } => {
            if outside.is_empty() || !is_still_named(scope, subject, survivor).await? {
                return Ok(true);
            }
            for name in outside {
                if !has_unseen_node(seen, name).await? {
                    machines::delete(scope, subject, seen, name).await?;
                }
            }
            Ok(true)
        }
        Recovery::Done { .. } => {
            release(scope, subject).await?;
            Ok(true)
        }
        _ => Ok(false),
    }
}

/// True if the annotation still names the survivor: a user may have removed it since the start of the reconcile, as a
/// request to a lost member takes seconds.
async fn is_still_named(
    scope: &Scope,
    subject: &Subject,
    survivor: &str,
) -> Result<bool, ControlPlaneError> {
    let planes: Api<KubeadmControlPlane> = scope.context.api(&subject.key.namespace);
    let name = subject.plane.name_any();
    let found = planes.get_metadata_opt(&name).await;
    let action = format!("reading KubeadmControlPlane {name}");
    let found = found.map_err(error::doing(action))?;
    Ok(found.is_some_and(|live| {
        let named = live.annotations().get(SURVIVOR);
        live.metadata.uid == subject.plane.metadata.uid && named.is_some_and(|it| it == survivor)
    }))
}

/// True if the Node of a machine exists but is missing in a possibly outdated cache: the machine may be joining.
async fn has_unseen_node(seen: &Observation, name: &str) -> Result<bool, ControlPlaneError> {
    let mut machines = seen.machines.iter().map(|seen| &seen.machine);
    let machine = machines.find(|machine| machine.name_any() == name);
    let node = machine.and_then(|machine| machine.node_name());
    let (Some(node), Some(workload)) = (node, &seen.workload) else {
        return Ok(true);
    };
    if workload.nodes.iter().any(|known| known.name_any() == node) {
        return Ok(false);
    }
    let nodes: Api<Node> = Api::all(workload.client.clone());
    let found = nodes.get_metadata_opt(node).await;
    let action = format!("reading Node {node}");
    Ok(found.map_err(error::remotely(action))?.is_some())
}

/// Removes the annotation, unless the object has changed since the decision.
async fn release(scope: &Scope, subject: &Subject) -> Result<(), ControlPlaneError> {
    let planes: Api<KubeadmControlPlane> = scope.context.api(&subject.key.namespace);
    let patch = json!({"metadata": {
        "resourceVersion": subject.plane.metadata.resource_version,
        "annotations": {SURVIVOR: null},
    }});
    let params = PatchParams::default();
    let name = subject.plane.name_any();
    let patched = planes.patch(&name, &params, &Patch::Merge(&patch)).await;
    let action = format!("removing the annotation {SURVIVOR} of KubeadmControlPlane {name}");
    patched.map(drop).map_err(error::doing(action))
}

#[cfg(test)]
mod tests;
