use openstack::network::FixedIp;

use super::*;

fn port(status: &str, addresses: &[&str]) -> Arc<Port> {
    let fixed_ips = addresses.iter().map(|ip| FixedIp {
        ip_address: (*ip).to_owned(),
        ..FixedIp::default()
    });
    Arc::new(Port {
        status: status.to_owned(),
        fixed_ips: fixed_ips.collect(),
        ..Port::default()
    })
}

use std::sync::Arc;

fn server(networks: &[(&str, &[(&str, &str)])]) -> Server {
    let mut server = Server::default();
    for (network, addresses) in networks {
        let list = addresses.iter().map(|(addr, kind)| Address {
            addr: (*addr).to_owned(),
            kind: (*kind).to_owned(),
            ..Address::default()
        });
        server
            .addresses
            .insert((*network).to_owned(), list.collect());
    }
    server
}

fn lines(addresses: &[NodeAddress]) -> Vec<String> {
    addresses
        .iter()
        .map(|a| format!("{} {}", a.type_, a.address))
        .collect()
}

fn of(server: &Server, ports: &[Arc<Port>], networking: &Networking) -> Vec<String> {
    lines(&of_server(server, ports, &[], networking))
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn addresses_come_in_the_order_of_the_go_manager() {
    let mut server = server(&[
        (
            "private",
            &[
                ("10.0.0.5", "fixed"),
                ("fd00::5", "fixed"),
                ("203.0.113.7", "floating"),
            ],
        ),
        ("another", &[("10.1.0.5", "fixed")]),
    ]);
    server.access_ipv4 = "198.51.100.1".to_owned();
    server.access_ipv6 = "2001:db8::1".to_owned();
    server
        .metadata
        .insert("hostname".to_owned(), "given".to_owned());
    let ports = [
        port("ACTIVE", &["10.0.0.5", "fd00::5"]),
        port("DOWN", &["10.9.9.9"]),
    ];
    let all = [
        "InternalIP 10.0.0.5",
        "InternalIP fd00::5",
        "ExternalIP 198.51.100.1",
        "ExternalIP 2001:db8::1",
        "Hostname given",
        "InternalIP 10.1.0.5",
        "ExternalIP 203.0.113.7",
    ];
    assert_eq!(of(&server, &ports, &Networking::default()), all);
    let without_ipv6 = Networking {
        ipv6_support_disabled: true,
        ..Networking::default()
    };
    let expected: Vec<_> = all.iter().filter(|line| !line.contains(':')).collect();
    assert_eq!(
        of(&server, &ports, &without_ipv6)
            .iter()
            .collect::<Vec<_>>(),
        expected
    );
}

#[test]
fn networks_make_addresses_external_internal_or_none() {
    let server = server(&[
        ("dmz", &[("192.0.2.5", "fixed")]),
        ("nodes", &[("10.0.0.5", "fixed")]),
        ("storage", &[("10.2.0.5", "fixed")]),
    ]);
    let ports = [port("ACTIVE", &["10.0.0.5", "10.2.0.5", "192.0.2.5"])];
    let networking = Networking {
        public_network_names: names(&["dmz"]),
        internal_network_names: names(&["nodes"]),
        ..Networking::default()
    };
    assert_eq!(
        of(&server, &ports, &networking),
        ["InternalIP 10.0.0.5", "ExternalIP 192.0.2.5"]
    );
    let all_internal = Networking {
        public_network_names: names(&["dmz"]),
        ..Networking::default()
    };
    assert_eq!(
        of(&server, &ports, &all_internal),
        [
            "InternalIP 10.0.0.5",
            "InternalIP 10.2.0.5",
            "ExternalIP 192.0.2.5"
        ]
    );
}

#[test]
fn the_addresses_of_subports_are_those_of_their_network() {
    let carried = port("ACTIVE", &["10.7.0.5"]);
    let subports = [Subport {
        network: "vlan7",
        port: &carried,
    }];
    let (server, ports) = (
        server(&[("nodes", &[("10.0.0.5", "fixed")])]),
        [port("ACTIVE", &["10.0.0.5"])],
    );
    let of = |networking: &Networking| lines(&of_server(&server, &ports, &subports, networking));
    assert_eq!(
        of(&Networking::default()),
        ["InternalIP 10.0.0.5", "InternalIP 10.7.0.5"]
    );
    let internal = Networking {
        internal_network_names: names(&["nodes"]),
        ..Networking::default()
    };
    assert_eq!(of(&internal), ["InternalIP 10.0.0.5"]);
}

#[test]
fn ranges_of_the_sort_order_come_first_and_are_sorted_within() {
    let server = server(&[]);
    let ports = [port(
        "ACTIVE",
        &[
            "172.16.0.1",
            "10.0.0.9",
            "192.168.0.1",
            "10.0.0.10",
            "fd00::1",
        ],
    )];
    let networking = Networking {
        address_sort_order: ["192.168.0.0/16", "10.0.0.0/8"]
            .map(|net| net.parse().unwrap())
            .to_vec(),
        ..Networking::default()
    };
    let expected = [
        "192.168.0.1",
        "10.0.0.9",
        "10.0.0.10",
        "172.16.0.1",
        "fd00::1",
    ];
    assert_eq!(
        of(&server, &ports, &networking),
        expected.map(|ip| format!("InternalIP {ip}"))
    );
}

#[test]
fn what_the_kubelet_decided_wins() {
    let address = |type_: &str, address: &str| NodeAddress {
        type_: type_.to_owned(),
        address: address.to_owned(),
    };
    let cloud = || {
        vec![
            address(INTERNAL, "10.0.0.5"),
            address(INTERNAL, "10.1.0.5"),
            address(INTERNAL, "fd00::5"),
            address(EXTERNAL, "203.0.113.7"),
        ]
    };
    let kubelet = [address(INTERNAL, "1.2.3.4"), address(HOSTNAME, "node-1")];
    let merged =
        |provided: Option<&str>| with_kubelet(cloud(), &kubelet, provided).map(|list| lines(&list));
    let all = [
        "InternalIP 10.0.0.5",
        "InternalIP 10.1.0.5",
        "InternalIP fd00::5",
        "ExternalIP 203.0.113.7",
        "Hostname node-1",
    ];
    assert_eq!(merged(None).unwrap(), all);
    assert_eq!(
        merged(Some("10.1.0.5")).unwrap(),
        [
            "InternalIP 10.1.0.5",
            "ExternalIP 203.0.113.7",
            "Hostname node-1"
        ]
    );
    assert_eq!(
        merged(Some("10.1.0.5,FD00:0::5")).unwrap(),
        [
            "InternalIP 10.1.0.5",
            "InternalIP fd00::5",
            "ExternalIP 203.0.113.7",
            "Hostname node-1"
        ]
    );
    let error = merged(Some("10.9.0.1")).unwrap_err();
    assert!(
        error.contains("10.9.0.1 (--node-ip)") && error.contains("10.0.0.5"),
        "{error}"
    );
}

#[test]
fn a_server_without_an_address_for_its_node_is_a_problem_that_names_key_value_and_networks() {
    let mut server = server(&[
        (
            "nodes",
            &[("10.0.0.5", "fixed"), ("203.0.113.7", "floating")],
        ),
        ("storage", &[("10.2.0.5", "fixed")]),
    ]);
    (server.name, server.id) = ("worker-1".to_owned(), "s-1".to_owned());
    // A host name is no address.
    let hostname = ("hostname".to_owned(), "given".to_owned());
    server.metadata.extend([hostname]);
    let found = |server: &Server, networking: &Networking| {
        let found = of_server(server, &[] as &[Arc<Port>], &[], networking);
        problem(server, &[], &found, networking)
    };
    let internal = |list: &[&str]| Networking {
        internal_network_names: names(list),
        ..Networking::default()
    };
    assert_eq!(found(&server, &Networking::default()), None);
    assert_eq!(found(&server, &internal(&["nodes"])), None);
    let problem = found(&server, &internal(&["nosuchnet", "other"])).unwrap();
    for words in [
        "server worker-1 (s-1)",
        "internal-network-name (nosuchnet, other), but in nodes, storage:",
    ] {
        assert!(problem.contains(words), "{problem}");
    }
    // Where cloud.conf names public networks, an address there is enough.
    let public = Networking {
        public_network_names: names(&["storage"]),
        ..internal(&["nosuchnet"])
    };
    assert_eq!(found(&server, &public), None);
    server.addresses.clear();
    let problem = found(&server, &Networking::default()).unwrap();
    assert!(problem.contains("has no address: attach it"), "{problem}");
}

#[test]
fn addresses_of_ipv6_alone_are_a_problem_where_ipv6_is_not_supported() {
    let server = server(&[("nodes", &[("fd00::5", "fixed")])]);
    let networking = Networking {
        ipv6_support_disabled: true,
        ..Networking::default()
    };
    let found = of_server(&server, &[] as &[Arc<Port>], &[], &networking);
    let problem = problem(&server, &[], &found, &networking).unwrap();
    assert!(problem.contains("ipv6-support-disabled"), "{problem}");
}
