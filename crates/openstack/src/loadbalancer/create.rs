//! Requests to Octavia. A load balancer can be created as a tree, together with its parts.

use std::collections::BTreeMap;

use serde::Serialize;

use super::resource::{AdditionalVip, SessionPersistence};

/// A new load balancer, with its parts if set.
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
    /// An existing port with the virtual address, in place of subnet and network.
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

/// A change of a load balancer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LoadBalancerUpdate {
    /// Tags.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
}

/// A new listener, within a tree or on an existing load balancer.
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
    /// The load balancer; absent within a tree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loadbalancer_id: Option<String>,
    /// An existing pool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_pool_id: Option<String>,
    /// A new pool with its members and monitor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_pool: Option<PoolCreate>,
    /// Who may connect; everyone if absent (API 2.12; not with the `ovn` driver).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_cidrs: Option<Vec<String>>,
    /// The most connections; -1 for no limit.
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
    /// Headers that are added to requests; of `HTTP` and `TERMINATED_HTTPS` alone.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub insert_headers: BTreeMap<String, String>,
    /// The certificate, as the URL of a secret or container of the key manager; of `TERMINATED_HTTPS` alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_tls_container_ref: Option<String>,
    /// Tags.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
}

/// A change of a listener.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ListenerUpdate {
    /// Name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Who may connect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_cidrs: Option<Vec<String>>,
    /// The most connections; -1 for no limit.
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
    /// Headers that are added to requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub insert_headers: Option<BTreeMap<String, String>>,
    /// The certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_tls_container_ref: Option<String>,
    /// The pool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_pool_id: Option<String>,
    /// Tags.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
}

/// A new pool, within a tree or on an existing listener.
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
    /// The listener; absent within a tree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listener_id: Option<String>,
    /// The load balancer, for a pool without a listener.
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

/// A change of a pool.
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

/// A new member.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub struct MemberCreate {
    /// Name.
    pub name: String,
    /// Address.
    pub address: String,
    /// Port.
    pub protocol_port: u16,
    /// Subnet through which the address is reached; that of the load balancer if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subnet_id: Option<String>,
    /// Port that the health monitor asks; that of the member if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub monitor_port: Option<u16>,
    /// Share of the traffic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<i64>,
    /// Tags.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
}

/// A change of a member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MemberUpdate {
    /// Share of the traffic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<i64>,
    /// Port that the health monitor asks; `Some(None)` for that of the member.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub monitor_port: Option<Option<u16>>,
}

/// A new health monitor.
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
    /// The pool; absent within a tree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool_id: Option<String>,
    /// `GET`, ...; of HTTP monitors alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_method: Option<String>,
    /// Path that is asked; of HTTP monitors alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url_path: Option<String>,
    /// Status that counts as good; of HTTP monitors alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_codes: Option<String>,
}

/// A change of a health monitor.
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
    /// Path that is asked; of HTTP monitors alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url_path: Option<String>,
    /// Status that counts as good; of HTTP monitors alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_codes: Option<String>,
}
