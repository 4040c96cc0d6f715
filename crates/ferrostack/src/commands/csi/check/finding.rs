//! Findings: the problem, its place, and the advice.

use serde::Serialize;
use serde_json::json;

/// Severity of a [`Finding`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Level {
    /// A function fails, or will.
    Error,
    /// Everything works, but perhaps not as intended.
    Warning,
}

/// Problem.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) struct Finding {
    pub(super) level: Level,
    /// Object, such as `StorageClass/fast`, or `cloud.conf`.
    pub(super) object: String,
    /// Field, such as `parameters.type`; empty for the object as a whole.
    pub(super) field: String,
    /// Problem, with the cloud's own words after a response.
    pub(super) message: String,
    /// Next step.
    pub(super) advice: String,
}

impl Finding {
    pub(super) fn error(
        object: impl Into<String>,
        field: impl Into<String>,
        message: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self {
            level: Level::Error,
            object: object.into(),
            field: field.into(),
            message: message.into(),
            advice: advice.into(),
        }
    }

    pub(super) fn warning(
        object: impl Into<String>,
        field: impl Into<String>,
        message: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self {
            level: Level::Warning,
            ..Self::error(object, field, message, advice)
        }
    }
}

/// Number of [`Finding`]s of a level.
pub(super) fn count(findings: &[Finding], level: Level) -> usize {
    findings.iter().filter(|it| it.level == level).count()
}

/// Table of [`Finding`]s, with the advice below the problem, and a line with the sum.
pub(super) fn text(findings: &[Finding]) -> String {
    let header = ["LEVEL", "OBJECT", "FIELD", "WHAT IS WRONG, AND WHAT TO DO"];
    let mut rows = vec![header.map(str::to_owned)];
    for finding in findings {
        let level = match finding.level {
            Level::Error => "error",
            Level::Warning => "warning",
        };
        rows.push(terminal::cells([
            level.to_owned(),
            finding.object.clone(),
            finding.field.clone(),
            finding.message.clone(),
        ]));
        let advice = format!("> {}", finding.advice);
        rows.push(terminal::cells([
            String::new(),
            String::new(),
            String::new(),
            advice,
        ]));
    }
    let (errors, warnings) = (
        count(findings, Level::Error),
        count(findings, Level::Warning),
    );
    match findings.is_empty() {
        true => "Nothing is wrong.\n".to_owned(),
        false => format!(
            "{}{}, {}\n",
            terminal::align(&rows),
            counted(errors, "error"),
            counted(warnings, "warning")
        ),
    }
}

fn counted(count: usize, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    }
}

/// Findings as JSON.
pub(super) fn document(findings: &[Finding]) -> serde_json::Result<String> {
    terminal::json(&json!({
        "errors": count(findings, Level::Error),
        "warnings": count(findings, Level::Warning),
        "findings": findings,
    }))
}
