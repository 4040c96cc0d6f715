//! Changed settings that count at the creation of a load balancer only (pure).

use api::k8s_openapi::api::core::v1::Service;
use kube::ResourceExt;

use super::Notice;
use super::annotations::Given;
use super::desired::Desired;
use super::observed::{Observed, Role};
use super::vip::Family;

/// Annotations with no effect on the load balancer, because Octavia cannot change the setting later.
pub(super) fn notices(service: &Service, desired: &Desired, observed: &Observed) -> Vec<Notice> {
    let mut notices = Vec::from_iter(members(service, desired, observed));
    // The load balancer of another Service, or of a user, was created for other annotations, and a second one for the
    // annotations of the first.
    if observed.role != Role::Owner || desired.identity.is_second() {
        return notices;
    }
    let balancer = &observed.balancer;
    let flavor = balancer.flavor_id.as_deref().unwrap_or_default();
    let zone = balancer.availability_zone.as_deref().unwrap_or_default();
    let given = Given::from_annotations(service.annotations());
    let created = [
        ("subnet-id", balancer.vip_subnet_id.as_str()),
        ("network-id", &balancer.vip_network_id),
        ("port-id", &balancer.vip_port_id),
        ("flavor-id", flavor),
        ("availability-zone", zone),
    ];
    for (name, known) in created {
        let Some(asked) = given.text(name).filter(|asked| *asked != known) else {
            continue;
        };
        // Features that the driver lacks are reported apart.
        if name == "availability-zone" && desired.tree.availability_zone.is_none() {
            continue;
        }
        notices.push(Notice {
            reason: "LoadBalancerImmutable",
            message: format!(
                "annotation loadbalancer.openstack.org/{name}: `{asked}` has no effect: load balancer {} was created with \
                 `{known}`, which Octavia does not change: write that, or delete the Service and create it again",
                balancer.id
            ),
        });
    }
    notices.extend(address(service, desired, observed));
    notices.extend(family(desired, observed));
    notices
}

/// [`Notice`] for members in another subnet than requested. Members of the Go manager may have none.
fn members(service: &Service, desired: &Desired, observed: &Observed) -> Option<Notice> {
    let asked = desired.member_subnet.as_ref()?;
    let all = observed
        .listeners
        .values()
        .flat_map(|branch| &branch.members);
    let mut subnets = all.filter_map(|member| member.subnet_id.as_deref());
    let known = subnets.find(|known| *known != asked)?;
    let source = match Given::from_annotations(service.annotations()).text("member-subnet-id") {
        Some(_) => "annotation loadbalancer.openstack.org/member-subnet-id",
        None => "member-subnet-id of cloud.conf",
    };
    Some(Notice {
        reason: "LoadBalancerImmutable",
        message: format!(
            "{source}: `{asked}` has effect on new members alone: load balancer {} has members in subnet `{known}`, and \
             Octavia does not change the subnet of a member: a member that is deleted (`openstack loadbalancer member \
             delete`) is added again in the new subnet",
            observed.balancer.id
        ),
    })
}

/// [`Notice`] for a first family without an address on the load balancer.
fn family(desired: &Desired, observed: &Observed) -> Option<Notice> {
    let (first, balancer) = (desired.families.first()?, &observed.balancer);
    let further = balancer.additional_vips.iter().map(|vip| &vip.ip_address);
    let mut known = std::iter::once(&balancer.vip_address).chain(further);
    // The load balancer may not have an address yet.
    if balancer.vip_address.is_empty() || known.any(|address| first.has(address)) {
        return None;
    }
    Some(Notice {
        reason: "LoadBalancerImmutable",
        message: format!(
            "spec.ipFamilies: `{}` has no effect: load balancer {} was created with {}: delete the Service and create it \
             again",
            first.name(),
            balancer.id,
            balancer.vip_address
        ),
    })
}

/// [`Notice`] for another address than the requested one.
fn address(service: &Service, desired: &Desired, observed: &Observed) -> Option<Notice> {
    let spec = service.spec.as_ref()?;
    let asked = spec
        .load_balancer_ip
        .as_deref()
        .filter(|ip| !ip.is_empty())?;
    let is_of_second = |(family, _): &(Family, String)| family.has(asked);
    if desired.apart.as_ref().is_some_and(is_of_second) {
        return None;
    }
    let balancer = &observed.balancer;
    let mut known: Vec<&str> = vec![&balancer.vip_address];
    known.extend(
        balancer
            .additional_vips
            .iter()
            .map(|vip| vip.ip_address.as_str()),
    );
    let floating = observed.floating_ip.as_ref();
    known.extend(floating.map(|ip| ip.floating_ip_address.as_str()));
    // Without a floating IP so far, the requested address is still to come.
    if floating.is_none() && !observed.is_published || known.contains(&asked) {
        return None;
    }
    Some(Notice {
        reason: "LoadBalancerImmutable",
        message: format!(
            "spec.loadBalancerIP: `{asked}` has no effect: the Service has {}: write that, or delete the Service and create \
             it again",
            known.last().copied().unwrap_or_default()
        ),
    })
}
