//! First cause why a cloud, a step or an object is not ready, in words.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value as Json;

use super::{Plan, Progress, State, cause, label};
use crate::accounts::Written;
use crate::desired::{Graph, Step};
use crate::object::Reference;

/// Report of the controller in the status of a cloud.
#[derive(Clone, Debug, Default)]
pub struct Reported {
    /// Reason why the controller does nothing at all: the cloud is paused, or its parameters are rejected.
    pub stopped: Option<String>,
    /// Write rejected by the API server.
    pub rejection: Option<String>,
    /// Knowledge about the stores of accounts, by step.
    pub accounts: BTreeMap<String, Written>,
}

/// Known facts of a cloud.
#[derive(Clone, Copy, Debug)]
pub struct Situation<'a> {
    /// Desired steps.
    pub graph: &'a Graph,
    /// [`Plan`] for the desired steps.
    pub plan: &'a Plan,
    /// Every object in the namespace of a kind in clouds.
    pub objects: &'a [Json],
    /// Pods in the namespace.
    pub pods: &'a [Json],
    /// Nodes of the cluster.
    pub nodes: &'a [Json],
    /// Names of the storage classes of the cluster; `None` without permission to list them.
    pub classes: Option<&'a [String]>,
    /// Report of the controller.
    pub reported: &'a Reported,
}

/// Reasons why an object is not ready.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Why {
    /// Object of the question: the name of a step, a node, or `the cloud`.
    pub object: String,
    /// First [`Cause`]s: none if ready, a single one for a step.
    pub causes: Vec<Cause>,
}

/// First cause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cause {
    /// [`Reason`] of the cause.
    pub reason: Reason,
    /// Object of the problem: `nova-api`, `task nova-schema-3f2a`, `node node-0`.
    pub of: String,
    /// Problem, such as `fails`.
    pub problem: String,
    /// Start of the problem, RFC 3339.
    pub since: Option<String>,
    /// Details: last lines of a log, a missing label.
    pub detail: Option<String>,
    /// Next step for the user.
    pub advice: Option<String>,
    /// Steps waiting for the object, in their order.
    pub waiting: Vec<String>,
}

/// Type of a [`Cause`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Reason {
    /// The controller leaves the cloud as is, or rejects the parameters.
    Stopped,
    /// An object of another owner has a wanted name.
    Conflict,
    /// A node does not answer.
    NodeGone,
    /// No node is suitable.
    NoNode,
    /// An image is on no node.
    ImageMissing,
    /// A Secret, ConfigMap or volume of a Pod is missing.
    Incomplete,
    /// A task fails.
    TaskFailed,
    /// A program ends again and again.
    Crashing,
    /// Accounts in RabbitMQ or Keystone cannot be written.
    AccountsNotWritten,
    /// Objects are not written.
    NotWritten,
    /// The object starts, works or restarts: no problem.
    Busy,
}

/// First cause of the whole cloud, or of an object in the cloud.
///
/// # Errors
/// Message for an unknown object, with the names of the existing ones.
pub fn why(situation: &Situation<'_>, object: Option<&str>) -> Result<Why, String> {
    let progress = super::progress(
        situation.graph,
        situation.plan,
        situation.objects,
        situation.pods,
        &situation.reported.accounts,
    );
    if let Some(node) = object.and_then(|name| node(situation, name)) {
        let name = super::pods::text(node, "/metadata/name");
        return Ok(Why {
            object: format!("node {name}"),
            causes: Vec::from_iter(cause::node(node)),
        });
    }
    let asked = match object {
        None => None,
        Some(name) => Some(match service(situation, name) {
            of_service if of_service.is_empty() => {
                let step = step(situation, name)?;
                (step.name.as_str(), vec![step])
            }
            of_service => (name, of_service),
        }),
    };
    let mut roots = Roots {
        situation,
        progress: &progress,
        found: BTreeMap::new(),
    };
    let mut causes = roots.causes();
    if let Some((_, steps)) = &asked {
        let concerns = |it: &Cause| steps.iter().any(|step| it.waiting.contains(&step.name));
        causes.retain(concerns);
        // The first one that somebody has to do something about.
        causes.truncate(1);
    }
    Ok(Why {
        object: asked.map_or("the cloud", |(name, _)| name).to_owned(),
        causes,
    })
}

/// Causes of the unready steps.
struct Roots<'a> {
    situation: &'a Situation<'a>,
    progress: &'a Progress,
    /// [`Cause`] of each unready step without unready needs.
    found: BTreeMap<String, Cause>,
}

impl Roots<'_> {
    /// Every first [`Cause`], the worst ones first.
    fn causes(&mut self) -> Vec<Cause> {
        let situation = self.situation;
        let stopped = situation.reported.stopped.iter();
        let stopped = stopped.map(|why| (Reason::Stopped, why));
        let conflicts = situation.plan.conflicts.iter();
        let conflicts = conflicts.map(|why| (Reason::Conflict, why));
        let mut all: Vec<Cause> = stopped.chain(conflicts).map(whole).collect();
        let names = || situation.graph.steps.iter().map(|it| it.name.clone());
        for cause in &mut all {
            cause.waiting = names().collect();
        }
        for step in &situation.graph.steps {
            if self.state(&step.name).is_none_or(State::is_done) {
                continue;
            }
            for root in self.roots(step) {
                let entry = self.found.entry(root.name.clone());
                let found = entry.or_insert_with(|| cause::of(situation, self.progress, root));
                found.waiting.push(step.name.clone());
            }
        }
        for mut cause in std::mem::take(&mut self.found).into_values() {
            // A node that is gone is one cause, however many programs were on it.
            match all.iter_mut().find(|it| it.is_same(&cause)) {
                Some(known) => {
                    known.waiting.append(&mut cause.waiting);
                    known.waiting.sort();
                    known.waiting.dedup();
                }
                None => all.push(cause),
            }
        }
        let order: BTreeMap<String, usize> = names().zip(0..).collect();
        for cause in &mut all {
            cause.waiting.sort_by_key(|name| order.get(name).copied());
        }
        let place = |it: &Cause| it.waiting.first().and_then(|name| order.get(name)).copied();
        all.sort_by_key(|it| (it.reason, place(it)));
        all
    }

    fn state(&self, name: &str) -> Option<&State> {
        let mut states = self.progress.steps.iter();
        states.find(|(it, _)| it == name).map(|(_, state)| state)
    }

    /// First unready steps in the chain of needs of a step: the step itself without unready needs.
    fn roots<'a>(&self, step: &'a Step) -> Vec<&'a Step>
    where
        Self: 'a,
    {
        let missing = step.needs.iter().filter_map(|need| {
            let done = self.state(need).is_some_and(State::is_done);
            let mut steps = self.situation.graph.steps.iter();
            (!done).then(|| steps.find(|it| it.name == *need))?
        });
        let missing: Vec<&Step> = missing.collect();
        let mut roots: Vec<&Step> = missing.iter().flat_map(|it| self.roots(it)).collect();
        roots.sort_by(|a, b| a.name.cmp(&b.name));
        roots.dedup_by(|a, b| a.name == b.name);
        match roots.as_slice() {
            [] => vec![step],
            _ => roots,
        }
    }
}

impl Cause {
    fn is_same(&self, other: &Self) -> bool {
        (self.reason, &self.of, &self.problem, &self.detail)
            == (other.reason, &other.of, &other.problem, &other.detail)
    }
}

fn whole((reason, why): (Reason, &String)) -> Cause {
    Cause {
        reason,
        of: "the cloud".to_owned(),
        problem: "is left as it is".to_owned(),
        since: None,
        detail: Some(why.clone()),
        advice: None,
        waiting: vec![],
    }
}

/// Node of a name, optionally preceded by its kind.
fn node<'a>(situation: &Situation<'a>, name: &str) -> Option<&'a Json> {
    let name = name.strip_prefix("node/").unwrap_or(name);
    let mut nodes = situation.nodes.iter();
    nodes.find(|it| it["metadata"]["name"] == name)
}

/// The steps of a service, such as `nova`, whose name no step has.
fn service<'a>(situation: &Situation<'a>, name: &str) -> Vec<&'a Step> {
    let steps = &situation.graph.steps;
    if steps.iter().any(|it| it.name == name) {
        return Vec::new();
    }
    let rest = |it: &Step| {
        it.name
            .strip_prefix(name)
            .is_some_and(|it| it.starts_with('-'))
    };
    steps.iter().filter(|it| rest(it)).collect()
}

/// [`Step`] by its name, the name of an object, or the name of a Pod, with or without the kind before the name.
fn step<'a>(situation: &Situation<'a>, asked: &str) -> Result<&'a Step, String> {
    let (kind, name) = match asked.split_once(['/', ' ']) {
        Some((kind, name)) => (Some(kind.to_lowercase()), name),
        None => (None, asked),
    };
    let steps = &situation.graph.steps;
    let of_kind = |it: &Reference| {
        let lower = it.kind.name().to_lowercase();
        kind.as_ref()
            .is_none_or(|kind| *kind == lower || *kind == format!("{lower}s"))
    };
    let of_object = |step: &&Step| {
        let mut objects = step.objects.iter().map(|it| it.reference());
        objects.any(|it| it.name == name && of_kind(it))
    };
    let is_pod = kind
        .as_deref()
        .is_none_or(|it| matches!(it, "pod" | "pods"));
    let mut pods = situation.pods.iter().filter(|_| is_pod);
    let pod = pods.find(|it| it["metadata"]["name"] == name);
    let program = pod.and_then(|pod| label(pod, super::pods::PROGRAM));
    let named = steps.iter().find(|it| kind.is_none() && it.name == name);
    let found = named.or_else(|| steps.iter().find(of_object));
    let found = found.or_else(|| steps.iter().find(|it| Some(it.name.as_str()) == program));
    found.ok_or_else(|| {
        let names: Vec<&str> = steps.iter().map(|it| it.name.as_str()).collect();
        let near = names.iter().max_by(|a, b| {
            let alike = |it: &str| strsim::jaro_winkler(it, name);
            alike(a).total_cmp(&alike(b))
        });
        let near = near.map(|it| format!("did you mean {it}? ")).unwrap_or_default();
        format!(
            "this cloud has no object {asked}: {near}Its steps are {}; objects, Pods and nodes may be asked about, too",
            names.join(", ")
        )
    })
}

#[cfg(test)]
mod tests;
