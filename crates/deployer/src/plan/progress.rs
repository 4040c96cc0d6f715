//! Progress of each step, and the next actions.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::{Action, Observed, Plan, Verb, pods, readiness};
use crate::accounts::Written;
use crate::desired::{Graph, Step};
use crate::object::{ObjectKind, Reference};

/// State of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Waits for a needed step that is not ready.
    Waiting(String),
    /// Objects are to be written, or are not ready.
    Progressing(String),
    /// A task has failed: the step waits for a change.
    Failed(String),
    /// A needed name in RabbitMQ or Keystone belongs to another owner: the step waits for a change there.
    Conflict(String),
    /// Ready.
    Ready,
}

impl State {
    /// True if the steps after this one can start.
    pub fn is_done(&self) -> bool {
        matches!(self, Self::Ready)
    }

    /// Reason why the step is not ready; empty if ready.
    pub fn message(&self) -> &str {
        match self {
            Self::Ready => "",
            Self::Waiting(text)
            | Self::Progressing(text)
            | Self::Failed(text)
            | Self::Conflict(text) => text,
        }
    }
}

/// Progress of a cloud.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    /// [`State`] of each step by name, in the order of the steps.
    pub steps: Vec<(String, State)>,
    /// [`Action`]s to do now, in this order.
    pub actions: Vec<Action>,
    /// Steps whose stores of accounts can be read now.
    pub answering: Vec<String>,
    /// Objects to delete now, in this order: only when every step is ready.
    pub deletions: Vec<Reference>,
}

impl Progress {
    /// True if every step is ready.
    pub fn is_ready(&self) -> bool {
        self.steps.iter().all(|(_, state)| state.is_done())
    }
}

/// [`Progress`] of the steps of `graph` in a namespace with these objects and Pods, with the actions of `plan` to do
/// now. `written` has the state of stores of accounts, by the names of their steps.
pub fn progress(
    graph: &Graph,
    plan: &Plan,
    objects: &[Json],
    pods: &[Json],
    written: &BTreeMap<String, Written>,
) -> Progress {
    let observed = Observed::from_objects(objects);
    let mut states: BTreeMap<&str, State> = BTreeMap::new();
    let mut progress = Progress::default();
    let mut rolling = rolling(plan, &observed, graph);
    for (step, planned) in graph.steps.iter().zip(&plan.steps) {
        let needs = step.needs.iter();
        let missing = needs
            .filter(|need| !states.get(need.as_str()).is_some_and(State::is_done))
            .map(String::as_str);
        let missing: Vec<&str> = missing.collect();
        let restarts = restarts(&planned.actions);
        let state = if let (Some(_), []) = (&step.accounts, missing.as_slice()) {
            progress.answering.push(step.name.clone());
            accounts(written.get(&step.name))
        } else if planned.actions.is_empty() {
            at_rest(graph, step, &missing, &observed, pods)
        } else if !missing.is_empty() {
            State::Waiting(format!("waits for {}", missing.join(", ")))
        } else if let (true, Some(other)) = (restarts, &rolling) {
            State::Waiting(format!("waits until {other} has restarted"))
        } else {
            if restarts {
                rolling = Some(step.name.clone());
            }
            progress.actions.extend(planned.actions.iter().cloned());
            let count = planned.actions.len();
            let s = if count == 1 { "" } else { "s" };
            State::Progressing(format!("{count} object{s} to write"))
        };
        states.insert(&step.name, state);
    }
    let steps = graph.steps.iter().map(|step| {
        let state = states.remove(step.name.as_str());
        (step.name.clone(), state.unwrap_or(State::Ready))
    });
    progress.steps = steps.collect();
    if progress.is_ready() && progress.actions.is_empty() {
        progress.deletions.clone_from(&plan.deletions);
    }
    progress
}

/// [`State`] of a step whose accounts can be written.
fn accounts(written: Option<&Written>) -> State {
    match written {
        None => State::Progressing("its accounts have not been read yet".to_owned()),
        Some(Written::Not(why)) => State::Progressing(why.clone()),
        Some(Written::Conflict(what)) => State::Conflict(what.clone()),
        Some(Written::All) => State::Ready,
    }
}

/// [`State`] of a step without actions.
fn at_rest(
    graph: &Graph,
    step: &Step,
    missing: &[&str],
    observed: &Observed<'_>,
    pods: &[Json],
) -> State {
    if step.objects.is_empty() && !missing.is_empty() {
        return State::Waiting(format!("waits for {}", missing.join(", ")));
    }
    for object in &step.objects {
        let reference = object.reference();
        let Some(there) = observed.get(reference) else {
            continue;
        };
        let Some(problem) = readiness::problem(reference, there) else {
            continue;
        };
        let reason = pods::reason(&graph.uid, &step.name, reference, observed, pods);
        if reference.kind == ObjectKind::Job && readiness::has_failed(there) {
            let command = command(object.public());
            let reason = reason.unwrap_or_else(|| "its Pods are gone".to_owned());
            let again = format!(
                "kubectl -n {} delete job {}",
                namespace(there),
                reference.name
            );
            return State::Failed(format!(
                "{reference} has failed: `{command}`: {reason}. `{again}` runs it again"
            ));
        }
        return State::Progressing(match reason {
            Some(reason) => format!("{reference} {problem}: {reason}"),
            None => format!("{reference} {problem}"),
        });
    }
    State::Ready
}

fn namespace(object: &Json) -> &str {
    let namespace = object.pointer("/metadata/namespace");
    namespace.and_then(Json::as_str).unwrap_or_default()
}

/// Command of a task.
fn command(job: &Json) -> String {
    let words = job.pointer("/spec/template/spec/containers/0/command");
    let words = words.and_then(Json::as_array).into_iter().flatten();
    let words: Vec<&str> = words.filter_map(Json::as_str).collect();
    let words = match words.as_slice() {
        // A script around a command tells less than the command.
        ["/bin/sh", "-c", script, command @ ..] if script.contains("\"$0\" \"$@\"") => command,
        words => words,
    };
    let text = words.join(" ");
    // Scripts have many lines; the first tells which it is.
    let first = text.lines().next().unwrap_or_default();
    if first.len() < text.len() {
        format!("{first} …")
    } else {
        first.to_owned()
    }
}

/// True if these [`Action`]s restart a running program.
fn restarts(actions: &[Action]) -> bool {
    let mut actions = actions.iter();
    actions.any(|it| {
        matches!(
            it.object.kind,
            ObjectKind::Deployment | ObjectKind::StatefulSet
        ) && it.verb != Verb::Create
    })
}

/// Workload under replacement by its controller, without actions in the plan.
pub(super) fn rolling(plan: &Plan, observed: &Observed<'_>, graph: &Graph) -> Option<String> {
    let steps = graph.steps.iter().zip(&plan.steps);
    let quiet = steps.filter(|(_, planned)| planned.actions.is_empty());
    let mut objects = quiet.flat_map(|(step, _)| step.objects.iter().map(move |it| (step, it)));
    let found = objects.find(|(_, object)| {
        let there = observed.get(object.reference());
        there.is_some_and(|there| readiness::is_rolling(object.reference(), there))
    });
    found.map(|(step, _)| step.name.clone())
}
