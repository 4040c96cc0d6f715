use std::sync::Arc;

use openstack::compute::{self, AttachedVolume, Server, ServerFlavor};
use openstack::network::HostRoute;
use openstack::volume::VolumeAttachment;
use serde_json::json;

use super::super::observe::Hardware;
use super::*;

fn text(text: &str) -> String {
    text.to_owned()
}

fn hosted() -> HostedServer {
    let address = |addr: &str| compute::Address {
        addr: text(addr),
        ..compute::Address::default()
    };
    HostedServer {
        server: Server {
            id: text("s1"),
            status: text("ERROR"),
            image: json!({"id": "i1"}),
            flavor: ServerFlavor {
                original_name: text("m1.small"),
                ..ServerFlavor::default()
            },
            volumes: vec![AttachedVolume {
                id: text("v1"),
                ..AttachedVolume::default()
            }],
            key_name: text("mine"),
            addresses: [(text("net"), vec![address("10.6.0.9"), address("10.6.0.5")])].into(),
            ..Server::default()
        },
        user_id: text("u1"),
        config_drive: text("True"),
        ..HostedServer::default()
    }
}

fn port(id: &str, server: &str, address: &str) -> Port {
    Port {
        id: text(id),
        device_id: text(server),
        network_id: text("n1"),
        mac_address: text("fa:16:3e:00:00:01"),
        fixed_ips: vec![FixedIp {
            subnet_id: text("sub1"),
            ip_address: text(address),
        }],
        security_groups: vec![text("g1"), text("g2")],
        ..Port::default()
    }
}

fn rule(direction: &str, protocol: Option<&str>, ports: (i64, i64)) -> SecurityGroupRule {
    SecurityGroupRule {
        direction: text(direction),
        protocol: protocol.map(text),
        port_range_min: Some(ports.0),
        port_range_max: Some(ports.1),
        ..SecurityGroupRule::default()
    }
}

fn cloud() -> Observation {
    let from = |prefix: &str, port: i64| SecurityGroupRule {
        remote_ip_prefix: Some(text(prefix)),
        ..rule("ingress", Some("tcp"), (port, port))
    };
    let from_group = SecurityGroupRule {
        remote_group_id: Some(text("g2")),
        ..rule("ingress", Some("tcp"), (10, 10))
    };
    let from_addresses = SecurityGroupRule {
        remote_address_group_id: Some(text("a1")),
        ..rule("ingress", Some("tcp"), (11, 11))
    };
    let rules = vec![
        rule("ingress", Some("tcp"), (22, 23)),
        rule("egress", Some("tcp"), (24, 24)),
        rule("ingress", Some("udp"), (25, 25)),
        rule("ingress", None, (26, 26)),
        from("0.0.0.0/0", 80),
        from("10.0.0.0/8", 81),
        from_group,
        from_addresses,
    ];
    let image = openstack::image::Image {
        id: text("i1"),
        name: text("ubuntu"),
        properties: [
            (text("os_version"), json!("24.04")),
            (text("file"), json!("/v2/images/i1/file")),
        ]
        .into(),
        ..openstack::image::Image::default()
    };
    Observation {
        servers: vec![hosted()],
        ports: vec![
            port("p2", "s1", "10.6.0.5"),
            port("p3", "other", "10.6.0.7"),
            port("p1", "s1", "10.6.0.9"),
        ],
        images: Arc::new([(text("i1"), image)].into()),
        hardware: Hardware {
            networks: vec![Network {
                id: text("n1"),
                name: text("net"),
                mtu: 1442,
                ..Network::default()
            }],
            subnets: vec![Subnet {
                id: text("sub1"),
                cidr: text("10.6.0.0/24"),
                gateway_ip: Some(text("10.6.0.1")),
                dns_nameservers: vec![text("9.9.9.9")],
                host_routes: vec![HostRoute {
                    destination: text("10.9.0.0/16"),
                    nexthop: text("10.6.0.2"),
                }],
                enable_dhcp: true,
                ..Subnet::default()
            }],
            groups: vec![SecurityGroup {
                id: text("g1"),
                rules,
                ..SecurityGroup::default()
            }],
            volumes: vec![openstack::volume::Volume {
                id: text("v1"),
                size: 5,
                attachments: vec![VolumeAttachment {
                    server_id: text("s1"),
                    device: text("/dev/vdb"),
                    ..VolumeAttachment::default()
                }],
                ..openstack::volume::Volume::default()
            }],
            keys: Arc::new([((text("u1"), text("mine")), Some(text("ssh-ed25519 A\n")))].into()),
        },
        ..Observation::default()
    }
}

#[test]
fn a_machine_has_the_hardware_that_the_apis_show() {
    let machines = machines(&cloud());
    let machine = &machines["s1"];
    assert_eq!(machine.flavor, "m1.small");
    assert_eq!(machine.image.name, "ubuntu");
    assert_eq!(
        json!(machine.image.properties),
        json!({"os_version": "24.04"})
    );
    assert!(machine.config_drive);
    let key = machine.key.as_ref().unwrap();
    assert_eq!((&*key.name, &*key.public), ("mine", "ssh-ed25519 A"));
    let volume = Volume {
        id: text("v1"),
        device: text("/dev/vdb"),
        size_gib: 5,
    };
    assert_eq!(machine.volumes, [volume]);
    let ports: Vec<&str> = machine.ports.iter().map(|port| &*port.id).collect();
    assert_eq!(
        ports,
        ["p1", "p2"],
        "in the order of the server's addresses"
    );
    let port = &machine.ports[0];
    assert_eq!((&*port.network_name, port.mtu), ("net", 1442));
    assert_eq!(
        json!(port.addresses),
        json!([{"address": "10.6.0.9", "subnet_id": "sub1", "cidr": "10.6.0.0/24", "gateway": "10.6.0.1",
            "dns_nameservers": ["9.9.9.9"], "dhcp": true,
            "routes": [{"destination": "10.9.0.0/16", "nexthop": "10.6.0.2"}]}])
    );
    assert_eq!(port.open, [22..=23, 80..=80], "what everybody may reach");
}

#[test]
fn what_is_not_shown_is_left_out_and_a_server_in_error_keeps_its_machine() {
    let mut seen = cloud();
    seen.hardware = Hardware::default();
    seen.images = Arc::default();
    let machine = &machines(&seen)["s1"];
    assert_eq!((&*machine.image.id, &*machine.image.name), ("i1", ""));
    assert_eq!(machine.key, None);
    assert_eq!(machine.volumes[0].size_gib, 0);
    assert_eq!(machine.ports[0].mtu, 1500);
    assert!(machine.ports[0].addresses.is_empty());
    seen.servers[0].server.status = text("DELETED");
    assert!(machines(&seen).is_empty());
}
