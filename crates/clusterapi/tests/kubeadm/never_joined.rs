//! Machines that never became members of etcd.

use api::controlplane::v1beta2::KubeadmControlPlane;
use api::core::v1beta2::Machine;
use serde_json::json;

use crate::world::{NO_SERVER, World, eventually, template};

/// Lets the control plane roll out to the template `name`.
async fn roll_out(world: &World, name: &str) {
    world.apply([template(name)]).await;
    let change =
        json!({"spec": {"machineTemplate": {"spec": {"infrastructureRef": {"name": name}}}}});
    world.merge::<KubeadmControlPlane>("demo", change).await;
}

/// Waits until there is one machine besides `known`, with a server or without, and returns its name.
async fn another(world: &World, known: &[String], server: bool) -> String {
    eventually("one more machine", || async {
        let names = world.machine_names().await;
        let mut new = names.iter().filter(|name| !known.contains(name));
        let Some(new) = new.next() else {
            return Err(format!("{names:?}"));
        };
        let machine = world.api::<Machine>().get(new).await.unwrap();
        let status = machine.status.unwrap_or_default();
        match status.addresses.is_some() == server {
            true => Ok(new.clone()),
            false => Err(format!("{status:?}")),
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_typo_in_the_template_of_a_single_machine_is_mended_by_its_correction() {
    let world = World::start().await;
    world.cluster(1).await;
    world.settled(1).await;
    let names = world.machine_names().await;
    roll_out(&world, NO_SERVER).await;
    let stuck = another(&world, &names, false).await;
    let why = format!("Machine {stuck} has no Node yet");
    world.condition("RollingOut", "True", &why).await;
    roll_out(&world, "good").await;
    eventually("both machines to be replaced", || async {
        let now = world.machine_names().await;
        match now.contains(&stuck) || now.contains(&names[0]) {
            true => Err(format!("{now:?}")),
            false => Ok(()),
        }
    })
    .await;
    world.settled(1).await;
    assert_eq!(world.members.names(), world.machine_names().await);
}
