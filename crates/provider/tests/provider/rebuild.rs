//! Servers that are rebuilt in place, on request of the owner of the machine.

use std::collections::BTreeMap;

use api::core::v1beta2::Machine;
use api::infra::v1beta2::OpenStackMachine;
use api::k8s_openapi::api::core::v1::Secret;
use api::names::{
    UPDATE_FAILED_ANNOTATION, UPDATE_IN_PROGRESS_ANNOTATION, UPDATED_IN_PLACE_ANNOTATION,
};
use kube::ResourceExt;
use openstack::Service;
use serde_json::{Value, json};

use crate::world::{World, eventually};

const NEW: &str = "ubuntu-2404-kube-v1.34.2";

/// A cluster with a control plane machine and a worker, both ready.
async fn two() -> World {
    let world = World::start().await;
    world.cluster(json!({})).await;
    world.cluster_ready().await;
    world.machine("cp-0", true, json!({})).await;
    let metadata = json!({"serverMetadata": [{"key": "rack", "value": "7"}]});
    world.machine("md-0", false, metadata).await;
    for name in ["cp-0", "md-0"] {
        world.machine_ready(name).await;
    }
    eventually("a member", || async {
        let listeners = world.cloud.world().borrow().listeners.clone();
        match listeners.iter().any(|it| it.members.len() == 1) {
            true => Ok(()),
            false => Err(format!("{listeners:?}")),
        }
    })
    .await;
    world
}

/// Asks for another disk of `name`, made from the image and from the bootstrap data in the Secret `secret`.
async fn ask(world: &World, name: &str, secret: &str, image: &str) {
    let data = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": secret},
        "stringData": {"value": format!("#cloud-config\n# {secret}\n")}});
    if world
        .api::<Secret>()
        .get_opt(secret)
        .await
        .unwrap()
        .is_none()
    {
        world.create(data).await;
    }
    let machine = json!({"spec": {"bootstrap": {"dataSecretName": secret}}});
    world.merge::<Machine>(name, machine).await;
    let request = json!({
        "metadata": {"annotations": {UPDATE_IN_PROGRESS_ANNOTATION: secret}},
        "spec": {"image": {"filter": {"name": image}}},
    });
    world.merge::<OpenStackMachine>(name, request).await;
}

async fn annotation(world: &World, name: &str, key: &str) -> Option<String> {
    let object = world.api::<OpenStackMachine>().get(name).await.unwrap();
    object.annotations().get(key).cloned()
}

async fn done(world: &World, name: &str, secret: &str) {
    eventually("the update", || async {
        let answer = annotation(world, name, UPDATED_IN_PLACE_ANNOTATION).await;
        let object = world.api::<OpenStackMachine>().get(name).await.unwrap();
        let conditions = object.status.unwrap_or_default().conditions;
        let ready = api::conditions::is_true(&conditions, "Ready");
        match answer.as_deref() == Some(secret) && ready {
            true => Ok(()),
            false => Err(format!("{answer:?} {}", crate::world::listed(&conditions))),
        }
    })
    .await;
}

/// Nova's answer about the server of a machine.
async fn server(world: &World, name: &str) -> Value {
    let object = world.api::<OpenStackMachine>().get(name).await.unwrap();
    let id = object.status.unwrap().instance_id.unwrap();
    let path = format!("/servers/{id}");
    let found = world.request(Service::Compute, "GET", &path, Value::Null);
    found.await["server"].clone()
}

fn rebuilds(writes: &BTreeMap<String, u64>) -> u64 {
    writes
        .get("POST /v2.1/servers/{server_id}/action")
        .copied()
        .unwrap_or(0)
}

#[tokio::test(start_paused = true)]
async fn servers_ports_and_addresses_stay_and_octavia_is_asked_nothing() {
    let world = two().await;
    for name in ["md-0", "cp-0"] {
        let before = server(&world, name).await;
        let resources = world.cloud.resources();
        world.cloud.reset_requests();
        ask(&world, name, &format!("{name}-2"), NEW).await;
        done(&world, name, &format!("{name}-2")).await;
        let writes = world.writes();
        assert_eq!(rebuilds(&writes), 1, "{writes:#?}");
        assert_eq!(writes.values().sum::<u64>(), 1, "{writes:#?}");
        let after = server(&world, name).await;
        for same in ["id", "addresses", "name", "tags", "hostId"] {
            assert_eq!(before[same], after[same], "{same}");
        }
        assert_ne!(before["image"]["id"], after["image"]["id"]);
        assert_eq!(world.cloud.resources(), resources);
        let instances = world.cloud.world().borrow().instances.clone();
        let id = after["id"].as_str().unwrap();
        let instance = instances.iter().find(|it| it.id == id).unwrap();
        let data = instance.user_data.as_deref().unwrap();
        assert!(String::from_utf8_lossy(data).contains(&format!("{name}-2")));
        assert_eq!(
            annotation(&world, name, UPDATE_IN_PROGRESS_ANNOTATION).await,
            None
        );
    }
    let metadata = &server(&world, "md-0").await["metadata"];
    assert_eq!(metadata["rack"], "7", "{metadata}");
    let load_balancing = world.cloud.requests();
    let load_balancing = load_balancing
        .iter()
        .filter(|it| it.service == "load-balancer");
    let writes = load_balancing.filter(|it| it.method != "GET").count();
    assert_eq!(writes, 0);
}

#[tokio::test(start_paused = true)]
async fn a_rebuild_whose_answer_is_lost_is_neither_repeated_nor_forgotten() {
    let mut world = two().await;
    let cut = world.cut_at(1);
    ask(&world, "md-0", "md-0-2", NEW).await;
    eventually("the cut", || async {
        if cut.reached() {
            Ok(())
        } else {
            Err("no write yet".to_owned())
        }
    })
    .await;
    world.kill().await;
    world.cloud.on_write(|_| {});
    world.run();
    done(&world, "md-0", "md-0-2").await;
    let instances = world.cloud.world().borrow().instances.clone();
    assert_eq!(instances.iter().map(|it| it.disk).sum::<u64>(), 1);
}

#[tokio::test(start_paused = true)]
async fn another_request_rebuilds_once_more_and_the_same_one_does_not() {
    let world = two().await;
    for (number, secret) in [(1, "a"), (2, "b"), (2, "b"), (3, "a")] {
        ask(&world, "md-0", secret, NEW).await;
        done(&world, "md-0", secret).await;
        let instances = world.cloud.world().borrow().instances.clone();
        assert_eq!(
            instances.iter().map(|it| it.disk).sum::<u64>(),
            number,
            "{secret}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_rebuild_that_nova_fails_or_refuses_is_answered_with_its_words() {
    let world = two().await;
    let fault =
        json!({"name_prefix": "md-0", "message": "no space left on the hypervisor", "count": 1});
    world.server_fault(fault).await;
    ask(&world, "md-0", "md-0-2", NEW).await;
    let answers = |secret: &'static str, words: &'static str| {
        let world = &world;
        async move {
            eventually("the answer", || async {
                let answer = annotation(world, "md-0", UPDATE_FAILED_ANNOTATION).await;
                let answer = answer.unwrap_or_default();
                let is_answered =
                    answer.starts_with(&format!("{secret} ")) && answer.contains(words);
                if is_answered { Ok(()) } else { Err(answer) }
            })
            .await;
        }
    };
    answers("md-0-2", "no space left").await;
    let refusal = json!({"service": "compute", "method": "POST", "route": "/v2.1/servers/{server_id}/action",
        "status": 400, "message": "Flavor's disk is too small for requested image."});
    world.fault(refusal).await;
    ask(&world, "md-0", "md-0-3", NEW).await;
    answers("md-0-3", "disk is too small").await;
    world.mend().await;
    ask(&world, "md-0", "md-0-4", NEW).await;
    done(&world, "md-0", "md-0-4").await;
    assert_eq!(
        annotation(&world, "md-0", UPDATE_FAILED_ANNOTATION).await,
        None
    );
}

#[tokio::test(start_paused = true)]
async fn an_image_changes_only_under_an_update_in_place() {
    let world = two().await;
    let api = world.api::<OpenStackMachine>();
    let change = json!({"spec": {"image": {"filter": {"name": NEW}}}});
    let patch = kube::api::Patch::Merge(&change);
    let refused = api.patch("md-0", &Default::default(), &patch).await;
    let error = refused.unwrap_err().to_string();
    assert!(error.contains("spec.image"), "{error}");
}

/// Waits for this number of members of the load balancer.
async fn members(world: &World, count: usize) {
    eventually(&format!("{count} members"), || async {
        let listeners = world.cloud.world().borrow().listeners.clone();
        match listeners.iter().any(|it| it.members.len() == count) {
            true => Ok(()),
            false => Err(format!("{listeners:?}")),
        }
    })
    .await;
}

/// Number of writes, and of those to Octavia.
fn writes(world: &World) -> (u64, u64) {
    let all = world.cloud.requests();
    let writes = all
        .iter()
        .filter(|it| it.service != "identity" && it.method != "GET");
    let of_octavia = writes.clone().filter(|it| it.service == "load-balancer");
    (
        writes.map(|it| it.count).sum(),
        of_octavia.map(|it| it.count).sum(),
    )
}

#[tokio::test(start_paused = true)]
async fn a_control_plane_machine_costs_one_write_and_none_to_octavia() {
    let world = two().await;
    world.cloud.reset_requests();
    ask(&world, "cp-0", "cp-0-2", NEW).await;
    done(&world, "cp-0", "cp-0-2").await;
    assert_eq!(writes(&world), (1, 0));
    world.cloud.reset_requests();
    world.machine("cp-1", true, json!({})).await;
    world.machine_ready("cp-1").await;
    members(&world, 2).await;
    world.delete_machine("cp-0").await;
    members(&world, 1).await;
    let (all, of_octavia) = writes(&world);
    assert!(
        all >= 6 && of_octavia >= 2,
        "{all} writes, {of_octavia} to Octavia"
    );
}
