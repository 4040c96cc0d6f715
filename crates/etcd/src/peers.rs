//! The connections between members, as a member counts them.
//!
//! A member accepts no change of the members while it counts another one as disconnected, and no call of etcd's API tells
//! which one. The metric `etcd_network_active_peers` does (`server/etcdserver/api/rafthttp/metrics.go` of etcd 3.6).

use std::collections::BTreeSet;
use std::fmt::Write;

/// The path of the metrics, on the port for clients.
pub(crate) const PATH: &str = "/metrics";
/// The gauge of a connection.
const ACTIVE: &str = "etcd_network_active_peers";

/// The ids of the members to which this one counts as connected, from its metrics.
pub(crate) fn read(metrics: &str) -> BTreeSet<u64> {
    let samples = metrics.lines().filter_map(|line| line.strip_prefix(ACTIVE));
    samples.filter_map(connected).collect()
}

/// The remote member of a sample such as `{Local="a1",Remote="b2"} 1`, if its value is not 0.
fn connected(sample: &str) -> Option<u64> {
    let (labels, value) = sample.strip_prefix('{')?.rsplit_once('}')?;
    let value: f64 = value.trim().parse().ok()?;
    let remote = labels
        .split(',')
        .find_map(|label| label.trim().strip_prefix("Remote="))?;
    let id = u64::from_str_radix(remote.trim_matches('"'), 16).ok()?;
    (value > 0.0).then_some(id)
}

/// The metrics of the member `local`, with each other member and whether it counts as connected.
pub(crate) fn write(local: u64, peers: &[(u64, bool)]) -> String {
    let mut text = format!(
        "# HELP {ACTIVE} The current number of active peer connections.\n# TYPE {ACTIVE} gauge\n"
    );
    for (remote, active) in peers {
        let value = u8::from(*active);
        // Writing to a String does not fail.
        let _ = writeln!(
            text,
            "{ACTIVE}{{Local=\"{local:x}\",Remote=\"{remote:x}\"}} {value}"
        );
    }
    text
}
