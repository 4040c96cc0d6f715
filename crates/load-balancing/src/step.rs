//! Requests to Octavia.

use openstack::loadbalancer::{
    ListenerCreate, ListenerUpdate, LoadBalancerCreate, MemberCreate, MemberUpdate, MonitorCreate,
    MonitorUpdate, PoolCreate, PoolUpdate,
};

/// A request to Octavia.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Creates the load balancer, with all parts unless the driver is serial.
    Create(Box<LoadBalancerCreate>),
    /// Creates a listener without a pool.
    CreateListener(Box<ListenerCreate>),
    /// Changes a listener.
    UpdateListener {
        /// Id of the listener.
        id: String,
        /// Differing fields.
        change: ListenerUpdate,
    },
    /// Deletes a listener by id. The pool stays, without a listener.
    DeleteListener(String),
    /// Creates the pool of a listener, without members and health monitor.
    CreatePool(Box<PoolCreate>),
    /// Changes a pool.
    UpdatePool {
        /// Id of the pool.
        id: String,
        /// Differing fields.
        change: PoolUpdate,
    },
    /// Deletes a pool by id, with members and health monitor.
    DeletePool(String),
    /// Replaces all members of a pool.
    SetMembers {
        /// Id of the pool.
        pool: String,
        /// All members.
        members: Vec<MemberCreate>,
    },
    /// Adds one member.
    CreateMember {
        /// Id of the pool.
        pool: String,
        /// The member.
        member: Box<MemberCreate>,
    },
    /// Changes one member.
    UpdateMember {
        /// Id of the pool.
        pool: String,
        /// Id of the member.
        id: String,
        /// Differing fields.
        change: MemberUpdate,
    },
    /// Removes one member.
    DeleteMember {
        /// Id of the pool.
        pool: String,
        /// Id of the member.
        id: String,
    },
    /// Creates the health monitor of a pool.
    CreateMonitor(Box<MonitorCreate>),
    /// Changes a health monitor.
    UpdateMonitor {
        /// Id of the health monitor.
        id: String,
        /// Differing fields.
        change: MonitorUpdate,
    },
    /// Deletes a health monitor by id.
    DeleteMonitor(String),
}

/// A [`Step`] without content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)] // As the steps.
pub enum Action {
    Create,
    CreateListener,
    UpdateListener,
    DeleteListener,
    CreatePool,
    UpdatePool,
    DeletePool,
    SetMembers,
    CreateMember,
    UpdateMember,
    DeleteMember,
    CreateMonitor,
    UpdateMonitor,
    DeleteMonitor,
}

impl Action {
    /// True for changes of members alone.
    pub const fn is_of_members(self) -> bool {
        matches!(
            self,
            Self::SetMembers | Self::CreateMember | Self::UpdateMember | Self::DeleteMember
        )
    }
}

impl Step {
    /// The step without content.
    pub const fn action(&self) -> Action {
        match self {
            Self::Create(_) => Action::Create,
            Self::CreateListener(_) => Action::CreateListener,
            Self::UpdateListener { .. } => Action::UpdateListener,
            Self::DeleteListener(_) => Action::DeleteListener,
            Self::CreatePool(_) => Action::CreatePool,
            Self::UpdatePool { .. } => Action::UpdatePool,
            Self::DeletePool(_) => Action::DeletePool,
            Self::SetMembers { .. } => Action::SetMembers,
            Self::CreateMember { .. } => Action::CreateMember,
            Self::UpdateMember { .. } => Action::UpdateMember,
            Self::DeleteMember { .. } => Action::DeleteMember,
            Self::CreateMonitor(_) => Action::CreateMonitor,
            Self::UpdateMonitor { .. } => Action::UpdateMonitor,
            Self::DeleteMonitor(_) => Action::DeleteMonitor,
        }
    }
}
