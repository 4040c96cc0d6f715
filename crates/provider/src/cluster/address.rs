//! Floating IP of `apiServer.floatingIP`: its owner, and the permission of the cluster to associate the address.
//!
//! The user allocated the address, so the cluster neither tags nor deletes it, and Neutron would move the address from
//! any port. The cluster uses the address only without a mark of another cluster, and only from a port of its own or
//! from none.

use api::conditions::{Reason, Type};
use openstack::Kind;
use openstack::network::{FloatingIp, Port};

use super::observed::Observed;
use crate::identity::{Identity, Mark};
use crate::problem::Problem;
use crate::resolve::NotFound;
use crate::words;

/// Use of a floating IP allocated by the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// The project has no such floating IP.
    Absent,
    /// The address is on no port.
    Free,
    /// The address is on a port of the cluster, or was created for the cluster.
    Ours,
    /// The address is on a virtual IP: a port without a device, maintained by its user. Without a load balancer of the
    /// cluster the address stays there, as in the Go provider.
    LeftInPlace,
    /// The address belongs to another resource; the text describes the owner, after "floating IP A".
    Taken(String),
}

/// [`Use`] of the floating IP with this address; `balanced`: the cluster has a load balancer, or will have one.
pub(super) fn of(address: &str, observed: &Observed, balanced: bool) -> Use {
    let ips = &observed.view.floating_ips;
    let found = ips.iter().find(|ip| ip.floating_ip_address == address);
    found.map_or(Use::Absent, |ip| of_ip(ip, observed, balanced))
}

/// [`Use`] of a [`FloatingIp`] of the view.
pub(super) fn of_ip(ip: &FloatingIp, observed: &Observed, balanced: bool) -> Use {
    match Mark::from_item(ip) {
        Some(mark) if mark.cluster == observed.cluster => return Use::Ours,
        Some(mark) => {
            let other = mark.cluster;
            return Use::Taken(format!("was created for the cluster with identity {other}"));
        }
        None => {}
    }
    if let Some(id) = Identity::of_pool(ip) {
        return Use::Taken(format!("was allocated by the pool with identity {id}"));
    }
    let Some(id) = ip.port_id.as_deref() else {
        return Use::Free;
    };
    let of_balancer = observed
        .balancers
        .iter()
        .any(|known| known.vip_port_id == id);
    if of_balancer || observed.ports.iter().any(|port| port.id == id) {
        return Use::Ours;
    }
    let port = observed.view.ports.get(id);
    if !balanced && port.is_some_and(|port| is_virtual(port)) {
        return Use::LeftInPlace;
    }
    Use::Taken(format!(
        "is on {}, which is not the cluster's (if nobody needs it there: openstack floating ip unset --port {})",
        words::port(id, port.map(AsRef::as_ref)),
        ip.id
    ))
}

/// Checks that the bastion may have a floating IP: one created for the bastion, on its ports, or free. `pool` is the
/// pool that has given the address.
pub(super) fn for_bastion(
    ip: &FloatingIp,
    observed: &Observed,
    pool: Option<Identity>,
) -> Result<(), Problem> {
    let at = ip.port_id.as_deref();
    let port = at.and_then(|id| observed.ports.iter().find(|port| port.id == id));
    let is_of_bastion = |mark: Option<Mark>| {
        mark.is_some_and(|mark| mark.cluster == observed.cluster && mark.is_of_bastion())
    };
    let by = match (Mark::from_item(ip), at) {
        (mark, _) if is_of_bastion(mark) => return Ok(()),
        (Some(mark), _) if mark.cluster != observed.cluster => {
            format!("was created for the cluster with identity {}", mark.cluster)
        }
        (Some(_), _) => "is that of the API server or of a machine".to_owned(),
        (None, _) if Identity::of_pool(ip).is_some_and(|id| Some(id) != pool) => {
            "was allocated by a pool".to_owned()
        }
        (None, None) => return Ok(()),
        (None, Some(_)) if port.is_some_and(|port| is_of_bastion(Mark::from_item(&**port))) => {
            return Ok(());
        }
        (None, Some(id)) => {
            let port = observed.view.ports.get(id);
            let at = words::port(id, port.map(AsRef::as_ref));
            format!(
                "is on {at} (if nobody needs it there: openstack floating ip unset --port {})",
                ip.id
            )
        }
    };
    let text = format!(
        "bastion.floatingIP: floating IP {} {by}: give another one, or none and one is allocated",
        ip.floating_ip_address
    );
    let taken = NotFound::among(Kind::FloatingIps, text);
    Err(taken.problem(Type::BastionReady, Reason::FloatingIPError))
}

/// True if the [`Port`] is a virtual IP of a user: no device, and of no cluster.
fn is_virtual(port: &Port) -> bool {
    port.device_id.is_empty() && port.device_owner.is_empty() && Mark::from_item(port).is_none()
}

#[cfg(test)]
mod tests;
