//! v1beta1: stored by releases v0.10 to v0.14 of the Go provider; served here, and converted to and from v1beta2.
//!
//! Types without a difference are re-used from [`v1beta2`](super::v1beta2).

mod cluster;
mod machine;
mod template;

pub use cluster::{
    Bastion, BastionStatus, Condition, FailureDomain, ManagedSecurityGroups, OpenStackCluster,
    OpenStackClusterSpec, OpenStackClusterStatus,
};
pub use machine::{
    OpenStackMachine, OpenStackMachineSpec, OpenStackMachineStatus, PortOpts, ResolvedMachine,
    ResolvedPortFields, ResolvedPortSpec,
};
pub use template::{
    OpenStackClusterTemplate, OpenStackClusterTemplateResource, OpenStackClusterTemplateSpec,
    OpenStackMachineTemplate, OpenStackMachineTemplateResource, OpenStackMachineTemplateSpec,
    OpenStackMachineTemplateStatus,
};
