//! StatefulSets: Pod by Pod, each after the one before is ready; with the policy `Parallel` new ones at once.

use serde_json::{Value, json};

use super::cache::ObjectCache;
use super::object::{
    Name, POD, STATEFUL_SET, Write, has_ended, holds, is_ending, number, some, text,
};

const REVISION: &str = "controller-revision-hash";

pub(super) fn sets(world: &ObjectCache) -> Vec<Write> {
    let sets = world.stateful_sets.iter().filter(|it| !is_ending(it));
    sets.flat_map(|it| set(it, world)).collect()
}

fn set(set: &Value, world: &ObjectCache) -> Vec<Write> {
    let name = text(&set["metadata"]["name"]);
    let revision = format!("{name}-{}", world.hash(set));
    let pods: Vec<&Value> = world.pods_of(set).collect();
    let mut writes = Vec::from_iter(next(set, &pods, &revision));
    writes.extend(STATEFUL_SET.status(set, status(set, &pods, &revision)));
    writes
}

fn ordinal(pod: &Value) -> Option<usize> {
    let (_, number) = text(&pod["metadata"]["name"]).rsplit_once('-')?;
    number.parse().ok()
}

/// Returns the next change of a single Pod.
fn next(set: &Value, pods: &[&Value], revision: &str) -> Option<Write> {
    let name = text(&set["metadata"]["name"]);
    let wanted = number(&set["spec"]["replicas"], 1);
    let parallel = set["spec"]["podManagementPolicy"] == "Parallel";
    for number in 0..wanted {
        let Some(pod) = pods.iter().find(|it| ordinal(it) == Some(number)) else {
            let name = format!("{name}-{number}");
            let labels = [
                (REVISION, revision),
                ("statefulset.kubernetes.io/pod-name", name.as_str()),
            ];
            let mut write = STATEFUL_SET.pod(set, Name::Given(&name), &labels);
            if let Write::Create { body, .. } = &mut write {
                body["spec"]["hostname"] = name.as_str().into();
                body["spec"]["subdomain"] = set["spec"]["serviceName"].clone();
            }
            return Some(write);
        };
        if is_ending(pod) {
            return None;
        }
        if has_ended(pod) {
            return Some(POD.delete(pod, None));
        }
        // A Pod that never becomes ready stops the rollout, and must be deleted by hand.
        if !holds(pod, "Ready") && !parallel {
            return None;
        }
    }
    // Of Pods that are replaced, there is one at a time with either policy.
    let kept = pods.iter().filter(|it| ordinal(it) < Some(wanted));
    if kept.into_iter().any(|it| !holds(it, "Ready")) {
        return None;
    }
    let surplus = pods.iter().filter(|it| ordinal(it) >= Some(wanted));
    let last = surplus.max_by_key(|it| ordinal(it));
    if let Some(last) = last {
        return (!is_ending(last)).then(|| POD.delete(last, None));
    }
    if set["spec"]["updateStrategy"]["type"] == "OnDelete" {
        return None;
    }
    let old = pods.iter().filter(|it| !is_current(it, revision));
    let last = old.max_by_key(|it| ordinal(it))?;
    Some(POD.delete(last, None))
}

fn is_current(pod: &Value, revision: &str) -> bool {
    text(&pod["metadata"]["labels"][REVISION]) == revision
}

fn status(set: &Value, pods: &[&Value], revision: &str) -> Value {
    let wanted = number(&set["spec"]["replicas"], 1);
    let count = |it: &dyn Fn(&Value) -> bool| pods.iter().filter(|pod| it(pod)).count();
    let ready = count(&|pod| holds(pod, "Ready") && !is_ending(pod));
    let updated = count(&|pod| is_current(pod, revision) && !is_ending(pod));
    let former = text(&set["status"]["currentRevision"]);
    let done = updated == wanted && ready == wanted;
    let current = if done || former.is_empty() {
        revision
    } else {
        former
    };
    json!({
        "observedGeneration": set["metadata"]["generation"],
        "replicas": pods.len(),
        "readyReplicas": some(ready),
        "availableReplicas": ready,
        "currentReplicas": some(count(&|pod| is_current(pod, current) && !is_ending(pod))),
        "updatedReplicas": some(updated),
        "currentRevision": current,
        "updateRevision": revision,
    })
}
