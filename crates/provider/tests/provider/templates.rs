//! OpenStackMachineTemplates: resources for scaling from zero, and pairs that machines follow.

use api::infra::v1beta2::{OpenStackMachine, OpenStackMachineTemplate};
use serde_json::{Value, json};

use crate::world::{World, eventually, listed};

fn pairs(address: &str) -> Value {
    json!([{"allowedAddressPairs": [{"ipAddress": address}]}])
}

async fn template(world: &World, flavor: &str) {
    let spec = json!({"flavor": {"filter": {"name": flavor}}, "image": {"filter": {"name": "ubuntu-24.04"}},
        "ports": pairs("10.6.0.100")});
    world
        .create(
            json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2",
            "kind": "OpenStackMachineTemplate",
            "metadata": {"name": "md", "labels": {"cluster.x-k8s.io/cluster-name": "demo"}},
            "spec": {"template": {"spec": spec}}}),
        )
        .await;
}

async fn says(world: &World, expected: &str, words: &str) -> OpenStackMachineTemplate {
    eventually("the template", || async {
        let object = world
            .api::<OpenStackMachineTemplate>()
            .get("md")
            .await
            .unwrap();
        let status = object.status.clone().unwrap_or_default();
        let ready = api::conditions::find(&status.conditions, "Ready");
        match ready.is_some_and(|it| it.status == expected && it.message.contains(words)) {
            true => Ok(object),
            false => Err(listed(&status.conditions)),
        }
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn a_template_tells_the_resources_of_its_machines_or_what_is_missing() {
    let world = World::start().await;
    world.cluster(json!({})).await;
    world.cluster_ready().await;
    template(&world, "m1.small").await;
    let status = says(&world, "True", "").await.status.unwrap();
    let capacity: Vec<_> = status
        .capacity
        .iter()
        .map(|(name, quantity)| format!("{name}={}", quantity.0))
        .collect();
    assert_eq!(capacity, ["cpu=1", "memory=2048Mi", "storage=20Gi"]);
    world.delete::<OpenStackMachineTemplate>("md").await;
    template(&world, "none").await;
    says(&world, "False", "flavor: flavor `none` does not exist").await;
}

#[tokio::test(start_paused = true)]
async fn machines_follow_changed_pairs_of_their_template_once_and_keep_what_is_theirs() {
    let world = World::start().await;
    world.cluster(json!({})).await;
    world.cluster_ready().await;
    template(&world, "m1.small").await;
    says(&world, "True", "").await;
    for name in ["md-0", "md-1"] {
        world
            .machine(name, false, json!({"ports": pairs("10.6.0.100")}))
            .await;
    }
    let notes = json!({"metadata": {"annotations": {
        "cluster.x-k8s.io/cloned-from-name": "md",
        "cluster.x-k8s.io/cloned-from-groupkind": "OpenStackMachineTemplate.infrastructure.cluster.x-k8s.io"}}});
    world.merge::<OpenStackMachine>("md-0", notes).await;
    world.machine_ready("md-0").await;
    world.machine_ready("md-1").await;
    let change = json!({"spec": {"template": {"spec": {"ports": pairs("10.6.0.101")}}}});
    world.merge::<OpenStackMachineTemplate>("md", change).await;
    let has = async |name: &'static str, address: &'static str| {
        eventually(&format!("{address} of {name}"), || async {
            let session = world.session().await;
            let ports = session.network().ports(&[]).await.unwrap();
            let port = ports
                .into_iter()
                .find(|port| port.name.starts_with(name))
                .unwrap();
            let found: Vec<_> = port
                .allowed_address_pairs
                .into_iter()
                .map(|it| it.ip_address)
                .collect();
            (found == [address])
                .then_some(())
                .ok_or(format!("{found:?}"))
        })
        .await;
    };
    has("md-0", "10.6.0.101").await;
    // One that is of no template stays, and so does what is written to a machine afterwards.
    has("md-1", "10.6.0.100").await;
    let by_hand = json!({"spec": {"ports": pairs("10.6.0.102")}});
    world.merge::<OpenStackMachine>("md-0", by_hand).await;
    world.poke::<OpenStackMachineTemplate>("md").await;
    has("md-0", "10.6.0.102").await;
    tokio::time::sleep(crate::world::MINUTE).await;
    has("md-0", "10.6.0.102").await;
}
