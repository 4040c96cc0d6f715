//! Rules of the managed security groups, and their comparison with Neutron's.

use std::collections::BTreeMap;

use api::infra::v1beta2::{
    DefaultRuleName, Direction, EtherType, ManagedGroup, ManagedSecurityGroups,
    OpenStackClusterSpec, SecurityGroupRule as Given,
};
use openstack::network::{RuleCreate, SecurityGroupRule};

use super::desired::{bastion_spec, is_ipv6};
use crate::family::Family;

/// The ports of SSH, first and last.
const SSH: (i64, i64) = (22, 22);

/// The remote side of a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Remote {
    /// Any address.
    Any,
    /// Addresses of a CIDR.
    Prefix(String),
    /// Members of a group, by its id.
    Group(String),
    /// Members of a managed group.
    Role(ManagedGroup),
    /// Addresses of the subnet of this family; Neutron chooses its range at the creation.
    Subnet(Family),
}

/// Existing groups and subnets for references in rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Referents {
    /// Ids of the managed groups.
    pub groups: BTreeMap<ManagedGroup, String>,
    /// Ranges of the created subnets.
    pub subnets: BTreeMap<Family, String>,
}

/// Desired rule of a group. The description is not part of its identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Ingress or egress.
    pub direction: Direction,
    /// The address family.
    pub ether_type: EtherType,
    /// The protocol; any when absent.
    pub protocol: Option<String>,
    /// The first and last port; any when absent.
    pub ports: Option<(i64, i64)>,
    /// The remote side.
    pub remote: Remote,
    /// A description for users.
    pub description: String,
}

/// Identity of a rule within its group.
pub type Key = (
    &'static str,
    String,
    Option<String>,
    Option<(i64, i64)>,
    Option<String>,
    Option<String>,
);

impl Rule {
    fn egress(ether_type: EtherType, remote: Remote, description: &str) -> Self {
        Self {
            direction: Direction::Egress,
            ether_type,
            protocol: None,
            ports: None,
            remote,
            description: description.to_owned(),
        }
    }

    /// [`Rule`]s for the address families: of a CIDR, and otherwise IPv4 and, with `ipv6`, IPv6.
    fn ingress_of(
        ipv6: bool,
        protocol: &str,
        ports: (i64, i64),
        remote: &Remote,
        description: &str,
    ) -> Vec<Self> {
        let of_four = Self::ingress(protocol, ports, remote.clone(), description);
        let of_six = Self {
            ether_type: EtherType::IPv6,
            ..of_four.clone()
        };
        match remote {
            Remote::Prefix(cidr) if is_ipv6(cidr) => vec![of_six],
            Remote::Subnet(Family::Six) => vec![of_six],
            Remote::Prefix(_) | Remote::Subnet(Family::Four) => vec![of_four],
            _ if ipv6 => vec![of_four, of_six],
            _ => vec![of_four],
        }
    }

    fn ingress(protocol: &str, ports: (i64, i64), remote: Remote, description: &str) -> Self {
        Self {
            direction: Direction::Ingress,
            ether_type: EtherType::IPv4,
            protocol: (!protocol.is_empty()).then(|| protocol.to_owned()),
            ports: (ports != (0, 0)).then_some(ports),
            remote,
            description: description.to_owned(),
        }
    }

    /// [`Key`] of this rule; `None` while its remote side does not exist.
    pub fn key(&self, known: &Referents) -> Option<Key> {
        let (prefix, group) = match &self.remote {
            Remote::Any => (None, None),
            Remote::Prefix(prefix) => (prefix_of(prefix), None),
            Remote::Group(id) => (None, Some(id.clone())),
            Remote::Role(role) => (None, Some(known.groups.get(role)?.clone())),
            Remote::Subnet(family) => (prefix_of(known.subnets.get(family)?), None),
        };
        let ether_type = ether_type(self.ether_type).to_owned();
        let protocol = self.protocol.as_deref().and_then(protocol);
        Some((
            direction(self.direction),
            ether_type,
            protocol,
            self.ports,
            prefix,
            group,
        ))
    }

    /// [`RuleCreate`] request for this rule in group `group_id`.
    pub fn request(&self, group_id: &str, known: &Referents) -> Option<RuleCreate> {
        let (direction, ether_type, _, ports, prefix, remote_group) = self.key(known)?;
        Some(RuleCreate {
            security_group_id: group_id.to_owned(),
            direction: direction.to_owned(),
            ethertype: Some(ether_type),
            protocol: self.protocol.clone(),
            port_range_min: ports.map(|(min, _)| min),
            port_range_max: ports.map(|(_, max)| max),
            remote_ip_prefix: prefix,
            remote_group_id: remote_group,
            description: Some(self.description.clone()),
        })
    }
}

/// [`Key`] of a rule in Neutron.
pub fn observed_key(rule: &SecurityGroupRule) -> Key {
    let ports = match (rule.port_range_min, rule.port_range_max) {
        (None, None) => None,
        (min, max) => Some((
            min.or(max).unwrap_or_default(),
            max.or(min).unwrap_or_default(),
        )),
    };
    (
        if rule.direction == "egress" {
            "egress"
        } else {
            "ingress"
        },
        rule.ethertype.clone(),
        rule.protocol.as_deref().and_then(protocol),
        ports,
        rule.remote_ip_prefix.as_deref().and_then(prefix_of),
        rule.remote_group_id.clone(),
    )
}

/// The rules of every managed group; none without `managedSecurityGroups`.
///
/// Unlike in the Go provider, the rule for the API server uses `apiServer.port`, and a cluster with IPv6 addresses
/// (`ipv6`) has each default rule for IPv6, too.
pub fn wanted(
    spec: &OpenStackClusterSpec,
    ports: &[u16],
    subnets: &[Remote],
    ipv6: bool,
) -> BTreeMap<ManagedGroup, Vec<Rule>> {
    use ManagedGroup::{Bastion, ControlPlane, Worker};
    let Some(groups) = &spec.managed_security_groups else {
        return BTreeMap::new();
    };
    let narrowed = |name| narrowed(groups, name);
    let both = || egress(narrowed(DefaultRuleName::Egress));
    let ingress = |protocol, ports, remote: &Remote, text| {
        Rule::ingress_of(ipv6, protocol, ports, remote, text)
    };
    let (mut control_plane, mut worker) = (both(), both());

    for (index, port) in ports.iter().enumerate() {
        let text = if index == 0 {
            "Kubernetes API"
        } else {
            "Additional port"
        };
        let port = i64::from(*port);
        let remotes = match narrowed(DefaultRuleName::APIServer) {
            None => vec![Remote::Any],
            Some([]) => Vec::new(),
            // A load balancer connects from a subnet of the cluster, and so do the nodes.
            Some(cidrs) => [prefixes(cidrs.iter()), subnets.to_vec()].concat(),
        };
        let rules = remotes
            .iter()
            .flat_map(|remote| ingress("tcp", (port, port), remote, text));
        control_plane.extend(rules);
    }
    let node_ports = (30000, 32767);
    for protocol in ["tcp", "udp"] {
        let remotes = match narrowed(DefaultRuleName::NodePorts) {
            Some(cidrs) => prefixes(cidrs.iter()),
            None => {
                let mut all = subnets.to_vec();
                all.extend([Remote::Role(Worker), Remote::Role(ControlPlane)]);
                all
            }
        };
        let rules = remotes.iter();
        worker.extend(rules.flat_map(|r| ingress(protocol, node_ports, r, "Node Port Services")));
    }
    if groups.allow_all_in_cluster_traffic {
        for rules in [&mut control_plane, &mut worker] {
            for role in [ControlPlane, Worker] {
                rules.extend(ingress(
                    "",
                    (0, 0),
                    &Remote::Role(role),
                    "In-cluster Ingress",
                ));
            }
        }
    } else {
        let etcd = ingress("tcp", (2379, 2380), &Remote::Role(ControlPlane), "Etcd");
        control_plane.extend(etcd);
        for rules in [&mut control_plane, &mut worker] {
            for role in [ControlPlane, Worker] {
                let kubelet = Remote::Role(role);
                rules.extend(ingress("tcp", (10250, 10250), &kubelet, "Kubelet API"));
            }
        }
    }
    let all = &groups.cluster_nodes_security_group_rules;
    control_plane.extend(
        all.iter()
            .chain(&groups.control_plane_nodes_security_group_rules)
            .flat_map(given),
    );
    worker.extend(
        all.iter()
            .chain(&groups.worker_nodes_security_group_rules)
            .flat_map(given),
    );
    let mut all = BTreeMap::from([(ControlPlane, control_plane), (Worker, worker)]);
    if bastion_spec(spec).is_some() {
        for rules in all.values_mut() {
            rules.extend(ingress("tcp", SSH, &Remote::Role(Bastion), "SSH"));
        }
        let mut bastion = both();
        let remotes = match narrowed(DefaultRuleName::SSH) {
            None => vec![Remote::Any],
            Some(cidrs) => prefixes(cidrs.iter()),
        };
        let rules = remotes.iter();
        bastion.extend(rules.flat_map(|remote| ingress("tcp", SSH, remote, "SSH")));
        all.insert(Bastion, bastion);
    }
    all
}

/// CIDRs to which the spec narrows a default rule, none if the spec leaves out the rule; `None` without a setting.
fn narrowed(groups: &ManagedSecurityGroups, name: DefaultRuleName) -> Option<&[String]> {
    let mut all = groups.default_rules.iter();
    let found = all.find(|rule| rule.name == name)?;
    Some(&found.cidrs)
}

/// [`Rule`]s for traffic from servers.
fn egress(narrowed: Option<&[String]>) -> Vec<Rule> {
    let Some(cidrs) = narrowed else {
        let families = [EtherType::IPv4, EtherType::IPv6];
        return families
            .map(|family| Rule::egress(family, Remote::Any, "Full open"))
            .into();
    };
    let of = |cidr: &String| {
        let family = match is_ipv6(cidr) {
            true => EtherType::IPv6,
            false => EtherType::IPv4,
        };
        Rule::egress(family, Remote::Prefix(cidr.clone()), "Egress")
    };
    cidrs.iter().map(of).collect()
}

fn prefixes<'c>(cidrs: impl Iterator<Item = &'c String>) -> Vec<Remote> {
    cidrs.map(|cidr| Remote::Prefix(cidr.clone())).collect()
}

/// [`Rule`]s for a rule of the spec: one for each remote managed group.
fn given(rule: &Given) -> Vec<Rule> {
    let remotes = match (&rule.remote_group_id, &rule.remote_ip_prefix) {
        (Some(group), _) => vec![Remote::Group(group.clone())],
        (None, Some(prefix)) => vec![Remote::Prefix(prefix.clone())],
        (None, None) if rule.remote_managed_groups.is_empty() => vec![Remote::Any],
        (None, None) => rule
            .remote_managed_groups
            .iter()
            .copied()
            .map(Remote::Role)
            .collect(),
    };
    let ports = match (rule.port_range_min, rule.port_range_max) {
        (None, None) => None,
        (min, max) => Some((
            min.or(max).unwrap_or_default().into(),
            max.or(min).unwrap_or_default().into(),
        )),
    };
    // Neutron refuses a prefix of the other family than that of the rule, which is IPv4 unless something else is said.
    let of_prefix = |remote: &Remote| match remote {
        Remote::Prefix(cidr) if is_ipv6(cidr) => EtherType::IPv6,
        _ => EtherType::IPv4,
    };
    remotes
        .into_iter()
        .map(|remote| Rule {
            direction: rule.direction,
            ether_type: rule.ether_type.unwrap_or_else(|| of_prefix(&remote)),
            protocol: rule.protocol.clone().filter(|name| !name.is_empty()),
            ports,
            remote,
            description: rule.description.clone().unwrap_or_default(),
        })
        .collect()
}

fn direction(direction: Direction) -> &'static str {
    match direction {
        Direction::Ingress => "ingress",
        Direction::Egress => "egress",
    }
}

fn ether_type(ether_type: EtherType) -> &'static str {
    match ether_type {
        EtherType::IPv4 => "IPv4",
        EtherType::IPv6 => "IPv6",
    }
}

/// Normalizes a protocol: Neutron accepts names and numbers, and returns each as given.
fn protocol(given: &str) -> Option<String> {
    let name = given.to_ascii_lowercase();
    Some(match name.as_str() {
        "" | "any" | "0" => return None,
        "1" => "icmp".to_owned(),
        "4" | "ipip" => "4".to_owned(),
        "6" => "tcp".to_owned(),
        "17" => "udp".to_owned(),
        "58" | "icmpv6" => "ipv6-icmp".to_owned(),
        "112" => "vrrp".to_owned(),
        "132" => "sctp".to_owned(),
        _ => name,
    })
}

/// Normalizes a CIDR: Neutron returns the whole address range as null, and clears host bits.
fn prefix_of(cidr: &str) -> Option<String> {
    match cidr.parse::<ipnet::IpNet>() {
        Ok(net) if net.prefix_len() == 0 => None,
        Ok(net) => Some(net.trunc().to_string()),
        Err(_) => Some(cidr.to_owned()),
    }
}

#[cfg(test)]
mod tests;
