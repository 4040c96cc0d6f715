//! What Services and claims of a cluster left in the cloud goes with the cluster, if its Cluster says so.

use std::collections::BTreeMap;

use api::core::v1beta2::Cluster;
use api::infra::v1beta2::OpenStackCluster;
use openstack::Service;
use serde_json::{Value, json};

use crate::world::{MINUTE, World, eventually};

const OURS: &str = "11111111-1111-4111-8111-111111111111";
const THEIRS: &str = "22222222-2222-4222-8222-222222222222";

fn id(value: &Value) -> String {
    value["id"].as_str().unwrap().to_owned()
}

/// What two Services and two claims of a cluster leave: two load balancers, floating IPs and groups, one of each without room
/// for the uid of the cluster in its description, and two volumes.
async fn plant(world: &World, uid: &str, subnet: &str) {
    let networks = world.session().await.network().networks(&[]).await.unwrap();
    let external = networks.iter().find(|network| network.external).unwrap();
    for (name, mark) in [
        ("web", format!(" (ferrostack-cluster={uid})")),
        ("api", String::new()),
    ] {
        // Two clusters with one name, and so with the same names of everything.
        let mark = format!("{mark} (ferrostack-service={name}-{uid})");
        let body = json!({"loadbalancer": {"name": format!("kube_service_kubernetes_default_{name}"),
            "vip_subnet_id": subnet, "tags": [format!("kube_service_kubernetes_default_{name}"),
            format!("ferrostack-cluster={uid}"), format!("ferrostack-service={name}-{uid}")]}});
        world
            .request(Service::LoadBalancer, "POST", "/lbaas/loadbalancers", body)
            .await;
        let text = format!(
            "Floating IP for Kubernetes external service default/{name} from cluster kubernetes{mark}"
        );
        let body = json!({"floatingip": {"floating_network_id": external.id, "description": text}});
        world
            .request(Service::Network, "POST", "/floatingips", body)
            .await;
        let text = format!(
            "Security Group for default/{name} Service LoadBalancer in cluster kubernetes{mark}"
        );
        let body =
            json!({"security_group": {"name": format!("lb-sg-{name}"), "description": text}});
        world
            .request(Service::Network, "POST", "/security-groups", body)
            .await;
        let metadata = json!({"cinder.csi.openstack.org/cluster": "kubernetes", "cinder.csi.openstack.org/cluster-uid": uid});
        let body =
            json!({"volume": {"name": format!("pvc-{name}"), "size": 1, "metadata": metadata}});
        world
            .request(Service::Volume, "POST", "/volumes", body)
            .await;
    }
}

/// A network of nobody's.
async fn foreign_subnet(world: &World) -> String {
    let body = json!({"network": {"name": "shop"}});
    let network = world
        .request(Service::Network, "POST", "/networks", body)
        .await;
    let body = json!({"subnet": {"network_id": id(&network["network"]), "ip_version": 4, "cidr": "192.168.9.0/24"}});
    let subnet = world
        .request(Service::Network, "POST", "/subnets", body)
        .await;
    id(&subnet["subnet"])
}

/// Cluster `demo`, whose uid is recorded, with what it leaves when it is deleted.
async fn cluster(world: &World, wanted: &str) {
    world.cluster(json!({})).await;
    let metadata = json!({"metadata": {"finalizers": ["cluster.cluster.x-k8s.io"], "annotations": {
        "ferrostack.dev/workload-cluster-uid": OURS, "ferrostack.dev/delete-with-cluster": wanted}}});
    world.merge::<Cluster>("demo", metadata).await;
    let status = world.cluster_ready().await.status.unwrap();
    plant(world, OURS, &status.network.unwrap().subnets[0].id).await;
}

async fn delete(world: &World) {
    world.delete::<Cluster>("demo").await;
    world.delete::<OpenStackCluster>("demo").await;
}

async fn let_go(world: &World) {
    let none = json!({"metadata": {"finalizers": null}});
    world.merge::<Cluster>("demo", none).await;
    world.gone::<Cluster>("demo").await;
}

#[tokio::test(start_paused = true)]
async fn killed_at_any_write_nothing_of_services_and_claims_is_left_and_all_of_a_namesake() {
    let mut world = World::start().await;
    let subnet = foreign_subnet(&world).await;
    plant(&world, THEIRS, &subnet).await;
    let theirs = world.cloud.resources();
    for nth in 1.. {
        cluster(&world, "services,volumes=delete").await;
        delete(&world).await;
        let writes = world.cut_at(nth);
        let was_cut = eventually("the cut", || async {
            let left = world
                .api::<OpenStackCluster>()
                .get_opt("demo")
                .await
                .unwrap();
            match (writes.reached(), left) {
                (true, _) => Ok(true),
                (false, None) => Ok(false),
                (false, Some(object)) => Err(format!("{:?}", object.status)),
            }
        })
        .await;
        world.kill().await;
        world.cloud.on_write(|_| {});
        world.run();
        world.gone::<OpenStackCluster>("demo").await;
        assert_eq!(world.cloud.resources(), theirs, "killed at write {nth}");
        let_go(&world).await;
        if !was_cut {
            assert!(nth > 12, "only {nth} writes");
            break;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn volumes_of_unknown_policy_stay_and_everything_unless_the_cluster_says_otherwise() {
    let world = World::start().await;
    cluster(&world, "services,volumes").await;
    delete(&world).await;
    world.gone::<OpenStackCluster>("demo").await;
    let volumes = BTreeMap::from([("volume".to_owned(), 2)]);
    assert_eq!(world.left_over().get("demo"), Some(&volumes));
    let_go(&world).await;

    cluster(&world, "").await;
    delete(&world).await;
    world.cluster_says("Deleting", "of Service default/").await;
    assert_eq!(world.count("loadbalancer"), 2);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_deleted_while_two_clusters_have_one_uid_or_for_a_word_that_is_unknown() {
    let world = World::start().await;
    cluster(&world, "all").await;
    let copy = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": "copy",
        "annotations": {"ferrostack.dev/workload-cluster-uid": OURS}}, "spec": {"paused": true}});
    world.create(copy).await;
    delete(&world).await;
    world.cluster_says("Deleting", "`all` is none of").await;
    let wanted = json!({"metadata": {"annotations": {"ferrostack.dev/delete-with-cluster": "services,volumes=delete"}}});
    world.merge::<Cluster>("demo", wanted).await;
    world.poke::<OpenStackCluster>("demo").await;
    world
        .cluster_says("Deleting", "Cluster copy in namespace default has the same")
        .await;
    tokio::time::sleep(MINUTE).await;
    assert_eq!((world.count("loadbalancer"), world.count("volume")), (3, 2));
    world.delete::<Cluster>("copy").await;
    world.poke::<OpenStackCluster>("demo").await;
    world.gone::<OpenStackCluster>("demo").await;
    assert_eq!(world.left_over(), BTreeMap::default());
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_stays_keeps_what_its_services_have() {
    let world = World::start().await;
    cluster(&world, "services,volumes=delete").await;
    world.delete::<OpenStackCluster>("demo").await;
    world.cluster_says("Deleting", "of Service default/").await;
    assert_eq!((world.count("floatingip"), world.count("volume")), (2, 2));
}
