//! Group `ferrostack.dev`: OpenStack, a cloud on Kubernetes, and OpenStackOperation, one-shot work on it.
//!
//! v1alpha1 is the only version.

pub(crate) mod admission;
pub mod crd;
pub mod operation;
pub mod v1alpha1;

/// The API group.
pub const GROUP: &str = "ferrostack.dev";

/// The finalizer of OpenStack objects: what belongs to the cloud is removed before the object.
pub const FINALIZER: &str = "ferrostack.dev/openstack";

/// Annotation: with `true`, the deletion of the object also deletes volumes, passwords and keys.
pub const PURGE_DATA: &str = "ferrostack.dev/purge-data";

/// Annotation: the release whose checks are run, without an upgrade to it.
pub const UPGRADE_CHECK: &str = "ferrostack.dev/upgrade-check";
