//! Kubelets: the containers of Pods on existing nodes.

use serde_json::{Value, json};

use super::cache::{Now, ObjectCache};
use super::faults::Ending;
use super::object::{
    EVENT, POD, Write, condition, has_ended, holds, is_ending, items, number, text, time, uid,
};
use super::scheduler::bound_status;

/// Maximum length of a log repeated in a status, in bytes and lines, as in the kubelet.
const LONGEST: (usize, usize) = (2048, 80);

pub(super) fn pods(world: &ObjectCache, now: &mut Now<'_>) -> Vec<Write> {
    let mut writes = Vec::new();
    for claim in &world.claims {
        if !claim["spec"]["volumeName"].is_null() && claim["status"]["phase"] != "Bound" {
            writes.extend(bound_status(claim));
        }
    }
    for pod in &world.pods {
        let node = text(&pod["spec"]["nodeName"]);
        if node.is_empty() {
            // Nothing runs that has to end.
            if is_ending(pod) {
                writes.push(POD.delete(pod, Some(0)));
            }
            continue;
        }
        if !now.options.nodes.iter().any(|it| it == node) {
            continue;
        }
        if now.faults().is_removed(node) {
            // Pods of a node that is no more go with it.
            writes.push(POD.delete(pod, Some(0)));
            continue;
        }
        if now.faults().is_gone(node) {
            writes.extend(lost(pod));
        } else if is_ending(pod) {
            if now.is_past(pod, "ending", now.options.start) {
                writes.push(POD.delete(pod, Some(0)));
            }
        } else if !has_ended(pod) {
            writes.extend(container(pod, world, now));
        }
    }
    writes
}

/// Marks the Pods of a node without an answer as not ready.
fn lost(pod: &Value) -> Option<Write> {
    if !holds(pod, "Ready") {
        return None;
    }
    let mut conditions: Vec<Value> = items(&pod["status"]["conditions"]).cloned().collect();
    for it in &mut conditions {
        if it["type"] == "Ready" {
            *it = condition(pod, "Ready", false, "NodeNotReady", "");
        }
    }
    POD.status(pod, json!({"conditions": conditions}))
}

/// Advances the only container of a Pod.
fn container(pod: &Value, world: &ObjectCache, now: &mut Now<'_>) -> Vec<Write> {
    let spec = &pod["spec"]["containers"][0];
    let name = text(&spec["name"]);
    let status = &pod["status"]["containerStatuses"][0];
    let restarts = number(&status["restartCount"], 0);
    let (start, ready, back_off) = (now.options.start, now.options.ready, now.options.back_off);
    if status["state"]["running"].is_object() {
        let ending = now.faults().ending(name);
        let is_task = pod["spec"]["restartPolicy"] != "Always";
        if !is_task && ending.is_none() {
            let was = holds(pod, "Ready");
            let probed = spec["readinessProbe"].is_object();
            let is_ready = was || !probed || now.is_past(pod, "ready", ready);
            return running(pod, is_ready, restarts);
        }
        if !now.is_past(pod, "ready", ready) {
            return running(pod, is_task, restarts);
        }
        now.end(pod, "ready");
        let ending = ending.unwrap_or(Ending {
            status: 0,
            log: String::new(),
        });
        return ended(pod, &ending, restarts);
    }
    if status["state"]["waiting"]["reason"] == "CrashLoopBackOff" {
        if !now.is_past(pod, "back-off", back_off) {
            return Vec::new();
        }
        now.end(pod, "back-off");
        return running(pod, false, restarts);
    }
    if let Some((reason, message)) = obstacle(pod, spec, world, now) {
        return waiting(pod, reason, &message, restarts);
    }
    if !now.is_past(pod, "start", start) {
        return waiting(pod, "ContainerCreating", "", restarts);
    }
    running(pod, false, restarts)
}

/// Returns the reason why a container cannot be created.
fn obstacle(
    pod: &Value,
    spec: &Value,
    world: &ObjectCache,
    now: &Now<'_>,
) -> Option<(&'static str, String)> {
    let namespace = text(&pod["metadata"]["namespace"]).to_owned();
    let key = |name: &Value| (namespace.clone(), text(name).to_owned());
    for volume in items(&pod["spec"]["volumes"]) {
        let (what, name, found) = match (&volume["secret"], &volume["configMap"]) {
            (Value::Object(_), _) => {
                let name = &volume["secret"]["secretName"];
                ("secret", name, world.secrets.get(&key(name)).is_some())
            }
            (_, Value::Object(_)) => {
                let name = &volume["configMap"]["name"];
                (
                    "configmap",
                    name,
                    world.config_maps.get(&key(name)).is_some(),
                )
            }
            _ => continue,
        };
        let optional =
            volume["secret"]["optional"] == true || volume["configMap"]["optional"] == true;
        if !found && !optional {
            let (volume, name) = (text(&volume["name"]), text(name));
            let message = format!(
                "MountVolume.SetUp failed for volume \"{volume}\" : {what} \"{name}\" not found"
            );
            return Some(("ContainerCreating", message));
        }
    }
    let image = text(&spec["image"]);
    if now.faults().lacks(image) {
        return Some(match text(&spec["imagePullPolicy"]) {
            "Never" => (
                "ErrImageNeverPull",
                format!("Container image \"{image}\" is not present with pull policy of Never"),
            ),
            _ => (
                "ImagePullBackOff",
                format!("Back-off pulling image \"{image}\": ErrImagePull: no registry has it"),
            ),
        });
    }
    for variable in items(&spec["env"]) {
        let from = &variable["valueFrom"]["secretKeyRef"];
        if !from.is_object() || from["optional"] == true {
            continue;
        }
        let (name, field) = (text(&from["name"]), text(&from["key"]));
        let problem = match world.secrets.get(&key(&from["name"])) {
            None => format!("secret \"{name}\" not found"),
            Some(secret) if secret["data"][field].is_null() => {
                format!("couldn't find key {field} in Secret {namespace}/{name}")
            }
            Some(_) => continue,
        };
        return Some(("CreateContainerConfigError", problem));
    }
    None
}

fn waiting(pod: &Value, reason: &str, message: &str, restarts: usize) -> Vec<Write> {
    let mounts = reason == "ContainerCreating" && !message.is_empty();
    let mut state = json!({"reason": reason});
    // The message about a volume is only in the event.
    if !message.is_empty() && !mounts {
        state["message"] = message.into();
    }
    let status = status(pod, "Pending", json!({"waiting": state}), false, restarts);
    let mut writes = Vec::from_iter(POD.status(pod, status));
    if mounts && !writes.is_empty() {
        writes.push(event(pod, "FailedMount", message));
    }
    writes
}

fn running(pod: &Value, ready: bool, restarts: usize) -> Vec<Write> {
    let former = &pod["status"]["containerStatuses"][0]["state"]["running"];
    let state = match former.is_object() {
        true => json!({"running": former}),
        false => json!({"running": {"startedAt": time()}}),
    };
    let status = status(pod, "Running", state, ready, restarts);
    Vec::from_iter(POD.status(pod, status))
}

/// Handles an ended container: finished, or to be started again.
fn ended(pod: &Value, ending: &Ending, restarts: usize) -> Vec<Write> {
    let spec = &pod["spec"]["containers"][0];
    let since = pod["status"]["containerStatuses"][0]["state"]["running"]["startedAt"].clone();
    let mut terminated = json!({
        "exitCode": ending.status,
        "reason": if ending.status == 0 { "Completed" } else { "Error" },
        "startedAt": since, "finishedAt": time(),
        "containerID": format!("simulated://{}", uid(pod)),
    });
    // A program that writes its message file writes its log there, when ending well.
    let mut words = items(&spec["command"]).map(text);
    let wrote = ending.status == 0 && words.any(|it| it.contains("/dev/termination-log"));
    let falls_back = spec["terminationMessagePolicy"] == "FallbackToLogsOnError";
    if wrote && !ending.log.is_empty() || ending.status != 0 && falls_back {
        terminated["message"] = last(&ending.log).into();
    }
    let state = json!({"terminated": terminated});
    let policy = text(&pod["spec"]["restartPolicy"]);
    let status = match (policy, ending.status) {
        ("Never" | "OnFailure", 0) => status(pod, "Succeeded", state, false, restarts),
        ("Never", _) => status(pod, "Failed", state, false, restarts),
        _ => {
            let name = text(&spec["name"]);
            let message = format!(
                "back-off restarting failed container={name} pod={}",
                text(&pod["metadata"]["name"])
            );
            let waiting = json!({"waiting": {"reason": "CrashLoopBackOff", "message": message}});
            let mut status = status(pod, "Running", waiting, false, restarts + 1);
            status["containerStatuses"][0]["lastState"] = state;
            status
        }
    };
    Vec::from_iter(POD.status(pod, status))
}

/// Returns the end of a log, up to [`LONGEST`].
fn last(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    let from = lines.len().saturating_sub(LONGEST.1);
    let text = lines.get(from..).unwrap_or_default().join("\n");
    let from = text.len().saturating_sub(LONGEST.0);
    let from = (from..=text.len()).find(|at| text.is_char_boundary(*at));
    text.get(from.unwrap_or(0)..).unwrap_or_default().to_owned()
}

fn status(pod: &Value, phase: &str, state: Value, ready: bool, restarts: usize) -> Value {
    let spec = &pod["spec"]["containers"][0];
    let former = &pod["status"]["containerStatuses"][0];
    let runs = state["running"].is_object();
    let mut container = json!({
        "name": spec["name"], "image": spec["image"], "imageID": "", "ready": ready,
        "restartCount": restarts, "started": runs, "state": state,
    });
    if runs || state["terminated"].is_object() {
        container["containerID"] = format!("simulated://{}", uid(pod)).into();
        container["imageID"] = spec["image"].clone();
    }
    container["lastState"] = match former["lastState"].is_object() {
        true => former["lastState"].clone(),
        false => json!({}),
    };
    let (reason, message) = match (phase, ready) {
        ("Succeeded", _) => ("PodCompleted", ""),
        (_, true) => ("", ""),
        (_, false) => ("ContainersNotReady", "containers with unready status"),
    };
    json!({
        "phase": phase,
        "startTime": match pod["status"]["startTime"].is_null() {
            true => time().into(),
            false => pod["status"]["startTime"].clone(),
        },
        "conditions": [
            condition(pod, "PodScheduled", true, "", ""),
            condition(pod, "Initialized", true, "", ""),
            condition(pod, "ContainersReady", ready, reason, message),
            condition(pod, "Ready", ready, reason, message),
        ],
        "containerStatuses": [container],
    })
}

fn event(pod: &Value, reason: &str, message: &str) -> Write {
    let now = time();
    let metadata = &pod["metadata"];
    let name = format!(
        "{}.{reason}.{}",
        text(&metadata["name"]),
        super::object::hash(&message.into())
    );
    Write::Create {
        collection: EVENT.beside(pod),
        body: json!({
            "apiVersion": "v1", "kind": "Event",
            "metadata": {"name": name.to_lowercase(), "namespace": metadata["namespace"]},
            "involvedObject": {"apiVersion": "v1", "kind": "Pod", "name": metadata["name"],
                "namespace": metadata["namespace"], "uid": metadata["uid"]},
            "reason": reason, "message": message, "type": "Warning", "count": 1,
            "firstTimestamp": now, "lastTimestamp": now, "source": {"component": "kubelet"},
        }),
    }
}
