//! [`OpenStackOperation`]: one-shot work on a cloud, like a Job.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The desired state of an operation.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[kube(
    group = "ferrostack.dev",
    version = "v1alpha1",
    kind = "OpenStackOperation",
    plural = "openstackoperations",
    doc = "One-shot work on an OpenStack cloud of the namespace: a backup, a restore or a rotation. Operations run one after the other, the oldest first.",
    namespaced,
    status = "OpenStackOperationStatus",
    derive = "PartialEq",
    derive = "Default",
    printcolumn(name = "Cloud", type_ = "string", json_path = ".spec.openstack"),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Backup", type_ = "string", json_path = ".status.backup"),
    printcolumn(name = "Message", type_ = "string", json_path = ".status.message"),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[schemars(extend("x-kubernetes-validations" = [
    {"rule": "self == oldSelf", "message": "an operation cannot be changed: make another one"},
    {"rule": "[has(self.backup), has(self.restore), has(self.rotate)].exists_one(it, it)", "message": "an operation is a backup, a restore or a rotation"},
]))]
pub struct OpenStackOperationSpec {
    /// Name of the OpenStack object in the namespace, such as `cloud`. Required.
    #[schemars(length(min = 1, max = 40))]
    pub openstack: String,
    /// Backup of the cloud to the volume that its `spec.backup` names. The backup has the name of the operation. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backup: Option<Backup>,
    /// Restore of a backup in place of what the cloud has. Its programs are away until it is loaded. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restore: Option<Restore>,
    /// Rotation of passwords and keys: the other half of each account is made, programs go over to it, and the former one is refused. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotate: Option<Rotate>,
}

/// Backup of a cloud ([`OpenStackOperationSpec::backup`]).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Backup {}

/// Restore of a cloud ([`OpenStackOperationSpec::restore`]).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Restore {
    /// Name of the backup on the volume, such as `cloud-20261129-020000`. Required. A backup of another cloud, of another release,
    /// with other keys or of which a part is broken is refused.
    #[schemars(extend("pattern" = "^[A-Za-z0-9][A-Za-z0-9._-]{0,252}$"))]
    pub from: String,
}

/// A rotation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rotate {
    /// Accounts that are rotated, such as `database-nova`, stores, such as `database` with all of its accounts, or the keys `fernet` and `credential` of Keystone. Default: everything.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("items" = {"type": "string", "enum": ROTATED}, "x-kubernetes-list-type" = "set"))]
    pub only: Vec<String>,
}

/// Names of what a [`Rotate`] rotates: stores, keys of Keystone, and accounts in the stores. The crate `deployer`, which knows no
/// kinds, has them as `Stages::rotated`; a test of `rollout` compares the two.
pub const ROTATED: [&str; 22] = [
    "database",
    "messaging",
    "identity",
    "credential",
    "fernet",
    "database-cinder",
    "database-glance",
    "database-keystone",
    "database-neutron",
    "database-nova",
    "database-octavia",
    "database-placement",
    "identity-admin",
    "identity-cinder",
    "identity-glance",
    "identity-neutron",
    "identity-nova",
    "identity-octavia",
    "identity-placement",
    "messaging-cinder",
    "messaging-neutron",
    "messaging-nova",
];

/// The state of an operation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OpenStackOperationStatus {
    /// Phase: `Pending`, `Running`, `Succeeded` or `Failed`. The last two are final.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["Pending", "Running", "Succeeded", "Failed"]))]
    pub phase: Option<String>,
    /// Reason why the operation waits or does not go on. Empty when it has succeeded.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Start of the operation; RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<crate::shape::Time>")]
    pub started: Option<Time>,
    /// End of the operation; RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<crate::shape::Time>")]
    pub finished: Option<Time>,
    /// Steps that have begun, in order: `Backup`; or `Check`, `Stop`, `Load` and `Start`; or `Make`, `Use`, `Drop` and `Verify`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub steps: Vec<OperationStep>,
    /// Name of the backup that was written or loaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backup: Option<String>,
    /// SHA-256 of the sums of all parts of the backup (`SHA256SUMS`), in hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Size of the backup, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<i64>,
    /// Names of older backups that were removed, since `spec.backup.keep` of the cloud is reached.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub removed: Vec<String>,
}

/// A step of an operation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OperationStep {
    /// Name of the step, such as `Load`.
    pub name: String,
    /// Start of the step; RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<crate::shape::Time>")]
    pub started: Option<Time>,
    /// Seconds from the start of the step until its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<i64>,
}

/// Phase: the operation has not begun.
pub const PENDING: &str = "Pending";
/// Phase: the operation is in progress.
pub const RUNNING: &str = "Running";
/// Phase: the operation has succeeded.
pub const SUCCEEDED: &str = "Succeeded";
/// Phase: the operation has failed.
pub const FAILED: &str = "Failed";

impl OpenStackOperationStatus {
    /// True after success or failure.
    pub fn is_over(&self) -> bool {
        matches!(self.phase.as_deref(), Some(SUCCEEDED | FAILED))
    }
}
