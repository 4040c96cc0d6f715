//! Status of an OpenStack object. Pure, except for the time of transitions.

use api::conditions::{self, Status, Verdict};
use api::openstack::v1alpha1::{OpenStack, OpenStackStatus, Phase, StepStatus};
use deployer::{Held, Progress, Reference, State};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::Timestamp;

use crate::record::{self, Entry};

/// Condition: every step is ready.
pub const READY: &str = "Ready";
/// Condition: the parameters describe a valid cloud.
pub const CONFIGURATION_VALID: &str = "ConfigurationValid";
/// Condition: no task has failed.
pub const TASKS_SUCCEEDED: &str = "TasksSucceeded";
/// Condition: RabbitMQ and Keystone have all accounts of the services.
pub const ACCOUNTS_WRITTEN: &str = "AccountsWritten";
/// Condition: the object is paused, and the controller leaves the cloud unchanged.
pub const PAUSED: &str = "Paused";

/// Reason: no client could connect with the given certificate. The edge serves the last good one.
pub const CERTIFICATE_UNUSABLE: &str = "CertificateUnusable";

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
    },
}

/// Progress with all passwords masked: messages quote the ends of logs.
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

/// [`OpenStackStatus`] after a reconcile.
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
        // The last observation stays.
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
        // Errors of other stores are reported once the stores can be asked.
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

/// Conditions of a cloud being deleted, with `count` objects left; `group` is deleted now.
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
