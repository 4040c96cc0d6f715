//! A plan for people.

use std::fmt::Write;

use deployer::{Action, Change, Cloud, Plan, PlannedStep, Verb};
use serde_json::Value;

/// The longest value that is printed whole.
const LONGEST: usize = 60;

/// The plan: steps in order, what is deleted, what restarts, and the sum.
pub(super) fn of(cloud: &Cloud, plan: &Plan) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = write(&mut text, cloud, plan);
    text
}

fn write(text: &mut String, cloud: &Cloud, plan: &Plan) -> std::fmt::Result {
    let (name, namespace) = (&cloud.name, &cloud.namespace);
    let release = cloud.parameters.release;
    writeln!(
        text,
        "Cloud {name} in namespace {namespace}, release {release}"
    )?;
    if plan.is_empty() {
        return writeln!(text, "Nothing to do. {NOT_COMPARED}");
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
        "\n{} to create, {} to change, {} to replace, {} to delete, {} to restart. {NOT_COMPARED}",
        count(Verb::Create),
        count(Verb::Change),
        count(Verb::Replace),
        plan.deletions.len(),
        plan.restarts.len()
    )
}

const NOT_COMPARED: &str = "What RabbitMQ and Keystone hold is not compared.";

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
    for write in &step.writes {
        writeln!(text, "  ? {write}")?;
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

/// A value on one line.
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
