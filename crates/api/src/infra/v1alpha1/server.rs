//! [`OpenStackServer`]: server without Machine and Cluster.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::infra::schema;
use crate::infra::v1beta2::{
    AdditionalBlockDevice, FlavorFilter, FlavorParam, FloatingIpPoolRef, IdentityRef, ImageParam,
    MachineAddress, MachineResources, OpenStackMachineSpec, PortOpts, ResolvedMachine, RootVolume,
    SchedulerHint, SecurityGroupParam, ServerGroupParam, ServerMetadata,
};

/// A server that needs neither a Machine nor a Cluster. Immutable but for `identityRef`, without its region.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "infrastructure.cluster.x-k8s.io",
    version = "v1alpha1",
    kind = "OpenStackServer",
    plural = "openstackservers",
    shortname = "oss",
    category = "cluster-api",
    status = "OpenStackServerStatus",
    derive = "PartialEq",
    namespaced,
    doc = "A server that needs neither a Machine nor a Cluster.",
    printcolumn(
        name = "InstanceState",
        type_ = "string",
        json_path = ".status.instanceState",
        description = "OpenStack instance state"
    ),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.ready",
        description = "OpenStack instance ready status"
    ),
    printcolumn(
        name = "InstanceID",
        type_ = "string",
        json_path = ".status.instanceID",
        description = "OpenStack instance ID"
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp",
        description = "Time duration since creation of OpenStack instance"
    )
)]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "(has(self.flavor) || has(self.flavorID))",
    "message": "at least one of flavor or flavorID must be set",
}]))]
#[serde(rename_all = "camelCase")]
pub struct OpenStackServerSpec {
    /// The name of the flavor.
    #[schemars(length(min = 1))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flavor: Option<String>,
    /// The id of the flavor, which counts if there are both.
    #[serde(rename = "flavorID", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub flavor_id: Option<String>,
    /// The image.
    #[serde(default)]
    #[schemars(!default)]
    pub image: ImageParam,
    /// The key pair that may log in; none if it is empty.
    #[serde(default)]
    #[schemars(!default)]
    pub ssh_key_name: String,
    /// The ports.
    #[serde(default)]
    #[schemars(!default)]
    pub ports: Vec<PortOpts>,
    /// Security groups added to every port.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub security_groups: Vec<SecurityGroupParam>,
    /// Trunk on every port that does not set one. Default: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trunk: Option<bool>,
    /// Tags of the server and its ports.
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Metadata of the server.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["key"]))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub server_metadata: Vec<ServerMetadata>,
    /// Config drive with the user data, besides the metadata service. Default: false.
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
    /// The credentials.
    pub identity_ref: IdentityRef,
    /// The availability zone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub availability_zone: Option<String>,
    /// The pool that a floating IP is taken from.
    #[serde(rename = "floatingIPPoolRef", skip_serializing_if = "Option::is_none")]
    pub floating_ip_pool_ref: Option<FloatingIpPoolRef>,
    /// The Secret with the user data, in the key `value`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_data_ref: Option<UserDataRef>,
    /// Further scheduler hints.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scheduler_hint_additional_properties: Vec<SchedulerHint>,
}

/// Secret in the same namespace ([`OpenStackServerSpec::user_data_ref`]).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct UserDataRef {
    /// Name of the Secret.
    #[serde(default)]
    #[schemars(extend("default" = ""))]
    pub name: String,
}

impl OpenStackServerSpec {
    /// Spec of a machine with the same fields: a server is a machine without Machine and Cluster.
    pub fn as_machine(&self) -> OpenStackMachineSpec {
        let spec = self.clone();
        let filter = |name| FlavorParam::Filter(FlavorFilter { name });
        OpenStackMachineSpec {
            provider_id: None,
            flavor: match spec.flavor_id {
                Some(id) => FlavorParam::Id(id),
                None => filter(spec.flavor),
            },
            image: spec.image,
            ssh_key_name: Some(spec.ssh_key_name).filter(|name| !name.is_empty()),
            ports: spec.ports,
            security_groups: spec.security_groups,
            trunk: spec.trunk,
            tags: spec.tags,
            server_metadata: spec.server_metadata,
            config_drive: spec.config_drive,
            root_volume: spec.root_volume,
            additional_block_devices: spec.additional_block_devices,
            server_group: spec.server_group,
            identity_ref: Some(spec.identity_ref),
            floating_ip_pool_ref: spec.floating_ip_pool_ref,
            scheduler_hint_additional_properties: spec.scheduler_hint_additional_properties,
        }
    }
}

/// The observed state of a server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OpenStackServerStatus {
    /// True if the server runs.
    #[serde(default)]
    #[schemars(required)]
    pub ready: bool,
    /// The server's id.
    #[serde(rename = "instanceID", skip_serializing_if = "Option::is_none")]
    pub instance_id: Option<String>,
    /// The state of the server in Nova.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance_state: Option<String>,
    /// The server's addresses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<MachineAddress>,
    /// The ids that the references of the spec stand for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolved: Option<ResolvedMachine>,
    /// The ids of the resources that were created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<MachineResources>,
    /// The conditions of the object.
    #[schemars(schema_with = "schema::conditions")]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}
