//! v1beta2: the stored version and hub of conversion, with [`OpenStackCluster`] and [`OpenStackMachine`].

mod balancer;
mod cluster;
pub(crate) mod given;
mod machine;
mod params;
mod port;
mod template;

pub use balancer::{AvailabilityZoneSubnet, LoadBalancer, LoadBalancerMonitor, LoadBalancerStatus};
pub use cluster::{
    AllocationPool, ApiServer, Bastion, BastionStatus, ControlPlaneEndpoint, DefaultRule,
    DefaultRuleName, Direction, EtherType, ExternalRouterIp, FailureDomain, FailureDomainSubnets,
    Ipv6Mode, ManagedGroup, ManagedNetwork, ManagedRouter, ManagedSecurityGroups, NetworkStatus,
    NetworkStatusWithSubnets, OpenStackCluster, OpenStackClusterSpec, OpenStackClusterStatus,
    RouterStatus, SecurityGroupRule, SecurityGroupStatus, Subnet, SubnetSpec,
};
pub use machine::{
    AdditionalBlockDevice, BlockDeviceStorage, BlockDeviceVolume, FloatingIpPoolRef, HintType,
    Initialization, MachineAddress, MachineResources, OpenStackMachine, OpenStackMachineSpec,
    OpenStackMachineStatus, PortStatus, ResolvedMachine, RootVolume, SchedulerHint,
    SchedulerHintValue, ServerMetadata, StorageType, VolumeAvailabilityZone, VolumeZoneSource,
};
pub use params::{
    FlavorFilter, FlavorParam, IdentityRef, IdentityType, ImageFilter, ImageParam, ImageRef,
    NetworkFilter, NetworkParam, Param, RouterParam, SecurityGroupParam, ServerGroupFilter,
    ServerGroupParam, SubnetFilter, SubnetParam, SubnetPoolParam,
};
pub use port::{
    AddressPair, BindingProfile, FixedIp, PortOpts, ResolvedFixedIp, ResolvedPortFields,
    ResolvedPortSpec, ValueSpec,
};
pub use template::{
    NodeInfo, ObjectMeta, OpenStackClusterTemplate, OpenStackClusterTemplateResource,
    OpenStackClusterTemplateSpec, OpenStackMachineTemplate, OpenStackMachineTemplateResource,
    OpenStackMachineTemplateSpec, OpenStackMachineTemplateStatus,
};
