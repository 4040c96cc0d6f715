//! Cause why a step without unready needs is not ready.

use serde_json::Value as Json;

use super::pods::{self, Trouble, text};
use super::why::{Cause, Reason, Situation};
use super::{Observed, Progress, State, progress, readiness};
use crate::desired::{Graph, Step};
use crate::object::{ObjectKind, Reference};

/// [`Cause`] of a step whose needs are all ready.
pub(super) fn of(situation: &Situation<'_>, progress: &Progress, step: &Step) -> Cause {
    let mut states = progress.steps.iter();
    let state = states.find(|(name, _)| *name == step.name);
    let message = state.map_or("", |(_, state)| state.message());
    let observed = Observed::from_objects(situation.objects);
    let planned = situation.plan.steps.iter().find(|it| it.name == step.name);
    let actions = planned.map_or(0, |it| it.actions.len());
    if step.accounts.is_some() {
        let conflict = matches!(state, Some((_, State::Conflict(_))));
        return accounts(step, message, conflict);
    }
    if let Some(other) = progress::rolling(situation.plan, &observed, situation.graph)
        && actions > 0
        && other != step.name
        && let Some(other) = situation.graph.steps.iter().find(|it| it.name == other)
    {
        return of_objects(situation, &observed, other);
    }
    if actions > 0 {
        return unwritten(situation, step, actions);
    }
    of_objects(situation, &observed, step)
}

/// [`Cause`] of a node that does not answer; `None` for a healthy node.
pub(super) fn node(node: &Json) -> Option<Cause> {
    let ready = pods::condition(node, "Ready");
    if ready.is_some_and(|it| it["status"] == "True") {
        return None;
    }
    let message = ready.map(|it| text(it, "/message")).unwrap_or_default();
    let name = text(node, "/metadata/name");
    let mut cause = Cause::new(Reason::NodeGone, format!("node {name}"), "does not answer");
    cause.since = ready.and_then(|it| it["lastTransitionTime"].as_str().map(str::to_owned));
    cause.detail = (!message.is_empty()).then(|| message.to_owned());
    cause.advice = Some("is it on, and does its kubelet run?".to_owned());
    Some(cause)
}

impl Cause {
    fn new(reason: Reason, of: impl Into<String>, problem: &str) -> Self {
        Self {
            reason,
            of: of.into(),
            problem: problem.to_owned(),
            since: None,
            detail: None,
            advice: None,
            waiting: vec![],
        }
    }
}

fn accounts(step: &Step, message: &str, conflict: bool) -> Cause {
    let reason = match conflict {
        true => Reason::Conflict,
        false => Reason::AccountsNotWritten,
    };
    let mut cause = Cause::new(reason, &step.name, "cannot be written");
    cause.detail = Some(message.to_owned());
    cause
}

fn unwritten(situation: &Situation<'_>, step: &Step, count: usize) -> Cause {
    let s = if count == 1 { "" } else { "s" };
    let mut cause = Cause::new(
        Reason::NotWritten,
        &step.name,
        &format!("has {count} object{s} to write"),
    );
    match &situation.reported.rejection {
        Some(why) => cause.detail = Some(why.clone()),
        None => {
            cause.advice =
                Some("if that lasts: does a controller run? `ferrostack openstack up`, or `ferrostack manager`".to_owned());
        }
    }
    cause
}

/// [`Cause`] in the first unready object.
fn of_objects(situation: &Situation<'_>, observed: &Observed<'_>, step: &Step) -> Cause {
    let unready = step.objects.iter().find_map(|object| {
        let there = observed.get(object.reference())?;
        let problem = readiness::problem(object.reference(), there)?;
        Some((object.reference(), there, problem))
    });
    match unready {
        Some((reference, there, problem)) => {
            of_object(situation, &step.name, reference, there, &problem)
        }
        // It became ready in the meantime.
        None => Cause::new(Reason::Busy, &step.name, "is being checked"),
    }
}

fn of_object(
    situation: &Situation<'_>,
    step: &str,
    reference: &Reference,
    there: &Json,
    problem: &str,
) -> Cause {
    let Graph { uid, .. } = situation.graph;
    let ours = pods::of(uid, step, reference, there, situation.pods);
    let is_task = reference.kind == ObjectKind::Job;
    let name = match is_task {
        true => format!("task {}", reference.name),
        false => step.to_owned(),
    };
    let failed = is_task && readiness::has_failed(there);
    if let Some((pod, trouble)) = ours
        .iter()
        .find_map(|pod| Some((*pod, pods::trouble(pod)?)))
    {
        // Of a task, the first Pod that failed tells since when.
        let first = ours.iter().filter_map(|pod| pods::trouble(pod)?.since);
        let since = first.min().filter(|_| is_task);
        let mut cause = of_pod(situation, &name, pod, trouble, is_task);
        cause.since = since.or(cause.since);
        if failed {
            cause.problem = "has failed".to_owned();
            cause.advice = Some(again(there, reference));
        }
        return cause;
    }
    if let Some(cause) = ours.iter().find_map(|pod| absent(situation, pod)) {
        return cause;
    }
    if failed {
        let mut cause = Cause::new(Reason::TaskFailed, name, "has failed");
        cause.detail = Some("its Pods are gone, and their logs".to_owned());
        cause.advice = Some(again(there, reference));
        return cause;
    }
    let mut cause = Cause::new(Reason::Busy, name, problem);
    if let Some(refused) = pods::condition(there, "ReplicaFailure") {
        cause.reason = Reason::NotWritten;
        cause.detail = Some(text(refused, "/message").to_owned());
    } else if let Some(missing) = ours.iter().find_map(|pod| lacking(situation, pod)) {
        cause.reason = Reason::Incomplete;
        cause.problem = "cannot start".to_owned();
        cause.detail = Some(missing);
    } else if let Some(pod) = ours.first() {
        let is_running = pod.pointer("/status/containerStatuses/0/state/running");
        // A program that ran for days may have failed its probe just now.
        let began = is_running.and_then(|it| it["startedAt"].as_str());
        let lost = pods::condition(pod, "Ready").filter(|it| it["status"] == "False");
        let lost = lost.and_then(|it| it["lastTransitionTime"].as_str());
        cause.since = began.map(|it| it.max(lost.unwrap_or_default()).to_owned());
        cause.detail = Some(match (is_running, is_task) {
            (None, _) => format!("Pod {} starts", text(pod, "/metadata/name")),
            (_, true) => format!("Pod {} runs", text(pod, "/metadata/name")),
            (_, false) => format!(
                "Pod {} does not pass its probe",
                text(pod, "/metadata/name")
            ),
        });
    }
    cause
}

/// Missing object mounted by a Pod, since the status of a Pod does not name it.
fn lacking(situation: &Situation<'_>, pod: &Json) -> Option<String> {
    let exists = |kind: ObjectKind, name: &str| {
        let mut objects = situation.objects.iter();
        objects.any(|it| it["kind"] == kind.name() && it["metadata"]["name"] == name)
    };
    let volumes = pod.pointer("/spec/volumes").and_then(Json::as_array);
    volumes.into_iter().flatten().find_map(|volume| {
        let (kind, name) = match (&volume["secret"], &volume["configMap"]) {
            (Json::Object(it), _) => (ObjectKind::Secret, it.get("secretName")?.as_str()?),
            (_, Json::Object(it)) => (ObjectKind::ConfigMap, it.get("name")?.as_str()?),
            _ => {
                let name = volume["persistentVolumeClaim"]["claimName"].as_str()?;
                (ObjectKind::PersistentVolumeClaim, name)
            }
        };
        let optional = |it: &str| volume[it]["optional"] == true;
        let missing = !exists(kind, name) && !optional("secret") && !optional("configMap");
        missing.then(|| format!("{} {name} does not exist", kind.name()))
    })
}

fn again(job: &Json, reference: &Reference) -> String {
    let namespace = text(job, "/metadata/namespace");
    format!(
        "`kubectl -n {namespace} delete job {}` runs it again",
        reference.name
    )
}

/// [`Cause`] of a Pod on a node that does not answer.
fn absent(situation: &Situation<'_>, pod: &Json) -> Option<Cause> {
    let on = text(pod, "/spec/nodeName");
    if on.is_empty() {
        return None;
    }
    let mut nodes = situation.nodes.iter();
    match nodes.find(|it| it["metadata"]["name"] == on) {
        Some(found) => node(found),
        None => Some(Cause::new(
            Reason::NodeGone,
            format!("node {on}"),
            "is gone",
        )),
    }
}

fn of_pod(
    situation: &Situation<'_>,
    name: &str,
    pod: &Json,
    trouble: Trouble,
    is_task: bool,
) -> Cause {
    // What is on a node that is gone is not to be judged by its last status.
    if let Some(cause) = absent(situation, pod) {
        return cause;
    }
    let on = text(pod, "/spec/nodeName");
    let image = text(pod, "/spec/containers/0/image");
    let reason = trouble.reason.as_str();
    let (kind, problem, detail, advice) = match reason {
        "Unschedulable" => {
            let (detail, advice) = unplaced(situation, pod, &trouble.detail);
            (Reason::NoNode, "has a Pod on no node", detail, advice)
        }
        "ErrImagePull" | "ImagePullBackOff" | "ErrImageNeverPull" | "InvalidImageName" => (
            Reason::ImageMissing,
            "cannot start",
            format!("image {image} is not on node {on} ({reason})"),
            Some("images/build makes it; import it there".to_owned()),
        ),
        pods::ENDED if is_task => (Reason::TaskFailed, "fails", trouble.detail, None),
        pods::ENDED => {
            let restarts = pod.pointer("/status/containerStatuses/0/restartCount");
            let restarts = restarts.and_then(Json::as_u64).unwrap_or(0);
            let times = match restarts {
                0 | 1 => String::new(),
                count => format!(" (started again {count} times)"),
            };
            let detail = format!("{}{times}", trouble.detail);
            (Reason::Crashing, "crashes", detail, None)
        }
        _ => {
            let detail = format!("{reason}: {}", trouble.detail);
            (Reason::Incomplete, "cannot start", detail, None)
        }
    };
    let mut cause = Cause::new(kind, name, problem);
    cause.since = trouble.since;
    cause.detail = Some(detail);
    cause.advice = advice;
    cause
}

/// Reason why a Pod has no node, and what to do.
fn unplaced(situation: &Situation<'_>, pod: &Json, words: &str) -> (String, Option<String>) {
    let observed = Observed::from_objects(situation.objects);
    let classes = situation.classes;
    if let Some((why, advice)) = pods::without_class(pod, words, &observed, classes) {
        return (why, Some(advice));
    }
    let nodes = situation.nodes;
    let holds = |it: &&Json| pods::condition(it, "Ready").is_some_and(|it| it["status"] == "True");
    let ready: Vec<&Json> = nodes.iter().filter(holds).collect();
    if nodes.is_empty() {
        let why = "the cluster has no nodes, or they must not be read";
        return (format!("{why}: {words}"), None);
    }
    if ready.is_empty() {
        let names: Vec<&str> = nodes.iter().map(|it| text(it, "/metadata/name")).collect();
        return (format!("no node is ready ({})", names.join(", ")), None);
    }
    let wanted = pod.pointer("/spec/nodeSelector").and_then(Json::as_object);
    for (label, value) in wanted.into_iter().flatten() {
        let has = |it: &&&Json| it["metadata"]["labels"][label] == *value;
        if !ready.iter().any(|it| has(&it)) {
            let pair = format!("{label}={}", value.as_str().unwrap_or_default());
            let advice = format!("kubectl label node NODE {pair}");
            return (format!("no ready node has the label {pair}"), Some(advice));
        }
    }
    let free = |it: &&&Json| it["spec"]["unschedulable"] != true;
    if ready.iter().filter(free).count() == 0 {
        let advice = "kubectl uncordon NODE".to_owned();
        return ("every ready node is cordoned".to_owned(), Some(advice));
    }
    (words.to_owned(), None)
}
