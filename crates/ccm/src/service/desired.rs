//! The desired load balancer of a Service. Pure functions.

use std::sync::Arc;

use api::k8s_openapi::api::core::v1::{Node, Service, ServicePort, ServiceSpec};
use ipnet::IpNet;
use kube::ResourceExt;
use openstack::View;
use openstack::loadbalancer::{
    ListenerCreate, LoadBalancerCreate, MemberCreate, MonitorCreate, PoolCreate, SessionPersistence,
};

use super::annotations::{self, Wishes};
use super::groups::{self, Group};
use super::identity::Identity;
use super::{Notice, Rejection, members};
use crate::cloud_conf::CloudConf;

/// The desired state for a Service.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Desired {
    /// The load balancer with all its parts, as in a single create request.
    pub(crate) tree: LoadBalancerCreate,
    /// The floating IP; none for an internal load balancer, for IPv6, and without an external network in the cloud.
    pub(crate) floating: Option<Floating>,
    /// Whether an existing floating IP must be removed.
    pub(crate) is_internal: bool,
    pub(crate) hostname: Option<String>,
    /// Whether members receive the PROXY protocol.
    pub(crate) is_proxied: bool,
    /// The security group, if cloud.conf asks for one.
    pub(crate) group: Option<Group>,
    /// The settings that have no effect.
    pub(crate) notices: Vec<Notice>,
    pub(crate) identity: Identity,
}

/// The floating IP of a load balancer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Floating {
    pub(crate) network: String,
    pub(crate) subnet: Option<String>,
    /// The address that the Service requests.
    pub(crate) address: Option<String>,
    /// An existing floating IP of the project to use.
    pub(crate) existing: Option<String>,
}

/// The inputs of the desired state besides the Service.
pub(crate) struct Facts<'a> {
    pub(crate) nodes: &'a [Arc<Node>],
    pub(crate) view: &'a View,
    pub(crate) conf: &'a CloudConf,
    /// The subnet of the existing load balancer.
    pub(crate) vip_subnet: Option<&'a str>,
}

/// Computes the desired state.
///
/// # Errors
/// The part of the Service that is invalid or not supported.
pub(crate) fn of(
    service: &Service,
    identity: &Identity,
    facts: &Facts<'_>,
) -> Result<Desired, Rejection> {
    let wishes = Wishes::of(service.annotations(), facts.conf)?;
    let spec = service.spec.clone().unwrap_or_default();
    check(&spec)?;
    let ip6 = spec
        .ip_families
        .iter()
        .flatten()
        .next()
        .is_some_and(|family| family == "IPv6");
    let mut nodes: Vec<&Node> = facts.nodes.iter().map(|node| &**node).collect();
    nodes.retain(|node| {
        members::is_eligible(node, &wishes.node_selector) && members::address(node, ip6).is_some()
    });
    nodes.sort_by_key(|node| node.name_any());
    let Some(first) = nodes.first() else {
        return Err(Rejection {
            reason: "UnAvailableLoadBalancer",
            message: "There are no available nodes for LoadBalancer".to_owned(),
        });
    };
    let placement = &wishes.placement;
    let located = placement.subnet_id.is_empty() && placement.network_id.is_empty();
    let vip_subnet = match (facts.vip_subnet, located) {
        (Some(subnet), _) => subnet.to_owned(),
        (None, true) => subnet_of(first, ip6, facts.view)?,
        (None, false) => placement.subnet_id.clone(),
    };
    let filled = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let member_subnet = [
        &placement.member_subnet_id,
        &placement.subnet_id,
        &vip_subnet,
    ];
    let member_subnet = member_subnet.into_iter().find(|id| !id.is_empty()).cloned();
    let cidrs = allowed_cidrs(service, &spec, ip6)?;
    let is_ovn = facts.conf.load_balancer.provider == "ovn";
    let asked = spec.load_balancer_ip.as_deref().filter(|ip| !ip.is_empty());
    let has_floating_ip = !wishes.internal && !ip6;
    let mut notices = Vec::new();
    let manages_groups = facts.conf.load_balancer.manage_security_groups;
    // There the security group enforces them.
    if is_ovn && !manages_groups && !are_everyone(&cidrs) {
        notices.push(Notice {
            reason: "LoadBalancerSourceRangesIgnored",
            message: format!(
                "the driver ovn has no source ranges, so that {} have no effect: everyone can connect",
                cidrs.join(", ")
            ),
        });
    }
    notices.extend(affinity_notice(&spec));
    let parts = Parts {
        wishes: &wishes,
        identity,
        spec: &spec,
        nodes: &nodes,
        ip6,
        member_subnet,
        cidrs: (!is_ovn).then(|| cidrs.clone()),
        is_ovn,
    };
    let ports = spec.ports.iter().flatten().enumerate();
    let mut desired = Desired {
        tree: LoadBalancerCreate {
            name: identity.name.clone(),
            description: Some(identity.description()),
            vip_address: asked.filter(|_| !has_floating_ip).map(str::to_owned),
            vip_network_id: filled(&placement.network_id).filter(|_| vip_subnet.is_empty()),
            vip_subnet_id: filled(&vip_subnet),
            provider: filled(&facts.conf.load_balancer.provider),
            flavor_id: filled(&wishes.flavor_id),
            availability_zone: filled(&wishes.availability_zone),
            tags: identity.tags(),
            listeners: ports
                .map(|(index, port)| parts.listener(index, port))
                .collect::<Result<_, _>>()?,
        },
        floating: match has_floating_ip {
            true => floating(&wishes, asked, identity, facts.view)?,
            false => None,
        },
        is_internal: wishes.internal,
        is_proxied: wishes.traffic.proxy.is_some(),
        hostname: wishes.hostname,
        group: None,
        notices,
        identity: identity.clone(),
    };
    if manages_groups {
        let clients = is_ovn.then_some(cidrs.as_slice());
        desired.group = Some(groups::wanted(&desired, clients, facts.view)?);
    }
    Ok(desired)
}

/// Rejects a Service with invalid fields or with features that are not implemented.
fn check(spec: &ServiceSpec) -> Result<(), Rejection> {
    if spec.ip_family_policy.as_deref() == Some("RequireDualStack") {
        return Err(Rejection::new(
            "spec.ipFamilyPolicy: RequireDualStack is not built for load balancers; set PreferDualStack to serve the first family",
        ));
    }
    for (index, port) in spec.ports.iter().flatten().enumerate() {
        if u16::try_from(port.port).is_err() || port.node_port.unwrap_or(0) <= 0 {
            return Err(Rejection::new(format!(
                "spec.ports[{index}]: the port has no node port, and load balancers reach nodes by that; set allocateLoadBalancerNodePorts to true"
            )));
        }
    }
    match spec.ports.iter().flatten().next() {
        Some(_) => Ok(()),
        None => Err(Rejection::new(
            "spec.ports is empty: a load balancer needs a port",
        )),
    }
}

/// How clients stay with their members. Octavia has a timeout for UDP and SCTP alone.
fn persistence(spec: &ServiceSpec, transport: &str) -> Option<SessionPersistence> {
    (spec.session_affinity.as_deref() == Some("ClientIP")).then(|| SessionPersistence {
        kind: "SOURCE_IP".to_owned(),
        persistence_timeout: affinity_timeout(spec).filter(|_| transport != "TCP"),
    })
}

fn affinity_timeout(spec: &ServiceSpec) -> Option<i64> {
    let config = spec.session_affinity_config.as_ref()?;
    config.client_ip.as_ref()?.timeout_seconds.map(i64::from)
}

/// The notice of a timeout that has no effect. A Service that sets none has the default of Kubernetes.
fn affinity_notice(spec: &ServiceSpec) -> Option<Notice> {
    let seconds = affinity_timeout(spec).filter(|seconds| *seconds != 10_800)?;
    let mut ports = spec.ports.iter().flatten();
    let has_tcp = ports.any(|port| port.protocol.as_deref().unwrap_or("TCP") == "TCP");
    (spec.session_affinity.as_deref() == Some("ClientIP") && has_tcp).then(|| Notice {
        reason: "LoadBalancerSessionAffinityTimeoutIgnored",
        message: format!(
            "spec.sessionAffinityConfig.clientIP.timeoutSeconds: Octavia has no timeout for TCP, so that {seconds} s \
             have no effect there: clients stay with their nodes until those fail"
        ),
    })
}

/// The subnet of the port with the address of a node.
fn subnet_of(node: &Node, ip6: bool, view: &View) -> Result<String, Rejection> {
    let address = members::address(node, ip6).unwrap_or_default();
    let fixed = view.ports.iter().flat_map(|port| &port.fixed_ips);
    let found = fixed
        .filter(|fixed| fixed.ip_address == address)
        .map(|fixed| fixed.subnet_id.clone())
        .next();
    found.ok_or_else(|| {
        Rejection::new(format!(
            "no port of this project has the address {address} of node {}: set subnet-id in [LoadBalancer] of cloud.conf",
            node.name_any()
        ))
    })
}

/// The allowed CIDRs; all addresses of the family if the Service has no source ranges.
fn allowed_cidrs(
    service: &Service,
    spec: &ServiceSpec,
    ip6: bool,
) -> Result<Vec<String>, Rejection> {
    let mut ranges = spec.load_balancer_source_ranges.clone().unwrap_or_default();
    if ranges.is_empty() {
        let text = service
            .annotations()
            .get(annotations::SOURCE_RANGES)
            .map_or("", String::as_str);
        ranges = text
            .split(',')
            .map(str::trim)
            .filter(|range| !range.is_empty())
            .map(str::to_owned)
            .collect();
    }
    let mut cidrs = Vec::new();
    for range in &ranges {
        let net: IpNet = range.trim().parse().map_err(|_| {
            Rejection::new(format!(
                "source range `{range}` is not a range of addresses such as 10.0.0.0/8"
            ))
        })?;
        // Octavia rejects ranges of another address family than that of the load balancer.
        if net.addr().is_ipv6() == ip6 {
            cidrs.push(net.trunc().to_string());
        }
    }
    if cidrs.is_empty() && !ranges.is_empty() {
        return Err(Rejection::new(
            "no source range has the family of the load balancer's address, so that nobody could connect",
        ));
    }
    if cidrs.is_empty() {
        cidrs.push(if ip6 { "::/0" } else { "0.0.0.0/0" }.to_owned());
    }
    cidrs.sort();
    cidrs.dedup();
    Ok(cidrs)
}

/// Whether these ranges, also if there are none, allow all addresses.
pub(crate) fn are_everyone(cidrs: &[String]) -> bool {
    cidrs.is_empty() || cidrs == ["0.0.0.0/0"] || cidrs == ["::/0"]
}

fn floating(
    wishes: &Wishes,
    asked: Option<&str>,
    identity: &Identity,
    view: &View,
) -> Result<Option<Floating>, Rejection> {
    let network = match wishes.placement.floating_network_id.as_str() {
        "" => {
            let has_v4 = |id: &str| {
                view.subnets
                    .of_parent(id)
                    .iter()
                    .any(|subnet| subnet.ip_version == 4)
            };
            let hidden = |id: &str| view.subnets.of_parent(id).is_empty();
            let found = view
                .external_networks()
                .find(|network| has_v4(&network.id) || hidden(&network.id));
            match found {
                Some(network) => network.id.clone(),
                None => return Ok(None),
            }
        }
        id => id.to_owned(),
    };
    let known = asked.and_then(|ip| view.floating_ips.named(ip).first());
    let tagged = view
        .floating_ips
        .iter()
        .find(|ip| ip.port_id.is_none() && identity.owns_floating_ip(&ip.description));
    if let Some(known) = known
        && let Some(port) = &known.port_id
        && !view.load_balancers.iter().any(|lb| {
            lb.vip_port_id == *port
                && (identity.owns(&lb.tags) || identity.is_legacy(&lb.name, &lb.tags))
        })
    {
        return Err(Rejection::new(format!(
            "spec.loadBalancerIP: the floating IP {} is on port {port} already: choose another, or take it off",
            known.floating_ip_address
        )));
    }
    let existing = known.or(tagged.filter(|_| asked.is_none()));
    Ok(Some(Floating {
        network,
        subnet: Some(wishes.placement.floating_subnet_id.clone()).filter(|id| !id.is_empty()),
        address: asked.map(str::to_owned),
        existing: existing.map(|ip| ip.id.clone()),
    }))
}

/// What the listeners of a load balancer share.
struct Parts<'a> {
    wishes: &'a Wishes,
    identity: &'a Identity,
    spec: &'a ServiceSpec,
    nodes: &'a [&'a Node],
    ip6: bool,
    member_subnet: Option<String>,
    cidrs: Option<Vec<String>>,
    is_ovn: bool,
}

impl Parts<'_> {
    fn listener(&self, index: usize, port: &ServicePort) -> Result<ListenerCreate, Rejection> {
        let transport = port.protocol.clone().unwrap_or_else(|| "TCP".to_owned());
        let (protocol, pool_protocol) = self.wishes.traffic.protocols(&transport)?;
        let check_port = self.health_check_port(&transport);
        let mut listener = ListenerCreate {
            name: self.identity.part("listener", index),
            protocol,
            protocol_port: u16::try_from(port.port).unwrap_or_default(),
            allowed_cidrs: self.cidrs.clone(),
            tags: self.identity.part_tags(),
            default_pool: Some(PoolCreate {
                name: self.identity.part("pool", index),
                protocol: pool_protocol,
                lb_algorithm: self.wishes.method.clone(),
                session_persistence: persistence(self.spec, &transport),
                members: self
                    .nodes
                    .iter()
                    .map(|node| self.member(node, port, check_port))
                    .collect(),
                healthmonitor: self.monitor(index, &transport, check_port),
                tags: self.identity.part_tags(),
                ..PoolCreate::default()
            }),
            ..ListenerCreate::default()
        };
        self.wishes.traffic.set(&mut listener);
        Ok(listener)
    }

    /// The port of the health check for `externalTrafficPolicy: Local`, which nodes without endpoints fail. Without a
    /// monitor they would receive traffic and drop it, so one is created regardless of `create-monitor`.
    fn health_check_port(&self, protocol: &str) -> Option<u16> {
        let local = self.spec.external_traffic_policy.as_deref() == Some("Local");
        let port = self.spec.health_check_node_port.filter(|port| *port > 0)?;
        let http = local && !self.is_ovn && protocol == "TCP";
        http.then_some(port)
            .and_then(|port| u16::try_from(port).ok())
    }

    fn member(&self, node: &Node, port: &ServicePort, check_port: Option<u16>) -> MemberCreate {
        MemberCreate {
            name: node.name_any(),
            address: members::address(node, self.ip6)
                .unwrap_or_default()
                .to_owned(),
            protocol_port: port
                .node_port
                .and_then(|port| u16::try_from(port).ok())
                .unwrap_or_default(),
            subnet_id: self.member_subnet.clone(),
            monitor_port: check_port,
            ..MemberCreate::default()
        }
    }

    fn monitor(
        &self,
        index: usize,
        protocol: &str,
        check_port: Option<u16>,
    ) -> Option<MonitorCreate> {
        let settings = &self.wishes.monitor;
        if !settings.create && check_port.is_none() {
            return None;
        }
        let seconds =
            |duration: std::time::Duration| i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
        let http = |text: &str| check_port.map(|_| text.to_owned());
        Some(MonitorCreate {
            name: self.identity.part("monitor", index),
            kind: match (protocol, check_port) {
                (_, Some(_)) => "HTTP",
                ("UDP", None) => "UDP-CONNECT",
                ("SCTP", None) => "SCTP",
                _ => "TCP",
            }
            .to_owned(),
            delay: seconds(settings.delay),
            timeout: seconds(settings.timeout),
            max_retries: settings.max_retries.into(),
            max_retries_down: settings.max_retries_down.into(),
            http_method: http("GET"),
            url_path: http("/healthz"),
            expected_codes: http("200"),
            ..MonitorCreate::default()
        })
    }
}
