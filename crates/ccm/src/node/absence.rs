//! Servers missing in the list: start of the absence, and confirmation.

use std::collections::HashMap;
use std::time::Duration;

use api::k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use parking_lot::Mutex;
use tokio::time::Instant;

/// Confirmation of an absence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Not yet: check again after this time.
    LookAgain(Duration),
    /// Two lists that began at least one period apart do not contain the server.
    Confirmed,
}

/// Times of the first list without the server of a Node, by the uid of the Node. Lost at a restart, which only delays
/// deletions.
#[derive(Debug, Default)]
pub(crate) struct Absences(Mutex<HashMap<String, Instant>>);

impl Absences {
    /// Records that the server of a [`Node`] is missing in a list younger than `period`.
    pub(crate) fn confirm(&self, node: &Node, now: Instant, period: Duration) -> Verdict {
        let mut first = self.0.lock();
        let since = *first.entry(node.uid().unwrap_or_default()).or_insert(now);
        // The second list must have begun after the first check.
        let passed = now.duration_since(since);
        match passed >= period * 2 {
            true => Verdict::Confirmed,
            false => Verdict::LookAgain(period * 2 - passed),
        }
    }

    /// Removes the record, since the server exists or the [`Node`] is ready.
    pub(crate) fn forget(&self, node: &Node) {
        self.0.lock().remove(&node.uid().unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absence_is_confirmed_by_a_second_look_after_two_periods() {
        let (absences, start) = (Absences::default(), Instant::now());
        let period = Duration::from_secs(5);
        let mut node = Node::default();
        node.metadata.uid = Some("a".to_owned());
        let at = |seconds| start + Duration::from_secs(seconds);
        let again = |seconds| Verdict::LookAgain(Duration::from_secs(seconds));
        assert_eq!(absences.confirm(&node, at(0), period), again(10));
        assert_eq!(absences.confirm(&node, at(4), period), again(6));
        assert_eq!(absences.confirm(&node, at(10), period), Verdict::Confirmed);
        // The server was seen in between, so the first check is repeated.
        absences.forget(&node);
        assert_eq!(absences.confirm(&node, at(11), period), again(10));
        // A new Node with the same name has another uid.
        node.metadata.uid = Some("b".to_owned());
        assert_eq!(absences.confirm(&node, at(30), period), again(10));
    }
}
