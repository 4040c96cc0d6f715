//! A plan for people.

use std::fmt::Write;

use deployer::{Action, Change, Cloud, Plan, PlannedStep, Verb};
use serde_json::Value;

/// Longest value printed whole.
const LONGEST: usize = 60;

/// [`Plan`] as text: steps in order, deletions, restarts, and the sum. `apply` is the command to apply the plan.
pub(super) fn of(cloud: &Cloud, plan: &Plan, digest: &str, apply: &str) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = write(&mut text, cloud, plan, (digest, apply));
    text
}

fn write(
    text: &mut String,
    cloud: &Cloud,
    plan: &Plan,
    (digest, apply): (&str, &str),
) -> std::fmt::Result {
    let (name, namespace) = (&cloud.name, &cloud.namespace);
    let release = cloud.parameters.release;
    writeln!(
        text,
        "Cloud {name} in namespace {namespace}, release {release}"
    )?;
    let unknown: Vec<&PlannedStep> = plan
        .steps
        .iter()
        .filter(|it| it.unknown.is_some())
        .collect();
    if plan.is_empty() {
        writeln!(
            text,
            "Nothing to do{}",
            if unknown.is_empty() {
                "."
            } else {
                " but, perhaps:"
            }
        )?;
        return unknown.iter().try_for_each(|it| not_known(text, it));
    }
    for planned in &plan.steps {
        if !planned.actions.is_empty() || !planned.writes.is_empty() {
            step(text, planned)?;
        }
    }
    if !plan.deletions.is_empty() {
        writeln!(text, "\nafterwards, what is no longer wanted")?;
        for object in &plan.deletions {
            writeln!(text, "  - {object}")?;
        }
    }
    if !plan.kept.is_empty() {
        writeln!(text, "\nkept, though not wanted")?;
        for object in &plan.kept {
            writeln!(text, "  = {object}")?;
        }
    }
    if !plan.restarts.is_empty() {
        writeln!(text, "\nrestarts")?;
        for restart in &plan.restarts {
            writeln!(text, "  {}", restart.workload)?;
            for cause in &restart.causes {
                writeln!(text, "      {cause}")?;
            }
        }
    }
    let count = |verb| plan.actions().filter(|it| it.verb == verb).count();
    writeln!(
        text,
        "\n{} to create, {} to change, {} to replace, {} to delete, {} to restart; {} to write to RabbitMQ and Keystone",
        count(Verb::Create),
        count(Verb::Change),
        count(Verb::Replace),
        plan.deletions.len(),
        plan.restarts.len(),
        plan.steps.iter().map(|it| it.writes.len()).sum::<usize>(),
    )?;
    unknown.iter().try_for_each(|it| not_known(text, it))?;
    writeln!(
        text,
        "digest {digest}: `{apply}` does this, unless something has changed"
    )
}

fn not_known(text: &mut String, step: &PlannedStep) -> std::fmt::Result {
    let why = step.unknown.as_deref().unwrap_or_default();
    writeln!(
        text,
        "What {} would write is not compared with what is there: {why}",
        step.name
    )
}

fn step(text: &mut String, step: &PlannedStep) -> std::fmt::Result {
    match step.needs.as_slice() {
        [] => writeln!(text, "\n{}", step.name)?,
        needs => writeln!(text, "\n{}, after {}", step.name, needs.join(", "))?,
    }
    for reason in &step.waits {
        writeln!(text, "  waits for {reason}")?;
    }
    for done in &step.actions {
        action(text, done)?;
    }
    let sign = if step.unknown.is_some() { "?" } else { "*" };
    for write in &step.writes {
        writeln!(text, "  {sign} {write}")?;
    }
    Ok(())
}

fn action(text: &mut String, action: &Action) -> std::fmt::Result {
    let sign = match action.verb {
        Verb::Create => "+",
        Verb::Change => "~",
        Verb::Replace => "-/+",
    };
    writeln!(text, "  {sign} {}", action.object)?;
    for Change { path, from, to } in &action.changes {
        match (from, to) {
            (Some(from), Some(to)) => {
                writeln!(text, "      {path}: {} → {}", short(from), short(to))?
            }
            (None, Some(to)) => writeln!(text, "      {path}: + {}", short(to))?,
            (Some(from), None) => writeln!(text, "      {path}: - {}", short(from))?,
            (None, None) => {}
        }
    }
    Ok(())
}

/// [`Value`] on one line.
fn short(value: &Value) -> String {
    let text = match value {
        Value::String(text) if !text.contains('\n') => text.clone(),
        other => other.to_string(),
    };
    if text.chars().count() <= LONGEST {
        return text;
    }
    let begin: String = text.chars().take(LONGEST).collect();
    format!("{begin}…")
}
