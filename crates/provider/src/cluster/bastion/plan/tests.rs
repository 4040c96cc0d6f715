//! From any bastion to any other or none, the plan converges, is then empty, and is not misled by a cut.

use std::collections::BTreeSet;

use openstack::compute::{Server, ServerCreate};
use openstack::inventory::Table;
use openstack::network::{FixedIp, Port, PortCreate};
use openstack::volume::{Volume, VolumeCreate};
use proptest::prelude::*;

use super::*;
use crate::cluster::observed::References as OfStatus;
use crate::identity::Identity;
use crate::machine::desired::{Port as WantedPort, Volume as WantedVolume};

/// A cloud that executes each request at once; servers and volumes are pending until the next tick.
#[derive(Clone, Debug, Default)]
struct Model {
    next: u32,
    servers: Vec<Server>,
    ports: Vec<Port>,
    volumes: Vec<Volume>,
    ips: Vec<FloatingIp>,
}

impl Model {
    fn id(&mut self) -> String {
        self.next += 1;
        format!("id-{:04}", self.next)
    }

    fn view(&self) -> Arc<View> {
        Arc::new(View {
            servers: Arc::new(Table::from_items(self.servers.clone())),
            ports: Arc::new(Table::from_items(self.ports.clone())),
            volumes: Arc::new(Table::from_items(self.volumes.clone())),
            floating_ips: Arc::new(Table::from_items(self.ips.clone())),
            ..View::default()
        })
    }

    fn tick(&mut self) {
        let gone: Vec<_> = self
            .servers
            .iter()
            .filter(|it| it.is_deleting())
            .cloned()
            .collect();
        self.servers.retain(|server| !server.is_deleting());
        for port in &mut self.ports {
            if gone.iter().any(|server| server.id == port.device_id) {
                port.device_id.clear();
            }
        }
        self.volumes.retain(|volume| volume.status != "deleting");
        for server in &mut self.servers {
            server.status = "ACTIVE".into();
        }
        for volume in &mut self.volumes {
            volume.status = "available".into();
        }
    }

    fn server(&mut self, request: &server::Request) {
        match request.clone() {
            server::Request::CreateVolume(create) => {
                let id = self.id();
                self.volumes.push(Volume {
                    id,
                    name: create.name,
                    description: create.description.unwrap(),
                    status: "creating".into(),
                    ..Default::default()
                });
            }
            server::Request::CreatePorts(ports) => {
                for create in ports {
                    let id = self.id();
                    let address = format!("10.6.0.{}", self.next);
                    self.ports.push(Port {
                        id,
                        name: create.name,
                        network_id: "net".into(),
                        description: create.description.unwrap(),
                        fixed_ips: vec![FixedIp {
                            subnet_id: "subnet".into(),
                            ip_address: address,
                        }],
                        ..Default::default()
                    });
                }
            }
            server::Request::TagPort { id, tags } => {
                self.ports
                    .iter_mut()
                    .find(|port| port.id == id)
                    .unwrap()
                    .tags = tags;
            }
            server::Request::CreateServer(create) => {
                assert!(self.servers.is_empty(), "the former server is still there");
                let id = self.id();
                for network in &create.networks {
                    let port = self
                        .ports
                        .iter_mut()
                        .find(|port| Some(&port.id) == network.port.as_ref());
                    port.unwrap().device_id = id.clone();
                }
                self.servers.push(Server {
                    id,
                    name: create.name,
                    tags: create.tags,
                    status: "BUILD".into(),
                    ..Default::default()
                });
            }
            server::Request::DeleteServer(id) => {
                let server = self.servers.iter_mut().find(|it| it.id == id).unwrap();
                server.task_state = Some("deleting".into());
            }
            server::Request::DeletePort(id) => {
                let port = self.ports.iter().find(|port| port.id == id).unwrap();
                assert!(port.device_id.is_empty(), "the port is in use");
                self.ports.retain(|port| port.id != id);
                for ip in &mut self.ips {
                    ip.port_id.take_if(|port| *port == id);
                }
            }
            server::Request::DeleteVolume(id) => {
                self.volumes
                    .iter_mut()
                    .find(|it| it.id == id)
                    .unwrap()
                    .status = "deleting".into();
            }
            other => unreachable!("{other:?}"),
        }
    }

    fn perform(&mut self, request: &Request) {
        let request = match request {
            Request::Server(request) => return self.server(request),
            Request::FloatingIp(request) => request.clone(),
        };
        match request {
            OfNetwork::CreateFloatingIp(create) => {
                let (id, any) = (self.id(), format!("127.30.0.{}", self.next));
                self.free(create.port_id.as_ref());
                self.ips.push(FloatingIp {
                    id,
                    floating_ip_address: create.floating_ip_address.unwrap_or(any),
                    port_id: create.port_id,
                    description: create.description.unwrap(),
                    ..Default::default()
                });
            }
            OfNetwork::UpdateFloatingIp(id, change) => {
                self.free(change.port_id.as_ref());
                let ip = self.ips.iter_mut().find(|ip| ip.id == id).unwrap();
                ip.port_id = change.port_id;
            }
            OfNetwork::Tag { id, tags, .. } => {
                self.ips.iter_mut().find(|ip| ip.id == id).unwrap().tags = tags;
            }
            OfNetwork::DeleteFloatingIp(id) => self.ips.retain(|ip| ip.id != id),
            other => unreachable!("{other:?}"),
        }
    }

    /// Neutron refuses a second floating IP for one address.
    fn free(&self, port: Option<&String>) {
        let mut ips = self.ips.iter();
        assert!(port.is_none() || !ips.any(|ip| ip.port_id.as_ref() == port));
    }
}

/// What a spec asks for: the identity in it, ports, volumes, and the floating IP: none, one of the user's, or a new one.
type Spec = (u8, usize, usize, u8);

fn specs() -> impl Strategy<Value = Vec<Option<Spec>>> {
    let spec = (0..3_u8, 1..3_usize, 0..2_usize, 0..4_u8);
    proptest::collection::vec(proptest::option::weighted(0.8, spec), 1..5)
}

fn wanted(cluster: Identity, spec: Option<Spec>, observed: &OfCluster) -> Option<Wanted> {
    let (name, ports, volumes, address) = spec?;
    let text = format!("{name} {ports} {volumes}");
    let mark = Mark::machine(cluster, Identity::of_bastion(cluster, &text));
    let description = || Some(mark.description("x"));
    let port = |index: usize| WantedPort {
        create: PortCreate {
            name: format!("b-{index}"),
            description: description(),
            ..Default::default()
        },
        tags: mark.tags(),
        trunk: false,
        is_of_zone: false,
    };
    let volume = |index: usize| WantedVolume {
        create: VolumeCreate {
            name: format!("b-v{index}"),
            description: description(),
            ..Default::default()
        },
        is_root: index == 0,
        device: format!("v{index}"),
    };
    let desired = Desired {
        mark,
        ports: (0..ports).map(port).collect(),
        volumes: (0..volumes).map(volume).collect(),
        server: ServerCreate {
            name: "b".into(),
            tags: mark.tags(),
            ..Default::default()
        },
        local_disks: Vec::new(),
        tagging: true,
    };
    let is_there = Observed::new(observed, Some(mark))
        .current
        .unwrap()
        .server()
        .is_some();
    let given = ["127.0.0.1", "127.0.0.2"]
        .get(usize::from(address))
        .map(|it| (*it).to_owned());
    Some(Wanted {
        mark,
        server: (!is_there).then_some(desired),
        address: (address < 3).then(|| Address {
            network: "ext".into(),
            given,
            pool: None,
        }),
        place: EndpointNetwork {
            network: Some("net".into()),
            subnet: Some("subnet".into()),
            zone_subnets: Vec::new(),
        },
        description: mark.description("x"),
        tags: mark.tags(),
    })
}

struct Scene {
    model: Model,
    cluster: Identity,
}

impl Scene {
    /// With two floating IPs of the user.
    fn new() -> Self {
        let ip = |last: u8| FloatingIp {
            id: format!("user-{last}"),
            floating_ip_address: format!("127.0.0.{last}"),
            ..Default::default()
        };
        Self {
            model: Model {
                ips: vec![ip(1), ip(2)],
                ..Model::default()
            },
            cluster: Identity::new(),
        }
    }

    fn observed(&self) -> OfCluster {
        OfCluster::new(self.model.view(), self.cluster, &OfStatus::default())
    }

    fn seen(&self, spec: Option<Spec>) -> (Option<Wanted>, Observed) {
        let observed = self.observed();
        let wanted = wanted(self.cluster, spec, &observed);
        let seen = Observed::new(&observed, wanted.as_ref().map(|it| it.mark));
        (wanted, seen)
    }

    /// Plans and applies until nothing is left, or until `budget` requests were sent.
    fn converge(&mut self, spec: Option<Spec>, budget: &mut usize) {
        for _ in 0..20 {
            let (wanted, seen) = self.seen(spec);
            let now = plan(wanted.as_ref(), &seen);
            if now.is_empty() {
                return;
            }
            for step in &now.steps {
                let (_, seen) = self.seen(spec);
                if let Some(request) = request(step, wanted.as_ref(), &seen) {
                    if *budget == 0 {
                        return;
                    }
                    *budget -= 1;
                    self.model.perform(&request);
                }
            }
            self.model.tick();
        }
        panic!("no end");
    }
}

proptest! {
    #[test]
    fn from_any_bastion_to_any_other_or_none_the_plan_converges_also_when_it_is_cut_off(
        specs in specs(),
        cuts in proptest::collection::vec(0..7_usize, 0..5),
    ) {
        let mut scene = Scene::new();
        let mut cuts = cuts.into_iter();
        for spec in specs {
            if let Some(mut budget) = cuts.next() {
                scene.converge(spec, &mut budget);
                continue;
            }
            scene.converge(spec, &mut usize::MAX.clone());
            let (wanted, seen) = scene.seen(spec);
            prop_assert_eq!(plan(wanted.as_ref(), &seen), Plan::default());
            let (_, ports, volumes, address) = spec.unwrap_or_default();
            let model = &scene.model;
            let servers = usize::from(spec.is_some());
            prop_assert_eq!(model.servers.len(), servers);
            prop_assert_eq!(model.ports.len(), ports);
            prop_assert_eq!(model.volumes.len(), volumes);
            // The floating IPs of the user stay, and one more is there if a new one was asked for.
            let ours = usize::from(spec.is_some() && address == 2);
            prop_assert_eq!(model.ips.len(), 2 + ours);
            let used: BTreeSet<_> = model.ips.iter().filter_map(|ip| ip.port_id.as_ref()).collect();
            prop_assert_eq!(used.len(), usize::from(spec.is_some() && address < 3));
        }
        scene.converge(None, &mut usize::MAX.clone());
        prop_assert_eq!(scene.model.ips.len(), 2);
        prop_assert!(scene.observed().is_empty());
    }
}
