//! Status of PodDisruptionBudgets, which allows or refuses evictions, as kube-controller-manager's disruption controller
//! computes it, except for controllers known only by their `scale` subresource.

use std::collections::BTreeMap;

use apimachinery::selector::LabelSelector;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use crate::json::text;

/// Time for which an evicted pod counts as disrupted before its deletion.
const DELETION_TIMEOUT: SignedDuration = SignedDuration::from_mins(2);

/// Controllers with a number of replicas: by the uid of a pod's controller, the uid of the scaled object and the
/// number.
pub(crate) type Scales = BTreeMap<String, (String, u64)>;

/// Collects the numbers of replicas. A ReplicaSet of a Deployment has the Deployment's number: during a rollout there
/// are several ReplicaSets.
pub(crate) fn scales_of<'a>(
    deployments: &[Value],
    sets: &[Value],
    others: impl Iterator<Item = &'a Value>,
) -> Scales {
    let replicas = |object: &Value| object["spec"]["replicas"].as_u64().unwrap_or(1);
    let uid = |object: &Value| text(&object["metadata"]["uid"]).to_owned();
    let mut scales: Scales = others
        .map(|object| (uid(object), (uid(object), replicas(object))))
        .collect();
    for set in sets {
        let owner = controller(set);
        let deployment = deployments
            .iter()
            .find(|it| owner.is_some_and(|owner| owner["uid"] == it["metadata"]["uid"]));
        let scale = deployment.unwrap_or(set);
        scales.insert(uid(set), (uid(scale), replicas(scale)));
    }
    scales
}

/// Status, and the time of its next change without a change of an object.
#[derive(Debug, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) status: Value,
    pub(crate) again: Option<Timestamp>,
}

/// Returns the status of `budget` for the pods of its namespace.
pub(crate) fn status(budget: &Value, all: &[Value], scales: &Scales, now: Timestamp) -> Outcome {
    let selector = LabelSelector::from_object(&budget["spec"]["selector"]).ok();
    let selected = |pod: &&Value| {
        let matches = |selector: &LabelSelector| selector.matches(&pod["metadata"]["labels"]);
        selector.as_ref().is_some_and(matches)
    };
    let pods: Vec<&Value> = all.iter().filter(selected).collect();
    let Numbers { expected, desired } = match numbers(&budget["spec"], &pods, scales) {
        Ok(numbers) => numbers,
        Err(why) => return failed(budget, &why, now),
    };
    let disrupted = disrupted(&budget["status"], &pods, now);
    let healthy = pods.iter().filter(|pod| {
        let name = text(&pod["metadata"]["name"]);
        is_ready(pod) && !is_leaving(pod) && !disrupted.contains_key(name)
    });
    let healthy = healthy.count() as u64;
    let allowed = match expected {
        0 => 0,
        _ => healthy.saturating_sub(desired),
    };
    let generation = &budget["metadata"]["generation"];
    let verdict = match allowed {
        0 => ("False", "InsufficientPods", ""),
        _ => ("True", "SufficientPods", ""),
    };
    let mut status = json!({
        "conditions": [condition(budget, verdict, now)],
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "disruptionsAllowed": allowed,
        "expectedPods": expected,
        "observedGeneration": generation,
    });
    let again = disrupted
        .values()
        .filter_map(|at| at.checked_add(DELETION_TIMEOUT).ok())
        .min();
    if !disrupted.is_empty() {
        let times = disrupted
            .iter()
            .map(|(name, at)| (name.clone(), seconds(*at)));
        status["disruptedPods"] = Value::Object(times.collect());
    }
    Outcome { status, again }
}

/// Numbers of expected pods, and of pods that must be healthy.
struct Numbers {
    expected: u64,
    desired: u64,
}

fn numbers(spec: &Value, pods: &[&Value], scales: &Scales) -> Result<Numbers, String> {
    if !spec["maxUnavailable"].is_null() {
        let expected = expected(pods, scales)?;
        let unavailable = scaled(&spec["maxUnavailable"], expected)?;
        return Ok(Numbers {
            expected,
            desired: expected.saturating_sub(unavailable),
        });
    }
    match &spec["minAvailable"] {
        Value::Null => Ok(Numbers {
            expected: 0,
            desired: 0,
        }),
        Value::Number(number) => Ok(Numbers {
            expected: pods.len() as u64,
            desired: number.as_u64().unwrap_or(0),
        }),
        percentage => {
            let expected = expected(pods, scales)?;
            let desired = scaled(percentage, expected)?;
            Ok(Numbers { expected, desired })
        }
    }
}

/// Returns the sum over the controllers of `pods`. Pods without a controller do not count.
fn expected(pods: &[&Value], scales: &Scales) -> Result<u64, String> {
    let mut seen = BTreeMap::new();
    for pod in pods {
        let Some(owner) = controller(pod) else {
            continue;
        };
        let Some((uid, replicas)) = scales.get(text(&owner["uid"])) else {
            let name = text(&pod["metadata"]["name"]);
            return Err(format!("found no controllers for pod \"{name}\""));
        };
        seen.insert(uid, replicas);
    }
    Ok(seen.values().copied().sum())
}

/// Parses a number, or a percentage of `total`, rounded up.
fn scaled(value: &Value, total: u64) -> Result<u64, String> {
    if let Some(number) = value.as_u64() {
        return Ok(number);
    }
    let percent = value.as_str().and_then(|text| text.strip_suffix('%'));
    let percent = percent.and_then(|number| number.parse::<u64>().ok());
    let percent = percent.ok_or_else(|| {
        "invalid value for IntOrString: invalid type: string is not a percentage".to_owned()
    })?;
    Ok((percent * total).div_ceil(100))
}

/// Returns the evicted pods that still exist, with the time of the eviction.
fn disrupted(status: &Value, pods: &[&Value], now: Timestamp) -> BTreeMap<String, Timestamp> {
    let empty = Map::new();
    let known = status["disruptedPods"].as_object().unwrap_or(&empty);
    let still = pods
        .iter()
        .filter(|pod| !is_leaving(pod))
        .filter_map(|pod| {
            let name = text(&pod["metadata"]["name"]);
            let at: Timestamp = known.get(name)?.as_str()?.parse().ok()?;
            let is_over = now.duration_since(at) > DELETION_TIMEOUT;
            (!is_over).then(|| (name.to_owned(), at))
        });
    still.collect()
}

/// Returns the status of a budget whose pods cannot be counted: no eviction is allowed.
fn failed(budget: &Value, why: &str, now: Timestamp) -> Outcome {
    let mut status = budget["status"].clone();
    if !status.is_object() {
        status = json!({"currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0});
    }
    status["disruptionsAllowed"] = 0.into();
    status["observedGeneration"] = budget["metadata"]["generation"].clone();
    status["conditions"] = json!([condition(budget, ("False", "SyncFailed", why), now)]);
    Outcome {
        status,
        again: None,
    }
}

fn condition(
    budget: &Value,
    (status, reason, message): (&str, &str, &str),
    now: Timestamp,
) -> Value {
    let kind = "DisruptionAllowed";
    let known = budget["status"]["conditions"].as_array().into_iter();
    let before = known
        .flatten()
        .find(|condition| condition["type"] == kind && condition["status"] == status);
    let since = before.map(|condition| condition["lastTransitionTime"].clone());
    json!({
        "type": kind, "status": status, "reason": reason, "message": message,
        "observedGeneration": budget["metadata"]["generation"],
        "lastTransitionTime": since.unwrap_or_else(|| seconds(now)),
    })
}

/// Returns a merge patch from `old` to `wanted`.
pub(crate) fn replacing(old: &Value, mut wanted: Value) -> Value {
    if let (Some(old), Some(new)) = (old.as_object(), wanted.as_object_mut()) {
        for field in old
            .keys()
            .filter(|field| !new.contains_key(*field))
            .cloned()
            .collect::<Vec<_>>()
        {
            new.insert(field, Value::Null);
        }
        // Pods that are gone have to go from the map, too.
        let known = old.get("disruptedPods").and_then(Value::as_object);
        if let (Some(known), Some(Value::Object(pods))) = (known, new.get_mut("disruptedPods")) {
            for pod in known.keys() {
                pods.entry(pod.clone()).or_insert(Value::Null);
            }
        }
    }
    wanted
}

fn controller(object: &Value) -> Option<&Value> {
    let owners = object["metadata"]["ownerReferences"].as_array()?;
    owners.iter().find(|owner| owner["controller"] == true)
}

fn is_ready(pod: &Value) -> bool {
    let mut conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    conditions.any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

fn is_leaving(pod: &Value) -> bool {
    !pod["metadata"]["deletionTimestamp"].is_null()
}

/// Returns a time in the form of the API server.
fn seconds(at: Timestamp) -> Value {
    let whole = Timestamp::from_second(at.as_second()).unwrap_or(at);
    whole.to_string().into()
}

#[cfg(test)]
mod tests;
