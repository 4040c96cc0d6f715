//! Steps from the observed to the desired state.
//!
//! A [`Step`] names an action. Its request is computed only when the step is applied, from the state observed at that
//! time, so that a step can depend on resources of earlier steps. An action that must wait for the cloud is a [`Wait`]
//! instead of a step.

mod deletion;
mod held;
mod surplus;
mod zonal;

use std::collections::BTreeSet;
use std::fmt;

use api::conditions::Type;
use api::infra::v1beta2::ManagedGroup;
use load_balancing::{Action, Status};

pub use self::deletion::{holds_load_balancers, plan_deletion};
use super::balancer;
use super::desired::{Desired, Network, Router};
use super::observed::Observed;
use super::rules::{Referents, observed_key};
use crate::family::Family;
use crate::names::role_word;
use crate::placement;

/// One write to the cloud.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)] // The names are self-explanatory; `Display` describes them.
pub enum Step {
    CreateNetwork,
    /// Restores the differing fields of the network, in words.
    UpdateNetwork(Vec<&'static str>),
    CreateSubnet(Family),
    UpdateSubnet(Family),
    CreateRouter,
    UpdateRouter,
    EnableRouter,
    /// Connects the subnet of this family to the router.
    AddInterface(Family),
    CreateGroup(ManagedGroup),
    /// The missing rules of this group: Neutron accepts rules of one group per bulk request.
    CreateRules(ManagedGroup),
    DeleteRule(String),
    CreateBalancer,
    /// A step for the load balancer of an availability zone.
    InZone(String, Box<Step>),
    /// Changes the part of the load balancer for this port.
    ChangeBalancer(Action, u16),
    CreateFloatingIp,
    AssociateFloatingIp,
    /// Collection and id of a Neutron resource.
    Tag(&'static str, String),
    DeleteBalancer(String),
    DeleteFloatingIp(String),
    DeleteServer(String),
    DeleteVolume(String),
    /// All routes of a router, by any creator: an interface used by a route cannot be removed.
    RemoveRoutes(String),
    /// The ids of router and subnet.
    RemoveInterface(String, String),
    DeleteRouter(String),
    DeletePort(String),
    DeleteSubnet(String),
    DeleteNetwork(String),
    DeleteGroup(String),
    /// Creates the server group of a role.
    CreateServerGroup(ManagedGroup),
    DeleteServerGroup(String),
    /// Tags a resource created by an earlier step of the same plan.
    TagCreated(Created),
}

/// Resource created by an earlier step of the same plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Created {
    Network,
    Subnet(Family),
    Router,
    Group(ManagedGroup),
    FloatingIp,
}

impl Step {
    /// [`Type`] of the condition that reports the success of this step.
    pub fn about(&self) -> Type {
        match self {
            Step::InZone(_, step) => step.about(),
            Step::CreateNetwork
            | Step::UpdateNetwork(_)
            | Step::CreateSubnet(_)
            | Step::UpdateSubnet(_) => Type::NetworkReady,
            Step::CreateRouter
            | Step::UpdateRouter
            | Step::EnableRouter
            | Step::AddInterface(_) => Type::RouterReady,
            Step::CreateGroup(_) | Step::CreateRules(_) | Step::DeleteRule(_) => {
                Type::SecurityGroupsReady
            }
            Step::CreateBalancer
            | Step::ChangeBalancer(..)
            | Step::CreateFloatingIp
            | Step::AssociateFloatingIp => Type::APIEndpointReady,
            Step::Tag(collection, _) => match *collection {
                "networks" | "subnets" => Type::NetworkReady,
                "routers" => Type::RouterReady,
                "security-groups" => Type::SecurityGroupsReady,
                _ => Type::APIEndpointReady,
            },
            Step::TagCreated(created) => match created {
                Created::Network | Created::Subnet(_) => Type::NetworkReady,
                Created::Router => Type::RouterReady,
                Created::Group(_) => Type::SecurityGroupsReady,
                Created::FloatingIp => Type::APIEndpointReady,
            },
            Step::CreateServerGroup(_) => Type::Ready,
            _ => Type::Deleting,
        }
    }

    /// Event for this step, such as `CreateNetwork`; none for steps of no interest to users.
    pub fn event(&self) -> Option<&'static str> {
        Some(match self {
            Step::CreateNetwork => "CreateNetwork",
            Step::UpdateNetwork(_) => "UpdateNetwork",
            Step::CreateSubnet(_) => "CreateSubnet",
            Step::UpdateSubnet(_) => "UpdateSubnet",
            Step::CreateRouter => "CreateRouter",
            Step::UpdateRouter | Step::EnableRouter => "UpdateRouter",
            Step::AddInterface(_) => "AddRouterInterface",
            Step::CreateGroup(_) => "CreateSecurityGroup",
            Step::CreateRules(_) | Step::DeleteRule(_) => "UpdateSecurityGroup",
            Step::CreateServerGroup(_) => "CreateServerGroup",
            Step::DeleteServerGroup(_) => "DeleteServerGroup",
            Step::CreateBalancer => "CreateLoadBalancer",
            Step::InZone(_, step) => return step.event(),
            Step::ChangeBalancer(action, _) => balancer::event(*action),
            Step::CreateFloatingIp => "CreateFloatingIP",
            Step::AssociateFloatingIp => "AssociateFloatingIP",
            Step::Tag(..) | Step::TagCreated(_) => return None,
            Step::DeleteBalancer(_) => "DeleteLoadBalancer",
            Step::DeleteFloatingIp(_) => "DeleteFloatingIP",
            Step::DeleteServer(_) => "DeleteServer",
            Step::DeleteVolume(_) => "DeleteVolume",
            Step::RemoveRoutes(_) => "UpdateRouter",
            Step::RemoveInterface(..) => "RemoveRouterInterface",
            Step::DeleteRouter(_) => "DeleteRouter",
            Step::DeletePort(_) => "DeletePort",
            Step::DeleteSubnet(_) => "DeleteSubnet",
            Step::DeleteNetwork(_) => "DeleteNetwork",
            Step::DeleteGroup(_) => "DeleteSecurityGroup",
        })
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::CreateNetwork => f.write_str("create the network"),
            Step::UpdateNetwork(what) => {
                write!(f, "change {} of the network back", what.join(" and "))
            }
            Step::CreateSubnet(family) => write!(f, "create the {family}"),
            Step::UpdateSubnet(family) => write!(f, "change the {family}'s name servers"),
            Step::CreateRouter => f.write_str("create the router"),
            Step::UpdateRouter => f.write_str("change the router's gateway"),
            Step::EnableRouter => f.write_str("enable the router, which was switched off"),
            Step::AddInterface(family) => write!(f, "connect the {family} to the router"),
            Step::CreateGroup(role) => write!(f, "create the {} security group", role_word(*role)),
            Step::CreateRules(role) => {
                write!(
                    f,
                    "create the rules of the {} security group",
                    role_word(*role)
                )
            }
            Step::DeleteRule(id) => write!(f, "delete security group rule {id}"),
            Step::CreateServerGroup(role) => {
                write!(f, "create the server group of role {}", role_word(*role))
            }
            Step::DeleteServerGroup(id) => write!(f, "delete server group {id}"),
            Step::CreateBalancer => f.write_str("create the load balancer of the API server"),
            Step::InZone(zone, step) => write!(f, "{step} in zone {zone}"),
            Step::ChangeBalancer(action, port) => {
                write!(f, "{} for port {port}", balancer::words(*action))
            }
            Step::CreateFloatingIp => f.write_str("create the floating IP of the API server"),
            Step::AssociateFloatingIp => f.write_str("associate the floating IP of the API server"),
            Step::Tag(collection, id) => write!(f, "tag {id} of {collection}"),
            Step::TagCreated(created) => write!(f, "tag the {created}"),
            Step::DeleteBalancer(id) => write!(f, "delete load balancer {id}"),
            Step::DeleteFloatingIp(id) => write!(f, "delete floating IP {id}"),
            Step::DeleteServer(id) => write!(f, "delete server {id}"),
            Step::DeleteVolume(id) => write!(f, "delete volume {id}"),
            Step::RemoveRoutes(id) => write!(f, "remove the routes of router {id}"),
            Step::RemoveInterface(router, subnet) => {
                write!(f, "disconnect subnet {subnet} from router {router}")
            }
            Step::DeleteRouter(id) => write!(f, "delete router {id}"),
            Step::DeletePort(id) => write!(f, "delete port {id}"),
            Step::DeleteSubnet(id) => write!(f, "delete subnet {id}"),
            Step::DeleteNetwork(id) => write!(f, "delete network {id}"),
            Step::DeleteGroup(id) => write!(f, "delete security group {id}"),
        }
    }
}

impl fmt::Display for Created {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Created::Network => f.write_str("network"),
            Created::Subnet(family) => write!(f, "{family}"),
            Created::Router => f.write_str("router"),
            Created::Group(role) => {
                write!(f, "{} security group", role_word(*role))
            }
            Created::FloatingIp => f.write_str("floating IP of the API server"),
        }
    }
}

/// Operation of the cloud that must finish before the plan can continue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// [`Type`] of the condition that reports the wait.
    pub about: Type,
    /// Reason of the wait, for users.
    pub message: String,
    /// True if intervention is needed.
    pub is_stuck: bool,
    /// True if the resource stays in service meanwhile, as a load balancer does while members are added.
    pub serves: bool,
}

impl Wait {
    fn new(about: Type, message: impl Into<String>) -> Self {
        Self {
            about,
            message: message.into(),
            is_stuck: false,
            serves: false,
        }
    }
}

/// [`Step`]s to apply now, in this order, and reasons to wait.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Writes.
    pub steps: Vec<Step>,
    /// Reasons to wait before later steps.
    pub waits: Vec<Wait>,
}

impl Plan {
    /// True without steps and waits.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty() && self.waits.is_empty()
    }
}

/// [`Plan`] from `observed` to `desired`.
pub fn plan(desired: &Desired, observed: &Observed) -> Plan {
    let mut plan = Plan::default();
    network(desired, observed, &mut plan);
    router(desired, observed, &mut plan);
    groups(desired, observed, &mut plan);
    server_groups(desired, observed, &mut plan);
    match desired.zones.is_empty() {
        true => {
            endpoint(desired, observed, &mut plan);
            surplus::balancers(observed, &mut plan);
        }
        false => zonal::plan(desired, observed, &mut plan),
    }
    surplus::others(desired, observed, &mut plan);
    plan
}

/// Adds the steps of a load balancer with its floating IP and members, or of the floating IP alone.
fn endpoint(desired: &Desired, observed: &Observed, plan: &mut Plan) {
    balancer(desired, observed, plan);
    floating_ip(desired, observed, plan);
    members(desired, observed, plan);
}

fn network(desired: &Desired, observed: &Observed, plan: &mut Plan) {
    if !matches!(desired.network, Network::Managed { .. }) {
        return;
    }
    let steps = &mut plan.steps;
    match observed.network() {
        None => {
            steps.push(Step::CreateNetwork);
            tag_created(desired, Created::Network, steps);
        }
        Some(network) => {
            tag(desired, "networks", &network.id, &network.tags, steps);
            steps.extend(changed(desired, network));
        }
    }
    for subnet in desired.managed_subnets() {
        let family = Family::of_subnet(subnet);
        match observed.subnet(family) {
            None => {
                steps.push(Step::CreateSubnet(family));
                tag_created(desired, Created::Subnet(family), steps);
            }
            Some(known) => {
                tag(desired, "subnets", &known.id, &known.tags, steps);
                if known.dns_nameservers != subnet.dns_nameservers {
                    steps.push(Step::UpdateSubnet(family));
                }
            }
        }
    }
}

/// [`Step`] to restore the network after changes by hand.
fn changed(desired: &Desired, known: &openstack::network::Network) -> Option<Step> {
    let change = super::request::change_of_network(desired, known)?;
    let words = [
        (change.mtu.is_some(), "the MTU"),
        (change.port_security_enabled.is_some(), "port security"),
        (change.admin_state_up.is_some(), "the admin state"),
    ];
    let words = words.into_iter().filter(|(differs, _)| *differs);
    Some(Step::UpdateNetwork(words.map(|(_, word)| word).collect()))
}

fn router(desired: &Desired, observed: &Observed, plan: &mut Plan) {
    let steps = &mut plan.steps;
    let id = match &desired.router {
        Router::None => return,
        Router::Existing(id) => Some(id.clone()),
        Router::Managed {
            external,
            addresses,
        } => match observed.router() {
            None => {
                steps.push(Step::CreateRouter);
                tag_created(desired, Created::Router, steps);
                None
            }
            Some(router) => {
                tag(desired, "routers", &router.id, &router.tags, steps);
                let gateway = router.external_gateway_info.as_ref();
                let settled = gateway.is_some_and(|gateway| {
                    gateway.network_id == *external
                        && addresses.iter().all(|wanted| {
                            gateway.external_fixed_ips.iter().any(|known| {
                                known.subnet_id == wanted.subnet_id
                                    && (wanted.ip_address.is_empty()
                                        || known.ip_address == wanted.ip_address)
                            })
                        })
                });
                if !settled {
                    steps.push(Step::UpdateRouter);
                }
                if router.admin_state_up == Some(false) {
                    steps.push(Step::EnableRouter);
                }
                Some(router.id.clone())
            }
        },
    };
    surplus::routers(observed, steps);
    for subnet in desired.managed_subnets() {
        let family = Family::of_subnet(subnet);
        let connected = match (&id, observed.subnet(family)) {
            (Some(router), Some(subnet)) => observed
                .interfaces(router)
                .any(|(_, connected)| connected == subnet.id),
            _ => false,
        };
        if !connected {
            steps.push(Step::AddInterface(family));
        }
    }
}

fn groups(desired: &Desired, observed: &Observed, plan: &mut Plan) {
    let steps = &mut plan.steps;
    for role in desired.groups.keys() {
        match observed.group(&desired.names, *role) {
            None => {
                steps.push(Step::CreateGroup(*role));
                tag_created(desired, Created::Group(*role), steps);
            }
            Some(group) => tag(desired, "security-groups", &group.id, &group.tags, steps),
        }
    }
    let known = observed.referents(&desired.names);
    let missing = missing_rules(desired, observed, &known);
    let mut rules = desired.groups.values().flatten();
    let is_complete = desired
        .groups
        .keys()
        .all(|role| known.groups.contains_key(role))
        && rules.all(|rule| rule.key(&known).is_some());
    for role in desired.groups.keys() {
        // Since rules refer to groups and subnets, the missing rules are known only once all of these exist.
        if !is_complete || missing.iter().any(|(known, _)| known == role) {
            steps.push(Step::CreateRules(*role));
        }
    }
    for (role, rules) in &desired.groups {
        let wanted: BTreeSet<_> = rules.iter().filter_map(|rule| rule.key(&known)).collect();
        let group = observed.group(&desired.names, *role);
        // A rule that refers to what does not exist has no key, so surplus rules are known only once all of it exists.
        if !is_complete {
            continue;
        }
        for rule in group.iter().flat_map(|group| &group.rules) {
            if !wanted.contains(&observed_key(rule)) {
                steps.push(Step::DeleteRule(rule.id.clone()));
            }
        }
    }
}

/// Adds missing server groups. A group of another policy, or of a role without one now, has servers, and stays as long
/// as the cluster.
fn server_groups(desired: &Desired, observed: &Observed, plan: &mut Plan) {
    for (role, policy) in &desired.server_groups {
        let name = placement::name(&desired.names, desired.mark.cluster, *role, *policy);
        if !observed.server_groups.iter().any(|it| it.name == name) {
            plan.steps.push(Step::CreateServerGroup(*role));
        }
    }
}

/// Missing rules by role and position; duplicate rules of the spec count once.
pub(super) fn missing_rules(
    desired: &Desired,
    observed: &Observed,
    known: &Referents,
) -> Vec<(ManagedGroup, usize)> {
    let mut missing = Vec::new();
    for (role, rules) in &desired.groups {
        let Some(group) = observed.group(&desired.names, *role) else {
            continue;
        };
        let mut present: BTreeSet<_> = group.rules.iter().map(observed_key).collect();
        for (index, rule) in rules.iter().enumerate() {
            if rule.key(known).is_some_and(|key| present.insert(key)) {
                missing.push((*role, index));
            }
        }
    }
    missing
}

/// Operation of the cloud on a load balancer.
fn under_way(name: &str, status: &str) -> String {
    let doing = match status {
        "PENDING_CREATE" => "creating",
        "PENDING_UPDATE" => "changing",
        "PENDING_DELETE" => "deleting",
        status => return format!("waiting for load balancer {name}, which is {status}"),
    };
    format!("{doing} load balancer {name}")
}

fn balancer(desired: &Desired, observed: &Observed, plan: &mut Plan) {
    if desired.balancer.is_none() {
        return;
    }
    let Some(known) = observed.balancer() else {
        plan.steps.push(Step::CreateBalancer);
        return;
    };
    let name = &known.name;
    match Status::from_balancer(known) {
        Status::Active => {}
        Status::Error => {
            plan.waits.push(Wait {
                about: Type::APIEndpointReady,
                message: format!(
                    "load balancer {name} is in ERROR: ask the cloud's operator, or delete it \
                     (openstack loadbalancer delete --cascade {}) and a new one is created",
                    known.id
                ),
                is_stuck: true,
                serves: false,
            });
            return;
        }
        Status::Pending | Status::Deleting => {
            let status = known.provisioning_status.as_str();
            let message = under_way(name, status);
            let serves = status == "PENDING_UPDATE";
            plan.waits.push(Wait {
                serves,
                ..Wait::new(Type::APIEndpointReady, message)
            });
            return;
        }
    }
    change(desired, observed, plan, |action| !action.is_of_members());
}

/// Adds changes of the pools' members, when the rest of the load balancer is in order.
fn members(desired: &Desired, observed: &Observed, plan: &mut Plan) {
    let is_change = |step: &Step| matches!(step, Step::ChangeBalancer(..));
    if !plan.steps.iter().any(is_change) {
        change(desired, observed, plan, Action::is_of_members);
    }
}

/// Adds the next [`Step`] of the load balancer if among `these`. One change at a time, since each change makes the load
/// balancer PENDING_UPDATE.
fn change(desired: &Desired, observed: &Observed, plan: &mut Plan, these: impl Fn(Action) -> bool) {
    let known = observed
        .balancer()
        .map(|known| Status::from_balancer(known));
    if known != Some(Status::Active) {
        return;
    }
    let steps = balancer::steps(desired, observed).into_iter();
    let mut steps = steps.map(|(port, step)| (step.action(), port));
    let next = steps.next().filter(|(action, _)| these(*action));
    plan.steps
        .extend(next.map(|(action, port)| Step::ChangeBalancer(action, port)));
}

fn floating_ip(desired: &Desired, observed: &Observed, plan: &mut Plan) {
    let Some(_) = &desired.floating_ip else {
        return;
    };
    let steps = &mut plan.steps;
    let Some(known) = super::request::floating_ip(desired, observed) else {
        steps.push(Step::CreateFloatingIp);
        tag_created(desired, Created::FloatingIp, steps);
        return;
    };
    let ours = observed.floating_ips.iter().any(|ip| ip.id == known.id);
    if ours {
        tag(desired, "floatingips", &known.id, &known.tags, steps);
    }
    let target = super::request::floating_ip_target(desired, observed, Some(known));
    if target.is_some_and(|(port, _)| known.port_id.as_ref() != Some(&port)) {
        steps.push(Step::AssociateFloatingIp);
    }
    for surplus in observed.floating_ips.iter().filter(|ip| ip.id != known.id) {
        steps.push(Step::DeleteFloatingIp(surplus.id.clone()));
    }
}

fn tag(
    desired: &Desired,
    collection: &'static str,
    id: &str,
    known: &[String],
    steps: &mut Vec<Step>,
) {
    if desired.tagging && desired.tags.iter().any(|tag| !known.contains(tag)) {
        steps.push(Step::Tag(collection, id.to_owned()));
    }
}

fn tag_created(desired: &Desired, created: Created, steps: &mut Vec<Step>) {
    if desired.tagging {
        steps.push(Step::TagCreated(created));
    }
}

#[cfg(test)]
mod tests;
