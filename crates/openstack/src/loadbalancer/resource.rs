//! Resources of Octavia. A list request asks for exactly the fields below.

use std::collections::HashSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Reference to another object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Reference {
    /// Id of the object.
    pub id: String,
}

/// Load balancer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LoadBalancer {
    /// Id.
    pub id: String,
    /// Name; not unique.
    pub name: String,
    /// Free text.
    pub description: String,
    /// `ACTIVE`, `PENDING_CREATE`, `PENDING_UPDATE`, `PENDING_DELETE`, `ERROR` or `DELETED`.
    pub provisioning_status: String,
    /// `ONLINE`, `OFFLINE`, `DEGRADED`, `ERROR` or `NO_MONITOR`.
    pub operating_status: String,
    /// Virtual address.
    pub vip_address: String,
    /// Port of the virtual address.
    pub vip_port_id: String,
    /// Subnet of the virtual address.
    pub vip_subnet_id: String,
    /// Network of the virtual address.
    pub vip_network_id: String,
    /// Further virtual addresses, on the same port (API 2.26).
    pub additional_vips: Vec<AdditionalVip>,
    /// Driver, for example `amphora` or `ovn`.
    pub provider: String,
    /// Flavor.
    pub flavor_id: Option<String>,
    /// Availability zone.
    pub availability_zone: Option<String>,
    /// Listeners.
    pub listeners: Vec<Reference>,
    /// Pools.
    pub pools: Vec<Reference>,
    /// Tags.
    pub tags: Vec<String>,
    /// Id of the owning project.
    pub project_id: String,
}

impl LoadBalancer {
    pub(super) const FIELDS: &[&str] = &[
        "id",
        "name",
        "description",
        "provisioning_status",
        "operating_status",
        "vip_address",
        "vip_port_id",
        "vip_subnet_id",
        "vip_network_id",
        "additional_vips",
        "provider",
        "flavor_id",
        "availability_zone",
        "listeners",
        "pools",
        "tags",
        "project_id",
    ];

    /// True while Octavia is working on the load balancer, so that all parts are immutable.
    pub fn is_pending(&self) -> bool {
        self.provisioning_status.starts_with("PENDING_")
    }
}

/// Further virtual address of a load balancer, in the network of the first one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AdditionalVip {
    /// Subnet of the address.
    pub subnet_id: String,
    /// Address; in a request, Octavia chooses one if absent.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ip_address: String,
}

/// Listener: one open port of a load balancer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Listener {
    /// Id.
    pub id: String,
    /// Name; not unique.
    pub name: String,
    /// Free text.
    pub description: String,
    /// `TCP`, `UDP`, `HTTP`, ...
    pub protocol: String,
    /// Port.
    pub protocol_port: u16,
    /// Pool that takes the traffic.
    pub default_pool_id: Option<String>,
    /// Ranges of clients that may connect; everyone if empty.
    pub allowed_cidrs: Vec<String>,
    /// Maximum number of connections; -1 for no limit.
    pub connection_limit: Option<i64>,
    /// Milliseconds of client silence until a connection is closed.
    pub timeout_client_data: Option<i64>,
    /// Milliseconds until a connection to a member fails.
    pub timeout_member_connect: Option<i64>,
    /// Milliseconds of member silence until a connection is closed.
    pub timeout_member_data: Option<i64>,
    /// Milliseconds for further packets to inspect content.
    pub timeout_tcp_inspect: Option<i64>,
    /// Headers added to requests.
    pub insert_headers: Map<String, Value>,
    /// Certificate in the key manager; of `TERMINATED_HTTPS` alone.
    pub default_tls_container_ref: Option<String>,
    /// Load balancer, as a list of one.
    pub loadbalancers: Vec<Reference>,
    /// As for load balancers.
    pub provisioning_status: String,
    /// As for load balancers.
    pub operating_status: String,
    /// Tags.
    pub tags: Vec<String>,
}

impl Listener {
    pub(super) const FIELDS: &[&str] = &[
        "id",
        "name",
        "description",
        "protocol",
        "protocol_port",
        "default_pool_id",
        "allowed_cidrs",
        "connection_limit",
        "timeout_client_data",
        "timeout_member_connect",
        "timeout_member_data",
        "timeout_tcp_inspect",
        "insert_headers",
        "default_tls_container_ref",
        "loadbalancers",
        "provisioning_status",
        "operating_status",
        "tags",
    ];
}

/// Pool: the servers behind a listener.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Pool {
    /// Id.
    pub id: String,
    /// Name; not unique.
    pub name: String,
    /// Free text.
    pub description: String,
    /// `TCP`, `UDP`, `HTTP`, ...
    pub protocol: String,
    /// `ROUND_ROBIN`, `SOURCE_IP_PORT`, ...
    pub lb_algorithm: String,
    /// Session persistence: clients stay with one member.
    pub session_persistence: Option<SessionPersistence>,
    /// Health monitor.
    pub healthmonitor_id: Option<String>,
    /// Members.
    pub members: Vec<Reference>,
    /// Listeners with this pool.
    pub listeners: Vec<Reference>,
    /// Load balancer, as a list of one.
    pub loadbalancers: Vec<Reference>,
    /// As for load balancers.
    pub provisioning_status: String,
    /// As for load balancers.
    pub operating_status: String,
    /// Time of the last change.
    pub updated_at: String,
    /// Tags.
    pub tags: Vec<String>,
}

impl Pool {
    pub(super) const FIELDS: &[&str] = &[
        "id",
        "name",
        "description",
        "protocol",
        "lb_algorithm",
        "session_persistence",
        "healthmonitor_id",
        "members",
        "listeners",
        "loadbalancers",
        "provisioning_status",
        "operating_status",
        "updated_at",
        "tags",
    ];
}

/// Rule by which clients stay with a member of a pool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct SessionPersistence {
    /// `SOURCE_IP`, `HTTP_COOKIE` or `APP_COOKIE`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Seconds until a client is forgotten; of UDP and SCTP alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub persistence_timeout: Option<i64>,
}

/// Member: one server of a pool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Member {
    /// Id.
    pub id: String,
    /// Name; not unique.
    pub name: String,
    /// Address.
    pub address: String,
    /// Port.
    pub protocol_port: u16,
    /// Subnet through which the address is reached.
    pub subnet_id: Option<Arc<str>>,
    /// Port for health checks, if not the member's port.
    pub monitor_port: Option<u16>,
    /// Share of the traffic.
    pub weight: i64,
    /// As for load balancers.
    pub provisioning_status: Arc<str>,
    /// As for load balancers.
    pub operating_status: Arc<str>,
    /// Tags.
    pub tags: Vec<String>,
    /// Pool of the member. Octavia does not return the id; the call fills it in.
    pub pool_id: Arc<str>,
}

impl Member {
    /// Sets the pool. Common texts of many members are stored once, in `shared`: a hundred pools of a thousand nodes
    /// have a hundred thousand members.
    pub(super) fn set_pool(&mut self, pool: &Arc<str>, shared: &mut HashSet<Arc<str>>) {
        self.pool_id = Arc::clone(pool);
        let statuses = [&mut self.provisioning_status, &mut self.operating_status];
        for text in statuses.into_iter().chain(&mut self.subnet_id) {
            match shared.get(text) {
                Some(known) => *text = Arc::clone(known),
                None => drop(shared.insert(Arc::clone(text))),
            }
        }
    }
}

/// Health monitor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Monitor {
    /// Id.
    pub id: String,
    /// Name; not unique.
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
    /// `GET`, ...; of HTTP monitors alone.
    pub http_method: Option<String>,
    /// Path of the check; of HTTP monitors alone.
    pub url_path: Option<String>,
    /// Expected status; of HTTP monitors alone.
    pub expected_codes: Option<String>,
    /// Pool, as a list of one.
    pub pools: Vec<Reference>,
    /// As for load balancers.
    pub provisioning_status: String,
}

/// Driver of load balancers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Provider {
    /// Name.
    pub name: String,
    /// Description for people.
    pub description: String,
}

/// Flavor of load balancers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LbFlavor {
    /// Id.
    pub id: String,
    /// Name.
    pub name: String,
    /// False if the flavor is disabled.
    pub enabled: bool,
}

/// Availability zone of load balancers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LbZone {
    /// Name, which is the id.
    pub name: String,
    /// False if the zone is disabled.
    pub enabled: bool,
}

/// Octavia's quota; a negative limit means no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LoadBalancerQuota {
    /// Most load balancers.
    pub loadbalancer: i64,
    /// Most listeners.
    pub listener: i64,
    /// Most pools.
    pub pool: i64,
    /// Most members.
    pub member: i64,
    /// Most health monitors.
    pub healthmonitor: i64,
}

impl Default for LoadBalancerQuota {
    fn default() -> Self {
        Self {
            loadbalancer: -1,
            listener: -1,
            pool: -1,
            member: -1,
            healthmonitor: -1,
        }
    }
}
