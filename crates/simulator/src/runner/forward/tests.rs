use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;
use crate::world::{Forward, Instance, Listener};

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
        vcpus: 1,
        memory_mib: 1,
        disk_gib: 1,
        image: String::new(),
    }
}

fn balanced(members: &[[u8; 4]]) -> World {
    let numbered = members.iter().zip('a'..);
    World {
        instances: numbered
            .map(|(address, id)| instance(&id.to_string(), *address))
            .collect(),
        addresses: vec![
            Forward {
                floating: [127, 5, 0, 1].into(),
                fixed: [10, 6, 0, 5].into(),
            },
            Forward {
                floating: [127, 5, 0, 2].into(),
                fixed: members[0].into(),
            },
            Forward {
                floating: [198, 51, 100, 9].into(),
                fixed: members[0].into(),
            },
        ],
        listeners: vec![Listener {
            id: "l".to_owned(),
            load_balancer_id: "lb".to_owned(),
            project_id: String::new(),
            vip: [10, 6, 0, 5].into(),
            port: 6443,
            protocol: "TCP".to_owned(),
            members: members
                .iter()
                .map(|it| SocketAddr::from((*it, 6443)))
                .collect(),
            allowed_cidrs: vec!["127.0.0.0/8".to_owned()],
        }],
    }
}

fn at(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

#[test]
fn floating_addresses_lead_to_members_and_to_the_ports_that_security_groups_let_in() {
    let world = balanced(&[[10, 6, 0, 7], [10, 6, 0, 8]]);
    let open = |id: &str| match id {
        "a" => vec![22..=22, 8080..=8081, 1..=65535],
        _ => vec![80..=80],
    };
    let found = routes(&world, open, &Outside::default());
    let targets: Vec<(String, Vec<String>)> = found
        .iter()
        .map(|(from, route)| {
            let targets = route.targets.iter().map(ToString::to_string);
            (from.to_string(), targets.collect())
        })
        .collect();
    let expected = [
        ("127.5.0.1:6443", vec!["10.6.0.7:6443", "10.6.0.8:6443"]),
        ("127.5.0.2:22", vec!["10.6.0.7:22"]),
        ("127.5.0.2:8080", vec!["10.6.0.7:8080"]),
        ("127.5.0.2:8081", vec!["10.6.0.7:8081"]),
    ];
    let expected = expected.map(|(from, to)| {
        (
            from.to_owned(),
            to.into_iter().map(str::to_owned).collect::<Vec<_>>(),
        )
    });
    assert_eq!(targets, expected);
    assert_eq!(found[&at("127.5.0.1:6443")].allowed.len(), 1);
}

#[test]
fn an_address_that_two_servers_have_leads_nowhere() {
    let world = balanced(&[[10, 6, 0, 7], [10, 6, 0, 7]]);
    let found = routes(&world, |_| vec![22..=22], &Outside::default());
    assert_eq!(found.len(), 1);
    assert!(found[&at("127.5.0.1:6443")].targets.is_empty());
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

/// Records reports; has no servers.
#[derive(Default)]
struct Reports(Mutex<Vec<Member>>);

impl Servers for Reports {
    fn machine(&self, _: &str) -> Option<crate::machine::Machine> {
        None
    }
    fn ended(&self, _: &str) {}
    fn failed(&self, _: &str, _: &str) {}
    fn answering(&self, members: &[Member]) {
        self.0.lock().extend(members.iter().cloned());
    }
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
    let reports = Arc::new(Reports::default());
    let mut forwards = Forwards::new(reports.clone());
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
    world.listeners[0].members = vec![silent, good];
    forwards.probe(&world).await;
    forwards.probe(&world).await;
    let reported: Vec<(SocketAddr, bool)> = reports
        .0
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
