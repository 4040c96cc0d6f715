//! How far each step is, and what is to be done now.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::{Action, Observed, Plan, Verb, pods, readiness};
use crate::accounts::Written;
use crate::desired::{Graph, Step};
use crate::object::{ObjectKind, Reference};

/// How far a step is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// A step that it needs is not ready.
    Waiting(String),
    /// Its objects are to be written, or are not ready.
    Progressing(String),
    /// A task of it has failed: it does not go on without a change.
    Failed(String),
    /// Something of another has a name that it needs in RabbitMQ or Keystone: it does not go on without a change there.
    Conflict(String),
    /// It is ready.
    Ready,
}

impl State {
    /// True if the steps after it can start.
    pub fn is_done(&self) -> bool {
        matches!(self, Self::Ready)
    }

    /// The reason why it is not ready; empty if it is.
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

/// How far a cloud is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    /// The state of each step by its name, in the order of the steps.
    pub steps: Vec<(String, State)>,
    /// What is to be done now, in this order.
    pub actions: Vec<Action>,
    /// The steps whose stores of accounts can be asked now.
    pub answering: Vec<String>,
    /// What is to be deleted now, in this order: only when every step is ready.
    pub deletions: Vec<Reference>,
}

impl Progress {
    /// True if every step is ready.
    pub fn is_ready(&self) -> bool {
        self.steps.iter().all(|(_, state)| state.is_done())
    }
}

/// How far the steps of `graph` are in a namespace with these objects and Pods, and what of `plan` is to be done now.
/// `written`: what is known of stores of accounts, by the names of their steps.
pub fn progress(
    graph: &Graph,
    plan: &Plan,
    objects: &[Json],
    pods: &[Json],
    written: &BTreeMap<String, Written>,
) -> Progress {
    let observed = Observed::of(objects);
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

/// The state of a step whose accounts can be written.
fn accounts(written: Option<&Written>) -> State {
    match written {
        None => State::Progressing("its accounts have not been read yet".to_owned()),
        Some(Written::Not(why)) => State::Progressing(why.clone()),
        Some(Written::Conflict(what)) => State::Conflict(what.clone()),
        Some(Written::All) => State::Ready,
    }
}

/// The state of a step for which nothing is to be done.
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

/// The command of a task.
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

/// True if these actions restart a program that runs.
fn restarts(actions: &[Action]) -> bool {
    let mut actions = actions.iter();
    actions.any(|it| {
        matches!(
            it.object.kind,
            ObjectKind::Deployment | ObjectKind::StatefulSet
        ) && it.verb != Verb::Create
    })
}

/// A workload that is being replaced by its controller, for which nothing is to be done.
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
