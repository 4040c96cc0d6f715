use std::ops::RangeInclusive;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;
use crate::data_plane::{self, Forward, Instance, Listener};
use crate::machine::{Address, Machine, Port, Servers};

/// The address of every load balancer.
const VIP: [u8; 4] = [10, 6, 0, 5];

fn instance(id: &str, address: [u8; 4]) -> Instance {
    Instance {
        id: id.to_owned(),
        name: id.to_owned(),
        project_id: String::new(),
        user_data: None,
        fixed_ips: vec![address.into()],
        availability_zone: String::new(),
        metadata: BTreeMap::new(),
        hostname: id.to_owned(),
        running: true,
        boot: 1,
        disk: 0,
        vcpus: 1,
        memory_mib: 1,
        disk_gib: 1,
        image: String::new(),
    }
}

fn balanced(members: &[[u8; 4]]) -> DataPlane {
    let numbered = members.iter().zip('a'..);
    DataPlane {
        instances: numbered
            .map(|(address, id)| instance(&id.to_string(), *address))
            .collect(),
        addresses: vec![
            Forward {
                floating: [127, 5, 0, 1].into(),
                fixed: VIP.into(),
                port_id: "vip".to_owned(),
                server: None,
            },
            Forward {
                floating: [127, 5, 0, 2].into(),
                fixed: members[0].into(),
                port_id: "port-a".to_owned(),
                server: Some("a".to_owned()),
            },
            Forward {
                floating: [198, 51, 100, 9].into(),
                fixed: members[0].into(),
                port_id: "port-a".to_owned(),
                server: Some("a".to_owned()),
            },
        ],
        listeners: vec![Listener {
            id: "l".to_owned(),
            load_balancer_id: "lb".to_owned(),
            project_id: String::new(),
            vip: VIP.into(),
            vip_port_id: "vip".to_owned(),
            vip_network_id: "net".to_owned(),
            port: 6443,
            protocol: "TCP".to_owned(),
            members: members
                .iter()
                .zip('a'..)
                .map(|(it, id)| member(SocketAddr::from((*it, 6443)), Some(&id.to_string())))
                .collect(),
            allowed_cidrs: vec!["127.0.0.0/8".to_owned()],
        }],
    }
}

fn member(at: SocketAddr, server: Option<&str>) -> data_plane::Member {
    data_plane::Member {
        at,
        server: server.map(str::to_owned),
    }
}

fn at(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

/// Cloud that records reports. Its servers are machines with one port, in a subnet common to all networks.
#[derive(Default)]
struct Cloud {
    machines: Mutex<BTreeMap<String, Machine>>,
    reports: Mutex<Vec<Member>>,
}

impl Cloud {
    fn add(&self, id: &str, network: &str, address: [u8; 4], open: &[RangeInclusive<u16>]) {
        let port = Port {
            id: format!("port-{id}"),
            mac_address: String::new(),
            network_id: network.to_owned(),
            network_name: network.to_owned(),
            mtu: 1500,
            addresses: vec![Address {
                address: address.into(),
                subnet_id: format!("subnet-of-{network}"),
                cidr: "10.6.0.0/24".parse().unwrap(),
                gateway: None,
                dns_nameservers: Vec::new(),
                routes: Vec::new(),
                dhcp: true,
            }],
            open: open.to_vec(),
        };
        let machine = Machine {
            ports: vec![port],
            ..Machine::default()
        };
        self.machines.lock().insert(id.to_owned(), machine);
    }
}

impl Servers for Cloud {
    fn machine(&self, id: &str) -> Option<Machine> {
        self.machines.lock().get(id).cloned()
    }
    fn ended(&self, _: &str, _: u64) {}
    fn failed(&self, _: &str, _: u64, _: &str) {}
    fn answering(&self, members: &[Member]) {
        self.reports.lock().extend(members.iter().cloned());
    }
}

/// Each route and its targets.
fn targets(routes: &Routes) -> Vec<(String, Vec<String>)> {
    let text = |(from, route): (&SocketAddr, &Route)| {
        let targets = route.targets.iter().map(ToString::to_string);
        (from.to_string(), targets.collect())
    };
    routes.iter().map(text).collect()
}

fn expected(all: &[(&str, &[&str])]) -> Vec<(String, Vec<String>)> {
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    let one = |(from, to): &(&str, &[&str])| ((*from).to_owned(), owned(to));
    all.iter().map(one).collect()
}

#[test]
fn floating_addresses_lead_to_members_and_to_the_ports_that_security_groups_let_in() {
    let world = balanced(&[[10, 6, 0, 7], [10, 6, 0, 8]]);
    let cloud = Arc::new(Cloud::default());
    let open = [22..=22, 8080..=8081, 1..=65535];
    cloud.add("a", "net", [10, 6, 0, 7], &open);
    cloud.add("b", "net", [10, 6, 0, 8], &[80..=80]);
    let mut hosts = Hosts::new(cloud);
    hosts.follow(&world);
    let found = routes(&world, &hosts, &Outside::default());
    let wanted = expected(&[
        ("127.5.0.1:6443", &["10.6.0.7:6443", "10.6.0.8:6443"]),
        ("127.5.0.2:22", &["10.6.0.7:22"]),
        ("127.5.0.2:8080", &["10.6.0.7:8080"]),
        ("127.5.0.2:8081", &["10.6.0.7:8081"]),
    ]);
    assert_eq!(targets(&found), wanted);
    assert_eq!(found[&at("127.5.0.1:6443")].allowed.len(), 1);
}

#[test]
fn an_address_that_two_servers_had_from_the_beginning_leads_nowhere() {
    let world = balanced(&[[10, 6, 0, 7], [10, 6, 0, 7]]);
    let cloud = Arc::new(Cloud::default());
    cloud.add("a", "net", [10, 6, 0, 7], &[22..=22]);
    cloud.add("b", "net", [10, 6, 0, 7], &[22..=22]);
    let mut hosts = Hosts::new(cloud);
    hosts.follow(&world);
    let found = routes(&world, &hosts, &Outside::default());
    assert_eq!(targets(&found), expected(&[("127.5.0.1:6443", &[])]));
}

/// The world with a second cluster whose network, load balancer and server have the addresses of the first.
fn with_its_double(world: &DataPlane) -> DataPlane {
    let mut both = world.clone();
    both.instances.push(instance("z", [10, 6, 0, 7]));
    for (floating, fixed, port) in [(8, VIP, "vip-2"), (9, [10, 6, 0, 7], "port-z")] {
        both.addresses.push(Forward {
            floating: [127, 5, 0, floating].into(),
            fixed: fixed.into(),
            port_id: port.to_owned(),
            server: port.strip_prefix("port-").map(str::to_owned),
        });
    }
    // The second member is in no subnet of the second network.
    let mut members = world.listeners[0].members.clone();
    members[0].server = Some("z".to_owned());
    if let Some(second) = members.get_mut(1) {
        second.server = None;
    }
    both.listeners.push(Listener {
        members,
        id: "l-2".to_owned(),
        load_balancer_id: "lb-2".to_owned(),
        vip_port_id: "vip-2".to_owned(),
        vip_network_id: "net-2".to_owned(),
        ..world.listeners[0].clone()
    });
    both
}

#[test]
fn a_second_cluster_with_the_same_addresses_takes_nothing_from_the_first() {
    let world = balanced(&[[10, 6, 0, 7], [10, 6, 0, 8]]);
    let cloud = Arc::new(Cloud::default());
    cloud.add("a", "net", [10, 6, 0, 7], &[22..=22]);
    cloud.add("b", "net", [10, 6, 0, 8], &[]);
    cloud.add("z", "net-2", [10, 6, 0, 7], &[22..=22]);
    let mut hosts = Hosts::new(cloud);
    hosts.follow(&world);
    let both = with_its_double(&world);
    hosts.follow(&both);
    let found = routes(&both, &hosts, &Outside::default());
    let wanted = expected(&[
        ("127.5.0.1:6443", &["10.6.0.7:6443", "10.6.0.8:6443"]),
        ("127.5.0.2:22", &["10.6.0.7:22"]),
        // The second load balancer exists, and no machine is in its network.
        ("127.5.0.8:6443", &[]),
    ]);
    assert_eq!(targets(&found), wanted);

    // Once the first server is deleted, the second one has its address.
    let mut later = both.clone();
    later.instances.retain(|instance| instance.id != "a");
    hosts.follow(&later);
    let found = routes(&later, &hosts, &Outside::default());
    let wanted = expected(&[
        ("127.5.0.1:6443", &["10.6.0.8:6443"]),
        ("127.5.0.8:6443", &["10.6.0.7:6443"]),
        ("127.5.0.9:22", &["10.6.0.7:22"]),
    ]);
    assert_eq!(targets(&found), wanted);
}

#[tokio::test]
async fn a_member_in_another_network_with_the_same_addresses_does_not_answer() {
    let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = server.local_addr().unwrap();
    let cloud = Arc::new(Cloud::default());
    cloud.add("a", "net", [127, 0, 0, 1], &[]);
    let mut world = balanced(&[[127, 0, 0, 1]]);
    let mut both = with_its_double(&world);
    both.instances.truncate(1);
    for (listener, server) in both.listeners.iter_mut().zip(["a", "z"]) {
        listener.members = vec![member(address, Some(server))];
    }
    world.listeners.clear();
    let mut hosts = Hosts::new(cloud.clone());
    hosts.follow(&world);
    Forwards::new(cloud.clone()).probe(&both, &hosts).await;
    let reports = cloud.reports.lock();
    let found: Vec<(&str, bool)> = reports
        .iter()
        .map(|it| (it.load_balancer_id.as_str(), it.answers))
        .collect();
    assert_eq!(found, [("lb", true), ("lb-2", false)]);
}

#[test]
fn those_that_answered_are_tried_in_turn_and_the_others_last() {
    let all = [at("10.0.0.1:1"), at("10.0.0.2:1"), at("10.0.0.3:1")];
    let silent = BTreeSet::from([all[1]]);
    assert_eq!(in_turn(&all, &silent, 0), [all[0], all[2], all[1]]);
    assert_eq!(in_turn(&all, &silent, 1), [all[2], all[0], all[1]]);
    assert_eq!(in_turn(&all, &all.into(), 5), all);
    assert!(in_turn(&[], &silent, 1).is_empty());
}

#[tokio::test]
async fn a_connection_goes_to_a_member_that_answers_and_silent_ones_are_reported_once() {
    let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let good = server.local_addr().unwrap();
    // Bound, so that no other process listens there, but not listening.
    let closed = tokio::net::TcpSocket::new_v4().unwrap();
    closed.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let silent = closed.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = server.accept().await {
            tokio::spawn(async move { stream.write_all(b"hello").await });
        }
    });
    let cloud = Arc::new(Cloud::default());
    let hosts = Hosts::new(cloud.clone());
    let mut forwards = Forwards::new(cloud.clone());
    // An address of this process alone, on which no test takes a free port.
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    let outside = SocketAddr::from(([127, 64 | (high & 0x3f), middle, low.max(1)], 6443));
    let route = Route {
        targets: vec![silent, good],
        allowed: vec!["127.0.0.0/8".parse().unwrap()],
    };
    forwards
        .follow(Routes::from([(outside, route.clone())]))
        .await;
    for _ in 0..4 {
        assert_eq!(received(outside).await, "hello");
    }
    let mut world = balanced(&[[10, 6, 0, 7]]);
    world.listeners[0].members = vec![member(silent, None), member(good, None)];
    forwards.probe(&world, &hosts).await;
    forwards.probe(&world, &hosts).await;
    let reported: Vec<(SocketAddr, bool)> = cloud
        .reports
        .lock()
        .iter()
        .map(|it| (it.address, it.answers))
        .collect();
    assert_eq!(reported.len(), 2);
    assert!(reported.contains(&(silent, false)) && reported.contains(&(good, true)));

    let closed = Route {
        allowed: vec!["10.0.0.0/8".parse().unwrap()],
        ..route
    };
    forwards.follow(Routes::from([(outside, closed)])).await;
    assert_eq!(received(outside).await, "", "not from this address");
    forwards.follow(Routes::new()).await;
    let begun = std::time::Instant::now();
    while TcpStream::connect(outside).await.is_ok() {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "the address is still bound"
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn received(at: SocketAddr) -> String {
    let mut text = Vec::new();
    let mut stream = TcpStream::connect(at).await.unwrap();
    let _ = stream.read_to_end(&mut text).await;
    String::from_utf8(text).unwrap()
}
