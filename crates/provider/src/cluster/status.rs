//! The status of a cluster: a function of the desired state, the observed state and the problem of the reconcile.

use std::collections::BTreeMap;

use api::conditions::{self, Reason, Status, Type, Verdict};
use api::infra::v1beta2::{
    ControlPlaneEndpoint, FailureDomain, Initialization, LoadBalancerStatus, ManagedGroup,
    NetworkStatus, NetworkStatusWithSubnets, OpenStackCluster, OpenStackClusterSpec,
    OpenStackClusterStatus, RouterStatus, SecurityGroupStatus, Subnet,
};
use api::k8s_openapi::jiff::{SignedDuration, Timestamp};
use openstack::network;

use super::desired::{Desired, Network, Router, api_port, balancer_spec};
use super::facts::Facts;
use super::observed::Observed;
use super::plan::{Plan, Wait};
use super::{balancer, request, zonal};
use crate::family::Family;
use crate::problem::Problem;

/// [`Type`]s of conditions summarized by Ready, in the order of the resources' creation.
const PARTS: [Type; 4] = [
    Type::NetworkReady,
    Type::RouterReady,
    Type::SecurityGroupsReady,
    Type::APIEndpointReady,
];

/// Sets one condition.
pub(crate) fn condition(
    status: &mut OpenStackClusterStatus,
    generation: Option<i64>,
    now: Timestamp,
    type_: Type,
    verdict: (Status, Reason, &str),
) {
    let (holds, reason, message) = verdict;
    let verdict = Verdict::new(type_, holds, reason).because(message);
    conditions::set(&mut status.conditions, verdict, generation, now);
}

/// Endpoint of the API server, once known.
pub(crate) fn endpoint(
    spec: &OpenStackClusterSpec,
    desired: &Desired,
    observed: &Observed,
) -> Option<ControlPlaneEndpoint> {
    let known = spec
        .control_plane_endpoint
        .as_ref()
        .and_then(|endpoint| endpoint.host.clone());
    let fixed = || {
        spec.api_server
            .as_ref()
            .and_then(|api_server| api_server.fixed_ip.clone())
    };
    let host = known.or_else(|| {
        if !desired.zones.is_empty() {
            None
        } else if desired.floating_ip.is_some() {
            request::floating_ip(desired, observed).map(|ip| ip.floating_ip_address.clone())
        } else if desired.balancer.is_some() {
            observed
                .balancer()
                .map(|balancer| balancer.vip_address.clone())
        } else {
            fixed()
        }
    })?;
    let port = i32::from(api_port(spec));
    (!host.is_empty()).then_some(ControlPlaneEndpoint {
        host: Some(host),
        port: Some(port),
    })
}

/// [`Problem`] of a spec that cannot result in an endpoint.
pub(crate) fn no_endpoint(spec: &OpenStackClusterSpec, desired: &Desired) -> Option<Problem> {
    let given = spec
        .control_plane_endpoint
        .as_ref()
        .is_some_and(|e| e.host.is_some())
        || spec
            .api_server
            .as_ref()
            .is_some_and(|api_server| api_server.fixed_ip.is_some());
    if given || desired.balancer.is_some() || desired.floating_ip.is_some() {
        return None;
    }
    Some(Problem::new(
        Type::APIEndpointReady,
        Reason::InvalidClusterSpec,
        "nothing leads to the API server: enable apiServer.managedLoadBalancer or \
         apiServer.enableFloatingIP, or give apiServer.fixedIP or controlPlaneEndpoint",
    ))
}

/// [`Problem`] with entries of `allowedCIDRs` without an effect. Other entries are applied.
pub(crate) fn unusable_cidrs(
    spec: &OpenStackClusterSpec,
    desired: &Desired,
    observed: &Observed,
) -> Option<Problem> {
    if !desired.zones.is_empty() {
        return desired.zones.iter().find_map(|own| {
            let observed = observed.in_zone(Some(&own.zone));
            unusable_cidrs(spec, &desired.in_zone(own), &observed)
        });
    }
    if let Some((major, minor)) = desired.balancer.as_ref().and_then(|it| it.without_cidrs) {
        let message = format!(
            "apiServer.managedLoadBalancer.allowedCIDRs: the Octavia of this cloud has version {major}.{minor} of its API, \
             and allowed CIDRs need 2.12 (Train), so that everybody may connect: remove the CIDRs, or ask the cloud's \
             operator for a newer Octavia"
        );
        let reason = Reason::InvalidClusterSpec;
        return Some(Problem::new(Type::APIEndpointReady, reason, message));
    }
    if !balancer::ignored_cidrs(desired, observed).is_empty() {
        let message = "apiServer.managedLoadBalancer.allowedCIDRs: Octavia's driver ovn has no allowed CIDRs, so that \
                       everybody may connect. It passes the addresses of clients on: remove the CIDRs and narrow the rule for \
                       the API server instead (managedSecurityGroups.defaultRules, name APIServer), or have a load balancer \
                       of the provider amphora";
        let reason = Reason::InvalidClusterSpec;
        return Some(Problem::new(Type::APIEndpointReady, reason, message));
    }
    let entries = balancer::unusable_cidrs(desired, observed);
    if entries.is_empty() || balancer_spec(spec).is_none() {
        return None;
    }
    let family = match balancer::vip_is_ipv4(desired, observed) {
        true => "IPv4",
        false => "IPv6",
    };
    let message = format!(
        "apiServer.managedLoadBalancer.allowedCIDRs: {} cannot be applied, since the address of the \
         load balancer is one of {family} and Octavia accepts CIDRs of the same family only: remove \
         them. The other entries are applied",
        entries.join(", ")
    );
    let reason = Reason::InvalidClusterSpec;
    Some(Problem::new(Type::APIEndpointReady, reason, message))
}

/// [`Problem`] with missing `controlPlaneAvailabilityZones`.
pub(crate) fn unknown_zones(facts: &Facts) -> Option<Problem> {
    let text = facts.unknown_zones.clone()?;
    Some(Problem::new(Type::Ready, Reason::InvalidClusterSpec, text))
}

/// Time limit of a load balancer in a PENDING state.
const PENDING: SignedDuration = SignedDuration::from_mins(15);

/// [`Problem`] with an operation of the cloud that does not end without intervention, or has been in the conditions for
/// too long.
pub(crate) fn stuck(object: &OpenStackCluster, plan: &Plan, now: Timestamp) -> Option<Problem> {
    let reason = Reason::APIEndpointConfigFailed;
    if let Some(wait) = plan.waits.iter().find(|wait| wait.is_stuck) {
        return Some(Problem::new(wait.about, reason, wait.message.clone()));
    }
    let conditions = &object.status.as_ref()?.conditions;
    let known = conditions::find(conditions, Type::APIEndpointReady)?;
    let is_late =
        known.status == "False" && now.duration_since(known.last_transition_time.0) > PENDING;
    let mut waits = plan.waits.iter();
    let wait = waits.find(|wait| is_late && wait.about == Type::APIEndpointReady)?;
    let text = format!(
        "{}: this takes more than 15 minutes. Ask the cloud's operator for the state of Octavia's workers (openstack \
         loadbalancer show); it goes on when the load balancer is ACTIVE or ERROR",
        wait.message
    );
    Some(Problem::new(Type::APIEndpointReady, reason, text))
}

/// The resources of the cluster, for the status.
pub(crate) fn resources(
    status: &mut OpenStackClusterStatus,
    object: &OpenStackClusterSpec,
    desired: &Desired,
    observed: &Observed,
) {
    let view = &observed.view;
    status.network = network_status(desired, observed);
    status.external_network = external(desired, observed);
    let router = match &desired.router {
        Router::Existing(id) => view.routers.get(id),
        Router::Managed { .. } => observed.router(),
        Router::None => None,
    };
    status.router = router.map(|router| RouterStatus {
        name: router.name.clone(),
        id: router.id.clone(),
        tags: router.tags.clone(),
        ips: router
            .external_gateway_info
            .iter()
            .flat_map(|gateway| {
                gateway
                    .external_fixed_ips
                    .iter()
                    .map(|ip| ip.ip_address.clone())
            })
            .collect(),
    });
    let group = |role| {
        observed
            .group(&desired.names, role)
            .map(|group| SecurityGroupStatus {
                name: group.name.clone(),
                id: group.id.clone(),
            })
    };
    status.control_plane_security_group = group(ManagedGroup::ControlPlane);
    status.worker_security_group = group(ManagedGroup::Worker);
    status.bastion_security_group = group(ManagedGroup::Bastion);
    status.api_server_managed_load_balancer = match desired.zones.is_empty() {
        true => balancer(desired, observed),
        false => balancer(desired, &observed.in_zone(None)),
    };
    status.api_server_load_balancers = of_zones(desired, observed);
    status.failure_domains = failure_domains(object, observed);
}

fn network_status(desired: &Desired, observed: &Observed) -> Option<NetworkStatusWithSubnets> {
    let view = &observed.view;
    let (network, subnets) = match &desired.network {
        Network::Managed { .. } => (
            observed.network()?,
            desired
                .managed_subnets()
                .iter()
                .filter_map(|subnet| observed.subnet(Family::of_subnet(subnet)))
                .collect::<Vec<_>>(),
        ),
        Network::Existing { network, subnets } => (
            view.networks.get(network)?,
            subnets
                .iter()
                .filter_map(|id| view.subnets.get(id))
                .collect(),
        ),
        Network::None => return None,
    };
    Some(with_subnets(network, &subnets))
}

fn with_subnets(
    network: &network::Network,
    subnets: &[&std::sync::Arc<network::Subnet>],
) -> NetworkStatusWithSubnets {
    NetworkStatusWithSubnets {
        // Neutron allows empty names, but the schema requires one.
        name: if network.name.is_empty() {
            network.id.clone()
        } else {
            network.name.clone()
        },
        id: network.id.clone(),
        tags: network.tags.clone(),
        subnets: subnets
            .iter()
            .map(|subnet| Subnet {
                name: subnet.name.clone(),
                id: subnet.id.clone(),
                cidr: subnet.cidr.clone(),
                tags: subnet.tags.clone(),
            })
            .collect(),
    }
}

fn external(desired: &Desired, observed: &Observed) -> Option<NetworkStatus> {
    let id = match (&desired.router, &desired.floating_ip) {
        (Router::Managed { external, .. }, _) => external,
        (_, Some(ip)) => &ip.network,
        _ => return None,
    };
    let network = with_subnets(observed.view.networks.get(id)?, &[]);
    Some(NetworkStatus {
        name: network.name,
        id: network.id,
        tags: network.tags,
    })
}

fn balancer(desired: &Desired, observed: &Observed) -> Option<LoadBalancerStatus> {
    desired.balancer.as_ref()?;
    let known = observed.balancer()?;
    let network = observed.view.networks.get(&known.vip_network_id);
    let subnet = observed.view.subnets.get(&known.vip_subnet_id);
    Some(LoadBalancerStatus {
        name: known.name.clone(),
        id: known.id.clone(),
        ip: request::floating_ip(desired, observed).map(|ip| ip.floating_ip_address.clone()),
        internal_ip: Some(known.vip_address.clone()).filter(|address| !address.is_empty()),
        allowed_cidrs: balancer::allowed_cidrs(desired, observed).unwrap_or_default(),
        tags: known.tags.clone(),
        load_balancer_network: network
            .map(|network| with_subnets(network, &subnet.into_iter().collect::<Vec<_>>())),
        ..LoadBalancerStatus::default()
    })
}

/// The load balancers of zones that exist.
fn of_zones(desired: &Desired, observed: &Observed) -> Vec<LoadBalancerStatus> {
    let all = desired.zones.iter().filter_map(|own| {
        let observed = observed.in_zone(Some(&own.zone));
        let operating = observed.balancer()?.operating_status.clone();
        Some(LoadBalancerStatus {
            availability_zone: Some(own.zone.clone()),
            operating_status: Some(operating).filter(|status| !status.is_empty()),
            ..balancer(&desired.in_zone(own), &observed)?
        })
    });
    all.collect()
}

/// [`FailureDomain`]s for the availability zones, computed in each reconcile: unlike in the Go provider, edits of the
/// spec take effect.
fn failure_domains(spec: &OpenStackClusterSpec, observed: &Observed) -> Vec<FailureDomain> {
    let chosen = &spec.control_plane_availability_zones;
    let zones = observed
        .view
        .zones
        .iter()
        .filter(|zone| zone.state.available);
    zones
        .map(|zone| {
            let control_plane = if chosen.is_empty() {
                spec.control_plane_omit_availability_zone != Some(true)
            } else {
                chosen.contains(&zone.name)
            };
            FailureDomain {
                name: zone.name.clone(),
                control_plane: Some(control_plane),
                attributes: BTreeMap::new(),
            }
        })
        .collect()
}

/// Sets the conditions when no plan could be computed, because of the credentials or of a reference in the spec. Other
/// conditions stay unchanged.
pub(crate) fn unplanned(object: &mut OpenStackCluster, problem: &Problem, now: Timestamp) {
    let generation = object.metadata.generation;
    let status = object.status.get_or_insert_default();
    let verdict = (Status::False, problem.reason, problem.message.as_str());
    condition(status, generation, now, problem.about, verdict);
    if problem.about != Type::Ready {
        let message = format!("{}: {}", problem.about.as_str(), problem.message);
        let verdict = (Status::False, problem.reason, message.as_str());
        condition(status, generation, now, Type::Ready, verdict);
    }
}

/// Conditions, and true for a cluster provisioned for machines: `stopped` is the [`Problem`] that stopped the plan,
/// `unusable` the one with parts of the spec without an effect.
pub(crate) fn verdicts(
    object: &mut OpenStackCluster,
    plan: &Plan,
    [stopped, unusable]: [Option<&Problem>; 2],
    now: Timestamp,
) {
    let problem = stopped.or(unusable);
    let generation = object.metadata.generation;
    let spec = &object.spec;
    let has_endpoint = spec
        .control_plane_endpoint
        .as_ref()
        .is_some_and(|e| e.host.is_some());
    let groups = spec.managed_security_groups.is_some();
    let status = object.status.get_or_insert_default();
    let has_router =
        status.router.is_some() || plan.steps.iter().any(|s| s.about() == Type::RouterReady);
    let mut first: Option<(Type, Reason, String)> = None;
    for type_ in PARTS {
        let applies = match type_ {
            Type::RouterReady => has_router,
            Type::SecurityGroupsReady => groups,
            _ => true,
        };
        if !applies {
            conditions::remove(&mut status.conditions, type_);
            continue;
        }
        let held = conditions::is_true(&status.conditions, type_);
        let (holds, reason, message) = part(type_, held, plan, problem);
        condition(status, generation, now, type_, (holds, reason, &message));
        if holds != Status::True && first.is_none() {
            first = Some((type_, reason, message));
        }
    }
    let of_whole = problem.filter(|problem| problem.about == Type::Ready || first.is_none());
    if let Some(problem) = of_whole {
        first = Some((problem.about, problem.reason, problem.message.clone()));
    }
    let (holds, reason, message) = match first {
        None => (Status::True, Reason::Ready, String::new()),
        Some((Type::Ready, reason, message)) => (Status::False, reason, message),
        Some((type_, reason, message)) => (
            Status::False,
            reason,
            format!("{}: {message}", type_.as_str()),
        ),
    };
    condition(
        status,
        generation,
        now,
        Type::Ready,
        (holds, reason, &message),
    );
    // Machines need the network, the groups and the address of the API, but not a working load balancer: it becomes
    // active while the first machine boots. With zones that do not exist, they would be created in others.
    let ready_for_machines = has_endpoint
        && zonal::has_addresses(spec, status)
        && stopped.is_none()
        && unusable.is_none_or(|problem| problem.about != Type::Ready)
        && plan
            .steps
            .iter()
            .all(|step| step.about() == Type::APIEndpointReady)
        && plan.waits.iter().all(|wait| !wait.is_stuck);
    if ready_for_machines {
        status.initialization = Some(Initialization {
            provisioned: Some(true),
        });
    }
}

/// Sets the condition of the credentials after a login.
pub(crate) fn authenticated(object: &mut OpenStackCluster, now: Timestamp) {
    let generation = object.metadata.generation;
    let status = object.status.get_or_insert_default();
    let verdict = (Status::True, Reason::OpenStackAuthenticationSucceeded, "");
    condition(
        status,
        generation,
        now,
        Type::OpenStackAuthenticationSucceeded,
        verdict,
    );
}

/// Sets the condition of one part of the cluster. A true condition stays true during waits in which the part stays in
/// service.
fn part(
    type_: Type,
    held: bool,
    plan: &Plan,
    problem: Option<&Problem>,
) -> (Status, Reason, String) {
    if let Some(problem) = problem.filter(|problem| problem.about == type_) {
        return (Status::False, problem.reason, problem.message.clone());
    }
    if let Some(step) = plan.steps.iter().find(|step| step.about() == type_) {
        return (
            Status::False,
            Reason::Creating,
            crate::words::doing(&step.to_string()),
        );
    }
    let hinders = |wait: &&Wait| wait.about == type_ && !(held && wait.serves);
    if let Some(wait) = plan.waits.iter().find(hinders) {
        let reason = if wait.is_stuck {
            Reason::APIEndpointConfigFailed
        } else {
            Reason::WaitingForCloud
        };
        return (Status::False, reason, wait.message.clone());
    }
    (Status::True, Reason::Ready, String::new())
}

#[cfg(test)]
mod tests;
