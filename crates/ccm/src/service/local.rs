//! `externalTrafficPolicy: Local`: nodes without endpoints drop the traffic (pure).
//!
//! Where Octavia can ask the health check port of the nodes, a monitor takes such nodes out. Elsewhere (the driver
//! ovn, UDP before Octavia's API 2.16) members are the nodes with ready endpoints alone.

use std::collections::BTreeSet;

use api::k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};

use super::Notice;
use super::weights::{Current, Weighting};

/// Name of the field in messages.
const POLICY: &str = "spec.externalTrafficPolicy: Local";

/// Policy of a Service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Local {
    /// Health check port of the nodes, with an answer about local endpoints.
    port: Option<u16>,
    /// True if the monitors of UDP pools can ask the port.
    has_udp: bool,
}

impl Local {
    /// Policy, if `Local`.
    pub(crate) fn new(spec: &ServiceSpec, is_ovn: bool, has_http_on_udp: bool) -> Option<Self> {
        let is_local = spec.external_traffic_policy.as_deref() == Some("Local");
        let port = spec.health_check_node_port.filter(|port| *port > 0);
        let port = port.and_then(|port| u16::try_from(port).ok());
        is_local.then_some(Self {
            port: port.filter(|_| !is_ovn),
            has_udp: has_http_on_udp,
        })
    }

    /// Port for the monitor of a pool, if possible.
    pub(crate) fn check_port(self, transport: &str) -> Option<u16> {
        self.port.filter(|_| transport != "UDP" || self.has_udp)
    }

    /// True if members of a port are the nodes with endpoints.
    fn needs_endpoints(self, port: &ServicePort) -> bool {
        self.check_port(transport(port)).is_none()
    }
}

/// True if a Service uses a feature that depends on the version of Octavia.
pub(crate) fn asks_for_version(spec: &ServiceSpec, is_ovn: bool) -> bool {
    let has_udp = |spec: &ServiceSpec| {
        let mut ports = spec.ports.iter().flatten();
        ports.any(|port| transport(port) == "UDP")
    };
    Local::new(spec, is_ovn, false).is_some_and(|local| local.port.is_some()) && has_udp(spec)
}

/// True if members of a Service depend on its endpoints.
pub(crate) fn needs_endpoints(spec: &ServiceSpec, is_ovn: bool, has_http_on_udp: bool) -> bool {
    let local = Local::new(spec, is_ovn, has_http_on_udp);
    let mut ports = spec.ports.iter().flatten();
    local.is_some_and(|local| ports.any(|port| local.needs_endpoints(port)))
}

/// Same for a [`Service`].
pub(crate) fn of_service(service: &Service, is_ovn: bool, has_http_on_udp: bool) -> bool {
    let spec = service.spec.as_ref();
    spec.is_some_and(|spec| needs_endpoints(spec, is_ovn, has_http_on_udp))
}

/// True if a change of its endpoints can concern a [`Service`].
pub(crate) fn is_local(service: &Service) -> bool {
    let spec = service.spec.as_ref();
    spec.is_some_and(|spec| Local::new(spec, false, false).is_some())
}

/// Nodes that are members, where membership depends on the endpoints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Serving {
    /// All nodes: the policy is not `Local`, no node has an endpoint, or the endpoints cannot be read.
    All,
    /// Present members, until the endpoints are known.
    Known,
    /// The nodes with these names.
    Only(BTreeSet<String>),
}

impl Serving {
    /// Nodes with ready endpoints, if the Service needs them.
    pub(crate) fn new(is_needed: bool, endpoints: &Current) -> Self {
        match &endpoints.weighting {
            Weighting::By(counts) if is_needed => {
                let ready = counts.iter().filter(|(_, count)| **count > 0);
                let ready: BTreeSet<_> = ready.map(|(node, _)| node.clone()).collect();
                match ready.is_empty() {
                    true => Self::All,
                    false => Self::Only(ready),
                }
            }
            Weighting::Kept if is_needed && !endpoints.is_unknown => Self::Known,
            _ => Self::All,
        }
    }

    /// All given nodes, if none of them has an endpoint.
    pub(crate) fn among(self, mut nodes: impl Iterator<Item = String>) -> Self {
        match nodes.any(|node| self.has(&node)) {
            true => self,
            false => Self::All,
        }
    }

    /// True if a node is a member.
    pub(crate) fn has(&self, node: &str) -> bool {
        match self {
            Self::Only(nodes) => nodes.contains(node),
            Self::All | Self::Known => true,
        }
    }
}

/// [`Notice`] for unreadable endpoints.
pub(crate) fn notice(is_needed: bool, endpoints: &Current) -> Option<Notice> {
    (is_needed && endpoints.is_unknown).then(|| Notice {
        reason: "LoadBalancerLocalPolicyIgnored",
        message: format!(
            "{POLICY}: the EndpointSlices cannot be read, so that all nodes are members, and those without an endpoint drop \
             their share of the traffic: allow the manager to list and watch endpointslices (discovery.k8s.io)"
        ),
    })
}

fn transport(port: &ServicePort) -> &str {
    port.protocol.as_deref().unwrap_or("TCP")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn spec(policy: &str, protocols: &[&str]) -> ServiceSpec {
        let ports: Vec<_> = protocols
            .iter()
            .map(|protocol| json!({"port": 80, "protocol": protocol}))
            .collect();
        let spec =
            json!({"externalTrafficPolicy": policy, "healthCheckNodePort": 32_000, "ports": ports});
        serde_json::from_value(spec).unwrap()
    }

    fn endpoints(counts: &[(&str, u32)]) -> Current {
        let pair = |(node, count): &(&str, u32)| ((*node).to_owned(), *count);
        Current {
            weighting: Weighting::By(counts.iter().map(pair).collect()),
            ..Current::default()
        }
    }

    #[test]
    fn nodes_without_endpoints_are_found_by_a_monitor_or_else_by_the_endpoints() {
        let port = |transport: &str, is_ovn: bool, has_udp: bool| {
            let spec = spec("Local", &[transport]);
            let port = Local::new(&spec, is_ovn, has_udp)
                .unwrap()
                .check_port(transport);
            // Always one of the two.
            assert_eq!(port.is_none(), needs_endpoints(&spec, is_ovn, has_udp));
            port
        };
        for transport in ["TCP", "SCTP"] {
            assert_eq!(port(transport, false, false), Some(32_000));
        }
        assert_eq!(port("UDP", false, true), Some(32_000));
        assert_eq!(port("UDP", false, false), None);
        for transport in ["TCP", "SCTP", "UDP"] {
            assert_eq!(port(transport, true, true), None);
        }
        let cluster = spec("Cluster", &["TCP", "UDP"]);
        assert_eq!(Local::new(&cluster, false, true), None);
        assert!(!needs_endpoints(&cluster, true, false));
        assert!(needs_endpoints(
            &spec("Local", &["TCP", "UDP"]),
            false,
            false
        ));
    }

    #[test]
    fn the_version_of_octavia_is_asked_for_udp_alone() {
        assert!(asks_for_version(&spec("Local", &["TCP", "UDP"]), false));
        assert!(!asks_for_version(&spec("Local", &["TCP"]), false));
        assert!(!asks_for_version(&spec("Local", &["UDP"]), true));
        assert!(!asks_for_version(&spec("Cluster", &["UDP"]), false));
    }

    #[test]
    fn members_are_the_nodes_with_endpoints_and_all_while_there_are_none_or_they_are_not_known() {
        let two = endpoints(&[("a", 2), ("b", 0)]);
        assert!(Serving::new(true, &two).has("a"));
        assert!(!Serving::new(true, &two).has("b"));
        assert!(Serving::new(false, &two).has("b"));
        assert_eq!(Serving::new(true, &endpoints(&[])), Serving::All);
        let among = |nodes: &[&str]| {
            let names = nodes.iter().map(|node| (*node).to_owned());
            Serving::new(true, &two).among(names)
        };
        assert!(!among(&["a", "c"]).has("c"));
        assert_eq!(among(&["b", "c"]), Serving::All);
        let mut unread = Current {
            weighting: Weighting::Kept,
            ..Current::default()
        };
        assert_eq!(Serving::new(true, &unread), Serving::Known);
        assert_eq!(notice(true, &unread), None);
        unread.is_unknown = true;
        assert_eq!(Serving::new(true, &unread), Serving::All);
        let notice = notice(true, &unread).unwrap();
        assert!(
            notice
                .message
                .starts_with("spec.externalTrafficPolicy: Local: the EndpointSlices")
        );
    }
}
