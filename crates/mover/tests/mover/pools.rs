//! Pools of floating IPs move with the clusters whose machines use their addresses.

use api::infra::v1alpha1::OpenStackFloatingIPPool;
use api::infra::v1beta2::OpenStackMachine;
use serde_json::{Value, json};
use testbed::eventually;

use crate::world::{Place, World, options};

/// The addresses that the pool has given out.
async fn claimed(place: &Place) -> Vec<String> {
    eventually("an address of the pool", || async {
        let pools = place.management.api::<OpenStackFloatingIPPool>();
        let pool = pools.get("public").await.map_err(|it| it.to_string())?;
        let status = pool.status.unwrap_or_default();
        match api::conditions::is_true(&status.conditions, "Ready")
            && !status.claimed_ips.is_empty()
        {
            true => Ok(status.claimed_ips),
            false => Err(format!("{status:?}")),
        }
    })
    .await
}

/// The addresses of machines outside of their cluster.
async fn external(place: &Place) -> Vec<String> {
    let machines = place.management.list::<OpenStackMachine>().await;
    let status = machines.into_iter().filter_map(|machine| machine.status);
    let addresses = status.flat_map(|status| status.addresses);
    addresses
        .filter(|address| address.type_ == "ExternalIP")
        .map(|address| address.address)
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn machines_keep_their_addresses_of_a_pool_that_moves_with_them() {
    let world = World::open().await;
    let mut manifests = world.manifests(1, 1);
    let template = manifests
        .iter_mut()
        .find(|it| it["kind"] == "OpenStackMachineTemplate" && it["metadata"]["name"] == "demo-md");
    let reference = json!({"apiGroup": "infrastructure.cluster.x-k8s.io",
        "kind": "OpenStackFloatingIPPool", "name": "public"});
    template.unwrap()["spec"]["template"]["spec"]["floatingIPPoolRef"] = reference;
    manifests.insert(
        1,
        json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1", "kind": "OpenStackFloatingIPPool",
            "metadata": {"name": "public"}, "spec": {"reclaimPolicy": "Delete",
                "identityRef": {"name": "demo-cloud-config", "cloudName": "simulated"}}}),
    );
    world.here.management.apply(manifests).await;
    world.here.available(2).await;
    let before = claimed(&world.here).await;
    assert_eq!(external(&world.here).await, before);
    let (resources, writes) = (world.resources(), world.written());

    let report = world.go(&options()).await.unwrap();
    let stays: Vec<_> = report.stays.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(stays, ["unrelated"]);
    world.there.available(2).await;
    assert_eq!(claimed(&world.there).await, before);
    assert_eq!(external(&world.there).await, before);
    assert_eq!(world.resources(), resources);
    assert_eq!(world.written(), writes, "the move wrote to the cloud");
    let left: Vec<(String, Value)> = world.here.objects().await.into_iter().collect();
    assert_eq!(left, []);

    // The pool on the other side gives out another address, and all of them are deleted with their machines.
    world.there.scale(2).await;
    world.there.available(3).await;
    assert_eq!(claimed(&world.there).await.len(), 2);
    let there = &world.there.management;
    there.delete::<api::core::v1beta2::Cluster>("demo").await;
    there.gone::<api::core::v1beta2::Cluster>("demo").await;
    there.delete::<OpenStackFloatingIPPool>("public").await;
    there.gone::<OpenStackFloatingIPPool>("public").await;
    assert_eq!(world.resources(), world.before);
}
