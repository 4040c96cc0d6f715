//! Address in `spec.loadBalancerIP` (pure).

use std::net::IpAddr;

use api::k8s_openapi::api::core::v1::Service;
use ipnet::IpNet;
use openstack::{Kind, View};

use super::Rejection;
use super::vip::{Family, Vip};

/// Requested address; `None` without one.
///
/// # Errors
/// A value that is no address, or of a family that the [`Service`] does not have, unless the Service already has an
/// address: then the field has no effect, which is reported apart.
pub(super) fn of(service: &Service) -> Result<Option<&str>, Rejection> {
    let spec = service.spec.as_ref();
    let asked = spec.and_then(|spec| spec.load_balancer_ip.as_deref());
    let (Some(spec), Some(asked)) = (spec, asked.filter(|asked| !asked.is_empty())) else {
        return Ok(None);
    };
    if is_published(service) {
        return Ok(Some(asked));
    }
    let wrong = |problem: &str| {
        let message = format!("spec.loadBalancerIP: `{asked}` {problem}: correct or remove it");
        Err(Rejection::new(message))
    };
    let (first, second) = Family::from_spec(spec);
    let all = || [Some(first), second].into_iter().flatten();
    match Family::ALL.into_iter().find(|family| family.has(asked)) {
        None => wrong("is no IP address"),
        Some(family) if all().any(|known| known == family) => Ok(Some(asked)),
        Some(family) => wrong(&format!(
            "is of {}, and the Service has {} alone (spec.ipFamilies)",
            family.name(),
            first.name()
        )),
    }
}

fn is_published(service: &Service) -> bool {
    let status = service.status.as_ref();
    let status = status.and_then(|status| status.load_balancer.as_ref());
    status.is_some_and(|status| status.ingress.as_ref().is_some_and(|list| !list.is_empty()))
}

/// Checks that the address is in the subnet of a new load balancer, or in one of the subnets of its network. Octavia
/// judges subnets invisible to the project.
///
/// # Errors
/// Names the subnets.
pub(super) fn check_place(
    asked: Option<&str>,
    family: Family,
    vip: &Vip,
    view: &View,
) -> Result<(), Rejection> {
    let asked = asked.filter(|asked| family.has(asked));
    let Some(address) = asked.and_then(|asked| asked.parse::<IpAddr>().ok()) else {
        return Ok(());
    };
    let subnets = match (&vip.subnet, &vip.network) {
        (Some(subnet), _) => view.subnets.get(subnet).into_iter().collect(),
        (None, Some(network)) => Vec::from_iter(view.subnets.of_parent(network)),
        (None, None) => Vec::new(),
    };
    let is_of = |cidr: &IpNet| cidr.addr().is_ipv6() == family.is_6();
    let ranges = subnets.iter().filter_map(|subnet| {
        let cidr = subnet.cidr.parse::<IpNet>().ok().filter(is_of)?;
        Some((&subnet.id, cidr))
    });
    let ranges: Vec<_> = ranges.collect();
    if ranges.is_empty() || ranges.iter().any(|(_, cidr)| cidr.contains(&address)) {
        return Ok(());
    }
    let known: Vec<_> = ranges
        .iter()
        .map(|(id, cidr)| format!("{id} ({cidr})"))
        .collect();
    let message = format!(
        "spec.loadBalancerIP: `{address}` is outside of the subnet {} of the load balancer: write an address of it, choose \
         another one with the annotation loadbalancer.openstack.org/subnet-id, or remove the address",
        known.join(", ")
    );
    Err(Rejection::new(message).seen_in(&[Kind::Networks, Kind::Subnets]))
}
