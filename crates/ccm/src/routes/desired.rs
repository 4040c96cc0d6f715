//! Routes that the nodes need (pure).

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use api::k8s_openapi::api::core::v1::Node;
use ipnet::IpNet;
use kube::ResourceExt;
use openstack::View;
use openstack::network::Port;

use super::route::Route;
use crate::node::INTERNAL;

/// Needs of a node.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Wanted {
    pub(crate) node: String,
    pub(crate) routes: Vec<Leg>,
    /// Reason why a route of the node cannot be created.
    pub(crate) problem: Option<String>,
    /// Ranges of pods without a next hop. Recorded routes to these ranges stay.
    pub(crate) unresolved: Vec<IpNet>,
}

/// Route, and the port of the node with the next hop.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Leg {
    pub(crate) route: Route,
    pub(crate) port: Arc<Port>,
}

/// Addresses that a router reaches directly.
pub(crate) struct Reach {
    nets: Vec<IpNet>,
    ports: HashMap<IpAddr, Arc<Port>>,
}

impl Reach {
    /// Subnets with an interface of the router, and the ports in these subnets.
    pub(crate) fn new(router: &str, view: &View) -> Self {
        let interfaces = view.ports.of_parent(router).iter();
        let subnets: Vec<_> = interfaces
            .filter(|port| port.device_owner.starts_with("network:"))
            .flat_map(|port| &port.fixed_ips)
            .filter_map(|fixed| view.subnets.get(&fixed.subnet_id))
            .collect();
        let nets = subnets.iter().filter_map(|subnet| subnet.cidr.parse().ok());
        let mut ports = HashMap::new();
        for port in view.ports.iter() {
            let fixed = port.fixed_ips.iter();
            let reached = fixed.filter(|fixed| subnets.iter().any(|s| s.id == fixed.subnet_id));
            for address in reached.filter_map(|fixed| fixed.ip_address.parse().ok()) {
                ports.insert(address, Arc::clone(port));
            }
        }
        Self {
            nets: nets.collect(),
            ports,
        }
    }

    /// [`Port`] with an address.
    pub(crate) fn port(&self, address: IpAddr) -> Option<&Arc<Port>> {
        self.ports.get(&address)
    }
}

/// Needs of the [`Node`]s on a router.
pub(crate) fn of(
    nodes: &[Arc<Node>],
    router: &str,
    reach: &Reach,
    cluster_cidrs: &[IpNet],
) -> Vec<Wanted> {
    let mut all: Vec<_> = nodes
        .iter()
        .map(|node| of_node(node, router, reach, cluster_cidrs))
        .collect();
    all.sort_by(|a, b| a.node.cmp(&b.node));
    all
}

fn of_node(node: &Node, router: &str, reach: &Reach, cluster_cidrs: &[IpNet]) -> Wanted {
    let mut wanted = Wanted {
        node: node.name_any(),
        ..Wanted::default()
    };
    let internal = internal_addresses(node);
    for text in pod_cidrs(node) {
        match leg(&text, &internal, router, reach, cluster_cidrs) {
            Ok(leg) => wanted.routes.push(leg),
            Err(problem) => {
                wanted.problem = Some(problem);
                wanted.unresolved.extend(text.parse::<IpNet>());
            }
        }
    }
    wanted
}

/// Route to a range of pods: by the first InternalIP of its family in a subnet of the router.
fn leg(
    text: &str,
    internal: &[IpAddr],
    router: &str,
    reach: &Reach,
    cluster_cidrs: &[IpNet],
) -> Result<Leg, String> {
    let invalid = |_| format!("spec.podCIDRs: `{text}` is not a CIDR");
    let range: IpNet = text.parse().map_err(invalid)?;
    if !cluster_cidrs.iter().any(|cidr| cidr.contains(&range)) {
        let given: Vec<_> = cluster_cidrs.iter().map(IpNet::to_string).collect();
        let flag = match given.is_empty() {
            true => "which is not set".to_owned(),
            false => given.join(","),
        };
        return Err(format!(
            "spec.podCIDRs: {range} is not within --cluster-cidr ({flag}), so that no route to it is created: correct the flag"
        ));
    }
    let is_v4 = range.addr().is_ipv4();
    let same: Vec<IpAddr> = internal
        .iter()
        .copied()
        .filter(|address| address.is_ipv4() == is_v4)
        .collect();
    if same.is_empty() {
        let family = if is_v4 { "IPv4" } else { "IPv6" };
        return Err(format!(
            "status.addresses: the route to {range} needs an InternalIP of {family}, which the node does not have"
        ));
    }
    let port = |address: &IpAddr| Some((*address, Arc::clone(reach.port(*address)?)));
    if let Some((next_hop, port)) = same.iter().find_map(port) {
        let route = Route {
            destination: range,
            next_hop,
        };
        return Ok(Leg { route, port });
    }
    let addresses: Vec<_> = same.iter().map(IpAddr::to_string).collect();
    let addresses = addresses.join(", ");
    let is_near = same
        .iter()
        .any(|address| reach.nets.iter().any(|net| net.contains(address)));
    Err(match is_near {
        true => format!(
            "the route to {range} needs a port with the node's address, and this project has no port with {addresses} in \
             the subnets of router {router}: check that the credentials in cloud.conf are those of the servers' project"
        ),
        false => format!(
            "the route to {range} needs a next hop in a subnet of router {router}, and {addresses} is in none of them: \
             add the router to the subnet of the nodes, or correct router-id in [Route] of cloud.conf"
        ),
    })
}

pub(crate) fn pod_cidrs(node: &Node) -> Vec<String> {
    let spec = node.spec.as_ref();
    let several = spec.and_then(|spec| spec.pod_cidrs.clone());
    let one = spec.and_then(|spec| spec.pod_cidr.clone());
    let all = several.filter(|list| !list.is_empty());
    let mut all = all.unwrap_or_else(|| one.into_iter().collect());
    all.retain(|cidr| !cidr.is_empty());
    all
}

pub(crate) fn internal_addresses(node: &Node) -> Vec<IpAddr> {
    let status = node.status.as_ref();
    let addresses = status.and_then(|status| status.addresses.as_ref());
    let internal = addresses
        .into_iter()
        .flatten()
        .filter(|address| address.type_ == INTERNAL);
    internal
        .filter_map(|address| address.address.parse().ok())
        .collect()
}
