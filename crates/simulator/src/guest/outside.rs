//! Which addresses exist outside of the simulation, where this process may listen and connect.

use std::net::IpAddr;

use ipnet::IpNet;

/// Loopback addresses, and the ranges that are said to be this machine's own.
///
/// A range makes sense in a network namespace in which all of it is local
/// (`ip route add local 198.51.100.0/24 dev lo`): elsewhere it might be somebody's.
#[derive(Clone, Debug, Default)]
pub struct Outside {
    ranges: Vec<IpNet>,
}

impl Outside {
    /// Loopback addresses and those of `ranges`.
    #[must_use]
    pub fn with(ranges: Vec<IpNet>) -> Self {
        Self { ranges }
    }

    /// Whether this process may listen on, and connect to, the address.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        address.is_loopback() || self.ranges.iter().any(|range| range.contains(&address))
    }
}
