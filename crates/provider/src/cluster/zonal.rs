//! Load balancers of availability zones: one for each, and a DNS name as the endpoint of all.
//!
//! The plan of a zone is that of a single load balancer, with the part of the desired and of the observed state that is for the
//! zone. Load balancers and floating IPs of a zone have its name at the beginning of their descriptions; the mark of the cluster
//! is at the end. A load balancer without a zone is that of a cluster which had no zones before: it goes on serving until
//! somebody deletes it, since the DNS name may still have its address.

use api::conditions::{Reason, Type};
use api::infra::v1beta2::{
    LoadBalancer, LoadBalancerStatus, OpenStackClusterSpec, OpenStackClusterStatus,
};
use openstack::{Kind, View};

use super::desired::{Driver, ZoneBalancer, balancer_spec, wants_floating_ip};
use super::observed::Observed;
use crate::family::Family;
use crate::problem::Problem;
use crate::resolve::{self, NotFound};

/// The field of an OpenStackCluster.
const FIELD: &str = "apiServer.managedLoadBalancer.availabilityZoneSubnets";

/// Resolves the zones of a spec. `network` is that of the load balancers, or else of the cluster.
///
/// # Errors
/// The first subnet that is not there, the first zone that Octavia does not have, and an endpoint that is no name.
pub(super) fn resolved(
    spec: &OpenStackClusterSpec,
    observed: &Observed,
    network: Option<&str>,
    driver: Driver,
) -> Result<Vec<ZoneBalancer>, Problem> {
    let Some(given) = balancer_spec(spec).filter(|it| !it.availability_zone_subnets.is_empty())
    else {
        return Ok(Vec::new());
    };
    has_name(spec)?;
    let wrong =
        |why: NotFound| why.problem(Type::APIEndpointReady, Reason::APIEndpointConfigFailed);
    let network = network.ok_or_else(|| {
        let text = format!(
            "{FIELD}: the cluster creates its network: give apiServer.managedLoadBalancer.network, in which these subnets are"
        );
        wrong(text.into())
    })?;
    let mut found: Vec<ZoneBalancer> = Vec::new();
    for (index, entry) in given.availability_zone_subnets.iter().enumerate() {
        let zone = &entry.availability_zone;
        let at = |field: &str| format!("{FIELD}[{index}].{field}");
        let subnet = resolve::subnet(&observed.view, &entry.subnet, Some(network));
        let subnet = subnet.map_err(|why| wrong(why.in_field(&at("subnet"))))?;
        if let Some(other) = found.iter().find(|other| other.subnet == subnet.id) {
            let text = format!("subnet {} is that of zone {}, too", subnet.id, other.zone);
            return Err(wrong(NotFound::from(text).in_field(&at("subnet"))));
        }
        if observed.in_zone(Some(zone)).balancers.is_empty() {
            let known = is_known(zone, given, &observed.view, driver);
            known.map_err(|why| wrong(why.in_field(&at("availabilityZone"))))?;
        }
        found.push(ZoneBalancer {
            zone: zone.clone(),
            network: network.to_owned(),
            subnet: subnet.id.clone(),
            family: Family::from_text(&subnet.cidr),
            is_placed: driver != Driver::Ovn,
        });
    }
    Ok(found)
}

/// Rejects an endpoint that is not given: several addresses need a name.
fn has_name(spec: &OpenStackClusterSpec) -> Result<(), Problem> {
    let endpoint = spec.control_plane_endpoint.as_ref();
    if endpoint.is_some_and(|endpoint| endpoint.host.is_some()) {
        return Ok(());
    }
    let text = format!(
        "controlPlaneEndpoint.host is missing: {FIELD} makes a load balancer for each zone, and one DNS name is the endpoint \
         of all: give the name, and have it lead to the addresses that will be in status.apiServerLoadBalancers"
    );
    let reason = Reason::InvalidClusterSpec;
    Err(Problem::new(Type::APIEndpointReady, reason, text))
}

/// Rejects a zone that Octavia does not have: the load balancer would be in another one.
fn is_known(zone: &str, given: &LoadBalancer, view: &View, driver: Driver) -> Result<(), NotFound> {
    if driver == Driver::Ovn {
        return Ok(());
    }
    if driver == Driver::Unknown && given.provider.is_none() {
        let text = "Octavia does not say whether its default provider is ovn, which has no zones: give \
                    apiServer.managedLoadBalancer.provider";
        return Err(NotFound::among(Kind::Providers, text.to_owned()));
    }
    if view.lb_zones.get(zone).is_some_and(|known| known.enabled) {
        return Ok(());
    }
    let known = view.lb_zones.iter().filter(|known| known.enabled);
    let known = resolve::names(known.map(|known| known.name.as_str()));
    let text = format!(
        "Octavia has no availability zone {zone}, or it is disabled; there are: {known}. Ask the cloud's operator for it, or \
         have one load balancer for all zones"
    );
    Err(NotFound::among(Kind::LbZones, text))
}

/// True if a zone of the spec has no load balancer in the status.
pub(super) fn lacks_one(given: &LoadBalancer, status: Option<&OpenStackClusterStatus>) -> bool {
    let mut wanted = given.availability_zone_subnets.iter();
    wanted.any(|wanted| {
        let mut known = status.iter().flat_map(|it| &it.api_server_load_balancers);
        !known.any(|known| known.availability_zone.as_ref() == Some(&wanted.availability_zone))
    })
}

/// True if the addresses of all zones are in the status: the name of the endpoint is for these. With floating IPs, that of IPv4
/// is one.
pub(super) fn has_addresses(spec: &OpenStackClusterSpec, status: &OpenStackClusterStatus) -> bool {
    let Some(given) = balancer_spec(spec) else {
        return true;
    };
    let is_whole = |known: &LoadBalancerStatus| {
        let internal = known.internal_ip.as_deref();
        let is_enough = |address: &str| !wants_floating_ip(spec) || address.contains(':');
        known.ip.is_some() || internal.is_some_and(is_enough)
    };
    let is_there = status.api_server_load_balancers.iter().all(is_whole);
    is_there && !lacks_one(given, Some(status))
}
