//! Subnet pools, from which Neutron takes the ranges of subnets.
//!
//! A pool is looked up until the subnet exists, and has no influence on the subnet afterwards. For a pool without room
//! Neutron answers a creation by 500, and wrong prefix lengths are only part of a refusal, so this module reports both
//! by field.

use std::collections::BTreeMap;

use api::conditions::{Reason, Type};
use api::infra::v1beta2::{Ipv6Mode, OpenStackCluster, OpenStackClusterSpec, SubnetSpec};
use ipnet::IpNet;
use openstack::network::SubnetPool;
use openstack::{Error, Kind};

use super::observed::Observed;
use crate::family::Family;
use crate::problem::Problem;
use crate::resolve::{self, NotFound};

/// Ids of subnet pools, by the [`Family`] of the subnet.
pub type SubnetPools = BTreeMap<Family, String>;

/// The longest prefixes with room for servers, of IPv4 and IPv6.
const LONGEST: [u8; 2] = [30, 126];
/// Message of Neutron for a pool without room.
const NO_ROOM: &str = "Failed to allocate subnet";

/// True for a cluster with a subnet from a pool still to be created.
pub(super) fn are_asked_for(object: &OpenStackCluster) -> bool {
    let subnets = &object.spec.managed_subnets;
    let status = object.status.as_ref();
    let known = status.and_then(|status| status.network.as_ref());
    let known = known.map_or(0, |network| network.subnets.len());
    known < subnets.len() && subnets.iter().any(|subnet| subnet.subnet_pool.is_some())
}

/// [`SubnetPools`] of subnets that do not exist yet.
///
/// # Errors
/// First pool that is missing, or cannot have the subnet.
pub fn of(spec: &OpenStackClusterSpec, observed: &Observed) -> Result<SubnetPools, Problem> {
    let mut pools = SubnetPools::new();
    for (index, subnet) in spec.managed_subnets.iter().enumerate() {
        let family = Family::of_subnet(subnet);
        let Some(param) = &subnet.subnet_pool else {
            continue;
        };
        if observed.subnet(family).is_some() {
            continue;
        }
        let problem = |why: NotFound| {
            let why = why.in_field(&format!("managedSubnets[{index}].subnetPool"));
            why.problem(Type::NetworkReady, Reason::SubnetCreateFailed)
        };
        let pool = resolve::subnet_pool(&observed.view, param).map_err(problem)?;
        if let Some(why) = unsuitable(subnet, family, pool) {
            return Err(problem(NotFound::among(Kind::SubnetPools, why)));
        }
        pools.insert(family, pool.id.clone());
    }
    Ok(pools)
}

/// Reason why a [`SubnetPool`] can never have a subnet, whatever its free ranges.
fn unsuitable(subnet: &SubnetSpec, family: Family, pool: &SubnetPool) -> Option<String> {
    let SubnetPool { name, id, .. } = pool;
    let pool_is = format!("subnet pool {name} ({id})");
    if pool.ip_version != family.version() {
        let (its, wanted) = (pool.ip_version, family.version());
        return Some(format!(
            "{pool_is} is one of IPv{its}, and the subnet one of IPv{wanted}: give another pool, or ipVersion: {its}"
        ));
    }
    let prefixes = pool.prefixes.iter();
    let prefixes: Vec<IpNet> = prefixes.filter_map(|text| text.parse().ok()).collect();
    let there_are = || resolve::names(pool.prefixes.iter().map(String::as_str));
    let certain = subnet.cidr.parse::<IpNet>().ok();
    if let Some(net) = certain
        && !prefixes.iter().any(|prefix| prefix.contains(&net))
    {
        return Some(format!(
            "{net} is in no prefix of {pool_is}, which are {}: give a cidr out of these, or none and one is chosen",
            there_are()
        ));
    }
    let given = subnet.prefix_length.and_then(|it| u8::try_from(it).ok());
    let given = certain.map(|net| net.prefix_len()).or(given);
    let length = given.unwrap_or(pool.default_prefixlen);
    let (least, most) = (pool.min_prefixlen, pool.max_prefixlen);
    if !(least..=most).contains(&length) {
        return Some(format!(
            "{pool_is} has subnets from /{least} to /{most}, and a /{length} is asked for: change prefixLength"
        ));
    }
    let what = match given {
        Some(_) => format!("a /{length} is asked for"),
        None => format!("its default is a /{length}"),
    };
    if !prefixes.iter().any(|prefix| prefix.prefix_len() <= length) {
        return Some(format!(
            "{pool_is} has no prefix of this size, but {}, and {what}: give a greater prefixLength",
            there_are()
        ));
    }
    let longest = match family {
        Family::Four => LONGEST[0],
        Family::Six => LONGEST[1],
    };
    if length > longest {
        return Some(format!(
            "{pool_is}: {what}, which has no room for servers: give a prefixLength of {longest} at most"
        ));
    }
    let modes = [subnet.ipv6_ra_mode, subnet.ipv6_address_mode];
    let derived = |mode: &Ipv6Mode| *mode != Ipv6Mode::Dhcpv6Stateful;
    if length != 64 && modes.iter().flatten().any(derived) {
        return Some(format!(
            "{pool_is}: {what}, and addresses that follow from hardware addresses (slaac, dhcpv6-stateless) need a /64: \
             give prefixLength: 64, or the mode dhcpv6-stateful"
        ));
    }
    None
}

/// Message for a pool without room, with the cure; `None` for another error.
pub(super) fn exhausted(
    spec: &OpenStackClusterSpec,
    family: Family,
    doing: &str,
    error: &Error,
) -> Option<String> {
    let mut subnets = spec.managed_subnets.iter().enumerate();
    let (index, subnet) = subnets.find(|(_, subnet)| Family::of_subnet(subnet) == family)?;
    if subnet.subnet_pool.is_none() || !error.message().contains(NO_ROOM) {
        return None;
    }
    let (what, cure) = match subnet.cidr.as_str() {
        "" => (
            "has no room left for the subnet".to_owned(),
            "have a prefix added to it (openstack subnet pool set --pool-prefix), or subnets deleted that nobody needs",
        ),
        cidr => (
            format!("cannot give {cidr}, of which others have a part"),
            "delete the subnet that has it, which may be one of another project",
        ),
    };
    Some(format!(
        "managedSubnets[{index}].subnetPool: the subnet pool {what}: {cure}; this is tried again ({})",
        error.cause(doing)
    ))
}

#[cfg(test)]
mod tests;
