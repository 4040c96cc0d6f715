//! Subnets that are created: ranges, families, subnet pools and modes.

use ipnet::IpNet;

use super::formats::{Errors, address, cidr};
use crate::change::FieldError;
use crate::infra::v1beta2::{Ipv6Mode, OpenStackClusterSpec, SubnetSpec};

/// Validates the subnets of an OpenStackCluster to create; `path` is that of its spec.
pub(super) fn managed(subnets: &[SubnetSpec], path: &str, errors: &mut Errors) {
    for (index, subnet) in subnets.iter().enumerate() {
        one(subnet, &format!("{path}.managedSubnets[{index}]"), errors);
    }
    one_of_each_family(subnets, path, errors);
}

/// Validates the subnets of failure domains; `path` is that of the spec.
pub(super) fn of_failure_domains(spec: &OpenStackClusterSpec, path: &str, errors: &mut Errors) {
    if !spec.failure_domain_subnets.is_empty() && !spec.managed_subnets.is_empty() {
        let why = "is for subnets that exist: leave managedSubnets out, and give network";
        errors.push(FieldError::new(format!("{path}.failureDomainSubnets"), why));
    }
}

/// Rejects two subnets of one family: servers would have an address in only one.
fn one_of_each_family(subnets: &[SubnetSpec], path: &str, errors: &mut Errors) {
    let is_wrong =
        |subnet: &SubnetSpec| !subnet.cidr.is_empty() && subnet.cidr.parse::<IpNet>().is_err();
    let [first, second, ..] = subnets else { return };
    if is_wrong(first) || is_wrong(second) || first.is_ipv6() != second.is_ipv6() {
        return;
    }
    let field = if second.cidr.is_empty() {
        "ipVersion"
    } else {
        "cidr"
    };
    let why = "is of the same family as the first subnet: give one of IPv4 and one of IPv6";
    errors.push(FieldError::new(
        format!("{path}.managedSubnets[1].{field}"),
        why,
    ));
}

fn one(subnet: &SubnetSpec, path: &str, errors: &mut Errors) {
    let net = match (&subnet.subnet_pool, subnet.cidr.is_empty()) {
        (None, true) => {
            let why = "is missing: give a CIDR such as 10.6.0.0/24, or a subnetPool";
            errors.push(FieldError::new(format!("{path}.cidr"), why));
            None
        }
        (Some(_), true) => None,
        (_, false) => cidr(&subnet.cidr, &format!("{path}.cidr"), errors),
    };
    from_pool(subnet, net, path, errors);
    modes(subnet, net, path, errors);
    for (index, server) in subnet.dns_nameservers.iter().enumerate() {
        let path = format!("{path}.dnsNameservers[{index}]");
        address(Some(server), &path, errors);
    }
    allocation_pools(subnet, net, path, errors);
}

/// Rejects what belongs to a range that Neutron chooses where there is none, and a prefix without room for a cluster.
fn from_pool(subnet: &SubnetSpec, net: Option<IpNet>, path: &str, errors: &mut Errors) {
    let mut wrong = |field: &str, why: String| {
        errors.push(FieldError::new(format!("{path}.{field}"), why));
    };
    let chosen = subnet.subnet_pool.is_some() && subnet.cidr.is_empty();
    if let Some(length) = subnet.prefix_length {
        let most = if subnet.is_ipv6() { 126 } else { 30 };
        if !chosen {
            let why = "is for a CIDR that Neutron chooses: give a subnetPool, and no cidr";
            wrong("prefixLength", why.to_owned());
        } else if !(1..=most).contains(&length) {
            let why = format!(
                "{length} is not between 1 and {most}, with which a subnet has room for servers"
            );
            wrong("prefixLength", why);
        }
    }
    let version = subnet.ip_version.unwrap_or_default();
    match net {
        Some(net) if version != 0 && (version == 6) != net.addr().is_ipv6() => {
            wrong("ipVersion", format!("{version} is not the family of {net}"));
        }
        None if version != 0 && subnet.subnet_pool.is_none() && subnet.cidr.is_empty() => {
            let why = "is for a CIDR that Neutron chooses: give a subnetPool";
            wrong("ipVersion", why.to_owned());
        }
        _ => {}
    }
    if chosen && !subnet.allocation_pools.is_empty() {
        let why = "are ranges of a CIDR that is known: give cidr, too, which Neutron takes out of the subnetPool";
        wrong("allocationPools", why.to_owned());
    }
}

/// Rejects modes refused by Neutron: modes on an IPv4 subnet, two different modes, and addresses from hardware
/// addresses in a prefix other than 64 bits.
fn modes(subnet: &SubnetSpec, net: Option<IpNet>, path: &str, errors: &mut Errors) {
    if net.is_none() && !subnet.cidr.is_empty() {
        return;
    }
    let known = net.map(|net| net.to_string());
    let what = known.unwrap_or_else(|| "the subnet".to_owned());
    let length = net
        .map(|net| i32::from(net.prefix_len()))
        .or(subnet.prefix_length);
    let modes = [
        ("ipv6RAMode", subnet.ipv6_ra_mode),
        ("ipv6AddressMode", subnet.ipv6_address_mode),
    ];
    for (name, mode) in modes {
        let Some(mode) = mode else { continue };
        let why = match (subnet.is_ipv6(), mode) {
            (false, _) => format!("is for subnets of IPv6, and {what} is one of IPv4"),
            (true, Ipv6Mode::Dhcpv6Stateful) => continue,
            // The default of a subnet pool is known when the pool is.
            (true, _) if length.is_none_or(|length| length == 64) => continue,
            _ => format!(
                "`{}` has addresses that follow from hardware addresses, for which the subnet has to be a /64, and it is \
                 {}",
                mode.as_str(),
                net.map_or_else(
                    || format!("a /{}", length.unwrap_or_default()),
                    |net| net.to_string()
                )
            ),
        };
        errors.push(FieldError::new(format!("{path}.{name}"), why));
    }
    if let (Some(advertised), Some(address)) = (subnet.ipv6_ra_mode, subnet.ipv6_address_mode)
        && advertised != address
    {
        let why = format!(
            "`{}` differs from ipv6RAMode `{}`: Neutron takes the same of both, or one of them alone",
            address.as_str(),
            advertised.as_str()
        );
        errors.push(FieldError::new(format!("{path}.ipv6AddressMode"), why));
    }
}

fn allocation_pools(subnet: &SubnetSpec, net: Option<IpNet>, path: &str, errors: &mut Errors) {
    for (index, pool) in subnet.allocation_pools.iter().enumerate() {
        let path = format!("{path}.allocationPools[{index}]");
        let start = address(Some(&pool.start), &format!("{path}.start"), errors);
        let end = address(Some(&pool.end), &format!("{path}.end"), errors);
        let (Some(start), Some(end)) = (start, end) else {
            continue;
        };
        if start > end {
            let why = format!("comes after the end of the range, {end}");
            errors.push(FieldError::new(format!("{path}.start"), why));
        }
        if let Some(net) = net {
            for (name, ip) in [("start", start), ("end", end)] {
                if !net.contains(&ip) {
                    let why = format!("{ip} is not in the subnet {net}");
                    errors.push(FieldError::new(format!("{path}.{name}"), why));
                }
            }
        }
    }
}
