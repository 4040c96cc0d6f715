//! The allocated addresses of each subnet, updated with the ports.

use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;

use serde_json::Value;

use super::document::{Doc, Fields};

/// Allocated addresses of every subnet. Derived from the ports, never stored.
#[derive(Clone, Default)]
pub(crate) struct AddressBook {
    subnets: HashMap<String, Taken>,
}

#[derive(Clone, Default)]
struct Taken {
    addresses: BTreeSet<u128>,
    /// Lowest address that may be free: all pool addresses below are allocated.
    floor: u128,
}

impl AddressBook {
    /// Updates the book for a changed port.
    pub(crate) fn replace(&mut self, old: Option<&Doc>, new: Option<&Doc>) {
        for (subnet, address) in old.into_iter().flat_map(fixed_addresses) {
            if let Some(taken) = self.subnets.get_mut(&subnet) {
                taken.addresses.remove(&address);
                taken.floor = taken.floor.min(address);
                if taken.addresses.is_empty() {
                    self.subnets.remove(&subnet);
                }
            }
        }
        for (subnet, address) in new.into_iter().flat_map(fixed_addresses) {
            self.subnets
                .entry(subnet)
                .or_default()
                .addresses
                .insert(address);
        }
    }

    /// True if a port has the address.
    pub(crate) fn taken(&self, subnet: &str, address: IpAddr) -> bool {
        self.subnets
            .get(subnet)
            .is_some_and(|t| t.addresses.contains(&to_number(address)))
    }

    /// Returns the lowest free address of the pools (first and last address of each), without the addresses in
    /// `except`.
    pub(crate) fn free(
        &mut self,
        subnet: &str,
        pools: &[(IpAddr, IpAddr)],
        except: &[IpAddr],
    ) -> Option<IpAddr> {
        let taken = self.subnets.entry(subnet.to_owned()).or_default();
        for (start, end) in pools {
            let (first, last) = (to_number(*start), to_number(*end));
            let mut candidate = first.max(taken.floor);
            while candidate <= last && taken.addresses.contains(&candidate) {
                candidate = candidate.checked_add(1)?;
            }
            // With one pool all addresses below are allocated; with several the floor would skip gaps.
            if pools.len() == 1 {
                taken.floor = candidate;
            }
            while candidate <= last {
                let address = from_number(candidate, start.is_ipv4());
                if !taken.addresses.contains(&candidate) && !except.contains(&address) {
                    return Some(address);
                }
                candidate = candidate.checked_add(1)?;
            }
        }
        None
    }
}

/// Converts an address to a number, in one range for both families.
pub(crate) fn to_number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => u128::from(v4.to_bits()),
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

/// Converts a number back to its address.
pub(crate) fn from_number(number: u128, v4: bool) -> IpAddr {
    if v4 {
        IpAddr::V4(u32::try_from(number).unwrap_or(u32::MAX).into())
    } else {
        IpAddr::V6(number.into())
    }
}

fn fixed_addresses(port: &Doc) -> impl Iterator<Item = (String, u128)> {
    port.list("fixed_ips")
        .iter()
        .filter_map(Value::as_object)
        .filter_map(|fixed| {
            let address: IpAddr = fixed.text("ip_address").parse().ok()?;
            Some((fixed.text("subnet_id").to_owned(), to_number(address)))
        })
}
