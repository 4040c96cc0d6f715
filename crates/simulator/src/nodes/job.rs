//! Jobs with one Pod at a time. A Job is complete once a Pod has succeeded, and has failed after `backoffLimit` + 1
//! failures.

use std::time::Duration;

use serde_json::{Value, json};

use super::cache::{Now, ObjectCache};
use super::object::{
    JOB, Name, POD, Write, condition, has_ended, holds, is_ending, items, number, some, text, time,
};

pub(super) fn jobs(world: &ObjectCache, now: &mut Now<'_>) -> Vec<Write> {
    let jobs = world.jobs.iter().filter(|it| !is_ending(it));
    jobs.flat_map(|it| job(it, world, now)).collect()
}

fn job(job: &Value, world: &ObjectCache, now: &mut Now<'_>) -> Vec<Write> {
    let pods: Vec<&Value> = world.pods_of(job).collect();
    let count = |phase: &str| {
        let with = pods
            .iter()
            .filter(|it| text(&it["status"]["phase"]) == phase);
        with.count()
    };
    let (succeeded, ended) = (count("Succeeded"), count("Failed"));
    let active: Vec<&&Value> = pods
        .iter()
        .filter(|it| !has_ended(it) && !is_ending(it))
        .collect();
    // Restarts of containers within their Pod count, too.
    let restarts: usize = active
        .iter()
        .flat_map(|pod| items(&pod["status"]["containerStatuses"]))
        .map(|it| number(&it["restartCount"], 0))
        .sum();
    let failures = ended + restarts;
    let limit = number(&job["spec"]["backoffLimit"], 6);
    let over = holds(job, "Complete") || holds(job, "Failed");
    let mut writes = Vec::new();
    let mut status = json!({
        "startTime": match job["status"]["startTime"].is_null() {
            true => time().into(),
            false => job["status"]["startTime"].clone(),
        },
        "active": some(active.len()),
        "ready": active.iter().filter(|it| holds(it, "Ready")).count(),
        "succeeded": some(succeeded),
        "failed": some(ended),
    });
    if over || job["spec"]["suspend"] == true {
        return writes;
    } else if succeeded > 0 {
        let message = "Reached expected number of succeeded pods";
        let of = |name| condition(job, name, true, "CompletionsReached", message);
        status["conditions"] = json!([of("SuccessCriteriaMet"), of("Complete")]);
        status["completionTime"] = time().into();
        status["active"] = Value::Null;
    } else if failures > limit {
        let message = "Job has reached the specified backoff limit";
        let of = |name| condition(job, name, true, "BackoffLimitExceeded", message);
        status["conditions"] = json!([of("FailureTarget"), of("Failed")]);
        status["active"] = Value::Null;
        writes.extend(active.iter().map(|pod| POD.delete(pod, None)));
    } else if pods.iter().all(|it| has_ended(it)) {
        let doublings = u32::try_from(ended.saturating_sub(1).min(5)).unwrap_or_default();
        let pause = match ended {
            0 => Duration::ZERO,
            _ => now.options.back_off * 2_u32.pow(doublings),
        };
        let what = ["first", "1", "2", "3", "4", "5", "6", "7", "8"];
        let what = what.get(ended).copied().unwrap_or("later");
        if now.is_past(job, what, pause) {
            writes.push(JOB.pod(job, Name::Generated, &[]));
        }
    }
    writes.extend(JOB.status(job, status));
    writes
}
