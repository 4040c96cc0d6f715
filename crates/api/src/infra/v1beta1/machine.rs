//! [`OpenStackMachine`] in v1beta1: the flavor is a name or an id, and port security is disabled rather than enabled.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::cluster::Condition;
use crate::infra::schema;
use crate::infra::v1beta2::given;
use crate::infra::v1beta2::{
    AdditionalBlockDevice, AddressPair, BindingProfile, FixedIp, FloatingIpPoolRef, IdentityRef,
    ImageParam, Initialization, MachineAddress, MachineResources, NetworkParam, ResolvedFixedIp,
    RootVolume, SchedulerHint, SecurityGroupParam, ServerGroupParam, ServerMetadata, ValueSpec,
};

/// The server that a Machine runs on. Immutable but for `providerID`, `identityRef` (without its
/// region) and the ports' allowed address pairs.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "infrastructure.cluster.x-k8s.io",
    version = "v1beta1",
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
        name = "Ready",
        type_ = "string",
        json_path = ".status.ready",
        description = "Machine ready status"
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
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "(has(self.flavor) || has(self.flavorID))",
    "message": "at least one of flavor or flavorID must be set",
}]))]
#[serde(rename_all = "camelCase")]
pub struct OpenStackMachineSpec {
    /// The providerID of the Node on this server. Set by the controller.
    #[serde(rename = "providerID")]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "given::text")]
    pub provider_id: Option<String>,
    /// The flavor's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    #[serde(default, deserialize_with = "given::text")]
    pub flavor: Option<String>,
    /// The flavor's id; wins over its name.
    #[serde(rename = "flavorID", skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    #[serde(default, deserialize_with = "given::text")]
    pub flavor_id: Option<String>,
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
    #[schemars(schema_with = "schema::v1beta1_conditions")]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// True if the server is ready.
    #[serde(default)]
    pub ready: bool,
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
    /// Deprecated: no longer set.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "given::text")]
    pub failure_reason: Option<String>,
    /// Deprecated: no longer set.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "given::text")]
    pub failure_message: Option<String>,
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

/// A port of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PortOpts {
    /// The network; without it that of the first fixed IP's subnet, or the cluster's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkParam>,
    /// The port's description.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "given::text")]
    pub description: Option<String>,
    /// The suffix of the port's name after the server's name; the port's index when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "given::text")]
    pub name_suffix: Option<String>,
    /// Fixed addresses.
    #[serde(rename = "fixedIPs")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fixed_ips: Vec<FixedIp>,
    /// Security groups; without any those of the machine's role.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub security_groups: Vec<SecurityGroupParam>,
    /// Tags, added to those of the machine and the cluster.
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Creates a trunk on the port; the machine's setting when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trunk: Option<bool>,
    /// The fields without references.
    #[serde(flatten)]
    pub fields: ResolvedPortFields,
}

/// Fields of a port sent to Neutron without change ([`PortOpts::fields`]).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResolvedPortFields {
    /// Admin state of the port: up if true; true when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admin_state_up: Option<bool>,
    /// The MAC address.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "given::text")]
    pub mac_address: Option<String>,
    /// Further addresses that may send through this port.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed_address_pairs: Vec<AddressPair>,
    /// The host to bind to (admin only).
    #[serde(rename = "hostID")]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "given::text")]
    pub host_id: Option<String>,
    /// The kind of virtual NIC, such as `normal` or `direct`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "given::text")]
    pub vnic_type: Option<String>,
    /// The binding profile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<BindingProfile>,
    /// Disables port security; the network's setting when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disable_port_security: Option<bool>,
    /// Propagates the status of the uplink to the server; the cloud's default when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub propagate_uplink_status: Option<bool>,
    /// Vendor-specific members of the port.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub value_specs: Vec<ValueSpec>,
}

/// A port with every reference resolved to an id.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResolvedPortSpec {
    /// The port's name.
    #[schemars(length(min = 1))]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(!default, !skip_serializing_if)]
    pub name: String,
    /// The port's description.
    #[serde(default)]
    #[schemars(extend("default" = null))]
    pub description: String,
    /// The network's id.
    #[serde(rename = "networkID")]
    #[schemars(length(min = 1))]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(!default, !skip_serializing_if)]
    pub network_id: String,
    /// Tags.
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// True if the port has a trunk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trunk: Option<bool>,
    /// Fixed addresses.
    #[serde(rename = "fixedIPs")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fixed_ips: Vec<ResolvedFixedIp>,
    /// The ids of the security groups.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub security_groups: Vec<String>,
    /// The fields without references.
    #[serde(flatten)]
    pub fields: ResolvedPortFields,
}
