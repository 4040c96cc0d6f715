//! `ferrostack.dev/v1alpha1`, the only version.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::infra::schema;

/// The `apiVersion` of the objects in this module.
pub const API_VERSION: &str = "ferrostack.dev/v1alpha1";

/// The desired state of a cloud.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[kube(
    group = "ferrostack.dev",
    version = "v1alpha1",
    kind = "OpenStack",
    plural = "openstacks",
    doc = "An OpenStack cloud on this Kubernetes cluster. It has its namespace for itself.",
    namespaced,
    status = "OpenStackStatus",
    derive = "PartialEq",
    derive = "Default",
    printcolumn(name = "Release", type_ = "string", json_path = ".spec.release"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status"
    ),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].message"
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "!has(oldSelf.compute) || has(self.compute)",
    "message": "compute cannot be removed: servers may be on the hypervisors",
}]))]
pub struct OpenStackSpec {
    /// The release: `2026.1` (from PyPI, on Debian 13), `2025.1` (from Debian 13) or `zed` (from Debian 12). Cannot be changed: upgrades are not built.
    #[schemars(extend("enum" = ["zed", "2025.1", "2026.1"], "x-kubernetes-validations" = [{
        "rule": "self == oldSelf",
        "message": "cannot be changed: upgrades from one release to another are not built",
    }]))]
    pub release: String,
    /// Name of the region in the catalogue. Cannot be changed.
    #[serde(default = "region")]
    #[schemars(extend("pattern" = "^[A-Za-z0-9._-]{1,64}$", "x-kubernetes-validations" = [{
        "rule": "self == oldSelf",
        "message": "cannot be changed: the services have registered their endpoints in it",
    }]))]
    pub region: String,
    /// The nodes that run the cloud. Without labels all of them do.
    #[serde(default, skip_serializing_if = "Nodes::is_empty")]
    pub nodes: Nodes,
    /// The volumes.
    #[serde(default, skip_serializing_if = "Storage::is_empty")]
    pub storage: Storage,
    /// The network service.
    #[serde(default)]
    pub network: Network,
    /// The hypervisors. Without it there are none. Cannot be removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compute: Option<Compute>,
    /// How users outside of the cluster reach the cloud. Without it they do not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exposure: Option<Exposure>,
    /// Settings of each service.
    #[serde(default)]
    pub services: Services,
    /// Whether the controller leaves the cloud as it is. What runs goes on running.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
}

/// The nodes that run the cloud.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Nodes {
    /// Labels of the nodes that run everything but hypervisors.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub control: BTreeMap<String, String>,
    /// Labels of the nodes that run hypervisors.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub compute: BTreeMap<String, String>,
}

impl Nodes {
    fn is_empty(&self) -> bool {
        self.control.is_empty() && self.compute.is_empty()
    }
}

/// The volumes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Storage {
    /// The storage class of all volumes. Without it they get the default one of the cluster. Volumes that exist keep theirs.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 253))]
    pub class: String,
}

impl Storage {
    fn is_empty(&self) -> bool {
        self.class.is_empty()
    }
}

/// What each program of a service requests and gets at most.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Resources {
    /// What is reserved for it, such as `{cpu: 100m, memory: 256Mi}`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub requests: BTreeMap<String, String>,
    /// What it gets at most.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<String, String>,
}

impl Resources {
    fn is_empty(&self) -> bool {
        self.requests.is_empty() && self.limits.is_empty()
    }
}

/// The network service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Network {
    /// MTU of the network between the nodes, in bytes. Geneve takes 58 of them from the networks of projects.
    #[serde(default = "mtu")]
    #[schemars(range(min = 1280, max = 65535))]
    pub mtu: i32,
    /// Physical networks, to which provider networks can refer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub physical: Vec<Physical>,
}

impl Default for Network {
    fn default() -> Self {
        Self {
            mtu: mtu(),
            physical: Vec::new(),
        }
    }
}

/// A physical network.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Physical {
    /// Its name in Neutron.
    #[schemars(extend("pattern" = "^[A-Za-z0-9._-]{1,64}$"))]
    pub name: String,
    /// VLAN ids that networks of projects may get, such as `100:199`. Without it, only untagged networks are possible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = "^[0-9]{1,4}:[0-9]{1,4}$"))]
    pub vlans: Option<String>,
}

/// The hypervisors.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Compute {
    /// The kind of hypervisor. `Fake`: imaginary ones, for trials and tests, on which servers become ACTIVE and nothing runs.
    /// `Libvirt` is rejected: it is not built yet.
    #[schemars(extend("enum" = ["Fake", "Libvirt"], "x-kubernetes-validations" = [{
        "rule": "self != 'Libvirt'",
        "message": "Libvirt is not built yet; Fake makes imaginary hypervisors",
    }]))]
    pub driver: String,
    /// The imaginary hypervisors.
    #[serde(default)]
    pub fake: Fake,
}

/// Imaginary hypervisors.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Fake {
    /// Their number. Cannot be lowered.
    #[serde(default = "hypervisors")]
    #[schemars(range(min = 1, max = 100))]
    #[schemars(extend("x-kubernetes-validations" = [{
        "rule": "self >= oldSelf",
        "message": "cannot be lowered: servers may be on the hypervisors",
    }]))]
    pub hypervisors: i32,
    /// Availability zones, which the hypervisors get in turns. Without any they are in Nova's own. Cannot be changed.
    #[serde(default)]
    #[schemars(length(max = 16))]
    #[schemars(inner(length(max = 64), regex(pattern = "^[A-Za-z0-9._-]{1,64}$")))]
    #[schemars(extend("x-kubernetes-list-type" = "set", "x-kubernetes-validations" = [{
        "rule": "self == oldSelf",
        "message": "cannot be changed: servers stay in their zone",
    }]))]
    pub zones: Vec<String>,
}

impl Default for Fake {
    fn default() -> Self {
        Self {
            hypervisors: hypervisors(),
            zones: Vec::new(),
        }
    }
}

/// How users outside of the cluster reach the cloud.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Exposure {
    /// `Edge`: a proxy that ends TLS, with the standard port of every API on addresses of nodes. `None`: nothing.
    /// `Gateway` and `LoadBalancer` are rejected: they are not built yet.
    #[schemars(extend("enum" = ["None", "Edge", "Gateway", "LoadBalancer"], "x-kubernetes-validations" = [{
        "rule": "self in ['None', 'Edge']",
        "message": "Gateway and LoadBalancer are not built yet",
    }]))]
    pub mode: String,
    /// The name or IPv4 address of the cloud, as in its public URLs and its certificate.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 253))]
    pub host: String,
    /// IPv4 addresses of nodes on which the cloud answers. The host, if it is one, by default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 15)))]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub addresses: Vec<String>,
    /// The certificate.
    #[serde(default, skip_serializing_if = "Tls::is_empty")]
    pub tls: Tls,
}

/// The certificate of the edge.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Tls {
    /// A Secret in the namespace with `tls.crt`, `tls.key` and, for clients, `ca.crt`. Without it, the cloud has an
    /// authority of its own.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 253))]
    pub secret_name: String,
}

impl Tls {
    fn is_empty(&self) -> bool {
        self.secret_name.is_empty()
    }
}

/// Settings of each service.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Services {
    /// Identity.
    #[serde(default, skip_serializing_if = "Service::is_empty")]
    pub keystone: Service,
    /// Images.
    #[serde(default, skip_serializing_if = "Service::is_empty")]
    pub glance: Service,
    /// Inventory of resources.
    #[serde(default, skip_serializing_if = "Service::is_empty")]
    pub placement: Service,
    /// Servers.
    #[serde(default, skip_serializing_if = "Service::is_empty")]
    pub nova: Service,
    /// Networks.
    #[serde(default, skip_serializing_if = "Service::is_empty")]
    pub neutron: Service,
    /// The dashboard.
    #[serde(default, skip_serializing_if = "Dashboard::is_empty")]
    pub horizon: Dashboard,
}

/// Settings of a service.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Service {
    /// Options of its configuration file, by section and name. Each has to be in the option table of the release;
    /// options that the structure of the cloud demands cannot be set.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schemars(schema_with = "free")]
    pub config: Map<String, Value>,
    /// What each of its programs and tasks requests, and gets at most.
    #[serde(default, skip_serializing_if = "Resources::is_empty")]
    pub resources: Resources,
    /// How many requests its API answers at a time: processes by threads.
    #[serde(default, skip_serializing_if = "Api::is_empty")]
    pub api: Api,
}

impl Service {
    fn is_empty(&self) -> bool {
        self.config.is_empty() && self.resources.is_empty() && self.api.is_empty()
    }
}

/// Processes of an API, and threads of each. A request that waits, for a hypervisor that hangs or for a slow upload, takes one of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Api {
    /// Processes, from 1 to 64. Without a number there is one for each processor that the limits of the Pod name, as far as each
    /// has 250 MiB of its memory, and there are two without limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 64))]
    pub processes: Option<u32>,
    /// Threads of each process, from 1 to 64; 4 without a number. Before 2026.1, and for Neutron, there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 64))]
    pub threads: Option<u32>,
}

impl Api {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Settings of the dashboard.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Dashboard {
    /// Settings of Horizon by name, such as `SITE_BRANDING`. Each has to be in the table of the release; what the structure
    /// of the cloud or the static files in the image demand cannot be set.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schemars(schema_with = "free")]
    pub config: Map<String, Value>,
    /// What it requests, and gets at most.
    #[serde(default, skip_serializing_if = "Resources::is_empty")]
    pub resources: Resources,
    /// How many requests it answers at a time: processes by threads.
    #[serde(default, skip_serializing_if = "Api::is_empty")]
    pub api: Api,
}

impl Dashboard {
    fn is_empty(&self) -> bool {
        self.config.is_empty() && self.resources.is_empty() && self.api.is_empty()
    }
}

/// The state of a cloud.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OpenStackStatus {
    /// Generation of the spec that this status is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The uid of the cloud: the value of the label `ferrostack.dev/cloud-uid` of everything that belongs to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// The steps of the cloud, each after those that it needs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub steps: Vec<StepStatus>,
    /// Observations, one per type: `Ready`, `ConfigurationValid`, `TasksSucceeded`, `AccountsWritten`, `Paused`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
}

/// The state of a step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepStatus {
    /// Its name, such as `keystone-schema`.
    pub name: String,
    /// How far it is.
    pub phase: Phase,
    /// What it waits for, or what is wrong with it. Empty when it is ready.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// When what it needs became ready and it started. After a change it starts again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<crate::shape::Time>")]
    pub started: Option<Time>,
    /// Seconds from the start until it was ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<i64>,
}

/// How far a step is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Phase {
    /// A step that it needs is not ready.
    #[default]
    Waiting,
    /// It has started and is not ready.
    Progressing,
    /// It has failed, and does not go on without a change.
    Failed,
    /// It is ready.
    Ready,
}

impl Phase {
    /// Its name in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "Waiting",
            Self::Progressing => "Progressing",
            Self::Failed => "Failed",
            Self::Ready => "Ready",
        }
    }
}

/// Options of any section, name and type.
fn free(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

fn region() -> String {
    "RegionOne".to_owned()
}

fn hypervisors() -> i32 {
    2
}

fn mtu() -> i32 {
    1500
}
