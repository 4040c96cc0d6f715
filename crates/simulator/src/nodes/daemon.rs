//! DaemonSets: one Pod on each selected node.

use serde_json::{Value, json};

use super::cache::ObjectCache;
use super::object::{
    DAEMON_SET, Name, POD, Write, has_ended, has_labels, holds, is_ending, some, text,
};

const REVISION: &str = "controller-revision-hash";

pub(super) fn sets(world: &ObjectCache) -> Vec<Write> {
    let sets = world.daemon_sets.iter().filter(|it| !is_ending(it));
    sets.flat_map(|it| set(it, world)).collect()
}

fn set(set: &Value, world: &ObjectCache) -> Vec<Write> {
    let revision = world.hash(set);
    let selector = &set["spec"]["template"]["spec"]["nodeSelector"];
    let wanted: Vec<&str> = world
        .nodes
        .iter()
        .filter(|node| has_labels(&node["metadata"]["labels"], selector))
        .map(|node| text(&node["metadata"]["name"]))
        .collect();
    let pods: Vec<&Value> = world.pods_of(set).collect();
    let is_current = |pod: &Value| text(&pod["metadata"]["labels"][REVISION]) == revision;
    let on_delete = set["spec"]["updateStrategy"]["type"] == "OnDelete";
    let mut writes = Vec::new();
    for node in &wanted {
        let here = || {
            pods.iter()
                .filter(|pod| text(&pod["spec"]["nodeName"]) == *node)
        };
        if here().next().is_none() {
            let labels = [(REVISION, revision.as_str())];
            let mut write = DAEMON_SET.pod(set, Name::Generated, &labels);
            if let Write::Create { body, .. } = &mut write {
                body["spec"]["nodeName"] = (*node).into();
            }
            writes.push(write);
        }
        let old = here().filter(|pod| has_ended(pod) || !on_delete && !is_current(pod));
        let old = old.filter(|pod| !is_ending(pod));
        writes.extend(old.map(|pod| POD.delete(pod, None)));
    }
    let misplaced = pods
        .iter()
        .filter(|pod| !is_ending(pod) && !wanted.contains(&text(&pod["spec"]["nodeName"])));
    writes.extend(misplaced.map(|pod| POD.delete(pod, None)));
    let ready = pods
        .iter()
        .filter(|pod| holds(pod, "Ready") && !is_ending(pod))
        .count();
    let updated = pods
        .iter()
        .filter(|pod| is_current(pod) && !is_ending(pod))
        .count();
    let counted = json!({
        "currentNumberScheduled": pods.len(),
        "desiredNumberScheduled": wanted.len(),
        "numberAvailable": some(ready),
        "numberMisscheduled": 0,
        "numberReady": ready,
        "numberUnavailable": some(wanted.len().saturating_sub(ready)),
        "observedGeneration": set["metadata"]["generation"],
        "updatedNumberScheduled": some(updated),
    });
    writes.extend(DAEMON_SET.status(set, counted));
    writes
}
