//! Deployments and ReplicaSets, as handled by their controllers in kube-controller-manager.

use serde_json::{Value, json};

use super::cache::ObjectCache;
use super::object::{
    DEPLOYMENT, Name, POD, REPLICA_SET, Write, condition, has_ended, hash, holds, is_ending,
    number, some, text,
};

const HASH: &str = "pod-template-hash";

pub(super) fn deployments(world: &ObjectCache) -> Vec<Write> {
    let objects = world.deployments.iter().filter(|it| !is_ending(it));
    objects.flat_map(|it| deployment(it, world)).collect()
}

fn deployment(object: &Value, world: &ObjectCache) -> Vec<Write> {
    let sets = world.replica_sets.controlled_by(object);
    let hash = world.hash(object);
    let (new, old): (Vec<_>, Vec<_>) =
        sets.partition(|it| text(&it["metadata"]["labels"][HASH]) == hash);
    let new = new.first().copied();
    let mut writes = match object["spec"]["strategy"]["type"] == "Recreate" {
        true => recreate(object, new, &old),
        false => roll(object, new, &old),
    };
    if new.is_none() && !writes.iter().any(|it| matches!(it, Write::Create { .. })) {
        writes.push(set(object, &hash, 0));
    }
    writes.extend(surplus(object, &old));
    let counted = status(object, new, &old);
    writes.extend(DEPLOYMENT.status(object, counted));
    // A new set is created with its first replicas.
    for write in &mut writes {
        if let Write::Create { body, .. } = write {
            body["metadata"]["name"] =
                format!("{}-{hash}", text(&object["metadata"]["name"])).into();
        }
    }
    writes
}

/// The old Pods end before new ones start.
fn recreate(object: &Value, new: Option<&Value>, old: &[&Value]) -> Vec<Write> {
    let left: usize = old
        .iter()
        .map(|it| number(&it["status"]["replicas"], 0))
        .sum();
    let running = old.iter().filter(|it| replicas(it) > 0);
    let mut writes: Vec<Write> = running.map(|it| scaled(it, 0)).collect();
    if left == 0 && writes.is_empty() {
        let wanted = number(&object["spec"]["replicas"], 1);
        writes.extend(grown(object, new, wanted));
    }
    writes
}

/// Scales the new set up within `maxSurge`, and the old ones down within `maxUnavailable`.
fn roll(object: &Value, new: Option<&Value>, old: &[&Value]) -> Vec<Write> {
    let wanted = number(&object["spec"]["replicas"], 1);
    let limits = &object["spec"]["strategy"]["rollingUpdate"];
    let surge = share(&limits["maxSurge"], wanted, true);
    let mut unavailable = share(&limits["maxUnavailable"], wanted, false);
    if surge == 0 && unavailable == 0 {
        unavailable = 1;
    }
    let of_new = new.map_or(0, replicas);
    let of_old: usize = old.iter().map(|it| replicas(it)).sum();
    let room = (wanted + surge).saturating_sub(of_new + of_old);
    let target = match of_new > wanted {
        true => wanted,
        false => wanted.min(of_new + room),
    };
    let mut writes = Vec::new();
    if new.is_none() || target != of_new {
        writes.extend(grown(object, new, target));
    }
    let available = |it: &Value| number(&it["status"]["availableReplicas"], 0);
    let least = wanted.saturating_sub(unavailable);
    let missing_of_new = of_new.saturating_sub(new.map_or(0, available));
    // Broken replicas are removed first: their removal makes nothing worse.
    let mut budget = (of_new + of_old).saturating_sub(least + missing_of_new);
    let all_available =
        new.map_or(0, available) + old.iter().map(|it| available(it)).sum::<usize>();
    let mut spare = all_available.saturating_sub(least);
    for set in old.iter().filter(|it| replicas(it) > 0) {
        let broken = replicas(set).saturating_sub(available(set)).min(budget);
        budget -= broken;
        let working = (replicas(set) - broken).min(spare).min(budget);
        spare -= working;
        budget -= working;
        if broken + working > 0 {
            writes.push(scaled(set, replicas(set) - broken - working));
        }
    }
    writes
}

fn grown(object: &Value, new: Option<&Value>, target: usize) -> Option<Write> {
    match new {
        Some(new) if replicas(new) == target => None,
        Some(new) => Some(scaled(new, target)),
        None => Some(set(object, &hash(&object["spec"]["template"]), target)),
    }
}

fn replicas(set: &Value) -> usize {
    number(&set["spec"]["replicas"], 1)
}

fn scaled(set: &Value, replicas: usize) -> Write {
    Write::Patch {
        path: REPLICA_SET.path(set),
        body: json!({"spec": {"replicas": replicas}}),
    }
}

/// Parses a number, or a percentage of the replicas; 25 % without one.
fn share(value: &Value, of: usize, up: bool) -> usize {
    if let Some(count) = value.as_u64() {
        return usize::try_from(count).unwrap_or_default();
    }
    let percent = value
        .as_str()
        .and_then(|it| it.strip_suffix('%')?.parse().ok());
    let all = of * percent.unwrap_or(25_usize);
    if up { all.div_ceil(100) } else { all / 100 }
}

/// Deletes old sets without Pods, beyond the number kept for a rollback.
fn surplus(object: &Value, old: &[&Value]) -> Vec<Write> {
    let kept = number(&object["spec"]["revisionHistoryLimit"], 10);
    let ended = old.iter().filter(|it| {
        replicas(it) == 0 && number(&it["status"]["replicas"], 0) == 0 && !is_ending(it)
    });
    let mut ended: Vec<&Value> = ended.copied().collect();
    ended.sort_by_key(|it| text(&it["metadata"]["creationTimestamp"]));
    let count = ended.len().saturating_sub(kept);
    let surplus = ended.into_iter().take(count);
    surplus.map(|it| REPLICA_SET.delete(it, None)).collect()
}

/// Returns the [`Write`] of a new ReplicaSet of the current template.
fn set(object: &Value, hash: &str, replicas: usize) -> Write {
    let mut template = object["spec"]["template"].clone();
    template["metadata"]["labels"][HASH] = hash.into();
    let mut selector = object["spec"]["selector"].clone();
    selector["matchLabels"][HASH] = hash.into();
    let body = json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {
            "namespace": object["metadata"]["namespace"],
            "labels": template["metadata"]["labels"],
            "ownerReferences": [DEPLOYMENT.owner(object)],
        },
        "spec": {"replicas": replicas, "selector": selector, "template": template},
    });
    Write::Create {
        collection: REPLICA_SET.beside(object),
        body,
    }
}

fn status(object: &Value, new: Option<&Value>, old: &[&Value]) -> Value {
    let wanted = number(&object["spec"]["replicas"], 1);
    let sum = |field: &str| -> usize {
        let all = new.iter().chain(old);
        all.map(|it| number(&it["status"][field], 0)).sum()
    };
    let (all, available) = (sum("replicas"), sum("availableReplicas"));
    let enough = available >= wanted;
    let (reason, message) = match enough {
        true => (
            "MinimumReplicasAvailable",
            "Deployment has minimum availability.",
        ),
        false => (
            "MinimumReplicasUnavailable",
            "Deployment does not have minimum availability.",
        ),
    };
    json!({
        "observedGeneration": object["metadata"]["generation"],
        "replicas": some(all),
        "updatedReplicas": some(new.map_or(0, |it| number(&it["status"]["replicas"], 0))),
        "readyReplicas": some(sum("readyReplicas")),
        "availableReplicas": some(available),
        "unavailableReplicas": some(wanted.max(all).saturating_sub(available)),
        "conditions": [
            condition(object, "Available", enough, reason, message),
            condition(object, "Progressing", true, "NewReplicaSetAvailable", "The ReplicaSet is up to date."),
        ],
    })
}

pub(super) fn replica_sets(world: &ObjectCache) -> Vec<Write> {
    let sets = world.replica_sets.iter().filter(|it| !is_ending(it));
    sets.flat_map(|it| replica_set(it, world)).collect()
}

fn replica_set(set: &Value, world: &ObjectCache) -> Vec<Write> {
    let mut pods: Vec<&Value> = world
        .pods_of(set)
        .filter(|pod| !is_ending(pod) && !has_ended(pod))
        .collect();
    let wanted = replicas(set);
    let mut writes = Vec::new();
    for _ in pods.len()..wanted {
        writes.push(REPLICA_SET.pod(set, Name::Generated, &[]));
    }
    // Pods that are not ready are removed first.
    pods.sort_by_key(|pod| holds(pod, "Ready"));
    let surplus = pods.len().saturating_sub(wanted);
    writes.extend(pods.iter().take(surplus).map(|pod| POD.delete(pod, None)));
    let ready = pods.iter().filter(|pod| holds(pod, "Ready")).count();
    let counted = json!({
        "replicas": pods.len(),
        "fullyLabeledReplicas": some(pods.len()),
        "readyReplicas": some(ready),
        "availableReplicas": some(ready),
        "observedGeneration": set["metadata"]["generation"],
    });
    writes.extend(REPLICA_SET.status(set, counted));
    writes
}
