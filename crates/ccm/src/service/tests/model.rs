//! A Service and a cloud: the model of Octavia, and floating IPs, of which a second one on a port is rejected.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use load_balancing::{Status, Step as Part};
use octavia_model::Octavia as Balancers;
use openstack::inventory::Table;
use openstack::loadbalancer::LoadBalancer;
use openstack::network::{FixedIp, FloatingIp, Network, Port, Subnet};
use serde_json::json;

use super::super::desired::{Desired, Facts};
use super::super::observed::Observed;
use super::super::plan::Step;
use super::super::*;
use cloud_conf::{CloudConf, Program};

/// An Octavia, and a Neutron with floating IPs.
#[derive(Clone, Debug, Default)]
pub(super) struct Model {
    pub(super) octavia: Balancers,
    pub(super) floating_ips: BTreeMap<String, FloatingIp>,
}

/// Service, and the state behind its load balancer.
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
        Identity::new(&self.service, "kubernetes", "cluster")
    }

    pub(super) fn observed(&self) -> Option<Observed> {
        self.look().0
    }

    pub(super) fn desired(&self) -> Result<Desired, String> {
        self.look().1
    }

    /// Observed state, and the desired state of the Service, or the reason for its rejection.
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

    /// Steps as `round` chooses them; none for a rejected Service.
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

impl converging::System for Scene {
    type Step = Step;
    type State = Vec<String>;

    fn plan(&self) -> Vec<Step> {
        let (observed, Ok(desired)) = self.look() else {
            return Vec::new();
        };
        let steps = self.steps(&desired, observed.as_ref());
        assert!(!self.is_serial || !steps.iter().any(is_bulk), "{steps:?}");
        let status = observed.map(|observed| Status::from_balancer(&observed.balancer));
        let (mut all, next, _) = plan::due(steps, status);
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
        self.octavia.view(View {
            floating_ips: Arc::new(Table::from_items(self.floating_ips.values().cloned())),
            networks: Arc::new(Table::from_items([
                network("public", true),
                network("nodes", false),
            ])),
            subnets: Arc::new(Table::from_items([
                subnet("outside", "public"),
                subnet("subnet", "nodes"),
                subnet("other", "nodes"),
            ])),
            ports: Arc::new(Table::from_items(ports)),
            ..View::default()
        })
    }

    fn take(&mut self, balancer: &str, step: Step) {
        match step {
            Step::Balancer(step) => {
                if let Part::Create(tree) = &step {
                    let mut others = self.octavia.balancers.values();
                    let is_second = others.any(|other| other.tags == tree.tags);
                    assert!(!is_second, "a second load balancer");
                }
                self.octavia.take(balancer, step);
            }
            Step::DeleteBroken(id) => {
                let broken = &self.octavia.balancers[&id];
                assert_eq!(broken.provisioning_status, "ERROR");
                self.octavia.begin_deletion(&id);
            }
            Step::Adopt { id, tags } => {
                self.octavia.begin_change(&id);
                self.octavia.balancers.get_mut(&id).unwrap().tags = tags;
            }
            Step::CreateFloatingIp { port, floating } => {
                self.check_free(&port);
                let id = self.octavia.id();
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

    /// Completes pending changes. With the port of a load balancer, the association of its floating IP goes. Returns
    /// true if anything was pending.
    fn pass(&mut self) -> bool {
        let ports = |model: &Self| -> Vec<String> {
            let all = model.octavia.balancers.values();
            all.map(|it| it.vip_port_id.clone()).collect()
        };
        let before = ports(self);
        let has_changed = self.octavia.pass();
        let after = ports(self);
        for ip in self.floating_ips.values_mut() {
            let is_gone = |port: &String| before.contains(port) && !after.contains(port);
            ip.port_id = ip.port_id.take().filter(|port| !is_gone(port));
        }
        has_changed
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
        assert_eq!(self.octavia.listeners.len(), wanted.len());
        assert_eq!(self.octavia.pools.len(), wanted.len());
        for wanted in wanted {
            let listener = self.octavia.listeners.values().find(|known| {
                known.protocol == wanted.protocol && known.protocol_port == wanted.protocol_port
            });
            let listener = listener.unwrap();
            let pool = &self.octavia.pools[listener.default_pool_id.as_ref().unwrap()];
            let wanted_pool = wanted.default_pool.as_ref().unwrap();
            assert_eq!(pool.protocol, wanted_pool.protocol);
            assert_eq!(pool.session_persistence, wanted_pool.session_persistence);
            let members = self
                .octavia
                .members
                .values()
                .filter(|m| *m.pool_id == pool.id)
                .count();
            assert_eq!(members, wanted_pool.members.len());
            for member in self
                .octavia
                .members
                .values()
                .filter(|m| *m.pool_id == pool.id)
            {
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
            let mut monitors = self
                .octavia
                .monitors
                .values()
                .filter(|m| m.pools[0].id == pool.id);
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

/// True if a step creates or changes several objects.
fn is_bulk(step: &Step) -> bool {
    match step {
        Step::Balancer(Part::Create(tree)) => !tree.listeners.is_empty(),
        Step::Balancer(Part::CreateListener(listener)) => listener.default_pool.is_some(),
        Step::Balancer(Part::CreatePool(pool)) => {
            !pool.members.is_empty() || pool.healthmonitor.is_some()
        }
        Step::Balancer(Part::SetMembers { .. }) => true,
        _ => false,
    }
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
        let balancers = self.octavia.balancers.values();
        let mut all: Vec<String> = balancers.flat_map(|it| self.octavia.tree(&it.id)).collect();
        let floating = self.floating_ips.values();
        all.extend(floating.map(|ip| {
            let balancers = self.octavia.balancers.values();
            let port = |it: &&LoadBalancer| Some(&it.vip_port_id) == ip.port_id.as_ref();
            let of = balancers.filter(port).map(|it| &it.name).next();
            format!("{} {} {of:?}", ip.floating_ip_address, ip.description)
        }));
        all.sort();
        all
    }
}
