//! A cloud in memory for the properties of plans.

use std::collections::BTreeMap;
use std::sync::Arc;

use octavia_model::Octavia;
use openstack::View;
use openstack::compute::ServerGroup;
use openstack::inventory::{Resource, Table};
use openstack::loadbalancer as lb;
use openstack::network as net;

use crate::cluster::request::Request;

/// A subnet pool of each family.
fn pools() -> [net::SubnetPool; 2] {
    let pool = |name: &str, version, prefix: &str, lengths: [u8; 2]| net::SubnetPool {
        id: name.into(),
        name: name.into(),
        ip_version: version,
        prefixes: vec![prefix.into()],
        default_prefixlen: lengths[0],
        min_prefixlen: lengths[0],
        max_prefixlen: lengths[1],
        ..Default::default()
    };
    [
        pool("pool-four", 4, "10.0.0.0/8", [24, 30]),
        pool("pool-six", 6, "fd00::/16", [64, 64]),
    ]
}

/// Octavia's zones.
fn zones() -> [lb::LbZone; 3] {
    ["az1", "az2", "off"].map(|name| lb::LbZone {
        name: name.into(),
        enabled: name != "off",
    })
}

/// A cloud that executes each request at once, except that load balancers are pending until the next [`Model::tick`].
#[derive(Clone, Debug, Default)]
pub(super) struct Model {
    pub(super) next: u32,
    pub(super) networks: Vec<net::Network>,
    pub(super) subnets: Vec<net::Subnet>,
    pub(super) routers: Vec<net::Router>,
    pub(super) ports: Vec<net::Port>,
    pub(super) groups: Vec<net::SecurityGroup>,
    pub(super) ips: Vec<net::FloatingIp>,
    pub(super) octavia: Octavia,
    pub(super) server_groups: Vec<ServerGroup>,
    pub(super) tagging: bool,
}

impl Model {
    pub(super) fn new(tagging: bool) -> Self {
        let external = net::Network {
            id: "ext".into(),
            name: "public".into(),
            external: true,
            ..Default::default()
        };
        let network = net::Network {
            id: "theirs".into(),
            name: "theirs".into(),
            ..Default::default()
        };
        let subnet = |id: &str, network: &str, cidr: &str| net::Subnet {
            id: id.into(),
            name: id.into(),
            network_id: network.into(),
            cidr: cidr.into(),
            ..Default::default()
        };
        let router = net::Router {
            id: "their-router".into(),
            name: "their-router".into(),
            ..Default::default()
        };
        Self {
            networks: vec![external, network],
            subnets: vec![
                subnet("ext-subnet", "ext", "127.30.0.0/24"),
                subnet("four", "theirs", "10.6.0.0/24"),
                subnet("six", "theirs", "2001:db8::/64"),
            ],
            routers: vec![router],
            tagging,
            ..Self::default()
        }
    }

    pub(super) fn id(&mut self, what: &str) -> String {
        self.next += 1;
        format!("{what}-{}", self.next)
    }

    pub(super) fn view(&self) -> Arc<View> {
        fn table<T: Resource>(items: &[T]) -> Arc<Table<T>> {
            Arc::new(Table::from_items(items.to_vec()))
        }
        let extensions = self.tagging.then(|| net::Extension {
            alias: "standard-attr-tag".into(),
            ..Default::default()
        });
        Arc::new(self.octavia.view(View {
            networks: table(&self.networks),
            subnets: table(&self.subnets),
            routers: table(&self.routers),
            ports: table(&self.ports),
            security_groups: table(&self.groups),
            floating_ips: table(&self.ips),
            subnet_pools: table(&pools()),
            server_groups: table(&self.server_groups),
            lb_zones: table(&zones()),
            extensions: Arc::new(Table::from_items(extensions)),
            ..View::default()
        }))
    }

    /// Completes what is pending.
    pub(super) fn tick(&mut self) {
        self.octavia.pass();
        let alive = |id: &str| self.octavia.balancers.contains_key(id);
        self.ports
            .retain(|p| p.device_owner != "Octavia" || alive(&p.device_id));
    }

    #[allow(clippy::too_many_lines)] // One arm for each request.
    pub(super) fn perform(&mut self, request: &Request) {
        match request.clone() {
            Request::CreateNetwork(create) => {
                let id = self.id("net");
                let description = create.description.unwrap();
                self.networks.push(net::Network {
                    id,
                    name: create.name,
                    description,
                    mtu: create.mtu.unwrap_or(1442),
                    ..Default::default()
                });
            }
            Request::UpdateNetwork(id, change) => {
                let network = self.networks.iter_mut().find(|n| n.id == id).unwrap();
                network.mtu = change.mtu.unwrap_or(network.mtu);
                network.admin_state_up = change.admin_state_up.or(network.admin_state_up);
            }
            Request::CreateSubnet(create) => {
                assert!(self.networks.iter().any(|n| n.id == create.network_id));
                let id = self.id("subnet");
                let next = self.next;
                let cidr = match create.subnetpool_id.as_deref() {
                    Some("pool-four") => format!("10.{}.{}.0/24", 16 + next / 256, next % 256),
                    Some("pool-six") => format!("fd00:{next:x}::/64"),
                    _ => create.cidr,
                };
                self.subnets.push(net::Subnet {
                    id,
                    network_id: create.network_id,
                    cidr,
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
                    external_gateway_info: Some(gateway_of(gateway)),
                    ..Default::default()
                });
            }
            Request::UpdateRouter(id, change) => {
                let router = self.routers.iter_mut().find(|r| r.id == id).unwrap();
                if let Some(gateway) = change.external_gateway_info {
                    router.external_gateway_info = Some(gateway_of(gateway));
                }
                router.routes = change.routes.unwrap_or(std::mem::take(&mut router.routes));
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
                // As in Neutron, a new group has two rules.
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
                self.next += 1;
                let subnet = create.vip_subnet_id.clone().unwrap();
                let cidr = &self.subnets.iter().find(|s| s.id == subnet).unwrap().cidr;
                let any = match cidr.contains(':') {
                    true => format!("2001:db8::{}", self.next),
                    false => format!("10.6.0.{}", self.next),
                };
                let address = create.vip_address.clone().unwrap_or(any);
                let taken =
                    |port: &net::Port| port.fixed_ips.iter().any(|ip| ip.ip_address == address);
                if self.ports.iter().any(taken) {
                    return;
                }
                let network = create.vip_network_id.clone().unwrap();
                let create = lb::LoadBalancerCreate {
                    vip_address: Some(address.clone()),
                    ..*create
                };
                let id = self.octavia.create(&create);
                self.ports.push(net::Port {
                    id: self.octavia.balancers[&id].vip_port_id.clone(),
                    network_id: network,
                    device_id: id,
                    device_owner: "Octavia".into(),
                    fixed_ips: vec![net::FixedIp {
                        subnet_id: subnet,
                        ip_address: address,
                    }],
                    ..Default::default()
                });
            }
            Request::ChangeBalancer { balancer, step } => self.octavia.take(&balancer, *step),
            Request::CreateFloatingIp(create) => {
                if create.port_id.is_some()
                    && self.ips.iter().any(|ip| ip.port_id == create.port_id)
                {
                    return;
                }
                let id = self.id("fip");
                let any = format!("127.30.0.{}", 100 + self.next % 100);
                self.ips.push(net::FloatingIp {
                    id,
                    floating_ip_address: create.floating_ip_address.unwrap_or(any),
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
            Request::CreateServerGroup { name, policy } => {
                let id = self.id("server-group");
                let policies = vec![policy.as_str().to_owned()];
                self.server_groups.push(ServerGroup {
                    id,
                    name,
                    policies,
                    ..Default::default()
                });
            }
            Request::DeleteServerGroup(id) => {
                self.server_groups.retain(|group| group.id != id);
            }
            Request::DeleteBalancer(id) => self.octavia.begin_deletion(&id),
            Request::DeleteFloatingIp(id) => self.ips.retain(|ip| ip.id != id),
            Request::RemoveInterface { router, subnet } => {
                let needs = |ip: &net::FloatingIp| {
                    let id = ip.port_id.as_ref().filter(|_| !ip.description.is_empty());
                    id.is_some_and(|id| {
                        let port = self.ports.iter().find(|port| port.id == *id);
                        // The ports of machines are not in the model: they are in this subnet.
                        port.is_none_or(|port| port.fixed_ips[0].subnet_id == subnet)
                    })
                };
                assert!(
                    !self.ips.iter().any(needs),
                    "floating IPs need the interface"
                );
                let router_of = self.routers.iter().find(|r| r.id == router);
                assert!(
                    router_of.is_none_or(|r| r.routes.is_empty()),
                    "the interface is required by routes"
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
            Request::DeleteGroup(id) => {
                let used = |port: &net::Port| port.security_groups.contains(&id);
                assert!(!self.ports.iter().any(used), "security group in use");
                self.groups.retain(|g| g.id != id);
            }
            Request::DeletePort(id) => self.ports.retain(|p| p.id != id),
            Request::DeleteServer(_) | Request::DeleteVolume(_) => unreachable!("none here"),
        }
    }

    /// Whether a request creates a resource of which the cloud accepts duplicates.
    pub(super) fn creates(request: &Request) -> bool {
        matches!(
            request,
            Request::CreateNetwork(_)
                | Request::CreateRouter(_)
                | Request::CreateGroup(_)
                | Request::CreateBalancer(_)
                | Request::CreateFloatingIp(_)
        )
    }

    /// The number of resources by kind.
    pub(super) fn inventory(&self) -> BTreeMap<&'static str, usize> {
        BTreeMap::from([
            ("networks", self.networks.len()),
            ("subnets", self.subnets.len()),
            ("routers", self.routers.len()),
            ("ports", self.ports.len()),
            ("groups", self.groups.len()),
            ("rules", self.groups.iter().map(|g| g.rules.len()).sum()),
            ("ips", self.ips.len()),
            ("server groups", self.server_groups.len()),
            ("balancers", self.octavia.balancers.len()),
            ("listeners", self.octavia.listeners.len()),
            ("pools", self.octavia.pools.len()),
            ("members", self.octavia.members.len()),
        ])
    }
}

/// The gateway of a router as Neutron creates it: with an address of its choice if none is requested.
fn gateway_of(asked: net::ExternalGateway) -> net::RouterGateway {
    let any = vec![net::FixedIp {
        subnet_id: "ext-subnet".into(),
        ip_address: "127.30.0.5".into(),
    }];
    net::RouterGateway {
        network_id: asked.network_id,
        external_fixed_ips: match asked.external_fixed_ips.is_empty() {
            true => any,
            false => asked.external_fixed_ips,
        },
    }
}
