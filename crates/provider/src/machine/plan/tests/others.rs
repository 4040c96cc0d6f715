//! Whatever an object records, and whatever tags were lost in the cloud: a plan writes only to what has the machine's mark.

use openstack::compute::Server;

use super::*;

/// A resource of the cloud: whose it is (the machine, a neighbour in its cluster, a machine of another cluster, or
/// nobody's), which of two names it has, whether it is in use, and the server that a port is at.
type Thing = (usize, usize, bool, usize);

fn things() -> impl Strategy<Value = Vec<Thing>> {
    proptest::collection::vec((0..4_usize, 0..2_usize, any::<bool>(), 0..6_usize), 0..6)
}

/// The ids that a request writes to: of a server, port or volume.
fn written(request: &Request) -> Vec<String> {
    match request {
        Request::DeleteServer(id) | Request::DeletePort(id) | Request::DeleteVolume(id) => {
            vec![id.clone()]
        }
        Request::TagPort { id, .. }
        | Request::TagTrunk { id, .. }
        | Request::ChangePort { id, .. }
        | Request::RebuildServer { id, .. }
        | Request::DeleteTrunk(id) => vec![id.clone()],
        Request::RemoveSubports { trunk, .. } => vec![trunk.clone()],
        Request::CreateTrunk(create) => vec![create.port_id.clone()],
        Request::SetPairs(change) => vec![change.id.clone()],
        Request::CreateServer(create) => {
            let ports = create.networks.iter().map(|network| network.port.clone());
            let volumes = create.block_devices.iter().map(|disk| disk.uuid.clone());
            ports.chain(volumes).flatten().collect()
        }
        Request::AssociateFloatingIp { change, .. } => change.port_id.clone().into_iter().collect(),
        Request::CreatePorts(_) | Request::CreateVolume(_) => Vec::new(),
    }
}

/// The cloud of [`things`].
fn cloud(marks: &[Mark], servers: &[Thing], ports: &[Thing], volumes: &[Thing]) -> View {
    let described = |of: usize| {
        marks
            .get(of)
            .map_or(String::new(), |mark| mark.description("x"))
    };
    let servers = servers.iter().enumerate().map(|(index, thing)| Server {
        id: format!("server-{index}"),
        name: "m".into(),
        status: if thing.2 { "ACTIVE" } else { "ERROR" }.into(),
        tags: marks.get(thing.0).map_or(Vec::new(), Mark::tags),
        ..Default::default()
    });
    let ports = ports.iter().enumerate().map(|(index, thing)| Port {
        id: format!("port-{index}"),
        name: format!("m-{}", thing.1),
        description: described(thing.0),
        device_id: if thing.2 {
            format!("server-{}", thing.3)
        } else {
            String::new()
        },
        allowed_address_pairs: address_pairs(&[7]),
        ..Default::default()
    });
    let volumes = volumes.iter().enumerate().map(|(index, thing)| Volume {
        id: format!("volume-{index}"),
        name: format!("m-v{}", thing.1),
        description: described(thing.0),
        status: if thing.2 { "in-use" } else { "available" }.into(),
        ..Default::default()
    });
    View {
        servers: Arc::new(Table::from_items(servers)),
        ports: Arc::new(Table::from_items(ports)),
        volumes: Arc::new(Table::from_items(volumes)),
        ..View::default()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn whatever_is_recorded_a_plan_writes_only_to_what_has_the_machines_mark(
        (servers, ports, volumes) in (things(), things(), things()),
        provider_id in proptest::option::of(0..6_usize),
        instance_id in proptest::option::of(0..6_usize),
        known_ports in proptest::collection::vec(0..6_usize, 0..3),
        tagging in any::<bool>(),
    ) {
        let cluster = Identity::new();
        let mark = Mark::machine(cluster, Identity::new());
        let neighbour = Mark::machine(cluster, Identity::new());
        let marks = [mark, neighbour, Mark::machine(Identity::new(), Identity::new())];
        let view = Arc::new(cloud(&marks, &servers, &ports, &volumes));
        let of_server = |index: usize| format!("server-{index}");
        let known = References {
            provider_id: provider_id.map(of_server),
            instance_id: instance_id.map(of_server),
            ports: known_ports.iter().map(|index| format!("port-{index}")).collect(),
        };
        let observed = Observed::new(Arc::clone(&view), mark, known);
        let wanted = with_pairs(desired(mark, 2, 2, tagging), &[8]);
        let plans = [
            plan(&wanted, &observed),
            existing(&[], &recorded(&wanted, &[7]), &observed),
            existing(&states(&wanted), &[], &observed),
            plan_deletion(&observed, false),
        ];
        let has_mark = |id: &str| {
            let of_port = view.ports.get(id).map(|port| port.description.as_str());
            let of_volume = view.volumes.get(id).map(|volume| volume.description.as_str());
            let of_server = view.servers.get(id).is_some_and(|server| {
                let mut at_it = view.ports.of_parent(id).iter();
                let proven = at_it.any(|port| Mark::in_description(&port.description) == Some(mark));
                match Mark::in_tags(&server.tags) {
                    Some(tagged) => tagged == mark,
                    None => proven,
                }
            });
            let description = of_port.or(of_volume);
            of_server || description.is_some_and(|text| Mark::in_description(text) == Some(mark))
        };
        for step in plans.iter().flat_map(|plan| &plan.steps) {
            let changed = [change(step, &observed), deletion(step, &observed)];
            let requests = changed.into_iter().chain([request(step, &wanted, &observed)]);
            let requests: Vec<_> = requests.collect();
            for id in requests.iter().flatten().flat_map(written) {
                prop_assert!(has_mark(&id), "{step}: {id} in {view:?}");
            }
        }
    }
}
