//! The lifecycle of machines and their servers.

use std::time::Duration;

use api::infra::v1beta2::{OpenStackCluster, OpenStackMachine};
use serde_json::json;

use crate::world::{World, eventually};

#[tokio::test(start_paused = true)]
async fn a_worker_costs_three_requests_and_leaves_nothing() {
    let world = World::start().await;
    world.cluster(json!({})).await;
    world.cluster_ready().await;
    let cluster = world.cloud.resources();
    world.cloud.reset_requests();
    world
        .machine("md-0", false, json!({"tags": ["mine"]}))
        .await;
    let machine = world.machine_ready("md-0").await;
    let status = machine.status.unwrap();
    let id = status.instance_id.unwrap();
    assert_eq!(
        machine.spec.provider_id.unwrap(),
        format!("openstack:///{id}")
    );
    assert_eq!(status.instance_state.unwrap(), "ACTIVE");
    let types: Vec<_> = status.addresses.iter().map(|a| a.type_.as_str()).collect();
    assert_eq!(types, ["InternalIP", "InternalDNS"]);
    let writes = world.writes();
    assert_eq!(writes.values().sum::<u64>(), 3, "{writes:#?}");
    world.delete_machine("md-0").await;
    assert_eq!(world.cloud.resources(), cluster);
}

#[tokio::test(start_paused = true)]
async fn control_plane_machines_are_members_for_as_long_as_they_live() {
    let world = World::start().await;
    world.cluster(json!({})).await;
    world.cluster_ready().await;
    for name in ["cp-0", "cp-1", "cp-2"] {
        world.machine(name, true, json!({})).await;
    }
    let members = |count: usize| {
        let world = &world;
        async move {
            eventually(&format!("{count} members"), || async {
                let world = world.cloud.world();
                let listeners = world.borrow().listeners.clone();
                let members = listeners
                    .first()
                    .map_or(0, |listener| listener.members.len());
                if members == count {
                    Ok(())
                } else {
                    Err(format!("{listeners:?}"))
                }
            })
            .await;
        }
    };
    members(3).await;
    for name in ["cp-0", "cp-1", "cp-2"] {
        eventually("ingress", || async {
            let machine = world.machine_ready(name).await;
            let status = machine.status.unwrap();
            match api::conditions::is_true(&status.conditions, "APIServerIngressReady") {
                true => Ok(()),
                false => Err(crate::world::listed(&status.conditions)),
            }
        })
        .await;
    }
    world.delete_machine("cp-1").await;
    members(2).await;
}

#[tokio::test(start_paused = true)]
async fn a_root_volume_is_made_first_and_goes_with_the_server() {
    let world = World::start().await;
    world.cluster(json!({})).await;
    world.cluster_ready().await;
    let cluster = world.cloud.resources();
    let spec = json!({"rootVolume": {"sizeGiB": 20}, "additionalBlockDevices": [
        {"name": "etcd", "sizeGiB": 5, "storage": {"type": "Volume"}}]});
    world.machine("md-0", false, spec).await;
    world.machine_ready("md-0").await;
    assert_eq!(world.count("volume"), 2);
    world.delete_machine("md-0").await;
    assert_eq!(world.cloud.resources(), cluster);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_somebody_deletes_is_not_replaced() {
    let world = World::start().await;
    world.cluster(json!({})).await;
    world.cluster_ready().await;
    world.machine("md-0", false, json!({})).await;
    let machine = world.machine_ready("md-0").await;
    let id = machine.status.unwrap().instance_id.unwrap();
    world
        .session()
        .await
        .compute()
        .delete_server(&id)
        .await
        .unwrap();
    let condition = world
        .machine_says("md-0", "InstanceReady", "deleted by somebody else")
        .await;
    assert_eq!(condition.reason, "InstanceDeleted");
    assert_eq!(world.count("server"), 0);
    let reported = world.notes("md-0", "Warning").await;
    assert_eq!(reported.len(), 1, "{reported:?}");
    let expected = format!("InstanceDeleted: Server {id} was deleted by somebody else");
    assert!(reported[0].starts_with(&expected), "{reported:?}");
    world.delete_machine("md-0").await;
}

#[tokio::test(start_paused = true)]
async fn the_server_of_a_node_that_does_not_answer_is_looked_for_at_once() {
    let mut world = World::open(simulator::cloud::Options::default()).await;
    world.idle = Duration::from_secs(3600);
    world.rest = Duration::from_secs(3600);
    world.run();
    world.cluster(json!({})).await;
    world.cluster_ready().await;
    world.machine("md-0", false, json!({})).await;
    let machine = world.machine_ready("md-0").await;
    let session = world.session().await;
    let id = machine.status.unwrap().instance_id.unwrap();
    session.compute().delete_server(&id).await.unwrap();
    let silent = json!({"status": {"nodeRef": {"name": "md-0"}, "conditions": [{
        "type": "NodeHealthy", "status": "Unknown", "reason": "NodeHealthUnknown", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z"}]}});
    let machines = world.api::<api::core::v1beta2::Machine>();
    let patch = kube::api::Patch::Merge(&silent);
    machines
        .patch_status("md-0", &Default::default(), &patch)
        .await
        .unwrap();
    // The list must be older than the age that a silent Node allows.
    eventually("the loss", || async {
        world.poke::<OpenStackMachine>("md-0").await;
        let object = world.api::<OpenStackMachine>().get("md-0").await.unwrap();
        let conditions = object.status.unwrap_or_default().conditions;
        let found = api::conditions::find(&conditions, "InstanceReady").cloned();
        match found.filter(|found| found.reason == "InstanceDeleted") {
            Some(_) => Ok(()),
            None => Err(crate::world::listed(&conditions)),
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn ten_idle_minutes_of_a_cluster_cost_at_most_twenty_requests() {
    let mut world = World::open(simulator::cloud::Options::default()).await;
    let intervals = openstack::PoolOptions::default().intervals;
    (world.idle, world.rest) = (intervals.idle, intervals.rest);
    world.run();
    world.cluster(json!({})).await;
    let names = ["cp-0", "cp-1", "cp-2", "md-0", "md-1", "md-2"];
    for name in names {
        world.machine(name, name.starts_with("cp"), json!({})).await;
    }
    for name in names {
        world.machine_ready(name).await;
        let node = json!({"status": {"nodeRef": {"name": name}}});
        let api = world.api::<api::core::v1beta2::Machine>();
        let patch = kube::api::Patch::Merge(&node);
        api.patch_status(name, &Default::default(), &patch)
            .await
            .unwrap();
    }
    eventually("three members", || async {
        let listeners = world.cloud.world().borrow().listeners.clone();
        match listeners.first().map_or(0, |first| first.members.len()) {
            3 => Ok(()),
            other => Err(other.to_string()),
        }
    })
    .await;
    world.cluster_ready().await;
    // After a while the intervals are at their maximum.
    let ten_minutes = Duration::from_secs(600);
    tokio::time::sleep(ten_minutes * 2).await;
    world.cloud.reset_requests();
    // Each object is reconciled again, as it is every ten minutes.
    world.poke::<OpenStackCluster>("demo").await;
    for name in names {
        world.poke::<OpenStackMachine>(name).await;
    }
    tokio::time::sleep(ten_minutes).await;
    let counts = world.cloud.requests();
    let total: u64 = counts.iter().map(|count| count.count).sum();
    assert!((2..=20).contains(&total), "{total} requests: {counts:#?}");
}
