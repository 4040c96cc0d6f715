//! The two properties of plans, for machines.

use std::sync::Arc;

use openstack::View;
use openstack::compute::{Server, ServerCreate};
use openstack::inventory::Table;
use openstack::network::{Port, PortCreate};
use openstack::volume::{Volume, VolumeCreate};
use proptest::prelude::*;

use super::{Request, deletion, plan, plan_deletion, request};
use crate::identity::{Identity, Mark};
use crate::machine::desired::{Desired, Port as Wanted, Volume as WantedVolume};
use crate::machine::observed::Observed;

/// A cloud that does at once what it is told; volumes and servers are pending until the next tick.
#[derive(Default)]
struct Model {
    next: u32,
    servers: Vec<Server>,
    ports: Vec<Port>,
    volumes: Vec<Volume>,
}

impl Model {
    fn id(&mut self) -> String {
        self.next += 1;
        format!("id-{:04}", self.next)
    }

    fn view(&self) -> Arc<View> {
        Arc::new(View {
            servers: Arc::new(Table::of(self.servers.clone())),
            ports: Arc::new(Table::of(self.ports.clone())),
            volumes: Arc::new(Table::of(self.volumes.clone())),
            ..View::default()
        })
    }

    fn tick(&mut self) {
        self.servers.retain(|server| !server.is_deleting());
        self.volumes.retain(|volume| volume.status != "deleting");
        for server in &mut self.servers {
            server.status = "ACTIVE".into();
        }
        for volume in &mut self.volumes {
            volume.status = "available".into();
        }
    }

    fn perform(&mut self, request: &Request) {
        match request.clone() {
            Request::CreateVolume(create) => {
                let id = self.id();
                let description = create.description.unwrap();
                let status = "creating".into();
                self.volumes.push(Volume {
                    id,
                    name: create.name,
                    description,
                    status,
                    ..Default::default()
                });
            }
            Request::CreatePorts(ports) => {
                for create in ports {
                    let id = self.id();
                    let description = create.description.unwrap();
                    self.ports.push(Port {
                        id,
                        name: create.name,
                        description,
                        ..Default::default()
                    });
                }
            }
            Request::TagPort { id, tags } => {
                self.ports
                    .iter_mut()
                    .find(|port| port.id == id)
                    .unwrap()
                    .tags = tags;
            }
            Request::CreateServer(create) => {
                for disk in &create.block_devices {
                    let volume = self
                        .volumes
                        .iter()
                        .find(|v| Some(&v.id) == disk.uuid.as_ref());
                    assert_eq!(volume.unwrap().status, "available");
                }
                let id = self.id();
                let status = "BUILD".into();
                self.servers.push(Server {
                    id,
                    name: create.name,
                    tags: create.tags,
                    status,
                    ..Default::default()
                });
            }
            Request::DeleteServer(id) => {
                let server = self
                    .servers
                    .iter_mut()
                    .find(|server| server.id == id)
                    .unwrap();
                server.task_state = Some("deleting".into());
            }
            Request::DeletePort(id) => {
                assert!(self.servers.is_empty(), "the port is in use");
                self.ports.retain(|port| port.id != id);
            }
            Request::DeleteVolume(id) => {
                assert!(self.servers.is_empty(), "the volume is in use");
                self.volumes.iter_mut().find(|v| v.id == id).unwrap().status = "deleting".into();
            }
        }
    }

    fn counts(&self) -> (usize, usize, usize) {
        (self.servers.len(), self.ports.len(), self.volumes.len())
    }
}

fn desired(mark: Mark, ports: usize, volumes: usize, tagging: bool) -> Desired {
    let tags = mark.tags();
    let port = |index: usize| Wanted {
        create: PortCreate {
            name: format!("m-{index}"),
            description: Some(mark.description("x")),
            ..Default::default()
        },
        tags: tags.clone(),
    };
    let volume = |index: usize| WantedVolume {
        create: VolumeCreate {
            name: format!("m-v{index}"),
            description: Some(mark.description("x")),
            ..Default::default()
        },
        is_root: index == 0,
        device: format!("v{index}"),
    };
    Desired {
        mark,
        ports: (0..ports).map(port).collect(),
        volumes: (0..volumes).map(volume).collect(),
        server: ServerCreate {
            name: "m".into(),
            tags: tags.clone(),
            ..Default::default()
        },
        local_disks: Vec::new(),
        tagging,
    }
}

/// Applies until nothing is left or `budget` requests were made.
fn converge(
    model: &mut Model,
    mark: Mark,
    budget: &mut usize,
    plan: impl Fn(&Observed) -> super::Plan,
    request: impl Fn(&super::Step, &Observed) -> Option<Request>,
) {
    for _ in 0..20 {
        let now = plan(&Observed::of(model.view(), mark, None));
        if now.steps.is_empty() && now.waits.is_empty() {
            return;
        }
        for step in &now.steps {
            if let Some(request) = request(step, &Observed::of(model.view(), mark, None)) {
                if *budget == 0 {
                    return;
                }
                *budget -= 1;
                model.perform(&request);
            }
        }
        model.tick();
    }
    panic!("no end");
}

fn up(model: &mut Model, wanted: &Desired, budget: &mut usize) {
    converge(
        model,
        wanted.mark,
        budget,
        |o| plan(wanted, o),
        |step, o| request(step, wanted, o),
    );
}

fn down(model: &mut Model, mark: Mark, budget: &mut usize) {
    converge(
        model,
        mark,
        budget,
        |o| plan_deletion(o, true),
        |step, _| deletion(step),
    );
}

proptest! {
    #[test]
    fn a_machine_cut_off_anywhere_converges_and_leaves_nothing(
        ports in 1..4usize,
        volumes in 0..3usize,
        tagging in any::<bool>(),
        cuts in proptest::collection::vec(0..4usize, 0..6),
    ) {
        let cluster = Identity::new();
        let mark = Mark::machine(cluster, Identity::new());
        let neighbour = Mark::machine(cluster, Identity::new());
        let wanted = desired(mark, ports, volumes, tagging);
        let mut model = Model::default();
        up(&mut model, &desired(neighbour, 1, 0, tagging), &mut usize::MAX.clone());
        for mut budget in cuts.clone() {
            up(&mut model, &wanted, &mut budget);
        }
        up(&mut model, &wanted, &mut usize::MAX.clone());
        prop_assert_eq!(model.counts(), (2, ports + 1, volumes));
        let observed = Observed::of(model.view(), mark, None);
        prop_assert_eq!(plan(&wanted, &observed), super::Plan::default());
        // Only this machine's server has to be out of the way for the model's sake.
        model.servers.retain(|server| Mark::in_tags(&server.tags) == Some(mark));
        for mut budget in cuts {
            down(&mut model, mark, &mut budget);
        }
        down(&mut model, mark, &mut usize::MAX.clone());
        prop_assert_eq!(model.counts(), (0, 1, 0));
    }
}

#[test]
fn a_machine_whose_server_is_known_never_gets_another() {
    let mark = Mark::machine(Identity::new(), Identity::new());
    let observed = Observed::of(Model::default().view(), mark, Some("lost"));
    assert_eq!(
        plan(&desired(mark, 1, 0, true), &observed),
        super::Plan::default()
    );
}

#[test]
fn of_two_servers_of_one_machine_the_surplus_goes() {
    let mark = Mark::machine(Identity::new(), Identity::new());
    let server = |id: &str| Server {
        id: id.into(),
        tags: mark.tags(),
        ..Default::default()
    };
    let model = Model {
        servers: vec![server("a"), server("b")],
        ..Default::default()
    };
    let observed = Observed::of(model.view(), mark, Some("b"));
    let steps = plan(&desired(mark, 1, 0, true), &observed).steps;
    assert_eq!(steps, [super::Step::DeleteServer("a".into())]);
}
