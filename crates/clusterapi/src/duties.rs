//! Duties of one reconcile, independent of each other. A condition reports failures and waits, and the reconcile is
//! repeated for them.

use std::error::Error;

use api::conditions::{self, Reason, Status, Type, Verdict};
use api::k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use api::k8s_openapi::jiff::Timestamp;
use operator::retry::{Retry, When, is_conflict};
use operator::words::chain;
use tracing::warn;

/// Condition of the object, set from the first problem on. Upstream has no such condition.
pub(crate) const TYPE: Type = Type::Reconciled;

/// Failures and waits.
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
    /// Result of a duty; `None` after a failure.
    pub(crate) fn note<T>(&mut self, result: Result<T, impl Into<E>>) -> Option<T> {
        result.map_err(|error| self.failed.push(error.into())).ok()
    }

    /// Adds awaited changes, one sentence each.
    pub(crate) fn wait(&mut self, sentences: impl IntoIterator<Item = String>) {
        self.waiting.extend(sentences);
    }

    /// [`Condition`]; `before` are the present ones. A write conflict is repeated at once, and not reported.
    pub(crate) fn verdict(&self, before: &[Condition]) -> Option<Verdict> {
        let failed: Vec<_> = self.failed.iter().filter_map(reported).collect();
        let reason = if failed.is_empty() {
            Reason::Blocked
        } else {
            Reason::InternalError
        };
        let lines: Vec<_> = failed
            .into_iter()
            .chain(self.waiting.iter().cloned())
            .map(|line| format!("* {line}"))
            .collect();
        if lines.is_empty() {
            conditions::find(before, TYPE)?;
            return Some(Verdict::new(TYPE, true, Reason::Reconciled));
        }
        Some(Verdict::new(TYPE, false, reason).because(lines.join("\n")))
    }

    /// Sets the [`Condition`] in `list`. Returns true without a failure to report.
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

    /// First error for a retry, if a duty failed; the others are logged.
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

/// Text of an error for conditions; `None` for a write conflict, which is repeated at once.
pub(crate) fn reported<E: Error + 'static>(error: &E) -> Option<String> {
    (!is_conflict(error)).then(|| chain(error))
}

#[cfg(test)]
mod tests;
