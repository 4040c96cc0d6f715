//! Finds the cause of a failed bootstrap in the console output of a server.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// The maximum length of a message, in characters.
const LONGEST: usize = 400;
/// The start of a failed preflight check of kubeadm, one per line.
const CHECK: &str = "[ERROR ";
/// Patterns of lines with the error of kubeadm or cloud-init, the most specific first.
const TELLING: &[&str] = &[
    "error execution phase",
    "couldn't validate the identity of the API Server",
    // Of the shell, where the image has no kubeadm.
    "kubeadm: not found",
    "kubeadm: command not found",
    "Failed to run module scripts-user",
    "Failed to run module scripts_user",
    "kubeadm: error",
    "level=error",
    "error:",
    UNKNOWN_DATA,
];
/// Message of cloud-init about user data in an unknown format, followed by their beginning, which may be secret.
const UNKNOWN_DATA: &str = "Unhandled non-multipart (text/x-not-multipart) userdata";

/// Reason why the server did not become a Node: the failed preflight checks, or one line of the console.
pub(crate) fn failure(console: &str) -> Option<String> {
    let telling = checks(console).or_else(|| {
        let lines = || console.lines().rev().filter(|line| !is_warning(line));
        let line = |words: &&str| lines().find(|line| line.contains(words));
        TELLING.iter().find_map(line).map(without_data)
    })?;
    Some(
        telling
            .trim()
            .chars()
            .filter(|letter| !letter.is_control())
            .take(LONGEST)
            .collect(),
    )
}

/// The line without the beginning of the user data.
fn without_data(line: &str) -> String {
    match line.split_once(UNKNOWN_DATA) {
        Some((before, _)) => format!("{before}{UNKNOWN_DATA}"),
        None => line.to_owned(),
    }
}

/// True for a warning of etcd's client in kubeadm, which retries while a learner is not in sync, for as long as a slow
/// machine needs.
fn is_warning(line: &str) -> bool {
    line.contains(r#""level":"warn""#)
}

/// Failed checks of the last preflight. The last line of kubeadm only reports that some failed.
fn checks(console: &str) -> Option<String> {
    let lines: Vec<&str> = console.lines().collect();
    let last = lines.iter().rposition(|line| line.contains(CHECK))?;
    let first = lines[..last].iter().rposition(|line| !line.contains(CHECK));
    let found: Vec<&str> = lines[first.map_or(0, |at| at + 1)..=last]
        .iter()
        .filter_map(|line| line.find(CHECK).map(|at| line[at..].trim_end()))
        .collect();
    Some(found.join("; "))
}

/// The last failures found on the consoles of servers, so that a reconcile for another reason does not read the console
/// again.
#[derive(Default)]
pub(crate) struct Consoles {
    read: Mutex<HashMap<String, (Instant, Option<String>)>>,
}

impl Consoles {
    /// Failure on the console of the server `id`, if read less than `max_age` ago, and its remaining validity.
    pub(crate) fn recent(&self, id: &str, max_age: Duration) -> Option<(Option<String>, Duration)> {
        let read = self.read.lock();
        let (at, failure) = read.get(id)?;
        let left = max_age.saturating_sub(at.elapsed());
        (!left.is_zero()).then(|| (failure.clone(), left))
    }

    /// Stores the failure on the console of the server `id`, and removes outdated entries.
    pub(crate) fn note(&self, id: &str, failure: Option<String>, max_age: Duration) {
        let mut read = self.read.lock();
        read.retain(|_, (at, _)| at.elapsed() < max_age * 2);
        read.insert(id.to_owned(), (Instant::now(), failure));
    }
}

#[cfg(test)]
mod tests;
