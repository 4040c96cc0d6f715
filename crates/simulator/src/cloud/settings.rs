//! Settings that are fixed for the life of a cloud.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ipnet::Ipv4Net;

use super::identity::Provider;
use super::latency::Latency;

/// Returns the console output of a server.
pub(crate) type Console = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// The options that handlers need, resolved.
pub(crate) struct Settings {
    pub(crate) latency: Latency,
    pub(crate) quotas: BTreeMap<String, i64>,
    pub(crate) zones: Vec<String>,
    /// Cinder's zones, which may differ from Nova's.
    pub(crate) volume_zones: Vec<String>,
    pub(crate) external_cidr: Ipv4Net,
    pub(crate) token_lifetime: Duration,
    pub(crate) extensions: Vec<String>,
    pub(crate) console: parking_lot::RwLock<Option<Console>>,
    pub(crate) server_faults: parking_lot::Mutex<Vec<ServerFault>>,
    pub(crate) guest_faults: parking_lot::Mutex<Vec<GuestFaultRule>>,
    pub(crate) volume_faults: parking_lot::Mutex<Vec<VolumeFault>>,
    pub(crate) changeable: parking_lot::RwLock<Changeable>,
    /// The identity provider that Keystone trusts.
    pub(crate) oidc: parking_lot::Mutex<Provider>,
}

/// Settings that can be changed at run time, under the names of Nova's and Cinder's own options where they have one.
#[derive(Clone, Debug, serde::Deserialize, serde::Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Changeable {
    /// How many seconds Nova keeps deleted servers as SOFT_DELETED, so that they can be restored; 0: not at all.
    pub(crate) reclaim_instance_interval: u64,
    /// The most disks of a server, with its root disk; negative: no limit.
    pub(crate) max_disk_devices_to_attach: i64,
    /// True if a server may have volumes of another zone.
    pub(crate) cross_az_attach: bool,
    /// True if a snapshot cannot be deleted while a volume that was created from it exists, as with Ceph's RBD.
    pub(crate) snapshots_have_dependants: bool,
}

impl Default for Changeable {
    fn default() -> Self {
        Self {
            reclaim_instance_interval: 0,
            max_disk_devices_to_attach: -1,
            cross_az_attach: true,
            snapshots_have_dependants: true,
        }
    }
}

/// What goes wrong with a volume, a snapshot or a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum VolumeTrouble {
    /// A new volume becomes `error`.
    CreateFails,
    /// A volume becomes `error_deleting`.
    DeleteFails,
    /// A volume becomes `error_extending`, its size unchanged.
    ExtendFails,
    /// A volume keeps its type.
    RetypeFails,
    /// The hypervisor refuses a volume, which becomes available again.
    AttachFails,
    /// Nova gives up before it connects a volume, which stays `reserved`.
    AttachStaysReserved,
    /// The hypervisor never answers: a volume stays `attaching`.
    AttachStaysAttaching,
    /// The guest does not let go: a volume is in use again.
    DetachFails,
    /// The hypervisor never answers: a volume stays `detaching`.
    DetachStaysDetaching,
    /// Nova detaches half way: a volume stays `reserved` by an attachment without connection.
    DetachLeavesReserved,
    /// Cinder's driver fails: a volume becomes `error_detaching`.
    DetachEndsInError,
    /// The server of a volume is deleted, and its attachment stays.
    AttachmentOutlivesServer,
    /// A new snapshot becomes `error`.
    SnapshotFails,
    /// A snapshot becomes `error_deleting`.
    SnapshotDeleteFails,
    /// A new backup becomes `error`.
    BackupFails,
    /// A backup becomes `error_deleting`.
    BackupDeleteFails,
}

/// Lets something go wrong with the next volumes, snapshots or backups with this name prefix.
#[derive(Clone, Debug, serde::Deserialize, serde::Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct VolumeFault {
    /// Empty matches every one.
    #[serde(default)]
    pub(crate) name_prefix: String,
    pub(crate) fault: VolumeTrouble,
    /// How often.
    pub(crate) count: u64,
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

    /// The one among `possible` that goes wrong with the volume, snapshot or backup of this name, which is consumed.
    pub(crate) fn volume_trouble(
        &self,
        name: &str,
        possible: &[VolumeTrouble],
    ) -> Option<VolumeTrouble> {
        let mut rules = self.volume_faults.lock();
        let rule = rules.iter_mut().find(|rule| {
            rule.count > 0 && possible.contains(&rule.fault) && name.starts_with(&rule.name_prefix)
        })?;
        rule.count -= 1;
        let trouble = rule.fault;
        rules.retain(|rule| rule.count > 0);
        Some(trouble)
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
