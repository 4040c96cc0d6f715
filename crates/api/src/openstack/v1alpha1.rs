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
}, {
    "rule": "!has(oldSelf.storage) || !has(oldSelf.storage.volumes) || has(self.storage) && has(self.storage.volumes)",
    "message": "storage.volumes cannot be removed: volumes of users may be there",
}, {
    "rule": "!has(oldSelf.storage) || !has(oldSelf.storage.images) || has(self.storage) && has(self.storage.images)",
    "message": "storage.images cannot be removed: images are in the pool",
}, {
    "rule": "!has(oldSelf.storage) || !has(oldSelf.storage.guests) || has(self.storage) && has(self.storage.guests)",
    "message": "storage.guests cannot be removed: disks of guests are in the pool",
}, {
    "rule": "!has(oldSelf.services) || !has(oldSelf.services.octavia) || !has(oldSelf.services.octavia.enabled) || !oldSelf.services.octavia.enabled || has(self.services) && has(self.services.octavia) && has(self.services.octavia.enabled) && self.services.octavia.enabled",
    "message": "services.octavia.enabled cannot be turned off: load balancers of users may be there",
}]))]
pub struct OpenStackSpec {
    /// Release of OpenStack: `2026.1` (from PyPI, on Debian 13), `2025.1` (from Debian 13) or `zed` (from Debian 12). Required.
    /// Goes up by one step, from `2025.1` to `2026.1`, and back only in the first phases of that upgrade.
    #[schemars(extend("enum" = ["zed", "2025.1", "2026.1"]))]
    pub release: String,
    /// Name of the region in the catalogue, such as `RegionOne`, which is the default. Cannot be changed.
    #[serde(default = "region")]
    #[schemars(extend("pattern" = "^[A-Za-z0-9._-]{1,64}$", "x-kubernetes-validations" = [{
        "rule": "self == oldSelf",
        "message": "cannot be changed: the services have registered their endpoints in it",
    }]))]
    pub region: String,
    /// Nodes that run the cloud, by labels. Default: every node.
    #[serde(default, skip_serializing_if = "Nodes::is_empty")]
    pub nodes: Nodes,
    /// Disks: volumes of the cloud itself, volumes of users, images, and disks of guests.
    #[serde(default, skip_serializing_if = "Storage::is_empty")]
    pub storage: Storage,
    /// Networks: MTU and physical networks.
    #[serde(default)]
    pub network: Network,
    /// Hypervisors. Default: none, so that no server can be created. Cannot be removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compute: Option<Compute>,
    /// Access of users outside of the cluster: public URLs and their certificate. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exposure: Option<Exposure>,
    /// Settings of each service: configuration options, requests and limits. Default: those of the release.
    #[serde(default)]
    pub services: Services,
    /// Backups: the volume, how many stay there, and the certificate to which passwords and keys are encrypted. Default: none, and no
    /// backup is made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backup: Option<Backup>,
    /// Scheduled rotations of all passwords and keys, such as `{schedule: 30 3 1 * *}`. Default: none, and rotations are made on request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotation: Option<Rotation>,
    /// Pauses the controller: the cloud stays as it is, and its services go on running. Default: false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
}

/// Nodes of the cloud ([`OpenStackSpec::nodes`]).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Nodes {
    /// Labels of the nodes that run everything but hypervisors, such as `{openstack-control-plane: enabled}`. Default: every node.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub control: BTreeMap<String, String>,
    /// Labels of the nodes that run hypervisors, such as `{openstack-compute-node: enabled}`. Default: every node.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub compute: BTreeMap<String, String>,
}

impl Nodes {
    fn is_empty(&self) -> bool {
        self.control.is_empty() && self.compute.is_empty()
    }
}

/// Disks of the cloud ([`OpenStackSpec::storage`]).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Storage {
    /// Name of the storage class of all volumes of the cloud itself, such as `standard`. Default: the default class of the cluster.
    /// Existing volumes keep their class.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 253))]
    pub class: String,
    /// External Ceph with the pools that other fields name. Required with a pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceph: Option<Ceph>,
    /// Volumes of users, of release `2026.1`, and with them Cinder. Default: none. Cannot be removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volumes: Option<Volumes>,
    /// Pool of new images. Default: none, and images are files on a volume of the cloud. Cannot be removed; images that are files stay
    /// files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub images: Option<Pool>,
    /// Pool of the disks of guests, with the driver `Libvirt`. Default: none, and disks are files on the node of the guest. Cannot
    /// be removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guests: Option<Pool>,
}

impl Storage {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// External Ceph ([`Storage::ceph`]).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Ceph {
    /// Addresses of the monitors, such as `[192.0.2.1:6789]`: an IPv4 address or a name, with a port unless the monitors have the
    /// standard one. Required.
    #[schemars(length(min = 1, max = 32), inner(length(max = 259)))]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub monitors: Vec<String>,
    /// Name of the user of the programs, without `client.`, such as `cinder`. Default: `openstack`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(extend("pattern" = "^[A-Za-z0-9._-]{1,64}$"))]
    pub user: String,
    /// Name of a Secret in the namespace, such as `ceph`, with the output of `ceph auth get client.openstack` as `keyring`, or
    /// with the key alone under the name of the user, as Rook makes it for a CephClient. Required.
    #[schemars(length(min = 1, max = 253))]
    pub secret_name: String,
}

/// Volumes of users ([`Storage::volumes`]).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "has(self.pool) == has(oldSelf.pool) && (!has(self.pool) || self.pool == oldSelf.pool)",
    "message": "pool cannot be changed: volumes are in it",
}, {
    "rule": "!has(oldSelf.backupPool) || has(self.backupPool) && self.backupPool == oldSelf.backupPool",
    "message": "backupPool cannot be changed: backups are in it",
}]))]
pub struct Volumes {
    /// Driver of Cinder, required. `Rbd`: images of RBD in a pool of the Ceph. `Fake`: imaginary volumes, for trials and tests,
    /// which become `available` and store nothing. Cannot be changed. `Lvm`, `Iscsi` and `Nfs` are rejected with the reason.
    #[schemars(extend("enum" = ["Rbd", "Fake", "Lvm", "Iscsi", "Nfs"], "x-kubernetes-validations" = [{
        "rule": "self == oldSelf",
        "message": "cannot be changed: volumes are on it",
    }, {
        "rule": "self in ['Rbd', 'Fake']",
        "message": "Lvm and Iscsi are not served: they need modules of the kernel with which they could not be tried; Nfs is not built yet",
    }]))]
    pub driver: String,
    /// Name of the pool of volumes and snapshots, such as `volumes`. Required with `Rbd`. Cannot be changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = "^[A-Za-z0-9._-]{1,64}$"))]
    pub pool: Option<String>,
    /// Name of the pool of backups, with `Rbd`, such as `backups`. Default: none, and Cinder makes no backups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = "^[A-Za-z0-9._-]{1,64}$"))]
    pub backup_pool: Option<String>,
}

/// Pool of a Ceph ([`Storage::images`], [`Storage::guests`]).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Pool {
    /// Name of the pool, such as `images`. Required. Cannot be changed.
    #[schemars(extend("pattern" = "^[A-Za-z0-9._-]{1,64}$", "x-kubernetes-validations" = [{
        "rule": "self == oldSelf",
        "message": "cannot be changed: disks are in the pool",
    }]))]
    pub pool: String,
}

/// Backups of the cloud ([`OpenStackSpec::backup`]).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Backup {
    /// Name of a PersistentVolumeClaim in the namespace, such as `backups`. Required. The claim is made by its user, and stays when the
    /// cloud is deleted.
    #[schemars(length(min = 1, max = 253))]
    pub claim_name: String,
    /// Certificate in PEM of the key that opens passwords and keys in a backup, such as that of
    /// `openssl req -x509 -newkey rsa:4096 -nodes -keyout backup.key -subj /CN=backup`. Required. The key itself stays with its holder.
    #[schemars(length(min = 1, max = 16384))]
    pub certificate: String,
    /// Number of backups of the cloud that stay on the volume, such as `30`; the oldest ones are removed after a new one is verified.
    /// Default: 7.
    #[serde(default = "keep")]
    #[schemars(range(min = 1, max = 1000))]
    pub keep: i32,
    /// Times of backups in UTC: minute, hour, day of the month, month and day of the week, such as `0 2 * * *` for each night. Default:
    /// none, and backups are made on request and before upgrades. A backup whose predecessor is not over is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 100))]
    pub schedule: Option<String>,
}

/// Scheduled rotations ([`OpenStackSpec::rotation`]).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rotation {
    /// Times of rotations in UTC: minute, hour, day of the month, month and day of the week, such as `30 3 1 * *` for each month.
    /// Required. A rotation whose predecessor is not over is left out.
    #[schemars(length(min = 1, max = 100))]
    pub schedule: String,
}

/// Requests and limits of each program of a service ([`Service::resources`]).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Resources {
    /// Reservation for each program, as quantities by resource, such as `{cpu: 100m, memory: 256Mi}`. Default: none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub requests: BTreeMap<String, String>,
    /// Maximum for each program, as quantities by resource, such as `{cpu: 500m, memory: 1Gi}`. Default: no limit.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<String, String>,
}

impl Resources {
    fn is_empty(&self) -> bool {
        self.requests.is_empty() && self.limits.is_empty()
    }
}

/// Network service ([`OpenStackSpec::network`]).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Network {
    /// MTU of the network between the nodes, in bytes, such as `9000`. Default: 1500. Geneve takes 58 bytes from the networks of
    /// projects.
    #[serde(default = "mtu")]
    #[schemars(range(min = 1280, max = 65535))]
    pub mtu: i32,
    /// Physical networks, to which provider networks can refer, such as `[{name: public}]`. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub physical: Vec<Physical>,
    /// Place where Open vSwitch forwards packets of guests, with the driver `Libvirt`. Default: `Auto`, which is `System` on nodes
    /// whose kernel has the module openvswitch. `System`: in the kernel. `Userspace`: in ovs-vswitchd, on one node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["Auto", "System", "Userspace"]))]
    pub datapath: Option<String>,
}

impl Default for Network {
    fn default() -> Self {
        Self {
            mtu: mtu(),
            physical: Vec::new(),
            datapath: None,
        }
    }
}

/// A physical network.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Physical {
    /// Name of the network in Neutron, such as `public`. Required.
    #[schemars(extend("pattern" = "^[A-Za-z0-9._-]{1,64}$"))]
    pub name: String,
    /// Range of VLAN ids for networks of projects, such as `100:199`. Default: none, which allows untagged networks alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = "^[0-9]{1,4}:[0-9]{1,4}$"))]
    pub vlans: Option<String>,
    /// Interface of each compute node that leads to the network, with the driver `Libvirt`, such as `eth1`. Default: none, so
    /// that only the nodes themselves reach it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = "^[A-Za-z0-9._-]{1,15}$"))]
    pub interface: Option<String>,
}

/// Hypervisors ([`OpenStackSpec::compute`]).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Compute {
    /// Driver of the hypervisors, required. `Fake`: imaginary hypervisors, for trials and tests, on which servers become ACTIVE
    /// and nothing runs. `Libvirt`: QEMU on each node with the labels of `nodes.compute`, of release `2026.1`. Cannot be changed.
    #[schemars(extend("enum" = ["Fake", "Libvirt"], "x-kubernetes-validations" = [{
        "rule": "self == oldSelf",
        "message": "cannot be changed: servers may be on the hypervisors",
    }]))]
    pub driver: String,
    /// Number and zones of the imaginary hypervisors.
    #[serde(default)]
    pub fake: Fake,
    /// Reservations and processors of the hypervisors of `Libvirt`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub libvirt: Option<Libvirt>,
    /// Servers of a node that is cordoned or gone, with the driver `Libvirt`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain: Option<Drain>,
}

/// Drain of compute nodes ([`Compute::drain`]).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Drain {
    /// Servers of a cordoned node. Default: `LiveMigrate`, they move to other nodes while they run. `Wait`: they stay until
    /// somebody moves or deletes them, and the node cannot be drained before. `Ignore`: nothing keeps the node from being drained.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["LiveMigrate", "Wait", "Ignore"]))]
    pub mode: Option<String>,
    /// Time from the cordon in which migrations are started, from `1s` to `24h`. Default: `15m`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = "^[0-9]{1,5}[smh]$"))]
    pub timeout: Option<String>,
    /// Number of servers of a node that move at once, such as `2`. Default: 4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 32))]
    pub at_once: Option<i32>,
    /// True if servers of a node that is gone for good are built anew on other nodes, without their disks. Its machine has to be
    /// off. Default: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evacuate: Option<bool>,
}

/// Hypervisors of libvirt and QEMU ([`Compute::libvirt`]).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Libvirt {
    /// Number of processors of each node that guests do not get, such as `2`. Default: 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1024))]
    pub reserved_cpus: Option<i32>,
    /// Number of MiB of memory of each node that guests do not get, such as `4096`. Default: 2048.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 16_777_216))]
    pub reserved_memory_mib: Option<i32>,
    /// Processor that guests see. Default: `Default`, with KVM the model of the node, without it that of QEMU.
    /// `HostModel`: the model of the node. `HostPassthrough`: the processor of the node as it is, with KVM alone. `Custom`: one of
    /// `cpuModels`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["Default", "HostModel", "HostPassthrough", "Custom"]))]
    pub cpu_mode: Option<String>,
    /// Models of QEMU, the best one first, such as `[Haswell, Nehalem]`. Required with `Custom`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    #[schemars(inner(length(max = 64), regex(pattern = "^[A-Za-z0-9._-]{1,64}$")))]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub cpu_models: Vec<String>,
}

/// Fake hypervisors, without machines ([`Compute::fake`]).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Fake {
    /// Number of imaginary hypervisors, such as `3`. Default: 2. Cannot be lowered.
    #[serde(default = "hypervisors")]
    #[schemars(range(min = 1, max = 100))]
    #[schemars(extend("x-kubernetes-validations" = [{
        "rule": "self >= oldSelf",
        "message": "cannot be lowered: servers may be on the hypervisors",
    }]))]
    pub hypervisors: i32,
    /// Availability zones, which the hypervisors get in turns, such as `[az1, az2]`. Default: Nova's own zone. Cannot be changed.
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

/// Access for users outside the cluster ([`OpenStackSpec::exposure`]).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Exposure {
    /// Mode of access, required. `Edge`: a proxy that ends TLS, with the standard port of every API on addresses of nodes.
    /// `None`: no access.
    /// `Gateway` and `LoadBalancer` are rejected: both are not built yet.
    #[schemars(extend("enum" = ["None", "Edge", "Gateway", "LoadBalancer"], "x-kubernetes-validations" = [{
        "rule": "self in ['None', 'Edge']",
        "message": "Gateway and LoadBalancer are not built yet",
    }]))]
    pub mode: String,
    /// Host in the public URLs and the certificate of the cloud: a name or an IPv4 address, such as `cloud.example.org`.
    /// Required with `Edge`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 253))]
    pub host: String,
    /// IPv4 addresses of nodes on which the cloud answers, such as `[192.0.2.10]`. Default: `host`, if that is an address.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 15)))]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub addresses: Vec<String>,
    /// Certificate of the edge.
    #[serde(default, skip_serializing_if = "Tls::is_empty")]
    pub tls: Tls,
}

/// Certificate of the edge ([`Exposure::tls`]).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Tls {
    /// Name of a Secret in the namespace with `tls.crt`, `tls.key` and, for clients, `ca.crt`. Default: a certificate of an
    /// authority that is made for the cloud.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 253))]
    pub secret_name: String,
}

impl Tls {
    fn is_empty(&self) -> bool {
        self.secret_name.is_empty()
    }
}

/// Settings of each service ([`OpenStackSpec::services`]).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Services {
    /// Settings of Keystone, the identity service.
    #[serde(default, skip_serializing_if = "Service::is_empty")]
    pub keystone: Service,
    /// Settings of Glance, the image service.
    #[serde(default, skip_serializing_if = "Service::is_empty")]
    pub glance: Service,
    /// Settings of Placement, the inventory of resources.
    #[serde(default, skip_serializing_if = "Service::is_empty")]
    pub placement: Service,
    /// Settings of Nova, the compute service.
    #[serde(default, skip_serializing_if = "Service::is_empty")]
    pub nova: Service,
    /// Settings of Neutron, the network service.
    #[serde(default, skip_serializing_if = "Service::is_empty")]
    pub neutron: Service,
    /// Settings of Cinder, the volume service, which is there with `storage.volumes`.
    #[serde(default, skip_serializing_if = "Service::is_empty")]
    pub cinder: Service,
    /// Octavia, the load-balancing service, of release `2026.1`, with OVN as provider. Default: none.
    #[serde(default, skip_serializing_if = "LoadBalancers::is_empty")]
    pub octavia: LoadBalancers,
    /// Settings of Horizon, the dashboard.
    #[serde(default, skip_serializing_if = "Dashboard::is_empty")]
    pub horizon: Dashboard,
}

/// Settings of a service ([`Services`]).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Service {
    /// Options of the configuration file, by section and name, such as `{DEFAULT: {debug: true}}`. Default: none. Each option has
    /// to be in the option table of the release;
    /// options that the structure of the cloud demands cannot be set.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schemars(schema_with = "free")]
    pub config: Map<String, Value>,
    /// Requests and limits of each program and task of the service. Default: none.
    #[serde(default, skip_serializing_if = "Resources::is_empty")]
    pub resources: Resources,
    /// Requests that the API of the service answers at a time: processes by threads.
    #[serde(default, skip_serializing_if = "Api::is_empty")]
    pub api: Api,
}

impl Service {
    fn is_empty(&self) -> bool {
        self.config.is_empty() && self.resources.is_empty() && self.api.is_empty()
    }
}

/// Octavia and its settings ([`Services::octavia`]).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LoadBalancers {
    /// True for a cloud with Octavia. Default: false. Cannot be turned off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Options of the configuration file, by section and name, such as `{quotas: {default_load_balancer_quota: 20}}`. Default: none.
    /// Each option has to be in the option table of the release; options that the structure of the cloud demands cannot be set.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schemars(schema_with = "free")]
    pub config: Map<String, Value>,
    /// Requests and limits of each program and task of the service. Default: none.
    #[serde(default, skip_serializing_if = "Resources::is_empty")]
    pub resources: Resources,
    /// Requests that the API of the service answers at a time: processes by threads.
    #[serde(default, skip_serializing_if = "Api::is_empty")]
    pub api: Api,
}

impl LoadBalancers {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Processes of an API, and threads of each ([`Service::api`]). A waiting request occupies a thread: for a hanging
/// hypervisor, or a slow upload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Api {
    /// Number of processes, from 1 to 64, such as `4`. Default: one for each processor that the limits of the Pod name, as far as each
    /// has 250 MiB of its memory, and two without limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 64))]
    pub processes: Option<u32>,
    /// Number of threads of each process, from 1 to 64, such as `8`. Default: 4; one before 2026.1, and for Neutron.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 64))]
    pub threads: Option<u32>,
}

impl Api {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Settings of the dashboard ([`Services::horizon`]).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Dashboard {
    /// Settings of Horizon by name, such as `{SITE_BRANDING: Example}`. Default: none. Each setting has to be in the table of the
    /// release; settings that the structure of the cloud or the static files in the image demand cannot be set.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schemars(schema_with = "free")]
    pub config: Map<String, Value>,
    /// Requests and limits of the dashboard. Default: none.
    #[serde(default, skip_serializing_if = "Resources::is_empty")]
    pub resources: Resources,
    /// Requests that the dashboard answers at a time: processes by threads.
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
    /// Uid of the cloud: the value of the label `ferrostack.dev/cloud-uid` of every object of the cloud.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// Release of the cloud, and the upgrade that is under way or was the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<ReleaseStatus>,
    /// Steps of the cloud, each after the steps that it needs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub steps: Vec<StepStatus>,
    /// Schedules of backups and rotations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub schedules: Vec<ScheduleStatus>,
    /// Observations, one per type: `Ready`, `ConfigurationValid`, `TasksSucceeded`, `AccountsWritten`, `NodesDrained` (with `Libvirt`), `Paused`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
}

/// Release of a cloud, and progress of an upgrade ([`OpenStackStatus::release`]).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReleaseStatus {
    /// Release of the cloud, such as `2025.1`. An upgrade that is over changes it.
    pub current: String,
    /// Release from which the upgrade leads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Release to which the upgrade leads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Phase of the upgrade that is under way: `Check`, `Backup`, `Infra`, `Expand`, `Roll`, `Migrate`, `Contract` or `Verify`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["Check", "Backup", "Infra", "Expand", "Roll", "Migrate", "Contract", "Verify"]))]
    pub phase: Option<String>,
    /// Phases that have begun, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub phases: Vec<UpgradePhase>,
    /// Warnings of the checks of the new release.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub warnings: Vec<String>,
}

/// A phase of an upgrade.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpgradePhase {
    /// Name of the phase, such as `Expand`.
    pub name: String,
    /// Start of the phase; RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<crate::shape::Time>")]
    pub started: Option<Time>,
    /// Seconds from the start of the phase until its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<i64>,
}

/// The state of a schedule.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScheduleStatus {
    /// Name of the schedule: `backup` or `rotation`.
    pub name: String,
    /// Times that are followed, such as `0 2 * * *`. A change of the spec begins anew.
    pub schedule: String,
    /// Time of the next operation; RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<crate::shape::Time>")]
    pub next: Option<Time>,
    /// Name of the last OpenStackOperation that was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// Reason why the last operation was left out. Empty if it was made.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// The state of a step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepStatus {
    /// Name of the step, such as `keystone-schema`.
    pub name: String,
    /// Phase: `Waiting`, `Progressing`, `Failed` or `Ready`.
    pub phase: Phase,
    /// Reason why the step is not ready, such as `waits for mariadb`. Empty when the step is ready.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Start of the step, after the steps that it needs became ready; RFC 3339. A change starts the step again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<crate::shape::Time>")]
    pub started: Option<Time>,
    /// Seconds from the start of the step until it was ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<i64>,
}

/// Progress of a step ([`StepStatus::phase`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Phase {
    /// Another step is not ready yet.
    #[default]
    Waiting,
    /// Started, but not ready.
    Progressing,
    /// Failed: the step needs a change to continue.
    Failed,
    /// Ready.
    Ready,
}

impl Phase {
    /// Name in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "Waiting",
            Self::Progressing => "Progressing",
            Self::Failed => "Failed",
            Self::Ready => "Ready",
        }
    }
}

/// Schema of options: any section, name and type.
fn free(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

fn region() -> String {
    "RegionOne".to_owned()
}

fn keep() -> i32 {
    7
}

fn hypervisors() -> i32 {
    2
}

fn mtu() -> i32 {
    1500
}
