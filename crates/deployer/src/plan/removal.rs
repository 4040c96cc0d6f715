//! Unwanted objects of this cloud.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;

use super::{Observed, label};
use crate::desired::{CONFIGURES, Graph, STEP};
use crate::held::{SECRETS, UID};
use crate::object::{ObjectKind, Reference};

/// Deleted objects, in the reverse order of the steps, and kept ones.
pub(super) fn removed(graph: &Graph, observed: &Observed<'_>) -> (Vec<Reference>, Vec<Reference>) {
    let desired: BTreeSet<&Reference> = graph.objects().map(|(_, it)| it.reference()).collect();
    let unwanted = observed.objects.iter().filter(|(reference, object)| {
        label(object, UID) == Some(&graph.uid) && !desired.contains(reference)
    });
    let unwanted: Vec<(&Reference, &Json)> = unwanted.map(|(it, object)| (it, *object)).collect();
    let last = last_configuration(graph, &unwanted);
    let behind = behind(graph, observed);
    let (kept, mut deleted): (Vec<_>, Vec<_>) =
        unwanted.into_iter().partition(|(reference, object)| {
            let file = label(object, CONFIGURES);
            is_data(reference)
                || last.contains(reference)
                || file.is_some_and(|it| behind.contains(&(reference.kind, it)))
        });
    let ranks: BTreeMap<&str, usize> = graph
        .steps
        .iter()
        .enumerate()
        .map(|(rank, step)| (step.name.as_str(), rank))
        .collect();
    let rank = |(reference, object): &(&Reference, &Json)| {
        // A step that is gone was one of the last.
        let step = label(object, STEP).and_then(|step| ranks.get(step));
        (step.copied().unwrap_or(usize::MAX), (*reference).clone())
    };
    deleted.sort_by_key(|it| std::cmp::Reverse(rank(it)));
    let references =
        |all: Vec<(&Reference, &Json)>| all.into_iter().map(|(it, _)| it.clone()).collect();
    (references(deleted), references(kept))
}

/// True if an object has data that cannot be made again.
pub(super) fn is_data(reference: &Reference) -> bool {
    match reference.kind {
        ObjectKind::PersistentVolumeClaim => true,
        ObjectKind::Secret => SECRETS.iter().any(|(name, _)| *name == reference.name),
        _ => false,
    }
}

/// Newest former content of each desired configuration file: ending Pods may still mount the file, and a return to the
/// former configuration needs it.
fn last_configuration<'a>(
    graph: &Graph,
    unwanted: &[(&'a Reference, &Json)],
) -> BTreeSet<&'a Reference> {
    let configures = |object: &Json| label(object, CONFIGURES).map(str::to_owned);
    let desired: BTreeSet<(ObjectKind, String)> = graph
        .objects()
        .filter_map(|(_, it)| Some((it.reference().kind, configures(it.public())?)))
        .collect();
    let mut newest: BTreeMap<(ObjectKind, String), (&str, &Reference)> = BTreeMap::new();
    for (reference, object) in unwanted {
        let Some(file) = configures(object).map(|file| (reference.kind, file)) else {
            continue;
        };
        let time = object.pointer("/metadata/creationTimestamp");
        let entry = (time.and_then(Json::as_str).unwrap_or_default(), *reference);
        if desired.contains(&file) && newest.get(&file).is_none_or(|it| *it < entry) {
            newest.insert(file, entry);
        }
    }
    newest.into_values().map(|(_, it)| it).collect()
}

/// Configuration files of DaemonSets with Pods of a former template, replaced only when a person deletes the Pods: such
/// Pods may have any of the former contents.
fn behind<'a>(graph: &'a Graph, observed: &Observed<'_>) -> BTreeSet<(ObjectKind, &'a str)> {
    let count = |there: &Json, field: &str| there["status"][field].as_u64().unwrap_or_default();
    let behind = graph.objects().filter(|(_, object)| {
        let there = observed.get(object.reference());
        object.reference().kind == ObjectKind::DaemonSet
            && there.is_some_and(|it| {
                count(it, "updatedNumberScheduled") < count(it, "currentNumberScheduled")
            })
    });
    let behind: Vec<String> = behind.map(|(_, it)| it.public().to_string()).collect();
    let files = graph.objects().filter_map(|(_, object)| {
        let name = Json::from(object.reference().name.as_str()).to_string();
        let is_mounted = behind.iter().any(|it| it.contains(&name));
        let file = label(object.public(), CONFIGURES).filter(|_| is_mounted)?;
        Some((object.reference().kind, file))
    });
    files.collect()
}

/// Objects left of a cloud with this uid, in groups to delete one after the other: first the steps without dependents,
/// then the steps needed by the first group alone, and so on; with `purge`, volumes, passwords and keys at the end.
/// Passwords come last, because their Secret has the uid.
pub fn removal(graph: &Graph, uid: &str, objects: &[Json], purge: bool) -> Vec<Vec<Reference>> {
    let depths = depths(graph);
    let mut groups: BTreeMap<Option<usize>, Vec<Reference>> = BTreeMap::new();
    let (mut volumes, mut keys) = (Vec::new(), Vec::new());
    for object in objects.iter().filter(|it| label(it, UID) == Some(uid)) {
        let Some(reference) = Reference::from_object(object) else {
            continue;
        };
        if is_data(&reference) {
            match reference.kind {
                ObjectKind::Secret => keys.push(reference),
                _ => volumes.push(reference),
            }
            continue;
        }
        // A step that is gone was one of the last: `None` comes first.
        let depth = label(object, STEP).and_then(|step| depths.get(step).copied());
        groups.entry(depth).or_default().push(reference);
    }
    let mut all: Vec<Vec<Reference>> = groups.into_values().collect();
    if purge {
        all.extend([volumes, keys]);
    }
    all.retain(|group| !group.is_empty());
    all
}

/// Length of the longest chain of dependents of each step: 0 if no step needs it.
fn depths(graph: &Graph) -> BTreeMap<&str, usize> {
    let mut depths: BTreeMap<&str, usize> = BTreeMap::new();
    // Each step comes after those that it needs.
    for step in graph.steps.iter().rev() {
        let depth = *depths.entry(&step.name).or_default();
        for need in &step.needs {
            let of_need = depths.entry(need).or_default();
            *of_need = (*of_need).max(depth + 1);
        }
    }
    depths
}
