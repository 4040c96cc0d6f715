//! Addresses outside the simulation for listening and connecting.

use std::net::IpAddr;

use ipnet::IpNet;

/// Loopback addresses, and ranges configured as local to this machine.
///
/// A range is safe in a network namespace in which all of it is local (`ip route add local 198.51.100.0/24 dev lo`):
/// elsewhere the addresses might belong to other machines.
#[derive(Clone, Debug, Default)]
pub struct Outside {
    ranges: Vec<IpNet>,
}

impl Outside {
    /// Creates the set of loopback addresses and `ranges`.
    #[must_use]
    pub fn with(ranges: Vec<IpNet>) -> Self {
        Self { ranges }
    }

    /// True if this process may listen on the address and connect to it.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        address.is_loopback() || self.ranges.iter().any(|range| range.contains(&address))
    }
}
