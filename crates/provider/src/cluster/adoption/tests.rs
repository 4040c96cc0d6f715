use std::sync::Arc;

use openstack::compute::Server;
use openstack::inventory::Table;
use openstack::network::{Network, Port};
use serde_json::json;

use super::*;

const UID: &str = "7a3c4d5e-0000-4000-8000-000000000001";
const OF_MACHINE: &str = "7a3c4d5e-0000-4000-8000-000000000002";

fn cluster() -> OpenStackCluster {
    serde_json::from_value(
        json!({"metadata": {"name": "demo", "namespace": "default", "uid": UID,
        "labels": {"cluster.x-k8s.io/cluster-name": "demo"}},
        "spec": {"identityRef": {"name": "s", "cloudName": "c"}, "enableExternalNetwork": false,
            "managedSubnets": [{"cidr": "10.0.0.0/24"}]},
        "status": {"network": {"id": "net", "name": "n"}}}),
    )
    .unwrap()
}

fn machine(status: serde_json::Value) -> OpenStackMachine {
    serde_json::from_value(
        json!({"metadata": {"name": "md-0", "namespace": "default", "uid": OF_MACHINE},
        "spec": {"flavor": {"id": "f"}, "image": {"id": "i"}}, "status": status}),
    )
    .unwrap()
}

fn network(id: &str, name: &str) -> Network {
    Network {
        id: id.into(),
        name: name.into(),
        ..Network::default()
    }
}

fn server(id: &str, name: &str) -> Server {
    Server {
        id: id.into(),
        name: name.into(),
        tags: vec!["theirs".into()],
        ..Server::default()
    }
}

fn port(id: &str, name: &str, device: &str) -> Port {
    Port {
        id: id.into(),
        name: name.into(),
        device_id: device.into(),
        description: "Created by cluster-api-provider-openstack cluster demo".into(),
        ..Port::default()
    }
}

fn view(servers: Vec<Server>, ports: Vec<Port>) -> View {
    View {
        networks: Arc::new(Table::from_items([network(
            "net",
            "k8s-clusterapi-cluster-default-demo",
        )])),
        servers: Arc::new(Table::from_items(servers)),
        ports: Arc::new(Table::from_items(ports)),
        ..View::default()
    }
}

fn found(machines: &[OpenStackMachine], view: &View) -> Adoption {
    let objects = Objects {
        cluster: "demo",
        infra: &cluster(),
        machines,
        servers: &[],
    };
    find(&objects, view)
}

#[test]
fn an_id_of_the_status_and_a_name_together_are_evidence() {
    let machine = machine(json!({"instanceID": "s1"}));
    let adoption = found(
        &[machine],
        &view(vec![server("s1", "md-0")], vec![port("p1", "md-0-0", "s1")]),
    );
    assert_eq!(adoption.conflicts, [""; 0]);
    let all: Vec<_> = adoption
        .found
        .iter()
        .map(|it| (it.what, it.id.as_str()))
        .collect();
    assert_eq!(
        all,
        [
            (What::Port, "p1"),
            (What::Server, "s1"),
            (What::Network, "net")
        ]
    );
    assert_eq!(
        adoption.found[0].evidence,
        [
            "it is at server s1",
            "its name is md-0-0",
            "its description is \"Created by cluster-api-provider-openstack cluster demo\""
        ]
    );
    let text =
        format!("Created by cluster-api-provider-openstack cluster demo [{UID}/{OF_MACHINE}]");
    assert_eq!(adoption.found[0].write, Some(Write::Description(text)));
    let tags = [
        "theirs".to_owned(),
        format!("ferrostack:cluster={UID}"),
        format!("ferrostack:machine={OF_MACHINE}"),
    ];
    assert_eq!(adoption.found[1].write, Some(Write::Tags(tags.into())));
    let text = format!("Created by cluster-api-provider-openstack cluster default-demo [{UID}]");
    assert_eq!(adoption.found[2].write, Some(Write::Description(text)));
}

#[test]
fn neither_a_name_nor_an_id_alone_is_evidence() {
    let by_id = found(
        &[machine(json!({"instanceID": "s1"}))],
        &view(
            vec![server("s1", "other")],
            vec![port("p1", "md-0-0", "s1")],
        ),
    );
    assert!(by_id.conflicts[0].contains(
        "server s1, which the status of OpenStackMachine/md-0 names, has the name other"
    ));
    assert!(by_id.found.iter().all(|found| found.what == What::Network));
    let by_name = found(
        &[machine(json!({}))],
        &view(vec![server("s1", "md-0")], vec![port("p1", "md-0-0", "s1")]),
    );
    assert!(
        by_name.conflicts[0].contains(
            "server s1 has the name md-0 of OpenStackMachine/md-0, and no status names it"
        )
    );
    assert!(by_name.conflicts[1].contains("port p1 has the name md-0-0"));
}

#[test]
fn a_port_at_another_server_is_a_conflict_and_other_ports_of_the_server_stay_as_they_are() {
    let status = json!({"instanceID": "s1", "resources": {"ports": [{"id": "p1"}]}});
    let ports = vec![port("p1", "md-0-0", "s2"), port("p2", "of-a-user", "s1")];
    let adoption = found(&[machine(status)], &view(vec![server("s1", "md-0")], ports));
    assert!(
        adoption.conflicts[0].contains("port p1"),
        "{:?}",
        adoption.conflicts
    );
    assert!(adoption.found.iter().all(|found| found.id != "p2"));
}

#[test]
fn the_mark_of_another_owner_is_a_conflict_and_the_own_mark_is_not_written_again() {
    let status = json!({"instanceID": "s1"});
    let mut marked = server("s1", "md-0");
    marked.tags = vec![
        format!("ferrostack:cluster={OF_MACHINE}"),
        format!("ferrostack:machine={UID}"),
    ];
    let adoption = found(
        &[machine(status.clone())],
        &view(vec![marked.clone()], vec![]),
    );
    assert!(
        adoption.conflicts[0].contains("of another owner"),
        "{:?}",
        adoption.conflicts
    );
    marked.tags = vec![
        format!("ferrostack:cluster={UID}"),
        format!("ferrostack:machine={OF_MACHINE}"),
    ];
    let adoption = found(&[machine(status)], &view(vec![marked], vec![]));
    assert_eq!(adoption.conflicts, [""; 0]);
    assert_eq!(adoption.found[0].write, None);
}

#[test]
fn a_server_that_is_gone_is_no_conflict_and_a_network_that_is_gone_is_one() {
    let adoption = found(
        &[machine(json!({"instanceID": "s1"}))],
        &view(vec![], vec![]),
    );
    assert_eq!(adoption.conflicts, [""; 0]);
    assert!(adoption.notes[0].contains("server s1 of OpenStackMachine/md-0 is gone"));
    let adoption = found(&[], &View::default());
    assert!(
        adoption.conflicts[0].contains("network net"),
        "{:?}",
        adoption.conflicts
    );
}
