use openstack::compute::Server;
use openstack::inventory::Table;
use openstack::network::{FloatingIp, Network, Port, Router};
use serde_json::{Value, json};

use std::sync::Arc;

use super::*;
use crate::identity::MACHINE_ID;

/// The name of the networks of Cluster `demo`.
const NAME: &str = "k8s-clusterapi-cluster-default-demo";
/// The description of its resources.
const OF_DEMO: &str = "Created by cluster-api-provider-openstack cluster default-demo";

fn cluster(spec: Value, status: Value) -> OpenStackCluster {
    let mut object = json!({"metadata": {"name": "demo", "namespace": "default",
        "labels": {"cluster.x-k8s.io/cluster-name": "demo"}}, "status": status, "spec": {
        "identityRef": {"name": "s", "cloudName": "c"}, "managedSubnets": [{"cidr": "10.0.0.0/24"}]}});
    for (name, value) in spec.as_object().unwrap() {
        object["spec"][name] = value.clone();
    }
    serde_json::from_value(object).unwrap()
}

fn machine(id: Identity) -> OpenStackMachine {
    let annotations = json!({CLUSTER_ID: id.to_string()});
    serde_json::from_value(
        json!({"metadata": {"name": "m", "annotations": annotations},
        "spec": {"flavor": {"id": "f"}, "image": {"id": "i"}}}),
    )
    .unwrap()
}

fn network(id: &str, description: String) -> View {
    let network = Network {
        id: id.into(),
        name: NAME.into(),
        description,
        ..Default::default()
    };
    View {
        networks: Arc::new(Table::from_items([network])),
        ..View::default()
    }
}

fn in_status() -> Value {
    json!({"network": {"name": "n", "id": "net"}})
}

fn verdict(object: &OpenStackCluster, machines: &[OpenStackMachine], view: &View) -> Verdict {
    Evidence::of_cluster(object, machines, view).verdict(CLUSTER_ID, false)
}

#[test]
fn a_cluster_for_which_nothing_was_created_gets_a_new_identity() {
    let object = cluster(json!({}), Value::Null);
    let view = network(
        "net",
        Mark::cluster(Identity::new()).description("another's"),
    );
    assert_eq!(verdict(&object, &[], &view), Verdict::New);
    // A network that the spec refers to is not evidence.
    let object = cluster(
        json!({"managedSubnets": [], "network": {"id": "net"}}),
        in_status(),
    );
    assert_eq!(verdict(&object, &[], &view), Verdict::New);
}

#[test]
fn what_status_names_tells_the_identity_of_a_cluster() {
    let mark = Mark::cluster(Identity::new());
    let object = cluster(json!({}), in_status());
    let view = network("net", mark.description("x"));
    assert_eq!(verdict(&object, &[], &view), Verdict::Known(mark));
}

#[test]
fn its_machines_and_the_floating_ip_of_its_endpoint_tell_the_identity_of_a_cluster() {
    let mark = Mark::cluster(Identity::new());
    let object = cluster(json!({}), Value::Null);
    let machines = [machine(mark.cluster)];
    let view = network("net", mark.description(OF_DEMO));
    assert_eq!(verdict(&object, &machines, &view), Verdict::Known(mark));
    let nothing = verdict(&object, &machines, &View::default());
    assert!(matches!(nothing, Verdict::Unknown(_)), "{nothing:?}");
    let endpoint = json!({"controlPlaneEndpoint": {"host": "192.0.2.1", "port": 6443}});
    let object = cluster(endpoint, Value::Null);
    let ip = |description: String| View {
        floating_ips: Arc::new(Table::from_items([FloatingIp {
            id: "fip".into(),
            floating_ip_address: "192.0.2.1".into(),
            description,
            ..Default::default()
        }])),
        ..View::default()
    };
    assert_eq!(
        verdict(&object, &[], &ip(mark.description(OF_DEMO))),
        Verdict::Known(mark)
    );
    assert_eq!(verdict(&object, &[], &ip("mine".into())), Verdict::New);
}

#[test]
fn a_cluster_whose_resources_carry_no_identity_or_several_waits() {
    let object = cluster(json!({}), in_status());
    let waits = |machines: &[OpenStackMachine], view: &View| match verdict(&object, machines, view)
    {
        Verdict::Unknown(why) => why,
        other => panic!("{other:?}"),
    };
    let unmarked = network("net", "created by another provider".into());
    let why = waits(&[], &unmarked);
    assert!(
        why.contains(CLUSTER_ID) && why.contains("network net"),
        "{why}"
    );
    waits(&[], &View::default());
    let (one, two) = (Identity::new(), Identity::new());
    let mut view = network("net", Mark::cluster(one).description("x"));
    view.routers = Arc::new(Table::from_items([Router {
        id: "router".into(),
        description: Mark::cluster(two).description(OF_DEMO),
        ..Default::default()
    }]));
    let why = waits(&[machine(two)], &view);
    assert!(
        why.contains(&one.to_string()) && why.contains(&two.to_string()),
        "{why}"
    );
}

#[test]
fn a_finalizer_without_an_identity_waits() {
    let object = cluster(json!({}), Value::Null);
    let evidence = Evidence::of_cluster(&object, &[], &View::default());
    assert!(matches!(
        evidence.verdict(CLUSTER_ID, true),
        Verdict::Unknown(_)
    ));
}

#[test]
fn what_has_the_names_of_another_cluster_tells_nothing() {
    let mark = Mark::cluster(Identity::new());
    let mut object = cluster(json!({}), in_status());
    object.metadata.namespace = Some("elsewhere".into());
    let view = network("net", mark.description(OF_DEMO));
    for machines in [vec![], vec![machine(mark.cluster)]] {
        let found = verdict(&object, &machines, &view);
        assert!(matches!(found, Verdict::Unknown(_)), "{found:?}");
    }
}

/// OpenStackMachine `m` with a server and ports.
fn recorded(provider_id: Option<&str>, ports: &[&str]) -> OpenStackMachine {
    let ports: Vec<_> = ports.iter().map(|id| json!({"id": id})).collect();
    serde_json::from_value(json!({"metadata": {"name": "m"},
        "spec": {"flavor": {"id": "f"}, "image": {"id": "i"},
            "providerID": provider_id.map(|id| format!("openstack:///{id}"))},
        "status": {"resources": {"ports": ports}}}))
    .unwrap()
}

#[test]
fn its_server_or_its_ports_tell_the_identity_of_a_machine() {
    let mark = Mark::machine(Identity::new(), Identity::new());
    let named = |name: &str, tags: Vec<String>, description: String| View {
        servers: Arc::new(Table::from_items([Server {
            id: "s".into(),
            name: name.into(),
            tags,
            ..Default::default()
        }])),
        ports: Arc::new(Table::from_items([Port {
            id: "p".into(),
            name: format!("{name}-0"),
            device_id: "s".into(),
            description,
            ..Default::default()
        }])),
        ..View::default()
    };
    let view = |tags, description| named("m", tags, description);
    let verdict = |object: &OpenStackMachine, view: &View| {
        Evidence::of_machine(object, view).verdict(MACHINE_ID, false)
    };
    let (by_server, by_port) = (recorded(Some("s"), &[]), recorded(None, &["p"]));
    let tagged = view(mark.tags(), String::new());
    let described = view(Vec::new(), mark.description("x"));
    assert_eq!(verdict(&by_server, &tagged), Verdict::Known(mark));
    assert_eq!(verdict(&by_server, &described), Verdict::Known(mark));
    assert_eq!(verdict(&by_port, &described), Verdict::Known(mark));
    assert_eq!(verdict(&recorded(None, &[]), &described), Verdict::New);
    let unknown = |object: &OpenStackMachine, view: &View| {
        let found = verdict(object, view);
        assert!(matches!(found, Verdict::Unknown(_)), "{found:?}");
    };
    unknown(&by_server, &view(Vec::new(), String::new()));
    let other = Mark::machine(mark.cluster, Identity::new());
    unknown(&by_server, &view(other.tags(), mark.description("x")));
    // Those of a machine of another name.
    let others = named("m-2", mark.tags(), mark.description("x"));
    unknown(&by_server, &others);
    unknown(&by_port, &others);
}
