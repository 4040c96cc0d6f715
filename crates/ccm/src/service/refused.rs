//! Refusals by the cloud because of a single setting, with the value that the answer does not repeat (pure).

use openstack::ErrorKind;
use openstack::loadbalancer::LoadBalancerCreate;

use super::floating::Floating;
use crate::context::Error;

/// Error of a floating IP that could not be created.
pub(super) fn floating_ip(floating: &Floating, service: &str, error: openstack::Error) -> Error {
    let Some(address) = &floating.address else {
        return Error::cloud(format!("creating the floating IP of Service {service}"))(error);
    };
    match error.kind() {
        ErrorKind::Denied => Error::Refused(format!(
            "spec.loadBalancerIP: the project has no floating IP {address}: allocate one (`openstack floating ip create \
             {}`) and write its address; only administrators may choose one",
            floating.network
        )),
        ErrorKind::Invalid => Error::Refused(format!(
            "spec.loadBalancerIP `{address}`: Neutron refuses it ({}): choose an address of the external network {}, or \
             remove it",
            error.message().trim_end_matches('.'),
            floating.network
        )),
        _ => Error::cloud(format!(
            "creating the floating IP {address}, which spec.loadBalancerIP of Service {service} asks for"
        ))(error),
    }
}

/// Error of a load balancer that could not be created.
pub(super) fn load_balancer(
    tree: &LoadBalancerCreate,
    service: &str,
    error: openstack::Error,
) -> Error {
    if let Some(address) = address(tree, &error) {
        return Error::Refused(format!(
            "spec.loadBalancerIP `{address}`: Octavia refuses it ({}): choose a free address of the subnet, or remove it",
            error.message().trim_end_matches('.')
        ));
    }
    let words = error.message().to_lowercase().replace('_', " ");
    let is_about = |value: &Option<String>, what: &str| value.is_some() && words.contains(what);
    let is_refused = matches!(error.kind(), ErrorKind::Invalid | ErrorKind::Absent);
    let settings = [
        ("flavor-id", &tree.flavor_id, "flavor", "flavor"),
        (
            "availability-zone",
            &tree.availability_zone,
            "availability zone",
            "availabilityzone",
        ),
    ];
    let mut settings = settings.into_iter();
    let found = settings.find(|(_, value, what, _)| is_refused && is_about(value, what));
    match found {
        Some((setting, Some(value), _, command)) => Error::Refused(format!(
            "{setting} `{value}`: Octavia refuses it ({}): correct the annotation loadbalancer.openstack.org/{setting}, or \
             {setting} in cloud.conf; `openstack loadbalancer {command} list` lists what there is",
            error.message().trim_end_matches('.')
        )),
        _ => Error::cloud(format!("creating the load balancer of Service {service}"))(error),
    }
}

/// Requested address in the answer.
fn address<'a>(tree: &'a LoadBalancerCreate, error: &openstack::Error) -> Option<&'a str> {
    let is_refused = matches!(
        error.kind(),
        ErrorKind::Invalid | ErrorKind::Absent | ErrorKind::Conflict | ErrorKind::Busy
    );
    let further = tree
        .additional_vips
        .iter()
        .map(|vip| vip.ip_address.as_str());
    let mut all = tree.vip_address.as_deref().into_iter().chain(further);
    let is_named = |address: &str| {
        let part = |c: char| !(c.is_ascii_hexdigit() || matches!(c, '.' | ':'));
        let mut words = error.message().split(part);
        words.any(|word| word.trim_end_matches(['.', ':']) == address)
    };
    all.find(|address| is_refused && !address.is_empty() && is_named(address))
}
