//! The duties of one reconcile. Each is tried, whatever becomes of the others; what failed or waits is in a condition, and
//! the reconcile is repeated for it.

use std::error::Error;

use api::conditions::{self, Status, Verdict};
use api::k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use api::k8s_openapi::jiff::Timestamp;
use operator::retry::{Retry, When, is_conflict};
use operator::words::chain;
use tracing::warn;

/// The condition of the object. It is there from the first problem on: upstream has none.
pub(crate) const TYPE: &str = "Reconciled";

/// What failed and what waits.
#[derive(Debug)]
pub(crate) struct Duties<E> {
    failed: Vec<E>,
    waiting: Vec<String>,
}

impl<E> Default for Duties<E> {
    fn default() -> Self {
        Self {
            failed: Vec::new(),
            waiting: Vec::new(),
        }
    }
}

impl<E: Error + Retry + 'static> Duties<E> {
    /// The result of a duty; `None` if it failed.
    pub(crate) fn note<T>(&mut self, result: Result<T, impl Into<E>>) -> Option<T> {
        result.map_err(|error| self.failed.push(error.into())).ok()
    }

    /// What a duty waits for, one sentence each.
    pub(crate) fn wait(&mut self, sentences: impl IntoIterator<Item = String>) {
        self.waiting.extend(sentences);
    }

    /// The condition; `before` are those until now. A write conflict is repeated at once, and not reported.
    pub(crate) fn verdict(&self, before: &[Condition]) -> Option<Verdict> {
        let failed: Vec<_> = self.failed.iter().filter_map(reported).collect();
        let reason = if failed.is_empty() {
            "Blocked"
        } else {
            "InternalError"
        };
        let lines: Vec<_> = failed
            .into_iter()
            .chain(self.waiting.iter().cloned())
            .map(|line| format!("* {line}"))
            .collect();
        if lines.is_empty() {
            conditions::find(before, TYPE)?;
            return Some(Verdict::new(TYPE, true, "Reconciled"));
        }
        Some(Verdict::new(TYPE, false, reason).because(lines.join("\n")))
    }

    /// Sets the condition in `list`. Returns whether no failure was to be reported.
    pub(crate) fn report(
        &self,
        list: &mut Vec<Condition>,
        generation: Option<i64>,
        now: Timestamp,
    ) -> bool {
        let Some(verdict) = self.verdict(list) else {
            return true;
        };
        let holds = verdict.status == Status::True;
        conditions::set(list, verdict, generation, now);
        holds
    }

    /// The error that is to be retried first, if a duty failed; the others are logged.
    pub(crate) fn done(self) -> Result<(), E> {
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

/// The words of an error in conditions; `None` for a write conflict, which is repeated at once.
pub(crate) fn reported<E: Error + 'static>(error: &E) -> Option<String> {
    (!is_conflict(error)).then(|| chain(error))
}

#[cfg(test)]
mod tests;
