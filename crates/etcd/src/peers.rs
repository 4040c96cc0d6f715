//! Connections between members, as a member counts them.
//!
//! A member accepts no change of the members while another one counts as disconnected, and no call of etcd's API tells
//! which one. The metric `etcd_network_active_peers` does (`server/etcdserver/api/rafthttp/metrics.go` of etcd 3.6).

use std::collections::BTreeSet;
use std::fmt::Write;

/// Path of the metrics, on the port for clients.
pub(crate) const PATH: &str = "/metrics";
/// Gauge of a connection.
const ACTIVE: &str = "etcd_network_active_peers";

/// Returns the ids of the members that count as connected, from the metrics of this member.
pub(crate) fn read(metrics: &str) -> BTreeSet<u64> {
    let samples = metrics.lines().filter_map(|line| line.strip_prefix(ACTIVE));
    samples.filter_map(connected).collect()
}

/// Returns the remote member of a sample such as `{Local="a1",Remote="b2"} 1`, if the value is not 0.
fn connected(sample: &str) -> Option<u64> {
    let (labels, value) = sample.strip_prefix('{')?.rsplit_once('}')?;
    let value: f64 = value.trim().parse().ok()?;
    let remote = labels
        .split(',')
        .find_map(|label| label.trim().strip_prefix("Remote="))?;
    let id = u64::from_str_radix(remote.trim_matches('"'), 16).ok()?;
    (value > 0.0).then_some(id)
}

/// Returns the metrics of the member `local`, from the other members and true for each that counts as connected.
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
