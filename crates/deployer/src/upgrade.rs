//! From one release to the next, on a cloud that runs.
//!
//! ```text
//!   Check     the new release judges the running databases            ┐
//!   Backup    the cloud as it was, if its parameters name a volume    │
//!   Infra     databases, message broker, OVN: what the new one needs  │ back by image
//!   Expand    every schema, while old programs serve                  ┘
//!   Roll      the programs, one after the other                       ┐
//!   Migrate   data that only new programs may change                  │ forward alone
//!   Contract  what only old programs needed                           │
//!   Verify    the cloud as it is made new: pins lifted, all ready     ┘
//! ```
//!
//! A phase is a graph of steps like that of any cloud, so plan, progress and readiness are those of every change. [`standing`] tells from
//! what was recorded and from the images of the programs whether a cloud is on the way; [`Stages::turn`] what is desired in a
//! phase. Each phase is idempotent: whoever is killed in one goes on there.

mod commands;
mod options;
mod standing;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::Value as Json;

pub use self::options::{Renamed, renamed, unknown_before};
pub use self::standing::{Recorded, Standing, standing};
use crate::accounts::Written;
use crate::cloud::Cloud;
use crate::desired::{CONFIGURATION, Graph, ROLL, Step, desired, is_infrastructure, ordered};
use crate::held::{Held, UID};
use crate::object::{Object, ObjectKind, Reference};
use crate::operation;
use crate::parameters::Parameters;
use crate::plan::{self, Plan, Progress};
use crate::release::Release;

/// The step of [`Phase::Backup`].
const BACKUP: &str = "upgrade-backup";

/// A part of an upgrade.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// The cloud is ready, and each service's check of the new release passes.
    Check,
    /// A backup is made, if the parameters name a volume.
    Backup,
    /// Databases, message broker and OVN are as the new release needs them.
    Infra,
    /// The schemas have what the new release adds.
    Expand,
    /// The programs are replaced.
    Roll,
    /// Data are migrated by the new programs.
    Migrate,
    /// The schemas lose what only the old release needed.
    Contract,
    /// Everything is as in a new cloud of the new release.
    Verify,
}

impl Phase {
    /// Every phase, in order.
    pub const ALL: [Self; 8] = [
        Self::Check,
        Self::Backup,
        Self::Infra,
        Self::Expand,
        Self::Roll,
        Self::Migrate,
        Self::Contract,
        Self::Verify,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Check => "Check",
            Self::Backup => "Backup",
            Self::Infra => "Infra",
            Self::Expand => "Expand",
            Self::Roll => "Roll",
            Self::Migrate => "Migrate",
            Self::Contract => "Contract",
            Self::Verify => "Verify",
        }
    }

    /// The phase of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
    }

    /// The phase after it.
    pub fn next(self) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|it| *it > self)
    }

    /// True while nothing of the new release is there but its checks: in [`Self::Check`] and [`Self::Backup`].
    fn is_before(self) -> bool {
        self < Self::Infra
    }

    /// True while old programs can go on without loss: nothing of the new release has written yet.
    pub fn leads_back(self) -> bool {
        self < Self::Roll
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// True if a step of this name is a task of an upgrade.
fn is_task(name: &str) -> bool {
    if name == BACKUP {
        return true;
    }
    let mut releases = Release::ALL.into_iter();
    releases.any(|it| commands::all(it).iter().any(|command| command.name == name))
}

/// The steps of an upgrade's tasks in each phase, by name, and the programs in the order in which they are replaced. `backup`: whether
/// one is made.
pub fn outline(from: Release, backup: bool) -> Vec<(Phase, Vec<&'static str>)> {
    let of = |phase| {
        let commands = commands::all(from).iter();
        commands
            .filter(move |it| it.phase == phase)
            .map(|it| it.name)
    };
    let names = |phase| match phase {
        Phase::Roll => ROLL.to_vec(),
        Phase::Backup if backup => vec![BACKUP],
        phase => of(phase).collect(),
    };
    Phase::ALL.map(|phase| (phase, names(phase))).into()
}

/// The part of a task of an upgrade.
pub fn part(step: &str) -> Option<&'static str> {
    if step == BACKUP {
        return Some(operation::PART);
    }
    let mut releases = Release::ALL.into_iter();
    releases.find_map(|release| {
        let mut all = commands::all(release).iter();
        all.find(|it| it.name == step).map(|it| it.part)
    })
}

/// Warnings of the checks of the new release, as the Pods of a cloud with this uid have kept it: `nova-check: …`, one text each.
pub fn warnings(uid: &str, pods: &[Json]) -> Vec<String> {
    let mut found = BTreeSet::new();
    for pod in pods {
        let labels = &pod["metadata"]["labels"];
        let name = labels["app.kubernetes.io/name"]
            .as_str()
            .unwrap_or_default();
        if labels[UID] != uid || !is_task(name) {
            continue;
        }
        let ended = &pod["status"]["containerStatuses"][0]["state"]["terminated"];
        let text = ended["message"].as_str().unwrap_or_default();
        if ended["exitCode"] == 0 && !text.trim().is_empty() {
            let warnings = commands::warnings(text).into_iter();
            found.extend(warnings.map(|it| format!("{name}: {it}")));
        }
    }
    found.into_iter().collect()
}

/// Graphs and tasks of an upgrade.
#[derive(Clone, Debug, PartialEq)]
pub struct Stages {
    to: Release,
    old: Graph,
    /// The new release while programs of both are there.
    mixed: Graph,
    new: Graph,
    tasks: Vec<(Phase, Step)>,
    policies: Vec<Object>,
}

/// Next actions of an upgrade.
#[derive(Clone, Debug, PartialEq)]
pub struct Turn {
    /// The phase.
    pub phase: Phase,
    /// The steps.
    pub graph: Graph,
    /// The plan.
    pub plan: Plan,
    /// How far it is. Nothing is deleted before the end.
    pub progress: Progress,
    /// True if the upgrade is over.
    pub is_over: bool,
}

impl Stages {
    /// The stages of a cloud, whose parameters name the new release, from an older one.
    pub fn of(cloud: &Cloud, from: Release, held: &Held) -> Self {
        let with = |release, upgrading| Cloud {
            parameters: Parameters {
                release,
                upgrading,
                ..cloud.parameters.clone()
            },
            ..cloud.clone()
        };
        let to = cloud.parameters.release;
        let mixed = with(to, true);
        let (mut tasks, policies) = commands::steps(&mixed, held, from);
        let before = with(from, false);
        let backup = operation::before_upgrade(&before, held, BACKUP, to);
        tasks.extend(backup.map(|it| (Phase::Backup, it)));
        Self {
            to,
            old: desired(&before, held),
            mixed: desired(&mixed, held),
            new: desired(cloud, held),
            tasks,
            policies,
        }
    }

    /// The steps whose accounts are wanted, which are the same in every phase.
    pub fn accounts(&self) -> &Graph {
        &self.mixed
    }

    /// The first phase, from a recorded one on, that is not over, and what is done in it.
    pub fn turn(
        &self,
        recorded: Phase,
        objects: &[Json],
        pods: &[Json],
        written: &BTreeMap<String, Written>,
    ) -> Turn {
        let mut phase = recorded;
        loop {
            let (graph, is_rolled) = self.graph(phase, objects);
            let plan = plan::plan(&graph, objects);
            let mut progress = plan::progress(&graph, &plan, objects, pods, written);
            let is_done = is_rolled && progress.is_ready() && progress.actions.is_empty();
            let next = phase.next();
            if phase != Phase::Verify {
                progress.deletions.clear();
            }
            match next.filter(|_| is_done && plan.conflicts.is_empty()) {
                Some(next) => phase = next,
                None => {
                    return Turn {
                        phase,
                        is_over: is_done && plan.conflicts.is_empty(),
                        graph,
                        plan,
                        progress,
                    };
                }
            }
        }
    }

    /// The phase Check alone, for a cloud that stays on its release.
    pub fn check(
        &self,
        objects: &[Json],
        pods: &[Json],
        written: &BTreeMap<String, Written>,
    ) -> Turn {
        let (graph, _) = self.graph(Phase::Check, objects);
        let plan = plan::plan(&graph, objects);
        let mut progress = plan::progress(&graph, &plan, objects, pods, written);
        let is_done = progress.is_ready() && progress.actions.is_empty();
        progress.deletions.clear();
        Turn {
            phase: Phase::Check,
            is_over: is_done && plan.conflicts.is_empty(),
            graph,
            plan,
            progress,
        }
    }

    /// The steps of a phase, and whether every program has had its turn.
    fn graph(&self, phase: Phase, objects: &[Json]) -> (Graph, bool) {
        if phase == Phase::Verify {
            return (self.new.clone(), true);
        }
        let base = match phase {
            phase if phase.is_before() => &self.old,
            _ => &self.mixed,
        };
        let mut steps = Vec::new();
        for step in &base.steps {
            if step.name == CONFIGURATION {
                steps.push(self.configuration(phase));
            } else if !rolls(step) && (phase.is_before() || !is_task_of_service(step)) {
                steps.push(step.clone());
            }
        }
        let tasks = self.tasks.iter().filter(|(it, _)| *it == phase);
        steps.extend(tasks.map(|(_, step)| step.clone()));
        let (programs, is_rolled) = self.programs(phase, objects);
        steps.extend(programs);
        let names: BTreeSet<String> = steps.iter().map(|it| it.name.clone()).collect();
        for step in &mut steps {
            step.needs.retain(|need| names.contains(need));
        }
        let mut problems = base.problems.clone();
        problems.extend(self.new.problems.iter().cloned());
        problems.dedup();
        let graph = Graph {
            uid: base.uid.clone(),
            problems,
            steps: ordered(steps),
        };
        (graph, is_rolled)
    }

    /// Configuration of both releases: programs of both are there. What both have is that of the release that serves.
    fn configuration(&self, phase: Phase) -> Step {
        let (first, last) = match phase {
            phase if phase.is_before() => (&self.mixed, &self.old),
            _ => (&self.old, &self.mixed),
        };
        let of = |graph: &Graph| {
            graph
                .steps
                .iter()
                .find(|it| it.name == CONFIGURATION)
                .cloned()
        };
        let mut step = of(last).unwrap_or_default();
        let both = [of(first), of(last)].into_iter().flatten();
        let all = both
            .flat_map(|it| it.objects)
            .chain(self.policies.iter().cloned());
        let all: BTreeMap<Reference, Object> = all.map(|it| (it.reference().clone(), it)).collect();
        step.objects = all.into_values().collect();
        step
    }

    /// The programs in their order, each of the release that it has in this phase, and whether all are of the new one.
    ///
    /// A program that is of the new release stays there, whatever becomes of it, and one that is gone while others are replaced comes
    /// back as a new one alone: an old compute service refuses to start when all records say new, and old programs do not
    /// read what new ones have written.
    fn programs(&self, phase: Phase, objects: &[Json]) -> (Vec<Step>, bool) {
        let (mut steps, mut is_turn_over) = (Vec::new(), true);
        let has_begun = |it: &Step| self.there(it, objects).is_some_and(|it| self.is_new(it));
        let any_new = self.mixed.steps.iter().any(|it| rolls(it) && has_begun(it));
        for name in ROLL {
            let find = |graph: &Graph| graph.steps.iter().find(|it| it.name == name).cloned();
            let (old, Some(new)) = (find(&self.old), find(&self.mixed)) else {
                continue;
            };
            let there = self.there(&new, objects);
            let stays_new = there.is_some_and(|it| self.is_new(it));
            let takes_turn = phase > Phase::Roll || phase == Phase::Roll && is_turn_over;
            if takes_turn || stays_new {
                is_turn_over &= phase != Phase::Roll || plan::is_settled(&new, objects);
                steps.push(new);
            } else if there.is_some() || phase < Phase::Roll && !any_new {
                is_turn_over = false;
                steps.extend(old);
            } else {
                is_turn_over = false;
            }
        }
        (steps, phase != Phase::Roll || is_turn_over)
    }

    /// The program of a step, as it is there.
    fn there<'a>(&self, step: &Step, objects: &'a [Json]) -> Option<&'a Json> {
        let wanted = step.objects.first()?.reference();
        let mut ours = objects
            .iter()
            .filter(|it| it["metadata"]["labels"][UID] == self.mixed.uid.as_str());
        ours.find(|it| Reference::of(it).as_ref() == Some(wanted))
    }

    fn is_new(&self, program: &Json) -> bool {
        Release::of_image(program) == Some(self.to)
    }
}

/// True if a step is a program of a service.
fn rolls(step: &Step) -> bool {
    let kind = step.objects.first().map(|it| it.reference().kind);
    let is_program = matches!(
        kind,
        Some(ObjectKind::Deployment | ObjectKind::StatefulSet | ObjectKind::DaemonSet)
    );
    is_program && !is_infrastructure(step.part)
}

/// True if a step is a task of a service, as a new cloud has it.
fn is_task_of_service(step: &Step) -> bool {
    let kind = step.objects.first().map(|it| it.reference().kind);
    kind == Some(ObjectKind::Job) && !is_infrastructure(step.part)
}
