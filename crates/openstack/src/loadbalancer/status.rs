//! The status tree of a load balancer, read in one request.

use serde::{Deserialize, Serialize};

/// Status of a load balancer and its parts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LoadBalancerStatus {
    /// Id.
    pub id: String,
    /// Name.
    pub name: String,
    /// `ACTIVE`, `PENDING_UPDATE`, `ERROR`, ...
    pub provisioning_status: String,
    /// `ONLINE`, `OFFLINE`, `DEGRADED`, ...
    pub operating_status: String,
    /// Listeners.
    pub listeners: Vec<ListenerStatus>,
}

/// Status of a listener.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ListenerStatus {
    /// Id.
    pub id: String,
    /// Name.
    pub name: String,
    /// `ACTIVE`, `PENDING_UPDATE`, `ERROR`, ...
    pub provisioning_status: String,
    /// `ONLINE`, `OFFLINE`, `DEGRADED`, ...
    pub operating_status: String,
    /// Pools.
    pub pools: Vec<PoolStatus>,
}

/// Status of a pool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PoolStatus {
    /// Id.
    pub id: String,
    /// Name.
    pub name: String,
    /// `ACTIVE`, `PENDING_UPDATE`, `ERROR`, ...
    pub provisioning_status: String,
    /// `ONLINE`, `OFFLINE`, `DEGRADED`, ...
    pub operating_status: String,
    /// Members.
    pub members: Vec<MemberStatus>,
}

/// Status of a member.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MemberStatus {
    /// Id.
    pub id: String,
    /// Name.
    pub name: String,
    /// Address.
    pub address: String,
    /// Port.
    pub protocol_port: u16,
    /// `ACTIVE`, `PENDING_UPDATE`, `ERROR`, ...
    pub provisioning_status: String,
    /// `ONLINE`, `OFFLINE`, `NO_MONITOR`, ...
    pub operating_status: String,
}
