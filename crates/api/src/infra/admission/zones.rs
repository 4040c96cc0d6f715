//! Load balancers of availability zones.

use std::net::IpAddr;

use super::formats::Errors;
use crate::change::FieldError;
use crate::infra::v1beta2::OpenStackClusterSpec;

/// Validates the load balancers of availability zones; `path` is that of the spec.
pub(super) fn balancers(spec: &OpenStackClusterSpec, path: &str, errors: &mut Errors) {
    let Some(api_server) = &spec.api_server else {
        return;
    };
    let Some(balancer) = &api_server.managed_load_balancer else {
        return;
    };
    let of_server = format!("{path}.apiServer");
    let of_balancer = format!("{of_server}.managedLoadBalancer");
    let zones = &balancer.availability_zone_subnets;
    let mut wrong = |field: String, why: &str| errors.push(FieldError::new(field, why));
    if zones.is_empty() {
        if balancer.allow_cross_az_members.is_some() {
            let field = format!("{of_balancer}.allowCrossAZLoadBalancerMembers");
            wrong(
                field,
                "is for availabilityZoneSubnets: give these, or leave it out",
            );
        }
        return;
    }
    for (index, zone) in zones.iter().enumerate() {
        let name = &zone.availability_zone;
        if name.contains(':') || name.trim() != name {
            let field = format!("{of_balancer}.availabilityZoneSubnets[{index}].availabilityZone");
            wrong(
                field,
                "is the name of a zone alone: no zone has a colon or a space at its ends",
            );
        }
    }
    let of_one = "is for a single load balancer, and availabilityZoneSubnets has one for each zone: leave it out";
    let given = [
        (
            format!("{of_balancer}.availabilityZone"),
            balancer.availability_zone.is_some(),
        ),
        (
            format!("{of_balancer}.subnets"),
            !balancer.subnets.is_empty(),
        ),
        (
            format!("{of_server}.fixedIP"),
            api_server.fixed_ip.is_some(),
        ),
        (
            format!("{of_server}.floatingIP"),
            api_server.floating_ip.is_some(),
        ),
    ];
    for (field, _) in given.into_iter().filter(|(_, is_given)| *is_given) {
        wrong(field, of_one);
    }
    let host = spec
        .control_plane_endpoint
        .as_ref()
        .and_then(|it| it.host.as_deref());
    if host.is_some_and(|host| host.parse::<IpAddr>().is_ok()) {
        let why = "is an address, and with availabilityZoneSubnets there are several: give a DNS name, which leads to \
                   all of status.apiServerLoadBalancers";
        wrong(format!("{path}.controlPlaneEndpoint.host"), why);
    }
}
