//! Next step of a control plane: a pure function of the observed state.

use std::collections::BTreeMap;
use std::time::Duration;

use api::k8s_openapi::jiff::Timestamp;

use super::membership::Membership;
use super::quorum::Members;
use crate::summary::{FIRST_NODE, INFRASTRUCTURE};

/// Input of the plan.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    /// Desired number of machines.
    pub(super) replicas: usize,
    /// Maximum surplus of machines during a rollout: 0 or 1.
    pub(super) surge: usize,
    /// True if the infrastructure of the Cluster is provisioned and its endpoint is set.
    pub(super) infrastructure: bool,
    /// True if certificates and kubeconfig exist.
    pub(super) certificates: bool,
    /// True if the control plane has been initialized.
    pub(super) initialized: bool,
    /// True if the workload cluster is connected and the list of static Pods is complete.
    pub(super) reachable: bool,
    /// The machines.
    pub(super) machines: Vec<MachineFacts>,
    /// Awaited changes of machines without a controller, one sentence each.
    pub(super) orphans: Vec<String>,
    /// Reasons why machines have an unknown state, one sentence each.
    pub(super) unjudged: Vec<String>,
    /// Failure domains for control plane machines.
    pub(super) failure_domains: Vec<String>,
    /// etcd's members.
    pub(super) etcd: Etcd,
    /// Time until `spec.rollout.after`, if in the future.
    pub(super) rollout_after: Option<Duration>,
}

/// Input of the plan about etcd.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Etcd {
    /// External, not managed here.
    #[default]
    External,
    /// The members could not be queried, for this reason.
    Unknown(String),
    /// [`Members`] of etcd.
    Known(Members),
}

impl Etcd {
    /// Reason against `change`: etcd cannot be queried, or would lose its quorum; `loss` completes the message.
    pub(super) fn obstacle(&self, change: impl Fn(Members) -> bool, loss: &str) -> Option<String> {
        match self {
            Etcd::External => None,
            Etcd::Unknown(why) => Some(format!("etcd cannot be asked: {why}")),
            Etcd::Known(members) => {
                (!change(*members)).then(|| format!("etcd would lose its quorum{loss}"))
            }
        }
    }
}

/// Input of the plan about one machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct MachineFacts {
    pub(super) name: String,
    pub(super) created: Timestamp,
    pub(super) deleting: bool,
    /// True with the delete-machine annotation.
    pub(super) marked: bool,
    pub(super) failure_domain: Option<String>,
    /// Reasons why the machine is outdated; empty for an up-to-date one.
    pub(super) outdated: Vec<String>,
    /// True with a known server: without one, a machine can hold no state.
    pub(super) server: bool,
    /// Name of the Node.
    pub(super) node: Option<String>,
    /// Types of the readiness gates that are not true.
    pub(super) problems: Vec<String>,
    /// [`Membership`] in etcd, if etcd could be asked.
    pub(super) membership: Membership,
    /// True if the deletion waits until etcd can do without the member.
    pub(super) held: bool,
}

impl MachineFacts {
    fn is_outdated(&self) -> bool {
        !self.outdated.is_empty()
    }

    fn is_healthy(&self) -> bool {
        self.node.is_some() && self.problems.is_empty()
    }

    /// True if the machine has never been a part of the control plane, so that nothing is lost: without a server, or
    /// without both a Node and a voting member. With an external [`Etcd`], a missing Node tells nothing, as Nodes are
    /// found a while after a move.
    fn is_outside(&self, etcd: &Etcd) -> bool {
        let votes = match (&self.membership, etcd) {
            (_, Etcd::External | Etcd::Unknown(_)) | (Membership::Unclear(_), _) => true,
            (Membership::Member(standing), Etcd::Known(_)) => !standing.learner,
            (Membership::Outside, Etcd::Known(_)) => false,
        };
        self.node.is_none() && (!self.server || !votes)
    }
}

/// The next step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// No change.
    Nothing,
    /// Wait for these conditions; one sentence each.
    Wait(Vec<String>),
    /// Creates a machine.
    Create {
        /// Its failure domain.
        failure_domain: Option<String>,
        /// True for the first machine, which runs `kubeadm init`.
        init: bool,
    },
    /// Deletes a machine.
    Delete {
        /// Name of the machine.
        machine: String,
    },
}

/// Reason why an initialized control plane without machines gets no new one.
const NO_MACHINE_LEFT: &str = "The control plane was initialized and none of its machines is left: kubeadm init would \
     found another cluster. Restore a machine with its etcd, or delete the Cluster and create it anew";

/// True if an entry of [`Step::Wait`] passes by itself, since a machine comes or goes. A machine that is not healthy
/// may stay so.
pub(super) fn is_progress(problem: &str) -> bool {
    problem.starts_with("Waiting for")
        || (problem.starts_with("Machine ") && !problem.contains(" is not healthy: "))
}

/// Decides the next [`Step`].
pub(super) fn decide(facts: &Facts) -> Step {
    if !facts.infrastructure {
        return wait(INFRASTRUCTURE);
    }
    if !facts.certificates {
        return wait("Waiting for certificates");
    }
    if !facts.orphans.is_empty() {
        return Step::Wait(facts.orphans.clone());
    }
    if !facts.unjudged.is_empty() {
        return Step::Wait(facts.unjudged.clone());
    }
    let count = facts.machines.len();
    if count == 0 && facts.replicas > 0 {
        if facts.initialized {
            return wait(NO_MACHINE_LEFT);
        }
        return Step::Create {
            failure_domain: domain_for_new(facts),
            init: true,
        };
    }
    if let Some(machine) = never_began(facts) {
        return Step::Delete {
            machine: machine.name.clone(),
        };
    }
    if facts.initialized && former_outside(facts).is_some() {
        return scale_down(facts);
    }
    let outdated = facts
        .machines
        .iter()
        .any(|machine| machine.is_outdated() && !machine.deleting);
    let most = if outdated {
        facts.replicas + facts.surge
    } else {
        facts.replicas
    };
    // Without surge, an outdated machine is deleted before its replacement is created.
    if count > most || (outdated && count >= most) {
        return scale_down(facts);
    }
    if count < most {
        scale_up(facts)
    } else {
        Step::Nothing
    }
}

fn wait(why: &str) -> Step {
    Step::Wait(vec![why.to_owned()])
}

fn scale_up(facts: &Facts) -> Step {
    let mut problems = preflight(facts, None);
    if problems.is_empty() {
        let loss = " if the new member failed";
        problems.extend(facts.etcd.obstacle(Members::can_add, loss));
    }
    if !problems.is_empty() {
        return Step::Wait(problems);
    }
    Step::Create {
        failure_domain: domain_for_new(facts),
        init: false,
    }
}

fn scale_down(facts: &Facts) -> Step {
    let Some(machine) = victim(facts) else {
        return Step::Nothing;
    };
    let mut problems = preflight(facts, Some(&machine.name));
    if facts.machines.iter().filter(|it| !it.deleting).count() <= 1 {
        problems.push("The last control plane machine is never deleted".to_owned());
    }
    if problems.is_empty() {
        let loss = format!(" without Machine {}", machine.name);
        let without = |members| machine.membership.may_go(members);
        problems.extend(facts.etcd.obstacle(without, &loss));
    }
    if !problems.is_empty() {
        return Step::Wait(problems);
    }
    Step::Delete {
        machine: machine.name.clone(),
    }
}

/// First machine, if it has never had a server and the template was changed since: nothing is lost with the machine,
/// and nothing else would correct a template from which no server can be created. After a move or a restore,
/// machines have servers before the control plane is known to be initialized.
fn never_began(facts: &Facts) -> Option<&MachineFacts> {
    let began = |machine: &MachineFacts| machine.server || machine.node.is_some();
    if facts.initialized || facts.machines.iter().any(began) {
        return None;
    }
    let mut machines = facts.machines.iter();
    machines.find(|machine| machine.is_outdated() && !machine.deleting)
}

/// Machine of a former template that has never been a part of the control plane: it blocks new machines, and machines
/// from the next template would join.
fn former_outside(facts: &Facts) -> Option<&MachineFacts> {
    let machines = facts.machines.iter();
    let outside =
        |it: &&MachineFacts| it.is_outdated() && !it.deleting && it.is_outside(&facts.etcd);
    // etcd removes no member that votes while there is a learner.
    let is_learner = |it: &&MachineFacts| matches!(it.membership, Membership::Member(_));
    machines.filter(outside).min_by_key(|it| !is_learner(it))
}

/// Reasons why no machine may be created or deleted now. The machine `going`, about to be deleted, may be unhealthy,
/// and so may be the others if `going` is no part of the control plane.
fn preflight(facts: &Facts, going: Option<&str>) -> Vec<String> {
    let mut problems = Vec::new();
    if !facts.initialized {
        problems.push(FIRST_NODE.to_owned());
        let former = facts.machines.iter();
        let former = former.filter(|it| it.is_outdated() && !it.deleting);
        problems.extend(former.map(|machine| {
            let name = &machine.name;
            format!("The first machine, {name}, has a former spec: delete it if it cannot join")
        }));
        return problems;
    }
    if !facts.reachable {
        problems.push("The workload cluster cannot be reached".to_owned());
        return problems;
    }
    let mut machines = facts.machines.iter();
    let outside = machines.any(|it| going == Some(it.name.as_str()) && it.is_outside(&facts.etcd));
    for machine in &facts.machines {
        if machine.deleting {
            // A held machine waits for others, and this one blocks the others.
            problems.extend((!outside || !machine.held).then(|| deleting(machine)));
        } else if !outside && going != Some(machine.name.as_str()) {
            if machine.node.is_none() {
                problems.push(format!("Machine {} has no Node yet", machine.name));
            } else if !machine.problems.is_empty() {
                let what = machine.problems.join(", ");
                problems.push(format!("Machine {} is not healthy: {what}", machine.name));
            }
        }
    }
    problems
}

/// Message while waiting for a machine that is being deleted.
pub(super) fn deleting(machine: &MachineFacts) -> String {
    let name = &machine.name;
    match machine.held {
        false => format!("Machine {name} is being deleted"),
        true => format!(
            "The deletion of Machine {name} waits: etcd would lose its quorum without its member"
        ),
    }
}

/// Machine to delete: of a former template and no part of the control plane, marked and outdated, marked, unhealthy
/// and outdated, outdated, any; among equals the oldest in the failure domain with the most machines.
fn victim(facts: &Facts) -> Option<&MachineFacts> {
    if let Some(machine) = former_outside(facts) {
        return Some(machine);
    }
    let staying = || facts.machines.iter().filter(|machine| !machine.deleting);
    let classes: [fn(&MachineFacts) -> bool; 5] = [
        |m| m.marked && m.is_outdated(),
        |m| m.marked,
        |m| !m.is_healthy() && m.is_outdated(),
        MachineFacts::is_outdated,
        |_| true,
    ];
    let candidates = classes
        .into_iter()
        .map(|class| {
            staying()
                .filter(|machine| class(machine))
                .collect::<Vec<_>>()
        })
        .find(|candidates| !candidates.is_empty())?;
    let crowd = |machine: &MachineFacts| {
        candidates
            .iter()
            .filter(|other| other.failure_domain == machine.failure_domain)
            .count()
    };
    let order = |m: &&MachineFacts| (usize::MAX - crowd(m), m.created, m.name.clone());
    candidates.iter().copied().min_by_key(order)
}

/// Failure domain with the fewest up-to-date machines; among equals, with the fewest machines.
fn domain_for_new(facts: &Facts) -> Option<String> {
    let mut counts: BTreeMap<&str, (usize, usize)> = facts
        .failure_domains
        .iter()
        .map(|name| (name.as_str(), (0, 0)))
        .collect();
    for machine in facts.machines.iter().filter(|machine| !machine.deleting) {
        let domain = machine
            .failure_domain
            .as_deref()
            .and_then(|name| counts.get_mut(name));
        if let Some((current, all)) = domain {
            *current += usize::from(!machine.is_outdated());
            *all += 1;
        }
    }
    counts
        .into_iter()
        .min_by_key(|(name, count)| (*count, *name))
        .map(|(name, _)| name.to_owned())
}

#[cfg(test)]
mod tests;
