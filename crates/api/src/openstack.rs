//! Group `ferrostack.dev`: [`OpenStack`](v1alpha1::OpenStack), a cloud on Kubernetes, and
//! [`OpenStackOperation`](operation::OpenStackOperation), one-shot work on a cloud.
//!
//! v1alpha1 is the only version.

pub(crate) mod admission;
pub mod conditions;
pub mod crd;
pub mod operation;
pub mod v1alpha1;

/// The API group.
pub const GROUP: &str = "ferrostack.dev";

/// Finalizer of OpenStack objects: parts of the cloud are removed before the object.
pub const FINALIZER: &str = "ferrostack.dev/openstack";

/// Annotation: with `true`, the deletion of the object also deletes volumes, passwords and keys.
pub const PURGE_DATA: &str = "ferrostack.dev/purge-data";

/// Annotation: release for an upgrade check, without an upgrade.
pub const UPGRADE_CHECK: &str = "ferrostack.dev/upgrade-check";
