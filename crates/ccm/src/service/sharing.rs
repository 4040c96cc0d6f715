//! Load balancers of several Services (pure).

use load_balancing::transport;
use openstack::Kind;

use super::desired::Desired;
use super::identity::Identity;
use super::observed::{Observed, Role};
use super::{Rejection, annotations};

/// Checks that the load balancer can serve a Service together with others.
///
/// # Errors
/// The reason, with the annotation or the port.
pub(crate) fn check(
    desired: &Desired,
    observed: &Observed,
    identity: &Identity,
    most: u32,
) -> Result<(), Rejection> {
    let balancer = &observed.balancer;
    let others = identity.others(&balancer.name, &balancer.tags);
    let refused = |reason: &str| {
        let message = format!(
            "annotation {}: load balancer {} ({}) is shared, and {reason}",
            annotations::ID,
            balancer.id,
            balancer.name
        );
        Err(Rejection::new(message).seen_in(&[
            Kind::LoadBalancers,
            Kind::Listeners,
            Kind::FloatingIps,
        ]))
    };
    if observed.role == Role::Owner {
        return match desired.is_internal && observed.floating_ip.is_some() && !others.is_empty() {
            true => refused("the other Services need its floating IP: remove them first"),
            false => Ok(()),
        };
    }
    if desired.is_internal {
        return refused("an internal Service cannot share one: remove this or that annotation");
    }
    if observed.floating_ip.is_none() {
        return refused("it has no floating IP: give it one, or remove the annotation");
    }
    if observed.role == Role::Applicant
        && others.len() >= usize::try_from(most).unwrap_or(usize::MAX)
    {
        return refused(&format!(
            "it serves {} Services already, the most by max-shared-lb in cloud.conf: raise it, or choose another",
            others.len()
        ));
    }
    for listener in &desired.tree.listeners {
        let clash = observed.foreign.iter().find(|(protocol, port, _)| {
            *port == listener.protocol_port && transport(protocol) == transport(&listener.protocol)
        });
        if let Some((protocol, port, name)) = clash {
            return refused(&format!(
                "listener {name} has {protocol} port {port} already: choose another port"
            ));
        }
    }
    Ok(())
}
