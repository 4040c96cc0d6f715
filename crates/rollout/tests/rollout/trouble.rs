//! Problems are reported in conditions, in words, and objects of others are left alone.

use api::openstack::conditions::Type;
use api::openstack::v1alpha1::OpenStack;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Api, DeleteParams};
use serde_json::{Value, json};
use simulator::nodes::Ending;
use testbed::{NAMESPACE, eventually};

use crate::world::{CLOUD, MINUTE, World};

fn ending(status: i32, log: &str) -> Option<Ending> {
    Some(Ending {
        status,
        log: log.to_owned(),
    })
}

/// Waits until the message of `Ready` has all these parts.
async fn waits_for(world: &World, parts: &[&str]) {
    eventually(&format!("{parts:?}"), || async {
        let message = world.condition(Type::Ready, "False").await;
        match parts.iter().all(|part| message.contains(part)) {
            true => Ok(()),
            false => Err(message),
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_failed_task_is_named_with_command_status_and_last_lines() {
    let world = World::open().await;
    let log = "starting\n(1045) Access denied for user 'keystone'";
    world
        .faults
        .container_ends("keystone-schema", ending(3, log));
    let _controller = world.controller();
    world.create(json!({"release": "2026.1"})).await;
    let message = world.condition(Type::TasksSucceeded, "False").await;
    for part in [
        "keystone-schema",
        "keystone-manage",
        "exit status 3",
        "(1045) Access denied for user 'keystone'",
        "kubectl -n default delete job keystone-schema-",
    ] {
        assert!(message.contains(part), "{part}: {message}");
    }
    // Others go on, and dependents wait.
    let deployments = world.list("apps", "Deployment").await;
    assert!(
        deployments
            .iter()
            .all(|it| it["metadata"]["name"] != "keystone-api")
    );

    world.faults.container_ends("keystone-schema", None);
    let jobs: Api<Job> = world.management.api();
    let jobs_there = world.list("batch", "Job").await;
    let failed = jobs_there.iter().find(|it| {
        let name = it["metadata"]["name"].as_str().unwrap();
        name.starts_with("keystone-schema-")
    });
    let name = failed.unwrap()["metadata"]["name"].as_str().unwrap();
    jobs.delete(name, &DeleteParams::background())
        .await
        .unwrap();
    world.ready().await;
    world.condition(Type::TasksSucceeded, "True").await;
}

#[tokio::test(start_paused = true)]
async fn a_missing_image_is_named() {
    let world = World::open().await;
    let image = "ferrostack.local/openstack:2026.1";
    world.faults.image_is_missing(image, true);
    let _controller = world.controller();
    world.create(json!({"release": "2026.1"})).await;
    waits_for(&world, &["ImagePullBackOff", image, "images/build"]).await;
    world.faults.image_is_missing(image, false);
    world.ready().await;
}

#[tokio::test(start_paused = true)]
async fn a_program_that_crashes_is_named_with_its_last_lines() {
    let world = World::open().await;
    world
        .faults
        .container_ends("glance-api", ending(1, "no such store"));
    let _controller = world.controller();
    world.create(json!({"release": "2026.1"})).await;
    waits_for(&world, &["glance-api", "exit status 1", "no such store"]).await;
    world.faults.container_ends("glance-api", None);
    world.ready().await;
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_gone_makes_the_cloud_unready_until_it_is_back() {
    let world = World::open().await;
    let _controller = world.controller();
    world.create(json!({"release": "2026.1"})).await;
    world.ready().await;
    world.faults.node_is_gone("node-0", true);
    waits_for(&world, &["0 of 1 replicas"]).await;
    world.faults.node_is_gone("node-0", false);
    world.ready().await;
    world.assert_at_rest().await;
}

#[tokio::test(start_paused = true)]
async fn a_foreign_object_in_the_way_is_neither_changed_nor_adopted() {
    let world = World::open().await;
    let foreign = json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "mariadb"}, "spec": {"ports": [{"port": 1}]}});
    world.management.create(foreign).await;
    let before = world.list("", "Service").await;
    let _controller = world.controller();
    world.create(json!({"release": "2026.1"})).await;
    waits_for(&world, &["Service mariadb", "is not of this cloud"]).await;
    assert_eq!(world.list("", "Service").await, before);
    assert_eq!(world.owned().await, Vec::<String>::new());
    world.delete(true).await;
    world.management.gone::<OpenStack>(CLOUD).await;
    assert_eq!(world.list("", "Service").await, before);
}

#[tokio::test(start_paused = true)]
async fn a_second_cloud_in_the_namespace_is_refused() {
    let world = World::open().await;
    let _controller = world.controller();
    world.create(json!({"release": "2026.1"})).await;
    world.ready().await;
    let mut other = crate::world::object(json!({"release": "zed"}));
    other["metadata"]["name"] = "other".into();
    world.management.create(other).await;
    let api: Api<OpenStack> = world.management.api();
    eventually("the conflict", || async {
        let other = serde_json::to_value(api.get("other").await.unwrap()).unwrap();
        let text = other["status"].to_string();
        let named = text.contains("holds objects of cloud cloud");
        named.then_some(()).ok_or(text)
    })
    .await;
    world.assert_at_rest().await;
}

#[tokio::test(start_paused = true)]
async fn lost_passwords_stop_everything() {
    let world = World::open().await;
    let _controller = world.controller();
    world.create(json!({"release": "2026.1"})).await;
    world.ready().await;
    let owned = world.owned().await;
    let secrets: Api<Secret> = world.management.api();
    let name = "openstack-accounts";
    let kept = secrets.get(name).await.unwrap();
    secrets
        .delete(name, &DeleteParams::default())
        .await
        .unwrap();
    waits_for(&world, &[name, "Restore them from a backup"]).await;
    assert_eq!(world.owned().await.len(), owned.len() - 1);

    let mut restored: Value = serde_json::to_value(&kept).unwrap();
    restored["apiVersion"] = "v1".into();
    restored["kind"] = "Secret".into();
    for field in [
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "managedFields",
    ] {
        restored["metadata"].as_object_mut().unwrap().remove(field);
    }
    world.management.create(restored).await;
    world.ready().await;
    assert_eq!(world.owned().await, owned);
}

#[tokio::test(start_paused = true)]
async fn a_lost_key_is_named_and_nothing_is_written_until_it_is_there_again() {
    let world = World::open().await;
    let _controller = world.controller();
    world.create(json!({"release": "2026.1"})).await;
    world.ready().await;
    let params = kube::api::PatchParams::default();
    let secrets: Api<Secret> = world.management.api();
    let versions = || async {
        let mut found = Vec::new();
        for kind in ["Secret", "ConfigMap"] {
            for object in world.list("", kind).await {
                found.push(object["metadata"]["resourceVersion"].clone());
            }
        }
        found
    };
    for (name, key, advice) in [
        (
            "openstack-accounts",
            "database-nova",
            "or set another one there",
        ),
        (
            "keystone-fernet-keys",
            "1",
            "or delete the cloud with its data",
        ),
    ] {
        let kept = secrets.get(name).await.unwrap().data.unwrap();
        let kept = serde_json::to_value(&kept).unwrap()[key].clone();
        for lost in [Value::Null, "".into()] {
            let patch = kube::api::Patch::Merge(json!({"data": {key: lost}}));
            secrets.patch(name, &params, &patch).await.unwrap();
            let before = versions().await;
            let named = format!("Secret {name} has lost its key {key}: restore it from a backup");
            waits_for(&world, &[&named, advice]).await;
            // Neither is drift repaired meanwhile.
            let deployments: Api<k8s_openapi::api::apps::v1::Deployment> = world.management.api();
            let scaled = kube::api::Patch::Merge(json!({"spec": {"replicas": 0}}));
            deployments
                .patch("placement-api", &params, &scaled)
                .await
                .unwrap();
            tokio::time::sleep(MINUTE).await;
            let replicas = deployments
                .get("placement-api")
                .await
                .unwrap()
                .spec
                .replicas;
            assert_eq!(replicas, Some(0));
            assert_eq!(versions().await, before);
            let patch = kube::api::Patch::Merge(json!({"data": {key: kept}}));
            secrets.patch(name, &params, &patch).await.unwrap();
            world.ready().await;
        }
    }
    world.assert_at_rest().await;
}

#[tokio::test(start_paused = true)]
async fn drift_is_repaired() {
    let world = World::open().await;
    let _controller = world.controller();
    world.create(json!({"release": "2026.1"})).await;
    world.ready().await;
    let before = world.owned().await;
    let deployments: Api<k8s_openapi::api::apps::v1::Deployment> = world.management.api();
    let scaled = kube::api::Patch::Merge(json!({"spec": {"replicas": 0}}));
    let params = kube::api::PatchParams::default();
    deployments
        .patch("placement-api", &params, &scaled)
        .await
        .unwrap();
    let maps: Api<ConfigMap> = world.management.api();
    let map = before
        .iter()
        .find(|it| it.starts_with("ConfigMap placement-"));
    let map = map.unwrap().strip_prefix("ConfigMap ").unwrap();
    maps.delete(map, &DeleteParams::default()).await.unwrap();
    eventually("the repair", || async {
        let plan = world.plan().await;
        plan.is_empty().then_some(()).ok_or(format!("{plan:?}"))
    })
    .await;
    world.ready().await;
    assert_eq!(world.owned().await, before);
    assert_eq!(NAMESPACE, "default");
}

#[tokio::test(start_paused = true)]
async fn options_that_are_rejected_without_a_webhook_are_in_the_condition() {
    let world = World::open().await;
    world.management.enforce(false);
    let _controller = world.controller();
    let config = json!({"scheduler": {"wrokers": 2}});
    world
        .create(json!({"release": "2026.1", "services": {"nova": {"config": config}}}))
        .await;
    let message = world.condition(Type::ConfigurationValid, "False").await;
    assert!(
        message.contains("services.nova.config.scheduler.wrokers")
            && message.contains("did you mean workers?"),
        "{message}"
    );
    assert_eq!(world.owned().await, Vec::<String>::new());
}

const OFF: &str = "services.octavia.enabled cannot be turned off";

#[tokio::test(start_paused = true)]
async fn fields_that_are_not_built_and_changes_that_are_not_possible_are_rejected() {
    let world = World::open().await;
    let api: Api<OpenStack> = world.management.api();
    let params = kube::api::PatchParams::default();
    world
        .create(json!({"release": "2026.1", "paused": true, "services": {"octavia": {"enabled": true}}}))
        .await;
    for (spec, parts) in [
        (
            json!({"replicas": 3}),
            ["spec.replicas", "is not built yet"],
        ),
        (
            json!({"database": {"mode": "Builtin"}}),
            ["spec.database", "is not built yet"],
        ),
        (
            json!({"services": {"memcached": {}}}),
            ["spec.services.memcached", "is not built yet"],
        ),
        (
            json!({"services": {"nova": {"replicas": 2}}}),
            ["spec.services.nova.replicas", "is not built yet"],
        ),
        (
            json!({"services": {"searchlight": {}}}),
            ["spec.services.searchlight", "retired in 2021"],
        ),
        (
            json!({"services": {"octavia": {"replicas": 2}}}),
            ["spec.services.octavia.replicas", "is not built yet"],
        ),
        (
            json!({"services": {"octavia": {"enabled": false}}}),
            ["spec", OFF],
        ),
        (
            json!({"services": {"octavia": {"enabled": null}}}),
            ["spec", OFF],
        ),
        (json!({"services": {"octavia": null}}), ["spec", OFF]),
        (json!({"services": null}), ["spec", OFF]),
        (
            json!({"release": "zed"}),
            ["spec.release", "a release goes up by one step"],
        ),
        (
            json!({"region": "Other"}),
            ["spec.region", "cannot be changed"],
        ),
        (
            json!({"network": {"mtu": 100}}),
            ["spec.network.mtu", "1280"],
        ),
    ] {
        let patch = kube::api::Patch::Merge(json!({"spec": spec}));
        let error = api
            .patch(CLOUD, &params, &patch)
            .await
            .unwrap_err()
            .to_string();
        assert!(
            parts.iter().all(|part| error.contains(part)),
            "{spec}: {error}"
        );
    }
}
