//! Status of an OpenStack object. Pure, except for the time of transitions.

use api::conditions::{self, Status, Verdict};
use api::openstack::conditions::{Reason, Type};
use api::openstack::v1alpha1::{OpenStack, OpenStackStatus, Phase, StepStatus};
use deployer::drain::Summary;
use deployer::{Credentials, Progress, Reference, State};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::Timestamp;

use crate::record::{self, Entry};

/// Findings of a reconcile.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    /// The parameters are rejected.
    Invalid(String),
    /// The cloud is paused.
    Paused,
    /// The namespace holds objects of another owner.
    Conflict(String),
    /// The steps.
    Progress {
        /// Uid of the cloud, once stored.
        uid: Option<String>,
        /// Release, and phase of an upgrade.
        release: Entry,
        /// [`Progress`] of the steps.
        progress: Progress,
        /// Message of the API server for a rejected write.
        rejection: Option<String>,
        /// Fault of the given certificate; the edge serves the last good one.
        unusable: Option<String>,
        /// Drains of compute nodes; `None` in a cloud without guards.
        drained: Option<Box<Summary>>,
    },
}

/// Progress with all passwords masked: messages quote the ends of logs.
pub(crate) fn masked(mut progress: Progress, held: &Credentials) -> Progress {
    for (_, state) in &mut progress.steps {
        match state {
            State::Waiting(text)
            | State::Progressing(text)
            | State::Failed(text)
            | State::Conflict(text) => *text = held.masked(text),
            State::Ready => {}
        }
    }
    progress
}

/// [`OpenStackStatus`] after a reconcile.
pub(crate) fn next(object: &OpenStack, outcome: &Outcome) -> OpenStackStatus {
    let now = Timestamp::now();
    let generation = object.metadata.generation;
    let mut status = object.status.clone().unwrap_or_default();
    status.observed_generation = generation;
    let valid = !matches!(outcome, Outcome::Invalid(_));
    let mut verdicts = vec![
        Verdict::new(
            Type::Paused,
            matches!(outcome, Outcome::Paused),
            paused(outcome),
        ),
        match outcome {
            Outcome::Invalid(problem) => {
                Verdict::new(Type::ConfigurationValid, false, Reason::Rejected).because(problem)
            }
            _ => Verdict::new(Type::ConfigurationValid, valid, Reason::Accepted),
        },
    ];
    match outcome {
        Outcome::Invalid(problem) => {
            verdicts.push(
                Verdict::new(Type::Ready, false, Reason::ConfigurationInvalid).because(problem),
            );
        }
        // The last observation stays.
        Outcome::Paused => {}
        Outcome::Conflict(problem) => {
            verdicts.push(Verdict::new(Type::Ready, false, Reason::Conflict).because(problem));
        }
        Outcome::Progress {
            uid,
            release,
            progress,
            rejection,
            unusable,
            drained,
        } => {
            let before = status.release.as_ref();
            status.release = Some(record::next(before, release, now));
            status.uid = status.uid.or_else(|| uid.clone());
            status.steps = steps(&status.steps, progress, now);
            verdicts.push(tasks(progress));
            verdicts.push(accounts(progress));
            match drained {
                Some(summary) => {
                    let reason = Reason::parse(summary.reason).unwrap_or(Reason::Draining);
                    let verdict = Verdict::new(Type::NodesDrained, summary.is_true, reason);
                    verdicts.push(verdict.because(&summary.message));
                }
                None => status
                    .conditions
                    .retain(|it| it.type_ != Type::NodesDrained),
            }
            verdicts.push(match (rejection, unusable) {
                (Some(why), _) => {
                    Verdict::new(Type::Ready, false, Reason::WriteRejected).because(why)
                }
                (None, Some(why)) => {
                    Verdict::new(Type::Ready, false, Reason::CertificateUnusable).because(why)
                }
                (None, None) => match release.unfinished() {
                    Some(why) if progress.is_ready() => {
                        Verdict::new(Type::Ready, false, Reason::Progressing).because(why)
                    }
                    _ => ready(progress),
                },
            });
        }
    }
    for verdict in verdicts {
        conditions::set(&mut status.conditions, verdict, generation, now);
    }
    status
}

fn paused(outcome: &Outcome) -> Reason {
    match outcome {
        Outcome::Paused => Reason::Paused,
        _ => Reason::NotPaused,
    }
}

/// Steps, each with its start and its duration.
fn steps(before: &[StepStatus], progress: &Progress, now: Timestamp) -> Vec<StepStatus> {
    let step = |(name, state): &(String, State)| {
        let phase = match state {
            State::Waiting(_) => Phase::Waiting,
            State::Progressing(_) => Phase::Progressing,
            State::Failed(_) | State::Conflict(_) => Phase::Failed,
            State::Ready => Phase::Ready,
        };
        let was = before.iter().find(|it| it.name == *name);
        let ended = |phase: Phase| phase == Phase::Ready;
        let (mut started, mut seconds) = match was {
            Some(was) if !ended(was.phase) || ended(phase) => (was.started.clone(), was.seconds),
            _ => (None, None),
        };
        if phase != Phase::Waiting && started.is_none() {
            started = Some(Time(now));
        }
        if phase == Phase::Ready && seconds.is_none() {
            let since = started
                .as_ref()
                .map(|it| now.duration_since(it.0).as_secs());
            seconds = since.map(|it| it.max(0));
        }
        StepStatus {
            name: name.clone(),
            phase,
            message: state.message().to_owned(),
            started,
            seconds,
        }
    };
    progress.steps.iter().map(step).collect()
}

fn tasks(progress: &Progress) -> Verdict {
    let failed = progress
        .steps
        .iter()
        .filter_map(|(name, state)| match state {
            State::Failed(why) => Some(format!("{name}: {why}")),
            _ => None,
        });
    let failed: Vec<String> = failed.collect();
    match failed.as_slice() {
        [] => Verdict::new(Type::TasksSucceeded, true, Reason::NoneFailed),
        all => {
            Verdict::new(Type::TasksSucceeded, false, Reason::TaskFailed).because(all.join("; "))
        }
    }
}

fn accounts(progress: &Progress) -> Verdict {
    let asked = |name: &String| progress.answering.contains(name);
    let mut asked = progress.steps.iter().filter(|(name, _)| asked(name));
    let left: Vec<&State> = asked
        .clone()
        .map(|(_, state)| state)
        .filter(|state| !state.is_done())
        .collect();
    let words: Vec<&str> = left.iter().map(|state| state.message()).collect();
    let conflict = left.iter().any(|it| matches!(it, State::Conflict(_)));
    let reason = match (conflict, left.is_empty()) {
        (true, _) => Reason::Conflict,
        (false, false) => Reason::NotWritten,
        // Errors of other stores are reported once the stores can be asked.
        (false, true) if asked.next().is_none() => {
            return Verdict::new(Type::AccountsWritten, Status::Unknown, Reason::NotYet);
        }
        (false, true) => return Verdict::new(Type::AccountsWritten, true, Reason::Written),
    };
    Verdict::new(Type::AccountsWritten, false, reason).because(words.join("; "))
}

fn ready(progress: &Progress) -> Verdict {
    let (all, left) = (
        progress.steps.len(),
        progress.steps.iter().filter(|(_, state)| !state.is_done()),
    );
    let stuck = |it: &State| matches!(it, State::Failed(_) | State::Conflict(_));
    let failed = left.clone().find(|(_, it)| stuck(it));
    let busy = left
        .clone()
        .find(|(_, it)| matches!(it, State::Progressing(_)));
    let count = all - left.clone().count();
    match failed.or(busy).or_else(|| left.clone().next()) {
        None => Verdict::new(Type::Ready, true, Reason::AllStepsReady),
        Some((name, state)) => {
            let reason = match state {
                State::Failed(_) => Reason::TaskFailed,
                State::Conflict(_) => Reason::Conflict,
                _ => Reason::Progressing,
            };
            let why = format!(
                "{count} of {all} steps are ready; {name}: {}",
                state.message()
            );
            Verdict::new(Type::Ready, false, reason).because(why)
        }
    }
}

/// Conditions of a cloud being deleted, with `count` objects left; `group` is deleted now.
pub(crate) fn deleting(object: &OpenStack, count: usize, group: &[Reference]) -> Vec<Condition> {
    let mut all = object.status.clone().unwrap_or_default().conditions;
    let first = group.first().map(ToString::to_string).unwrap_or_default();
    let why = format!("{count} objects are left; {first} is being deleted");
    let verdict = Verdict::new(Type::Ready, false, Reason::Deleting).because(why);
    conditions::set(
        &mut all,
        verdict,
        object.metadata.generation,
        Timestamp::now(),
    );
    all
}

#[cfg(test)]
mod tests {
    use super::Reason;

    #[test]
    fn reasons_of_drains_are_reasons_of_the_api() {
        for reason in deployer::drain::REASONS {
            assert!(Reason::parse(reason).is_some(), "{reason}");
        }
    }
}
