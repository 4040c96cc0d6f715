//! The status of an OpenStack object. Pure, but for the time of transitions.

use api::conditions::{self, Status, Verdict};
use api::openstack::v1alpha1::{OpenStack, OpenStackStatus, Phase, StepStatus};
use deployer::{Held, Progress, Reference, State};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::Timestamp;

use crate::record::{self, Entry};

/// Condition: every step is ready.
pub const READY: &str = "Ready";
/// Condition: the parameters are those of a cloud.
pub const CONFIGURATION_VALID: &str = "ConfigurationValid";
/// Condition: no task has failed.
pub const TASKS_SUCCEEDED: &str = "TasksSucceeded";
/// Condition: what the services need in RabbitMQ and Keystone is written.
pub const ACCOUNTS_WRITTEN: &str = "AccountsWritten";
/// Condition: the controller leaves the cloud as it is.
pub const PAUSED: &str = "Paused";

/// Reason: nobody could connect with the certificate that is given. The last good one is served.
pub const CERTIFICATE_UNUSABLE: &str = "CertificateUnusable";

/// Findings of a reconcile.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    /// The parameters are rejected.
    Invalid(String),
    /// The cloud is left as it is.
    Paused,
    /// The namespace holds what is not of the cloud.
    Conflict(String),
    /// The steps.
    Progress {
        /// The uid of the cloud, once it is stored.
        uid: Option<String>,
        /// The release, and the phase of an upgrade.
        release: Entry,
        /// How far they are.
        progress: Progress,
        /// A write that the API server has rejected.
        rejection: Option<String>,
        /// Fault of the certificate that is given; the last good one is served.
        unusable: Option<String>,
    },
}

/// The progress with every password in its messages masked: they repeat the ends of logs.
pub(crate) fn masked(mut progress: Progress, held: &Held) -> Progress {
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

/// The status after a reconcile.
pub(crate) fn next(object: &OpenStack, outcome: &Outcome) -> OpenStackStatus {
    let now = Timestamp::now();
    let generation = object.metadata.generation;
    let mut status = object.status.clone().unwrap_or_default();
    status.observed_generation = generation;
    let valid = !matches!(outcome, Outcome::Invalid(_));
    let mut verdicts = vec![
        Verdict::new(PAUSED, matches!(outcome, Outcome::Paused), paused(outcome)),
        match outcome {
            Outcome::Invalid(problem) => {
                Verdict::new(CONFIGURATION_VALID, false, "Rejected").because(problem)
            }
            _ => Verdict::new(CONFIGURATION_VALID, valid, "Accepted"),
        },
    ];
    match outcome {
        Outcome::Invalid(problem) => {
            verdicts.push(Verdict::new(READY, false, "ConfigurationInvalid").because(problem));
        }
        // What was observed last stands.
        Outcome::Paused => {}
        Outcome::Conflict(problem) => {
            verdicts.push(Verdict::new(READY, false, "Conflict").because(problem));
        }
        Outcome::Progress {
            uid,
            release,
            progress,
            rejection,
            unusable,
        } => {
            let before = status.release.as_ref();
            status.release = Some(record::next(before, release, now));
            status.uid = status.uid.or_else(|| uid.clone());
            status.steps = steps(&status.steps, progress, now);
            verdicts.push(tasks(progress));
            verdicts.push(accounts(progress));
            verdicts.push(match (rejection, unusable) {
                (Some(why), _) => Verdict::new(READY, false, "WriteRejected").because(why),
                (None, Some(why)) => Verdict::new(READY, false, CERTIFICATE_UNUSABLE).because(why),
                (None, None) => match release.unfinished() {
                    Some(why) if progress.is_ready() => {
                        Verdict::new(READY, false, "Progressing").because(why)
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

fn paused(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Paused => "Paused",
        _ => "NotPaused",
    }
}

/// The steps, with when they started and how long they took.
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
        [] => Verdict::new(TASKS_SUCCEEDED, true, "NoneFailed"),
        all => Verdict::new(TASKS_SUCCEEDED, false, "TaskFailed").because(all.join("; ")),
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
        (true, _) => "Conflict",
        (false, false) => "NotWritten",
        // Those of other stores are told when they can be asked.
        (false, true) if asked.next().is_none() => {
            return Verdict::new(ACCOUNTS_WRITTEN, Status::Unknown, "NotYet");
        }
        (false, true) => return Verdict::new(ACCOUNTS_WRITTEN, true, "Written"),
    };
    Verdict::new(ACCOUNTS_WRITTEN, false, reason).because(words.join("; "))
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
        None => Verdict::new(READY, true, "AllStepsReady"),
        Some((name, state)) => {
            let reason = match state {
                State::Failed(_) => "TaskFailed",
                State::Conflict(_) => "Conflict",
                _ => "Progressing",
            };
            let why = format!(
                "{count} of {all} steps are ready; {name}: {}",
                state.message()
            );
            Verdict::new(READY, false, reason).because(why)
        }
    }
}

/// The conditions of a cloud that is being deleted, of which `count` objects are left, `now` those of `group`.
pub(crate) fn deleting(object: &OpenStack, count: usize, group: &[Reference]) -> Vec<Condition> {
    let mut all = object.status.clone().unwrap_or_default().conditions;
    let first = group.first().map(ToString::to_string).unwrap_or_default();
    let why = format!("{count} objects are left; {first} is being deleted");
    let verdict = Verdict::new(READY, false, "Deleting").because(why);
    conditions::set(
        &mut all,
        verdict,
        object.metadata.generation,
        Timestamp::now(),
    );
    all
}
