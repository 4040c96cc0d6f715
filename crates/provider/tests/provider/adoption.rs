//! Clusters of cluster-api-provider-openstack are taken over, and stay as that program reads them.

use std::collections::BTreeMap;

use api::infra::v1alpha1::OpenStackServer;
use api::infra::v1beta2::{OpenStackCluster, OpenStackMachine};
use api::names::ADOPT_ANNOTATION;
use kube::ResourceExt;
use openstack::Service;
use provider::identity::{CLUSTER_ID, MACHINE_ID};
use serde_json::{Value, json};
use simulator::cloud::Options as CloudOptions;
use testbed::{Capo, Fuse};

use crate::world::{MINUTE, World, eventually, listed};

/// Cluster `demo` with bastion, `cp-0` with a root volume and `md-0` with a trunk, all of the Go provider; no controllers.
async fn of_capo() -> World {
    let world = World::open(CloudOptions::default()).await;
    let server = json!({"flavor": {"filter": {"name": "m1.small"}},
        "image": {"filter": {"name": "ubuntu-24.04"}}, "sshKeyName": ""});
    let spec = json!({"tags": ["team-a"], "bastion": {"enabled": true, "spec": server}});
    world.cluster(spec).await;
    let root = json!({"rootVolume": {"sizeGiB": 20}});
    world.machine("cp-0", true, root).await;
    let trunk = json!({"trunk": true, "tags": ["t"]});
    world.machine("md-0", false, trunk).await;
    let session = world.session().await;
    Capo::new(&session, &world.client, "demo").build().await;
    world
}

/// True once the cluster has its identity, which is stored last.
async fn is_adopted(world: &World) -> bool {
    let cluster = world.api::<OpenStackCluster>().get("demo").await.unwrap();
    cluster.annotations().contains_key(CLUSTER_ID)
}

async fn ask(world: &World) {
    let annotation = json!({"metadata": {"annotations": {ADOPT_ANNOTATION: "true"}}});
    world.merge::<OpenStackCluster>("demo", annotation).await;
}

async fn adopted(world: &World) {
    world.cluster_ready().await;
    for name in ["cp-0", "md-0"] {
        world.machine_ready(name).await;
    }
    assert!(is_adopted(world).await);
}

/// Names, tags and associations of all resources of the project, without descriptions and times, and without the mark in
/// the tags of servers.
async fn seen_by_capo(world: &World) -> BTreeMap<String, Value> {
    let paths = [
        (Service::Network, "/networks", "networks"),
        (Service::Network, "/subnets", "subnets"),
        (Service::Network, "/routers", "routers"),
        (Service::Network, "/security-groups", "security_groups"),
        (Service::Network, "/ports", "ports"),
        (Service::Network, "/trunks", "trunks"),
        (Service::Network, "/floatingips", "floatingips"),
        (
            Service::LoadBalancer,
            "/lbaas/loadbalancers",
            "loadbalancers",
        ),
        (Service::LoadBalancer, "/lbaas/listeners", "listeners"),
        (Service::LoadBalancer, "/lbaas/pools", "pools"),
        (
            Service::LoadBalancer,
            "/lbaas/healthmonitors",
            "healthmonitors",
        ),
        (Service::Compute, "/servers/detail", "servers"),
        (Service::Volume, "/volumes/detail", "volumes"),
    ];
    let mut all = BTreeMap::new();
    for (service, path, member) in paths {
        let mut answer = world.request(service, "GET", path, Value::Null).await;
        let mut items: Vec<Value> = serde_json::from_value(answer[member].take()).unwrap();
        for item in &mut items {
            for field in [
                "description",
                "updated",
                "updated_at",
                "revision_number",
                "provisioning_status",
            ] {
                item.as_object_mut().unwrap().remove(field);
            }
            if member == "servers" {
                let tags = item["tags"].as_array_mut().unwrap();
                tags.retain(|tag| !tag.as_str().unwrap().starts_with("ferrostack:"));
            }
        }
        items.sort_by_key(|item| item["id"].to_string());
        all.insert(member.to_owned(), Value::from(items));
    }
    all
}

fn added(after: &BTreeMap<String, u64>, before: &BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    let new = |(write, count): (&String, &u64)| {
        let more = count - before.get(write).copied().unwrap_or_default();
        (more > 0).then(|| (write.clone(), more))
    };
    after.iter().filter_map(new).collect()
}

#[tokio::test(start_paused = true)]
async fn a_cluster_of_the_go_provider_is_left_alone_and_the_condition_names_the_command() {
    let mut world = of_capo().await;
    let before = world.writes();
    world.run();
    let words = "ferrostack adopt cluster demo -n default --dry-run";
    let condition = world.cluster_says("Ready", words).await;
    assert_eq!(condition.reason, "IdentityUnknown");
    world
        .machine_says("md-0", "InstanceReady", "identity")
        .await;
    tokio::time::sleep(MINUTE).await;
    assert_eq!(added(&world.writes(), &before), BTreeMap::new());
}

#[tokio::test(start_paused = true)]
async fn an_adoption_marks_each_resource_by_one_write_and_changes_nothing_that_the_go_provider_reads()
 {
    let mut world = of_capo().await;
    let (seen, writes) = (seen_by_capo(&world).await, world.writes());
    ask(&world).await;
    world.run();
    adopted(&world).await;
    tokio::time::sleep(3 * MINUTE).await;
    let new = added(&world.writes(), &writes);
    let number = |route: &str| {
        new.get(&format!("PUT {route}"))
            .copied()
            .unwrap_or_default()
    };
    // Of the cluster with the bastion's floating IP; and three servers, three ports and a volume.
    assert_eq!(new.values().sum::<u64>(), 9 + 3 + 3 + 1, "{new:#?}");
    assert_eq!(number("/v2.0/ports/{id}"), 3, "{new:#?}");
    assert!(new.keys().all(|write| write.starts_with("PUT ")), "{new:?}");
    assert_eq!(seen_by_capo(&world).await, seen);
}

#[tokio::test(start_paused = true)]
async fn an_adopted_cluster_is_deleted_with_everything_and_the_objects_of_the_go_provider_go_with_their_owners()
 {
    let mut world = of_capo().await;
    ask(&world).await;
    world.run();
    adopted(&world).await;
    for name in ["cp-0", "md-0"] {
        world.delete_machine(name).await;
    }
    world.delete::<OpenStackCluster>("demo").await;
    world.gone::<OpenStackCluster>("demo").await;
    assert_eq!(world.left_over(), BTreeMap::default());
    for name in ["cp-0", "md-0", "demo-bastion"] {
        world.gone::<OpenStackServer>(name).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_of_the_go_provider_stays_while_its_machine_is_there() {
    let mut world = of_capo().await;
    ask(&world).await;
    world.run();
    adopted(&world).await;
    let writes = world.writes();
    world.delete::<OpenStackServer>("md-0").await;
    tokio::time::sleep(3 * MINUTE).await;
    assert!(
        world
            .api::<OpenStackServer>()
            .get_opt("md-0")
            .await
            .unwrap()
            .is_some()
    );
    assert_eq!(added(&world.writes(), &writes), BTreeMap::new());
    world.delete_machine("md-0").await;
    world.gone::<OpenStackServer>("md-0").await;
}

#[tokio::test(start_paused = true)]
async fn an_adoption_that_is_cut_at_any_write_to_the_cloud_is_continued() {
    let mut world = of_capo().await;
    let (seen, resources) = (seen_by_capo(&world).await, world.cloud.resources());
    ask(&world).await;
    let mut cuts = 0;
    for nth in 1.. {
        world.run();
        let writes = world.cut_at(1);
        let was_cut = eventually("the cut", || async {
            match (writes.reached(), is_adopted(&world).await) {
                (true, _) => Ok(true),
                (false, true) => Ok(false),
                _ => Err("still running".to_owned()),
            }
        })
        .await;
        world.kill().await;
        world.cloud.on_write(|_| {});
        if !was_cut {
            break;
        }
        cuts = nth;
    }
    // Each start repeats no write that was executed.
    assert_eq!(cuts, 16);
    world.run();
    adopted(&world).await;
    assert_eq!(world.cloud.resources(), resources);
    assert_eq!(seen_by_capo(&world).await, seen);
}

#[tokio::test(start_paused = true)]
async fn an_adoption_that_is_killed_at_any_write_to_the_api_server_ends_the_same() {
    for nth in 1.. {
        let mut world = of_capo().await;
        let (seen, resources) = (seen_by_capo(&world).await, world.cloud.resources());
        ask(&world).await;
        let fuse = Fuse::at(nth);
        world.run_behind(&fuse);
        let settled = eventually("the adoption", || async {
            match is_adopted(&world).await {
                true => Ok(()),
                false => Err("still running".to_owned()),
            }
        });
        let was_killed = tokio::select! {
            () = fuse.blown() => true,
            () = settled => false,
        };
        world.kill().await;
        world.run();
        adopted(&world).await;
        assert_eq!(world.cloud.resources(), resources, "killed at {nth}");
        assert_eq!(seen_by_capo(&world).await, seen, "killed at {nth}");
        let machine = world.api::<OpenStackMachine>().get("md-0").await.unwrap();
        assert_eq!(
            machine.annotations().get(MACHINE_ID),
            machine.uid().as_ref()
        );
        if !was_killed {
            assert!(nth > 6, "only {nth} writes");
            break;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn without_the_annotation_a_half_finished_adoption_is_not_acted_on() {
    let mut world = of_capo().await;
    let resources = world.cloud.resources();
    let cluster = world.api::<OpenStackCluster>().get("demo").await.unwrap();
    let network = cluster.status.unwrap().network.unwrap().id;
    let uid = cluster.metadata.uid.unwrap();
    let mark = json!({"network": {"description": format!("half [{uid}]")}});
    world
        .request(
            Service::Network,
            "PUT",
            &format!("/networks/{network}"),
            mark,
        )
        .await;
    world.run();
    world
        .cluster_says("Ready", "only a part carries an identity")
        .await;
    tokio::time::sleep(MINUTE).await;
    assert_eq!(world.cloud.resources(), resources);
}

#[tokio::test(start_paused = true)]
async fn a_cluster_with_conflicts_is_not_taken_over_and_the_condition_tells_all_of_them() {
    let mut world = of_capo().await;
    let machine = world.api::<OpenStackMachine>().get("md-0").await.unwrap();
    let server = machine.status.unwrap().instance_id.unwrap();
    let name = json!({"server": {"name": "renamed"}});
    world
        .request(Service::Compute, "PUT", &format!("/servers/{server}"), name)
        .await;
    let cluster = world.api::<OpenStackCluster>().get("demo").await.unwrap();
    let router = cluster.status.unwrap().router.unwrap().id;
    let other = uuid::Uuid::new_v4();
    let mark = json!({"router": {"description": format!("another's [{other}]")}});
    world
        .request(Service::Network, "PUT", &format!("/routers/{router}"), mark)
        .await;
    let writes = world.writes();
    ask(&world).await;
    world.run();
    let condition = world.cluster_says("Ready", "has the name renamed").await;
    assert_eq!(condition.reason, "AdoptionRefused");
    assert!(
        condition.message.contains(&other.to_string()),
        "{}",
        condition.message
    );
    tokio::time::sleep(MINUTE).await;
    assert_eq!(added(&world.writes(), &writes), BTreeMap::new());
    // With the causes the conflicts go.
    let name = json!({"server": {"name": "md-0"}});
    world
        .request(Service::Compute, "PUT", &format!("/servers/{server}"), name)
        .await;
    let plain = json!({"router": {"description": ""}});
    world
        .request(
            Service::Network,
            "PUT",
            &format!("/routers/{router}"),
            plain,
        )
        .await;
    adopted(&world).await;
}

#[tokio::test(start_paused = true)]
async fn the_annotation_on_a_new_cluster_changes_nothing() {
    let world = World::start().await;
    world.cluster(json!({})).await;
    ask(&world).await;
    world.cluster_ready().await;
    world.machine("md-0", false, json!({})).await;
    world.machine_ready("md-0").await;
}

#[tokio::test(start_paused = true)]
async fn a_machine_of_an_adopted_cluster_can_be_replaced_and_the_bastion_removed() {
    let mut world = of_capo().await;
    ask(&world).await;
    world.run();
    adopted(&world).await;
    world.delete_machine("md-0").await;
    world.machine("md-1", false, json!({})).await;
    world.machine_ready("md-1").await;
    let disabled = json!({"spec": {"bastion": {"enabled": false}}});
    world.merge::<OpenStackCluster>("demo", disabled).await;
    eventually("no bastion", || async {
        let object = world.api::<OpenStackCluster>().get("demo").await.unwrap();
        let status = object.status.unwrap_or_default();
        match status.bastion.is_none() && world.count("server") == 2 {
            true => Ok(()),
            false => Err(listed(&status.conditions)),
        }
    })
    .await;
}
