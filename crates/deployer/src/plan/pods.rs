//! Reasons why a workload or a task is not ready, from the status of its Pods.

use serde_json::Value as Json;

use super::{Observed, label};
use crate::held::UID;
use crate::object::{ObjectKind, Reference};

/// Label with the name of the program.
pub(super) const PROGRAM: &str = "app.kubernetes.io/name";
/// Number of last lines of a log in messages.
const LINES: usize = 5;

/// First problem in the status of a Pod of the step.
pub(super) fn reason(
    uid: &str,
    step: &str,
    owner: &Reference,
    observed: &Observed<'_>,
    pods: &[Json],
) -> Option<String> {
    let there = observed.get(owner)?;
    of(uid, step, owner, there, pods).iter().find_map(|pod| {
        let name = text(pod, "/metadata/name");
        Some(format!("Pod {name}: {}", problem(pod, observed)?))
    })
}

/// Command to make a storage class the default one.
const DEFAULT_CLASS: &str =
    "kubectl annotate storageclass NAME storageclass.kubernetes.io/is-default-class=true";

/// Reason why a Pod has no node for its claims since no volume is made, and what to do. `classes` has the names of the
/// storage classes, if known.
pub(super) fn without_class(
    pod: &Json,
    words: &str,
    observed: &Observed<'_>,
    classes: Option<&[String]>,
) -> Option<(String, String)> {
    if !words.contains("PersistentVolumeClaim") {
        return None;
    }
    let volumes = pod.pointer("/spec/volumes").and_then(Json::as_array);
    volumes.into_iter().flatten().find_map(|volume| {
        let name = volume["persistentVolumeClaim"]["claimName"].as_str()?;
        let claim = observed.get(&Reference {
            kind: ObjectKind::PersistentVolumeClaim,
            name: name.to_owned(),
        })?;
        if claim["status"]["phase"] == "Bound" {
            return None;
        }
        let class = claim["spec"]["storageClassName"].as_str().unwrap_or_default();
        Some(match (class, classes) {
            ("", _) => (
                format!("claim {name} has no storage class, and the cluster has no default one"),
                DEFAULT_CLASS.to_owned(),
            ),
            (class, Some(there)) if !there.iter().any(|it| it == class) => (
                format!(
                    "there is no storage class {class}, which claim {name} is to have; there are: {}",
                    there.join(", ")
                ),
                "name another one in storage.class, or make it".to_owned(),
            ),
            (class, _) => (
                format!("claim {name} waits for a volume of storage class {class}"),
                format!("kubectl get storageclass {class}, and look at its provisioner"),
            ),
        })
    })
}

/// Pods of an object of a step, the newest first, since it shows the current problem.
pub(super) fn of<'a>(
    uid: &str,
    step: &str,
    owner: &Reference,
    there: &Json,
    pods: &'a [Json],
) -> Vec<&'a Json> {
    let mut ours: Vec<&Json> = pods
        .iter()
        .filter(|pod| label(pod, UID) == Some(uid) && label(pod, PROGRAM) == Some(step))
        .filter(|pod| owner.kind != ObjectKind::Job || is_of(pod, there))
        .collect();
    ours.sort_by_key(|pod| std::cmp::Reverse(text(pod, "/metadata/creationTimestamp")));
    ours
}

/// True if a Pod belongs to this Job, and not to another one of the same task.
fn is_of(pod: &Json, job: &Json) -> bool {
    let owners = pod.pointer("/metadata/ownerReferences");
    let mut owners = owners.and_then(Json::as_array).into_iter().flatten();
    owners.any(|owner| !owner["uid"].is_null() && owner["uid"] == job["metadata"]["uid"])
}

/// Problem of a Pod.
pub(super) struct Trouble {
    /// Reason as given by Kubernetes, or [`ENDED`].
    pub(super) reason: String,
    /// Detail in words.
    pub(super) detail: String,
    /// Start of the problem, RFC 3339.
    pub(super) since: Option<String>,
}

/// Reason of a container with an exit status other than 0.
pub(super) const ENDED: &str = "Ended";

/// Problem of a Pod, in a sentence.
fn problem(pod: &Json, observed: &Observed<'_>) -> Option<String> {
    let trouble = trouble(pod)?;
    let Trouble { reason, detail, .. } = &trouble;
    Some(match reason.as_str() {
        ENDED => format!("ended with {detail}"),
        "Unschedulable" => match without_class(pod, detail, observed, None) {
            Some((why, advice)) => format!("is on no node: {why}: {advice}"),
            None => format!("is on no node: {detail}"),
        },
        "ErrImagePull" | "ImagePullBackOff" | "ErrImageNeverPull" => {
            format!("{reason}: {detail}. Is the image on the node? images/build makes it")
        }
        reason => format!("{reason}: {detail}"),
    })
}

/// [`Trouble`] of a Pod, from its status.
pub(super) fn trouble(pod: &Json) -> Option<Trouble> {
    let statuses = pod.pointer("/status/containerStatuses");
    let begun = condition(pod, "PodScheduled").and_then(|it| it["lastTransitionTime"].as_str());
    for status in statuses.and_then(Json::as_array).into_iter().flatten() {
        let both = [
            &status["state"]["terminated"],
            &status["lastState"]["terminated"],
        ];
        let ended = both.into_iter().find_map(ended);
        let waiting = &status["state"]["waiting"];
        let ready = status["ready"] == true;
        match (waiting["reason"].as_str(), ended) {
            (_, _) if ready => {}
            (Some("ContainerCreating" | "PodInitializing") | None, None) => {}
            (Some("CrashLoopBackOff") | None, Some(ended)) => return Some(ended),
            (Some(reason), _) => {
                return Some(Trouble {
                    reason: reason.to_owned(),
                    detail: waiting["message"].as_str().unwrap_or_default().to_owned(),
                    since: begun.map(str::to_owned),
                });
            }
        }
    }
    let unscheduled = condition(pod, "PodScheduled").filter(|it| it["status"] == "False")?;
    Some(Trouble {
        reason: "Unschedulable".to_owned(),
        detail: unscheduled["message"]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
        since: begun.map(str::to_owned),
    })
}

/// Condition in the status of an object.
pub(super) fn condition<'a>(object: &'a Json, kind: &str) -> Option<&'a Json> {
    let conditions = object.pointer("/status/conditions");
    let mut conditions = conditions.and_then(Json::as_array).into_iter().flatten();
    conditions.find(|it| it["type"] == kind)
}

/// [`Trouble`] of a failed container.
fn ended(terminated: &Json) -> Option<Trouble> {
    let code = terminated["exitCode"].as_i64().filter(|code| *code != 0)?;
    let log = terminated["message"].as_str().unwrap_or_default();
    let lines: Vec<&str> = log.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = lines.get(lines.len().saturating_sub(LINES)..);
    let last = last.unwrap_or_default().join(" | ");
    Some(Trouble {
        reason: ENDED.to_owned(),
        detail: match last.as_str() {
            "" => format!("exit status {code}"),
            last => format!("exit status {code}: {last}"),
        },
        since: terminated["finishedAt"].as_str().map(str::to_owned),
    })
}

pub(super) fn text<'a>(object: &'a Json, path: &str) -> &'a str {
    let found = object.pointer(path).and_then(Json::as_str);
    found.unwrap_or_default()
}
