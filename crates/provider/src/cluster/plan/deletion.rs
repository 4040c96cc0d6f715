//! Plan of a deletion: dependents first, and no resource needed by another cluster.

use std::collections::BTreeSet;

use api::conditions::Type;
use load_balancing::Status;

use super::{Plan, Step, Wait, held, under_way};
use crate::cluster::observed::Observed;

/// [`Plan`] of a deletion. `existing_router` is the id of a router of others to which the cluster's subnets are
/// connected.
pub fn plan_deletion(observed: &Observed, existing_router: Option<&str>) -> Plan {
    let mut plan = Plan::default();
    servers(observed, &mut plan);
    balancers(observed, &mut plan);
    let ips = observed.floating_ips.iter().chain(&observed.bastion_ips);
    let ips = ips.map(|ip| Step::DeleteFloatingIp(ip.id.clone()));
    plan.steps.extend(ips);
    let held = held::network(observed);
    let is_held = !held.is_empty();
    plan.waits.extend(held);
    if !is_held {
        routers(observed, existing_router, &mut plan.steps);
    }
    if !observed.servers.is_empty() {
        // With a server, Nova deletes its volumes and unbinds its ports.
        let count = observed.servers.len();
        plan.waits
            .push(waiting(format!("deleting {count} servers")));
        return plan;
    }
    volumes(observed, &mut plan);
    let ports = observed.ports.iter();
    let ports = ports.map(|port| Step::DeletePort(port.id.clone()));
    plan.steps.extend(ports);
    groups(observed, &mut plan);
    let server_groups = observed.server_groups.iter();
    let server_groups = server_groups.map(|it| Step::DeleteServerGroup(it.id.clone()));
    plan.steps.extend(server_groups);
    if !is_held {
        networks(observed, &mut plan);
    }
    plan
}

/// True if load balancers of others are in the networks of the cluster.
pub fn holds_load_balancers(observed: &Observed) -> bool {
    held::balancers(observed).next().is_some()
}

fn waiting(message: impl Into<String>) -> Wait {
    Wait::new(Type::Deleting, message)
}

fn servers(observed: &Observed, plan: &mut Plan) {
    for server in &observed.servers {
        if server.is_deleting() {
            let name = &server.name;
            plan.waits.push(waiting(format!("deleting server {name}")));
        } else {
            plan.steps.push(Step::DeleteServer(server.id.clone()));
        }
    }
}

fn balancers(observed: &Observed, plan: &mut Plan) {
    for balancer in &observed.balancers {
        match balancer.provisioning_status.as_str() {
            _ if Status::from_balancer(balancer).can_be_deleted() => {
                plan.steps.push(Step::DeleteBalancer(balancer.id.clone()));
            }
            status => plan.waits.push(waiting(under_way(&balancer.name, status))),
        }
    }
}

/// Deletes routes and interfaces of the cluster's routers, then the routers; of a router of others, only the interfaces
/// to the cluster's subnets.
fn routers(observed: &Observed, existing: Option<&str>, steps: &mut Vec<Step>) {
    let with_routes = observed.routers.iter();
    let with_routes = with_routes.filter(|router| !router.routes.is_empty());
    steps.extend(with_routes.map(|router| Step::RemoveRoutes(router.id.clone())));
    let subnets: BTreeSet<_> = observed.subnets.iter().map(|it| it.id.as_str()).collect();
    let routers = observed.routers.iter().map(|router| router.id.as_str());
    for router in routers.chain(existing) {
        let is_ours = observed.routers.iter().any(|known| known.id == router);
        for (_, subnet) in observed.interfaces(router) {
            if is_ours || subnets.contains(subnet) {
                steps.push(Step::RemoveInterface(router.to_owned(), subnet.to_owned()));
            }
        }
    }
    let routers = observed.routers.iter();
    steps.extend(routers.map(|router| Step::DeleteRouter(router.id.clone())));
}

fn volumes(observed: &Observed, plan: &mut Plan) {
    for volume in &observed.volumes {
        match volume.status.as_str() {
            "deleting" => {
                let name = &volume.name;
                plan.waits.push(waiting(format!("deleting volume {name}")));
            }
            _ => plan.steps.push(Step::DeleteVolume(volume.id.clone())),
        }
    }
}

fn groups(observed: &Observed, plan: &mut Plan) {
    for group in &observed.groups {
        match held::group(observed, group) {
            Some(wait) => plan.waits.push(wait),
            None => plan.steps.push(Step::DeleteGroup(group.id.clone())),
        }
    }
}

/// Deletes subnets, then networks; not while a load balancer exists, since its address is in the subnet.
fn networks(observed: &Observed, plan: &mut Plan) {
    if observed.balancers.is_empty() {
        let subnets = observed.subnets.iter();
        let subnets = subnets.map(|subnet| Step::DeleteSubnet(subnet.id.clone()));
        plan.steps.extend(subnets);
        let networks = observed.networks.iter();
        let networks = networks.map(|network| Step::DeleteNetwork(network.id.clone()));
        plan.steps.extend(networks);
    } else if !observed.networks.is_empty() {
        let message = "waiting for the load balancer to leave the network";
        plan.waits.push(waiting(message));
    }
}
