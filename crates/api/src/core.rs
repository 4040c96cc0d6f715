//! Group `cluster.x-k8s.io`: Cluster, Machine, MachineSet and MachineDeployment.
//!
//! v1beta2 is the stored hub; v1beta1 is served, too (reference: the Cluster API contract documents).

pub(crate) mod admission;
pub(crate) mod convert;
pub mod crd;
pub mod v1beta2;

/// The API group.
pub const GROUP: &str = "cluster.x-k8s.io";
