//! From any Service to any other, the plan converges and is then empty, on a model of Octavia that rejects what Octavia
//! rejects.

use std::collections::BTreeMap;
use std::sync::Arc;

use openstack::inventory::Table;
use openstack::loadbalancer::{
    Listener, ListenerCreate, LoadBalancer, Member, MemberCreate, Monitor, MonitorCreate, Pool,
    PoolCreate, Reference,
};
use openstack::network::{FixedIp, FloatingIp, Network, Port, Subnet};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::annotations::Wishes;
use super::super::desired::{Desired, Facts};
use super::super::plan::Step;
use super::super::*;
use crate::cloud_conf::CloudConf;

/// More steps than any change needs.
const MOST: usize = 120;

#[derive(Default)]
struct Model {
    next: u32,
    balancers: BTreeMap<String, LoadBalancer>,
    listeners: BTreeMap<String, Listener>,
    pools: BTreeMap<String, Pool>,
    members: BTreeMap<String, Member>,
    monitors: BTreeMap<String, Monitor>,
    floating_ips: BTreeMap<String, FloatingIp>,
}

impl Model {
    fn id(&mut self) -> String {
        self.next += 1;
        format!("id-{}", self.next)
    }

    fn view(&self) -> View {
        let network = |id: &str, external| Network {
            id: id.to_owned(),
            external,
            ..Network::default()
        };
        let subnet = |id: &str, network_id: &str| Subnet {
            id: id.to_owned(),
            name: id.to_owned(),
            network_id: network_id.to_owned(),
            ip_version: 4,
            tags: vec![format!("{id}-tag")],
            ..Subnet::default()
        };
        let ports = (1..=3).map(|index| Port {
            id: format!("port-{index}"),
            device_id: format!("server-{index}"),
            fixed_ips: vec![FixedIp {
                subnet_id: "subnet".to_owned(),
                ip_address: format!("10.0.0.{index}"),
            }],
            ..Port::default()
        });
        View {
            load_balancers: Arc::new(Table::of(self.balancers.values().cloned())),
            listeners: Arc::new(Table::of(self.listeners.values().cloned())),
            pools: Arc::new(Table::of(self.pools.values().cloned())),
            members: Arc::new(Table::of(self.members.values().cloned())),
            monitors: Arc::new(Table::of(self.monitors.values().cloned())),
            floating_ips: Arc::new(Table::of(self.floating_ips.values().cloned())),
            networks: Arc::new(Table::of([
                network("public", true),
                network("nodes", false),
            ])),
            subnets: Arc::new(Table::of([
                subnet("outside", "public"),
                subnet("subnet", "nodes"),
                subnet("other", "nodes"),
            ])),
            ports: Arc::new(Table::of(ports)),
            ..View::default()
        }
    }

    fn take(&mut self, balancer: &str, step: Step) {
        match step {
            Step::Create(tree) => {
                assert!(self.balancers.is_empty(), "a second load balancer");
                let id = self.id();
                let listeners = tree.listeners.clone();
                self.balancers.insert(
                    id.clone(),
                    LoadBalancer {
                        id: id.clone(),
                        name: tree.name,
                        provisioning_status: "ACTIVE".to_owned(),
                        vip_port_id: "vip".to_owned(),
                        vip_subnet_id: tree.vip_subnet_id.unwrap_or_default(),
                        tags: tree.tags,
                        ..LoadBalancer::default()
                    },
                );
                for listener in listeners {
                    self.listener(&id, listener);
                }
            }
            Step::DeleteBroken(_) => panic!("nothing is in ERROR"),
            Step::Adopt { id, tags } => self.balancers.get_mut(&id).unwrap().tags = tags,
            Step::CreateListener(listener) => {
                assert_eq!(listener.default_pool, None, "Octavia answers with 500");
                self.listener(balancer, *listener);
            }
            Step::UpdateListener { id, change } => {
                let listener = self.listeners.get_mut(&id).unwrap();
                if let Some(cidrs) = change.allowed_cidrs {
                    listener.allowed_cidrs = cidrs;
                }
                if let Some(headers) = change.insert_headers {
                    listener.insert_headers = strings(headers);
                }
                if let Some(certificate) = change.default_tls_container_ref {
                    listener.default_tls_container_ref = Some(certificate);
                }
                let set = |field: &mut Option<i64>, value: Option<i64>| *field = value.or(*field);
                set(&mut listener.connection_limit, change.connection_limit);
                set(
                    &mut listener.timeout_client_data,
                    change.timeout_client_data,
                );
                set(
                    &mut listener.timeout_member_connect,
                    change.timeout_member_connect,
                );
                set(
                    &mut listener.timeout_member_data,
                    change.timeout_member_data,
                );
                set(
                    &mut listener.timeout_tcp_inspect,
                    change.timeout_tcp_inspect,
                );
            }
            Step::DeleteListener(id) => drop(self.listeners.remove(&id).unwrap()),
            Step::CreatePool(pool) => {
                let listener = pool.listener_id.clone().unwrap();
                let listener = self.listeners[&listener].clone();
                assert_eq!(listener.default_pool_id, None, "it has a pool already");
                let pool = self.pool(balancer, *pool);
                self.listeners
                    .get_mut(&listener.id)
                    .unwrap()
                    .default_pool_id = Some(pool);
            }
            Step::UpdatePool { id, change } => {
                let pool = self.pools.get_mut(&id).unwrap();
                if let Some(method) = change.lb_algorithm {
                    pool.lb_algorithm = method;
                }
                if let Some(persistence) = change.session_persistence {
                    pool.session_persistence = persistence;
                }
            }
            Step::DeletePool(id) => {
                self.pools.remove(&id).unwrap();
                self.members.retain(|_, member| *member.pool_id != id);
                self.monitors.retain(|_, monitor| monitor.pools[0].id != id);
                for listener in self.listeners.values_mut() {
                    if listener.default_pool_id.as_ref() == Some(&id) {
                        listener.default_pool_id = None;
                    }
                }
            }
            Step::SetMembers { pool, members } => self.set_members(&pool, &members),
            Step::CreateMember { pool, member } => {
                let mut all = self.members.values();
                let twin = all.any(|m| {
                    *m.pool_id == pool
                        && m.address == member.address
                        && m.protocol_port == member.protocol_port
                });
                assert!(!twin, "a second member {}", member.address);
                self.member(&pool, &member);
            }
            Step::UpdateMember { id, change, .. } => {
                let member = self.members.get_mut(&id).unwrap();
                member.weight = change.weight.unwrap_or(member.weight);
                member.monitor_port = change.monitor_port.unwrap_or(member.monitor_port);
            }
            Step::DeleteMember { id, .. } => drop(self.members.remove(&id).unwrap()),
            Step::CreateMonitor(monitor) => {
                let pool = monitor.pool_id.clone().unwrap();
                self.monitor(&pool, &monitor);
            }
            Step::UpdateMonitor { id, change } => {
                let monitor = self.monitors.get_mut(&id).unwrap();
                monitor.delay = change.delay.unwrap_or(monitor.delay);
                monitor.timeout = change.timeout.unwrap_or(monitor.timeout);
                monitor.max_retries = change.max_retries.unwrap_or(monitor.max_retries);
                monitor.max_retries_down =
                    change.max_retries_down.unwrap_or(monitor.max_retries_down);
                let set = |field: &mut Option<String>, value: Option<String>| {
                    *field = value.or(field.take());
                };
                set(&mut monitor.http_method, change.http_method);
                set(&mut monitor.url_path, change.url_path);
                set(&mut monitor.expected_codes, change.expected_codes);
                monitor.name = change.name.unwrap_or(monitor.name.clone());
            }
            Step::DeleteMonitor(id) => drop(self.monitors.remove(&id).unwrap()),
            Step::CreateFloatingIp { port, .. } => {
                let taken = self.floating_ips.values().any(|ip| ip.port_id.is_some());
                assert!(!taken, "a second floating IP");
                let id = self.id();
                let floating = FloatingIp {
                    id: id.clone(),
                    floating_ip_address: "203.0.113.1".to_owned(),
                    port_id: Some(port),
                    description:
                        "Floating IP for Kubernetes external service x (ferrostack-service=web)"
                            .to_owned(),
                    ..FloatingIp::default()
                };
                self.floating_ips.insert(id, floating);
            }
            Step::AttachFloatingIp { id, port } => {
                self.floating_ips.get_mut(&id).unwrap().port_id = Some(port);
            }
            Step::DetachFloatingIp(id) => self.floating_ips.get_mut(&id).unwrap().port_id = None,
            Step::DeleteFloatingIp(id) => drop(self.floating_ips.remove(&id).unwrap()),
        }
    }

    /// As Octavia: those that are there stay, in the subnet in which they are.
    fn set_members(&mut self, pool: &str, wanted: &[MemberCreate]) {
        let same = |known: &Member, wanted: &MemberCreate| {
            known.address == wanted.address && known.protocol_port == wanted.protocol_port
        };
        self.members.retain(|_, known| {
            &*known.pool_id != pool || wanted.iter().any(|wanted| same(known, wanted))
        });
        for member in wanted {
            let mut known = self.members.values_mut().filter(|it| &*it.pool_id == pool);
            match known.find(|known| same(known, member)) {
                Some(known) => {
                    known.weight = member.weight.unwrap_or(known.weight);
                    known.monitor_port = member.monitor_port.or(known.monitor_port);
                }
                None => self.member(pool, member),
            }
        }
    }

    fn listener(&mut self, balancer: &str, wanted: ListenerCreate) {
        let port = wanted.protocol_port;
        let clash = self.listeners.values().any(|other| {
            other.protocol_port == port
                && sharing::transport(&other.protocol) == sharing::transport(&wanted.protocol)
        });
        assert!(!clash, "a second listener with port {port}");
        let pool = wanted.default_pool.map(|pool| {
            let fits = match wanted.protocol.as_str() {
                "TCP" => matches!(pool.protocol.as_str(), "TCP" | "PROXY" | "PROXYV2"),
                "HTTP" | "TERMINATED_HTTPS" => {
                    matches!(pool.protocol.as_str(), "HTTP" | "PROXY" | "PROXYV2")
                }
                other => pool.protocol == other,
            };
            assert!(fits, "{} and {}", wanted.protocol, pool.protocol);
            self.pool(balancer, pool)
        });
        let id = self.id();
        let listener = Listener {
            id: id.clone(),
            name: wanted.name,
            protocol: wanted.protocol,
            protocol_port: port,
            default_pool_id: pool,
            allowed_cidrs: wanted.allowed_cidrs.unwrap_or_default(),
            connection_limit: Some(wanted.connection_limit.unwrap_or(-1)),
            timeout_client_data: Some(wanted.timeout_client_data.unwrap_or(50_000)),
            timeout_member_connect: Some(wanted.timeout_member_connect.unwrap_or(5_000)),
            timeout_member_data: Some(wanted.timeout_member_data.unwrap_or(50_000)),
            timeout_tcp_inspect: Some(wanted.timeout_tcp_inspect.unwrap_or(0)),
            insert_headers: strings(wanted.insert_headers),
            default_tls_container_ref: wanted.default_tls_container_ref,
            loadbalancers: reference(balancer),
            tags: wanted.tags,
            ..Listener::default()
        };
        self.listeners.insert(id, listener);
    }

    fn pool(&mut self, balancer: &str, wanted: PoolCreate) -> String {
        let id = self.id();
        let pool = Pool {
            id: id.clone(),
            name: wanted.name,
            protocol: wanted.protocol,
            lb_algorithm: wanted.lb_algorithm,
            session_persistence: wanted.session_persistence,
            loadbalancers: reference(balancer),
            tags: wanted.tags,
            ..Pool::default()
        };
        self.pools.insert(id.clone(), pool);
        for member in &wanted.members {
            self.member(&id, member);
        }
        if let Some(monitor) = &wanted.healthmonitor {
            self.monitor(&id, monitor);
        }
        id
    }

    fn member(&mut self, pool: &str, wanted: &MemberCreate) {
        let id = self.id();
        let member = Member {
            id: id.clone(),
            name: wanted.name.clone(),
            address: wanted.address.clone(),
            protocol_port: wanted.protocol_port,
            monitor_port: wanted.monitor_port,
            subnet_id: wanted.subnet_id.as_deref().map(Into::into),
            weight: wanted.weight.unwrap_or(1),
            pool_id: pool.into(),
            ..Member::default()
        };
        self.members.insert(id, member);
    }

    fn monitor(&mut self, pool: &str, wanted: &MonitorCreate) {
        let taken = self
            .monitors
            .values()
            .any(|other| other.pools[0].id == pool);
        assert!(!taken, "a second monitor");
        let id = self.id();
        let monitor = Monitor {
            id: id.clone(),
            name: wanted.name.clone(),
            kind: wanted.kind.clone(),
            delay: wanted.delay,
            timeout: wanted.timeout,
            max_retries: wanted.max_retries,
            max_retries_down: wanted.max_retries_down,
            http_method: wanted.http_method.clone(),
            url_path: wanted.url_path.clone(),
            expected_codes: wanted.expected_codes.clone(),
            pools: reference(pool),
            ..Monitor::default()
        };
        self.monitors.insert(id, monitor);
    }

    /// Plans and takes the first step again and again. Returns the number of steps, or the rejection.
    fn converge(
        &mut self,
        service: &Service,
        nodes: &[Arc<Node>],
        is_serial: bool,
        weighting: &weights::Weighting,
    ) -> Result<usize, String> {
        let conf = conf(is_serial);
        let identity = Identity::of(service, "kubernetes", "cluster");
        for taken in 0..MOST {
            let view = self.view();
            let observed = observed::find(service, &identity, &view).unwrap();
            let facts = Facts {
                nodes,
                view: &view,
                conf: &conf,
                existing: observed.as_ref().map(|observed| &*observed.balancer),
                has_floating_ip: observed
                    .as_ref()
                    .is_some_and(|observed| observed.floating_ip.is_some()),
                octavia: Octavia {
                    has_additional_vips: true,
                    has_http_on_udp: true,
                },
                weights: &weights::Current {
                    weighting: weighting.clone(),
                    ..weights::Current::default()
                },
            };
            let desired = desired::of(service, &identity, &facts);
            let desired = desired.map_err(|rejection| rejection.message)?;
            let steps = plan::steps(&desired, observed.as_ref());
            assert!(!is_serial || !steps.iter().any(is_bulk), "{steps:?}");
            let Some(step) = steps.into_iter().next() else {
                self.check(&desired);
                return Ok(taken);
            };
            let balancer = observed.map_or(String::new(), |o| o.balancer.id.clone());
            self.take(&balancer, step);
        }
        panic!("{MOST} steps were not enough");
    }

    /// The model is what the Service asks for, and nothing else.
    fn check(&self, desired: &Desired) {
        let wanted = &desired.tree.listeners;
        assert_eq!(self.listeners.len(), wanted.len());
        assert_eq!(self.pools.len(), wanted.len());
        for wanted in wanted {
            let listener = self.listeners.values().find(|known| {
                known.protocol == wanted.protocol && known.protocol_port == wanted.protocol_port
            });
            let listener = listener.unwrap();
            let pool = &self.pools[listener.default_pool_id.as_ref().unwrap()];
            let wanted_pool = wanted.default_pool.as_ref().unwrap();
            assert_eq!(pool.protocol, wanted_pool.protocol);
            assert_eq!(pool.session_persistence, wanted_pool.session_persistence);
            let members = self
                .members
                .values()
                .filter(|m| *m.pool_id == pool.id)
                .count();
            assert_eq!(members, wanted_pool.members.len());
            for member in self.members.values().filter(|m| *m.pool_id == pool.id) {
                let wanted = wanted_pool
                    .members
                    .iter()
                    .find(|m| m.address == member.address);
                let weight = wanted.unwrap().weight.unwrap_or(member.weight);
                assert_eq!(member.weight, weight);
                assert!((0..=256).contains(&weight), "{weight}");
                assert_eq!(member.monitor_port, wanted.unwrap().monitor_port);
                let is_equal = wanted.unwrap().weight.is_none() && !desired.keeps_weights;
                assert!(!is_equal || weight == 1, "{weight}");
            }
            let mut monitors = self.monitors.values().filter(|m| m.pools[0].id == pool.id);
            let kind = monitors.next().map(|monitor| monitor.kind.clone());
            let wanted_kind = wanted_pool.healthmonitor.as_ref().map(|m| m.kind.clone());
            assert_eq!(kind, wanted_kind);
            let limit = wanted.timeout_client_data.unwrap_or(50_000);
            assert_eq!(listener.timeout_client_data, Some(limit));
            assert_eq!(listener.insert_headers.len(), wanted.insert_headers.len());
        }
        let attached = self.floating_ips.values().filter(|ip| ip.port_id.is_some());
        assert_eq!(attached.count(), usize::from(desired.floating.is_some()));
    }
}

/// Whether a step creates or changes several objects.
fn is_bulk(step: &Step) -> bool {
    match step {
        Step::Create(tree) => !tree.listeners.is_empty(),
        Step::CreateListener(listener) => listener.default_pool.is_some(),
        Step::CreatePool(pool) => !pool.members.is_empty() || pool.healthmonitor.is_some(),
        Step::SetMembers { .. } => true,
        _ => false,
    }
}

fn reference(id: &str) -> Vec<Reference> {
    vec![Reference { id: id.to_owned() }]
}

fn strings(headers: BTreeMap<String, String>) -> serde_json::Map<String, Value> {
    let pair = |(name, value)| (name, Value::String(value));
    headers.into_iter().map(pair).collect()
}

fn node(index: usize) -> Arc<Node> {
    let node = json!({
        "metadata": {"name": format!("node-{index}")},
        "spec": {"providerID": format!("openstack:///server-{index}")},
        "status": {"addresses": [{"type": "InternalIP", "address": format!("10.0.0.{index}")}]},
    });
    Arc::new(serde_json::from_value(node).unwrap())
}

fn some<T: Clone + std::fmt::Debug + 'static>(
    values: &'static [T],
) -> impl Strategy<Value = Option<T>> {
    prop::option::of(prop::sample::select(values))
}

prop_compose! {
    /// A Service of any kind, and the number of nodes.
    fn any_service()(
        ports in prop::collection::btree_set((prop::sample::select(vec!["TCP", "UDP", "SCTP"]), 1..5_u16), 1..5),
        forwarding in some(&[("proxy-protocol", "true"), ("proxy-protocol", "v2"), ("x-forwarded-for", "true")]),
        method in some(&["LEAST_CONNECTIONS", "SOURCE_IP"]),
        timeout in some(&["0", "1000", "50000"]),
        limit in some(&["-1", "7"]),
        monitor in some(&["true", "false"]),
        delay in some(&["4", "9"]),
        ranges in some(&["10.0.0.0/8", "0.0.0.0/0", "10.1.0.0/16,10.2.0.0/16"]),
        affinity in some(&[10_800, 60]),
        local in any::<bool>(),
        internal in any::<bool>(),
        nodes in 1..4_usize,
    ) -> (Service, usize) {
        let mut annotations = BTreeMap::new();
        let set = [
            forwarding,
            method.map(|value| ("lb-method", value)),
            timeout.map(|value| ("timeout-client-data", value)),
            limit.map(|value| ("connection-limit", value)),
            monitor.map(|value| ("enable-health-monitor", value)),
            delay.map(|value| ("health-monitor-delay", value)),
        ];
        for (name, value) in set.into_iter().flatten() {
            annotations.insert(format!("loadbalancer.openstack.org/{name}"), value.to_owned());
        }
        if internal {
            annotations.insert(annotations::INTERNAL.to_owned(), "true".to_owned());
        }
        // Only TCP ports can be forwarded otherwise.
        let ports: Vec<_> = ports
            .into_iter()
            .filter(|(protocol, _)| forwarding.is_none() || *protocol == "TCP")
            .map(|(protocol, port)| json!({"protocol": protocol, "port": port, "nodePort": 30_000 + port}))
            .collect();
        let mut spec = json!({"type": "LoadBalancer", "ports": ports,
            "loadBalancerSourceRanges": ranges.map(|list| list.split(',').collect::<Vec<_>>())});
        if let Some(seconds) = affinity {
            spec["sessionAffinity"] = json!("ClientIP");
            spec["sessionAffinityConfig"] = json!({"clientIP": {"timeoutSeconds": seconds}});
        }
        if local {
            spec["externalTrafficPolicy"] = json!("Local");
            spec["healthCheckNodePort"] = json!(32_000);
        }
        let service = json!({"metadata": {"namespace": "default", "name": "web", "uid": "web",
            "annotations": annotations}, "spec": spec});
        (serde_json::from_value(service).unwrap(), nodes)
    }
}

fn any_weighting() -> impl Strategy<Value = weights::Weighting> {
    let counts = prop::collection::btree_map("node-[1-4]", 0..400_u32, 0..4);
    prop_oneof![
        Just(weights::Weighting::Equal),
        Just(weights::Weighting::Kept),
        counts.prop_map(weights::Weighting::By),
    ]
}

proptest! {
    #[test]
    fn from_any_service_to_any_other_the_plan_converges_and_is_then_empty(
        services in prop::collection::vec((any_service(), any::<bool>(), any_weighting()), 1..4)
    ) {
        let mut model = Model::default();
        for ((mut service, nodes), is_serial, weighting) in services {
            if weighting != weights::Weighting::Equal {
                let asked = ("loadbalancer.openstack.org/member-weights".to_owned(), "ready-endpoints".to_owned());
                service.annotations_mut().extend([asked]);
            }
            let nodes: Vec<_> = (1..=nodes).map(node).collect();
            let mut converge = || model.converge(&service, &nodes, is_serial, &weighting);
            match converge() {
                Ok(_) => prop_assert_eq!(converge(), Ok(0)),
                // All ports were UDP or SCTP.
                Err(problem) => prop_assert!(problem.contains("spec.ports is empty"), "{}", problem),
            }
        }
    }
}

/// Each annotation, with a value that is not its default.
const CHANGEABLE: &[(&str, &str)] = &[
    ("proxy-protocol", "true"),
    ("x-forwarded-for", "true"),
    ("port-protocols", "80=HTTP"),
    (
        "default-tls-container-ref",
        "https://barbican/v1/containers/6f1c",
    ),
    ("lb-method", "SOURCE_IP"),
    ("connection-limit", "7"),
    ("timeout-client-data", "1000"),
    ("timeout-member-connect", "1000"),
    ("timeout-member-data", "1000"),
    ("timeout-tcp-inspect", "1000"),
    ("enable-health-monitor", "true"),
    ("health-monitor-delay", "9"),
    ("health-monitor-timeout", "2"),
    ("health-monitor-max-retries", "2"),
    ("health-monitor-max-retries-down", "2"),
    ("node-selector", "pool=fast"),
    ("hostname", "web.example.net"),
    ("keep-floatingip", "true"),
    ("member-weights", "ready-endpoints"),
    ("class", "west"),
    ("subnet-id", "other"),
    ("network-id", "nodes"),
    ("member-subnet-id", "other"),
    ("port-id", "port-1"),
    ("flavor-id", "large"),
    ("availability-zone", "az2"),
    ("floating-network-id", "public"),
    ("floating-subnet-id", "outside"),
    ("floating-subnet", "out*"),
    ("floating-subnet-tags", "outside-tag"),
    // As they are written back: the first id of the model is that of the load balancer.
    (annotations::ID, "id-1"),
    (annotations::ADDRESS, "203.0.113.1"),
    (annotations::INTERNAL, "true"),
    (annotations::SOURCE_RANGES, "10.0.0.0/8"),
];

fn full(name: &str) -> String {
    match name.contains('/') {
        true => name.to_owned(),
        false => format!("loadbalancer.openstack.org/{name}"),
    }
}

impl Model {
    /// The content without ids, which differ after something was created again.
    fn content(&self) -> Vec<String> {
        let mut all: Vec<String> = self
            .listeners
            .values()
            .map(|l| {
                let pool = l.default_pool_id.as_ref().map(|id| &self.pools[id]);
                let pool = pool.map(|pool| json!([pool.protocol, pool.lb_algorithm]));
                let limits = [
                    l.connection_limit,
                    l.timeout_client_data,
                    l.timeout_member_connect,
                    l.timeout_member_data,
                    l.timeout_tcp_inspect,
                ];
                let cidrs = &l.allowed_cidrs;
                json!([
                    l.protocol,
                    l.protocol_port,
                    cidrs,
                    limits,
                    l.insert_headers,
                    l.default_tls_container_ref,
                    pool
                ])
                .to_string()
            })
            .collect();
        let members = self.members.values();
        all.extend(members.map(|m| format!("{} {} {}", m.address, m.protocol_port, m.weight)));
        all.extend(self.monitors.values().map(|m| {
            format!(
                "{} {} {} {} {}",
                m.kind, m.delay, m.timeout, m.max_retries, m.max_retries_down
            )
        }));
        // One that is kept without a port is no part of the load balancer.
        let mut floating = self.floating_ips.values();
        let is_attached = floating.any(|ip| ip.port_id.is_some());
        all.push(format!("floating IP: {is_attached}"));
        all.sort();
        all
    }
}

#[test]
fn annotations_go_on_and_off_pairwise_in_any_order_and_leave_what_was_there_before() {
    let nodes: Vec<_> = (1..=2)
        .map(|index| {
            let mut node = (*node(index)).clone();
            let labels = node.metadata.labels.get_or_insert_default();
            let pool = if index == 1 { "fast" } else { "slow" };
            labels.insert("pool".to_owned(), pool.to_owned());
            Arc::new(node)
        })
        .collect();
    let service = |set: &[(&str, &str)]| -> Service {
        let pair = |(name, value): &(&str, &str)| (full(name), (*value).to_owned());
        let annotations: BTreeMap<_, _> = set.iter().map(pair).collect();
        let service = json!({"metadata": {"namespace": "default", "name": "web", "uid": "web", "annotations": annotations},
            "spec": {"type": "LoadBalancer", "ports": [{"protocol": "TCP", "port": 80, "nodePort": 30_080}]}});
        serde_json::from_value(service).unwrap()
    };
    let mut pairs = 0;
    for one in CHANGEABLE {
        for other in CHANGEABLE.iter().filter(|other| *other != one) {
            let mut model = Model::default();
            let mut go = |set: &[(&str, &str)]| {
                let service = service(set);
                let counts = [("node-1".to_owned(), 3), ("node-2".to_owned(), 1)].into();
                let weighting = match weights::are_asked(&service) {
                    true => weights::Weighting::By(counts),
                    false => weights::Weighting::Equal,
                };
                let taken = model.converge(&service, &nodes, false, &weighting);
                if taken.is_ok() {
                    assert_eq!(model.converge(&service, &nodes, false, &weighting), Ok(0));
                }
                model.content()
            };
            let before = go(&[]);
            go(&[*one]);
            let both = go(&[*one, *other]);
            go(&[*other]);
            // Whichever came first, both together are the same; what contradicts itself changes nothing.
            let swapped = go(&[*other, *one]);
            let rejects = Wishes::of(service(&[*one, *other]).annotations(), &conf(false)).is_err();
            assert!(rejects || both == swapped, "{one:?} {other:?}");
            go(&[*one]);
            assert_eq!(go(&[]), before, "{one:?} {other:?}");
            pairs += 1;
        }
    }
    assert_eq!(pairs, CHANGEABLE.len() * (CHANGEABLE.len() - 1));
}

fn conf(is_serial: bool) -> CloudConf {
    let conf = format!(
        "[Global]\nuse-clouds = true\n[LoadBalancer]\nprovider-requires-serial-api-calls = {is_serial}\n\
         [LoadBalancerClass \"west\"]\nmember-subnet-id = other\n"
    );
    CloudConf::parse(&conf).unwrap().conf
}

#[test]
fn no_annotation_is_missing_in_the_pairs() {
    let listed: Vec<_> = CHANGEABLE.iter().map(|(name, _)| full(name)).collect();
    for annotation in annotations::ANNOTATIONS {
        assert!(
            listed.contains(&annotation.name.to_owned()),
            "{}",
            annotation.name
        );
    }
    assert_eq!(listed.len(), annotations::ANNOTATIONS.len());
}
