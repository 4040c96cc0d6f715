//! Two properties of plans for machines: they converge, also after an interruption at any request.

mod others;

use std::collections::BTreeSet;
use std::sync::Arc;

use openstack::View;
use openstack::compute::{Server, ServerCreate};
use openstack::inventory::Table;
use openstack::network::{AddressPair, FixedIp, Port, PortCreate, SubPort, Trunk};
use openstack::volume::{Volume, VolumeCreate};
use proptest::prelude::*;

use super::{Request, change, deletion, existing, plan, plan_deletion, request};
use crate::identity::{Identity, Mark};
use crate::machine::desired::{Desired, Port as Wanted, Volume as WantedVolume};
use crate::machine::drift::PortState;
use crate::machine::observed::{Observed, References};
use crate::machine::pairs::PortPairs;

/// A cloud that executes each request at once; volumes and servers are pending until the next tick.
#[derive(Default)]
struct Model {
    next: u32,
    servers: Vec<Server>,
    ports: Vec<Port>,
    volumes: Vec<Volume>,
    trunks: Vec<Trunk>,
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
            trunks: Arc::new(Table::from_items(self.trunks.clone())),
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
                        allowed_address_pairs: create.allowed_address_pairs,
                        fixed_ips: create.fixed_ips,
                        ..Default::default()
                    });
                }
            }
            Request::SetPairs(change) => {
                let port = self.ports.iter_mut().find(|port| port.id == change.id);
                let port = port.unwrap();
                assert_ne!(port.port_security_enabled, Some(false), "409");
                let pairs = &mut port.allowed_address_pairs;
                pairs.retain(|pair| !change.remove.contains(pair));
                pairs.extend(change.add);
            }
            Request::TagPort { id, tags } => {
                self.ports
                    .iter_mut()
                    .find(|port| port.id == id)
                    .unwrap()
                    .tags = tags;
            }
            Request::CreateTrunk(create) => {
                let taken = |trunk: &Trunk| trunk.port_id == create.port_id;
                assert!(!self.trunks.iter().any(taken), "the port has a trunk");
                let id = self.id();
                self.trunks.push(Trunk {
                    id,
                    name: create.name,
                    port_id: create.port_id,
                    description: create.description.unwrap(),
                    ..Default::default()
                });
            }
            Request::TagTrunk { id, tags } => {
                let trunk = self.trunks.iter_mut().find(|trunk| trunk.id == id);
                trunk.unwrap().tags = tags;
            }
            Request::ChangePort { id, change } => {
                let port = self.ports.iter_mut().find(|port| port.id == id);
                let port = port.unwrap();
                let set = |field: &mut Option<bool>, value: Option<bool>| *field = value.or(*field);
                set(&mut port.admin_state_up, change.admin_state_up);
                set(
                    &mut port.port_security_enabled,
                    change.port_security_enabled,
                );
                port.description = change.description.unwrap_or(port.description.clone());
                port.security_groups = change
                    .security_groups
                    .unwrap_or(port.security_groups.clone());
            }
            Request::RemoveSubports { trunk, ports } => {
                let trunk = self.trunks.iter_mut().find(|it| it.id == trunk);
                let subs = &mut trunk.unwrap().sub_ports;
                subs.retain(|sub| !ports.contains(&sub.port_id));
            }
            Request::DeleteTrunk(id) => self.trunks.retain(|trunk| trunk.id != id),
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
                let has = |trunk: &Trunk| {
                    trunk.port_id == id || trunk.sub_ports.iter().any(|sub| sub.port_id == id)
                };
                assert!(!self.trunks.iter().any(has), "the port is of a trunk");
                self.ports.retain(|port| port.id != id);
            }
            Request::DeleteVolume(id) => {
                assert!(self.servers.is_empty(), "the volume is in use");
                self.volumes.iter_mut().find(|v| v.id == id).unwrap().status = "deleting".into();
            }
            other @ (Request::AssociateFloatingIp { .. } | Request::RebuildServer { .. }) => {
                unreachable!("{other:?}")
            }
        }
    }

    fn counts(&self) -> (usize, usize, usize) {
        (self.servers.len(), self.ports.len(), self.volumes.len())
    }
}

fn address_pairs(addresses: &[u8]) -> Vec<AddressPair> {
    let pair = |last: &u8| AddressPair {
        ip_address: format!("10.0.0.{last}"),
        mac_address: None,
    };
    addresses.iter().map(pair).collect()
}

/// The same with these allowed address pairs of each port.
fn with_pairs(mut desired: Desired, addresses: &[u8]) -> Desired {
    for port in &mut desired.ports {
        port.create.allowed_address_pairs = address_pairs(addresses);
    }
    desired
}

/// The pairs of the ports, of which these addresses may have been added before.
fn recorded(wanted: &Desired, addresses: &[u8]) -> Vec<PortPairs> {
    let of_port = |port: &Wanted| PortPairs {
        port: port.create.name.clone(),
        wanted: port.create.allowed_address_pairs.clone(),
        recorded: address_pairs(addresses),
    };
    wanted.ports.iter().map(of_port).collect()
}

/// The states of the ports, which had a group.
fn states(wanted: &Desired) -> Vec<PortState> {
    let of_port = |port: &Wanted| PortState {
        port: port.create.name.clone(),
        admin_state_up: true,
        port_security: Some(true),
        groups: vec!["group".to_owned()],
    };
    wanted.ports.iter().map(of_port).collect()
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
        trunk: index.is_multiple_of(2),
        is_of_zone: false,
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

/// Applies until nothing is left or `budget` requests were sent.
fn converge(
    model: &mut Model,
    mark: Mark,
    budget: &mut usize,
    plan: impl Fn(&Observed) -> super::Plan,
    request: impl Fn(&super::Step, &Observed) -> Option<Request>,
) {
    for _ in 0..20 {
        let now = plan(&Observed::new(model.view(), mark, References::default()));
        if now.steps.is_empty() && now.waits.is_empty() {
            return;
        }
        for step in &now.steps {
            if let Some(request) = request(
                step,
                &Observed::new(model.view(), mark, References::default()),
            ) {
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
    converge(model, mark, budget, |o| plan_deletion(o, true), deletion);
}

proptest! {
    #[test]
    fn a_machine_cut_off_anywhere_converges_and_leaves_nothing(
        ports in 1..4usize,
        volumes in 0..3usize,
        tagging in any::<bool>(),
        pairs in proptest::collection::vec(proptest::collection::vec(1..5u8, 0..3), 1..4),
        cuts in proptest::collection::vec(0..4usize, 0..6),
    ) {
        let cluster = Identity::new();
        let mark = Mark::machine(cluster, Identity::new());
        let neighbour = Mark::machine(cluster, Identity::new());
        // The pairs of the ports may change at any time.
        let at = |n: usize| with_pairs(desired(mark, ports, volumes, tagging), &pairs[n.min(pairs.len() - 1)]);
        let wanted = at(pairs.len());
        let mut model = Model::default();
        up(&mut model, &desired(neighbour, 1, 0, tagging), &mut usize::MAX.clone());
        for (n, mut budget) in cuts.clone().into_iter().enumerate() {
            // Before there is a server: what changes later is tested with the module `pairs`.
            let has_server = model.servers.iter().any(|server| Mark::in_tags(&server.tags) == Some(mark));
            let now = if has_server { wanted.clone() } else { at(n) };
            up(&mut model, &now, &mut budget);
        }
        up(&mut model, &wanted, &mut usize::MAX.clone());
        prop_assert_eq!(model.counts(), (2, ports + 1, volumes));
        let observed = Observed::new(model.view(), mark, References::default());
        prop_assert_eq!(plan(&wanted, &observed), super::Plan::default());
        // Of a machine with a server, the pairs follow the spec as well, and then nothing is left to do.
        let all = recorded(&wanted, &pairs.concat());
        // Somebody has changed each port by hand.
        let states = states(&wanted);
        for port in model.ports.iter_mut().filter(|port| port.description.ends_with(&mark.suffix())) {
            (port.admin_state_up, port.port_security_enabled) = (Some(false), Some(false));
            (port.security_groups, port.allowed_address_pairs) = (Vec::new(), Vec::new());
        }
        let change_all = |model: &mut Model, budget: &mut usize| {
            converge(model, mark, budget, |o| existing(&states, &all, o), change);
        };
        for mut budget in cuts.clone() {
            change_all(&mut model, &mut budget);
        }
        change_all(&mut model, &mut usize::MAX.clone());
        let observed = Observed::new(model.view(), mark, References::default());
        for port in &observed.ports {
            let has: BTreeSet<_> = port.allowed_address_pairs.iter().map(|pair| &pair.ip_address).collect();
            let wanted: BTreeSet<_> = all[0].wanted.iter().map(|pair| &pair.ip_address).collect();
            prop_assert_eq!(has, wanted);
            prop_assert_eq!((port.admin_state_up, port.port_security_enabled), (Some(true), Some(true)));
            prop_assert_eq!(&port.security_groups, &states[0].groups);
        }
        // A trunk has the subports of a user, and one of the neighbour.
        let of_machine = |port: &&Port| port.description.ends_with(&mark.suffix());
        let parents: Vec<_> = model.ports.iter().filter(of_machine).map(|port| port.id.clone()).collect();
        let trunks = model.trunks.iter().filter(|trunk| parents.contains(&trunk.port_id)).count();
        prop_assert_eq!(trunks, ports.div_ceil(2));
        let neighbours = model.ports.iter().find(|port| port.description.ends_with(&neighbour.suffix()));
        let neighbours = neighbours.unwrap().id.clone();
        model.trunks.retain(|trunk| trunk.port_id != neighbours);
        model.ports.push(Port { id: "user".into(), ..Default::default() });
        let sub = |id: &str| SubPort { port_id: id.to_owned(), ..Default::default() };
        let trunk = model.trunks.iter_mut().find(|trunk| parents.contains(&trunk.port_id)).unwrap();
        trunk.sub_ports = vec![sub("user"), sub(&neighbours)];
        // The server of the neighbour is not part of the counts below.
        model.servers.retain(|server| Mark::in_tags(&server.tags) == Some(mark));
        for mut budget in cuts {
            down(&mut model, mark, &mut budget);
        }
        down(&mut model, mark, &mut usize::MAX.clone());
        prop_assert_eq!(model.counts(), (0, 1, 0));
        prop_assert!(model.trunks.is_empty());
    }
}

#[test]
fn a_machine_whose_server_is_known_never_gets_another() {
    let mark = Mark::machine(Identity::new(), Identity::new());
    let observed = Observed::new(Model::default().view(), mark, in_status("lost"));
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
    let observed = Observed::new(model.view(), mark, in_status("b"));
    let steps = plan(&desired(mark, 1, 0, true), &observed).steps;
    assert_eq!(steps, [super::Step::DeleteServer("a".into())]);
}

fn in_status(id: &str) -> References {
    References {
        instance_id: Some(id.to_owned()),
        ..References::default()
    }
}

/// Servers of one machine with these ids and statuses.
fn servers(mark: Mark, all: &[(&str, &str)]) -> Model {
    let server = |(id, status): &(&str, &str)| Server {
        id: (*id).into(),
        status: (*status).into(),
        tags: mark.tags(),
        ..Default::default()
    };
    Model {
        servers: all.iter().map(server).collect(),
        ..Default::default()
    }
}

#[test]
fn an_active_server_stays_rather_than_one_in_error_and_that_of_the_node_in_any_case() {
    let mark = Mark::machine(Identity::new(), Identity::new());
    let of_node = |id: &str| References {
        provider_id: Some(id.to_owned()),
        ..in_status(id)
    };
    for (all, known, stays) in [
        (
            [("a", "ERROR"), ("b", "ACTIVE")],
            References::default(),
            "b",
        ),
        (
            [("a", "ACTIVE"), ("b", "ERROR")],
            References::default(),
            "a",
        ),
        ([("a", "ERROR"), ("b", "ACTIVE")], in_status("a"), "b"),
        ([("a", "ACTIVE"), ("b", "BUILD")], in_status("b"), "b"),
        ([("a", "ACTIVE"), ("b", "ACTIVE")], in_status("b"), "b"),
        ([("a", "ACTIVE"), ("b", "ERROR")], of_node("b"), "b"),
        (
            [("a", "BUILD"), ("b", "ACTIVE")],
            References::default(),
            "b",
        ),
    ] {
        let observed = Observed::new(servers(mark, &all).view(), mark, known.clone());
        let goes = if stays == "a" { "b" } else { "a" };
        assert_eq!(observed.server().unwrap().id, stays, "{all:?} {known:?}");
        let steps = plan(&desired(mark, 1, 0, true), &observed).steps;
        assert_eq!(steps, [super::Step::DeleteServer(goes.into())]);
    }
}

#[test]
fn another_server_never_takes_the_place_of_one_that_is_gone() {
    let mark = Mark::machine(Identity::new(), Identity::new());
    let all = [("a", "ACTIVE"), ("b", "ACTIVE")];
    let observed = Observed::new(servers(mark, &all).view(), mark, in_status("gone"));
    assert!(observed.server().is_none());
}

#[test]
fn of_two_ports_or_volumes_of_one_name_that_which_the_server_uses_stays() {
    let mark = Mark::machine(Identity::new(), Identity::new());
    let port = |id: &str, device: &str| Port {
        id: id.into(),
        name: "m-0".into(),
        description: mark.description("x"),
        device_id: device.into(),
        ..Default::default()
    };
    let volume = |id: &str, status: &str| Volume {
        id: id.into(),
        name: "m-v0".into(),
        description: mark.description("x"),
        status: status.into(),
        ..Default::default()
    };
    let mut model = servers(mark, &[("s", "ACTIVE")]);
    model.ports = vec![port("a", ""), port("b", "s")];
    model.volumes = vec![volume("c", "available"), volume("d", "in-use")];
    let observed = Observed::new(model.view(), mark, in_status("s"));
    let steps = plan(&desired(mark, 1, 1, true), &observed).steps;
    let expected = [
        super::Step::DeletePort("a".into()),
        super::Step::DeleteVolume("c".into()),
    ];
    assert_eq!(steps, expected);
    // Before Nova has bound one of them, the port in use is unknown.
    model.ports = vec![port("a", ""), port("b", "")];
    model.volumes = vec![volume("c", "available"), volume("d", "available")];
    let observed = Observed::new(model.view(), mark, in_status("s"));
    let steps = plan(&desired(mark, 1, 1, true), &observed).steps;
    assert_eq!(steps, []);
}

#[test]
fn a_server_without_its_tags_has_answer_by_its_ports() {
    let mark = Mark::machine(Identity::new(), Identity::new());
    let mut model = servers(mark, &[("s", "ACTIVE")]);
    model.servers[0].tags.clear();
    model.ports = vec![Port {
        id: "p".into(),
        description: mark.description("x"),
        device_id: "s".into(),
        ..Default::default()
    }];
    let observed = Observed::new(model.view(), mark, in_status("s"));
    assert_eq!(observed.server().unwrap().id, "s");
    let steps = plan_deletion(&observed, true).steps;
    assert_eq!(steps, [super::Step::DeleteServer("s".into())]);
}

#[test]
fn a_server_that_nothing_marks_or_that_has_another_machines_tags_is_waited_for() {
    let mark = Mark::machine(Identity::new(), Identity::new());
    let other = Mark::machine(mark.cluster, Identity::new());
    for tags in [Vec::new(), other.tags()] {
        let mut model = servers(mark, &[("s", "ACTIVE")]);
        model.servers[0].tags = tags;
        model.ports = vec![Port {
            id: "p".into(),
            description: mark.description("x"),
            ..Default::default()
        }];
        let observed = Observed::new(model.view(), mark, in_status("s"));
        assert!(observed.server().is_none() && !observed.is_empty());
        let plan = plan_deletion(&observed, true);
        assert_eq!(plan.steps, []);
        assert!(plan.waits[0].contains("server s has"), "{:?}", plan.waits);
    }
}

#[test]
fn ports_on_the_subnets_of_another_zone_are_replaced_once_no_server_has_them() {
    let mark = Mark::machine(Identity::new(), Identity::new());
    let on = |subnet: &str| {
        vec![FixedIp {
            subnet_id: subnet.into(),
            ip_address: String::new(),
        }]
    };
    let wanted = |subnet: &str| {
        let mut wanted = desired(mark, 2, 0, true);
        // The second port is where its spec says, whatever the zone.
        wanted.ports[0].is_of_zone = true;
        for port in &mut wanted.ports {
            port.create.fixed_ips = on(subnet);
        }
        wanted
    };
    let mut model = Model::default();
    let seen = |model: &Model| Observed::new(model.view(), mark, References::default());
    let run = |model: &mut Model, wanted: &Desired| {
        let steps = plan(wanted, &seen(model)).steps;
        let is_server = |step: &super::Step| *step == super::Step::CreateServer;
        for step in steps.into_iter().filter(|step| !is_server(step)) {
            let asked = request(&step, wanted, &seen(model));
            asked.inspect(|asked| model.perform(asked));
        }
    };
    run(&mut model, &wanted("a"));
    let before: Vec<_> = model.ports.iter().map(|port| port.id.clone()).collect();
    // The failed server has not released them yet.
    model.ports[0].device_id = "failed".into();
    let held = plan(&wanted("b"), &seen(&model));
    assert!(!held.steps.contains(&super::Step::CreateServer), "{held:?}");
    assert_eq!(held.waits, ["waiting for port m-0 to be released"]);

    model.ports[0].device_id.clear();
    run(&mut model, &wanted("b"));
    model.ports.sort_by(|a, b| a.name.cmp(&b.name));
    assert_eq!((model.ports.len(), model.trunks.len()), (2, 1));
    assert_ne!(model.ports[0].id, before[0]);
    assert_eq!(model.ports[1].id, before[1]);
    assert_eq!(model.ports[0].fixed_ips, on("b"));
    assert_eq!(model.ports[0].tags, mark.tags());
    assert_eq!(model.trunks[0].port_id, model.ports[0].id);
    assert_eq!(
        plan(&wanted("b"), &seen(&model)).steps,
        [super::Step::CreateServer]
    );
}
