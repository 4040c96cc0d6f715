//! Load balancers and parts, and the rules for changes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use load_balancing::{Step, transport};
use openstack::View;
use openstack::inventory::Table;
use openstack::loadbalancer::{
    Listener, ListenerCreate, LoadBalancer, LoadBalancerCreate, Member, MemberCreate, Monitor,
    MonitorCreate, Pool, PoolCreate, Provider, Reference,
};
use serde_json::Value;

/// [`LoadBalancer`]s, [`Listener`]s, [`Pool`]s, [`Member`]s and [`Monitor`]s by id.
#[derive(Clone, Debug, Default)]
pub struct Octavia {
    next: u32,
    /// Load balancers.
    pub balancers: BTreeMap<String, LoadBalancer>,
    /// Listeners.
    pub listeners: BTreeMap<String, Listener>,
    /// Pools.
    pub pools: BTreeMap<String, Pool>,
    /// Members.
    pub members: BTreeMap<String, Member>,
    /// Health monitors.
    pub monitors: BTreeMap<String, Monitor>,
    /// Driver of new load balancers for which nobody names one: `ovn`, or that of amphorae if empty.
    pub default_driver: String,
    /// Number of further creations with the end ERROR.
    pub failures: usize,
}

impl Octavia {
    /// A new id.
    pub fn id(&mut self) -> String {
        self.next += 1;
        format!("id-{}", self.next)
    }

    /// `view` with the tables of the load balancers and providers.
    pub fn view(&self, view: View) -> View {
        let provider = |name: &str| Provider {
            name: name.to_owned(),
            ..Provider::default()
        };
        let names = BTreeSet::from(["amphora", "octavia", self.default_driver.as_str()]);
        let names = names.into_iter().filter(|name| !name.is_empty());
        View {
            providers: Arc::new(Table::from_items(names.map(provider))),
            load_balancers: Arc::new(Table::from_items(self.balancers.values().cloned())),
            listeners: Arc::new(Table::from_items(self.listeners.values().cloned())),
            pools: Arc::new(Table::from_items(self.pools.values().cloned())),
            members: Arc::new(Table::from_items(self.members.values().cloned())),
            monitors: Arc::new(Table::from_items(self.monitors.values().cloned())),
            ..view
        }
    }

    /// Begins a change of a load balancer.
    ///
    /// # Panics
    /// If the load balancer is immutable.
    pub fn begin_change(&mut self, balancer: &str) {
        let known = self.balancers.get_mut(balancer).unwrap();
        assert_eq!(known.provisioning_status, "ACTIVE", "immutable");
        known.provisioning_status = "PENDING_UPDATE".to_owned();
    }

    /// Begins the deletion of a load balancer.
    ///
    /// # Panics
    /// If the load balancer is immutable.
    pub fn begin_deletion(&mut self, balancer: &str) {
        let known = self.balancers.get_mut(balancer).unwrap();
        let status = &known.provisioning_status;
        assert!(matches!(status.as_str(), "ACTIVE" | "ERROR"), "{status}");
        known.provisioning_status = "PENDING_DELETE".to_owned();
    }

    /// Creates a load balancer with the parts of a tree. Returns the id. The port of the virtual address is `vip-ID`.
    ///
    /// # Panics
    /// If Octavia would reject a part.
    pub fn create(&mut self, tree: &LoadBalancerCreate) -> String {
        let id = self.id();
        let balancer = LoadBalancer {
            id: id.clone(),
            name: tree.name.clone(),
            description: tree.description.clone().unwrap_or_default(),
            provisioning_status: "PENDING_CREATE".to_owned(),
            provider: tree.provider.clone().unwrap_or(self.default_driver.clone()),
            vip_address: tree.vip_address.clone().unwrap_or_default(),
            vip_port_id: format!("vip-{id}"),
            vip_network_id: tree.vip_network_id.clone().unwrap_or_default(),
            vip_subnet_id: tree.vip_subnet_id.clone().unwrap_or_default(),
            tags: tree.tags.clone(),
            ..LoadBalancer::default()
        };
        self.balancers.insert(id.clone(), balancer);
        for listener in tree.listeners.clone() {
            self.listener(&id, listener);
        }
        id
    }

    /// Executes a step about a load balancer.
    ///
    /// # Panics
    /// If Octavia would reject the step.
    pub fn take(&mut self, balancer: &str, step: Step) {
        if !matches!(step, Step::Create(_)) {
            self.begin_change(balancer);
        }
        match step {
            Step::Create(tree) => drop(self.create(&tree)),
            Step::CreateListener(listener) => {
                assert_eq!(listener.default_pool, None, "Octavia answers with 500");
                self.listener(balancer, *listener);
            }
            Step::UpdateListener { id, change } => {
                let listener = self.listeners.get_mut(&id).unwrap();
                if let Some(cidrs) = change.allowed_cidrs {
                    assert!(
                        !self.balancers[balancer].is_of_ovn() || cidrs.is_empty(),
                        "501"
                    );
                    compatible(&self.balancers[balancer], &cidrs);
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
                assert!(pool.members.is_empty(), "Octavia answers with 500");
                assert_eq!(pool.healthmonitor, None, "Octavia answers with 500");
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
            Step::DeleteMonitor(id) => self.delete_monitor(&id),
        }
    }

    /// Completes pending changes and deletions. Returns true if anything was pending.
    pub fn pass(&mut self) -> bool {
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

    /// Deletes a pool with members and health monitor.
    ///
    /// # Panics
    /// If there is no such pool.
    pub fn delete_pool(&mut self, id: &str) {
        self.pools.remove(id).unwrap();
        self.members.retain(|_, member| *member.pool_id != *id);
        self.monitors.retain(|_, monitor| monitor.pools[0].id != id);
        for listener in self.listeners.values_mut() {
            let pool = listener.default_pool_id.take();
            listener.default_pool_id = pool.filter(|pool| pool != id);
        }
    }

    /// Deletes a health monitor.
    ///
    /// # Panics
    /// If there is no such monitor.
    pub fn delete_monitor(&mut self, id: &str) {
        let monitor = self.monitors.remove(id).unwrap();
        let pool = self.pools.get_mut(&monitor.pools[0].id).unwrap();
        pool.healthmonitor_id = None;
    }

    /// Replaces all members. Existing members stay, in the same subnet.
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

    /// Creates a listener, with a pool if wanted. Returns the id.
    ///
    /// # Panics
    /// If Octavia would reject one of them.
    pub fn listener(&mut self, balancer: &str, wanted: ListenerCreate) -> String {
        let cidrs = wanted.allowed_cidrs.as_deref().unwrap_or_default();
        assert!(
            !self.balancers[balancer].is_of_ovn() || cidrs.is_empty(),
            "501"
        );
        compatible(&self.balancers[balancer], cidrs);
        let port = wanted.protocol_port;
        let clash = self.listeners.values().any(|other| {
            other.loadbalancers[0].id == balancer
                && other.protocol_port == port
                && transport(&other.protocol) == transport(&wanted.protocol)
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
        self.listeners.insert(id.clone(), listener);
        id
    }

    fn pool(&mut self, balancer: &str, wanted: PoolCreate) -> String {
        let has_algorithm = wanted.lb_algorithm == "SOURCE_IP_PORT";
        assert!(
            !self.balancers[balancer].is_of_ovn() || has_algorithm,
            "501"
        );
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
        self.monitors.insert(id.clone(), monitor);
        self.pools.get_mut(pool).unwrap().healthmonitor_id = Some(id);
    }

    /// A load balancer with all parts, without ids.
    ///
    /// # Panics
    /// If there is no such load balancer.
    pub fn tree(&self, balancer: &str) -> Vec<String> {
        let is_part = |parents: &[Reference]| parents[0].id == balancer;
        let known = &self.balancers[balancer];
        let tags: BTreeSet<_> = known.tags.iter().collect();
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
                healthmonitor_id: None,
                loadbalancers: Vec::new(),
                ..pool.clone()
            };
            all.push(format!("{} {pool:?}", known.name));
        }
        all
    }
}

/// The driver of a load balancer.
trait Driven {
    /// True for the driver OVN, which has neither ranges of clients nor a second algorithm.
    fn is_of_ovn(&self) -> bool;
}

impl Driven for LoadBalancer {
    fn is_of_ovn(&self) -> bool {
        self.provider == "ovn"
    }
}

/// Octavia rejects ranges of another address family than the family of the virtual address.
fn compatible(balancer: &LoadBalancer, cidrs: &[String]) {
    let vip = &balancer.vip_address;
    for cidr in cidrs.iter().filter(|_| !vip.is_empty()) {
        assert_eq!(cidr.contains(':'), vip.contains(':'), "{cidr} with {vip}");
    }
}

fn reference(id: &str) -> Vec<Reference> {
    vec![Reference { id: id.to_owned() }]
}

fn strings(headers: BTreeMap<String, String>) -> serde_json::Map<String, Value> {
    let pair = |(name, value)| (name, Value::String(value));
    headers.into_iter().map(pair).collect()
}
