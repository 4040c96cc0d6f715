//! Output of the audit, as text and as JSON.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::delete::Outcome;
use super::judge::{Class, Finding};

/// [`Outcome`]s of orphans, by id.
pub(super) type Outcomes = BTreeMap<String, Outcome>;

/// [`Finding`]s, each class under a heading, and a line with the sums.
pub(super) fn table(findings: &[Finding], unasked: &[String]) -> String {
    let mut text = String::new();
    for (class, title) in [
        (Class::Orphan, "Marked, and the owner is gone"),
        (
            Class::Unmarked,
            "Named as ours are, and not marked: never deleted",
        ),
        (Class::Drift, "Named by an object, and not there"),
    ] {
        let of_class = || findings.iter().filter(|it| it.class == class);
        if of_class().next().is_none() {
            continue;
        }
        let header = ["KIND", "NAME", "ID", "REASON", "KEPT"];
        let mut rows = vec![header.map(str::to_owned)];
        rows.extend(of_class().map(|it| {
            terminal::cells([
                it.form.name().to_owned(),
                it.name.clone(),
                it.id.clone(),
                it.reason.clone(),
                it.kept.clone().unwrap_or_default(),
            ])
        }));
        text.push_str(&format!("{title}:\n{}\n", terminal::align(&rows)));
    }
    for line in unasked {
        let [line] = terminal::cells([line.clone()]);
        text.push_str(&format!("{line}\n"));
    }
    let count = |class| findings.iter().filter(|it| it.class == class).count();
    let deletable = super::deletable(findings).count();
    text.push_str(&match findings.len() {
        0 => "Nothing is found.\n".to_owned(),
        all => format!(
            "{all} findings: {} without an owner, of which {deletable} can be deleted; {} without a mark; {} missing\n",
            count(Class::Orphan),
            count(Class::Unmarked),
            count(Class::Drift),
        ),
    });
    text
}

/// Findings as JSON, with [`Outcomes`].
pub(super) fn document(
    cloud: &str,
    findings: &[Finding],
    unasked: &[String],
    outcomes: &Outcomes,
) -> anyhow::Result<String> {
    let findings = findings.iter().map(|it| {
        let mut document = json!({
            "class": it.class,
            "kind": it.form,
            "id": it.id,
            "name": it.name,
            "reason": it.reason,
            "kept": it.kept,
        });
        if let Some(outcome) = outcomes.get(&it.id) {
            let (word, error) = match outcome {
                Outcome::Deleted => ("deleted", Value::Null),
                Outcome::Kept => ("kept", Value::Null),
                Outcome::Failed(words) => ("failed", json!(words)),
            };
            document["outcome"] = json!(word);
            document["error"] = error;
        }
        document
    });
    let findings: Vec<Value> = findings.collect();
    let document = json!({"cloud": cloud, "findings": findings, "unasked": unasked});
    Ok(terminal::json(&document)?)
}

/// [`Outcome`] of an orphan, on one line.
pub(super) fn line(finding: &Finding, outcome: &Outcome) -> String {
    let result = match outcome {
        Outcome::Deleted => "deleted".to_owned(),
        Outcome::Kept => "kept: it has an owner now".to_owned(),
        Outcome::Failed(words) => format!("failed: {words}"),
    };
    let (form, name, id) = (finding.form.name(), &finding.name, &finding.id);
    let [line] = terminal::cells([format!("{form} {name} ({id}): {result}")]);
    format!("{line}\n")
}
