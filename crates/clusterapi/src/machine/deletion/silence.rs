//! Limit of the wait for a Node during the deletion of a machine.
//!
//! A configured limit is kept, and 0 means no limit. Without a limit, the wait ends only during a silence of the party that
//! could end it: the kubelet of the Node, or the API server of the cluster. Upstream waits for ever then.

use std::time::Duration;

use api::k8s_openapi::api::core::v1::Node;
use api::k8s_openapi::jiff::{SignedDuration, Timestamp};

use crate::machine::drain::UNREACHABLE;
use crate::remote::Health;

/// Default wait for a silent kubelet or API server.
pub(super) const LIMIT: SignedDuration = SignedDuration::from_mins(10);

/// Silent kubelet or API server, with the start of the silence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::machine) struct Silence {
    /// Subject of a sentence, such as `the kubelet of Node a`.
    who: String,
    since: Option<Timestamp>,
}

impl Silence {
    /// Silence of the kubelet of `node`; `None` unless Kubernetes has found that it does not report.
    pub(in crate::machine) fn of_kubelet(node: &Node) -> Option<Self> {
        let taints = node.spec.iter().flat_map(|spec| &spec.taints).flatten();
        let mut found = taints.filter(|taint| taint.key == UNREACHABLE).peekable();
        found.peek()?;
        let tainted = found.filter_map(|taint| taint.time_added.as_ref().map(|at| at.0));
        let since = tainted.min().or_else(|| not_ready_since(node));
        let name = node.metadata.name.as_deref().unwrap_or_default();
        Some(Self {
            who: format!("the kubelet of Node {name}"),
            since,
        })
    }

    /// Silence of the API server of a cluster with this connection.
    pub(super) fn of_api_server(cluster: &str, health: &Health) -> Self {
        Self {
            who: format!("the API server of cluster {cluster}"),
            since: health.last_success.or(health.since),
        }
    }

    /// End of a wait that began at `start`.
    fn ends(&self, start: Timestamp) -> Timestamp {
        let since = self.since.map_or(start, |since| since.max(start));
        since.checked_add(LIMIT).unwrap_or(Timestamp::MAX)
    }

    /// Subject and start of the silence.
    pub(super) fn cause(&self) -> String {
        let since = self
            .since
            .map_or(String::new(), |at| format!(" since {at}"));
        format!("{} has not answered{since}", self.who)
    }

    /// Message for the condition: subject and end of the wait, and the field with the limit.
    pub(super) fn message(&self, start: Timestamp, field: &str) -> String {
        let cause = api::conditions::sentence(&self.cause());
        let ends = self.ends(start);
        format!("{cause}; the wait ends at {ends} (spec.deletion.{field} is not set)")
    }
}

/// True if a wait that began at `start` is over. Without a limit, the [`Silence`] decides.
pub(super) fn is_over(
    start: Timestamp,
    limit: Option<i32>,
    silence: Option<&Silence>,
    now: Timestamp,
) -> bool {
    match limit {
        Some(seconds) => {
            let seconds = u64::try_from(seconds).unwrap_or(0);
            let passed = Duration::try_from(now.duration_since(start)).unwrap_or_default();
            seconds > 0 && passed >= Duration::from_secs(seconds)
        }
        None => silence.is_some_and(|silence| now >= silence.ends(start)),
    }
}

fn not_ready_since(node: &Node) -> Option<Timestamp> {
    let list = node.status.as_ref()?.conditions.as_ref()?;
    let ready = list.iter().find(|condition| condition.type_ == "Ready")?;
    Some(ready.last_transition_time.as_ref()?.0)
}

#[cfg(test)]
mod tests;
