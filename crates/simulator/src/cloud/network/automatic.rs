//! IPv6 subnets with addresses derived from hardware addresses (`slaac`, `dhcpv6-stateless`): each port of the network,
//! except interfaces of routers, has an address in each such subnet, requested or not.
//!
//! Source: Neutron's `ipam_pluggable_backend` and `_validate_ipv6_attributes`; RFC 4291, appendix A.

use std::net::Ipv6Addr;

use ipnet::{IpNet, Ipv6Net};
use serde_json::json;

use super::ports::{ROUTER_INTERFACE, change};
use crate::cloud::document::{Doc, Fields};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::state::State;

/// Prefix length that leaves room for a hardware address.
const PREFIX: u8 = 64;

/// True if the addresses of a subnet are derived from hardware addresses.
pub(crate) fn is_automatic(subnet: &Doc) -> bool {
    ["ipv6_address_mode", "ipv6_ra_mode"]
        .iter()
        .any(|mode| matches!(subnet.text(mode), "slaac" | "dhcpv6-stateless"))
}

/// Returns a [`Fault`] for modes that contradict each other or other fields of a subnet.
pub(crate) fn check(subnet: &Doc, net: &IpNet) -> Result<(), Fault> {
    let (address, advertised) = (
        subnet.text("ipv6_address_mode"),
        subnet.text("ipv6_ra_mode"),
    );
    let refuse = |why: String| Err(invalid(&why));
    if address.is_empty() && advertised.is_empty() {
        return Ok(());
    }
    if net.addr().is_ipv4() {
        return refuse(
            "ipv6_ra_mode and ipv6_address_mode are not valid when ip_version is 4".to_owned(),
        );
    }
    if !subnet.flag("enable_dhcp") {
        return refuse(
            "ipv6_ra_mode or ipv6_address_mode cannot be set when enable_dhcp is set to False"
                .to_owned(),
        );
    }
    if !address.is_empty() && !advertised.is_empty() && address != advertised {
        return refuse(format!(
            "ipv6_ra_mode set to '{advertised}' with ipv6_address_mode set to '{address}' is not valid. If both attributes are set, they must be the same value"
        ));
    }
    if is_automatic(subnet) && net.prefix_len() != PREFIX {
        return refuse(format!(
            "Invalid CIDR {net} for IPv6 address mode. OpenStack uses the EUI-64 address format, which requires the prefix to be /64"
        ));
    }
    Ok(())
}

/// Returns the [`Fault`] for a requested address.
pub(crate) fn chosen(address: &str, subnet: &str) -> Fault {
    Fault::new(
        400,
        "AllocationOnAutoAddressSubnet",
        format!(
            "IPv6 address {address} cannot be directly assigned to a port on subnet {subnet} as the subnet is configured for automatic addresses"
        ),
    )
}

/// Adds the missing addresses of a port in the automatic subnets of its network.
pub(crate) fn complete(state: &State, port: &mut Doc) {
    if port.text("device_owner") == ROUTER_INTERFACE {
        return;
    }
    let mut fixed = port.list("fixed_ips").to_vec();
    for subnet in state.by(Kind::Subnet, "network_id", port.text("network_id")) {
        let id = subnet.text("id");
        if !is_automatic(&subnet) || fixed.iter().any(|existing| existing["subnet_id"] == id) {
            continue;
        }
        if let Some(address) = address(&subnet, port.text("mac_address")) {
            fixed.push(json!({"subnet_id": id, "ip_address": address.to_string()}));
        }
    }
    port.set("fixed_ips", fixed);
}

/// Adds addresses in a new automatic subnet to the existing ports of its network.
pub(crate) fn join(state: &mut State, subnet: &Doc) {
    for port in state.by(Kind::Port, "network_id", subnet.text("network_id")) {
        if port.text("device_owner") != ROUTER_INTERFACE {
            change(state, port.text("id"), |_| {});
        }
    }
}

/// Returns the prefix with the modified EUI-64 of the hardware address.
fn address(subnet: &Doc, mac: &str) -> Option<Ipv6Addr> {
    let net: Ipv6Net = subnet.text("cidr").parse().ok()?;
    let mut bytes = [0; 6];
    let mut parts = mac.split(':');
    for byte in &mut bytes {
        *byte = u8::from_str_radix(parts.next()?, 16).ok()?;
    }
    let [a, b, c, d, e, f] = bytes;
    let interface = u64::from_be_bytes([a ^ 2, b, c, 0xff, 0xfe, d, e, f]);
    Some(Ipv6Addr::from_bits(
        net.network().to_bits() | u128::from(interface),
    ))
}

fn invalid(why: &str) -> Fault {
    Fault::new(
        400,
        "InvalidInput",
        format!("Invalid input for operation: {why}."),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cloud::document::doc;

    #[test]
    fn an_address_is_the_prefix_with_the_hardware_address_stretched() {
        let subnet = doc(json!({"cidr": "2001:db8:0:1::/64"}));
        for (mac, expected) in [
            ("fa:16:3e:00:00:01", Some("2001:db8:0:1:f816:3eff:fe00:1")),
            ("00:00:5e:00:53:af", Some("2001:db8:0:1:200:5eff:fe00:53af")),
            ("nonsense", None),
            ("fa:16:3e", None),
        ] {
            let found = address(&subnet, mac).map(|address| address.to_string());
            assert_eq!(found.as_deref(), expected, "{mac}");
        }
    }
}
