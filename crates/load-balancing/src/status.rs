//! Provisioning statuses.

use openstack::loadbalancer::LoadBalancer;

/// Provisioning status of a load balancer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Octavia accepts every request.
    Active,
    /// Octavia accepts a deletion and a failover.
    Error,
    /// Octavia deletes the load balancer with all parts.
    Deleting,
    /// Octavia works on the last change, and answers every other request with 409.
    Pending,
}

impl Status {
    /// The status of `balancer`. An unknown status is [`Status::Pending`].
    pub fn from_balancer(balancer: &LoadBalancer) -> Self {
        match balancer.provisioning_status.as_str() {
            "ACTIVE" => Self::Active,
            "ERROR" => Self::Error,
            "PENDING_DELETE" => Self::Deleting,
            _ => Self::Pending,
        }
    }

    /// True if Octavia accepts a deletion of the load balancer.
    pub const fn can_be_deleted(self) -> bool {
        matches!(self, Self::Active | Self::Error)
    }
}
