use openstack::inventory::Table;
use openstack::network::{FixedIp, Router, RouterGateway};

use super::*;

fn fixed(subnet: &str, address: &str) -> FixedIp {
    FixedIp {
        subnet_id: subnet.to_owned(),
        ip_address: address.to_owned(),
    }
}

fn port(id: &str, fixed_ips: Vec<FixedIp>) -> Port {
    Port {
        id: id.to_owned(),
        name: id.to_owned(),
        fixed_ips,
        ..Port::default()
    }
}

fn view(ports: Vec<Port>, ips: Vec<FloatingIp>) -> View {
    let gateway = RouterGateway {
        network_id: "external".to_owned(),
        ..RouterGateway::default()
    };
    let router = Router {
        id: "router".to_owned(),
        external_gateway_info: Some(gateway),
        ..Router::default()
    };
    let interface = Port {
        device_id: "router".to_owned(),
        device_owner: "network:router_interface".to_owned(),
        ..port("interface", vec![fixed("routed", "10.1.0.1")])
    };
    View {
        ports: Arc::new(Table::from_items([ports, vec![interface]].concat())),
        routers: Arc::new(Table::from_items(vec![router])),
        floating_ips: Arc::new(Table::from_items(ips)),
        ..View::default()
    }
}

fn floating_ip(address: &str) -> FloatingIp {
    FloatingIp {
        id: format!("id-{address}"),
        floating_ip_address: address.to_owned(),
        floating_network_id: "external".to_owned(),
        ..FloatingIp::default()
    }
}

fn place(ports: Vec<Port>, ips: Vec<FloatingIp>) -> Option<(String, String)> {
    let shared: Vec<_> = ports.iter().cloned().map(Arc::new).collect();
    let (_, change) = association("192.0.2.1", &shared, &view(ports, ips))?;
    Some((change.port_id.unwrap(), change.fixed_ip_address.unwrap()))
}

#[test]
fn the_port_is_one_that_a_router_connects_to_the_network_of_the_address() {
    let ports = vec![
        port("a", vec![fixed("isolated", "10.2.0.5")]),
        port(
            "b",
            vec![fixed("routed", "2001:db8::5"), fixed("routed", "10.1.0.5")],
        ),
    ];
    let found = place(ports, vec![floating_ip("192.0.2.1")]);
    assert_eq!(found, Some(("b".to_owned(), "10.1.0.5".to_owned())));
}

#[test]
fn without_a_router_that_the_project_sees_neutron_decides_about_the_first_port() {
    let ports = vec![port("a", vec![fixed("isolated", "10.2.0.5")])];
    let found = place(ports, vec![floating_ip("192.0.2.1")]);
    assert_eq!(found, Some(("a".to_owned(), "10.2.0.5".to_owned())));
}

#[test]
fn an_address_that_has_a_floating_ip_gets_no_second_one() {
    let ports = vec![
        port("a", vec![fixed("routed", "10.1.0.5")]),
        port("b", vec![fixed("routed", "10.1.0.6")]),
    ];
    let other = FloatingIp {
        port_id: Some("a".to_owned()),
        fixed_ip_address: Some("10.1.0.5".to_owned()),
        ..floating_ip("192.0.2.2")
    };
    let found = place(ports, vec![floating_ip("192.0.2.1"), other.clone()]);
    assert_eq!(found, Some(("b".to_owned(), "10.1.0.6".to_owned())));
    let ports = vec![port("a", vec![fixed("routed", "10.1.0.5")])];
    assert_eq!(place(ports, vec![floating_ip("192.0.2.1"), other]), None);
}

#[test]
fn only_a_floating_ip_of_the_pool_or_of_nobody_is_associated() {
    let id = |text: &str| Identity::parse(text).unwrap();
    let pool = id("6f9f1a52-8a5e-4a2a-9a63-3f1d5a1b2c3d");
    let other = id("0a9f1a52-8a5e-4a2a-9a63-3f1d5a1b2c3d");
    let given = Given {
        address: "192.0.2.1".to_owned(),
        pool: Some(pool),
    };
    let checked = |change: fn(FloatingIp, Identity) -> FloatingIp, id: Identity| {
        let ip = change(floating_ip("192.0.2.1"), id);
        let check = given.check(
            &[Arc::new(port("a", Vec::new()))],
            &view(Vec::new(), vec![ip]),
        );
        check.map_err(|problem| problem.message)
    };
    let marked = |ip: FloatingIp, id: Identity| FloatingIp {
        description: id.pool_description("p"),
        ..ip
    };
    let of_cluster = |ip: FloatingIp, id: Identity| FloatingIp {
        description: Mark::cluster(id).description("x"),
        ..ip
    };
    let at = |ip: FloatingIp, _| FloatingIp {
        port_id: Some("b".to_owned()),
        ..ip
    };
    assert_eq!(checked(|ip, _| ip, pool), Ok(()));
    assert_eq!(checked(marked, pool), Ok(()));
    for (found, words) in [
        (
            checked(marked, other),
            "was allocated by the pool with identity 0a9f",
        ),
        (
            checked(of_cluster, pool),
            "was created for the cluster with identity 6f9f",
        ),
        (checked(at, pool), "is on port b"),
    ] {
        assert!(
            found.clone().is_err_and(|text| text.contains(words)),
            "{found:?}"
        );
    }
    let none = given.check(&[], &View::default()).unwrap_err();
    assert_eq!(none.searched, Some(Kind::FloatingIps));
}
