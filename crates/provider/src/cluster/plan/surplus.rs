//! Surplus resources: after a lost response and a repeated create request, two resources have the mark of the cluster.
//! [`Observed`] sorts the one to keep first; the others are deleted.

use std::collections::BTreeSet;

use api::conditions::Type;
use api::infra::v1beta2::ManagedGroup;
use load_balancing::Status;
use openstack::loadbalancer::LoadBalancer;

use super::{Plan, Step, Wait, held};
use crate::cluster::desired::Desired;
use crate::cluster::observed::Observed;
use crate::family::Family;

/// Deletes surplus routers and their interfaces: only one router can have the gateway address of a subnet.
pub(super) fn routers(observed: &Observed, steps: &mut Vec<Step>) {
    for router in observed.routers.iter().skip(1) {
        let mut subnets = observed.interfaces(&router.id).map(|(_, subnet)| subnet);
        if subnets.any(|subnet| held::other_subnet(observed, subnet).is_some()) {
            continue;
        }
        if !router.routes.is_empty() {
            steps.push(Step::RemoveRoutes(router.id.clone()));
        }
        for (_, subnet) in observed.interfaces(&router.id) {
            steps.push(Step::RemoveInterface(router.id.clone(), subnet.to_owned()));
        }
        steps.push(Step::DeleteRouter(router.id.clone()));
    }
}

/// Deletes all other surplus resources.
pub(super) fn others(desired: &Desired, observed: &Observed, plan: &mut Plan) {
    groups(desired, observed, &mut plan.steps);
    networks(observed, &mut plan.steps);
}

/// Surplus load balancers.
pub(super) fn balancers(observed: &Observed, plan: &mut Plan) {
    for surplus in observed.balancers.iter().skip(1) {
        balancer(surplus, plan);
    }
}

/// A surplus load balancer.
pub(super) fn balancer(surplus: &LoadBalancer, plan: &mut Plan) {
    match surplus.provisioning_status.as_str() {
        _ if Status::from_balancer(surplus).can_be_deleted() => {
            plan.steps.push(Step::DeleteBalancer(surplus.id.clone()));
        }
        status => {
            let id = &surplus.id;
            let message = format!("waiting for surplus load balancer {id}, which is {status}");
            plan.waits.push(Wait {
                serves: true,
                ..Wait::new(Type::APIEndpointReady, message)
            });
        }
    }
}

fn groups(desired: &Desired, observed: &Observed, steps: &mut Vec<Step>) {
    for role in desired.groups.keys() {
        let kept = observed.group(&desired.names, *role);
        let same = |group: &&std::sync::Arc<openstack::network::SecurityGroup>| {
            kept.is_some_and(|kept| kept.name == group.name && kept.id != group.id)
        };
        let surplus = observed.groups.iter().filter(same);
        steps.extend(surplus.map(|group| Step::DeleteGroup(group.id.clone())));
    }
    bastion_groups(desired, observed, steps);
}

/// Deletes the groups of a former bastion. Neutron keeps a group with ports.
fn bastion_groups(desired: &Desired, observed: &Observed, steps: &mut Vec<Step>) {
    if desired.groups.contains_key(&ManagedGroup::Bastion) {
        return;
    }
    let name = desired.names.group(ManagedGroup::Bastion);
    for group in observed.groups.iter().filter(|group| group.name == name) {
        let mut ports = observed.view.ports.iter();
        if !ports.any(|port| port.security_groups.contains(&group.id)) {
            steps.push(Step::DeleteGroup(group.id.clone()));
        }
    }
}

fn networks(observed: &Observed, steps: &mut Vec<Step>) {
    let kept = observed.network().map(|network| network.id.as_str());
    let of_families = Family::ALL.map(|family| observed.subnet(family));
    let subnets: BTreeSet<_> = of_families
        .into_iter()
        .flatten()
        .map(|subnet| subnet.id.as_str())
        .collect();
    let surplus = observed.networks.iter().skip(1);
    let surplus: BTreeSet<_> = surplus.map(|network| network.id.clone()).collect();
    // Networks that machines or a load balancer still use are deleted later.
    let of_others = observed.view.ports.iter();
    let of_others = of_others
        .filter(|port| surplus.contains(&port.network_id) && observed.other(&***port).is_some());
    let in_use: BTreeSet<_> = of_others
        .chain(&observed.ports)
        .map(|port| port.network_id.as_str())
        .chain(
            observed
                .balancers
                .iter()
                .map(|lb| lb.vip_network_id.as_str()),
        )
        .filter(|network| Some(*network) != kept)
        .collect();
    for surplus in &observed.subnets {
        if subnets.contains(surplus.id.as_str()) || in_use.contains(surplus.network_id.as_str()) {
            continue;
        }
        for router in &observed.routers {
            let mut interfaces = observed.interfaces(&router.id);
            if interfaces.any(|(_, connected)| connected == surplus.id) {
                let (router, id) = (router.id.clone(), surplus.id.clone());
                steps.push(Step::RemoveInterface(router, id));
            }
        }
        steps.push(Step::DeleteSubnet(surplus.id.clone()));
    }
    for surplus in observed.networks.iter().skip(1) {
        if !in_use.contains(surplus.id.as_str()) {
            steps.push(Step::DeleteNetwork(surplus.id.clone()));
        }
    }
}
