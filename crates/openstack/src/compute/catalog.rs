//! Offers of a cloud for servers: flavors, zones, groups, limits.

use serde::{Deserialize, Serialize};

/// Size of servers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Flavor {
    /// Id.
    pub id: String,
    /// Name, unique among the visible flavors.
    pub name: String,
    /// Processors.
    pub vcpus: i64,
    /// Memory in MiB.
    pub ram: i64,
    /// Root disk in GiB; 0 means the image's own size.
    pub disk: i64,
    /// Ephemeral disk in GiB.
    #[serde(rename = "OS-FLV-EXT-DATA:ephemeral")]
    pub ephemeral: i64,
}

/// Key pair.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Keypair {
    /// Name, unique per user.
    pub name: String,
    /// Public half.
    pub public_key: String,
    /// Fingerprint.
    pub fingerprint: String,
}

/// Availability zone of Nova.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AvailabilityZone {
    /// Name.
    #[serde(rename = "zoneName")]
    pub name: String,
    /// State.
    #[serde(rename = "zoneState")]
    pub state: ZoneState,
}

/// State of an availability zone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ZoneState {
    /// True if servers can be scheduled there.
    pub available: bool,
}

/// Group of servers to place together or apart.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ServerGroup {
    /// Id.
    pub id: String,
    /// Name; not unique.
    pub name: String,
    /// `affinity`, `anti-affinity`, `soft-affinity` or `soft-anti-affinity`.
    pub policies: Vec<String>,
    /// Ids of the servers in the group.
    pub members: Vec<String>,
    /// Project that owns it.
    pub project_id: String,
}

/// Nova's absolute limits; -1 is no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ComputeLimits {
    /// Most servers.
    pub max_total_instances: i64,
    /// Existing servers.
    pub total_instances_used: i64,
    /// Most processors.
    pub max_total_cores: i64,
    /// Processors in use.
    pub total_cores_used: i64,
    /// Most memory, in MiB.
    #[serde(rename = "maxTotalRAMSize")]
    pub max_total_ram_size: i64,
    /// Memory in use, in MiB.
    #[serde(rename = "totalRAMUsed")]
    pub total_ram_used: i64,
}

impl Default for ComputeLimits {
    fn default() -> Self {
        Self {
            max_total_instances: -1,
            total_instances_used: 0,
            max_total_cores: -1,
            total_cores_used: 0,
            max_total_ram_size: -1,
            total_ram_used: 0,
        }
    }
}
