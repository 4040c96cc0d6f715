//! Octavia: load balancers with their listeners, pools, members and health monitors.

mod calls;
mod create;
mod resource;
mod status;

pub use calls::LoadBalancing;
pub use create::{
    ListenerCreate, ListenerUpdate, LoadBalancerCreate, MemberCreate, MonitorCreate, MonitorUpdate,
    PoolCreate,
};
pub use resource::{
    LbFlavor, Listener, LoadBalancer, LoadBalancerQuota, Member, Monitor, Pool, Provider, Reference,
};
pub use status::{ListenerStatus, LoadBalancerStatus, MemberStatus, PoolStatus};
