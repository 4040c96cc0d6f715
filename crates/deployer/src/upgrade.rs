//! Upgrade of a running cloud from one release to the next.
//!
//! ```text
//!   Check     checks of the new release on the running databases      ┐
//!   Backup    the old cloud, if its parameters name a volume          │
//!   Infra     databases, message broker, OVN for the new release      │ back by image
//!   Expand    every schema, while old programs serve                  ┘
//!   Roll      the programs, one after the other                       ┐
//!   Migrate   data changed by new programs alone                      │ forward alone
//!   Contract  removal of parts for old programs only                  │
//!   Verify    same as a new cloud: pins lifted, all ready             ┘
//! ```
//!
//! A [`Phase`] is a [`Graph`] of steps like the graph of any cloud, with the same plan, progress and readiness.
//! [`standing()`] finds out from the record and from the images of the programs whether a cloud is being upgraded;
//! [`Stages::turn`] has the desired steps of a phase. Each phase is idempotent: after a kill the upgrade continues in
//! the same phase.

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
use crate::held::{Credentials, UID};
use crate::object::{Object, ObjectKind, Reference};
use crate::operation;
use crate::parameters::Parameters;
use crate::plan::{self, Plan, Progress};
use crate::release::Release;

/// The step of [`Phase::Backup`].
const BACKUP: &str = "upgrade-backup";

/// Part of an upgrade.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Waits until the cloud is ready, and each service's check of the new release passes.
    Check,
    /// Makes a backup, if the parameters name a volume.
    Backup,
    /// Updates databases, message broker and OVN for the new release.
    Infra,
    /// Expands the schemas by the additions of the new release.
    Expand,
    /// Replaces the programs.
    Roll,
    /// Migrates data with the new programs.
    Migrate,
    /// Removes parts of the schemas needed by the old release only.
    Contract,
    /// Makes the cloud equal to a new one of the new release.
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

    /// Name.
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

    /// [`Phase`] of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
    }

    /// Next phase.
    pub fn next(self) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|it| *it > self)
    }

    /// True while only checks of the new release run: in [`Self::Check`] and [`Self::Backup`].
    fn is_before(self) -> bool {
        self < Self::Infra
    }

    /// True while old programs can go on without loss, since no program of the new release has written yet.
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

/// Steps of an upgrade's tasks in each [`Phase`], by name, and the programs in the order of their replacement. `backup`
/// adds the step of a backup.
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

/// Part of a task of an upgrade.
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

/// Warnings of the new release's checks, kept in the Pods of a cloud with this uid: `nova-check: …`, one text each.
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

/// [`Graph`]s and tasks of an upgrade.
#[derive(Clone, Debug, PartialEq)]
pub struct Stages {
    to: Release,
    old: Graph,
    /// Steps of the new release while programs of both releases exist.
    mixed: Graph,
    new: Graph,
    tasks: Vec<(Phase, Step)>,
    policies: Vec<Object>,
}

/// Next actions of an upgrade.
#[derive(Clone, Debug, PartialEq)]
pub struct Turn {
    /// Current [`Phase`].
    pub phase: Phase,
    /// Steps of the phase.
    pub graph: Graph,
    /// [`Plan`] of the phase.
    pub plan: Plan,
    /// [`Progress`] of the phase. Nothing is deleted before the end of the upgrade.
    pub progress: Progress,
    /// True at the end of the upgrade.
    pub is_over: bool,
}

impl Stages {
    /// [`Stages`] of a cloud, from an older release to the release in its parameters.
    pub fn new(cloud: &Cloud, from: Release, held: &Credentials) -> Self {
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

    /// Steps with the wanted accounts, equal in every phase.
    pub fn accounts(&self) -> &Graph {
        &self.mixed
    }

    /// First unfinished [`Phase`], from a recorded one on, with its actions.
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

    /// [`Phase::Check`] alone, for a cloud that stays on its release.
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

    /// Steps of a phase, and true if all programs have been replaced.
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

    /// Configuration of both releases, since programs of both exist. Objects of the same name have the content of the
    /// serving release.
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

    /// Programs in their order, each in the release for this phase, and true if all have the new one.
    ///
    /// A program of the new release stays so, whatever the state, and a program missing during the replacement of
    /// others comes back in the new release only: an old compute service refuses to start when all records are new, and
    /// old programs cannot read records of new ones.
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

    /// Existing object of the program of a step.
    fn there<'a>(&self, step: &Step, objects: &'a [Json]) -> Option<&'a Json> {
        let wanted = step.objects.first()?.reference();
        let mut ours = objects
            .iter()
            .filter(|it| it["metadata"]["labels"][UID] == self.mixed.uid.as_str());
        ours.find(|it| Reference::from_object(it).as_ref() == Some(wanted))
    }

    fn is_new(&self, program: &Json) -> bool {
        Release::of_image(program) == Some(self.to)
    }
}

/// True if a [`Step`] is a program of a service.
fn rolls(step: &Step) -> bool {
    let kind = step.objects.first().map(|it| it.reference().kind);
    let is_program = matches!(
        kind,
        Some(ObjectKind::Deployment | ObjectKind::StatefulSet | ObjectKind::DaemonSet)
    );
    is_program && !is_infrastructure(step.part)
}

/// True if a [`Step`] is a task of a service in a new cloud.
fn is_task_of_service(step: &Step) -> bool {
    let kind = step.objects.first().map(|it| it.reference().kind);
    kind == Some(ObjectKind::Job) && !is_infrastructure(step.part)
}
