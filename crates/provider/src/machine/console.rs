//! What a server's console says about a failed bootstrap.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// The longest line that goes into a condition.
const LONGEST: usize = 400;
/// What marks the checks of kubeadm that failed, one a line.
const CHECK: &str = "[ERROR ";
/// Words that mark the line that tells why kubeadm or cloud-init failed, the most telling first.
const TELLING: &[&str] = &[
    "error execution phase",
    "couldn't validate the identity of the API Server",
    "Failed to run module scripts-user",
    "Failed to run module scripts_user",
    "kubeadm: error",
    "level=error",
    "error:",
];

/// What tells why the server did not become a Node: the checks that failed, or one line.
pub(crate) fn failure(console: &str) -> Option<String> {
    let telling = checks(console).or_else(|| {
        let lines = || console.lines().rev();
        let line = |words: &&str| lines().find(|line| line.contains(words));
        TELLING.iter().find_map(line).map(str::to_owned)
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

/// The checks of the last preflight that failed. kubeadm's last line only says that some did.
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

/// Failures that the consoles of servers showed when they were last read, so that a reconcile which something else
/// woke does not read them again.
#[derive(Default)]
pub(crate) struct Consoles {
    read: Mutex<HashMap<String, (Instant, Option<String>)>>,
}

impl Consoles {
    /// The failure on the console of the server `id`, if it was read less than `max_age` ago, and how long it remains valid.
    pub(crate) fn recent(&self, id: &str, max_age: Duration) -> Option<(Option<String>, Duration)> {
        let read = self.read.lock();
        let (at, failure) = read.get(id)?;
        let left = max_age.saturating_sub(at.elapsed());
        (!left.is_zero()).then(|| (failure.clone(), left))
    }

    /// Notes what the console of the server `id` says now, and forgets what nobody asks for any more.
    pub(crate) fn note(&self, id: &str, failure: Option<String>, max_age: Duration) {
        let mut read = self.read.lock();
        read.retain(|_, (at, _)| at.elapsed() < max_age * 2);
        read.insert(id.to_owned(), (Instant::now(), failure));
    }
}

#[cfg(test)]
mod tests;
