//! Resolves the references of a cluster's spec into [`Facts`].

use std::collections::BTreeSet;

use api::conditions::{Reason, Type};
use api::infra::v1beta2::{NetworkParam, OpenStackClusterSpec};
use openstack::network::FixedIp;
use openstack::{Kind, View};

use super::address::{self, Use};
use super::desired::{
    ControlPlaneMachine, Driver, ZoneBalancer, balancer_spec, is_ipv6, wants_floating_ip,
};
use super::observed::Observed;
use super::rules::Remote;
use super::subnet_pools::{self, SubnetPools};
use super::zonal;
use crate::family::Family;
use crate::identity::Mark;
use crate::names::Names;
use crate::placement::Policies;
use crate::problem::Problem;
use crate::resolve::{self, NotFound};
use crate::zones;

/// Ids of the resources referred to in a cluster's spec.
#[derive(Clone, Debug)]
pub struct Facts {
    /// [`Mark`] of the cluster.
    pub mark: Mark,
    /// [`Names`] of the resources.
    pub names: Names,
    /// True if Neutron supports tags.
    pub tagging: bool,
    /// The network of the floating IPs.
    pub external_network: Option<String>,
    /// The existing network, if the spec selects one.
    pub network: Option<String>,
    /// Subnets of the existing network, the primary one (for addresses of the API and of nodes) first.
    pub subnets: Vec<String>,
    /// The ranges of the cluster's subnets.
    pub subnet_ranges: Vec<Remote>,
    /// [`SubnetPools`] of subnets that do not exist yet.
    pub subnet_pools: SubnetPools,
    /// The subnets of failure domains.
    pub zone_subnets: Vec<String>,
    /// The load balancers of zones.
    pub zones: Vec<ZoneBalancer>,
    /// The existing router, if the spec selects one.
    pub router: Option<String>,
    /// The addresses of the managed router on the external network.
    pub router_addresses: Vec<FixedIp>,
    /// The load balancer's provider.
    pub balancer_provider: Option<String>,
    /// [`Driver`] of the provider, or of the existing load balancer.
    pub balancer_driver: Driver,
    /// The load balancer's flavor.
    pub balancer_flavor: Option<String>,
    /// Version of an Octavia that has no allowed CIDRs, if the spec has some.
    pub octavia_without_cidrs: Option<(u32, u32)>,
    /// Network and subnet of the load balancer's address, if different from the cluster's.
    pub balancer_network: Option<(String, Option<String>)>,
    /// [`ControlPlaneMachine`]s with a running server.
    pub control_plane: Vec<ControlPlaneMachine>,
    /// True if the user set the endpoint in the spec.
    pub foreign_endpoint: bool,
    /// True if nodes, pods or Services of the cluster have IPv6 addresses.
    pub ipv6: bool,
    /// True if the API server has an IPv6 address, with which no floating IP can be associated.
    pub is_api_ipv6: bool,
    /// [`Policies`] of the roles with a server group.
    pub server_groups: Policies,
    /// Problem with `controlPlaneAvailabilityZones`.
    pub unknown_zones: Option<String>,
    /// True for a cluster taken over from the Go provider: its resources keep their tags.
    pub is_adopted: bool,
    /// Warnings to emit as events: reason and text.
    pub warnings: Vec<(&'static str, String)>,
    /// [`Kind`]s whose lists are the basis of an irrevocable decision.
    pub doubts: BTreeSet<Kind>,
}

/// The network and subnet with the addresses of the API server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndpointNetwork {
    /// The network of the cluster, once it exists.
    pub network: Option<String>,
    /// Primary subnet, for addresses of the API and of nodes.
    pub subnet: Option<String>,
    /// Subnets of failure domains, for addresses of their nodes.
    pub zone_subnets: Vec<String>,
}

/// The [`EndpointNetwork`] of a cluster with this spec.
///
/// # Errors
/// First reference to a network or subnet that is missing or ambiguous.
pub fn place(spec: &OpenStackClusterSpec, observed: &Observed) -> Result<EndpointNetwork, Problem> {
    if let Some(first) = spec.managed_subnets.first() {
        let subnet = observed.subnet(Family::of_subnet(first));
        return Ok(EndpointNetwork {
            network: observed.network().map(|network| network.id.clone()),
            subnet: subnet.map(|subnet| subnet.id.clone()),
            zone_subnets: Vec::new(),
        });
    }
    let (network, subnets) = existing_network(spec, &observed.view)?;
    let zone_subnets = zones::all(spec, &observed.view, network.as_deref());
    let zone_subnets = zone_subnets.map_err(about(Type::NetworkReady))?;
    Ok(EndpointNetwork {
        network,
        subnet: subnets.into_iter().next(),
        zone_subnets,
    })
}

/// Input of facts besides the spec and the cloud.
#[derive(Clone, Debug, Default)]
pub struct Inside {
    /// [`ControlPlaneMachine`]s with a running server.
    pub control_plane: Vec<ControlPlaneMachine>,
    /// The CIDRs of pods and Services.
    pub cidrs: Vec<String>,
    /// True for a cluster taken over from the Go provider.
    pub is_adopted: bool,
    /// [`Policies`] of the roles with a server group.
    pub server_groups: Policies,
    /// Version of an Octavia that has no allowed CIDRs, if the spec has some.
    pub octavia_without_cidrs: Option<(u32, u32)>,
}

/// Resolves the references of `spec`.
///
/// # Errors
/// First reference to a resource that is missing, ambiguous, or owned by others.
pub fn facts(
    spec: &OpenStackClusterSpec,
    mark: Mark,
    names: Names,
    observed: &Observed,
    inside: Inside,
) -> Result<Facts, Problem> {
    let view = &observed.view;
    reject_foreign_tags(spec, mark)?;
    let external_network = external_network(spec, view)?;
    let (network, subnets) = existing_network(spec, view)?;
    let router = existing_router(spec, &names, observed)?;
    let router_addresses = router_addresses(spec, view, external_network.as_deref())?;
    let zone_subnets =
        zones::all(spec, view, network.as_deref()).map_err(about(Type::NetworkReady))?;
    let subnet_ranges = ranges(spec, subnets.iter().chain(&zone_subnets), view);
    let subnet_pools = subnet_pools::of(spec, observed)?;
    let mut facts = Facts {
        mark,
        names,
        tagging: view.has_extension("standard-attr-tag"),
        ipv6: subnet_ranges.iter().any(is_six) || inside.cidrs.iter().any(|cidr| is_ipv6(cidr)),
        is_api_ipv6: false,
        external_network,
        network,
        subnets,
        subnet_ranges,
        zone_subnets,
        zones: Vec::new(),
        subnet_pools,
        router,
        router_addresses,
        balancer_provider: None,
        balancer_driver: Driver::Unknown,
        balancer_flavor: None,
        balancer_network: None,
        control_plane: inside.control_plane,
        foreign_endpoint: foreign_endpoint(spec, observed),
        unknown_zones: unknown_zones(spec, view),
        is_adopted: inside.is_adopted,
        server_groups: inside.server_groups,
        octavia_without_cidrs: inside.octavia_without_cidrs,
        warnings: Vec::new(),
        doubts: BTreeSet::new(),
    };
    // A range is not given back for one of another pool of the name.
    let has_pools = !facts.subnet_pools.is_empty();
    facts.doubts.extend(has_pools.then_some(Kind::SubnetPools));
    facts
        .doubts
        .extend(facts.unknown_zones.as_ref().map(|_| Kind::Zones));
    balancer(spec, observed, &mut facts)?;
    facts.is_api_ipv6 = is_api_ipv6(spec, observed, &facts);
    no_floating_ip(spec, &facts)?;
    given_address(spec, observed, &mut facts)?;
    Ok(facts)
}

/// The ranges of the subnets to create, or else of existing ones.
fn ranges<'a>(
    spec: &OpenStackClusterSpec,
    subnets: impl Iterator<Item = &'a String>,
    view: &View,
) -> Vec<Remote> {
    let mut seen = BTreeSet::new();
    let known = subnets.filter(|id| seen.insert(id.as_str()));
    let known = known.filter_map(|id| view.subnets.get(id));
    let known = known.map(|subnet| Remote::Prefix(subnet.cidr.clone()));
    let created = spec.managed_subnets.iter();
    let created = created.map(|subnet| match subnet.cidr.as_str() {
        "" => Remote::Subnet(Family::of_subnet(subnet)),
        cidr => Remote::Prefix(cidr.to_owned()),
    });
    match spec.managed_subnets.is_empty() {
        true => known.collect(),
        false => created.collect(),
    }
}

/// True for a range of IPv6.
fn is_six(range: &Remote) -> bool {
    match range {
        Remote::Subnet(family) => *family == Family::Six,
        Remote::Prefix(cidr) => is_ipv6(cidr),
        _ => false,
    }
}

/// Rejects tags that would make resources of this cluster look like another cluster's.
fn reject_foreign_tags(spec: &OpenStackClusterSpec, mark: Mark) -> Result<(), Problem> {
    let Some(tag) = mark.foreign_tag(&spec.tags) else {
        return Ok(());
    };
    let text = resolve::foreign_tag("tags", tag);
    Err(Problem::new(Type::Ready, Reason::InvalidClusterSpec, text))
}

/// Existing router selected by the spec. A router created for another cluster stays unchanged: a subnet of this cluster
/// is connected to such a router only if the user has done so before.
fn existing_router(
    spec: &OpenStackClusterSpec,
    names: &Names,
    observed: &Observed,
) -> Result<Option<String>, Problem> {
    let Some(param) = &spec.router else {
        return Ok(None);
    };
    let found = resolve::router(&observed.view, param)
        .map_err(|why| about(Type::RouterReady)(why.in_field("router")))?;
    let is_ours = |id: &str| {
        let mut subnets = Family::ALL
            .iter()
            .filter_map(|family| observed.subnet(*family));
        subnets.any(|subnet| subnet.id == id)
    };
    let mut interfaces = observed.interfaces(&found.id);
    let is_connected = interfaces.any(|(_, connected)| is_ours(connected));
    let stays = spec.managed_subnets.is_empty() || is_connected;
    match observed.other(&**found).filter(|_| !stays) {
        None => Ok(Some(found.id.clone())),
        Some(other) => {
            let (name, id, subnet) = (&found.name, &found.id, names.network());
            let text = format!(
                "router: router {name} ({id}) was created for the cluster with identity {other}, and connecting subnet \
                 {subnet} of this cluster would change it: leave router out and one is created, or give one that no \
                 cluster has created; to share the network of the other cluster, give network and subnets in place of \
                 managedSubnets"
            );
            Err(about(Type::RouterReady)(NotFound::among(Kind::Ports, text)))
        }
    }
}

/// Problem with zones of the spec that do not exist; none if the cloud lists no zones.
fn unknown_zones(spec: &OpenStackClusterSpec, view: &View) -> Option<String> {
    let chosen = spec.control_plane_availability_zones.iter();
    let with_subnets = spec.failure_domain_subnets.iter();
    let with_subnets = with_subnets.map(|entry| entry.failure_domain.as_str());
    let cures = [
        "Correct the list, or machines of the control plane are created in other zones",
        "Correct the list: no machine has ports there",
    ];
    unknown(
        view,
        "controlPlaneAvailabilityZones",
        chosen.map(String::as_str),
        cures[0],
    )
    .or_else(|| unknown(view, "failureDomainSubnets", with_subnets, cures[1]))
}

fn unknown<'a>(
    view: &View,
    field: &str,
    chosen: impl Iterator<Item = &'a str>,
    cure: &str,
) -> Option<String> {
    let zones = view.zones.iter().filter(|zone| zone.state.available);
    let known: BTreeSet<_> = zones.map(|zone| zone.name.as_str()).collect();
    let unknown: Vec<_> = chosen.filter(|zone| !known.contains(zone)).collect();
    if known.is_empty() || unknown.is_empty() {
        return None;
    }
    let verb = match unknown.len() {
        1 => "is no availability zone",
        _ => "are no availability zones",
    };
    let unknown = resolve::names(unknown.into_iter());
    Some(format!(
        "{field}: {unknown} {verb} of Nova, or not available; there are: {}. {cure}",
        resolve::names(known.into_iter())
    ))
}

/// True if the address behind the endpoint is, or will be, one of IPv6: the load balancer's, or else the machines' on
/// subnets of IPv6 alone.
fn is_api_ipv6(spec: &OpenStackClusterSpec, observed: &Observed, facts: &Facts) -> bool {
    let ranges = &facts.subnet_ranges;
    if !facts.zones.is_empty() {
        return facts.zones.iter().all(|it| it.family == Family::Six);
    }
    if balancer_spec(spec).is_none() {
        return !ranges.is_empty() && ranges.iter().all(is_six);
    }
    let there = observed.balancer().map(|known| known.vip_address.clone());
    let given = spec.api_server.as_ref().and_then(|it| it.fixed_ip.clone());
    let range = match &facts.balancer_network {
        Some((_, subnet)) => {
            let found = subnet.as_ref().and_then(|id| observed.view.subnets.get(id));
            found.map(|subnet| Remote::Prefix(subnet.cidr.clone()))
        }
        None => ranges.first().cloned(),
    };
    let address = there.filter(|address| !address.is_empty()).or(given);
    match address {
        Some(address) => Family::from_text(&address) == Family::Six,
        None => range.as_ref().is_some_and(is_six),
    }
}

/// Rejects a requested floating IP for an API server with an IPv6 address. Without a request, the IPv6 address is the
/// endpoint.
fn no_floating_ip(spec: &OpenStackClusterSpec, facts: &Facts) -> Result<(), Problem> {
    let api_server = spec.api_server.as_ref();
    let given = api_server.and_then(|it| it.floating_ip.as_ref());
    let field = match api_server.and_then(|it| it.enable_floating_ip) {
        _ if given.is_some() => "floatingIP",
        Some(true) => "enableFloatingIP",
        _ => return Ok(()),
    };
    if !facts.is_api_ipv6 || !wants_floating_ip(spec) || facts.foreign_endpoint {
        return Ok(());
    }
    let text = format!(
        "apiServer.{field}: the API server has an address of IPv6, and floating IPs are for addresses of IPv4: set \
         apiServer.enableFloatingIP to false, or have a subnet of IPv4 first"
    );
    let reason = Reason::InvalidClusterSpec;
    Err(Problem::new(Type::APIEndpointReady, reason, text))
}

/// Checks that the cluster may use the floating IP of `apiServer.floatingIP`.
fn given_address(
    spec: &OpenStackClusterSpec,
    observed: &Observed,
    facts: &mut Facts,
) -> Result<(), Problem> {
    let given = spec
        .api_server
        .as_ref()
        .and_then(|it| it.floating_ip.as_deref());
    let Some(address) = given.filter(|_| wants_floating_ip(spec) && !facts.foreign_endpoint) else {
        return Ok(());
    };
    let use_ = address::of(address, observed, balancer_spec(spec).is_some());
    let not_associated_yet = match use_ {
        Use::Ours | Use::LeftInPlace => false,
        Use::Free => balancer_spec(spec).is_some() || !facts.control_plane.is_empty(),
        Use::Absent => true,
        Use::Taken(by) => {
            let text = format!(
                "apiServer.floatingIP: floating IP {address} {by}: give another one, or none and one is \
                 allocated"
            );
            let taken = NotFound::among(Kind::FloatingIps, text);
            return Err(taken.problem(Type::APIEndpointReady, Reason::FloatingIPError));
        }
    };
    facts
        .doubts
        .extend(not_associated_yet.then_some(Kind::FloatingIps));
    Ok(())
}

/// True if the user set the endpoint in the spec: no load balancer is managed, and the host is neither a floating IP of
/// this provider nor `apiServer.floatingIP`.
fn foreign_endpoint(spec: &OpenStackClusterSpec, observed: &Observed) -> bool {
    let host = spec
        .control_plane_endpoint
        .as_ref()
        .and_then(|endpoint| endpoint.host.as_deref());
    let given = spec
        .api_server
        .as_ref()
        .and_then(|api_server| api_server.floating_ip.as_deref());
    let ours = |host| {
        observed
            .floating_ips
            .iter()
            .any(|ip| ip.floating_ip_address == host)
    };
    balancer_spec(spec).is_none() && host.is_some_and(|host| !ours(host) && given != Some(host))
}

fn external_network(spec: &OpenStackClusterSpec, view: &View) -> Result<Option<String>, Problem> {
    if spec.enable_external_network == Some(false) {
        return Ok(None);
    }
    let without = ": set enableExternalNetwork to false to do without";
    let param = spec.external_network.as_ref();
    let found = resolve::external_network(view, param, "externalNetwork", without);
    found
        .map(|network| Some(network.id.clone()))
        .map_err(about(Type::NetworkReady))
}

/// Existing network and subnets selected by the spec, the primary subnet first.
fn existing_network(
    spec: &OpenStackClusterSpec,
    view: &View,
) -> Result<(Option<String>, Vec<String>), Problem> {
    if !spec.managed_subnets.is_empty() {
        return Ok((None, Vec::new()));
    }
    let not_found = about(Type::NetworkReady);
    let mut network = match &spec.network {
        Some(param) => Some(
            resolve::network(view, param, |_| true)
                .map_err(|why| not_found(why.in_field("network")))?
                .id
                .clone(),
        ),
        None => None,
    };
    let mut subnets = Vec::new();
    for (index, param) in spec.subnets.iter().enumerate() {
        let found = resolve::subnet(view, param, network.as_deref())
            .map_err(|why| not_found(why.in_field(&format!("subnets[{index}]"))))?;
        network.get_or_insert_with(|| found.network_id.clone());
        subnets.push(found.id.clone());
    }
    if let (Some(network), true) = (&network, subnets.is_empty()) {
        subnets.extend(
            view.subnets
                .of_parent(network)
                .iter()
                .map(|subnet| subnet.id.clone()),
        );
    }
    if let Some(primary) = &spec.primary_subnet {
        let found = resolve::subnet(view, primary, network.as_deref())
            .map_err(|why| not_found(why.in_field("primarySubnet")))?;
        if !spec.subnets.is_empty() && !subnets.contains(&found.id) {
            let there_are = resolve::names(subnets.iter().map(String::as_str));
            let text = format!(
                "primarySubnet: subnet {} is none of subnets, which are {there_are}: add it there, or choose one of them",
                found.id
            );
            return Err(not_found(NotFound::among(Kind::Subnets, text)));
        }
        subnets.retain(|id| *id != found.id);
        subnets.insert(0, found.id.clone());
    }
    Ok((network, subnets))
}

fn router_addresses(
    spec: &OpenStackClusterSpec,
    view: &View,
    external: Option<&str>,
) -> Result<Vec<FixedIp>, Problem> {
    let wanted = spec
        .managed_router
        .iter()
        .flat_map(|router| &router.external_ips);
    wanted
        .enumerate()
        .map(|(index, ip)| {
            let subnet = resolve::subnet(view, &ip.subnet, external).map_err(|why| {
                let field = format!("managedRouter.externalIPs[{index}].subnet");
                about(Type::RouterReady)(why.in_field(&field))
            })?;
            Ok(FixedIp {
                subnet_id: subnet.id.clone(),
                ip_address: ip.fixed_ip.clone().unwrap_or_default(),
            })
        })
        .collect()
}

fn balancer(
    spec: &OpenStackClusterSpec,
    observed: &Observed,
    facts: &mut Facts,
) -> Result<(), Problem> {
    let view = &observed.view;
    let Some(wanted) = balancer_spec(spec) else {
        return Ok(());
    };
    // Provider and flavor are chosen when the load balancer is created, and stay.
    let is_new = observed.balancer().is_none();
    let not_found = |field: &'static str| {
        move |why: NotFound| {
            let why = why.in_field(&format!("apiServer.managedLoadBalancer.{field}"));
            about(Type::APIEndpointReady)(why)
        }
    };
    if let Some(provider) = &wanted.provider {
        if view.providers.get(provider).is_some() {
            facts.balancer_provider = Some(provider.clone());
        } else {
            let there_are = resolve::names(view.providers.iter().map(|p| p.name.as_str()));
            let text = format!(
                "Octavia has no provider {provider}; there are: {there_are}. Its default is used"
            );
            facts.warnings.push(("OctaviaProviderNotFound", text));
            facts.doubts.extend(is_new.then_some(Kind::Providers));
        }
    }
    facts.balancer_driver = driver(observed, facts.balancer_provider.as_deref());
    if let Some(flavor) = &wanted.flavor {
        match view
            .lb_flavors
            .named(flavor)
            .iter()
            .find(|flavor| flavor.enabled)
        {
            Some(found) => facts.balancer_flavor = Some(found.id.clone()),
            None => {
                let there_are = resolve::names(view.lb_flavors.iter().map(|f| f.name.as_str()));
                let text = format!(
                    "Octavia has no enabled flavor {flavor}; there are: {there_are}. Its default \
                     is used"
                );
                facts.warnings.push(("OctaviaFlavorNotFound", text));
                facts.doubts.extend(is_new.then_some(Kind::LbFlavors));
            }
        }
    }
    let network = match &wanted.network {
        Some(param) => Some(any_network(view, param).map_err(not_found("network"))?),
        None => None,
    };
    let of_zones = network.as_ref().or(facts.network.as_ref());
    let of_zones = of_zones.map(String::as_str);
    facts.zones = zonal::resolved(spec, observed, of_zones, facts.balancer_driver)?;
    facts.balancer_network = match (network, wanted.subnets.first()) {
        (network, Some(param)) => {
            let subnet = resolve::subnet(view, param, network.as_deref())
                .map_err(not_found("subnets[0]"))?;
            Some((subnet.network_id.clone(), Some(subnet.id.clone())))
        }
        (Some(network), None) => {
            let subnet = view
                .subnets
                .of_parent(&network)
                .first()
                .map(|subnet| subnet.id.clone());
            Some((network, subnet))
        }
        (None, None) if facts.network.is_none() && spec.managed_subnets.is_empty() => {
            return Err(about(Type::APIEndpointReady)(
                "the cluster has no network for the address of the load balancer: give \
                 managedSubnets, network or subnets, or apiServer.managedLoadBalancer.network"
                    .to_owned()
                    .into(),
            ));
        }
        (None, None) => None,
    };
    Ok(())
}

/// [`Driver`] of the load balancer. Octavia does not report its default provider for a load balancer without one.
fn driver(observed: &Observed, provider: Option<&str>) -> Driver {
    let existing = observed.balancer().map(|known| known.provider.as_str());
    let existing = existing.filter(|provider| !provider.is_empty());
    let providers = &observed.view.providers;
    match existing.or(provider) {
        Some(provider) => Driver::from_provider(provider),
        None if providers.iter().next().is_none() => Driver::Unknown,
        None if providers.get("ovn").is_some() => Driver::Unknown,
        None => Driver::Amphora,
    }
}

fn any_network(view: &View, param: &NetworkParam) -> Result<String, NotFound> {
    resolve::network(view, param, |_| true).map(|network| network.id.clone())
}

fn about(type_: Type) -> impl Fn(NotFound) -> Problem + Copy {
    move |why| {
        let reason = match type_ {
            Type::NetworkReady => Reason::NetworkCreateFailed,
            Type::RouterReady => Reason::RouterCreateFailed,
            _ => Reason::APIEndpointConfigFailed,
        };
        why.problem(type_, reason)
    }
}
