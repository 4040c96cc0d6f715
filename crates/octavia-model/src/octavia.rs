//! A model of Octavia and of floating IPs, which rejects what they reject.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use openstack::inventory::Table;
use openstack::loadbalancer::{
    Listener, ListenerCreate, LoadBalancer, Member, MemberCreate, Monitor, MonitorCreate, Pool,
    PoolCreate, Reference,
};
use openstack::network::{FixedIp, FloatingIp, Network, Port, Subnet};
use serde_json::{Value, json};

use super::super::desired::{Desired, Facts};
use super::super::observed::Observed;
use super::super::plan::Step;
use super::super::*;
use cloud_conf::{CloudConf, Program};

/// An Octavia, and a Neutron with floating IPs.
#[derive(Clone, Debug, Default)]
pub(super) struct Model {
    next: u32,
    pub(super) balancers: BTreeMap<String, LoadBalancer>,
    pub(super) listeners: BTreeMap<String, Listener>,
    pub(super) pools: BTreeMap<String, Pool>,
    pub(super) members: BTreeMap<String, Member>,
    pub(super) monitors: BTreeMap<String, Monitor>,
    pub(super) floating_ips: BTreeMap<String, FloatingIp>,
    /// How many load balancers still end in ERROR when they are created.
    pub(super) failures: usize,
}

/// A Service, and what its load balancer depends on.
#[derive(Clone, Debug)]
pub(super) struct Scene {
    pub(super) model: Model,
    pub(super) service: Service,
    pub(super) nodes: Vec<Arc<Node>>,
    pub(super) is_serial: bool,
    pub(super) weighting: weights::Weighting,
}

impl Scene {
    pub(super) fn identity(&self) -> Identity {
        Identity::of(&self.service, "kubernetes", "cluster")
    }

    pub(super) fn observed(&self) -> Option<Observed> {
        self.look().0
    }

    pub(super) fn desired(&self) -> Result<Desired, String> {
        self.look().1
    }

    /// What is there, and what the Service asks for then, or why it is rejected.
    fn look(&self) -> (Option<Observed>, Result<Desired, String>) {
        let (view, identity) = (self.model.view(), self.identity());
        let found = observed::find(&self.service, &identity, &view).unwrap();
        let observed = found.as_ref();
        let facts = Facts {
            nodes: &self.nodes,
            view: &view,
            conf: conf(self.is_serial),
            existing: observed.map(|observed| &*observed.balancer),
            has_floating_ip: observed.is_some_and(|observed| observed.floating_ip.is_some()),
            octavia: Octavia {
                has_additional_vips: true,
                has_http_on_udp: true,
            },
            weights: &weights::Current {
                weighting: self.weighting.clone(),
                ..weights::Current::default()
            },
        };
        let desired = desired::of(&self.service, &identity, &facts);
        (found, desired.map_err(|rejection| rejection.message))
    }

    /// The steps as `round` chooses them; none of a Service that is rejected.
    fn steps(&self, desired: &Desired, observed: Option<&Observed>) -> Vec<Step> {
        let check = |observed| sharing::check(desired, observed, &self.identity(), 2);
        match observed.map(check) {
            None | Some(Ok(())) => plan::steps(desired, observed),
            Some(Err(_)) => {
                let guest = observed.filter(|observed| observed.role == observed::Role::Guest);
                let kept = guest.map(|observed| {
                    let mut steps = plan::upkeep(desired, observed);
                    steps.extend(plan::leftovers(desired, observed));
                    steps
                });
                kept.unwrap_or_default()
            }
        }
    }
}

impl converging::World for Scene {
    type Step = Step;
    type State = Vec<String>;

    fn plan(&self) -> Vec<Step> {
        let (observed, Ok(desired)) = self.look() else {
            return Vec::new();
        };
        let steps = self.steps(&desired, observed.as_ref());
        assert!(!self.is_serial || !steps.iter().any(is_bulk), "{steps:?}");
        let status = observed.map_or(String::new(), |it| it.balancer.provisioning_status.clone());
        let (mut all, next, _) = plan::due(steps, &status);
        all.extend(next);
        all
    }

    fn take(&mut self, step: Step) {
        let observed = self.observed();
        let balancer = observed.map_or(String::new(), |observed| observed.balancer.id.clone());
        self.model.take(&balancer, step);
    }

    fn pass(&mut self) -> bool {
        self.model.pass()
    }

    fn state(&self) -> Vec<String> {
        self.model.everything()
    }
}

impl Model {
    pub(super) fn id(&mut self) -> String {
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
        if step.needs_balancer() && !matches!(step, Step::DeleteBroken(_)) {
            let known = self.balancers.get_mut(balancer).unwrap();
            assert_eq!(known.provisioning_status, "ACTIVE", "immutable: {step:?}");
            known.provisioning_status = "PENDING_UPDATE".to_owned();
        }
        match step {
            Step::Create(tree) => {
                let mut others = self.balancers.values();
                let is_second = others.any(|other| other.tags == tree.tags);
                assert!(!is_second, "a second load balancer");
                let id = self.id();
                let listeners = tree.listeners.clone();
                self.balancers.insert(
                    id.clone(),
                    LoadBalancer {
                        id: id.clone(),
                        name: tree.name,
                        provisioning_status: "PENDING_CREATE".to_owned(),
                        vip_port_id: format!("vip-{id}"),
                        vip_subnet_id: tree.vip_subnet_id.unwrap_or_default(),
                        tags: tree.tags,
                        ..LoadBalancer::default()
                    },
                );
                for listener in listeners {
                    self.listener(&id, listener);
                }
            }
            Step::DeleteBroken(id) => {
                let broken = self.balancers.get_mut(&id).unwrap();
                assert_eq!(broken.provisioning_status, "ERROR");
                broken.provisioning_status = "PENDING_DELETE".to_owned();
            }
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
            Step::DeletePool(id) => self.delete_pool(&id),
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
            Step::CreateFloatingIp { port, floating } => {
                self.check_free(&port);
                let id = self.id();
                let address = floating.address.unwrap_or_else(|| "203.0.113.1".to_owned());
                let new = FloatingIp {
                    id: id.clone(),
                    floating_ip_address: address,
                    port_id: Some(port),
                    description:
                        "Floating IP for Kubernetes external service x (ferrostack-service=web)"
                            .to_owned(),
                    ..FloatingIp::default()
                };
                self.floating_ips.insert(id, new);
            }
            Step::AttachFloatingIp { id, port } => {
                self.check_free(&port);
                self.floating_ips.get_mut(&id).unwrap().port_id = Some(port);
            }
            Step::DetachFloatingIp(id) => self.floating_ips.get_mut(&id).unwrap().port_id = None,
            Step::DeleteFloatingIp(id) => drop(self.floating_ips.remove(&id).unwrap()),
        }
    }

    /// Neutron associates one floating IP with an address.
    fn check_free(&self, port: &str) {
        let mut all = self.floating_ips.values();
        let is_taken = all.any(|ip| ip.port_id.as_deref() == Some(port));
        assert!(!is_taken, "a second floating IP on {port}");
    }

    /// Completes what is pending. Returns whether anything was.
    fn pass(&mut self) -> bool {
        let mut has_changed = false;
        let is_going = |it: &&LoadBalancer| it.provisioning_status == "PENDING_DELETE";
        let going: Vec<_> = self.balancers.values().filter(is_going).cloned().collect();
        for balancer in going {
            has_changed = true;
            self.balancers.remove(&balancer.id);
            let stays = |parents: &[Reference]| parents[0].id != balancer.id;
            self.listeners.retain(|_, it| stays(&it.loadbalancers));
            let pools = self.pools.values().filter(|it| !stays(&it.loadbalancers));
            let pools: Vec<_> = pools.map(|it| it.id.clone()).collect();
            pools.iter().for_each(|id| self.delete_pool(id));
            for ip in self.floating_ips.values_mut() {
                // With the port goes the association.
                let port = ip.port_id.take();
                ip.port_id = port.filter(|port| *port != balancer.vip_port_id);
            }
        }
        for balancer in self.balancers.values_mut() {
            let next = match balancer.provisioning_status.as_str() {
                "PENDING_CREATE" if self.failures > 0 => "ERROR",
                "PENDING_CREATE" | "PENDING_UPDATE" => "ACTIVE",
                _ => continue,
            };
            self.failures -= usize::from(next == "ERROR");
            balancer.provisioning_status = next.to_owned();
            has_changed = true;
        }
        has_changed
    }

    pub(super) fn delete_pool(&mut self, id: &str) {
        self.pools.remove(id).unwrap();
        self.members.retain(|_, member| *member.pool_id != *id);
        self.monitors.retain(|_, monitor| monitor.pools[0].id != id);
        for listener in self.listeners.values_mut() {
            let pool = listener.default_pool_id.take();
            listener.default_pool_id = pool.filter(|pool| pool != id);
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

    pub(super) fn listener(&mut self, balancer: &str, wanted: ListenerCreate) {
        let port = wanted.protocol_port;
        let clash = self.listeners.values().any(|other| {
            other.loadbalancers[0].id == balancer
                && other.protocol_port == port
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

    /// Plans and takes steps until nothing is left to do. Returns the number of steps, or the rejection.
    pub(super) fn converge(
        &mut self,
        service: &Service,
        nodes: &[Arc<Node>],
        is_serial: bool,
        weighting: &weights::Weighting,
    ) -> Result<usize, String> {
        let mut scene = Scene {
            model: self.clone(),
            service: service.clone(),
            nodes: nodes.to_vec(),
            is_serial,
            weighting: weighting.clone(),
        };
        scene.desired()?;
        let taken = converging::settle(&mut scene);
        scene.model.check(&scene.desired()?);
        *self = scene.model;
        Ok(taken)
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

pub(super) fn node(index: usize) -> Arc<Node> {
    let node = json!({
        "metadata": {"name": format!("node-{index}")},
        "spec": {"providerID": format!("openstack:///server-{index}")},
        "status": {"addresses": [{"type": "InternalIP", "address": format!("10.0.0.{index}")}]},
    });
    Arc::new(serde_json::from_value(node).unwrap())
}

pub(super) fn conf(is_serial: bool) -> &'static CloudConf {
    static ALL: LazyLock<[CloudConf; 2]> = LazyLock::new(|| [false, true].map(parsed));
    &ALL[usize::from(is_serial)]
}

fn parsed(is_serial: bool) -> CloudConf {
    let conf = format!(
        "[Global]\nuse-clouds = true\n[LoadBalancer]\nprovider-requires-serial-api-calls = {is_serial}\n\
         [LoadBalancerClass \"west\"]\nmember-subnet-id = other\n"
    );
    CloudConf::parse(&conf, Program::CloudControllerManager)
        .unwrap()
        .conf
}

impl Model {
    /// Everything, without ids.
    pub(super) fn everything(&self) -> Vec<String> {
        let balancers = self.balancers.values();
        let mut all: Vec<String> = balancers.flat_map(|it| self.tree(&it.id)).collect();
        let floating = self.floating_ips.values();
        all.extend(floating.map(|ip| {
            let balancers = self.balancers.values();
            let port = |it: &&LoadBalancer| Some(&it.vip_port_id) == ip.port_id.as_ref();
            let of = balancers.filter(port).map(|it| &it.name).next();
            format!("{} {} {of:?}", ip.floating_ip_address, ip.description)
        }));
        all.sort();
        all
    }

    /// A load balancer with its parts, without ids.
    pub(super) fn tree(&self, balancer: &str) -> Vec<String> {
        let is_part = |parents: &[Reference]| parents[0].id == balancer;
        let known = &self.balancers[balancer];
        let tags: std::collections::BTreeSet<_> = known.tags.iter().collect();
        let status = &known.provisioning_status;
        let mut all = vec![format!("{} {tags:?} {status}", known.name)];
        let listeners = self
            .listeners
            .values()
            .filter(|it| is_part(&it.loadbalancers));
        all.extend(listeners.map(|listener| {
            let pool = listener.default_pool_id.as_ref();
            let pool = pool.map(|id| self.pools[id].name.clone());
            let listener = Listener {
                id: String::new(),
                default_pool_id: pool,
                loadbalancers: Vec::new(),
                ..listener.clone()
            };
            format!("{} {listener:?}", known.name)
        }));
        for pool in self.pools.values().filter(|it| is_part(&it.loadbalancers)) {
            let (id, name) = (&pool.id, &pool.name);
            let members = self.members.values().filter(|it| *it.pool_id == *id);
            all.extend(members.map(|member| {
                let member = Member {
                    id: String::new(),
                    pool_id: "".into(),
                    ..member.clone()
                };
                format!("{} {name} {member:?}", known.name)
            }));
            let monitors = self.monitors.values().filter(|it| it.pools[0].id == *id);
            all.extend(monitors.map(|monitor| {
                let monitor = Monitor {
                    id: String::new(),
                    pools: Vec::new(),
                    ..monitor.clone()
                };
                format!("{} {name} {monitor:?}", known.name)
            }));
            let pool = Pool {
                id: String::new(),
                loadbalancers: Vec::new(),
                ..pool.clone()
            };
            all.push(format!("{} {pool:?}", known.name));
        }
        all
    }
}
