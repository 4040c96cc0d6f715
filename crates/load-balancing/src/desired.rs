//! The load balancer for a controller.

use openstack::loadbalancer::{LoadBalancerCreate, MemberCreate, PoolCreate};

/// A desired load balancer.
#[derive(Clone, Copy, Debug)]
pub struct Desired<'a> {
    /// Load balancer with listeners, pools, members and health monitors, as in the request for a new one. A listener without
    /// a pool, and a pool without a health monitor under [`Fields::Access`], keep the existing one.
    pub tree: &'a LoadBalancerCreate,
    /// Fields of existing parts under management.
    pub fields: Fields,
    /// Names of parts.
    pub names: Names,
    /// True if the driver accepts no request for several parts at once.
    pub is_serial: bool,
    /// True if a member without a wanted weight keeps the existing weight; else the weight becomes 1.
    pub keeps_weights: bool,
    /// True while the members of pools without monitor ports are unknown: the existing members stay.
    pub keeps_members: bool,
}

impl Desired<'_> {
    pub(crate) fn keeps_members_of(&self, pool: &PoolCreate) -> bool {
        let mut members = pool.members.iter();
        self.keeps_members && members.all(|member| member.monitor_port.is_none())
    }
}

/// Fields of existing parts under management. Other fields stay as a person or another program has set them. New parts have all
/// fields of [`Desired::tree`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fields {
    /// All fields.
    All,
    /// As the Go infrastructure provider: allowed CIDRs of listeners, intervals and retries of health monitors, and members
    /// by address and port.
    Access,
}

/// Names of parts, a matter of the controllers.
#[derive(Clone, Copy, Debug)]
pub struct Names {
    /// New name of an existing part with a wanted and a known name; `None` if the known name stays.
    pub renamed: fn(wanted: &str, known: &str) -> Option<String>,
    /// Name of a member in [`Step::CreateMember`].
    ///
    /// [`Step::CreateMember`]: crate::Step::CreateMember
    pub of_single_member: fn(&MemberCreate) -> String,
}

impl Names {
    /// Existing names stay; members have the names of the tree.
    pub const KEPT: Self = Self {
        renamed: |_, _| None,
        of_single_member: |member| member.name.clone(),
    };
}
