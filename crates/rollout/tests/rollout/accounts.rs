//! Accounts of services in RabbitMQ are created, kept and removed; resources of others are left alone.

use api::openstack::conditions::Type;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};
use sha2::Digest as _;
use testbed::{Fuse, eventually};

use crate::world::{MINUTE, World};

const RELEASE: &str = "2026.1";

/// Names and tags of the resources with the tag of one cloud alone.
fn ours(world: &World, path: &str) -> Vec<String> {
    let list = world.broker(path);
    let tagged = list.as_array().into_iter().flatten().filter(|it| {
        let tags = it["tags"].to_string();
        tags.contains("ferrostack-cloud-")
    });
    tagged
        .map(|it| it["name"].as_str().unwrap().to_owned())
        .collect()
}

fn rights(world: &World) -> Vec<String> {
    let list = world.broker("/api/permissions");
    let all = list.as_array().into_iter().flatten();
    let all = all.filter(|it| it["user"] != "ferrostack");
    all.map(|it| {
        let parts = ["user", "vhost", "configure", "write", "read"].map(|part| it[part].as_str());
        parts.map(Option::unwrap).join(" ")
    })
    .collect()
}

/// True if a user logs in with the password of the services.
async fn logs_in(world: &World, user: &str) -> bool {
    let secret = world
        .management
        .api::<Secret>()
        .get("openstack-accounts")
        .await;
    let password = secret
        .unwrap()
        .data
        .unwrap()
        .remove(&format!("messaging-{user}"));
    let user = world.broker(&format!("/api/users/{user}"));
    let hash = user["password_hash"].as_str().unwrap_or_default();
    let hash = STANDARD.decode(hash).unwrap();
    let Some((salt, hash)) = hash.split_at_checked(4) else {
        return false;
    };
    let salted = sha2::Sha256::new().chain_update(salt);
    salted
        .chain_update(&password.unwrap().0)
        .finalize()
        .as_slice()
        == hash
}

/// Waits until RabbitMQ has the accounts of the services, and nothing else of this cloud.
async fn complete(world: &World) {
    eventually("the accounts", || async {
        let found = (
            ours(world, "/api/vhosts"),
            ours(world, "/api/users"),
            rights(world),
        );
        let names = ["neutron", "nova"];
        let all = names.map(|it| format!("{it} {it} .* .* .*"));
        let log_in = logs_in(world, "nova").await && logs_in(world, "neutron").await;
        (log_in && found.0 == names && found.1 == names && found.2 == all)
            .then_some(())
            .ok_or(format!("{found:?}"))
    })
    .await;
}

/// Restarts the controller, which forgets its knowledge, as after its interval.
async fn again(world: &World) -> testbed::Running {
    let running = world.controller();
    complete(world).await;
    world.ready().await;
    running
}

#[tokio::test(start_paused = true)]
async fn services_get_hosts_users_and_rights_in_rabbitmq() {
    for release in ["zed", RELEASE] {
        let world = World::open().await;
        let _controller = world.controller();
        world.create(json!({"release": release})).await;
        world.ready().await;
        complete(&world).await;
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_that_needs_them_starts_before_they_are_there() {
    let world = World::open().await;
    world
        .programs
        .guard(Some(std::sync::Arc::new(|_, _| Box::pin(async { None }))));
    let _controller = world.running();
    world.create(json!({"release": RELEASE})).await;
    let message = world.condition(Type::AccountsWritten, "False").await;
    assert!(
        message.contains("port 15672 of Pod default/rabbitmq-0"),
        "{message}"
    );
    tokio::time::sleep(MINUTE).await;
    let there = world.list("apps", "Deployment").await;
    assert!(
        there
            .iter()
            .all(|it| it["metadata"]["name"] != "nova-conductor"),
        "{there:#?}"
    );
    world.programs.guard(None);
    world.ready().await;
    complete(&world).await;
}

#[tokio::test(start_paused = true)]
async fn each_drift_is_repaired_with_the_next_look() {
    let world = World::open().await;
    let running = world.controller();
    world.create(json!({"release": RELEASE})).await;
    world.ready().await;
    running.kill().await;
    let user = world.broker("/api/users/nova");
    let tags = user["tags"].clone();
    for (method, path, body) in [
        (
            "PUT",
            "/api/users/nova",
            json!({"password": "other", "tags": tags}),
        ),
        ("PUT", "/api/users/nova", json!({"tags": tags})),
        ("DELETE", "/api/users/nova", Value::Null),
        ("DELETE", "/api/permissions/nova/nova", Value::Null),
        (
            "PUT",
            "/api/permissions/nova/nova",
            json!({"configure": "", "write": "", "read": ".*"}),
        ),
        (
            "PUT",
            "/api/permissions/%2F/nova",
            json!({"configure": ".*", "write": ".*", "read": ".*"}),
        ),
        ("DELETE", "/api/vhosts/nova", Value::Null),
        ("PUT", "/api/vhosts/old", json!({"tags": tags})),
        (
            "PUT",
            "/api/users/old",
            json!({"password": "x", "tags": tags}),
        ),
    ] {
        world.change_broker(method, path, &body);
        again(&world).await.kill().await;
    }
    // Accounts in the desired state are not written.
    let fuse = Fuse::recorder();
    let running = world.controller_with(&fuse);
    complete(&world).await;
    world.ready().await;
    tokio::time::sleep(MINUTE).await;
    running.kill().await;
    assert_eq!(fuse.writes(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_changed_password_is_passed_on_and_a_lost_volume_is_filled_again() {
    let world = World::open().await;
    let _controller = world.controller();
    world.create(json!({"release": RELEASE})).await;
    world.ready().await;
    let before = world.broker("/api/users/nova")["password_hash"].clone();
    let secrets: Api<Secret> = world.management.api();
    let patch = Patch::Merge(json!({"stringData": {"messaging-nova": "another-password"}}));
    let params = PatchParams::default();
    secrets
        .patch("openstack-accounts", &params, &patch)
        .await
        .unwrap();
    eventually("the password", || async {
        let now = world.broker("/api/users/nova")["password_hash"].clone();
        (now != before).then_some(()).ok_or(now.to_string())
    })
    .await;
    world.ready().await;

    // Another container starts on an empty volume.
    world.programs.lose_messages();
    let pods: Api<Pod> = world.management.api();
    pods.delete("rabbitmq-0", &DeleteParams::default())
        .await
        .unwrap();
    complete(&world).await;
    world.ready().await;
    world.assert_at_rest().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_of_others_is_a_conflict_and_is_neither_changed_nor_adopted() {
    for (path, body) in [
        (
            "/api/vhosts/nova",
            json!({"tags": "", "description": "of another"}),
        ),
        (
            "/api/users/neutron",
            json!({"password": "x", "tags": "ferrostack-cloud-another"}),
        ),
    ] {
        let world = World::open().await;
        // RabbitMQ is there before the controller gets to it.
        world
            .programs
            .guard(Some(std::sync::Arc::new(|_, _| Box::pin(async { None }))));
        let _controller = world.running();
        world.create(json!({"release": RELEASE})).await;
        world.condition(Type::AccountsWritten, "False").await;
        world.change_broker("PUT", path, &body);
        let before = world.broker(path);
        world.programs.guard(None);
        let kind = if path.contains("vhosts") {
            "virtual host nova"
        } else {
            "user neutron"
        };
        eventually("the conflict", || async {
            let message = world.condition(Type::AccountsWritten, "False").await;
            let named = message.contains(kind) && message.contains("is not of this cloud");
            named.then_some(()).ok_or(message)
        })
        .await;
        let message = world.condition(Type::Ready, "False").await;
        assert!(message.contains(kind), "{message}");
        assert_eq!(world.broker(path), before);
        assert_eq!(rights(&world), Vec::<String>::new());
        // Writes continue after the removal of the foreign object.
        world.change_broker("DELETE", path, &Value::Null);
        world.ready().await;
        complete(&world).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_password_that_rabbitmq_does_not_accept_is_named_with_what_to_do() {
    let world = World::open().await;
    let running = world.controller();
    world.create(json!({"release": RELEASE})).await;
    world.ready().await;
    running.kill().await;
    let admin = json!({"password": "other", "tags": "administrator"});
    world.change_broker("PUT", "/api/users/ferrostack", &admin);
    let _controller = world.controller();
    let message = world.condition(Type::AccountsWritten, "False").await;
    for part in [
        "401",
        "messaging-admin",
        "openstack-accounts",
        "rabbitmqctl change_password",
    ] {
        assert!(message.contains(part), "{part}: {message}");
    }
}
