//! The duties of one reconcile. Each is tried, whatever becomes of the others; what failed or waits is in a condition, and
//! the reconcile is repeated for it.

use api::conditions::{self, Verdict};
use api::k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use operator::retry::{Retry, When, is_conflict};
use operator::words::chain;
use tracing::warn;

use super::ControlPlaneError;

/// The condition of the control plane. It is there from the first problem on: upstream has none.
pub(super) const TYPE: &str = "Reconciled";

/// What failed and what waits.
#[derive(Debug, Default)]
pub(super) struct Duties {
    failed: Vec<ControlPlaneError>,
    waiting: Vec<String>,
}

impl Duties {
    /// The result of a duty; `None` if it failed.
    pub(super) fn note<T>(&mut self, result: Result<T, ControlPlaneError>) -> Option<T> {
        result.map_err(|error| self.failed.push(error)).ok()
    }

    /// What a duty waits for, one sentence each.
    pub(super) fn wait(&mut self, sentences: impl IntoIterator<Item = String>) {
        self.waiting.extend(sentences);
    }

    /// The condition; `before` are those until now. A write conflict is repeated at once, and not reported.
    pub(super) fn verdict(&self, before: &[Condition]) -> Option<Verdict> {
        let failed = self.failed.iter().filter(|error| !is_conflict(*error));
        let failed = failed.map(|error| chain(error));
        let (failed, waiting): (Vec<_>, _) = (failed.collect(), self.waiting.iter().cloned());
        let reason = if failed.is_empty() {
            "Blocked"
        } else {
            "InternalError"
        };
        let lines: Vec<_> = failed
            .into_iter()
            .chain(waiting)
            .map(|line| format!("* {line}"))
            .collect();
        if lines.is_empty() {
            conditions::find(before, TYPE)?;
            return Some(Verdict::new(TYPE, true, "Reconciled"));
        }
        Some(Verdict::new(TYPE, false, reason).because(lines.join("\n")))
    }

    /// The error that is to be retried first, if a duty failed; the others are logged.
    pub(super) fn done(self) -> Result<(), ControlPlaneError> {
        let mut failed = self.failed;
        failed.sort_by_key(|error| match error.when() {
            When::Backoff | When::After(_) => 0,
            When::Now => 1,
            When::OnChange => 2,
        });
        let mut failed = failed.into_iter();
        let first = failed.next();
        for error in failed.filter(|error| !is_conflict(error)) {
            warn!("{}", chain(&error));
        }
        first.map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests;
