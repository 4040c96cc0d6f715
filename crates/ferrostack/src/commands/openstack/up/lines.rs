//! Choice of the changes of steps that are printed as text.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use api::openstack::v1alpha1::{Phase, StepStatus};

use crate::commands::openstack::status;

/// Time a step has to wait for the same object before the wait is printed.
const STANDING: Duration = Duration::from_secs(5);

/// State of each step. The end and the failure of a step are printed at once; a wait after some time; and a wait for
/// other steps never, because the other steps print the reason.
#[derive(Debug, Default)]
pub(super) struct Lines {
    steps: BTreeMap<String, StepLine>,
}

#[derive(Debug)]
struct StepLine {
    phase: Phase,
    message: String,
    since: Instant,
    is_printed: bool,
}

impl Lines {
    /// Lines that are due.
    pub(super) fn due(&mut self, steps: &[StepStatus], now: Instant) -> Vec<String> {
        let is_first = self.steps.is_empty();
        let ready = steps.iter().filter(|it| it.phase == Phase::Ready).count();
        let mut lines = Vec::new();
        if is_first && ready > 0 {
            lines.push(format!("{ready} of {} steps are ready", steps.len()));
        }
        for step in steps {
            let known = self.seen(step, now, is_first);
            let is_due = match step.phase {
                Phase::Ready | Phase::Failed => true,
                Phase::Progressing => now.duration_since(known.since) >= STANDING,
                Phase::Waiting => false,
            };
            if is_due && !known.is_printed {
                known.is_printed = true;
                lines.push(status::line(step));
            }
        }
        lines
    }

    fn seen(&mut self, step: &StepStatus, now: Instant, is_first: bool) -> &mut StepLine {
        let fresh = || StepLine {
            phase: step.phase,
            message: step.message.clone(),
            since: now,
            is_printed: is_first && step.phase == Phase::Ready,
        };
        let known = self.steps.entry(step.name.clone()).or_insert_with(fresh);
        if known.phase != step.phase || known.message != step.message {
            *known = fresh();
        }
        known
    }

    /// Forgets all steps of a deleted cloud.
    pub(super) fn clear(&mut self) {
        self.steps.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(name: &str, phase: Phase, message: &str) -> StepStatus {
        StepStatus {
            name: name.to_owned(),
            phase,
            message: message.to_owned(),
            ..StepStatus::default()
        }
    }

    #[test]
    fn what_passes_quickly_is_not_printed() {
        let (mut lines, start) = (Lines::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut of = |seconds, phase, message| {
            let steps = [
                step("mariadb", phase, message),
                step("nova", Phase::Waiting, "waits for mariadb"),
            ];
            let words = |line: String| line.split_whitespace().collect::<Vec<_>>().join(" ");
            let due = lines.due(&steps, at(seconds)).into_iter();
            due.map(words).collect::<Vec<_>>()
        };
        let none: [&str; 0] = [];
        assert_eq!(of(0, Phase::Progressing, "1 object to write"), none);
        assert_eq!(of(4, Phase::Progressing, "has 0 of 1 replicas"), none);
        assert_eq!(of(8, Phase::Progressing, "has 0 of 1 replicas"), none);
        let standing = of(9, Phase::Progressing, "has 0 of 1 replicas");
        assert_eq!(standing, ["mariadb has 0 of 1 replicas"]);
        assert_eq!(of(20, Phase::Progressing, "has 0 of 1 replicas"), none);
        assert_eq!(of(21, Phase::Failed, "x"), ["mariadb failed: x"]);
        assert_eq!(of(22, Phase::Ready, ""), ["mariadb ready"]);
        assert_eq!(of(23, Phase::Ready, ""), none);
    }

    #[test]
    fn steps_that_were_ready_before_are_counted() {
        let mut lines = Lines::default();
        let steps = [
            step("mariadb", Phase::Ready, ""),
            step("nova", Phase::Failed, "x"),
        ];
        let due = lines.due(&steps, Instant::now());
        assert_eq!(due[0], "1 of 2 steps are ready");
        assert_eq!(due.len(), 2, "{due:?}");
        lines.clear();
        assert_eq!(lines.due(&steps, Instant::now()), due);
    }
}
