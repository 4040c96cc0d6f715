//! What was made just before is found, and what is not there, or belongs to something else, is reported.

use std::collections::BTreeMap;
use std::time::Duration;

use api::infra::v1alpha1::OpenStackClusterIdentity;
use api::infra::v1beta2::OpenStackCluster;
use api::k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::PostParams;
use openstack::Service;
use serde_json::{Value, json};
use simulator::cloud::Options as CloudOptions;

use crate::world::{World, eventually};

/// A world in which the lists of the cloud are at rest: nothing is read again unless something asks for it.
async fn at_rest() -> World {
    let mut world = World::open(CloudOptions::default()).await;
    world.idle = Duration::from_secs(3600);
    world.rest = Duration::from_secs(3600);
    world.run();
    world
}

/// The floating IP of the API server in the spec of a cluster.
fn given(address: &str) -> Value {
    json!({"apiServer": {"managedLoadBalancer": {}, "floatingIP": address}})
}

/// Allocates a floating IP as another user of the project: its id and address.
async fn allocate(world: &World) -> (String, String) {
    let session = world.session().await;
    let known = session.network().floating_ips(&[]).await.unwrap();
    let networks = session.network().networks(&[]).await.unwrap();
    let external = networks.iter().find(|network| network.external).unwrap();
    let body = json!({"floatingip": {"floating_network_id": external.id}});
    world
        .request(Service::Network, "POST", "/floatingips", body)
        .await;
    let ips = session.network().floating_ips(&[]).await.unwrap();
    let is_new = |id: &str| known.iter().all(|known| known.id != id);
    let ip = ips.into_iter().find(|ip| is_new(&ip.id)).unwrap();
    (ip.id, ip.floating_ip_address)
}

/// The port of a floating IP.
async fn port_of(world: &World, id: &str) -> Option<String> {
    let session = world.session().await;
    let ips = session.network().floating_ips(&[]).await.unwrap();
    ips.into_iter().find(|ip| ip.id == id).unwrap().port_id
}

#[tokio::test(start_paused = true)]
async fn a_group_and_a_network_made_just_before_a_machine_are_found() {
    let world = at_rest().await;
    world.cluster(json!({})).await;
    world.cluster_ready().await;
    world
        .machine(
            "md-0",
            false,
            json!({"securityGroups": [{"filter": {"name": "default"}}]}),
        )
        .await;
    world.machine_ready("md-0").await;
    let group = json!({"security_group": {"name": "sg-extra"}});
    world
        .request(Service::Network, "POST", "/security-groups", group)
        .await;
    let network = json!({"network": {"name": "extra"}});
    world
        .request(Service::Network, "POST", "/networks", network)
        .await;
    let spec = json!({"securityGroups": [{"filter": {"name": "sg-extra"}}],
        "ports": [{}, {"network": {"filter": {"name": "extra"}}}]});
    world.machine("md-1", false, spec).await;
    world.machine_ready("md-1").await;
    let warnings = world.notes("md-1", "Warning").await;
    assert_eq!(warnings, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_network_made_just_before_a_cluster_is_found() {
    let world = at_rest().await;
    world.cluster(json!({})).await;
    world.cluster_ready().await;
    world.delete::<OpenStackCluster>("demo").await;
    world.gone::<OpenStackCluster>("demo").await;
    world.delete::<api::core::v1beta2::Cluster>("demo").await;
    let network = json!({"network": {"name": "theirs"}});
    world
        .request(Service::Network, "POST", "/networks", network)
        .await;
    let session = world.session().await;
    let networks = session.network().networks(&[]).await.unwrap();
    let network = networks.iter().find(|network| network.name == "theirs");
    let subnet = json!({"subnet": {"name": "theirs", "cidr": "10.7.0.0/24", "ip_version": 4,
        "network_id": network.unwrap().id}});
    world
        .request(Service::Network, "POST", "/subnets", subnet)
        .await;
    let spec = json!({"managedSubnets": [], "network": {"filter": {"name": "theirs"}},
        "subnets": [{"filter": {"name": "theirs"}}],
        "apiServer": {"managedLoadBalancer": {}, "enableFloatingIP": false}});
    world.cluster(spec).await;
    world.cluster_ready().await;
    let warnings = world.notes("demo", "Warning").await;
    assert_eq!(warnings, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_floating_ip_allocated_just_before_is_used_and_kept() {
    let world = at_rest().await;
    let (id, address) = allocate(&world).await;
    world.cluster(given(&address)).await;
    let cluster = world.cluster_ready().await;
    let host = cluster.spec.control_plane_endpoint.unwrap().host.unwrap();
    assert_eq!(host, address);
    assert!(port_of(&world, &id).await.is_some());
    world.delete::<OpenStackCluster>("demo").await;
    world.gone::<OpenStackCluster>("demo").await;
    assert_eq!(port_of(&world, &id).await, None, "it is still there");
}

#[tokio::test(start_paused = true)]
async fn a_floating_ip_of_another_cluster_is_refused_and_stays_where_it_is() {
    let world = World::start().await;
    world.cluster(json!({})).await;
    let cluster = world.cluster_ready().await;
    let address = cluster.spec.control_plane_endpoint.unwrap().host.unwrap();
    let session = world.session().await;
    let ips = session.network().floating_ips(&[]).await.unwrap();
    let (id, port) = (ips[0].id.clone(), ips[0].port_id.clone());
    assert_eq!(ips[0].floating_ip_address, address);
    let other = World::open_on(&world).await;
    other.cluster(given(&address)).await;
    let condition = other
        .cluster_says(
            "APIEndpointReady",
            "was created for the cluster with identity",
        )
        .await;
    assert_eq!(condition.reason, "FloatingIPError");
    assert_eq!(port_of(&world, &id).await, port);
    let events = other.events().await;
    assert!(events.contains(&"FloatingIPError".to_owned()), "{events:?}");
}

#[tokio::test(start_paused = true)]
async fn a_floating_ip_that_another_server_uses_is_refused_until_it_is_free() {
    let world = World::start().await;
    world.cluster(json!({})).await;
    world.cluster_ready().await;
    world.machine("md-0", false, json!({})).await;
    let machine = world.machine_ready("md-0").await;
    let server = machine.status.unwrap().instance_id.unwrap();
    let session = world.session().await;
    let ports = session.network().ports(&[]).await.unwrap();
    let port = ports.iter().find(|port| port.device_id == server).unwrap();
    let (id, address) = allocate(&world).await;
    let path = format!("/floatingips/{id}");
    let on = |port: Value| json!({"floatingip": {"port_id": port}});
    world
        .request(Service::Network, "PUT", &path, on(json!(port.id)))
        .await;
    let other = World::open_on(&world).await;
    other.cluster(given(&address)).await;
    let words = format!("is on port {} of server {server}", port.id);
    other.cluster_says("APIEndpointReady", &words).await;
    assert_eq!(port_of(&world, &id).await.as_ref(), Some(&port.id));
    world
        .request(Service::Network, "PUT", &path, on(Value::Null))
        .await;
    other.poke::<OpenStackCluster>("demo").await;
    other.cluster_ready().await;
}

#[tokio::test(start_paused = true)]
async fn an_address_that_is_not_in_the_project_is_told_as_that() {
    let world = World::start().await;
    world.cluster(given("127.30.0.200")).await;
    let condition = world
        .cluster_says(
            "APIEndpointReady",
            "the project has no floating IP 127.30.0.200",
        )
        .await;
    assert!(condition.message.contains("openstack floating ip create"));
}

#[tokio::test(start_paused = true)]
async fn a_zone_that_does_not_exist_keeps_machines_waiting_and_is_an_event() {
    let world = World::start().await;
    world
        .cluster(json!({"controlPlaneAvailabilityZones": ["az9"]}))
        .await;
    let words = "controlPlaneAvailabilityZones: az9 is no availability zone";
    let condition = world.cluster_says("Ready", words).await;
    assert_eq!(condition.reason, "InvalidClusterSpec");
    assert!(
        condition.message.contains("there are: az1, az2"),
        "{}",
        condition.message
    );
    world.machine("cp-0", true, json!({})).await;
    world
        .machine_says("cp-0", "InstanceReady", "aiting for the network")
        .await;
    let warnings = world.notes("demo", "Warning").await;
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    let corrected = json!({"spec": {"controlPlaneAvailabilityZones": ["az1"]}});
    world.merge::<OpenStackCluster>("demo", corrected).await;
    world.cluster_ready().await;
    world.machine_ready("cp-0").await;
}

#[tokio::test(start_paused = true)]
async fn a_quota_that_blocks_a_cluster_is_a_condition_and_an_event() {
    let quotas = BTreeMap::from([("network".to_owned(), 0)]);
    let mut world = World::open(CloudOptions {
        quotas,
        ..CloudOptions::default()
    })
    .await;
    world.run();
    world.cluster(json!({})).await;
    let condition = world.cluster_says("NetworkReady", "uota exceeded").await;
    assert!(condition.message.contains("ask for more quota"));
    let warnings = world.notes("demo", "Warning").await;
    assert!(
        warnings
            .iter()
            .any(|note| note.starts_with("FailedCreateNetwork")),
        "{warnings:?}"
    );
}

/// Creates the load balancer of a Service with a floating IP as the cloud controller manager leaves them, and returns the
/// id of the one, and id and address of the other.
async fn of_service(
    world: &World,
    name: &str,
    subnet: &str,
    description: &str,
) -> (String, String, String) {
    let body = json!({"loadbalancer": {"name": format!("kube_service_demo_shop_{name}"), "vip_subnet_id": subnet,
        "tags": [format!("ferrostack-service={name}")]}});
    let balancer = world
        .request(Service::LoadBalancer, "POST", "/lbaas/loadbalancers", body)
        .await;
    let balancer = &balancer["loadbalancer"];
    let session = world.session().await;
    let networks = session.network().networks(&[]).await.unwrap();
    let external = networks.iter().find(|network| network.external).unwrap();
    let body = json!({"floatingip": {"floating_network_id": external.id, "port_id": balancer["vip_port_id"],
        "description": description}});
    let ip = world
        .request(Service::Network, "POST", "/floatingips", body)
        .await;
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let ip = &ip["floatingip"];
    (
        text(&balancer["id"]),
        text(&ip["id"]),
        text(&ip["floating_ip_address"]),
    )
}

#[tokio::test(start_paused = true)]
async fn a_deletion_names_what_is_left_of_a_service_and_the_commands_that_delete_it() {
    let world = World::start().await;
    world.cluster(json!({})).await;
    let cluster = world.cluster_ready().await;
    let subnet = cluster.status.unwrap().network.unwrap().subnets[0]
        .id
        .clone();
    let description = "Floating IP for Kubernetes external service shop/web from cluster demo (ferrostack-service=web)";
    let (balancer, ip, address) = of_service(&world, "web", &subnet, description).await;
    world.delete::<OpenStackCluster>("demo").await;
    let condition = world.cluster_says("Deleting", "of Service shop/web").await;
    let expected = format!(
        "Load balancer kube_service_demo_shop_web ({balancer}) of Service shop/web, with floating IP {address}, is in \
         the network of the cluster, which cannot be deleted before it. The API server of the cluster goes before its \
         network, so that the Service cannot be deleted there any more; delete in the cloud (the floating IP only if \
         not to be kept): openstack floating ip delete {address} && openstack loadbalancer delete --cascade {balancer}"
    );
    assert_eq!(condition.message, expected);
    let warnings = world.notes("demo", "Warning").await;
    assert!(
        warnings.iter().any(|note| note.contains(&address)),
        "{warnings:?}"
    );
    assert_eq!(
        world.count("router"),
        1,
        "the floating IP of the Service needs it"
    );
    // One that a user created, of another Service.
    let (second, of_user, address) = of_service(&world, "api", &subnet, "of the shop").await;
    delete(&world, Service::Network, "floatingips", &ip).await;
    delete(
        &world,
        Service::LoadBalancer,
        "lbaas/loadbalancers",
        &balancer,
    )
    .await;
    let condition = eventually("the other load balancer", || async {
        world.poke::<OpenStackCluster>("demo").await;
        let condition = world.cluster_says("Deleting", "of Service").await;
        let message = condition.message;
        message
            .contains("shop/api")
            .then_some(message.clone())
            .ok_or(message)
    })
    .await;
    assert!(!condition.contains(&address), "{condition}");
    let command = format!("delete in the cloud: openstack loadbalancer delete --cascade {second}");
    assert!(condition.ends_with(&command), "{condition}");
    delete(
        &world,
        Service::LoadBalancer,
        "lbaas/loadbalancers",
        &second,
    )
    .await;
    world.poke::<OpenStackCluster>("demo").await;
    world.gone::<OpenStackCluster>("demo").await;
    delete(&world, Service::Network, "floatingips", &of_user).await;
    assert_eq!(world.left_over(), Default::default());
}

/// Deletes what a command that the condition names deletes.
async fn delete(world: &World, service: Service, kind: &str, id: &str) {
    let path = format!("/{kind}/{id}?cascade=true");
    world.request(service, "DELETE", &path, json!({})).await;
}

#[tokio::test(start_paused = true)]
async fn credentials_made_just_after_a_cluster_are_noticed_at_once() {
    let world = at_rest().await;
    let clouds = world.cloud.clouds_yaml("http://cloud");
    world.delete::<Secret>("demo-cloud-config").await;
    world.cluster(json!({})).await;
    let type_ = "OpenStackAuthenticationSucceeded";
    world.cluster_says(type_, "does not exist").await;
    let asked = tokio::time::Instant::now();
    world.credentials(&clouds).await;
    world.cluster_ready().await;
    // The timer is of a minute.
    assert!(asked.elapsed() < Duration::from_secs(30));
}

#[tokio::test(start_paused = true)]
async fn the_secret_of_a_shared_identity_made_just_after_a_cluster_is_noticed_at_once() {
    let world = at_rest().await;
    let clouds = world.cloud.clouds_yaml("http://cloud");
    world.delete::<Secret>("demo-cloud-config").await;
    let identity = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1", "kind": "OpenStackClusterIdentity",
        "metadata": {"name": "shared"},
        "spec": {"secretRef": {"name": "demo-cloud-config", "namespace": testbed::NAMESPACE}},
    });
    let identity = serde_json::from_value(identity).unwrap();
    let identities = Api::<OpenStackClusterIdentity>::all(world.client.clone());
    let created = identities.create(&PostParams::default(), &identity).await;
    created.unwrap();
    let shared = json!({"type": "ClusterIdentity", "name": "shared", "cloudName": "simulated"});
    world.cluster(json!({"identityRef": shared})).await;
    let type_ = "OpenStackAuthenticationSucceeded";
    world.cluster_says(type_, "does not exist").await;
    let asked = tokio::time::Instant::now();
    world.credentials(&clouds).await;
    world.cluster_ready().await;
    assert!(asked.elapsed() < Duration::from_secs(30));
}

#[tokio::test(start_paused = true)]
async fn bootstrap_data_made_just_after_a_machine_is_noticed_at_once() {
    let world = at_rest().await;
    // It waits for the cluster first.
    world.machine("late", false, json!({})).await;
    world.delete::<Secret>("late").await;
    world.cluster(json!({})).await;
    world.cluster_ready().await;
    world
        .machine_says("late", "Ready", "has no key value")
        .await;
    let asked = tokio::time::Instant::now();
    let data = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "late"},
        "stringData": {"value": "#cloud-config\n"}});
    world.create(data).await;
    world.machine_ready("late").await;
    assert!(asked.elapsed() < Duration::from_secs(30));
}
