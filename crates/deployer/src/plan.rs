//! Plan from existing to desired objects: creations, changes and deletions, restarts with their reasons, and the waits
//! of each step.

mod cause;
mod difference;
mod digest;
mod pods;
mod progress;
mod readiness;
mod removal;
mod restart;
mod why;

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value as Json;

use crate::accounts::AccountPlan;
use crate::desired::{Graph, Step};
use crate::held::{PART_OF, UID};
use crate::object::{Object, ObjectKind, Reference};

pub use self::digest::digest;
pub use self::progress::{Progress, State, progress};
pub use self::removal::removal;
pub use self::why::{Cause, Reason, Reported, Situation, Why, why};

/// Field manager of every object of a cloud.
pub const FIELD_MANAGER: &str = "ferrostack-openstack";

/// Plan of the next actions.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Plan {
    /// [`PlannedStep`]s in order, including steps without actions.
    pub steps: Vec<PlannedStep>,
    /// Objects deleted afterwards, in this order.
    pub deletions: Vec<Reference>,
    /// Objects that are not desired and stay: data, and the configuration before the last change.
    pub kept: Vec<Reference>,
    /// Restarted workloads.
    pub restarts: Vec<Restart>,
    /// Problems that prevent the plan.
    pub conflicts: Vec<String>,
}

/// A step of a plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PlannedStep {
    /// Name.
    pub name: String,
    /// Steps that have to be ready before.
    pub needs: Vec<String>,
    /// Needed steps that are not ready and without actions in the plan, each with the reason. Empty for a step without
    /// actions.
    pub waits: Vec<String>,
    /// [`Action`]s, in this order.
    pub actions: Vec<Action>,
    /// Writes to RabbitMQ or Keystone; all possible writes while the content of the store is unknown.
    pub writes: Vec<String>,
    /// Reason why the content is unknown.
    pub unknown: Option<String>,
}

/// Action on an object.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Action {
    /// [`Verb`] of the action.
    pub verb: Verb,
    /// Object.
    pub object: Reference,
    /// Changed fields; empty for a new object.
    pub changes: Vec<Change>,
}

/// Type of an [`Action`] on an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verb {
    /// Creates the object.
    Create,
    /// Changes fields of the object.
    Change,
    /// Deletes and recreates the object, because a field cannot change.
    Replace,
}

/// Changed field. Fields of Secrets are masked.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// Path.
    pub path: String,
    /// Value now.
    pub from: Option<Json>,
    /// Value afterwards.
    pub to: Option<Json>,
}

/// Workload to be restarted.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Restart {
    /// Workload.
    pub workload: Reference,
    /// Reasons of the restart.
    pub causes: Vec<String>,
}

impl Plan {
    /// True if no action is known.
    pub fn is_empty(&self) -> bool {
        let is_quiet = |it: &PlannedStep| it.unknown.is_some() || it.writes.is_empty();
        self.deletions.is_empty()
            && self.actions().next().is_none()
            && self.steps.iter().all(is_quiet)
    }

    /// Takes over the content of a store of accounts: the writes of its step become known, unless the store could not
    /// be read. `store` is the name of the store for people.
    pub fn compare(&mut self, step: &str, store: &str, found: Result<&AccountPlan, &str>) {
        for planned in &mut self.steps {
            // A store that is known is in the order of the steps.
            if found.is_ok() {
                planned.waits.retain(|it| *it != readiness::unknown(step));
            }
            if planned.name != step {
                continue;
            }
            match found {
                Ok(plan) => {
                    let writes = plan.writes.iter();
                    let words = writes.map(|it| format!("{store}: {}", it.doing));
                    planned.writes = words.collect();
                    planned.unknown = None;
                }
                Err(why) => planned.unknown = Some(why.to_owned()),
            }
        }
        if let Ok(plan) = found {
            self.conflicts.extend(plan.conflicts.iter().cloned());
        }
    }

    /// [`Action`]s on objects, in order.
    pub fn actions(&self) -> impl Iterator<Item = &Action> {
        self.steps.iter().flat_map(|step| &step.actions)
    }
}

/// Objects in the namespace of the cloud: every object of an [`ObjectKind`].
pub(crate) struct Observed<'a> {
    objects: BTreeMap<Reference, &'a Json>,
}

impl<'a> Observed<'a> {
    fn from_objects(objects: &'a [Json]) -> Self {
        let objects = objects
            .iter()
            .filter_map(|it| Some((Reference::from_object(it)?, it)));
        Self {
            objects: objects.collect(),
        }
    }

    fn get(&self, reference: &Reference) -> Option<&'a Json> {
        self.objects.get(reference).copied()
    }
}

/// [`Plan`] from the objects of the namespace to the desired ones.
pub fn plan(graph: &Graph, objects: &[Json]) -> Plan {
    let observed = Observed::from_objects(objects);
    let mut plan = Plan {
        conflicts: graph.problems.clone(),
        ..Plan::default()
    };
    plan.conflicts.extend(other_clouds(graph, &observed));
    let mut foreign = Vec::new();
    for step in &graph.steps {
        let mut planned = PlannedStep {
            name: step.name.clone(),
            needs: step.needs.clone(),
            writes: step.writes.clone(),
            unknown: step
                .accounts
                .is_some()
                .then(|| "it was not asked".to_owned()),
            ..PlannedStep::default()
        };
        for object in &step.objects {
            let reference = object.reference();
            match observed.get(reference) {
                None => planned.actions.push(Action {
                    verb: Verb::Create,
                    object: reference.clone(),
                    changes: vec![],
                }),
                Some(there) if label(there, UID) != Some(&graph.uid) => {
                    // Those of another cloud are one sentence.
                    foreign.extend(label(there, UID).is_none().then_some(reference));
                }
                Some(there) => planned.actions.extend(changed(object, there)),
            }
        }
        plan.steps.push(planned);
    }
    plan.conflicts.extend(not_ours(&foreign));
    readiness::waits(graph, &mut plan, &observed);
    plan.restarts = restart::restarts(graph, &plan, &observed);
    (plan.deletions, plan.kept) = removal::removed(graph, &observed);
    plan
}

/// Objects of other owners with names of the cloud's objects.
fn not_ours(foreign: &[&Reference]) -> Option<String> {
    let (first, others) = foreign.split_first()?;
    let and = match others.len() {
        0 => String::new(),
        1 => " (and one more)".to_owned(),
        count => format!(" (and {count} more)"),
    };
    Some(format!(
        "{first}{and} is there and is not of this cloud: it has no label {UID} with its uid"
    ))
}

/// Every other cloud with objects in the namespace.
fn other_clouds(graph: &Graph, observed: &Observed<'_>) -> Vec<String> {
    let mut found: BTreeMap<&str, String> = BTreeMap::new();
    for (reference, object) in &observed.objects {
        if let Some(uid) = label(object, UID).filter(|uid| *uid != graph.uid) {
            let name = label(object, PART_OF).unwrap_or("another one");
            found.entry(uid).or_insert_with(|| {
                format!("the namespace holds objects of cloud {name} with uid {uid}, such as {reference}")
            });
        }
    }
    found.into_values().collect()
}

/// True if the objects of a [`Step`] exist as desired, and are ready.
pub(crate) fn is_settled(step: &Step, objects: &[Json]) -> bool {
    let observed = Observed::from_objects(objects);
    step.objects.iter().all(|object| {
        let there = observed.get(object.reference());
        there.is_some_and(|there| {
            changed(object, there).is_none()
                && readiness::problem(object.reference(), there).is_none()
        })
    })
}

/// [`Action`] on an existing object of this cloud.
fn changed(object: &Object, there: &Json) -> Option<Action> {
    let reference = object.reference();
    // A Job is named by its content, and the server rejects every change of it.
    if reference.kind == ObjectKind::Job {
        return None;
    }
    let exposed;
    let desired = match reference.kind {
        ObjectKind::Secret => {
            exposed = object.exposed();
            &exposed
        }
        _ => object.public(),
    };
    let changes = difference::changes(desired, there);
    if changes.is_empty() {
        return None;
    }
    let fixed = changes
        .iter()
        .any(|it| is_fixed(reference.kind, there, &it.path));
    let verb = if fixed { Verb::Replace } else { Verb::Change };
    let changes = match reference.kind {
        ObjectKind::Secret => changes.into_iter().map(masked).collect(),
        _ => changes,
    };
    Some(Action {
        verb,
        object: reference.clone(),
        changes,
    })
}

/// True if the API server rejects a change of the field.
fn is_fixed(kind: ObjectKind, there: &Json, path: &str) -> bool {
    let below = |parts: &[&str]| parts.iter().any(|part| path.starts_with(part));
    match kind {
        ObjectKind::ConfigMap | ObjectKind::Secret => {
            there["immutable"] == true && below(&["data", "immutable"]) || path == "type"
        }
        ObjectKind::StatefulSet => !below(&[
            "metadata",
            "spec.template",
            "spec.replicas",
            "spec.updateStrategy",
            "spec.revisionHistoryLimit",
        ]),
        ObjectKind::Deployment | ObjectKind::DaemonSet => below(&["spec.selector"]),
        ObjectKind::Service => path == "spec.clusterIP",
        // Replacing it would lose its data; the server's refusal tells what is possible.
        ObjectKind::NetworkPolicy | ObjectKind::PersistentVolumeClaim | ObjectKind::Job => false,
    }
}

fn masked(change: Change) -> Change {
    if !change.path.starts_with("data") {
        return change;
    }
    let mask = |value: Option<Json>| value.map(|_| "********".into());
    Change {
        from: mask(change.from),
        to: mask(change.to),
        ..change
    }
}

fn label<'a>(object: &'a Json, name: &str) -> Option<&'a str> {
    object.get("metadata")?.get("labels")?.get(name)?.as_str()
}

#[cfg(test)]
mod tests;
