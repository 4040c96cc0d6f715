use super::*;
use crate::data_plane::{Forward, Instance, Member};

#[derive(Clone, Debug, PartialEq)]
struct Guest {
    name: &'static str,
    server: String,
    addresses: Vec<SocketAddr>,
}

impl Target for Guest {
    fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    fn server(&self) -> &str {
        &self.server
    }
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// Guest whose server has its name.
fn guest(name: &'static str, address: &str) -> Guest {
    Guest {
        name,
        server: name.to_owned(),
        addresses: vec![address.parse().unwrap()],
    }
}

fn instance(name: &str, fixed: &str) -> Instance {
    Instance {
        id: name.to_owned(),
        name: name.to_owned(),
        project_id: String::new(),
        user_data: None,
        fixed_ips: vec![ip(fixed)],
        availability_zone: String::new(),
        metadata: BTreeMap::new(),
        hostname: name.to_owned(),
        running: true,
        boot: 0,
        disk: 0,
        vcpus: 1,
        memory_mib: 1024,
        disk_gib: 1,
        image: String::new(),
    }
}

/// Listener of a load balancer whose port has its name, and the servers of its members.
fn listener(balancer: &str, vip: &str, port: u16, members: &[(&str, &str)]) -> Listener {
    let member = |(at, server): &(&str, &str)| Member {
        at: at.parse().unwrap(),
        server: Some((*server).to_owned()).filter(|server| !server.is_empty()),
    };
    Listener {
        id: format!("{balancer}-{port}"),
        load_balancer_id: balancer.to_owned(),
        project_id: String::new(),
        vip: ip(vip),
        vip_port_id: balancer.to_owned(),
        vip_network_id: String::new(),
        port,
        protocol: "TCP".to_owned(),
        members: members.iter().map(member).collect(),
        allowed_cidrs: Vec::new(),
    }
}

/// A floating address for the port of a load balancer, or else for that of a server.
fn forward(floating: &str, fixed: &str, owner: &str) -> Forward {
    let is_server = !owner.starts_with("lb");
    Forward {
        floating: ip(floating),
        fixed: ip(fixed),
        port_id: owner.to_owned(),
        server: is_server.then(|| owner.to_owned()),
    }
}

fn world(
    instances: &[(&str, &str)],
    forwards: &[(&str, &str, &str)],
    listeners: Vec<Listener>,
) -> DataPlane {
    let instances = instances.iter();
    let forwards = forwards.iter();
    DataPlane {
        instances: instances
            .map(|(name, fixed)| instance(name, fixed))
            .collect(),
        addresses: forwards
            .map(|(floating, fixed, owner)| forward(floating, fixed, owner))
            .collect(),
        listeners,
    }
}

fn reached_by_default(world: &DataPlane, guests: &[Guest]) -> Vec<(String, Vec<&'static str>)> {
    reached(world, guests, &Outside::default())
}

fn reached(
    world: &DataPlane,
    guests: &[Guest],
    outside: &Outside,
) -> Vec<(String, Vec<&'static str>)> {
    routes(world, guests, outside)
        .into_iter()
        .map(|(at, guests)| {
            (
                at.to_string(),
                guests.iter().map(|guest| guest.name).collect(),
            )
        })
        .collect()
}

#[test]
fn a_floating_address_leads_to_its_server_and_port() {
    let world = world(
        &[("a", "10.6.0.10")],
        &[("127.9.0.1", "10.6.0.10", "a")],
        Vec::new(),
    );
    let guests = [guest("a", "10.6.0.10:7443")];
    assert_eq!(
        reached_by_default(&world, &guests),
        [("127.9.0.1:7443".to_owned(), vec!["a"])]
    );
    assert!(
        reached_by_default(&world, &[]).is_empty(),
        "a server without a guest binds nothing"
    );
}

#[test]
fn a_load_balancer_leads_to_all_its_members() {
    let world = world(
        &[("a", "10.6.0.10"), ("b", "10.6.0.11"), ("c", "10.6.0.12")],
        &[("127.9.0.1", "10.6.0.5", "lb")],
        vec![
            listener(
                "lb",
                "10.6.0.5",
                443,
                &[("10.6.0.10:6443", "a"), ("10.6.0.11:6443", "b")],
            ),
            listener("lb", "10.6.0.5", 80, &[("10.6.0.10:8080", "a")]),
        ],
    );
    let guests = [
        guest("a", "10.6.0.10:6443"),
        guest("b", "10.6.0.11:6443"),
        guest("c", "10.6.0.12:6443"),
    ];
    assert_eq!(
        reached_by_default(&world, &guests),
        [("127.9.0.1:443".to_owned(), vec!["a", "b"])]
    );
}

#[test]
fn two_clusters_with_the_same_fixed_addresses_do_not_mix() {
    let world = world(
        &[("a", "10.6.0.10"), ("b", "10.6.0.10")],
        &[
            ("127.9.0.1", "10.6.0.5", "lb-a"),
            ("127.9.0.2", "10.6.0.5", "lb-b"),
            ("127.9.0.3", "10.6.0.10", "b"),
            ("127.9.0.4", "10.6.0.6", "lb-c"),
        ],
        vec![
            listener("lb-a", "10.6.0.5", 6443, &[("10.6.0.10:6443", "a")]),
            listener("lb-b", "10.6.0.5", 6443, &[("10.6.0.10:6443", "b")]),
            // Nothing has the address in the subnet of the member.
            listener("lb-c", "10.6.0.6", 6443, &[("10.6.0.10:6443", "")]),
        ],
    );
    let (a, b) = (guest("a", "10.6.0.10:6443"), guest("b", "10.6.0.10:6443"));
    let expected = [
        ("127.9.0.1:6443".to_owned(), vec!["a"]),
        ("127.9.0.2:6443".to_owned(), vec!["b"]),
        ("127.9.0.3:6443".to_owned(), vec!["b"]),
    ];
    assert_eq!(reached_by_default(&world, &[a.clone(), b]), expected);
    // The other cluster is not up yet: its address has no route, in particular none to the first cluster.
    assert_eq!(reached_by_default(&world, &[a]), expected[..1]);
}

#[test]
fn addresses_outside_of_loopback_are_not_bound() {
    let world = world(
        &[("a", "10.6.0.10")],
        &[("203.0.113.5", "10.6.0.10", "a")],
        Vec::new(),
    );
    let guests = [guest("a", "10.6.0.10:6443")];
    assert!(reached_by_default(&world, &guests).is_empty());
    // Unless the ranges, of floating and of fixed addresses, are local to the machine or network namespace.
    let all = Outside::with(vec![
        "203.0.113.0/24".parse().unwrap(),
        "10.6.0.0/24".parse().unwrap(),
    ]);
    assert_eq!(
        reached(&world, &guests, &all),
        [
            ("10.6.0.10:6443".to_owned(), vec!["a"]),
            ("203.0.113.5:6443".to_owned(), vec!["a"])
        ]
    );
}

#[test]
fn a_server_on_the_external_network_is_reached_without_a_floating_address() {
    let world = world(&[("a", "127.9.0.7")], &[], Vec::new());
    let guests = [guest("a", "127.9.0.7:6443")];
    assert_eq!(
        reached_by_default(&world, &guests),
        [("127.9.0.7:6443".to_owned(), vec!["a"])]
    );
}

#[test]
fn a_thousand_clusters_with_the_same_fixed_addresses_are_told_apart_in_no_time() {
    let floating = |n: usize| format!("127.9.{}.{}", n / 250, n % 250 + 1);
    let names: Vec<String> = (0..1000).map(floating).collect();
    let balancer = |name: &String| format!("lb-{name}");
    let instances: Vec<(&str, &str)> = names.iter().map(|it| (it.as_str(), "10.6.0.10")).collect();
    let balancers: Vec<String> = names.iter().map(balancer).collect();
    let forwards = names.iter().zip(&balancers);
    let forwards: Vec<(&str, &str, &str)> = forwards
        .map(|(name, balancer)| (name.as_str(), "10.6.0.5", balancer.as_str()))
        .collect();
    let member = |name: &String| {
        let members = [("10.6.0.10:6443", name.as_str())];
        listener(&balancer(name), "10.6.0.5", 6443, &members)
    };
    let world = world(&instances, &forwards, names.iter().map(member).collect());
    let guests: Vec<Guest> = names
        .iter()
        .map(|name| Guest {
            server: name.clone(),
            ..guest("any", "10.6.0.10:6443")
        })
        .collect();
    let started = std::time::Instant::now();
    let found = routes(&world, &guests, &Outside::default());
    // A search through all clusters for each of them takes seconds.
    assert!(started.elapsed() < std::time::Duration::from_secs(1));
    assert_eq!(found.len(), 1000);
    for (at, guests) in found {
        let servers: Vec<_> = guests.iter().map(|it| it.server.as_str()).collect();
        assert_eq!(servers, [at.ip().to_string()]);
    }
}
