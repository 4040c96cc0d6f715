//! Desired load balancer of a [`Service`] (pure).

use std::sync::Arc;

use api::k8s_openapi::api::core::v1::{Node, Service, ServicePort, ServiceSpec};
use ipnet::IpNet;
use kube::ResourceExt;
use load_balancing::{Fields, allows_everyone};
use openstack::View;
use openstack::loadbalancer::{
    AdditionalVip, ListenerCreate, LoadBalancer, LoadBalancerCreate, MemberCreate, MonitorCreate,
    PoolCreate, SessionPersistence,
};

use super::annotations::{self, Wishes};
use super::floating::{self, Floating};
use super::groups::{self, Group};
use super::identity::{self, Identity};
use super::local::{self, Local, Serving};
use super::vip::{self, Family};
use super::weights::{self, Weighting};
use super::{Notice, Octavia, Rejection, members, requested};
use cloud_conf::CloudConf;

/// Desired state for a Service.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Desired {
    /// Load balancer with all parts, as in a single create request.
    pub(crate) tree: LoadBalancerCreate,
    /// Floating IP; `None` for an internal load balancer, for IPv6, and without an external network in the cloud.
    pub(crate) floating: Option<Floating>,
    /// Families with published addresses, in this order.
    pub(crate) families: Vec<Family>,
    /// Second [`Family`], if its address is not on this load balancer, and the reason.
    pub(crate) apart: Option<(Family, String)>,
    /// Subnet of the first address, if known.
    pub(crate) vip_subnet: Option<String>,
    /// Subnet of members, if requested.
    pub(crate) member_subnet: Option<String>,
    /// True if an existing floating IP must be removed.
    pub(crate) is_internal: bool,
    /// True if the removed floating IP is kept in the cloud.
    pub(crate) keeps_floating_ip: bool,
    pub(crate) hostname: Option<String>,
    /// True if members receive the PROXY protocol.
    pub(crate) is_proxied: bool,
    /// True if members keep their present weights.
    pub(crate) keeps_weights: bool,
    /// True if members that depend on the endpoints stay unchanged.
    pub(crate) keeps_nodes: bool,
    /// True if the driver has no bulk requests.
    pub(crate) is_serial: bool,
    /// Security [`Group`], if requested in cloud.conf.
    pub(crate) group: Option<Group>,
    /// Settings without an effect.
    pub(crate) notices: Vec<Notice>,
    pub(crate) identity: Identity,
}

impl Desired {
    /// Load balancer for the planner, with the names of the Go manager. Members that depend on unknown endpoints stay
    /// until the endpoints are known.
    pub(crate) const fn balancer(&self) -> load_balancing::Desired<'_> {
        load_balancing::Desired {
            tree: &self.tree,
            fields: Fields::All,
            names: identity::NAMES,
            is_serial: self.is_serial,
            keeps_weights: self.keeps_weights,
            keeps_members: self.keeps_nodes,
        }
    }
}

/// Inputs of the desired state besides the Service.
pub(crate) struct Facts<'a> {
    pub(crate) nodes: &'a [Arc<Node>],
    pub(crate) view: &'a View,
    pub(crate) conf: &'a CloudConf,
    /// The existing [`LoadBalancer`].
    pub(crate) existing: Option<&'a LoadBalancer>,
    /// True with a floating IP on the load balancer.
    pub(crate) has_floating_ip: bool,
    pub(crate) octavia: Octavia,
    /// Ready endpoints on the nodes, if the Service needs them.
    pub(crate) weights: &'a weights::Current,
}

/// Computes the desired state.
///
/// # Errors
/// The part of the [`Service`] that is invalid or not supported.
pub(crate) fn of(
    service: &Service,
    identity: &Identity,
    facts: &Facts<'_>,
) -> Result<Desired, Rejection> {
    let unknown = annotations::unknown(service.annotations());
    if let Some(name) = unknown.first().filter(|_| facts.existing.is_none()) {
        return Err(Rejection::new(format!(
            "annotation {name} is unknown; correct or remove it"
        )));
    }
    let mut wishes = Wishes::new(service.annotations(), facts.conf)?;
    let spec = service.spec.clone().unwrap_or_default();
    check(&spec)?;
    wishes.traffic.check(&spec)?;
    let asked = requested::of(service)?;
    vip::check(&wishes.placement, facts)?;
    let (first, second) = Family::from_spec(&spec);
    let ip6 = first.is_6();
    let mut nodes: Vec<&Node> = facts.nodes.iter().map(|node| &**node).collect();
    nodes.retain(|node| {
        members::is_eligible(node, &wishes.node_selector) && members::address(node, ip6).is_some()
    });
    nodes.sort_by_key(|node| node.name_any());
    if nodes.is_empty() {
        return Err(no_nodes(identity, first));
    }
    if identity.is_second() {
        wishes.placement = vip::beside(&wishes.placement, first, &nodes, facts.view);
    }
    let has_floating_ip = !wishes.internal && (!ip6 || second == Some(Family::V4));
    // The requested IPv4 address belongs to the floating IP.
    let fixed = asked.filter(|ip| !(has_floating_ip && Family::V4.has(ip)));
    let vip = vip::of(&spec, &wishes, fixed, &nodes, facts)?;
    let second = second.filter(|_| vip.second.is_some());
    let has_floating_ip = has_floating_ip && (!ip6 || second.is_some());
    let placement = &wishes.placement;
    let filled = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let vip_subnet = vip.subnet.clone().unwrap_or_default();
    let member_subnet = [
        &placement.member_subnet_id,
        &placement.subnet_id,
        &vip_subnet,
    ];
    let member_subnet = member_subnet.into_iter().find(|id| !id.is_empty()).cloned();
    let families: Vec<Family> = [Some(first), second].into_iter().flatten().collect();
    let cidrs = allowed_cidrs(service, &spec, &families)?;
    let is_ovn = facts.conf.load_balancer.provider == "ovn";
    let mut notices: Vec<Notice> = unknown.iter().map(|name| unknown_notice(name)).collect();
    let manages_groups = facts.conf.load_balancer.manage_security_groups;
    // On this driver, the security group enforces the ranges.
    if is_ovn && !manages_groups && !allows_everyone(&cidrs) {
        notices.push(Notice {
            reason: "LoadBalancerSourceRangesIgnored",
            message: format!(
                "the driver ovn has no source ranges, so that {} have no effect: everyone can connect",
                cidrs.join(", ")
            ),
        });
    }
    notices.extend(affinity_notice(&spec));
    notices.extend(weights_notice(&wishes, facts));
    notices.extend(zone_notice(&wishes, is_ovn));
    let weights = match wishes.has_weights && !is_ovn {
        true => facts.weights.weighting.clone(),
        false => Weighting::Equal,
    };
    let needs_endpoints = local::needs_endpoints(&spec, is_ovn, facts.octavia.has_http_on_udp);
    notices.extend(local::notice(needs_endpoints, facts.weights));
    let names = nodes.iter().map(|node| node.name_any());
    let serving = Serving::new(needs_endpoints, facts.weights).among(names);
    let parts = Parts {
        wishes: &wishes,
        identity,
        spec: &spec,
        nodes: &nodes,
        ip6,
        second: second.zip(vip.second.clone()),
        member_subnet,
        weights: &weights,
        local: Local::new(&spec, is_ovn, facts.octavia.has_http_on_udp),
        serving: &serving,
        cidrs: (!is_ovn).then(|| cidrs.clone()),
        is_ovn,
    };
    let floating = match has_floating_ip {
        true => {
            let asked = asked.filter(|ip| Family::V4.has(ip));
            floating::wanted(&wishes, asked, &vip, identity, facts)?
        }
        false => None,
    };
    let ports = spec.ports.iter().flatten().enumerate();
    let mut desired = Desired {
        tree: LoadBalancerCreate {
            name: identity.name.clone(),
            description: Some(identity.description()),
            vip_address: fixed.filter(|ip| first.has(ip)).map(str::to_owned),
            vip_network_id: vip.network,
            vip_subnet_id: vip.subnet.filter(|_| vip.names_subnet),
            vip_port_id: vip.port,
            additional_vips: vip.second.into_iter().collect(),
            provider: filled(&facts.conf.load_balancer.provider),
            flavor_id: filled(&wishes.flavor_id),
            availability_zone: filled(&wishes.availability_zone).filter(|_| !is_ovn),
            tags: identity.tags(),
            listeners: ports
                .map(|(index, port)| parts.listener(index, port))
                .collect(),
        },
        floating,
        families,
        apart: vip.apart,
        vip_subnet: filled(&vip_subnet),
        member_subnet: filled(&placement.member_subnet_id).filter(|_| !identity.is_second()),
        is_internal: wishes.internal,
        keeps_floating_ip: annotations::keeps_floating_ip(service.annotations()),
        is_proxied: wishes.traffic.proxy.is_some(),
        hostname: wishes.hostname,
        keeps_weights: weights == Weighting::Kept,
        keeps_nodes: serving == Serving::Known,
        is_serial: facts.conf.load_balancer.is_serial,
        group: None,
        notices,
        identity: identity.clone(),
    };
    if manages_groups {
        let clients = is_ovn.then_some(cidrs.as_slice());
        desired.group = Some(groups::wanted(&desired, clients, &nodes, facts.view)?);
    }
    Ok(desired)
}

/// [`Rejection`] of a Service without members, in the words of the Go manager.
fn no_nodes(identity: &Identity, family: Family) -> Rejection {
    Rejection {
        reason: "UnAvailableLoadBalancer",
        message: match identity.is_second() {
            false => "There are no available nodes for LoadBalancer".to_owned(),
            true => format!("no available node has an address of {}", family.name()),
        },
        seen_in: &[],
    }
}

/// Rejects a Service with invalid fields or with features that are not implemented.
fn check(spec: &ServiceSpec) -> Result<(), Rejection> {
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

/// [`SessionPersistence`] of clients with members. Octavia has a timeout for UDP and SCTP alone.
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

/// [`Notice`] for a timeout without an effect. A Service without a timeout has the default of Kubernetes.
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

/// [`Notice`] for an unknown annotation of a Service: the Service is served without it.
fn unknown_notice(name: &str) -> Notice {
    Notice {
        reason: "LoadBalancerAnnotationIgnored",
        message: format!("annotation {name} is unknown and has no effect; correct or remove it"),
    }
}

/// [`Notice`] for an availability zone on a driver without zones.
fn zone_notice(wishes: &Wishes, is_ovn: bool) -> Option<Notice> {
    let zone = Some(&wishes.availability_zone).filter(|zone| is_ovn && !zone.is_empty())?;
    Some(Notice {
        reason: "LoadBalancerAvailabilityZonesIgnored",
        message: format!(
            "the driver ovn has no availability zones, so that availability-zone `{zone}` has no effect: remove it from \
             the annotations or from cloud.conf"
        ),
    })
}

/// [`Notice`] for weights on a driver without weights, or for unknown weights.
fn weights_notice(wishes: &Wishes, facts: &Facts<'_>) -> Option<Notice> {
    let reason = if !wishes.has_weights {
        return None;
    } else if facts.conf.load_balancer.provider == "ovn" {
        "the driver ovn has no weights, so that all nodes get the same share: remove the annotation"
    } else if facts.weights.is_unknown {
        "the EndpointSlices cannot be read, so that weights stay as they are: allow the manager to list and watch \
         endpointslices (discovery.k8s.io)"
    } else {
        return None;
    };
    Some(Notice {
        reason: "LoadBalancerMemberWeightsIgnored",
        message: format!(
            "annotation loadbalancer.openstack.org/{}: {reason}",
            weights::ANNOTATION
        ),
    })
}

/// Allowed CIDRs; all addresses of the families if the [`Service`] has no source ranges.
fn allowed_cidrs(
    service: &Service,
    spec: &ServiceSpec,
    families: &[Family],
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
        // Octavia rejects ranges of another address family than the load balancer's.
        let mut families = families.iter();
        if families.any(|family| family.is_6() == net.addr().is_ipv6()) {
            cidrs.push(net.trunc().to_string());
        }
    }
    if cidrs.is_empty() && !ranges.is_empty() {
        return Err(Rejection::new(
            "no source range has the family of the load balancer's address, so that nobody could connect",
        ));
    }
    if cidrs.is_empty() {
        cidrs.extend(families.iter().map(|family| family.everyone().to_owned()));
    }
    cidrs.sort();
    cidrs.dedup();
    Ok(cidrs)
}

/// Common parts of the listeners of a load balancer.
struct Parts<'a> {
    wishes: &'a Wishes,
    identity: &'a Identity,
    spec: &'a ServiceSpec,
    nodes: &'a [&'a Node],
    ip6: bool,
    /// Second [`Family`], with its address.
    second: Option<(Family, AdditionalVip)>,
    member_subnet: Option<String>,
    weights: &'a Weighting,
    local: Option<Local>,
    serving: &'a Serving,
    cidrs: Option<Vec<String>>,
    is_ovn: bool,
}

impl Parts<'_> {
    fn listener(&self, index: usize, port: &ServicePort) -> ListenerCreate {
        let transport = port.protocol.clone().unwrap_or_else(|| "TCP".to_owned());
        let (protocol, pool_protocol) = self.wishes.traffic.protocols(port);
        let check_port = self.local.and_then(|local| local.check_port(&transport));
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
                members: self.members(port, &transport, check_port),
                healthmonitor: self.monitor(index, &transport, check_port),
                tags: self.identity.part_tags(),
                ..PoolCreate::default()
            }),
            ..ListenerCreate::default()
        };
        self.wishes.traffic.set(&mut listener);
        listener
    }

    /// Members of a pool. Connections of both families reach members of the first one; the driver ovn, and datagram
    /// listeners, do not translate between families.
    fn members(
        &self,
        port: &ServicePort,
        transport: &str,
        check_port: Option<u16>,
    ) -> Vec<MemberCreate> {
        let number = port.node_port.and_then(|port| u16::try_from(port).ok());
        let of = |ip6: bool, subnet: Option<&String>| {
            let subnet = subnet.cloned();
            let member = move |node: &&Node| {
                Some(MemberCreate {
                    name: node.name_any(),
                    address: members::address(node, ip6)?.to_owned(),
                    protocol_port: number.unwrap_or_default(),
                    subnet_id: subnet.clone(),
                    monitor_port: check_port,
                    weight: self.weights.of(&node.name_any()),
                    ..MemberCreate::default()
                })
            };
            let serves =
                move |node: &&&Node| check_port.is_some() || self.serving.has(&node.name_any());
            self.nodes.iter().filter(serves).filter_map(member)
        };
        let mut members: Vec<_> = of(self.ip6, self.member_subnet.as_ref()).collect();
        let translates = transport == "TCP" && !self.is_ovn;
        if let Some((family, vip)) = self.second.as_ref().filter(|_| !translates) {
            members.extend(of(family.is_6(), Some(&vip.subnet_id)));
        }
        members
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
