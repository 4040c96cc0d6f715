use std::sync::Arc;

use openstack::compute::{Address, Server, UserData};
use openstack::image::Image;
use openstack::loadbalancer::Reference;
use openstack::network::FixedIp;

use super::*;
use crate::boots::Starts;

fn server(id: &str, status: &str) -> HostedServer {
    HostedServer {
        server: Server {
            id: id.to_owned(),
            name: format!("name-{id}"),
            status: status.to_owned(),
            image: serde_json::json!({"id": "i1"}),
            ..Server::default()
        },
        hostname: "host".to_owned(),
        user_data: Some(UserData::new("#cloud-config")),
        ..HostedServer::default()
    }
}

fn port(server: &str, addresses: &[&str]) -> Port {
    Port {
        device_id: server.to_owned(),
        fixed_ips: addresses
            .iter()
            .map(|address| FixedIp {
                ip_address: (*address).to_owned(),
                ..FixedIp::default()
            })
            .collect(),
        ..Port::default()
    }
}

fn balanced(balancer: &str, listener: &str) -> Observation {
    Observation {
        load_balancers: vec![LoadBalancer {
            id: "lb".to_owned(),
            vip_address: "10.0.0.9".to_owned(),
            vip_subnet_id: "here".to_owned(),
            provisioning_status: balancer.to_owned(),
            ..LoadBalancer::default()
        }],
        listeners: vec![loadbalancer::Listener {
            id: "l".to_owned(),
            protocol_port: 6443,
            default_pool_id: Some("p".to_owned()),
            provisioning_status: listener.to_owned(),
            loadbalancers: vec![Reference {
                id: "lb".to_owned(),
            }],
            ..loadbalancer::Listener::default()
        }],
        members: ["p", "other"]
            .map(|pool| loadbalancer::Member {
                id: format!("m-{pool}"),
                address: "10.0.0.4".to_owned(),
                protocol_port: 6443,
                pool_id: pool.into(),
                ..loadbalancer::Member::default()
            })
            .into(),
        ..Observation::default()
    }
}

#[test]
fn only_servers_that_exist_and_have_user_data_are_guests() {
    let mut without = server("f", "ACTIVE");
    without.user_data = None;
    let mut deleting = server("e", "ACTIVE");
    deleting.server.task_state = Some("deleting".to_owned());
    let image = Image {
        name: "ubuntu".to_owned(),
        ..Image::default()
    };
    let seen = Observation {
        servers: vec![
            server("g", "DELETED"),
            without,
            deleting,
            server("d", "SHUTOFF"),
            server("c", "ERROR"),
            server("b", "BUILD"),
            server("a", "ACTIVE"),
        ],
        images: Arc::new([("i1".to_owned(), image)].into()),
        boots: [("a".to_owned(), Starts { boot: 7, disk: 0 })].into(),
        ..Observation::default()
    };
    let world = world(&seen);
    let found: Vec<(&str, bool)> = world
        .instances
        .iter()
        .map(|instance| (instance.id.as_str(), instance.running))
        .collect();
    assert_eq!(found, [("a", true), ("d", false), ("e", false)]);
    assert_eq!(world.instances[0].image, "ubuntu");
    assert_eq!(world.instances[0].boot, 7);
    assert_eq!(world.instances[0].hostname, "host");
}

#[test]
fn addresses_are_in_the_order_in_which_nova_shows_them() {
    let mut listed = server("a", "ACTIVE");
    let address = |addr: &str| Address {
        addr: addr.to_owned(),
        ..Address::default()
    };
    listed.server.addresses = [(
        "net".to_owned(),
        vec![address("10.0.0.7"), address("10.0.0.3")],
    )]
    .into();
    let seen = Observation {
        servers: vec![listed],
        ports: vec![
            port("a", &["10.0.0.3"]),
            port("other", &["10.0.0.4"]),
            port("a", &["10.0.0.7", "10.0.0.1", "not an address"]),
        ],
        ..Observation::default()
    };
    let fixed: Vec<String> = world(&seen).instances[0]
        .fixed_ips
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(fixed, ["10.0.0.7", "10.0.0.3", "10.0.0.1"]);
}

#[test]
fn a_listener_serves_once_it_is_configured_and_while_it_is_changed() {
    for (balancer, listener, serves) in [
        ("ACTIVE", "ACTIVE", true),
        ("PENDING_UPDATE", "PENDING_UPDATE", true),
        ("PENDING_UPDATE", "PENDING_CREATE", false),
        ("PENDING_CREATE", "PENDING_CREATE", false),
        ("ERROR", "ACTIVE", false),
        ("PENDING_DELETE", "ACTIVE", false),
    ] {
        let found = world(&balanced(balancer, listener)).listeners;
        assert_eq!(!found.is_empty(), serves, "{balancer} {listener}");
    }
}

#[test]
fn a_listener_has_the_members_of_its_own_pool() {
    let at = |subnet: &str, server: &str| Port {
        device_owner: "compute:nova".to_owned(),
        device_id: server.to_owned(),
        fixed_ips: vec![FixedIp {
            subnet_id: subnet.to_owned(),
            ip_address: "10.0.0.4".to_owned(),
        }],
        ..Port::default()
    };
    let seen = Observation {
        ports: vec![at("there", "stranger"), at("here", "node"), at("far", "x")],
        ..balanced("ACTIVE", "ACTIVE")
    };
    let found = world(&seen).listeners;
    let member = Member {
        at: "10.0.0.4:6443".parse().unwrap(),
        server: Some("node".to_owned()),
    };
    assert_eq!(found[0].members, [member]);
    assert_eq!(found[0].vip, "10.0.0.9".parse::<IpAddr>().unwrap());
}

#[test]
fn a_floating_ip_that_leads_nowhere_is_not_a_forward() {
    let floating = |fixed: Option<&str>| FloatingIp {
        floating_ip_address: "127.24.0.9".to_owned(),
        fixed_ip_address: fixed.map(str::to_owned),
        ..FloatingIp::default()
    };
    let seen = Observation {
        floating_ips: vec![floating(None), floating(Some("10.0.0.3"))],
        ..Observation::default()
    };
    assert_eq!(world(&seen).addresses.len(), 1);
}
