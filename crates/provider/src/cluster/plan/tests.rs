//! Two properties of plans, against a cloud in memory: applied and planned again there is nothing left
//! to do; cut off anywhere and planned again, the end is the same, with nothing twice and nothing
//! left over.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::infra::v1beta2::{
    ApiServer, IdentityRef, IdentityType, LoadBalancer, ManagedSecurityGroups,
    OpenStackClusterSpec, SubnetSpec,
};
use openstack::View;
use openstack::inventory::{Resource, Table};
use openstack::loadbalancer as lb;
use openstack::network as net;
use proptest::prelude::*;

use super::{Plan, plan, plan_deletion};
use crate::cluster::desired::{ControlPlaneMachine, Desired, desired};
use crate::cluster::facts::facts;
use crate::cluster::observed::Observed;
use crate::cluster::request::{Request, deletion, request};
use crate::identity::{Identity, Mark};
use crate::names::Names;

/// A cloud that does at once what it is told, but for load balancers, which are pending until the
/// next [`Model::tick`].
#[derive(Debug, Default)]
struct Model {
    next: u32,
    networks: Vec<net::Network>,
    subnets: Vec<net::Subnet>,
    routers: Vec<net::Router>,
    ports: Vec<net::Port>,
    groups: Vec<net::SecurityGroup>,
    ips: Vec<net::FloatingIp>,
    balancers: Vec<lb::LoadBalancer>,
    listeners: Vec<lb::Listener>,
    pools: Vec<lb::Pool>,
    members: Vec<lb::Member>,
    monitors: Vec<lb::Monitor>,
    tagging: bool,
}

impl Model {
    fn new(tagging: bool) -> Self {
        let external = net::Network {
            id: "ext".into(),
            name: "public".into(),
            external: true,
            ..Default::default()
        };
        Self {
            networks: vec![external],
            tagging,
            ..Self::default()
        }
    }

    fn id(&mut self, what: &str) -> String {
        self.next += 1;
        format!("{what}-{}", self.next)
    }

    fn view(&self) -> Arc<View> {
        fn table<T: Resource>(items: &[T]) -> Arc<Table<T>> {
            Arc::new(Table::of(items.to_vec()))
        }
        let extensions = self.tagging.then(|| net::Extension {
            alias: "standard-attr-tag".into(),
            ..Default::default()
        });
        Arc::new(View {
            networks: table(&self.networks),
            subnets: table(&self.subnets),
            routers: table(&self.routers),
            ports: table(&self.ports),
            security_groups: table(&self.groups),
            floating_ips: table(&self.ips),
            load_balancers: table(&self.balancers),
            listeners: table(&self.listeners),
            pools: table(&self.pools),
            members: table(&self.members),
            monitors: table(&self.monitors),
            extensions: Arc::new(Table::of(extensions)),
            ..View::default()
        })
    }

    /// What was pending is through.
    fn tick(&mut self) {
        self.balancers
            .retain(|b| b.provisioning_status != "PENDING_DELETE");
        for balancer in &mut self.balancers {
            balancer.provisioning_status = "ACTIVE".into();
        }
        let alive = |id: &str| self.balancers.iter().any(|b| b.id == id);
        self.listeners.retain(|l| alive(&l.loadbalancers[0].id));
        self.pools.retain(|p| alive(&p.loadbalancers[0].id));
        self.ports
            .retain(|p| p.device_owner != "Octavia" || alive(&p.device_id));
    }

    fn changing(&mut self, id: &str) {
        let balancer = self.balancers.iter_mut().find(|b| b.id == id).unwrap();
        assert_eq!(
            balancer.provisioning_status, "ACTIVE",
            "changed while it is immutable"
        );
        balancer.provisioning_status = "PENDING_UPDATE".into();
    }

    fn listener(&mut self, balancer: &str, create: &lb::ListenerCreate) {
        let own = vec![lb::Reference {
            id: balancer.to_owned(),
        }];
        let pool = create.default_pool.as_ref().unwrap();
        let pool_id = self.id("pool");
        let monitor = pool.healthmonitor.as_ref().map(|monitor| {
            let id = self.id("monitor");
            self.monitors.push(lb::Monitor {
                id: id.clone(),
                delay: monitor.delay,
                timeout: monitor.timeout,
                max_retries: monitor.max_retries,
                max_retries_down: monitor.max_retries_down,
                ..Default::default()
            });
            id
        });
        self.pools.push(lb::Pool {
            id: pool_id.clone(),
            healthmonitor_id: monitor,
            loadbalancers: own.clone(),
            ..Default::default()
        });
        let id = self.id("listener");
        self.listeners.push(lb::Listener {
            id,
            protocol_port: create.protocol_port,
            allowed_cidrs: create.allowed_cidrs.clone().unwrap_or_default(),
            default_pool_id: Some(pool_id),
            loadbalancers: own,
            ..Default::default()
        });
    }

    #[allow(clippy::too_many_lines)] // One arm for each request.
    fn perform(&mut self, request: &Request) {
        match request.clone() {
            Request::CreateNetwork(create) => {
                let id = self.id("net");
                let description = create.description.unwrap();
                self.networks.push(net::Network {
                    id,
                    name: create.name,
                    description,
                    ..Default::default()
                });
            }
            Request::CreateSubnet(create) => {
                assert!(self.networks.iter().any(|n| n.id == create.network_id));
                let id = self.id("subnet");
                self.subnets.push(net::Subnet {
                    id,
                    network_id: create.network_id,
                    cidr: create.cidr,
                    dns_nameservers: create.dns_nameservers,
                    description: create.description.unwrap(),
                    ..Default::default()
                });
            }
            Request::UpdateSubnet(id, change) => {
                let subnet = self.subnets.iter_mut().find(|s| s.id == id).unwrap();
                subnet.dns_nameservers = change.dns_nameservers.unwrap();
            }
            Request::CreateRouter(create) => {
                let id = self.id("router");
                let gateway = create.external_gateway_info.unwrap();
                self.routers.push(net::Router {
                    id,
                    description: create.description.unwrap(),
                    external_gateway_info: Some(net::RouterGateway {
                        network_id: gateway.network_id,
                        external_fixed_ips: vec![net::FixedIp {
                            subnet_id: "ext-subnet".into(),
                            ip_address: "127.30.0.5".into(),
                        }],
                    }),
                    ..Default::default()
                });
            }
            Request::UpdateRouter(id, change) => {
                let router = self.routers.iter_mut().find(|r| r.id == id).unwrap();
                let gateway = change.external_gateway_info.unwrap();
                router.external_gateway_info = Some(net::RouterGateway {
                    network_id: gateway.network_id,
                    external_fixed_ips: gateway.external_fixed_ips,
                });
            }
            Request::AddInterface { router, subnet } => {
                let taken = self
                    .ports
                    .iter()
                    .any(|p| p.device_id == router && p.fixed_ips[0].subnet_id == subnet);
                assert!(!taken, "connected twice");
                let id = self.id("port");
                self.ports.push(net::Port {
                    id,
                    device_id: router,
                    device_owner: "network:router_interface".into(),
                    fixed_ips: vec![net::FixedIp {
                        subnet_id: subnet,
                        ip_address: "10.6.0.1".into(),
                    }],
                    ..Default::default()
                });
            }
            Request::CreateGroup(create) => {
                let id = self.id("group");
                // As Neutron does: with two rules already.
                let rules = ["IPv4", "IPv6"].map(|ether_type| net::SecurityGroupRule {
                    id: format!("{id}-{ether_type}"),
                    direction: "egress".into(),
                    ethertype: ether_type.into(),
                    ..Default::default()
                });
                self.groups.push(net::SecurityGroup {
                    id,
                    name: create.name,
                    description: create.description,
                    rules: rules.into(),
                    ..Default::default()
                });
            }
            Request::CreateRules(rules) => {
                for rule in rules {
                    let id = self.id("rule");
                    let group = self
                        .groups
                        .iter_mut()
                        .find(|g| g.id == rule.security_group_id)
                        .unwrap();
                    let new = net::SecurityGroupRule {
                        id,
                        security_group_id: rule.security_group_id,
                        direction: rule.direction,
                        ethertype: rule.ethertype.unwrap(),
                        protocol: rule.protocol,
                        port_range_min: rule.port_range_min,
                        port_range_max: rule.port_range_max,
                        remote_ip_prefix: rule.remote_ip_prefix,
                        remote_group_id: rule.remote_group_id,
                        ..Default::default()
                    };
                    let key = crate::cluster::rules::observed_key(&new);
                    let twice = group
                        .rules
                        .iter()
                        .any(|r| crate::cluster::rules::observed_key(r) == key);
                    assert!(!twice, "rule made twice: {key:?}");
                    group.rules.push(new);
                }
            }
            Request::DeleteRule { group, rule } => {
                let group = self.groups.iter_mut().find(|g| g.id == group).unwrap();
                group.rules.retain(|r| r.id != rule);
            }
            Request::CreateBalancer(create) => {
                let id = self.id("lb");
                let vip_port_id = self.id("port");
                self.ports.push(net::Port {
                    id: vip_port_id.clone(),
                    network_id: create.vip_network_id.clone().unwrap(),
                    device_id: id.clone(),
                    device_owner: "Octavia".into(),
                    fixed_ips: vec![net::FixedIp {
                        subnet_id: create.vip_subnet_id.clone().unwrap(),
                        ip_address: "10.6.0.9".into(),
                    }],
                    ..Default::default()
                });
                self.balancers.push(lb::LoadBalancer {
                    id: id.clone(),
                    description: create.description.clone().unwrap(),
                    provisioning_status: "PENDING_CREATE".into(),
                    vip_address: "10.6.0.9".into(),
                    vip_port_id,
                    ..Default::default()
                });
                for listener in &create.listeners {
                    self.listener(&id, listener);
                }
            }
            Request::CreateListener { balancer, listener } => {
                self.changing(&balancer);
                self.listener(&balancer, &listener);
            }
            Request::UpdateListener {
                balancer,
                id,
                change,
            } => {
                self.changing(&balancer);
                let listener = self.listeners.iter_mut().find(|l| l.id == id).unwrap();
                listener.allowed_cidrs = change.allowed_cidrs.unwrap();
            }
            Request::CreateMonitor { .. } => unreachable!("monitors come with the tree"),
            Request::UpdateMonitor {
                balancer,
                id,
                change,
            } => {
                self.changing(&balancer);
                let monitor = self.monitors.iter_mut().find(|m| m.id == id).unwrap();
                monitor.delay = change.delay.unwrap();
            }
            Request::SetMembers { pool, members } => {
                let balancer = self
                    .pools
                    .iter()
                    .find(|p| p.id == pool)
                    .unwrap()
                    .loadbalancers[0]
                    .id
                    .clone();
                self.changing(&balancer);
                self.members.retain(|m| m.pool_id != pool);
                for member in members {
                    let id = self.id("member");
                    self.members.push(lb::Member {
                        id,
                        address: member.address,
                        protocol_port: member.protocol_port,
                        pool_id: pool.clone(),
                        ..Default::default()
                    });
                }
            }
            Request::CreateFloatingIp(create) => {
                let id = self.id("fip");
                self.ips.push(net::FloatingIp {
                    id,
                    floating_ip_address: create
                        .floating_ip_address
                        .unwrap_or_else(|| "127.30.0.77".into()),
                    port_id: create.port_id,
                    description: create.description.unwrap(),
                    ..Default::default()
                });
            }
            Request::UpdateFloatingIp(id, change) => {
                let ip = self.ips.iter_mut().find(|ip| ip.id == id).unwrap();
                ip.port_id = change.port_id;
            }
            Request::Tag {
                collection,
                id,
                tags,
            } => match collection {
                "networks" => self.networks.iter_mut().find(|x| x.id == id).unwrap().tags = tags,
                "subnets" => self.subnets.iter_mut().find(|x| x.id == id).unwrap().tags = tags,
                "routers" => self.routers.iter_mut().find(|x| x.id == id).unwrap().tags = tags,
                "security-groups" => {
                    self.groups.iter_mut().find(|x| x.id == id).unwrap().tags = tags
                }
                _ => self.ips.iter_mut().find(|x| x.id == id).unwrap().tags = tags,
            },
            Request::DeleteBalancer(id) => {
                let balancer = self.balancers.iter_mut().find(|b| b.id == id).unwrap();
                balancer.provisioning_status = "PENDING_DELETE".into();
            }
            Request::DeleteFloatingIp(id) => self.ips.retain(|ip| ip.id != id),
            Request::RemoveInterface { router, subnet } => {
                assert!(
                    self.ips
                        .iter()
                        .all(|ip| ip.port_id.is_none() || ip.description.is_empty()),
                    "floating IPs need the interface"
                );
                self.ports
                    .retain(|p| p.device_id != router || p.fixed_ips[0].subnet_id != subnet);
            }
            Request::DeleteRouter(id) => {
                assert!(
                    self.ports.iter().all(|p| p.device_id != id),
                    "router in use"
                );
                self.routers.retain(|r| r.id != id);
            }
            Request::DeleteSubnet(id) => {
                let used = self
                    .ports
                    .iter()
                    .any(|p| p.fixed_ips.iter().any(|ip| ip.subnet_id == id));
                assert!(!used, "subnet in use");
                self.subnets.retain(|s| s.id != id);
            }
            Request::DeleteNetwork(id) => {
                assert!(
                    self.subnets.iter().all(|s| s.network_id != id),
                    "network in use"
                );
                self.networks.retain(|n| n.id != id);
            }
            Request::DeleteGroup(id) => self.groups.retain(|g| g.id != id),
            Request::DeletePort(id) => self.ports.retain(|p| p.id != id),
            Request::DeleteServer(_) | Request::DeleteVolume(_) => unreachable!("none here"),
        }
    }

    /// Everything there is, without ids.
    fn inventory(&self) -> BTreeMap<&'static str, usize> {
        BTreeMap::from([
            ("networks", self.networks.len()),
            ("subnets", self.subnets.len()),
            ("routers", self.routers.len()),
            ("ports", self.ports.len()),
            ("groups", self.groups.len()),
            ("rules", self.groups.iter().map(|g| g.rules.len()).sum()),
            ("ips", self.ips.len()),
            ("balancers", self.balancers.len()),
            ("listeners", self.listeners.len()),
            ("pools", self.pools.len()),
            ("members", self.members.len()),
        ])
    }
}

/// A cluster and the cloud around it.
#[derive(Debug)]
struct Scene {
    model: Model,
    spec: OpenStackClusterSpec,
    cluster: Identity,
    machines: Vec<ControlPlaneMachine>,
}

impl Scene {
    fn observed(&self) -> Observed {
        Observed::of(self.model.view(), self.cluster)
    }

    fn desired(&self) -> Desired {
        let names = Names::new("ns", "demo");
        let mark = Mark::cluster(self.cluster);
        let machines = self.machines.clone();
        let facts = facts(&self.spec, mark, names, &self.observed(), machines).unwrap();
        desired(&self.spec, &facts)
    }

    fn plan(&self) -> Plan {
        plan(&self.desired(), &self.observed())
    }

    /// Plans and applies until nothing is left; at most `budget` requests, then it is cut off.
    fn converge(&mut self, budget: &mut usize) -> bool {
        for _ in 0..30 {
            let plan = self.plan();
            if plan.is_empty() {
                return true;
            }
            for step in &plan.steps {
                if let Some(request) = request(step, &self.desired(), &self.observed()) {
                    if *budget == 0 {
                        return false;
                    }
                    *budget -= 1;
                    self.model.perform(&request);
                }
            }
            self.model.tick();
        }
        panic!("no end: {:?}", self.plan());
    }

    fn take_down(&mut self, budget: &mut usize) -> bool {
        for _ in 0..30 {
            let observed = self.observed();
            let plan = plan_deletion(&observed, None);
            if plan.is_empty() {
                assert!(observed.is_empty());
                return true;
            }
            for step in &plan.steps {
                if let Some(request) = deletion(step, &self.observed()) {
                    if *budget == 0 {
                        return false;
                    }
                    *budget -= 1;
                    self.model.perform(&request);
                }
            }
            self.model.tick();
        }
        panic!("no end: {:?}", plan_deletion(&self.observed(), None));
    }
}

prop_compose! {
    fn spec()(
        balanced in any::<bool>(),
        floating in any::<bool>(),
        external in any::<bool>(),
        groups in proptest::option::of(any::<bool>()),
        ports in proptest::collection::btree_set(8000..8010i32, 0..3),
        cidrs in proptest::collection::vec(Just("192.0.2.0/24".to_owned()), 0..2),
        tags in proptest::collection::vec("[a-z]{3}", 0..2),
    ) -> OpenStackClusterSpec {
        OpenStackClusterSpec {
            managed_subnets: vec![SubnetSpec { cidr: "10.6.0.0/24".into(), dns_nameservers: vec!["8.8.8.8".into()], ..Default::default() }],
            managed_network: None, managed_router: None, network: None, subnets: Vec::new(),
            primary_subnet: None, router: None, external_network: None,
            enable_external_network: Some(external),
            api_server: Some(ApiServer {
                enable_floating_ip: Some(floating),
                managed_load_balancer: Some(LoadBalancer {
                    enabled: balanced,
                    additional_ports: ports.into_iter().collect(),
                    allowed_cidrs: cidrs,
                    ..Default::default()
                }),
                fixed_ip: Some("10.6.0.9".into()),
                ..Default::default()
            }),
            managed_security_groups: groups.map(|all| ManagedSecurityGroups { allow_all_in_cluster_traffic: all, ..Default::default() }),
            tags, control_plane_endpoint: None, control_plane_availability_zones: Vec::new(),
            control_plane_omit_availability_zone: None, bastion: None,
            identity_ref: IdentityRef { type_: IdentityType::Secret, name: "s".into(), cloud_name: "c".into(), region: None },
        }
    }
}

prop_compose! {
    fn scene()(spec in spec(), tagging in any::<bool>(), machines in 0..3usize, foreign in any::<bool>()) -> Scene {
        let mut model = Model::new(tagging);
        if foreign {
            // The same names, and another cluster's mark: none of our business.
            let other = Mark::cluster(Identity::new());
            let names = Names::new("ns", "demo");
            model.networks.push(net::Network { id: "a-net".into(), name: names.network(), description: other.description("x"), ..Default::default() });
            model.ips.push(net::FloatingIp { id: "a-fip".into(), floating_ip_address: "127.30.0.9".into(), ..Default::default() });
        }
        let machines = (0..machines).map(|i| ControlPlaneMachine {
            name: format!("cp-{i}"), address: format!("10.6.0.1{i}"), port_id: format!("cp-port-{i}"),
        }).collect();
        Scene { model, spec, cluster: Identity::new(), machines }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn a_plan_that_was_applied_leaves_nothing_to_do(mut scene in scene()) {
        prop_assert!(scene.converge(&mut usize::MAX.clone()));
        prop_assert!(scene.plan().is_empty());
    }

    #[test]
    fn a_plan_cut_off_anywhere_converges_to_the_same_end(scene in scene(), cuts in proptest::collection::vec(0..12usize, 0..6)) {
        let mut straight = Scene { model: Model::new(scene.model.tagging), spec: scene.spec.clone(), cluster: scene.cluster, machines: scene.machines.clone() };
        straight.model.networks = scene.model.networks.clone();
        straight.model.ips = scene.model.ips.clone();
        let before = scene.model.inventory();
        straight.converge(&mut usize::MAX.clone());
        let mut scene = scene;
        for mut budget in cuts.clone() {
            scene.converge(&mut budget);
        }
        scene.converge(&mut usize::MAX.clone());
        prop_assert_eq!(scene.model.inventory(), straight.model.inventory());
        for mut budget in cuts {
            scene.take_down(&mut budget);
        }
        scene.take_down(&mut usize::MAX.clone());
        scene.model.members.clear();
        prop_assert_eq!(scene.model.inventory(), before);
    }

    #[test]
    fn a_half_made_cluster_can_be_taken_down(mut scene in scene(), budget in 0..40usize) {
        let before = scene.model.inventory();
        scene.converge(&mut budget.clone());
        scene.take_down(&mut usize::MAX.clone());
        scene.model.members.clear();
        prop_assert_eq!(scene.model.inventory(), before);
    }
}
