//! The addresses outside the simulation on which this process may listen, and to which it may connect.

use std::net::IpAddr;

use ipnet::IpNet;

/// Loopback addresses, and ranges that are configured as local to this machine.
///
/// A range is safe in a network namespace in which all of it is local (`ip route add local 198.51.100.0/24 dev lo`):
/// elsewhere its addresses might be those of other machines.
#[derive(Clone, Debug, Default)]
pub struct Outside {
    ranges: Vec<IpNet>,
}

impl Outside {
    /// Loopback addresses and those in `ranges`.
    #[must_use]
    pub fn with(ranges: Vec<IpNet>) -> Self {
        Self { ranges }
    }

    /// True if this process may listen on, and connect to, the address.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        address.is_loopback() || self.ranges.iter().any(|range| range.contains(&address))
    }
}
