//! Trunks of machines, and attributes of ports that have no field of their own.

use api::infra::v1beta2::OpenStackMachine;
use openstack::Service;
use serde_json::{Value, json};

use crate::world::World;

async fn network(world: &World, method: &str, path: &str, body: Value) -> Value {
    world.request(Service::Network, method, path, body).await
}

/// The only trunk called `name`.
async fn trunk(world: &World, name: &str) -> Value {
    let found = network(world, "GET", &format!("/trunks?name={name}"), Value::Null).await;
    let trunks = found["trunks"].as_array().unwrap();
    assert_eq!(trunks.len(), 1, "{trunks:?}");
    trunks[0].clone()
}

/// A port of a user in the network of the cluster, which is a subport of `trunk`.
async fn subport(world: &World, trunk: &Value, vlan: u32) -> String {
    let cluster = world.cluster_ready().await.status.unwrap();
    let port = json!({"port": {"network_id": cluster.network.unwrap().id, "name": "vlan"}});
    let port = network(world, "POST", "/ports", port).await;
    let id = port["port"]["id"].as_str().unwrap().to_owned();
    let path = format!("/trunks/{}/add_subports", trunk["id"].as_str().unwrap());
    let sub = json!({"port_id": id, "segmentation_type": "vlan", "segmentation_id": vlan});
    network(world, "PUT", &path, json!({"sub_ports": [sub]})).await;
    id
}

#[tokio::test(start_paused = true)]
async fn a_machine_has_trunks_with_tags_and_goes_with_them_and_their_subports() {
    let world = World::start().await;
    world.cluster(json!({"tags": ["of-cluster"]})).await;
    world.cluster_ready().await;
    let ports = json!([{"tags": ["of-port"]}, {"nameSuffix": "plain", "trunk": false}]);
    world
        .machine(
            "md-0",
            false,
            json!({"trunk": true, "tags": ["of-machine"], "ports": ports}),
        )
        .await;
    let machine = world.machine_ready("md-0").await;
    let resolved = machine.status.unwrap().resolved.unwrap().ports;
    assert_eq!((resolved[0].trunk, resolved[1].trunk), (Some(true), None));
    assert_eq!(world.count("trunk"), 1);
    let trunk = trunk(&world, "md-0-0").await;
    for tag in ["of-cluster", "of-machine", "of-port"] {
        assert!(
            trunk["tags"].as_array().unwrap().contains(&json!(tag)),
            "{trunk}"
        );
    }
    subport(&world, &trunk, 7).await;
    subport(&world, &trunk, 8).await;
    let writes = world.writes();
    world.poke::<OpenStackMachine>("md-0").await;
    world.machine_ready("md-0").await;
    assert_eq!(
        world.writes()["POST /v2.0/trunks"],
        writes["POST /v2.0/trunks"]
    );
    world.delete_machine("md-0").await;
    assert_eq!(world.count("trunk"), 0);
    // Those of load balancer, router and its gateway are left.
    let left = network(&world, "GET", "/ports?name=vlan", Value::Null).await;
    assert_eq!(left["ports"], json!([]));
}

#[tokio::test(start_paused = true)]
async fn a_subport_that_is_marked_as_anothers_leaves_the_trunk_and_stays() {
    let world = World::start().await;
    world.cluster(json!({})).await;
    world.cluster_ready().await;
    for name in ["md-0", "md-1"] {
        world.machine(name, false, json!({"trunk": true})).await;
        world.machine_ready(name).await;
    }
    let (first, second) = (trunk(&world, "md-0-0").await, trunk(&world, "md-1-0").await);
    let sub = subport(&world, &first, 7).await;
    let path = format!("/ports/{sub}");
    let mark = json!({"port": {"description": second["description"]}});
    network(&world, "PUT", &path, mark).await;
    world.delete_machine("md-0").await;
    let left = network(&world, "GET", &path, Value::Null).await;
    assert_eq!(left["port"]["device_id"], "");
    world.delete_machine("md-1").await;
    assert_eq!(world.count("trunk"), 0);
}

#[tokio::test(start_paused = true)]
async fn value_specs_are_attributes_of_the_port_and_what_neutron_refuses_is_a_condition() {
    let world = World::start().await;
    world.cluster(json!({})).await;
    world.cluster_ready().await;
    let spec = |key: &str, value: &str| json!({"ports": [{"valueSpecs": [{"name": "n", "key": key, "value": value}]}]});
    world
        .machine("md-0", false, spec("numa_affinity_policy", "preferred"))
        .await;
    world.machine_ready("md-0").await;
    let found = network(&world, "GET", "/ports?name=md-0-0", Value::Null).await;
    assert_eq!(found["ports"][0]["numa_affinity_policy"], "preferred");
    world
        .machine("md-1", false, spec("no_such_thing", "x"))
        .await;
    let condition = world
        .machine_says("md-1", "InstanceReady", "no_such_thing")
        .await;
    assert_eq!(condition.reason, "PortCreateFailed");
}
