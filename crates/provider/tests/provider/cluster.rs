//! Clusters are created, do not change without cause, and are deleted completely.

use api::infra::v1beta2::OpenStackCluster;
use openstack::Service;
use openstack::loadbalancer::LoadBalancing;
use serde_json::json;
use simulator::data_plane::Listener;

use crate::world::{MINUTE, World, eventually};

#[tokio::test(start_paused = true)]
async fn a_cluster_comes_up_with_few_requests_and_goes_without_a_trace() {
    let world = World::start().await;
    world.cluster(json!({})).await;
    let cluster = world.cluster_ready().await;
    let status = cluster.status.unwrap();
    let endpoint = cluster.spec.control_plane_endpoint.unwrap();
    let balancer = status.api_server_managed_load_balancer.unwrap();
    assert_eq!(endpoint.port, Some(6443));
    assert_eq!(endpoint.host, balancer.ip);
    assert_eq!(
        status.network.unwrap().name,
        "k8s-clusterapi-cluster-default-demo"
    );
    assert_eq!(status.router.unwrap().ips.len(), 1);
    assert_eq!(status.failure_domains.len(), 3);
    let worker = status.worker_security_group.unwrap();
    assert_eq!(worker.name, "k8s-cluster-default-demo-secgroup-worker");
    let writes = world.writes();
    let total: u64 = writes.values().sum();
    assert!(total <= 30, "{total} writes: {writes:#?}");
    // Neutron accepts rules of one group per bulk request, and there are two groups.
    assert_eq!(writes["POST /v2.0/security-group-rules"], 2);

    // Further reconciles write nothing.
    let annotations = json!({"metadata": {"annotations": {"poke": "1"}}});
    world.merge::<OpenStackCluster>("demo", annotations).await;
    tokio::time::sleep(MINUTE).await;
    assert_eq!(world.writes(), writes);

    world.delete::<OpenStackCluster>("demo").await;
    world.gone::<OpenStackCluster>("demo").await;
    assert_eq!(world.left_over(), Default::default());
}

#[tokio::test(start_paused = true)]
async fn a_cluster_goes_although_its_router_has_routes_to_pods() {
    let world = World::start().await;
    world.cluster(json!({})).await;
    let cluster = world.cluster_ready().await;
    let router = cluster.status.unwrap().router.unwrap().id;
    let routes =
        json!({"router": {"routes": [{"destination": "10.244.0.0/24", "nexthop": "10.6.0.99"}]}});
    let path = format!("/routers/{router}");
    world.request(Service::Network, "PUT", &path, routes).await;
    world.delete::<OpenStackCluster>("demo").await;
    world.gone::<OpenStackCluster>("demo").await;
    assert_eq!(world.left_over(), Default::default());
}

#[tokio::test(start_paused = true)]
async fn without_a_load_balancer_the_floating_ip_goes_to_a_control_plane_machine() {
    let world = World::start().await;
    world.cluster(json!({"apiServer": {}})).await;
    let cluster = world.cluster_ready().await;
    let host = cluster.spec.control_plane_endpoint.unwrap().host.unwrap();
    assert_eq!(world.count("loadbalancer"), 0);
    world.machine("cp-0", true, json!({})).await;
    world.machine_ready("cp-0").await;
    eventually("the floating IP to be associated", || async {
        let world = world.cloud.world();
        let forward = world
            .borrow()
            .addresses
            .iter()
            .any(|f| f.floating.to_string() == host);
        if forward {
            Ok(())
        } else {
            Err(format!("{:?}", world.borrow().addresses))
        }
    })
    .await;
    world.delete_machine("cp-0").await;
    world.delete::<OpenStackCluster>("demo").await;
    world.gone::<OpenStackCluster>("demo").await;
    assert_eq!(world.left_over(), Default::default());
}

#[tokio::test(start_paused = true)]
async fn resources_of_the_same_name_that_are_not_ours_are_left_alone() {
    let world = World::start().await;
    world.cluster(json!({})).await;
    world.cluster_ready().await;
    let first = world.cloud.resources();
    // A cluster with the same names, in another management cluster.
    let other = World::open_on(&world).await;
    other.cluster(json!({})).await;
    other.cluster_ready().await;
    assert_eq!(world.count("network"), 2);
    other.delete::<OpenStackCluster>("demo").await;
    other.gone::<OpenStackCluster>("demo").await;
    assert_eq!(world.cloud.resources(), first);
}

#[tokio::test(start_paused = true)]
async fn a_change_of_the_allowed_cidrs_reaches_the_listener_and_clearing_them_opens_it() {
    let world = World::start().await;
    world.cluster(json!({})).await;
    world.cluster_ready().await;
    let change = json!({"spec": {"apiServer": {"managedLoadBalancer": {
        "allowedCIDRs": ["192.0.2.0/24"], "monitor": {"delay": 20}}}}});
    world.merge::<OpenStackCluster>("demo", change).await;
    eventually("listener and monitor", || async {
        let writes = world.writes();
        let done = |route: &str| writes.contains_key(route);
        let both =
            done("PUT /v2.0/lbaas/listeners/{id}") && done("PUT /v2.0/lbaas/healthmonitors/{id}");
        if both {
            Ok(())
        } else {
            Err(format!("{writes:?}"))
        }
    })
    .await;
    eventually("both CIDRs in status", || async {
        let cluster = world.cluster_ready().await;
        let balancer = cluster.status.unwrap().api_server_managed_load_balancer;
        let cidrs = balancer.unwrap().allowed_cidrs;
        let has = |cidr: &str| cidrs.iter().any(|known| known == cidr);
        match has("192.0.2.0/24") && has("10.6.0.0/24") {
            true => Ok(()),
            false => Err(format!("{cidrs:?}")),
        }
    })
    .await;
    // Without entries, everybody may connect.
    let change = json!({"spec": {"apiServer": {"managedLoadBalancer": {"allowedCIDRs": null}}}});
    world.merge::<OpenStackCluster>("demo", change).await;
    eventually("an open listener", || async {
        let listeners = world.cloud.world().borrow().listeners.clone();
        match listeners.iter().all(|one| one.allowed_cidrs.is_empty()) {
            true => Ok(()),
            false => Err(format!("{listeners:?}")),
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_listener_deleted_in_the_cloud_comes_back_with_its_pool_monitor_and_members() {
    let mut world = World::start().await;
    let balancer = json!({"apiServer": {"managedLoadBalancer": {"additionalPorts": [8443]}}});
    world.cluster(balancer).await;
    world.cluster_ready().await;
    world.machine("cp-0", true, json!({})).await;
    world.machine_ready("cp-0").await;
    let before = two_listeners_with_members(&world).await;
    world.kill().await;
    let session = world.session().await;
    let cloud = session.load_balancer();
    let project = &before[0].project_id;
    let listeners = cloud.listeners(project).await.unwrap();
    let gone = listeners.iter().find(|one| one.protocol_port == 8443);
    let gone = gone.unwrap();
    cloud.delete_listener(&gone.id).await.unwrap();
    is_idle(&cloud, &before[0].load_balancer_id).await;
    let pool = gone.default_pool_id.as_deref().unwrap();
    cloud.delete_pool(pool).await.unwrap();
    is_idle(&cloud, &before[0].load_balancer_id).await;
    world.run();
    let after = two_listeners_with_members(&world).await;
    assert_ne!(after, before);
    for pool in cloud.pools(project).await.unwrap() {
        assert_ne!(pool.healthmonitor_id, None);
    }
}

async fn two_listeners_with_members(world: &World) -> Vec<Listener> {
    eventually("two listeners with members", || async {
        let listeners = world.cloud.world().borrow().listeners.clone();
        let serve = |one: &Listener| !one.members.is_empty();
        match listeners.len() == 2 && listeners.iter().all(serve) {
            true => Ok(listeners),
            false => Err(format!("{listeners:?}")),
        }
    })
    .await
}

async fn is_idle(cloud: &LoadBalancing, id: &str) {
    eventually("an idle load balancer", || async {
        match cloud.status(id).await.unwrap().provisioning_status {
            status if status == "ACTIVE" => Ok(()),
            status => Err(status),
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_copy_with_the_same_identity_is_refused_and_takes_nothing_with_it() {
    let world = World::start().await;
    world.cluster(json!({})).await;
    let original = world.cluster_ready().await;
    let before = world.cloud.resources();
    let annotations = original.metadata.annotations.unwrap();
    world
        .create(json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "OpenStackCluster",
            "metadata": {"name": "copy", "annotations": annotations,
                "labels": {"cluster.x-k8s.io/cluster-name": "demo"},
                "finalizers": ["openstackcluster.infrastructure.cluster.x-k8s.io"]},
            "spec": {"identityRef": {"name": "demo-cloud-config", "cloudName": "simulated"}},
        }))
        .await;
    world.delete::<OpenStackCluster>("copy").await;
    eventually("the refusal", || async {
        let copy = world.api::<OpenStackCluster>().get("copy").await.unwrap();
        let conditions = copy.status.unwrap_or_default().conditions;
        let condition = conditions
            .iter()
            .any(|c| c.message.contains("has the same annotation"));
        if condition {
            Ok(())
        } else {
            Err(crate::world::listed(&conditions))
        }
    })
    .await;
    assert_eq!(world.cloud.resources(), before);
}
