use std::sync::Arc;

use openstack::View;
use openstack::compute::Server;
use openstack::inventory::Table;
use serde_json::json;

use super::*;
use crate::cluster::observed::References as OfCluster;

fn port(mark: Mark, name: &str, network: &str, ips: &[(&str, &str)]) -> Port {
    let ip = |(subnet, address): &(&str, &str)| FixedIp {
        subnet_id: (*subnet).into(),
        ip_address: (*address).into(),
    };
    Port {
        id: format!("port-{name}"),
        name: name.into(),
        network_id: network.into(),
        device_id: "s".into(),
        description: mark.description("x"),
        fixed_ips: ips.iter().map(ip).collect(),
        ..Default::default()
    }
}

fn address_of(
    ports: impl Fn(Mark) -> Vec<Port>,
    place: &EndpointNetwork,
) -> Option<(String, String)> {
    let (cluster, id) = (Identity::new(), Identity::new());
    let mark = Mark::machine(cluster, id);
    let server = Server {
        id: "s".into(),
        status: "ACTIVE".into(),
        tags: mark.tags(),
        ..Default::default()
    };
    let view = Arc::new(View {
        servers: Arc::new(Table::from_items([server])),
        ports: Arc::new(Table::from_items(ports(mark))),
        ..View::default()
    });
    let annotations = json!({MACHINE_ID: id.to_string()});
    let machine = json!({"metadata": {"name": "cp", "annotations": annotations},
        "spec": {"flavor": {"id": "f"}, "image": {"id": "i"}}});
    let machine = serde_json::from_value(machine).unwrap();
    let observed = Observed::new(view, cluster, &OfCluster::default());
    running(&machine, &observed, place).map(|found| (found.port_id, found.address))
}

fn place(network: &str, subnet: &str) -> EndpointNetwork {
    EndpointNetwork {
        network: Some(network.into()),
        subnet: Some(subnet.into()),
        zone_subnets: Vec::new(),
    }
}

#[test]
fn a_control_plane_machine_serves_on_the_clusters_network_whatever_its_first_port_is_on() {
    let ports = |mark| {
        vec![
            port(mark, "m-0", "storage", &[("s", "172.16.0.5")]),
            port(
                mark,
                "m-1",
                "nodes",
                &[("b", "10.0.1.5"), ("a", "10.0.0.5")],
            ),
        ]
    };
    let found = |network, subnet| address_of(ports, &place(network, subnet));
    let on = |port: &str, address: &str| Some((port.to_owned(), address.to_owned()));
    assert_eq!(found("nodes", "a"), on("port-m-1", "10.0.0.5"));
    assert_eq!(found("nodes", "other"), on("port-m-1", "10.0.1.5"));
    assert_eq!(found("elsewhere", "a"), None);
    let nowhere = address_of(ports, &EndpointNetwork::default());
    assert_eq!(nowhere, on("port-m-0", "172.16.0.5"));
}

#[test]
fn an_address_of_ipv6_serves_only_on_a_primary_subnet_of_ipv6() {
    let ports = |mark| {
        let ips = [("six", "2001:db8::5"), ("four", "10.0.0.5")];
        vec![port(mark, "m-0", "nodes", &ips)]
    };
    let found = |subnet| address_of(ports, &place("nodes", subnet)).map(|(_, ip)| ip);
    assert_eq!(found("six").as_deref(), Some("2001:db8::5"));
    assert_eq!(found("four").as_deref(), Some("10.0.0.5"));
}

#[test]
fn the_machines_of_one_cluster_are_listed_and_not_those_of_all() {
    let list = control_plane_of("demo");
    let selector = list.label_selector.unwrap();
    let terms: Vec<_> = selector.split(',').collect();
    let wanted = [
        "cluster.x-k8s.io/cluster-name=demo",
        "cluster.x-k8s.io/control-plane",
    ];
    assert_eq!(terms, wanted);
}
