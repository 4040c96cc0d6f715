//! Restarted workloads, with the reasons.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;

use super::{Change, Observed, Plan, Restart, Verb};
use crate::desired::Graph;
use crate::object::{ObjectKind, Reference};

/// Workloads whose Pods are replaced.
pub(super) fn restarts(graph: &Graph, plan: &Plan, observed: &Observed<'_>) -> Vec<Restart> {
    let mut restarts = Vec::new();
    for action in plan.actions() {
        let workload = matches!(
            action.object.kind,
            ObjectKind::Deployment | ObjectKind::StatefulSet | ObjectKind::DaemonSet
        );
        if !workload || action.verb == Verb::Create {
            continue;
        }
        let mut causes = Vec::new();
        for change in &action.changes {
            if change.path.starts_with("spec.template") || action.verb == Verb::Replace {
                causes.extend(causes_of(change, graph, observed));
            }
        }
        if !causes.is_empty() {
            if action.object.kind == ObjectKind::DaemonSet {
                causes
                    .push("on each node when its Pod there is deleted, and not before".to_owned());
            }
            restarts.push(Restart {
                workload: action.object.clone(),
                causes,
            });
        }
    }
    restarts
}

fn causes_of(change: &Change, graph: &Graph, observed: &Observed<'_>) -> Vec<String> {
    let name = |value: &Option<Json>| value.as_ref().and_then(Json::as_str).map(str::to_owned);
    let names = name(&change.from).zip(name(&change.to));
    if let Some((from, to)) = names {
        if change.path.ends_with(".configMap.name") {
            let data = |object: &Json| object.get("data").cloned().unwrap_or_default();
            let reference = |name: String| Reference {
                kind: ObjectKind::ConfigMap,
                name,
            };
            let old = observed.get(&reference(from)).map(data);
            let to = reference(to);
            let new = graph
                .objects()
                .find(|(_, it)| *it.reference() == to)
                .map(|(_, it)| data(it.public()));
            let changed = options(&old.unwrap_or_default(), &new.unwrap_or_default());
            if !changed.is_empty() {
                return changed;
            }
        } else if change.path.ends_with(".secret.secretName") {
            return vec![format!("another password: {to}")];
        }
    }
    let text = |value: &Option<Json>| match value {
        None => "nothing".to_owned(),
        Some(Json::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    let (from, to) = (text(&change.from), text(&change.to));
    vec![format!("{}: {from} → {to}", change.path)]
}

/// Different options in the files of two ConfigMaps.
fn options(old: &Json, new: &Json) -> Vec<String> {
    let (old, new) = (parsed(old), parsed(new));
    let names: BTreeSet<_> = old.keys().chain(new.keys()).collect();
    let text = |values: Option<&Vec<String>>| {
        values.map_or_else(|| "not set".to_owned(), |values| values.join(", "))
    };
    names
        .into_iter()
        .filter(|name| old.get(*name) != new.get(*name))
        .map(|name| {
            let (from, to) = (text(old.get(name)), text(new.get(name)));
            let (section, option) = name;
            let section = match section.as_str() {
                "" => String::new(),
                section => format!("[{section}] "),
            };
            format!("{section}{option}: {from} → {to}")
        })
        .collect()
}

/// Options by section and name.
fn parsed(data: &Json) -> BTreeMap<(String, String), Vec<String>> {
    let mut options: BTreeMap<_, Vec<String>> = BTreeMap::new();
    for text in data.as_object().into_iter().flat_map(|data| data.values()) {
        let mut section = String::new();
        for line in text.as_str().unwrap_or_default().lines() {
            if let Some(name) = line.strip_prefix('[').and_then(|it| it.strip_suffix(']')) {
                section = name.to_owned();
            } else if !line.is_empty() {
                let (name, value) = line.split_once('=').unwrap_or((line, ""));
                let name = (section.clone(), name.trim().to_owned());
                options
                    .entry(name)
                    .or_default()
                    .push(value.trim().to_owned());
            }
        }
    }
    options
}
