//! Neutron: networks, subnets, ports, routers, security groups, floating IPs, trunks.

mod calls;
mod create;
mod resource;

pub use calls::{Filter, Networking};
pub use create::{
    ExternalGateway, FloatingIpCreate, FloatingIpUpdate, NetworkCreate, NetworkUpdate, PortCreate,
    PortUpdate, RouterCreate, RouterUpdate, RuleCreate, SecurityGroupCreate, SecurityGroupUpdate,
    SubnetCreate, SubnetUpdate, TrunkCreate,
};
pub use resource::{
    AddressPair, AllocationPool, Extension, ExtraRoute, FixedIp, FloatingIp, HostRoute, Network,
    NetworkQuota, Port, Router, RouterGateway, SecurityGroup, SecurityGroupRule, SubPort, Subnet,
    SubnetPool, Trunk,
};
