//! Servers that are not in the list: how often that was seen, and for how long.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use api::k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use parking_lot::Mutex;

/// What an absence amounts to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It was seen for the first time, or a moment ago.
    LookAgain(Duration),
    /// Two lists, one period apart, lack the server.
    Confirmed,
}

/// Since when servers of nodes are absent, by the uid of the Node. Lost at a restart, which only delays a deletion.
#[derive(Debug, Default)]
pub(crate) struct Absences(Mutex<HashMap<String, Instant>>);

impl Absences {
    /// Notes that the server of a Node is absent from a list that is younger than `period`.
    pub(crate) fn confirm(&self, node: &Node, now: Instant, period: Duration) -> Verdict {
        let mut first = self.0.lock();
        let since = *first.entry(node.uid().unwrap_or_default()).or_insert(now);
        // The list of the second look must have begun after the first look.
        let passed = now.duration_since(since);
        match passed >= period * 2 {
            true => Verdict::Confirmed,
            false => Verdict::LookAgain(period * 2 - passed),
        }
    }

    /// The server is there, or the node is ready: what was noted counts no more.
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
        // The server was seen in between: all begins anew.
        absences.forget(&node);
        assert_eq!(absences.confirm(&node, at(11), period), again(10));
        // A new Node of the same name has a uid of its own.
        node.metadata.uid = Some("b".to_owned());
        assert_eq!(absences.confirm(&node, at(30), period), again(10));
    }
}
