//! Requests to Octavia. A load balancer can be created as a tree, together with its parts.

use std::collections::BTreeMap;

use serde::Serialize;

use super::resource::{AdditionalVip, SessionPersistence};

/// New load balancer, with its parts if set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LoadBalancerCreate {
    /// Name.
    pub name: String,
    /// Free text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Requested virtual address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vip_address: Option<String>,
    /// Subnet of the virtual address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vip_subnet_id: Option<String>,
    /// Network of the virtual address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vip_network_id: Option<String>,
    /// Existing port with the virtual address, in place of subnet and network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vip_port_id: Option<String>,
    /// Further virtual addresses in the network of the first one (API 2.26).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub additional_vips: Vec<AdditionalVip>,
    /// Driver; the cloud's default if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Flavor by id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flavor_id: Option<String>,
    /// Availability zone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub availability_zone: Option<String>,
    /// Tags.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Listeners, each with its pool.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub listeners: Vec<ListenerCreate>,
}

/// Change of a load balancer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LoadBalancerUpdate {
    /// Tags.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
}

/// New listener, within a tree or on an existing load balancer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub struct ListenerCreate {
    /// Name.
    pub name: String,
    /// `TCP`, `UDP`, `HTTP`, ...
    pub protocol: String,
    /// Port.
    pub protocol_port: u16,
    /// Free text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Load balancer; absent within a tree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loadbalancer_id: Option<String>,
    /// Existing pool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_pool_id: Option<String>,
    /// New pool with its members and monitor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_pool: Option<PoolCreate>,
    /// Ranges of clients that may connect; everyone if absent (API 2.12; not with the `ovn` driver).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_cidrs: Option<Vec<String>>,
    /// Maximum number of connections; -1 for no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connection_limit: Option<i64>,
    /// Milliseconds of client silence until a connection is closed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_client_data: Option<i64>,
    /// Milliseconds until a connection to a member fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_member_connect: Option<i64>,
    /// Milliseconds of member silence until a connection is closed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_member_data: Option<i64>,
    /// Milliseconds for further packets to inspect content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_tcp_inspect: Option<i64>,
    /// Headers added to requests; of `HTTP` and `TERMINATED_HTTPS` alone.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub insert_headers: BTreeMap<String, String>,
    /// Certificate, as the URL of a secret or container of the key manager; of `TERMINATED_HTTPS` alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_tls_container_ref: Option<String>,
    /// Tags.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
}

/// Change of a listener.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ListenerUpdate {
    /// Name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Ranges of clients that may connect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_cidrs: Option<Vec<String>>,
    /// Maximum number of connections; -1 for no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connection_limit: Option<i64>,
    /// Milliseconds of client silence until a connection is closed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_client_data: Option<i64>,
    /// Milliseconds until a connection to a member fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_member_connect: Option<i64>,
    /// Milliseconds of member silence until a connection is closed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_member_data: Option<i64>,
    /// Milliseconds for further packets to inspect content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_tcp_inspect: Option<i64>,
    /// Headers added to requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub insert_headers: Option<BTreeMap<String, String>>,
    /// Certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_tls_container_ref: Option<String>,
    /// Pool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_pool_id: Option<String>,
    /// Tags.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
}

/// New pool, within a tree or on an existing listener.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub struct PoolCreate {
    /// Name.
    pub name: String,
    /// `TCP`, `UDP`, `HTTP`, ...
    pub protocol: String,
    /// `ROUND_ROBIN`, `SOURCE_IP_PORT`, ...
    pub lb_algorithm: String,
    /// Free text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Listener; absent within a tree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listener_id: Option<String>,
    /// Load balancer, for a pool without a listener.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loadbalancer_id: Option<String>,
    /// Session persistence: clients stay with one member.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_persistence: Option<SessionPersistence>,
    /// Members; only within a tree.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<MemberCreate>,
    /// Health monitor; only within a tree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub healthmonitor: Option<MonitorCreate>,
    /// Tags.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
}

/// Change of a pool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PoolUpdate {
    /// Name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// `ROUND_ROBIN`, `SOURCE_IP_PORT`, ...
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lb_algorithm: Option<String>,
    /// Session persistence: clients stay with one member. `Some(None)` ends the persistence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_persistence: Option<Option<SessionPersistence>>,
}

/// New member.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub struct MemberCreate {
    /// Name.
    pub name: String,
    /// Address.
    pub address: String,
    /// Port.
    pub protocol_port: u16,
    /// Subnet of the address; the subnet of the load balancer if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subnet_id: Option<String>,
    /// Port for health checks; the member's port if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub monitor_port: Option<u16>,
    /// Share of the traffic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<i64>,
    /// Tags.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
}

/// Change of a member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MemberUpdate {
    /// Share of the traffic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<i64>,
    /// Port for health checks; `Some(None)` for the member's port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub monitor_port: Option<Option<u16>>,
}

/// New health monitor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub struct MonitorCreate {
    /// Name.
    pub name: String,
    /// `TCP`, `HTTP`, `PING`, ...
    #[serde(rename = "type")]
    pub kind: String,
    /// Seconds between checks.
    pub delay: i64,
    /// Seconds until a check fails.
    pub timeout: i64,
    /// Good checks until a member is up.
    pub max_retries: i64,
    /// Bad checks until a member is down.
    pub max_retries_down: i64,
    /// Pool; absent within a tree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool_id: Option<String>,
    /// `GET`, ...; of HTTP monitors alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_method: Option<String>,
    /// Path of the check; of HTTP monitors alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url_path: Option<String>,
    /// Expected status; of HTTP monitors alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_codes: Option<String>,
}

/// Change of a health monitor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MonitorUpdate {
    /// Name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Seconds between checks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<i64>,
    /// Seconds until a check fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<i64>,
    /// Good checks until a member is up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_retries: Option<i64>,
    /// Bad checks until a member is down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_retries_down: Option<i64>,
    /// `GET`, ...; of HTTP monitors alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_method: Option<String>,
    /// Path of the check; of HTTP monitors alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url_path: Option<String>,
    /// Expected status; of HTTP monitors alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_codes: Option<String>,
}
