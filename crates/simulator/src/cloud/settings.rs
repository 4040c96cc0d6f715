//! Fixed settings of a cloud.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ipnet::Ipv4Net;

use super::balancer::OVN;
use super::identity::Provider;
use super::latency::Latency;

/// Returns the console output of a server.
pub(crate) type Console = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// Options for handlers, resolved.
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
    pub(crate) migration_faults: parking_lot::Mutex<Vec<ServerFault>>,
    pub(crate) guest_faults: parking_lot::Mutex<Vec<GuestFaultRule>>,
    pub(crate) volume_faults: parking_lot::Mutex<Vec<VolumeFault>>,
    pub(crate) changeable: parking_lot::RwLock<Changeable>,
    /// Identity provider trusted by Keystone.
    pub(crate) oidc: parking_lot::Mutex<Provider>,
}

/// Settings that can be changed at run time, under the names of Nova's, Cinder's and Octavia's own options where they have one.
#[derive(Clone, Debug, serde::Deserialize, serde::Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Changeable {
    /// Seconds for which Nova keeps deleted servers as SOFT_DELETED, for a possible restoration; 0 to delete at once.
    pub(crate) reclaim_instance_interval: u64,
    /// Maximum number of disks of a server, including the root disk; negative for no limit.
    pub(crate) max_disk_devices_to_attach: i64,
    /// True if a server may have volumes of another zone.
    pub(crate) cross_az_attach: bool,
    /// True if a snapshot cannot be deleted while a volume created from it exists, as with Ceph's RBD.
    pub(crate) snapshots_have_dependants: bool,
    /// Providers of Octavia, of `amphora`, `octavia` and `ovn`.
    pub(crate) enabled_provider_drivers: Vec<String>,
    /// Milliseconds by which lists of Nova, Neutron, Cinder and Octavia lag behind writes, as behind a replica of the
    /// database; 0 for none. A resource by its id is the present one.
    pub(crate) list_lag_milliseconds: u64,
    /// Newest minor version of Octavia's API 2; attributes of later ones are unknown.
    pub(crate) octavia_minor_version: u32,
    /// Duration of a live migration in milliseconds, besides the latency of every action.
    pub(crate) live_migration_milliseconds: u64,
    /// Provider of a load balancer for which neither the request nor its flavor names one.
    pub(crate) default_provider_driver: String,
}

impl Changeable {
    /// Settings of a cloud that a deployer makes, whose load balancers are OVN's alone.
    pub(super) fn deployed() -> Self {
        Self {
            enabled_provider_drivers: vec![OVN.to_owned()],
            default_provider_driver: OVN.to_owned(),
            ..Self::default()
        }
    }
}

impl Default for Changeable {
    fn default() -> Self {
        Self {
            reclaim_instance_interval: 0,
            max_disk_devices_to_attach: -1,
            cross_az_attach: true,
            snapshots_have_dependants: true,
            enabled_provider_drivers: vec!["amphora".to_owned(), "octavia".to_owned()],
            list_lag_milliseconds: 0,
            octavia_minor_version: 26,
            live_migration_milliseconds: 0,
            default_provider_driver: "amphora".to_owned(),
        }
    }
}

/// Failure of a volume, a snapshot or a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum VolumeTrouble {
    /// A new volume becomes `error`.
    CreateFails,
    /// A volume becomes `error_deleting`.
    DeleteFails,
    /// A volume becomes `error_extending`, with an unchanged size.
    ExtendFails,
    /// A volume keeps its type.
    RetypeFails,
    /// The hypervisor refuses a volume; the volume becomes available again.
    AttachFails,
    /// Nova gives up before connecting a volume; the volume stays `reserved`.
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
    /// The attachment of a volume survives the deletion of the server.
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

/// Failure of the next volumes, snapshots or backups with this name prefix.
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

/// Failure of the builds, or of the migrations, of the next servers with this name prefix.
#[derive(Clone, Debug, serde::Deserialize, serde::Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ServerFault {
    /// Empty matches every server.
    #[serde(default)]
    pub(crate) name_prefix: String,
    /// Message of Nova's fault.
    pub(crate) message: String,
    /// Number of servers.
    pub(crate) count: u64,
}

/// Fault of the guests of the next servers with this name prefix, in a property of each server.
#[derive(Clone, Debug, serde::Deserialize, serde::Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GuestFaultRule {
    /// Empty matches every server.
    #[serde(default)]
    pub(crate) name_prefix: String,
    /// See [`crate::data_plane::GuestFault`].
    pub(crate) fault: String,
    /// Number of servers.
    pub(crate) count: u64,
}

impl Settings {
    /// Consumes and returns the fault for the guest of a server with this name.
    pub(crate) fn guest_fault(&self, name: &str) -> Option<String> {
        let mut rules = self.guest_faults.lock();
        rules.retain(|rule| rule.count > 0);
        let rule = rules
            .iter_mut()
            .find(|rule| name.starts_with(&rule.name_prefix))?;
        rule.count -= 1;
        Some(rule.fault.clone())
    }

    /// Consumes and returns the one among `possible` for the volume, snapshot or backup with this name.
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

    /// Consumes and returns the fault for the build of a server with this name.
    pub(crate) fn server_fault(&self, name: &str) -> Option<String> {
        consume(&mut self.server_faults.lock(), name)
    }

    /// Consumes and returns the fault for the migration of a server with this name.
    pub(crate) fn migration_fault(&self, name: &str) -> Option<String> {
        consume(&mut self.migration_faults.lock(), name)
    }
}

fn consume(faults: &mut Vec<ServerFault>, name: &str) -> Option<String> {
    let index = faults
        .iter()
        .position(|fault| name.starts_with(&fault.name_prefix))?;
    let fault = faults.get_mut(index)?;
    let message = fault.message.clone();
    fault.count = fault.count.saturating_sub(1);
    if fault.count == 0 {
        faults.remove(index);
    }
    Some(message)
}

/// Name of the one region.
pub(crate) const REGION: &str = "RegionOne";
