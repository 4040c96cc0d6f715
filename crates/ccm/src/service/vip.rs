//! Network and subnet of the virtual addresses of a load balancer (pure).

use std::net::IpAddr;

use api::k8s_openapi::api::core::v1::{Node, ServiceSpec};
use kube::ResourceExt;
use openstack::loadbalancer::{AdditionalVip, LoadBalancer};
use openstack::{Kind, View};

use super::annotations::Wishes;
use super::desired::Facts;
use super::{Rejection, members, requested};
use cloud_conf::Placement;

/// An address family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    V4,
    V6,
}

impl Family {
    pub(crate) const ALL: [Self; 2] = [Self::V4, Self::V6];

    /// Name in `spec.ipFamilies`.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        }
    }

    /// Families of a Service, the first one first.
    pub(crate) fn from_spec(spec: &ServiceSpec) -> (Self, Option<Self>) {
        let named = |name: &String| match name.as_str() {
            "IPv6" => Self::V6,
            _ => Self::V4,
        };
        let mut families = spec.ip_families.iter().flatten().map(named);
        let first = families.next().unwrap_or(Self::V4);
        (first, families.next().filter(|second| *second != first))
    }

    pub(crate) fn is_6(self) -> bool {
        self == Self::V6
    }

    /// All addresses.
    pub(crate) const fn everyone(self) -> &'static str {
        match self {
            Self::V4 => "0.0.0.0/0",
            Self::V6 => "::/0",
        }
    }

    /// True if an address is of the family.
    pub(crate) fn has(self, address: &str) -> bool {
        let parsed = address.parse::<IpAddr>();
        parsed.is_ok_and(|address| address.is_ipv6() == self.is_6())
    }

    const fn version(self) -> u8 {
        match self {
            Self::V4 => 4,
            Self::V6 => 6,
        }
    }
}

/// Virtual addresses of a load balancer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Vip {
    /// An existing port.
    pub(crate) port: Option<String>,
    /// Network, if the subnet is unknown.
    pub(crate) network: Option<String>,
    /// Subnet of the first address.
    pub(crate) subnet: Option<String>,
    /// True if the create request names the subnet.
    pub(crate) names_subnet: bool,
    /// Address of the second family.
    pub(crate) second: Option<AdditionalVip>,
    /// Second [`Family`] without an address on this load balancer, and the reason.
    pub(crate) apart: Option<(Family, String)>,
}

/// Virtual addresses for a Service; `asked` is the requested address, unless it is a floating IP.
///
/// # Errors
/// A port, network or [`Node`] that does not fit.
pub(super) fn of(
    spec: &ServiceSpec,
    wishes: &Wishes,
    asked: Option<&str>,
    nodes: &[&Node],
    facts: &Facts<'_>,
) -> Result<Vip, Rejection> {
    let (first, second) = Family::from_spec(spec);
    let mut vip = match facts.existing {
        Some(balancer) => existing(balancer),
        None if !wishes.port_id.is_empty() => on_port(wishes, first, asked, facts.view)?,
        None => {
            let vip = fresh(wishes, first, nodes, facts.view)?;
            requested::check_place(asked, first, &vip, facts.view)?;
            vip
        }
    };
    let Some(second) = second else {
        return Ok(vip);
    };
    match additional(&vip, second, asked, nodes, facts) {
        Ok(found) => vip.second = Some(found),
        Err(reason) => vip.apart = Some((second, reason)),
    }
    Ok(vip)
}

/// Checks that the project sees the networks and subnets of a request: the cloud's answers do not tell the faulty
/// setting.
///
/// # Errors
/// Names the setting.
pub(super) fn check(placement: &Placement, facts: &Facts<'_>) -> Result<(), Rejection> {
    let view = facts.view;
    let subnet = |id: &str| view.subnets.get(id).is_some();
    let network = |id: &str| view.networks.get(id).is_some();
    let (is_new, has_floating_ip) = (facts.existing.is_none(), facts.has_floating_ip);
    let problem = |setting: &str, id: &str, what: &str| {
        let message = format!(
            "{setting} `{id}`: the project sees no {what} with this id: correct the annotation \
             loadbalancer.openstack.org/{setting}, or what the class or cloud.conf has"
        );
        Err(Rejection::new(message).seen_in(&[Kind::Networks, Kind::Subnets]))
    };
    let Placement {
        subnet_id,
        network_id,
        member_subnet_id,
        floating_network_id,
        ..
    } = placement;
    if is_new && !subnet_id.is_empty() && !subnet(subnet_id) {
        return problem("subnet-id", subnet_id, "subnet");
    }
    if is_new && !network_id.is_empty() && !network(network_id) {
        return problem("network-id", network_id, "network");
    }
    if !member_subnet_id.is_empty() && !subnet(member_subnet_id) {
        return problem("member-subnet-id", member_subnet_id, "subnet");
    }
    if !has_floating_ip && !floating_network_id.is_empty() && !network(floating_network_id) {
        return problem("floating-network-id", floating_network_id, "network");
    }
    Ok(())
}

fn existing(balancer: &LoadBalancer) -> Vip {
    Vip {
        subnet: Some(balancer.vip_subnet_id.clone()).filter(|id| !id.is_empty()),
        ..Vip::default()
    }
}

/// Subnet in the settings, or of the port of a [`Node`].
fn fresh(wishes: &Wishes, family: Family, nodes: &[&Node], view: &View) -> Result<Vip, Rejection> {
    let placement = &wishes.placement;
    let filled = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
    let (subnet, network) = (filled(&placement.subnet_id), filled(&placement.network_id));
    let subnet = match (subnet, &network) {
        (None, None) => Some(subnet_of_nodes(nodes, family, view)?),
        (subnet, _) => subnet,
    };
    Ok(Vip {
        network: network.filter(|_| subnet.is_none()),
        names_subnet: subnet.is_some(),
        subnet,
        ..Vip::default()
    })
}

/// Subnet of the first [`Node`] whose server has a port with its address.
fn subnet_of_nodes(nodes: &[&Node], family: Family, view: &View) -> Result<String, Rejection> {
    if let Some(subnet) = subnets_of_nodes(family, nodes, view).next() {
        return Ok(subnet.to_owned());
    }
    let (node, address) = match nodes.first() {
        Some(node) => (node.name_any(), members::address(node, family.is_6())),
        None => (String::new(), None),
    };
    let address = address.unwrap_or_default();
    let message = format!(
        "no server that a node names in spec.providerID has a port with its address, such as {address} of node {node}: set \
         subnet-id in [LoadBalancer] of cloud.conf, or wait until the nodes are initialised"
    );
    Err(Rejection::new(message).seen_in(&[Kind::Ports]))
}

/// Port of the annotation `port-id`.
fn on_port(
    wishes: &Wishes,
    family: Family,
    asked: Option<&str>,
    view: &View,
) -> Result<Vip, Rejection> {
    let id = &wishes.port_id;
    let wrong = |problem: String| {
        let message = format!("annotation loadbalancer.openstack.org/port-id: `{id}`: {problem}");
        Rejection::new(message).seen_in(&[Kind::Ports])
    };
    let Some(port) = view.ports.get(id) else {
        return Err(wrong("the project has no port with this id".to_owned()));
    };
    if !port.device_id.is_empty() {
        return Err(wrong(format!(
            "the port is in use by {} {}: choose another",
            port.device_owner, port.device_id
        )));
    }
    let fits = |address: &str| asked.is_none_or(|asked| asked == address) && family.has(address);
    let fixed = port.fixed_ips.iter().find(|fixed| fits(&fixed.ip_address));
    let Some(fixed) = fixed else {
        let asked = asked.map_or(String::new(), |asked| {
            format!(" that is {asked}, as spec.loadBalancerIP asks")
        });
        return Err(wrong(format!(
            "the port has no IPv{} address{asked}",
            family.version()
        )));
    };
    Ok(Vip {
        port: Some(id.clone()),
        // Octavia needs a choice between several addresses.
        names_subnet: port.fixed_ips.len() > 1,
        subnet: Some(fixed.subnet_id.clone()),
        ..Vip::default()
    })
}

/// Address of the second [`Family`], or the reason why there is none.
fn additional(
    vip: &Vip,
    family: Family,
    asked: Option<&str>,
    nodes: &[&Node],
    facts: &Facts<'_>,
) -> Result<AdditionalVip, String> {
    if let Some(balancer) = facts.existing {
        let mut known = balancer.additional_vips.iter();
        // Before the load balancer has an address, the subnet shows the family.
        let is_of = |subnet: &openstack::network::Subnet| subnet.ip_version == family.version();
        let known = known.find(|known| match known.ip_address.as_str() {
            "" => facts
                .view
                .subnets
                .get(&known.subnet_id)
                .is_some_and(|subnet| is_of(subnet)),
            address => family.has(address),
        });
        return known.cloned().ok_or_else(|| {
            format!(
                "load balancer {} was created without an IPv{} address, and Octavia adds none later",
                balancer.id,
                family.version()
            )
        });
    }
    if vip.port.is_some() {
        return Err("the annotation port-id is for one address".to_owned());
    }
    if !facts.octavia.has_additional_vips {
        return Err(
            "the Octavia of this cloud gives a load balancer one address (a second one needs API 2.26)".to_owned(),
        );
    }
    let view = facts.view;
    let of_subnet = |id: &str| {
        view.subnets
            .get(id)
            .map(|subnet| subnet.network_id.as_str())
    };
    let network = match &vip.subnet {
        Some(subnet) => of_subnet(subnet).unwrap_or_default(),
        None => vip.network.as_deref().unwrap_or_default(),
    };
    let Some(subnet) = subnet_in(network, family, nodes, view) else {
        return Err(format!(
            "the network `{network}` of the load balancer has no subnet of IPv{}, and both addresses are on one port",
            family.version()
        ));
    };
    Ok(AdditionalVip {
        subnet_id: subnet.to_owned(),
        ip_address: asked
            .filter(|ip| family.has(ip))
            .unwrap_or_default()
            .to_owned(),
    })
}

/// Subnets of the nodes' addresses of a [`Family`], in the order of the [`Node`]s.
fn subnets_of_nodes<'a>(
    family: Family,
    nodes: &'a [&Node],
    view: &'a View,
) -> impl Iterator<Item = &'a str> {
    nodes.iter().filter_map(move |node| {
        let address = members::address(node, family.is_6())?;
        members::subnet(node, address, view)
    })
}

/// Subnet of a [`Family`] in a network: the nodes' subnet, or the first one.
fn subnet_in<'a>(
    network: &str,
    family: Family,
    nodes: &'a [&Node],
    view: &'a View,
) -> Option<&'a str> {
    let all = view.subnets.of_parent(network);
    let fits = |id: &str| {
        let mut all = all.iter();
        all.any(|subnet| subnet.id == id && subnet.ip_version == family.version())
    };
    let first = all
        .iter()
        .find(|subnet| subnet.ip_version == family.version());
    let of_nodes = subnets_of_nodes(family, nodes, view).find(|id| fits(id));
    of_nodes.or(first.map(|subnet| subnet.id.as_str()))
}

/// [`Placement`] of a second load balancer with the settings of the first: in the first one's network, if a subnet there
/// has the [`Family`], else in the network of the [`Node`]s.
pub(super) fn beside(
    placement: &Placement,
    family: Family,
    nodes: &[&Node],
    view: &View,
) -> Placement {
    let of_family = |id: &String| {
        let subnet = view.subnets.get(id);
        subnet.is_some_and(|subnet| subnet.ip_version == family.version())
    };
    let network = view.subnets.get(&placement.subnet_id);
    let network = network.map_or(&placement.network_id, |subnet| &subnet.network_id);
    let named = Some(&placement.subnet_id).filter(|id| of_family(id));
    let subnet = named
        .map(String::as_str)
        .or_else(|| subnet_in(network, family, nodes, view));
    let members = Some(&placement.member_subnet_id).filter(|id| of_family(id));
    let members = members
        .map(String::as_str)
        .or_else(|| subnets_of_nodes(family, nodes, view).next());
    Placement {
        subnet_id: subnet.unwrap_or_default().to_owned(),
        member_subnet_id: members.unwrap_or_default().to_owned(),
        network_id: String::new(),
        ..placement.clone()
    }
}
