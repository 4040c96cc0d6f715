//! v1beta1: what releases v0.10 to v0.14 of the Go provider store; served, converted to and from v1beta2.
//!
//! Whatever has the same shape in v1beta2 is that type.

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
