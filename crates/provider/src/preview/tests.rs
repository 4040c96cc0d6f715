//! Machines that are tried elsewhere, and bastions that change.

use openstack::compute::{AvailabilityZone, Fault, Flavor, Server};
use openstack::image::Image;
use openstack::inventory::Table;
use openstack::network::Network;
use serde_json::json;

use super::*;

const SERVER: &str = "00000000-0000-4000-8000-000000000001";

/// A machine with lists of places, after servers that failed.
fn tried(failed: &serde_json::Value, id: Identity) -> OpenStackMachine {
    let object = json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "OpenStackMachine",
        "metadata": {"name": "md-0", "annotations": {
            MACHINE_ID: id.to_string(),
            "ferrostack.dev/retry-failure-domains": "az2",
            "ferrostack.dev/retry-flavors": "large",
            "ferrostack.dev/failed-servers": failed.to_string()}},
        "spec": {"flavor": {"filter": {"name": "small"}}, "image": {"id": "image"},
            "ports": [{"network": {"id": "net"}}]},
        "status": {"instanceID": SERVER}});
    serde_json::from_value(object).unwrap()
}

fn view(servers: Vec<Server>) -> Arc<View> {
    let flavor = |name: &str, vcpus: i64| Flavor {
        id: format!("{name}-id"),
        name: name.to_owned(),
        vcpus,
        ..Flavor::default()
    };
    let zone = |name: &str| -> AvailabilityZone {
        let zone = json!({"zoneName": name, "zoneState": {"available": true}});
        serde_json::from_value(zone).unwrap()
    };
    let (image, network) = (
        Image {
            id: "image".to_owned(),
            ..Image::default()
        },
        Network {
            id: "net".to_owned(),
            ..Network::default()
        },
    );
    Arc::new(View {
        flavors: Arc::new(Table::from_items([flavor("small", 1), flavor("large", 8)])),
        zones: Arc::new(Table::from_items([zone("az1"), zone("az2")])),
        images: Arc::new(Table::from_items([image])),
        networks: Arc::new(Table::from_items([network])),
        servers: Arc::new(Table::from_items(servers)),
        ..View::default()
    })
}

fn previewed(failed: &serde_json::Value, is_there: bool) -> Preview {
    let (cluster, id) = (Identity::new(), Identity::new());
    let object = tried(failed, id);
    let server = Server {
        id: SERVER.to_owned(),
        status: "ERROR".to_owned(),
        tags: Mark::machine(cluster, id).tags(),
        fault: Some(Fault {
            message: "No valid host was found.".to_owned(),
            ..Fault::default()
        }),
        ..Server::default()
    };
    let of = Machine {
        name: "md-0".to_owned(),
        spec: &object.spec,
        existing: Some(&object),
        failure_domain: Some("az1".to_owned()),
        group: ManagedGroup::Worker,
        cluster: "demo",
        images: &Available::new(),
    };
    let servers = is_there.then_some(server).into_iter().collect();
    machine(&of, None, cluster, &view(servers)).unwrap()
}

#[test]
fn a_server_without_room_waits_for_another_one_in_the_next_place() {
    let preview = previewed(&json!({}), true);
    assert_eq!(preview.writes, []);
    let wait = &preview.waits[0];
    assert!(wait.ends_with("another one follows in zone az2"), "{wait}");
    let preview = previewed(&json!({"failed": 2, "place": 2, "server": "another"}), true);
    let wait = &preview.waits[0];
    assert!(
        wait.ends_with("another one follows in zone az2 with flavor large"),
        "{wait}"
    );
}

#[test]
fn the_next_server_of_a_machine_has_the_zone_and_the_flavor_of_its_place() {
    let cores = |place: usize| {
        let failed = json!({"failed": place, "place": place, "server": SERVER});
        let preview = previewed(&failed, false);
        assert!(
            preview
                .writes
                .iter()
                .any(|it| it.step == "create the server"),
            "{preview:?}"
        );
        preview.needs["compute/cores"]
    };
    assert_eq!((cores(1), cores(2), cores(3)), (1, 8, 8));
}

/// The writes for a cluster whose bastion has `spec`, and which has the bastion of another spec.
fn with_bastion(spec: &serde_json::Value) -> Vec<String> {
    let id = Identity::new();
    let cluster: Cluster = serde_json::from_value(
        json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "metadata": {"name": "demo", "namespace": "default"}, "spec": {}}),
    )
    .unwrap();
    let infra = |bastion: &serde_json::Value| -> OpenStackCluster {
        serde_json::from_value(json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2",
            "kind": "OpenStackCluster", "metadata": {"name": "demo", "namespace": "default",
                "annotations": {CLUSTER_ID: id.to_string()}},
            "spec": {"identityRef": {"name": "s", "cloudName": "c"}, "network": {"id": "net"},
                "enableExternalNetwork": false, "apiServer": {"fixedIP": "10.6.0.9"}, "bastion": bastion}}))
        .unwrap()
    };
    let former =
        json!({"enabled": true, "spec": {"flavor": {"id": "small-id"}, "image": {"id": "image"}}});
    let mark = bastion_mark(&infra(&former), id);
    let server = Server {
        id: SERVER.to_owned(),
        status: "ACTIVE".to_owned(),
        tags: mark.tags(),
        ..Server::default()
    };
    let ip = openstack::network::FloatingIp {
        id: "ip".to_owned(),
        description: mark.description("x"),
        ..Default::default()
    };
    let view = Arc::new(View {
        floating_ips: Arc::new(Table::from_items([ip])),
        ..View::clone(&view(vec![server]))
    });
    let at = ClusterObjects {
        cluster: &cluster,
        infra: &infra(spec),
        control_plane: &[],
        view: &view,
        images: &Available::new(),
    };
    let (preview, _) = super::cluster(at).unwrap();
    preview.writes.into_iter().map(|write| write.step).collect()
}

#[test]
fn a_changed_bastion_is_replaced_and_keeps_its_floating_ip_and_a_disabled_one_goes() {
    let with_flavor = |flavor: &str| json!({"enabled": true, "spec": {"flavor": {"id": flavor}, "image": {"id": "image"}}});
    assert_eq!(with_bastion(&with_flavor("small-id")), Vec::<String>::new());
    let deleted = format!("delete server {SERVER} of the bastion");
    let changed = with_bastion(&with_flavor("large-id"));
    assert_eq!(changed, [&deleted, "create a port", "create the server"]);
    let disabled = with_bastion(&json!({"enabled": false}));
    assert_eq!(disabled, [&deleted, "delete floating IP ip of the bastion"]);
}
