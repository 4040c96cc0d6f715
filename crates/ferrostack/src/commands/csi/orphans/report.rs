//! Output of the command.

use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use super::delete::Outcome;
use super::judge::{age, created};
use super::thing::Thing;

/// Orphan, with the reason if kept.
#[derive(Clone, Debug)]
pub(super) struct Orphan {
    pub(super) thing: Thing,
    pub(super) kept: Option<String>,
}

/// Table of [`Orphan`]s, and a line with the sum.
pub(super) fn table(orphans: &[Orphan], now: Timestamp) -> String {
    if orphans.is_empty() {
        return "There are no orphans.\n".to_owned();
    }
    let has_clouds = orphans.iter().any(|it| !it.thing.cloud.is_empty());
    let cloud = if has_clouds { "CLOUD" } else { "" };
    let header = [
        cloud, "KIND", "NAME", "ID", "SIZE", "AGE", "STATUS", "CLAIM", "KEPT",
    ];
    let mut rows = vec![header.map(str::to_owned)];
    for Orphan { thing, kept } in orphans {
        let created = created(&thing.created_at).map(|it| it.to_string());
        rows.push(terminal::cells([
            thing.cloud.clone(),
            thing.form.name().to_owned(),
            thing.name.clone(),
            thing.id.clone(),
            format!("{} GiB", thing.size),
            terminal::age(&created.unwrap_or_default(), now),
            thing.status.clone(),
            claim(thing).unwrap_or_default(),
            kept.clone().unwrap_or_default(),
        ]));
    }
    let deletable: Vec<&Orphan> = orphans.iter().filter(|it| it.kept.is_none()).collect();
    format!(
        "{}{} orphans with {} GiB; {} of them with {} GiB can be deleted\n",
        terminal::align(&rows),
        orphans.len(),
        gib(orphans.iter()),
        deletable.len(),
        gib(deletable.iter().copied()),
    )
}

pub(super) fn gib<'a>(orphans: impl Iterator<Item = &'a Orphan>) -> i64 {
    orphans.map(|it| it.thing.size).sum()
}

/// Claim or VolumeSnapshot for which the [`Thing`] was created.
fn claim(thing: &Thing) -> Option<String> {
    let part = |key: &str| thing.metadata.get(&format!("csi.storage.k8s.io/{key}"));
    let of = |kind: &str| {
        let (namespace, name) = (
            part(&format!("{kind}/namespace"))?,
            part(&format!("{kind}/name"))?,
        );
        Some(format!("{namespace}/{name}"))
    };
    of("pvc").or_else(|| of("volumesnapshot"))
}

/// [`Orphan`] as JSON, with its [`Outcome`].
pub(super) fn document(orphan: &Orphan, outcome: Option<&Outcome>, now: Timestamp) -> Value {
    let thing = &orphan.thing;
    let mut document = json!({
        "cloud": thing.cloud,
        "kind": thing.form,
        "id": thing.id,
        "name": thing.name,
        "sizeGiB": thing.size,
        "status": thing.status,
        "createdAt": created(&thing.created_at).map(|it| it.to_string()),
        "ageSeconds": age(&thing.created_at, now).map(|it| it.as_secs()),
        "claim": claim(thing),
        "kept": orphan.kept,
    });
    match outcome {
        None => {}
        Some(Outcome::Deleted | Outcome::Gone) => document["outcome"] = json!("deleted"),
        Some(Outcome::Kept(reason)) => {
            document["outcome"] = json!("kept");
            document["kept"] = json!(reason);
        }
        Some(Outcome::Failed(words)) => {
            document["outcome"] = json!("failed");
            document["error"] = json!(words);
        }
    }
    document
}

/// [`Outcome`] for an orphan, on one line.
pub(super) fn line(thing: &Thing, outcome: &Outcome) -> String {
    let (form, name, id) = (thing.form.name(), &thing.name, &thing.id);
    let result = match outcome {
        Outcome::Deleted => "deleted".to_owned(),
        Outcome::Gone => "gone already".to_owned(),
        Outcome::Kept(reason) => format!("kept: {reason}"),
        Outcome::Failed(words) => format!("failed: {words}"),
    };
    let [line] = terminal::cells([format!("{form} {name} ({id}): {result}")]);
    format!("{line}\n")
}
