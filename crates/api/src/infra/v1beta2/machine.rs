//! [`OpenStackMachine`]: one server for one Machine of Cluster API.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::given;
use super::params::{FlavorParam, IdentityRef, ImageParam, SecurityGroupParam, ServerGroupParam};
use super::port::{PortOpts, ResolvedPortSpec};
use crate::infra::schema;

/// The server that a Machine runs on. Immutable but for `providerID`, `identityRef` (without its
/// region) and the ports' allowed address pairs.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "infrastructure.cluster.x-k8s.io",
    version = "v1beta2",
    kind = "OpenStackMachine",
    plural = "openstackmachines",
    shortname = "osm",
    category = "cluster-api",
    status = "OpenStackMachineStatus",
    derive = "PartialEq",
    namespaced,
    doc = "The server that a Machine runs on.",
    printcolumn(
        name = "Cluster",
        type_ = "string",
        json_path = r".metadata.labels.cluster\.x-k8s\.io/cluster-name",
        description = "Cluster to which this OpenStackMachine belongs"
    ),
    printcolumn(
        name = "ProviderID",
        type_ = "string",
        json_path = ".spec.providerID",
        description = "OpenStack instance ID"
    ),
    printcolumn(
        name = "Machine",
        type_ = "string",
        json_path = r#".metadata.ownerReferences[?(@.kind=="Machine")].name"#,
        description = "Machine object which owns this OpenStackMachine"
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp",
        description = "Time duration since creation of OpenStackMachine"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct OpenStackMachineSpec {
    /// The providerID of the Node on this server. Set by the controller.
    #[serde(rename = "providerID")]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "given::text")]
    pub provider_id: Option<String>,
    /// The flavor.
    #[serde(default)]
    #[schemars(!default)]
    pub flavor: FlavorParam,
    /// The image.
    #[serde(default)]
    #[schemars(!default)]
    pub image: ImageParam,
    /// The key pair that may log in.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "given::text")]
    pub ssh_key_name: Option<String>,
    /// The ports; one on the cluster's network when empty.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<PortOpts>,
    /// Security groups added to every port.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub security_groups: Vec<SecurityGroupParam>,
    /// Creates a trunk on every port without a `trunk` of its own; false when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trunk: Option<bool>,
    /// Tags of the server and its ports, added to those of the cluster.
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Metadata of the server.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["key"]))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub server_metadata: Vec<ServerMetadata>,
    /// Provides user data on a config drive, too; false when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_drive: Option<bool>,
    /// A volume to boot from, instead of the flavor's disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root_volume: Option<RootVolume>,
    /// Further disks.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub additional_block_devices: Vec<AdditionalBlockDevice>,
    /// The server group, whose policy decides about placement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_group: Option<ServerGroupParam>,
    /// The credentials; those of the OpenStackCluster when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity_ref: Option<IdentityRef>,
    /// The pool that a floating IP is taken from.
    #[serde(rename = "floatingIPPoolRef")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub floating_ip_pool_ref: Option<FloatingIpPoolRef>,
    /// Further scheduler hints.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scheduler_hint_additional_properties: Vec<SchedulerHint>,
}

/// The observed state of a machine's server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OpenStackMachineStatus {
    /// The conditions of the object.
    #[schemars(schema_with = "schema::conditions")]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// The first provisioning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initialization: Option<Initialization>,
    /// The server's id.
    #[serde(rename = "instanceID")]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "given::text")]
    pub instance_id: Option<String>,
    /// The server's addresses.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<MachineAddress>,
    /// The state of the server in Nova.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "given::text")]
    pub instance_state: Option<String>,
    /// The ids that the references of the spec stand for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolved: Option<ResolvedMachine>,
    /// The ids of the resources that were created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<MachineResources>,
    /// The availability zone of the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "given::text")]
    pub failure_domain: Option<String>,
}

/// First provisioning of an infrastructure object (Cluster API contract v1beta2).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Initialization {
    /// True once the first provisioning is complete; never set back to false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provisioned: Option<bool>,
}

/// An address of a machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MachineAddress {
    /// `InternalIP`, `ExternalIP`, `InternalDNS`, `ExternalDNS` or `Hostname`.
    #[serde(rename = "type")]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(!default, !skip_serializing_if)]
    pub type_: String,
    /// The address.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(!default, !skip_serializing_if)]
    pub address: String,
}

/// Ids of the resources in the references of a machine's spec ([`OpenStackMachineStatus::resolved`]).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResolvedMachine {
    /// The server group.
    #[serde(rename = "serverGroupID")]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "given::text")]
    pub server_group_id: Option<String>,
    /// The image.
    #[serde(rename = "imageID")]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "given::text")]
    pub image_id: Option<String>,
    /// The flavor.
    #[serde(rename = "flavorID")]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "given::text")]
    pub flavor_id: Option<String>,
    /// The ports.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<ResolvedPortSpec>,
}

/// Ids of the resources created for a machine ([`OpenStackMachineStatus::resources`]).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MachineResources {
    /// The ports, in the order of the spec.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<PortStatus>,
}

/// A port that was created.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PortStatus {
    /// The port's id.
    #[schemars(length(min = 1))]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(!default, !skip_serializing_if)]
    pub id: String,
}

/// One entry of a server's metadata.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServerMetadata {
    /// The key.
    #[schemars(length(min = 1, max = 255))]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(!default, !skip_serializing_if)]
    pub key: String,
    /// The value.
    #[schemars(length(min = 1, max = 255))]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(!default, !skip_serializing_if)]
    pub value: String,
}

/// Boot volume of a server ([`OpenStackMachineSpec::root_volume`]).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RootVolume {
    /// Size in GiB.
    #[serde(rename = "sizeGiB")]
    #[schemars(range(min = 1))]
    #[serde(default, skip_serializing_if = "given::is_zero")]
    #[schemars(!default, !skip_serializing_if)]
    pub size_gib: i32,
    /// The volume type; the cloud's default when absent.
    #[serde(rename = "type")]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "given::text")]
    pub type_: Option<String>,
    /// The availability zone; the volume service's default when absent.
    #[serde(rename = "availabilityZone")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub availability_zone: Option<VolumeAvailabilityZone>,
}

/// The availability zone of a volume.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "!has(self.from) || self.from == 'Name' ? has(self.name) : !has(self.name)",
    "message": "name is required when from is 'Name' or default",
}]))]
pub struct VolumeAvailabilityZone {
    /// Source of the zone's name; `Name` when absent.
    #[serde(default)]
    pub from: VolumeZoneSource,
    /// The zone's name.
    #[schemars(length(min = 1), regex(pattern = "^[^ ]+$"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "given::text")]
    pub name: Option<String>,
}

/// Source of the name of a volume's zone ([`VolumeAvailabilityZone::from`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub enum VolumeZoneSource {
    /// From `name`.
    #[default]
    Name,
    /// From the Machine's failure domain.
    Machine,
}

/// A further disk of a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AdditionalBlockDevice {
    /// The disk's name; `root` is reserved when there is a root volume.
    #[schemars(length(min = 1))]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(!default, !skip_serializing_if)]
    pub name: String,
    /// Size in GiB.
    #[serde(rename = "sizeGiB")]
    #[schemars(range(min = 1))]
    #[serde(default, skip_serializing_if = "given::is_zero")]
    #[schemars(!default, !skip_serializing_if)]
    pub size_gib: i32,
    /// Storage of the disk: on the hypervisor, or in a volume.
    pub storage: BlockDeviceStorage,
}

/// Storage of a further disk ([`AdditionalBlockDevice::storage`]).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlockDeviceStorage {
    /// On the hypervisor or in a volume.
    #[serde(rename = "type")]
    pub type_: StorageType,
    /// The volume, when it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume: Option<BlockDeviceVolume>,
}

/// Kind of a [`BlockDeviceStorage`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub enum StorageType {
    /// On the hypervisor.
    Local,
    /// In a volume.
    Volume,
}

/// Volume of a further disk ([`BlockDeviceStorage::volume`]).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlockDeviceVolume {
    /// The volume type; the cloud's default when absent.
    #[serde(rename = "type")]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "given::text")]
    pub type_: Option<String>,
    /// The availability zone; the volume service's default when absent.
    #[serde(rename = "availabilityZone")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub availability_zone: Option<VolumeAvailabilityZone>,
}

/// Pool with the floating IP of a machine ([`OpenStackMachineSpec::floating_ip_pool_ref`]).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
#[serde(rename_all = "camelCase")]
pub struct FloatingIpPoolRef {
    /// The group of `kind`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "given::text")]
    pub api_group: Option<String>,
    /// The kind.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(!default, !skip_serializing_if)]
    pub kind: String,
    /// The name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(!default, !skip_serializing_if)]
    pub name: String,
}

/// A hint to the scheduler.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SchedulerHint {
    /// The hint's name.
    #[schemars(length(min = 1))]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(!default, !skip_serializing_if)]
    pub name: String,
    /// The hint's value.
    pub value: SchedulerHintValue,
}

/// Value of a scheduler hint, in the member named by `type` ([`SchedulerHint::value`]).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "has(self.type) && self.type == 'Bool' ? has(self.bool) : !has(self.bool)",
        "message": "bool is required when type is Bool, and forbidden otherwise",
    },
    {
        "rule": "has(self.type) && self.type == 'Number' ? has(self.number) : !has(self.number)",
        "message": "number is required when type is Number, and forbidden otherwise",
    },
    {
        "rule": "has(self.type) && self.type == 'String' ? has(self.string) : !has(self.string)",
        "message": "string is required when type is String, and forbidden otherwise",
    },
]))]
pub struct SchedulerHintValue {
    /// Type of the value, and name of the member with the value.
    #[serde(rename = "type")]
    pub type_: HintType,
    /// A boolean.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bool: Option<bool>,
    /// A number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number: Option<i32>,
    /// A string.
    #[schemars(length(min = 1, max = 255))]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "given::text")]
    pub string: Option<String>,
}

/// Type of a [`SchedulerHintValue`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub enum HintType {
    /// A boolean.
    Bool,
    /// A string.
    String,
    /// A number.
    Number,
}
