//! Settings that are fixed for the life of a cloud.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ipnet::Ipv4Net;

use super::latency::Latency;

/// Returns the console output of a server.
pub(crate) type Console = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// The options that handlers need, resolved.
pub(crate) struct Settings {
    pub(crate) latency: Latency,
    pub(crate) quotas: BTreeMap<String, i64>,
    pub(crate) zones: Vec<String>,
    pub(crate) external_cidr: Ipv4Net,
    pub(crate) token_lifetime: Duration,
    pub(crate) extensions: Vec<String>,
    pub(crate) console: parking_lot::RwLock<Option<Console>>,
    pub(crate) server_faults: parking_lot::Mutex<Vec<ServerFault>>,
    pub(crate) guest_faults: parking_lot::Mutex<Vec<GuestFaultRule>>,
    /// Nova's `reclaim_instance_interval` in seconds; with 0, the default, deleted servers cannot be restored.
    pub(crate) reclaim_seconds: std::sync::atomic::AtomicU64,
}

/// Makes the builds of the next servers with this name prefix fail.
#[derive(Clone, Debug, serde::Deserialize, serde::Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ServerFault {
    /// Empty matches every server.
    #[serde(default)]
    pub(crate) name_prefix: String,
    /// The fault that Nova returns.
    pub(crate) message: String,
    /// The number of servers.
    pub(crate) count: u64,
}

/// The next servers with this name prefix get a property that names a fault of their guest.
#[derive(Clone, Debug, serde::Deserialize, serde::Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GuestFaultRule {
    /// Empty matches every server.
    #[serde(default)]
    pub(crate) name_prefix: String,
    /// See [`crate::world::GuestFault`].
    pub(crate) fault: String,
    /// The number of servers.
    pub(crate) count: u64,
}

impl Settings {
    /// The fault of the guest of a server with this name, which is consumed.
    pub(crate) fn guest_fault(&self, name: &str) -> Option<String> {
        let mut rules = self.guest_faults.lock();
        rules.retain(|rule| rule.count > 0);
        let rule = rules
            .iter_mut()
            .find(|rule| name.starts_with(&rule.name_prefix))?;
        rule.count -= 1;
        Some(rule.fault.clone())
    }

    /// The fault for a server with this name, which is consumed.
    pub(crate) fn server_fault(&self, name: &str) -> Option<String> {
        let mut faults = self.server_faults.lock();
        let index = faults
            .iter()
            .position(|fault| name.starts_with(&fault.name_prefix))?;
        let message = faults[index].message.clone();
        faults[index].count = faults[index].count.saturating_sub(1);
        if faults[index].count == 0 {
            faults.remove(index);
        }
        Some(message)
    }
}

/// The name of the one region.
pub(crate) const REGION: &str = "RegionOne";
