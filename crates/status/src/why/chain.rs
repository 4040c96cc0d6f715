//! Chain from an unready object to the last cause: each object waits for the next.

use api::conditions::{Reason, Type};
use kube::ResourceExt;

use crate::readiness::cause::{
    blocked, blocked_set, cause, is_failure, is_paused, is_true, lost_quorum, recovery,
    remediation, unremediated, without_conditions,
};
use crate::readiness::reach::{self, unreached};
use crate::readiness::summary;
use crate::snapshot::reference::{Reference, Role};
use crate::snapshot::{Condition, Item, Kind, Snapshot};
use crate::tree::conditions::good;

/// Reason of a [`Finding`] outside of conditions: the address of the API server is not reached.
pub(super) const UNREACHED: &str = "UnreachedAddress";

/// Objects from the first one to the last cause.
#[derive(Debug)]
pub(super) struct Chain<'a> {
    snapshot: &'a Snapshot,
    /// [`Item`] in the question, followed by the objects in its way; never empty.
    pub(super) links: Vec<&'a Item>,
    pub(super) end: End,
}

/// Problem of the last link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Problem in its own conditions.
    Itself,
    /// Pause: no controller acts on the object until resumed.
    Paused,
    /// [`Reference`] to a missing object.
    Missing(Reference),
}

/// The last cause in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) of: String,
    pub(super) problem: &'static str,
    pub(super) since: Option<String>,
    pub(super) detail: Option<String>,
    /// The reason of the condition.
    pub(super) reason: String,
    pub(super) failing: bool,
}

/// Step from an object to the object in its way.
enum Step<'a> {
    To(&'a Item),
    Missing(Reference),
}

impl<'a> Chain<'a> {
    /// Chain from `start`; `None` if ready.
    pub(super) fn new(snapshot: &'a Snapshot, start: &'a Item) -> Option<Self> {
        cause(snapshot, start)?;
        let mut walk = Walk {
            snapshot,
            links: vec![start],
        };
        let end = walk.follow_to_end();
        Some(Self {
            snapshot,
            links: walk.links,
            end,
        })
    }

    pub(super) fn last(&self) -> Option<&'a Item> {
        self.links.last().copied()
    }

    /// [`Finding`] of the last object.
    pub(super) fn finding(&self) -> Finding {
        let Some(last) = self.last() else {
            return Finding::new(String::new(), "is not ready");
        };
        match &self.end {
            End::Paused => Finding {
                detail: Some("nothing is done for it until it is resumed".to_owned()),
                failing: true,
                ..Finding::new(last.label(), "is paused")
            },
            End::Missing(reference) => Finding {
                detail: Some(format!("{} refers to it", last.label())),
                failing: true,
                ..Finding::new(reference.label(), "does not exist")
            },
            End::Itself if last.is_deleting() => deleting(last),
            End::Itself => self.of_reach(last).unwrap_or_else(|| by_condition(last)),
        }
    }

    /// [`Finding`] for a Cluster whose API server is not reached, reported by no condition.
    fn of_reach(&self, last: &Item) -> Option<Finding> {
        let cause = reach::cause(self.snapshot, last)?;
        let probe = unreached(self.snapshot, last)?;
        Some(Finding {
            since: Some(probe.since.to_owned()).filter(|it| !it.is_empty()),
            detail: Some(cause.text),
            reason: UNREACHED.to_owned(),
            failing: true,
            ..Finding::new(last.label(), "waits in vain")
        })
    }

    /// Number of other Machines of the cluster that are unready for the same reason as the last one.
    pub(super) fn others(&self, snapshot: &Snapshot) -> usize {
        let of_machine = |item: &&&Item| item.kind == Kind::Machine;
        let Some(machine) = self.links.iter().rev().find(of_machine) else {
            return 0;
        };
        let (Some(cluster), Some(why)) = (snapshot.cluster_of(machine), cause(snapshot, machine))
        else {
            return 0;
        };
        snapshot
            .belonging(cluster, Kind::Machine)
            .filter(|other| other.name() != machine.name())
            .filter(|other| cause(snapshot, other).is_some_and(|other| other == why))
            .count()
    }
}

impl Finding {
    fn new(of: String, problem: &'static str) -> Self {
        Self {
            of,
            problem,
            since: None,
            detail: None,
            reason: String::new(),
            failing: false,
        }
    }
}

struct Walk<'a> {
    snapshot: &'a Snapshot,
    links: Vec<&'a Item>,
}

impl<'a> Walk<'a> {
    fn follow_to_end(&mut self) -> End {
        while let Some(last) = self.links.last().copied() {
            if is_paused(last) {
                return End::Paused;
            }
            let cluster = self.snapshot.cluster_of(last);
            if let Some(cluster) = cluster.filter(|it| is_paused(it) && self.is_new(it)) {
                self.links.push(cluster);
                return End::Paused;
            }
            match self.next(last) {
                Some(Step::To(item)) => self.links.push(item),
                Some(Step::Missing(reference)) => return End::Missing(reference),
                None => return End::Itself,
            }
        }
        End::Itself
    }

    fn is_new(&self, item: &Item) -> bool {
        let same = |link: &&Item| {
            link.kind_name() == item.kind_name()
                && link.name() == item.name()
                && link.namespace() == item.namespace()
        };
        !self.links.iter().any(same)
    }

    fn next(&self, item: &'a Item) -> Option<Step<'a>> {
        match item.kind {
            Kind::Cluster => self.of_cluster(item),
            Kind::MachineDeployment => self.of_deployment(item).map(Step::To),
            Kind::MachineSet | Kind::KubeadmControlPlane => self.of_creator(item).map(Step::To),
            Kind::Machine => self.of_machine(item),
            Kind::OpenStackCluster => None,
            Kind::OpenStackMachine | Kind::Other => match self.snapshot.machine_of(item) {
                Some(machine) => self.of_part(item, machine).map(Step::To),
                None => self.of_creator(item).map(Step::To),
            },
        }
    }

    /// First failing one of `items`, or else the first unready one.
    fn pick(&self, items: impl Iterator<Item = &'a Item>) -> Option<&'a Item> {
        let mut waiting = None;
        for item in items.filter(|item| self.is_new(item)) {
            match cause(self.snapshot, item) {
                Some(cause) if cause.failing => return Some(item),
                Some(_) if waiting.is_none() => waiting = Some(item),
                _ => {}
            }
        }
        waiting
    }

    /// [`Step`] to the object of a [`Role`]: missing, or not ready.
    fn referred(&self, from: &'a Item, role: Role) -> Option<Step<'a>> {
        let reference = from.reference(role)?;
        match self.snapshot.referred(from, role) {
            None => Some(Step::Missing(reference)),
            Some(item) => self.pick(std::iter::once(item)).map(Step::To),
        }
    }

    fn of_cluster(&self, cluster: &'a Item) -> Option<Step<'a>> {
        let snapshot = self.snapshot;
        let kinds = [Kind::MachineDeployment, Kind::MachineSet, Kind::Machine];
        let parts = kinds
            .into_iter()
            .flat_map(|kind| snapshot.belonging(cluster, kind));
        if cluster.is_deleting() {
            let rest = [
                snapshot.control_plane(cluster),
                snapshot.infrastructure(cluster),
            ];
            let mut parts = parts.chain(rest.into_iter().flatten());
            return parts
                .find(|item| item.is_deleting() && self.is_new(item))
                .map(Step::To);
        }
        if unreached(snapshot, cluster).is_some() {
            return None;
        }
        // The first of these has to be there for all that follows.
        for (done, role) in [
            (Type::InfrastructureReady, Role::Infrastructure),
            (Type::ControlPlaneInitialized, Role::ControlPlane),
        ] {
            let waits = !is_true(cluster, done);
            if let Some(step) = waits.then(|| self.referred(cluster, role)).flatten() {
                return Some(step);
            }
        }
        let first = [
            snapshot.infrastructure(cluster),
            snapshot.control_plane(cluster),
        ];
        let parts = parts.filter(|item| item.kind == Kind::MachineDeployment || stands_alone(item));
        self.pick(first.into_iter().flatten().chain(parts))
            .map(Step::To)
    }

    /// MachineSet of the failing Machine, or else an unready set.
    fn of_deployment(&self, deployment: &'a Item) -> Option<&'a Item> {
        if blocked(deployment).is_some_and(|it| it.failing) {
            return None;
        }
        let sets: Vec<&Item> = self.snapshot.owned(deployment, Kind::MachineSet).collect();
        let machines = sets
            .iter()
            .flat_map(|set| self.snapshot.owned(set, Kind::Machine));
        let machine = self.pick(machines);
        let of_machine = sets
            .iter()
            .find(|set| machine.is_some_and(|machine| machine.is_owned_by(set)))
            .filter(|set| self.is_new(set));
        of_machine
            .copied()
            .or_else(|| self.pick(sets.iter().copied()))
            .or_else(|| self.gate(deployment))
    }

    /// Machine of a creator of Machines, or the obstacle to the creation of any.
    fn of_creator(&self, creator: &'a Item) -> Option<&'a Item> {
        if recovery(creator).is_some_and(|it| it.failing) {
            return None;
        }
        let machine = self.pick(self.snapshot.owned(creator, Kind::Machine));
        let fails = |item: &&Item| cause(self.snapshot, item).is_some_and(|it| it.failing);
        if blocked(creator).is_some_and(|it| it.failing) {
            return machine.filter(|it| fails(it) && unremediated(it).is_none());
        }
        machine.or_else(|| self.gate(creator))
    }

    /// Cluster, if an obstacle to the reconciliation of the object.
    fn gate(&self, item: &'a Item) -> Option<&'a Item> {
        let cluster = self.snapshot.cluster_of(item)?;
        let plane = self.snapshot.control_plane(cluster);
        let of_plane = item.is_control_plane_machine()
            || plane.is_some_and(|plane| plane.label() == item.label() || item.is_owned_by(plane));
        let closed = !is_true(cluster, Type::InfrastructureReady)
            || unreached(self.snapshot, cluster).is_some()
            || (!of_plane && !is_true(cluster, Type::ControlPlaneInitialized));
        (closed && self.is_new(cluster)).then_some(cluster)
    }

    fn of_machine(&self, machine: &'a Item) -> Option<Step<'a>> {
        let infrastructure = self.snapshot.referred(machine, Role::Infrastructure);
        if machine.is_deleting() {
            let part = infrastructure.filter(|it| it.is_deleting() && self.is_new(it));
            return part.map(Step::To);
        }
        // It is replaced, so that what is wrong with its parts is nobody's task.
        if unremediated(machine).is_some() {
            let set = blocked_set(self.snapshot, machine);
            let set = set.filter(|it| self.is_new(it) && !Self::is_held_back(machine));
            return set.map(Step::To);
        }
        let fails = |item: &&Item| cause(self.snapshot, item).is_some_and(|it| it.failing);
        if let Some(failing) = infrastructure.filter(fails).filter(|it| self.is_new(it)) {
            return Some(Step::To(failing));
        }
        let parts = [
            (Type::BootstrapConfigReady, Role::Bootstrap),
            (Type::InfrastructureReady, Role::Infrastructure),
        ];
        let mut waiting = parts.iter().filter(|(done, _)| !is_true(machine, *done));
        let part = waiting.find_map(|(_, role)| self.referred(machine, *role));
        part.or_else(|| self.unreached(machine).map(Step::To))
    }

    /// Cluster of a Machine, if unreached.
    fn unreached(&self, machine: &Item) -> Option<&'a Item> {
        let cluster = self.snapshot.cluster_of(machine)?;
        unreached(self.snapshot, cluster)?;
        self.is_new(cluster).then_some(cluster)
    }

    /// True if the conditions of the Machine have the obstacle to its replacement.
    fn is_held_back(machine: &Item) -> bool {
        remediation(machine).is_some_and(|it| it.failing)
    }

    /// [`Item`] that blocks the infrastructure or the bootstrap configuration of a Machine.
    fn of_part(&self, part: &'a Item, machine: &'a Item) -> Option<&'a Item> {
        let fails = cause(self.snapshot, part).is_some_and(|it| it.failing);
        if fails || part.is_deleting() {
            return None;
        }
        let bootstrap = self.snapshot.referred(machine, Role::Bootstrap);
        let is_bootstrap = bootstrap.is_some_and(|it| it.label() == part.label());
        // The infrastructure needs the bootstrap data first.
        let first =
            bootstrap.filter(|_| !is_bootstrap && !is_true(machine, Type::BootstrapConfigReady));
        self.pick(first.into_iter()).or_else(|| self.gate(machine))
    }
}

fn stands_alone(item: &Item) -> bool {
    let owners = item.object.owner_references();
    let creators = ["MachineDeployment", "MachineSet", "MachinePool"];
    !owners.iter().any(|owner| {
        creators.contains(&owner.kind.as_str()) || owner.kind.ends_with("ControlPlane")
    })
}

fn deleting(item: &Item) -> Finding {
    let condition = item.condition(Type::Deleting);
    let message = condition.map(|it| without_conditions(&summary(it.message)).to_owned());
    let since = item.object.metadata.deletion_timestamp.as_ref();
    let finalizers = item.object.finalizers();
    let held = || format!("its finalizers are {}", finalizers.join(", "));
    let detail = message.filter(|it| !it.is_empty());
    let reason = condition.map(|it| it.reason);
    let reason = reason.filter(|it| !it.is_empty() && *it != Reason::NotDeleting);
    Finding {
        since: since.map(|it| it.0.to_string()),
        detail: detail.or_else(|| (!finalizers.is_empty()).then(held)),
        reason: reason.unwrap_or(Reason::Deleting.as_str()).to_owned(),
        ..Finding::new(item.label(), "is being deleted")
    }
}

fn by_condition(item: &Item) -> Finding {
    let Some(found) = condition(item) else {
        return Finding {
            detail: Some("no controller has reconciled it".to_owned()),
            reason: "NoStatus".to_owned(),
            ..Finding::new(item.label(), "has no status")
        };
    };
    let obstacle = recovery(item)
        .or_else(|| remediation(item))
        .or_else(|| blocked(item));
    let failing = is_failure(found.reason) || obstacle.as_ref().is_some_and(|it| it.failing);
    let detail = match found.message {
        "" => found.reason.to_owned(),
        message => without_conditions(&summary(message)).to_owned(),
    };
    Finding {
        since: Some(found.since.to_owned()).filter(|it| !it.is_empty()),
        detail: Some(obstacle.map_or(detail, |it| it.text)),
        reason: found.reason.to_owned(),
        failing,
        ..Finding::new(
            item.label(),
            match failing {
                true => "fails",
                false => "is not ready",
            },
        )
    }
}

/// [`Condition`] with the most about the state of an unready object: no summary, and preferably a failing one.
pub(super) fn condition(item: &Item) -> Option<Condition<'_>> {
    if let Some(found) = lost_quorum(item).or_else(|| unremediated(item)) {
        return Some(found);
    }
    let order: &[Type] = match item.kind {
        Kind::Cluster => &[Type::InfrastructureReady, Type::ControlPlaneInitialized],
        Kind::Machine => &[
            Type::BootstrapConfigReady,
            Type::InfrastructureReady,
            Type::NodeReady,
            Type::NodeHealthy,
        ],
        _ => &[],
    };
    let ordered = order.iter().filter_map(|type_| item.condition(*type_));
    let is_summary = |found: &Condition<'_>| {
        [Type::Ready, Type::Available]
            .iter()
            .any(|it| found.type_ == *it)
    };
    let all: Vec<Condition<'_>> = item.conditions().collect();
    let bad = |found: &&Condition<'_>| good(found.type_) == "True" && found.status != "True";
    let special: Vec<Condition<'_>> = ordered
        .chain(all.iter().copied())
        .filter(|found| bad(&found) && !is_summary(found))
        .collect();
    let failing = special.iter().find(|found| is_failure(found.reason));
    let summary = all.iter().find(|found| bad(found) && is_summary(found));
    let summary = summary.or_else(|| all.iter().find(|found| is_summary(found)));
    failing.or_else(|| special.first()).or(summary).copied()
}
