//! Octavia: load balancers with their listeners, pools, members and health monitors.

mod calls;
mod create;
mod resource;
mod status;

pub use calls::LoadBalancing;
pub use create::{
    ListenerCreate, ListenerUpdate, LoadBalancerCreate, LoadBalancerUpdate, MemberCreate,
    MemberUpdate, MonitorCreate, MonitorUpdate, PoolCreate, PoolUpdate,
};
pub use resource::{
    AdditionalVip, LbFlavor, LbZone, Listener, LoadBalancer, LoadBalancerQuota, Member, Monitor,
    Pool, Provider, Reference, SessionPersistence,
};
pub use status::{ListenerStatus, LoadBalancerStatus, MemberStatus, PoolStatus};
