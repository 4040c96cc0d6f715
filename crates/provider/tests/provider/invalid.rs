//! Objects that were stored before the rules that they violate, and objects that cannot be decoded.

use api::infra::v1beta2::OpenStackCluster;
use serde_json::json;
use testbed::invalid;

use crate::world::World;

#[tokio::test(start_paused = true)]
async fn what_breaks_a_rule_is_edited_reconciled_and_deleted() {
    let mut world = World::open(Default::default()).await;
    world.create(json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": "demo"}, "spec": {"paused": false},
    }))
    .await;
    let objects = world.store_invalid(invalid(&api::infra::crd::crds())).await;
    assert!(objects.len() > 10, "{}", objects.len());
    world.run();
    assert!(objects.iter().any(|object| !object.decodable));
    world
        .reconcile_invalid(&objects, &["OpenStackCluster"])
        .await;
    world.delete_invalid(&objects).await;
}

#[tokio::test(start_paused = true)]
async fn an_openstackcluster_that_cannot_be_decoded_stops_no_other() {
    let mut world = World::open(Default::default()).await;
    world.enforce(false);
    world.create(json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "OpenStackCluster", "metadata": {"name": "bad"},
        "spec": {"identityRef": {"name": "demo-cloud-config", "cloudName": "simulated"},
            "managedSubnets": [{"cidr": "10.6.0.0/24"}],
            "managedNetwork": {"mtu": 99_999_999_999_i64}},
    }))
    .await;
    world.enforce(true);
    world.run();
    world.cluster(json!({})).await;
    world.cluster_ready().await;
    world.delete::<OpenStackCluster>("demo").await;
    world.gone::<OpenStackCluster>("demo").await;
}
