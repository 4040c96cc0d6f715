//! Security group that lets the traffic of a load balancer reach the nodes.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use api::k8s_openapi::api::core::v1::Node;
use api::k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use load_balancing::transport;
use openstack::loadbalancer::MemberCreate;
use openstack::network::{Port, RuleCreate, SecurityGroup, SecurityGroupCreate, SecurityGroupRule};
use openstack::{Kind, View};

use super::desired::Desired;
use super::identity::Identity;
use super::{Rejection, Work, members};
use crate::context::Error;
use crate::node::is_new;
use crate::revision;

/// An ingress rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rule {
    ethertype: String,
    protocol: String,
    port: i64,
    prefix: String,
}

impl Rule {
    fn from_rule(rule: &SecurityGroupRule) -> Option<Self> {
        (rule.port_range_min == rule.port_range_max).then_some(())?;
        Some(Self {
            ethertype: rule.ethertype.clone(),
            protocol: rule.protocol.clone()?,
            port: rule.port_range_min?,
            prefix: rule.remote_ip_prefix.clone()?,
        })
    }
}

/// Desired group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    rules: BTreeSet<Rule>,
    /// Ports of the member nodes.
    ports: BTreeSet<String>,
}

/// [`Group`] of a load balancer. The driver ovn passes the addresses of clients on, so `clients` reach the [`Node`]s; others
/// connect from the members' subnet.
///
/// # Errors
/// The subnet of the members is unknown.
pub(crate) fn wanted(
    desired: &Desired,
    clients: Option<&[String]>,
    nodes: &[&Node],
    view: &View,
) -> Result<Group, Rejection> {
    let by_name: HashMap<String, &Node> = nodes.iter().map(|it| (it.name_any(), *it)).collect();
    let mut group = Group {
        rules: BTreeSet::new(),
        ports: BTreeSet::new(),
    };
    for listener in &desired.tree.listeners {
        let pool = listener.default_pool.iter();
        for member in pool.flat_map(|pool| &pool.members) {
            let prefixes = match clients {
                Some(clients) => clients.to_vec(),
                None => vec![subnet_of(member, desired, view)?],
            };
            let protocol = transport(&listener.protocol).to_lowercase();
            let traffic = (protocol, member.protocol_port);
            let check = member.monitor_port.map(|port| ("tcp".to_owned(), port));
            for (protocol, port) in [traffic].into_iter().chain(check) {
                group.rules.extend(prefixes.iter().map(|prefix| Rule {
                    ethertype: if prefix.contains(':') { "IPv6" } else { "IPv4" }.to_owned(),
                    protocol: protocol.clone(),
                    port: port.into(),
                    prefix: prefix.clone(),
                }));
            }
            let node = by_name.get(&member.name);
            let ports = node.map_or(&[][..], |node| members::ports(node, view));
            let ports = ports.iter().filter(|port| is_of(port, &member.address));
            group.ports.extend(ports.map(|port| port.id.clone()));
        }
    }
    Ok(group)
}

/// Range of the subnet of a member.
fn subnet_of(member: &MemberCreate, desired: &Desired, view: &View) -> Result<String, Rejection> {
    let id = member.subnet_id.as_ref().or(desired.vip_subnet.as_ref());
    let found = id.and_then(|id| view.subnets.get(id));
    found.map(|subnet| subnet.cidr.clone()).ok_or_else(|| {
        Rejection::new(format!(
            "manage-security-groups: the subnet `{}` of the members is not one that the project has: set member-subnet-id \
             in cloud.conf",
            id.map_or("", String::as_str)
        ))
        .seen_in(&[Kind::Subnets])
    })
}

/// True for a [`Port`] of a server with this address, and with security groups at all.
fn is_of(port: &Port, address: &str) -> bool {
    port.device_owner.starts_with("compute:")
        && port.port_security_enabled != Some(false)
        && port
            .fixed_ips
            .iter()
            .any(|fixed| fixed.ip_address == address)
}

/// True if a member on a [`Node`] of the last minute has an address without a port of its server: the list of ports may
/// be a second old, and the server younger.
pub(crate) fn awaits_port(
    desired: &Desired,
    nodes: &[Arc<Node>],
    view: &View,
    now: Timestamp,
) -> bool {
    let is_new = nodes.iter().filter(|node| is_new(node, now));
    let new: HashMap<String, &Arc<Node>> = is_new.map(|node| (node.name_any(), node)).collect();
    let lacks_port = |member: &MemberCreate| {
        let node = new.get(&member.name);
        node.is_some_and(|node| members::subnet(node, &member.address, view).is_none())
    };
    let pools = desired.tree.listeners.iter();
    let pools = pools.filter_map(|listener| listener.default_pool.as_ref());
    pools.flat_map(|pool| &pool.members).any(lacks_port)
}

fn find<'a>(identity: &Identity, view: &'a View) -> Option<&'a SecurityGroup> {
    let mut groups = view.security_groups.iter();
    let found = groups.find(|group| identity.owns_group(&group.name, &group.description));
    found.map(|group| &**group)
}

/// True if the Service has a group.
pub(crate) fn exists(identity: &Identity, view: &View) -> bool {
    find(identity, view).is_some()
}

/// Changes of an existing group.
#[derive(Debug, Default, PartialEq, Eq)]
struct Difference {
    missing: Vec<Rule>,
    /// Ids of ingress rules.
    surplus: Vec<String>,
    /// Ids of ports without the group.
    without: Vec<String>,
    /// Ids of ports with the group, but without a member.
    with: Vec<String>,
}

impl Difference {
    fn new(wanted: &Group, group: &SecurityGroup, view: &View) -> Self {
        let ingress = group
            .rules
            .iter()
            .filter(|rule| rule.direction == "ingress");
        let known: BTreeSet<Rule> = ingress.clone().filter_map(Rule::from_rule).collect();
        let is_wanted = |rule: &&SecurityGroupRule| {
            Rule::from_rule(rule).is_some_and(|rule| wanted.rules.contains(&rule))
        };
        let has = |port: &&Arc<Port>| port.security_groups.contains(&group.id);
        let with = view.ports.iter().filter(has).map(|port| port.id.clone());
        let with: BTreeSet<String> = with.collect();
        Self {
            missing: wanted.rules.difference(&known).cloned().collect(),
            surplus: ingress
                .filter(|rule| !is_wanted(rule))
                .map(|rule| rule.id.clone())
                .collect(),
            without: wanted.ports.difference(&with).cloned().collect(),
            with: with.difference(&wanted.ports).cloned().collect(),
        }
    }
}

/// True if no change is necessary.
pub(crate) fn is_settled(identity: &Identity, wanted: Option<&Group>, view: &View) -> bool {
    match (wanted, find(identity, view)) {
        (None, None) => true,
        (Some(wanted), Some(group)) => {
            Difference::new(wanted, group, view) == Difference::default()
        }
        _ => false,
    }
}

/// Creates or changes the [`Group`], or deletes an unwanted one. Opening a port comes before closing one. Returns true if
/// changes are left: a list begun before the creation of the group does not show it.
pub(crate) async fn ensure(work: &Work<'_>, wanted: Option<&Group>) -> Result<bool, Error> {
    let Some(wanted) = wanted else {
        return remove(work).await.map(|()| false);
    };
    let (inventory, identity) = (&work.cloud.inventory, work.identity);
    let failed = |doing: &str| Error::cloud(format!("{doing} of Service {}", identity.service));
    if find(identity, &inventory.known()).is_none() {
        let group = SecurityGroupCreate {
            name: identity.group_name(),
            description: identity.group_description(),
            ..SecurityGroupCreate::default()
        };
        let created = inventory.create_security_group(&group).await;
        created.map_err(failed("creating the security group"))?;
    }
    let known = inventory.known();
    let Some(group) = find(identity, &known) else {
        return Ok(true);
    };
    let difference = Difference::new(wanted, group, &known);
    if !difference.missing.is_empty() {
        let rules: Vec<_> = difference
            .missing
            .into_iter()
            .map(|rule| creation(&group.id, rule))
            .collect();
        let created = inventory.create_rules(&rules).await;
        created.map_err(failed("creating rules of the security group"))?;
    }
    let without = difference.without.iter().map(|port| (port, true));
    for (port, has) in without.chain(difference.with.iter().map(|port| (port, false))) {
        let set = || inventory.set_port_group(port, &group.id, has);
        let set = revision::change(set).await;
        set.map_err(failed("changing the security groups of a node's port"))?;
    }
    for rule in &difference.surplus {
        let deleted = inventory.delete_rule(&group.id, rule).await;
        deleted.map_err(failed("deleting a rule of the security group"))?;
    }
    Ok(false)
}

fn creation(group: &str, rule: Rule) -> RuleCreate {
    RuleCreate {
        security_group_id: group.to_owned(),
        direction: "ingress".to_owned(),
        ethertype: Some(rule.ethertype),
        protocol: Some(rule.protocol),
        port_range_min: Some(rule.port),
        port_range_max: Some(rule.port),
        remote_ip_prefix: Some(rule.prefix),
        ..RuleCreate::default()
    }
}

/// Takes the group off all ports, and deletes the group.
pub(crate) async fn remove(work: &Work<'_>) -> Result<(), Error> {
    let inventory = &work.cloud.inventory;
    let known = inventory.known();
    let Some(group) = find(work.identity, &known) else {
        return Ok(());
    };
    let failed =
        |doing: &str| Error::cloud(format!("{doing} of Service {}", work.identity.service));
    let has = |port: &&Arc<Port>| port.security_groups.contains(&group.id);
    for port in known.ports.iter().filter(has) {
        let set = || inventory.set_port_group(&port.id, &group.id, false);
        match revision::change(set).await {
            // The port went with its server.
            Err(error) if error.is_absent() => {}
            result => drop(result.map_err(failed("taking the security group off a node's port"))?),
        }
    }
    let deleted = inventory.delete_security_group(&group.id).await;
    deleted.map_err(failed("deleting the security group"))
}

#[cfg(test)]
mod tests;
