use openstack::inventory::Table;
use openstack::loadbalancer::{ListenerCreate, LoadBalancerCreate, PoolCreate};
use openstack::network::FixedIp;
use serde_json::json;

use super::*;

const ADDRESS: &str = "10.0.0.5";

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_767_225_600 + seconds).unwrap()
}

/// A Node that was registered at second 0.
fn node(address: &str) -> Arc<Node> {
    let node = json!({
        "metadata": {"name": format!("worker-{address}"), "creationTimestamp": at(0).to_string()},
        "spec": {"providerID": format!("openstack:///server-{address}")},
        "status": {"addresses": [
            {"type": "Hostname", "address": "worker-1"}, {"type": "InternalIP", "address": address},
        ]},
    });
    Arc::new(serde_json::from_value(node).unwrap())
}

fn member(address: &str) -> MemberCreate {
    MemberCreate {
        name: format!("worker-{address}"),
        address: address.to_owned(),
        ..MemberCreate::default()
    }
}

/// A load balancer with a listener for each list of members.
fn desired(members: &[&[&str]]) -> Desired {
    let listener = |members: &&[&str]| ListenerCreate {
        default_pool: Some(PoolCreate {
            members: members.iter().map(|address| member(address)).collect(),
            ..PoolCreate::default()
        }),
        ..ListenerCreate::default()
    };
    let service = serde_json::from_value(json!({"metadata": {"name": "web"}})).unwrap();
    Desired {
        tree: LoadBalancerCreate {
            listeners: members.iter().map(listener).collect(),
            ..LoadBalancerCreate::default()
        },
        floating: None,
        families: Vec::new(),
        apart: None,
        vip_subnet: None,
        member_subnet: None,
        is_internal: false,
        keeps_floating_ip: false,
        hostname: None,
        is_proxied: false,
        keeps_weights: false,
        keeps_nodes: false,
        is_serial: false,
        group: None,
        notices: Vec::new(),
        identity: Identity::new(&service, "kubernetes", "cluster"),
    }
}

/// A view with a port for each address.
fn view(addresses: &[&str]) -> View {
    let port = |address: &&str| Port {
        id: format!("port-{address}"),
        device_id: format!("server-{address}"),
        fixed_ips: vec![FixedIp {
            ip_address: (*address).to_owned(),
            ..FixedIp::default()
        }],
        ..Port::default()
    };
    View {
        ports: Arc::new(Table::from_items(addresses.iter().map(port))),
        ..View::default()
    }
}

#[test]
fn the_port_of_a_member_is_awaited_while_its_node_is_new_and_no_port_has_its_address() {
    let other = "10.0.0.6";
    for (members, ports, node_has, second, expected) in [
        (&[&[ADDRESS][..]][..], &[][..], ADDRESS, 1, true),
        (&[&[ADDRESS]], &[other], ADDRESS, 59, true),
        (&[&[], &[other, ADDRESS]], &[other], ADDRESS, 1, true),
        // The port is known.
        (&[&[ADDRESS]], &[ADDRESS], ADDRESS, 1, false),
        // The Node is older: its address may belong to a port invisible to the project.
        (&[&[ADDRESS]], &[], ADDRESS, 60, false),
        // The member is on another Node.
        (&[&[ADDRESS]], &[], other, 1, false),
        // The Node is no member.
        (&[&[]], &[], ADDRESS, 1, false),
        (&[], &[], ADDRESS, 1, false),
    ] {
        let nodes = [node(node_has)];
        let awaits = awaits_port(&desired(members), &nodes, &view(ports), at(second));
        assert_eq!(
            awaits, expected,
            "{members:?} {ports:?} {node_has} {second}"
        );
    }
}

#[test]
fn the_group_is_for_the_ports_of_the_servers_that_the_nodes_name() {
    let port = |id: &str, server: &str| Port {
        id: id.to_owned(),
        device_id: server.to_owned(),
        device_owner: "compute:nova".to_owned(),
        fixed_ips: vec![FixedIp {
            ip_address: ADDRESS.to_owned(),
            ..FixedIp::default()
        }],
        ..Port::default()
    };
    let ours = format!("server-{ADDRESS}");
    let view = View {
        ports: Arc::new(Table::from_items([
            port("a", "stranger"),
            port("b", &ours),
            port("c", ""),
        ])),
        ..View::default()
    };
    let node = node(ADDRESS);
    let clients = ["0.0.0.0/0".to_owned()];
    let group = wanted(&desired(&[&[ADDRESS]]), Some(&clients), &[&node], &view).unwrap();
    assert_eq!(group.ports, BTreeSet::from(["b".to_owned()]));
    let group = wanted(&desired(&[&[ADDRESS]]), Some(&clients), &[], &view).unwrap();
    assert!(group.ports.is_empty());
}

#[test]
fn a_node_without_time_or_addresses_is_not_awaited() {
    let nodes = [
        json!({}),
        json!({"metadata": {"creationTimestamp": at(0).to_string()}}),
    ];
    let nodes = nodes.map(|node| Arc::new(serde_json::from_value::<Node>(node).unwrap()));
    let desired = desired(&[&[ADDRESS]]);
    assert!(!awaits_port(&desired, &nodes, &view(&[]), at(1)));
}
