//! `cluster.x-k8s.io/v1beta2`, the stored version: [`Cluster`], [`Machine`] and the other kinds.

mod cluster;
mod clusterclass;
mod machine;
mod machinedeployment;
mod machinedrainrule;
mod machinehealthcheck;
mod machineset;
mod reference;
mod topology;

pub use cluster::*;
pub use clusterclass::*;
pub use machine::*;
pub use machinedeployment::*;
pub use machinedrainrule::*;
pub use machinehealthcheck::*;
pub use machineset::*;
pub use reference::*;
pub use topology::*;

/// The `apiVersion` of the objects in this module.
pub const API_VERSION: &str = "cluster.x-k8s.io/v1beta2";
