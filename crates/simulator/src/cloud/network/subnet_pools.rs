//! Subnet pools: prefixes out of which subnets get theirs.
//!
//! Source: Neutron's `ipam/subnet_alloc` and `db_base_plugin_v2`.

use ipnet::IpNet;
use serde_json::{Value, json};

use super::address_scopes::SCOPE;
use super::resource::{Hooks, Resource, merge, owner_only, routes as standard, with_tenant};
use crate::cloud::attribute::{Attribute, Preset, Shape, attribute, fixed};
use crate::cloud::call::{Call, Who};
use crate::cloud::collection::Collection;
use crate::cloud::document::{Doc, Fields};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::route::Table;
use crate::cloud::state::State;

/// Largest prefix length of all families; that of a family is checked with the prefixes.
const LONGEST: i64 = 128;

const ATTRIBUTES: &[Attribute] = &[
    attribute("name", Shape::Text(255), Preset::Required).editable(),
    attribute("description", Shape::Text(255), Preset::Text("")).editable(),
    attribute("prefixes", Shape::Texts, Preset::Required).editable(),
    attribute("default_quota", Shape::Number(0, i64::MAX), Preset::Null).editable(),
    attribute(
        "default_prefixlen",
        Shape::Number(0, LONGEST),
        Preset::Absent,
    )
    .editable(),
    attribute("min_prefixlen", Shape::Number(0, LONGEST), Preset::Absent).editable(),
    attribute("max_prefixlen", Shape::Number(0, LONGEST), Preset::Absent).editable(),
    attribute("is_default", Shape::Flag, Preset::Flag(false)).editable(),
    attribute("shared", Shape::Flag, Preset::Flag(false)),
    attribute("address_scope_id", Shape::Id, Preset::Null)
        .editable()
        .nullable(),
    fixed("id"),
    fixed("ip_version"),
    fixed("tags"),
    fixed("revision_number"),
];

/// Neutron's subnet pools.
pub(crate) static SUBNET_POOL: Resource = Resource {
    collection: Collection {
        kind: Kind::SubnetPool,
        one: "subnetpool",
        many: "subnetpools",
        attributes: ATTRIBUTES,
        across_projects: true,
        visible: open_to,
        present,
        missing,
    },
    quota: "subnetpool",
    create,
    update,
    delete,
    hooks: Hooks {
        updated: as_updated,
        ..Hooks::NONE
    },
};

/// Registers the operations.
pub(crate) fn routes(table: &mut Table<'_>) {
    standard(
        table,
        "/v2.0/subnetpools",
        "/v2.0/subnetpools/{id}",
        &SUBNET_POOL,
    );
}

/// True for the owner of a resource, and for everyone if it is shared.
pub(crate) fn open_to(call: &Call<'_>, doc: &Doc) -> bool {
    owner_only(call, doc) || doc.flag("shared")
}

/// Returns a [`Fault`] if somebody other than an administrator shares a resource or makes it the default.
pub(crate) fn shared_by(call: &Call<'_>, given: &Doc, rule: &str) -> Result<(), Fault> {
    for name in ["shared", "is_default"] {
        if given.flag(name) && !call.who.admin() {
            let text = format!("(rule:{rule} and rule:{rule}:{name}) is disallowed by policy");
            return Err(Fault::forbidden(text));
        }
    }
    Ok(())
}

/// Returns the prefix of a new subnet, as asked for by `cidr` or `prefixlen`, or else of the default length of the pool.
pub(crate) fn allocate(call: &Call<'_>, pool: &Doc, subnet: &Doc) -> Result<IpNet, Fault> {
    let (wanted, version) = (subnet.number("ip_version"), pool.number("ip_version"));
    if wanted != version {
        let why = format!("Cannot allocate IPv{wanted} subnet from IPv{version} subnet pool");
        return Err(bad("subnets", &why));
    }
    let certain = subnet.text("cidr").parse::<IpNet>().ok();
    let length = match (&certain, subnet.contains_key("prefixlen")) {
        (Some(net), _) => i64::from(net.prefix_len()),
        (None, true) => subnet.number("prefixlen"),
        (None, false) => pool.number("default_prefixlen"),
    };
    within_bounds(pool, length)?;
    within_quota(call.state, pool, length)?;
    let free = available(call.state, pool);
    let found = match certain {
        Some(net) => free.iter().any(|block| block.contains(&net)).then_some(net),
        None => {
            let fits = |block: &&IpNet| i64::from(block.prefix_len()) <= length;
            let length = u8::try_from(length).unwrap_or(u8::MAX);
            let block = free.iter().find(fits);
            block.and_then(|block| block.subnets(length).ok()?.next())
        }
    };
    found.ok_or_else(|| {
        let why = match certain {
            Some(_) => "Cannot allocate requested subnet from the available set of prefixes".into(),
            None => format!("Insufficient prefix space to allocate subnet size /{length}"),
        };
        // Neutron gives this error no status of its own.
        let text = format!("Failed to allocate subnet: {why}.");
        Fault::new(500, "SubnetAllocationError", text)
    })
}

fn within_bounds(pool: &Doc, length: i64) -> Result<(), Fault> {
    let (least, most) = (pool.number("min_prefixlen"), pool.number("max_prefixlen"));
    let (kind, word, bound) = match length {
        _ if length > most => ("MaxPrefixSubnetAllocationError", "maximum", most),
        _ if length < least => ("MinPrefixSubnetAllocationError", "minimum", least),
        _ => return Ok(()),
    };
    let text = format!(
        "Unable to allocate subnet with prefix length {length}, {word} allowed prefix is {bound}."
    );
    Err(Fault::new(400, kind, text))
}

/// Counts addresses of IPv4, and /64s of IPv6. As in Neutron, only subnets of the pool's own project count.
fn within_quota(state: &State, pool: &Doc, length: i64) -> Result<(), Fault> {
    if !pool.given("default_quota") {
        return Ok(());
    }
    let unit = match pool.number("ip_version") {
        4 => 32,
        _ => 64,
    };
    let size = |length: i64| 2_f64.powi(i32::try_from(unit - length).unwrap_or_default());
    let owned = state.by(Kind::Subnet, "subnetpool_id", pool.text("id"));
    let owned = owned
        .iter()
        .filter(|subnet| subnet.text("project_id") == pool.text("project_id"));
    let used: f64 = owned
        .filter_map(|subnet| subnet.text("cidr").parse::<IpNet>().ok())
        .map(|net| size(i64::from(net.prefix_len())))
        .sum();
    #[expect(clippy::cast_precision_loss, reason = "Neutron calculates with floats")]
    let quota = pool.number("default_quota") as f64;
    if quota > 0.0 && used + size(length) > quota {
        return Err(Fault::new(
            409,
            "SubnetPoolQuotaExceeded",
            "Per-tenant subnet pool prefix quota exceeded.",
        ));
    }
    Ok(())
}

/// Returns the free blocks of a pool, the smallest first.
fn available(state: &State, pool: &Doc) -> Vec<IpNet> {
    let mut free = prefixes(pool);
    for subnet in state.by(Kind::Subnet, "subnetpool_id", pool.text("id")) {
        if let Ok(taken) = subnet.text("cidr").parse::<IpNet>() {
            free = free.iter().flat_map(|net| without(net, &taken)).collect();
        }
    }
    free.sort_by_key(|net| std::cmp::Reverse(net.prefix_len()));
    free
}

/// Returns what is left of a block without another one.
fn without(net: &IpNet, taken: &IpNet) -> Vec<IpNet> {
    if taken.contains(net) {
        return Vec::new();
    }
    if !net.contains(taken) {
        return vec![*net];
    }
    let halves = net.subnets(net.prefix_len() + 1);
    let halves = halves.into_iter().flatten();
    halves.flat_map(|half| without(&half, taken)).collect()
}

fn prefixes(pool: &Doc) -> Vec<IpNet> {
    let all = pool.texts("prefixes");
    all.filter_map(|text| text.parse().ok()).collect()
}

fn create(call: &mut Call<'_>, mut doc: Doc) -> Result<Doc, Fault> {
    shared_by(call, &doc, "create_subnetpool")?;
    if doc.text("name").is_empty() {
        return Err(Fault::bad(
            "Invalid input for name. Reason: '' Blank strings are not permitted.",
        ));
    }
    complete(&mut doc)?;
    one_default(call.state, &doc)?;
    in_scope(call, &doc)?;
    call.state.put(Kind::SubnetPool, doc.clone());
    Ok(doc)
}

fn update(call: &mut Call<'_>, old: &Doc, new: &mut Doc, changes: &Doc) -> Result<(), Fault> {
    shared_by(call, changes, "update_subnetpool")?;
    merge(new, changes);
    complete(new)?;
    let kept = prefixes(new);
    if !prefixes(old)
        .iter()
        .all(|net| kept.iter().any(|it| it.contains(net)))
    {
        return Err(Fault::new(
            400,
            "IllegalSubnetPoolPrefixUpdate",
            "Illegal update to prefixes: Existing prefixes must be a subset of the new prefixes.",
        ));
    }
    one_default(call.state, new)?;
    in_scope(call, new)
}

fn delete(call: &mut Call<'_>, doc: &Doc) -> Result<(), Fault> {
    let id = doc.text("id");
    if call.state.count_by(Kind::Subnet, "subnetpool_id", id) > 0 {
        return Err(Fault::new(
            400,
            "SubnetPoolDeleteError",
            "Unable to delete subnet pool: Subnet pool has existing allocations.",
        ));
    }
    call.state.remove(Kind::SubnetPool, id);
    Ok(())
}

/// Sets family, bounds and merged prefixes.
fn complete(doc: &mut Doc) -> Result<(), Fault> {
    let mut nets = Vec::new();
    for text in doc.texts("prefixes") {
        let Ok(net) = text.parse::<IpNet>() else {
            let why = format!("'{text}' is not a valid IP subnet");
            return Err(Fault::bad(format!(
                "Invalid input for prefixes. Reason: {why}."
            )));
        };
        nets.push(net.trunc());
    }
    let Some(first) = nets.first() else {
        return Err(Fault::new(
            400,
            "EmptySubnetPoolPrefixList",
            "Empty subnet pool prefix list.",
        ));
    };
    let is_four = first.addr().is_ipv4();
    if nets.iter().any(|net| net.addr().is_ipv4() != is_four) {
        let text = "Cannot mix IPv4 and IPv6 prefixes in a subnet pool.";
        return Err(Fault::new(400, "PrefixVersionMismatch", text));
    }
    let texts: Vec<Value> = IpNet::aggregate(&nets)
        .iter()
        .map(|net| json!(net.to_string()))
        .collect();
    doc.set("prefixes", texts);
    let (version, least, most) = if is_four { (4, 8, 32) } else { (6, 64, 128) };
    doc.set("ip_version", version);
    for (name, value) in [("min_prefixlen", least), ("max_prefixlen", most)] {
        if !doc.given(name) {
            doc.set(name, value);
        }
    }
    if !doc.given("default_prefixlen") {
        let least = doc.number("min_prefixlen");
        doc.set("default_prefixlen", least);
    }
    bounds(doc, most)
}

fn bounds(doc: &Doc, longest: i64) -> Result<(), Fault> {
    let number = |name: &'static str| (name, doc.number(name));
    let (least, most) = (number("min_prefixlen"), number("max_prefixlen"));
    let (usual, family) = (number("default_prefixlen"), ("ip_version_max", longest));
    let rows = [
        (least.1 > most.1, least, most),
        (most.1 > longest, most, family),
        (usual.1 < least.1, usual, least),
        (usual.1 > most.1, usual, most),
    ];
    match rows.into_iter().find(|(is_wrong, ..)| *is_wrong) {
        None => Ok(()),
        Some((_, (name, value), (base, bound))) => {
            let text = format!("Illegal prefix bounds: {name}={value}, {base}={bound}.");
            Err(Fault::new(400, "IllegalSubnetPoolPrefixBounds", text))
        }
    }
}

fn one_default(state: &State, doc: &Doc) -> Result<(), Fault> {
    if !doc.flag("is_default") {
        return Ok(());
    }
    match default(state, doc.number("ip_version")) {
        Some(other) if other != doc.text("id") => Err(Fault::new(
            400,
            "InvalidInput",
            "Invalid input for operation: A default subnetpool for this IP family has already been set. \
             Only one default may exist per IP family.",
        )),
        _ => Ok(()),
    }
}

/// Returns the id of the default pool of a family.
pub(crate) fn default(state: &State, version: i64) -> Option<String> {
    let found = state
        .all(Kind::SubnetPool)
        .find(|pool| pool.flag("is_default") && pool.number("ip_version") == version)?;
    Some(found.text("id").to_owned())
}

/// Returns a [`Fault`] if a pool cannot be in its address scope.
fn in_scope(call: &Call<'_>, doc: &Doc) -> Result<(), Fault> {
    let (id, scope) = (doc.text("id"), doc.text("address_scope_id"));
    if scope.is_empty() {
        return Ok(());
    }
    let found = SCOPE.collection.find(call, scope)?;
    let version = found.number("ip_version");
    if version != doc.number("ip_version") {
        let text = format!(
            "Illegal subnetpool association: subnetpool {id} cannot associate with address scope {scope} because \
             subnetpool ip_version is not {version}."
        );
        let kind = "IllegalSubnetPoolIpVersionAssociationToAddressScope";
        return Err(Fault::new(400, kind, text));
    }
    let nets = prefixes(doc);
    let others = call.state.by(Kind::SubnetPool, "address_scope_id", scope);
    let overlaps = |other: &Doc| {
        let others = prefixes(other);
        let mut pairs = others
            .iter()
            .flat_map(|other| nets.iter().map(move |net| (net, other)));
        pairs.any(|(net, other)| net.contains(other) || other.contains(net))
    };
    if others
        .iter()
        .any(|other| other.text("id") != id && overlaps(other))
    {
        let text = "Failed to associate address scope: subnetpools within an address scope must have unique prefixes.";
        return Err(Fault::new(409, "AddressScopePrefixConflict", text));
    }
    Ok(())
}

/// The lengths are texts in answers, and numbers in requests.
fn present(state: &State, who: &Who, doc: &mut Doc) {
    with_tenant(state, who, doc);
    for name in ["default_prefixlen", "min_prefixlen", "max_prefixlen"] {
        let text = doc.number(name).to_string();
        doc.set(name, text);
    }
}

/// Gives the answer to an update its form in Neutron: lengths are numbers there, and a quota that is not set is left out.
fn as_updated(answer: &mut Doc) {
    for name in ["default_prefixlen", "min_prefixlen", "max_prefixlen"] {
        if let Ok(number) = answer.text(name).parse::<i64>() {
            answer.set(name, number);
        }
    }
    if !answer.given("default_quota") {
        answer.remove("default_quota");
    }
}

fn missing(id: &str) -> Fault {
    Fault::new(
        404,
        "SubnetPoolNotFound",
        format!("Subnet pool {id} could not be found."),
    )
}

/// Returns Neutron's `BadRequest` about a collection.
pub(crate) fn bad(many: &str, why: &str) -> Fault {
    Fault::new(400, "BadRequest", format!("Bad {many} request: {why}."))
}
