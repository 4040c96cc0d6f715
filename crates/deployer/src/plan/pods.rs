//! Why a workload or a task is not ready, from the status of its Pods.

use serde_json::Value as Json;

use super::label;
use crate::held::UID;
use crate::object::{ObjectKind, Reference};

/// The label of the name of the program.
const PROGRAM: &str = "app.kubernetes.io/name";
/// The last lines of a log that are repeated.
const LINES: usize = 5;

/// What is wrong with the Pods of a step: the first reason that a status names.
pub(super) fn reason(
    uid: &str,
    step: &str,
    owner: &Reference,
    there: &Json,
    pods: &[Json],
) -> Option<String> {
    let mut ours: Vec<&Json> = pods
        .iter()
        .filter(|pod| label(pod, UID) == Some(uid) && label(pod, PROGRAM) == Some(step))
        .filter(|pod| owner.kind != ObjectKind::Job || is_of(pod, there))
        .collect();
    // The newest tells what is wrong now.
    ours.sort_by_key(|pod| std::cmp::Reverse(text(pod, "/metadata/creationTimestamp")));
    ours.iter().find_map(|pod| {
        let name = text(pod, "/metadata/name");
        Some(format!("Pod {name}: {}", problem(pod)?))
    })
}

/// Whether a Pod belongs to this Job, and not to another of the same task.
fn is_of(pod: &Json, job: &Json) -> bool {
    let owners = pod.pointer("/metadata/ownerReferences");
    let mut owners = owners.and_then(Json::as_array).into_iter().flatten();
    owners.any(|owner| !owner["uid"].is_null() && owner["uid"] == job["metadata"]["uid"])
}

/// What is wrong with a Pod.
fn problem(pod: &Json) -> Option<String> {
    let statuses = pod.pointer("/status/containerStatuses");
    for status in statuses.and_then(Json::as_array).into_iter().flatten() {
        let ended = ended(&status["state"]["terminated"])
            .or_else(|| ended(&status["lastState"]["terminated"]));
        let waiting = &status["state"]["waiting"];
        let ready = status["ready"] == true;
        match (waiting["reason"].as_str(), ended) {
            (_, _) if ready => {}
            (Some("ContainerCreating" | "PodInitializing") | None, None) => {}
            (Some("CrashLoopBackOff") | None, Some(ended)) => return Some(ended),
            (Some(reason), _) => {
                let message = waiting["message"].as_str().unwrap_or_default();
                let advice = match reason {
                    "ErrImagePull" | "ImagePullBackOff" | "ErrImageNeverPull" => {
                        ". Is the image on the node? images/build makes it"
                    }
                    _ => "",
                };
                return Some(format!("{reason}: {message}{advice}"));
            }
        }
    }
    let conditions = pod.pointer("/status/conditions");
    let mut conditions = conditions.and_then(Json::as_array).into_iter().flatten();
    let unscheduled =
        conditions.find(|it| it["type"] == "PodScheduled" && it["status"] == "False")?;
    let message = unscheduled["message"].as_str().unwrap_or_default();
    Some(format!("is on no node: {message}"))
}

/// How a container has ended, if not well.
fn ended(terminated: &Json) -> Option<String> {
    let code = terminated["exitCode"].as_i64().filter(|code| *code != 0)?;
    let log = terminated["message"].as_str().unwrap_or_default();
    let lines: Vec<&str> = log.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = lines.get(lines.len().saturating_sub(LINES)..);
    let last = last.unwrap_or_default().join(" | ");
    Some(match last.as_str() {
        "" => format!("ended with exit status {code}"),
        last => format!("ended with exit status {code}: {last}"),
    })
}

fn text<'a>(object: &'a Json, path: &str) -> &'a str {
    let found = object.pointer(path).and_then(Json::as_str);
    found.unwrap_or_default()
}
