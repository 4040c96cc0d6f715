//! Nodes that receive the traffic of a load balancer.

use std::net::IpAddr;
use std::sync::Arc;

use api::k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use openstack::View;
use openstack::network::Port;

use crate::node::ProviderId;

const EXCLUDE: &str = "node.kubernetes.io/exclude-from-external-load-balancers";
const AUTOSCALER: &str = "ToBeDeletedByClusterAutoscaler";

/// Hash of the properties that matter for members: other changes of a [`Node`] trigger no reconciles of Services.
pub(crate) fn aspects(node: &Node) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    node.labels().hash(&mut hasher);
    is_leaving(node).hash(&mut hasher);
    let id = node.spec.as_ref();
    id.and_then(|spec| spec.provider_id.as_ref())
        .hash(&mut hasher);
    for ip6 in [false, true] {
        address(node, ip6).hash(&mut hasher);
    }
    hasher.finish()
}

/// True if a [`Node`] can be a member, ready or not, as in the Go manager.
pub(crate) fn is_eligible(node: &Node, selector: &[(String, Option<String>)]) -> bool {
    let excluded = node.labels().get(EXCLUDE).is_some_and(|value| {
        !matches!(
            value.as_str(),
            "false" | "False" | "FALSE" | "f" | "F" | "0"
        )
    });
    let selected = selector
        .iter()
        .all(|(key, wanted)| match (node.labels().get(key), wanted) {
            (None, _) => false,
            (Some(_), None) => true,
            (Some(value), Some(wanted)) => value == wanted,
        });
    !excluded && selected && !is_leaving(node)
}

fn is_leaving(node: &Node) -> bool {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
    node.metadata.deletion_timestamp.is_some()
        || taints.is_some_and(|taints| taints.iter().any(|taint| taint.key == AUTOSCALER))
}

/// First InternalIP of the address family, or else the first ExternalIP.
pub(crate) fn address(node: &Node, ip6: bool) -> Option<&str> {
    let addresses = node.status.as_ref()?.addresses.as_ref()?;
    let of = |type_: &str| {
        let fits = |address: &str| {
            address
                .parse::<IpAddr>()
                .is_ok_and(|ip| ip.is_ipv6() == ip6)
        };
        let found = addresses
            .iter()
            .find(|a| a.type_ == type_ && fits(&a.address));
        found.map(|found| found.address.as_str())
    };
    of("InternalIP").or_else(|| of("ExternalIP"))
}

/// [`Port`]s of the server in the providerID of a [`Node`]. Ports of other servers may have the same addresses.
pub(crate) fn ports<'a>(node: &Node, view: &'a View) -> &'a [Arc<Port>] {
    let id = node.spec.as_ref();
    let id = id.and_then(|spec| spec.provider_id.as_deref());
    let id = id.and_then(|id| ProviderId::parse(id).ok());
    id.map_or(&[], |id| view.ports.of_parent(&id.server))
}

/// Subnet of an address of a [`Node`].
pub(crate) fn subnet<'a>(node: &Node, address: &str, view: &'a View) -> Option<&'a str> {
    let ports = ports(node, view).iter();
    let mut fixed = ports.flat_map(|port| &port.fixed_ips);
    let found = fixed.find(|fixed| fixed.ip_address == address);
    found.map(|fixed| fixed.subnet_id.as_str())
}
