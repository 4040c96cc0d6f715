//! Objects and servers without their identity annotations or tags: nothing is created twice or leaked.

use api::infra::v1beta2::{OpenStackCluster, OpenStackMachine};
use kube::ResourceExt;
use openstack::Service;
use provider::identity::{CLUSTER_ID, MACHINE_ID};
use serde_json::json;

use crate::world::{MINUTE, World, eventually};

/// Cluster `demo` with machine `md-0`, both ready, after which the controllers are stopped.
async fn stopped() -> (World, OpenStackCluster, OpenStackMachine) {
    let mut world = World::start().await;
    world.cluster(json!({})).await;
    world.cluster_ready().await;
    world.machine("md-0", false, json!({})).await;
    let machine = world.machine_ready("md-0").await;
    let cluster = world.cluster_ready().await;
    world.kill().await;
    (world, cluster, machine)
}

#[tokio::test(start_paused = true)]
async fn a_cluster_and_a_machine_that_lost_their_annotations_get_them_back() {
    let (mut world, cluster, machine) = stopped().await;
    let before = world.cloud.resources();
    world.replace::<OpenStackMachine>("md-0").await;
    world.replace::<OpenStackCluster>("demo").await;
    world.run();
    eventually("the identities", || async {
        let now = world.api::<OpenStackCluster>().get("demo").await.unwrap();
        let of_machine = world.api::<OpenStackMachine>().get("md-0").await.unwrap();
        let same = now.annotations().get(CLUSTER_ID) == cluster.annotations().get(CLUSTER_ID)
            && of_machine.annotations().get(MACHINE_ID) == machine.annotations().get(MACHINE_ID);
        let ready = [
            now.status.unwrap_or_default().conditions,
            of_machine.status.unwrap_or_default().conditions,
        ];
        match same {
            true => Ok(()),
            false => Err(ready.map(|all| crate::world::listed(&all)).concat()),
        }
    })
    .await;
    world.poke::<OpenStackMachine>("md-0").await;
    world.cluster_ready().await;
    world.machine_ready("md-0").await;
    assert_eq!(world.cloud.resources(), before, "nothing was created twice");
    world.delete_machine("md-0").await;
    world.delete::<OpenStackCluster>("demo").await;
    world.gone::<OpenStackCluster>("demo").await;
    assert_eq!(world.left_over(), Default::default());
}

#[tokio::test(start_paused = true)]
async fn a_cluster_whose_resources_carry_no_identity_waits_and_is_not_created_again() {
    let mut world = World::start().await;
    world.cluster(json!({})).await;
    let cluster = world.cluster_ready().await;
    world.kill().await;
    let status = cluster.status.unwrap();
    let network = status.network.unwrap().id;
    let router = status.router.unwrap().id;
    let groups = [
        status.control_plane_security_group.unwrap().id,
        status.worker_security_group.unwrap().id,
    ];
    let balancer = status.api_server_managed_load_balancer.unwrap().id;
    let plain = json!({"description": "created by another provider"});
    let change = async |service, path: String, name: &str| {
        let body = json!({name: plain});
        world.request(service, "PUT", &path, body).await;
    };
    change(Service::Network, format!("/networks/{network}"), "network").await;
    change(Service::Network, format!("/routers/{router}"), "router").await;
    for id in groups {
        let path = format!("/security-groups/{id}");
        change(Service::Network, path, "security_group").await;
    }
    let path = format!("/lbaas/loadbalancers/{balancer}");
    change(Service::LoadBalancer, path, "loadbalancer").await;
    let session = world.session().await;
    for ip in session.network().floating_ips(&[]).await.unwrap() {
        let path = format!("/floatingips/{}", ip.id);
        world
            .request(
                Service::Network,
                "PUT",
                &path,
                json!({"floatingip": {
                "description": "created by another provider", "port_id": ip.port_id}}),
            )
            .await;
    }
    world.replace::<OpenStackCluster>("demo").await;
    let before = world.cloud.resources();
    world.run();
    let condition = world.cluster_says("Ready", CLUSTER_ID).await;
    assert_eq!(condition.reason, "IdentityUnknown");
    assert!(
        condition.message.contains(&network),
        "{}",
        condition.message
    );
    assert_eq!(world.cloud.resources(), before);
    let now = world.api::<OpenStackCluster>().get("demo").await.unwrap();
    assert_eq!(now.annotations().get(CLUSTER_ID), None);
    assert_eq!(now.finalizers(), <[String; 0]>::default());
}

#[tokio::test(start_paused = true)]
async fn a_machine_whose_server_has_no_mark_left_waits_for_that_server_to_go() {
    let (mut world, _, machine) = stopped().await;
    let id = machine.status.unwrap().instance_id.unwrap();
    let tags = format!("/servers/{id}/tags");
    world
        .request(Service::Compute, "PUT", &tags, json!({"tags": []}))
        .await;
    let session = world.session().await;
    for port in session.network().ports(&[]).await.unwrap() {
        if port.device_id == id {
            let path = format!("/ports/{}", port.id);
            let body = json!({"port": {"description": "whose?"}});
            world.request(Service::Network, "PUT", &path, body).await;
        }
    }
    world.run();
    let condition = world
        .machine_says("md-0", "InstanceReady", "has lost the tags")
        .await;
    assert_eq!(condition.reason, "InstanceNotFound");
    world.delete::<OpenStackMachine>("md-0").await;
    world
        .machine_says("md-0", "Deleting", "has lost the tags")
        .await;
    tokio::time::sleep(MINUTE).await;
    assert_eq!(world.count("server"), 1);
    let object = world.api::<OpenStackMachine>().get("md-0").await.unwrap();
    assert_eq!(object.finalizers().len(), 1);
    session.compute().delete_server(&id).await.unwrap();
    world.gone::<OpenStackMachine>("md-0").await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_lost_its_tags_goes_with_its_machine_when_its_ports_tell_whose_it_is() {
    let (mut world, _, machine) = stopped().await;
    let id = machine.status.unwrap().instance_id.unwrap();
    let tags = format!("/servers/{id}/tags");
    world
        .request(Service::Compute, "PUT", &tags, json!({"tags": []}))
        .await;
    world.run();
    world.poke::<OpenStackMachine>("md-0").await;
    world.machine_ready("md-0").await;
    world.delete_machine("md-0").await;
    assert_eq!(world.count("server"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_server_with_another_machines_tags_is_a_condition_and_not_a_loop() {
    let (mut world, _, machine) = stopped().await;
    let id = machine.status.unwrap().instance_id.unwrap();
    let other = uuid::Uuid::new_v4();
    let body = json!({"tags": [format!("ferrostack:cluster={other}"),
        format!("ferrostack:machine={other}")]});
    let tags = format!("/servers/{id}/tags");
    world.request(Service::Compute, "PUT", &tags, body).await;
    world.run();
    let condition = world
        .machine_says("md-0", "InstanceReady", "has the tags of another machine")
        .await;
    assert_eq!(condition.reason, "InstanceNotFound");
    // The server is read by shared lists only, not repeatedly by its id.
    let reads = || {
        let counts = world.cloud.requests().into_iter();
        let of_one = counts
            .filter(|count| count.method == "GET" && count.route.ends_with("/servers/{server_id}"));
        of_one.map(|count| count.count).sum::<u64>()
    };
    assert_eq!(reads(), 0);
    world.delete::<OpenStackMachine>("md-0").await;
    world
        .machine_says("md-0", "Deleting", "has the tags of another machine")
        .await;
    assert_eq!(world.count("server"), 1);
}
