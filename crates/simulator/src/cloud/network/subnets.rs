//! Subnets: prefixes, gateways, allocation pools.

use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;
use serde_json::{Value, json};

use super::networks::NETWORK;
use super::resource::{
    Hooks, Resource, merge, owner_only, referenced, routes as standard, with_tenant,
};
use super::subnet_pools::{self, SUBNET_POOL};
use super::{automatic, ports};
use crate::cloud::addresses::{from_number, to_number};
use crate::cloud::attribute::{Attribute, Preset, Shape, attribute, fixed};
use crate::cloud::call::Call;
use crate::cloud::collection::Collection;
use crate::cloud::document::{Doc, Fields};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::route::Table;
use crate::cloud::state::State;

const MODES: &[&str] = &["dhcpv6-stateful", "dhcpv6-stateless", "slaac"];

const ATTRIBUTES: &[Attribute] = &[
    attribute("network_id", Shape::Id, Preset::Required),
    attribute("name", Shape::Text(255), Preset::Text("")).editable(),
    attribute("description", Shape::Text(255), Preset::Text("")).editable(),
    attribute("ip_version", Shape::Number(4, 6), Preset::Required),
    attribute("cidr", Shape::Prefix, Preset::Absent),
    attribute("subnetpool_id", Shape::Id, Preset::Null),
    attribute("prefixlen", Shape::Number(0, 128), Preset::Absent),
    attribute("use_default_subnetpool", Shape::Flag, Preset::Absent),
    attribute("gateway_ip", Shape::Address, Preset::Absent)
        .editable()
        .nullable(),
    attribute("allocation_pools", Shape::List, Preset::Absent).editable(),
    attribute("dns_nameservers", Shape::Texts, Preset::EmptyList).editable(),
    attribute("host_routes", Shape::List, Preset::EmptyList).editable(),
    attribute("enable_dhcp", Shape::Flag, Preset::Flag(true)).editable(),
    attribute("ipv6_ra_mode", Shape::OneOf(MODES), Preset::Null),
    attribute("ipv6_address_mode", Shape::OneOf(MODES), Preset::Null),
    attribute("service_types", Shape::Texts, Preset::EmptyList).editable(),
    attribute("segment_id", Shape::Id, Preset::Absent).nullable(),
    fixed("id"),
    fixed("shared"),
    fixed("tags"),
    fixed("revision_number"),
];

/// Neutron's subnets.
pub(crate) static SUBNET: Resource = Resource {
    collection: Collection {
        kind: Kind::Subnet,
        one: "subnet",
        many: "subnets",
        attributes: ATTRIBUTES,
        across_projects: true,
        visible,
        present: with_tenant,
        missing,
    },
    quota: "subnet",
    create,
    update,
    delete,
    hooks: Hooks::NONE,
};

/// Registers the operations.
pub(crate) fn routes(table: &mut Table<'_>) {
    standard(table, "/v2.0/subnets", "/v2.0/subnets/{id}", &SUBNET);
}

/// Returns the pools of a subnet, as first and last address.
pub(crate) fn pools(subnet: &Doc) -> Vec<(IpAddr, IpAddr)> {
    let pools = subnet
        .list("allocation_pools")
        .iter()
        .filter_map(Value::as_object);
    pools
        .filter_map(|pool| {
            Some((
                pool.text("start").parse().ok()?,
                pool.text("end").parse().ok()?,
            ))
        })
        .collect()
}

/// Adds a subnet, and an address in the subnet for the network's metadata port. Returns the [`Doc`] of the subnet.
pub(crate) fn create(call: &mut Call<'_>, mut doc: Doc) -> Result<Doc, Fault> {
    let network = referenced(call, &NETWORK, doc.text("network_id"))?;
    if !call.may_access(&network) {
        return Err(Fault::forbidden(
            "(rule:create_subnet and rule:network_owner) is disallowed by policy",
        ));
    }
    let (net, pool) = prefix(call, &mut doc)?;
    let version = if net.addr().is_ipv4() { 4 } else { 6 };
    if doc.number("ip_version") != version {
        let message = format!(
            "Invalid input for operation: cidr '{net}' does not match the ip_version '{}'.",
            doc.number("ip_version")
        );
        return Err(Fault::new(400, "InvalidInput", message));
    }
    automatic::check(&doc, &net)?;
    name_servers(&doc)?;
    no_overlap(call.state, network.text("id"), &net)?;
    one_pool(call.state, network.text("id"), version, pool.as_deref())?;
    let gateway = gateway(&doc, &net)?;
    doc.set(
        "gateway_ip",
        gateway.map_or(Value::Null, |address| json!(address.to_string())),
    );
    let pools = if doc.given("allocation_pools") {
        checked_pools(&doc, &net, gateway)?
    } else {
        default_pools(&net, gateway)
    };
    doc.set("allocation_pools", pools_view(&pools));
    call.state.put(Kind::Subnet, doc.clone());
    if automatic::is_automatic(&doc) {
        automatic::join(call.state, &doc);
    } else if doc.flag("enable_dhcp") {
        address_for_metadata(call.state, &doc);
    }
    Ok(doc)
}

/// Returns the prefix of a new subnet, and the pool that it is from, if any.
fn prefix(call: &Call<'_>, doc: &mut Doc) -> Result<(IpNet, Option<Arc<Doc>>), Fault> {
    let is_default = doc.remove("use_default_subnetpool") == Some(Value::Bool(true));
    let certain = doc.text("cidr").parse::<IpNet>();
    if certain.is_ok() && doc.contains_key("prefixlen") {
        return Err(invalid("cidr and prefixlen must not be supplied together"));
    }
    if is_default && doc.given("subnetpool_id") {
        return Err(invalid(
            "subnetpool_id and use_default_subnetpool cannot both be specified",
        ));
    }
    let version = doc.number("ip_version");
    if is_default {
        let found = subnet_pools::default(call.state, version);
        let none = || invalid(&format!("No default subnetpool found for IPv{version}"));
        doc.set("subnetpool_id", found.ok_or_else(none)?);
    }
    if !doc.given("subnetpool_id") {
        let none = |_| invalid("a subnetpool must be specified in the absence of a cidr");
        return Ok((certain.map_err(none)?, None));
    }
    if certain.is_err() && doc.given("allocation_pools") {
        return Err(invalid(
            "allocation_pools allowed only for specific subnet requests",
        ));
    }
    let pool = referenced(call, &SUBNET_POOL, doc.text("subnetpool_id"))?;
    let net = subnet_pools::allocate(call, &pool, doc)?;
    doc.remove("prefixlen");
    doc.set("cidr", net.to_string());
    Ok((net, Some(pool)))
}

/// Returns a [`Fault`] if subnets of one family in a network would be from different pools that share no address scope.
fn one_pool(state: &State, network: &str, version: i64, new: Option<&Doc>) -> Result<(), Fault> {
    let id = new.map(|pool| pool.text("id")).unwrap_or_default();
    let scope = |pool: &Doc| pool.text("address_scope_id").to_owned();
    for other in state.by(Kind::Subnet, "network_id", network) {
        let pool = state.get(Kind::SubnetPool, other.text("subnetpool_id"));
        let of_network = pool.as_deref().map(scope).filter(|scope| !scope.is_empty());
        if other.number("ip_version") != version || other.text("subnetpool_id") == id {
            continue;
        }
        match (&of_network, new) {
            (Some(known), Some(new)) if scope(new) == *known => {}
            (Some(_), Some(_)) => {
                return Err(Fault::new(
                    400,
                    "NetworkAddressScopeAffinityError",
                    "Subnets of the same address family hosted on the same network must all participate in the same \
                     address scope.",
                ));
            }
            _ => {
                return Err(Fault::new(
                    400,
                    "NetworkSubnetPoolAffinityError",
                    "Subnets hosted on the same network must be allocated from the same subnet pool.",
                ));
            }
        }
    }
    Ok(())
}

fn update(_: &mut Call<'_>, old: &Doc, new: &mut Doc, changes: &Doc) -> Result<(), Fault> {
    let Ok(net) = old.text("cidr").parse::<IpNet>() else {
        return Ok(());
    };
    name_servers(changes)?;
    merge(new, changes);
    let gateway = gateway(new, &net)?;
    if changes.contains_key("allocation_pools") {
        let pools = checked_pools(new, &net, gateway)?;
        new.set("allocation_pools", pools_view(&pools));
    }
    Ok(())
}

fn name_servers(doc: &Doc) -> Result<(), Fault> {
    match doc
        .texts("dns_nameservers")
        .find(|text| text.parse::<IpAddr>().is_err())
    {
        Some(text) => Err(Fault::bad(format!(
            "Invalid input for dns_nameservers. Reason: '{text}' is not a valid nameserver. '{text}' is not a valid IP address."
        ))),
        None => Ok(()),
    }
}

fn delete(call: &mut Call<'_>, doc: &Doc) -> Result<(), Fault> {
    let id = doc.text("id");
    let automatic = automatic::is_automatic(doc);
    let mut leaving = Vec::new();
    for port in call.state.by(Kind::Port, "subnet_id", id) {
        let owner = port.text("device_owner");
        let fits = match automatic {
            true => owner == ports::ROUTER_INTERFACE,
            false => owner != ports::METADATA,
        };
        if fits {
            let reason = "One or more ports have an IP allocation from this subnet";
            return Err(Fault::new(
                409,
                "SubnetInUse",
                format!("Unable to complete operation on subnet {id}: {reason}."),
            ));
        }
        leaving.push(port);
    }
    for port in leaving {
        call.state.edit(Kind::Port, port.text("id"), |port| {
            let left: Vec<Value> = port
                .list("fixed_ips")
                .iter()
                .filter(|fixed| fixed["subnet_id"] != id)
                .cloned()
                .collect();
            port.set("fixed_ips", left);
        });
    }
    call.state.remove(Kind::Subnet, id);
    Ok(())
}

fn visible(call: &Call<'_>, doc: &Doc) -> bool {
    owner_only(call, doc)
        || call
            .state
            .get(Kind::Network, doc.text("network_id"))
            .is_some_and(|network| network.flag("shared"))
}

fn missing(id: &str) -> Fault {
    Fault::new(
        404,
        "SubnetNotFound",
        format!("Subnet {id} could not be found."),
    )
}

fn invalid(why: &str) -> Fault {
    Fault::new(400, "BadRequest", format!("Bad subnets request: {why}."))
}

fn no_overlap(state: &State, network: &str, net: &IpNet) -> Result<(), Fault> {
    for other in state.by(Kind::Subnet, "network_id", network) {
        let Ok(taken) = other.text("cidr").parse::<IpNet>() else {
            continue;
        };
        if taken.contains(net) || net.contains(&taken) {
            return Err(Fault::new(
                400,
                "InvalidInput",
                format!(
                    "Invalid input for operation: Requested subnet with cidr: {net} for network: \
                     {network} overlaps with another subnet."
                ),
            ));
        }
    }
    Ok(())
}

/// Returns the gateway: the requested address, none for null, otherwise the first address.
fn gateway(doc: &Doc, net: &IpNet) -> Result<Option<IpAddr>, Fault> {
    match doc.get("gateway_ip") {
        Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => match text.parse::<IpAddr>() {
            Ok(address) if net.contains(&address) => Ok(Some(address)),
            _ => Err(Fault::new(
                400,
                "InvalidInput",
                format!("Invalid input for operation: Gateway is not valid on subnet: {text}."),
            )),
        },
        _ => Ok(Some(from_number(
            to_number(net.network()) + 1,
            net.addr().is_ipv4(),
        ))),
    }
}

/// Returns the whole prefix without network, broadcast and gateway address.
fn default_pools(net: &IpNet, gateway: Option<IpAddr>) -> Vec<(IpAddr, IpAddr)> {
    let v4 = net.addr().is_ipv4();
    let (first, last) = bounds(net);
    let mut ranges = vec![(first, last)];
    if let Some(gateway) = gateway
        .map(to_number)
        .filter(|gateway| (first..=last).contains(gateway))
    {
        ranges = vec![
            (first, gateway.saturating_sub(1)),
            (gateway.saturating_add(1), last),
        ];
    }
    ranges
        .into_iter()
        .filter(|(start, end)| start <= end)
        .map(|(start, end)| (from_number(start, v4), from_number(end, v4)))
        .collect()
}

fn bounds(net: &IpNet) -> (u128, u128) {
    let (network, broadcast) = (to_number(net.network()), to_number(net.broadcast()));
    let whole = net.prefix_len() + 1 >= net.max_prefix_len();
    match (whole, net) {
        (true, _) => (network, broadcast),
        (false, IpNet::V4(_)) => (network + 1, broadcast - 1),
        (false, IpNet::V6(_)) => (network + 1, broadcast),
    }
}

fn checked_pools(
    doc: &Doc,
    net: &IpNet,
    gateway: Option<IpAddr>,
) -> Result<Vec<(IpAddr, IpAddr)>, Fault> {
    let given = doc.list("allocation_pools");
    let mut pools: Vec<(IpAddr, IpAddr)> = Vec::new();
    for pool in given {
        let bound = |name: &str| {
            pool.get(name)
                .and_then(Value::as_str)?
                .parse::<IpAddr>()
                .ok()
        };
        let (Some(start), Some(end)) = (bound("start"), bound("end")) else {
            return Err(Fault::bad(format!(
                "Invalid input for allocation_pools. Reason: Invalid data format for IP pool: '{pool}'."
            )));
        };
        if !net.contains(&start) || !net.contains(&end) {
            return Err(Fault::new(
                400,
                "OutOfBoundsAllocationPool",
                format!("The allocation pool {start}-{end} spans beyond the subnet cidr {net}."),
            ));
        }
        if to_number(start) > to_number(end) {
            return Err(Fault::new(
                400,
                "InvalidAllocationPool",
                format!("The allocation pool {start}-{end} is not valid."),
            ));
        }
        if let Some(gateway) = gateway
            && (to_number(start)..=to_number(end)).contains(&to_number(gateway))
        {
            return Err(Fault::new(
                409,
                "GatewayConflictWithAllocationPools",
                format!("Gateway ip {gateway} conflicts with allocation pool {start}-{end}."),
            ));
        }
        if pools
            .iter()
            .any(|(a, b)| to_number(*a) <= to_number(end) && to_number(start) <= to_number(*b))
        {
            return Err(Fault::new(
                409,
                "OverlappingAllocationPools",
                format!("Found overlapping allocation pools: {start}-{end} for subnet {net}."),
            ));
        }
        pools.push((start, end));
    }
    Ok(pools)
}

fn pools_view(pools: &[(IpAddr, IpAddr)]) -> Vec<Value> {
    pools
        .iter()
        .map(|(start, end)| json!({"start": start.to_string(), "end": end.to_string()}))
        .collect()
}

fn address_for_metadata(state: &mut State, subnet: &Doc) {
    let owned = state.by(Kind::Port, "network_id", subnet.text("network_id"));
    let Some(port) = owned
        .iter()
        .find(|port| port.text("device_owner") == ports::METADATA)
    else {
        return;
    };
    let id = subnet.text("id");
    if let Some(address) = state.addresses.free(id, &pools(subnet), &[]) {
        state.edit(Kind::Port, port.text("id"), |port| {
            let mut fixed = port.list("fixed_ips").to_vec();
            fixed.push(json!({"subnet_id": id, "ip_address": address.to_string()}));
            port.set("fixed_ips", fixed);
        });
    }
}
