//! Objects of services in Keystone are created, kept and removed; objects of others are left alone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::openstack::conditions::Type;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};
use simulator::nodes::Gate;
use testbed::{Fuse, eventually};

use crate::world::{MINUTE, World, looked};

const RELEASE: &str = "2026.1";

fn items(world: &World, kind: &str) -> Vec<Value> {
    let mut answer = world.identity(&format!("/v3/{kind}"));
    serde_json::from_value(answer[kind].take()).unwrap_or_default()
}

fn text(object: &Value, field: &str) -> String {
    object[field].as_str().unwrap_or_default().to_owned()
}

/// Object of this kind with this name or type.
fn one(world: &World, kind: &str, name: &str) -> Value {
    let mut all = items(world, kind).into_iter();
    let field = if kind == "services" { "type" } else { "name" };
    all.find(|it| it[field] == name).unwrap_or_default()
}

fn is_ours(object: &Value) -> bool {
    text(object, "description").starts_with("ferrostack-cloud-")
}

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
        .remove(&format!("identity-{user}"));
    let password = String::from_utf8(password.unwrap().0).unwrap();
    let user = json!({"name": user, "domain": {"id": "default"}, "password": password});
    let body = json!({"auth": {"identity": {"methods": ["password"], "password": {"user": user}},
        "scope": {"project": {"name": "service", "domain": {"id": "default"}}}}});
    let answer = world.programs.identity("POST", "/v3/auth/tokens", &body);
    answer.is_some_and(|(status, _)| status == 201)
}

/// Waits until Keystone has the objects of the services, and nothing else of this cloud.
async fn complete(world: &World) {
    let users = ["glance", "neutron", "nova", "placement"];
    let kinds = ["compute", "image", "network", "placement"];
    eventually("the accounts", || async {
        let ours = |kind: &str| items(world, kind).into_iter().filter(is_ours);
        let found: BTreeSet<String> = ours("users").map(|it| text(&it, "name")).collect();
        let mut right = found == users.map(str::to_owned).into();
        for user in users {
            right &= logs_in(world, user).await;
        }
        let services: BTreeMap<String, String> = ours("services")
            .map(|it| (text(&it, "id"), text(&it, "type")))
            .collect();
        let types: BTreeSet<&str> = services.values().map(String::as_str).collect();
        right &= types == kinds.into() && services.len() == kinds.len();
        let endpoints = ours("endpoints")
            .filter(|it| it["enabled"] == true)
            .map(|it| {
                let kind = services.get(&text(&it, "service_id")).cloned();
                (
                    kind.unwrap_or_default(),
                    text(&it, "interface"),
                    text(&it, "url"),
                )
            });
        let endpoints: BTreeSet<(String, String, String)> = endpoints.collect();
        right &= endpoints.len() == 12;
        right &= endpoints
            .iter()
            .filter(|it| it.0 == "image")
            .all(|it| it.2 == "http://glance:9292");
        let assignments = items(world, "role_assignments");
        // With that of the administrator.
        right &= assignments.len() == 9;
        let seen = || format!("{found:?} {services:?} {endpoints:?} {assignments:?}");
        right.then_some(()).ok_or_else(seen)
    })
    .await;
}

fn silent() -> Option<Gate> {
    Some(Arc::new(|_, _| Box::pin(async { None })))
}

#[tokio::test(start_paused = true)]
async fn services_get_users_roles_and_a_catalogue_in_keystone() {
    for release in ["zed", RELEASE] {
        let world = World::open().await;
        let _controller = world.controller();
        world.create(json!({"release": release})).await;
        world.ready().await;
        complete(&world).await;
        world.condition(Type::AccountsWritten, "True").await;
        // Bootstrap makes the role in one of the releases only.
        assert_eq!(is_ours(&one(&world, "roles", "service")), release == "zed");
    }
}

#[tokio::test(start_paused = true)]
async fn each_drift_in_keystone_is_repaired_with_the_next_look() {
    let world = World::open().await;
    let running = world.controller();
    world.create(json!({"release": RELEASE})).await;
    world.ready().await;
    running.kill().await;
    let mark = one(&world, "users", "nova")["description"].clone();
    let id = |kind: &str, name: &str| text(&one(&world, kind, name), "id");
    let of_nova = || format!("/v3/users/{}", id("users", "nova"));
    let compute = || format!("/v3/services/{}", id("services", "compute"));
    let role = |name: &str| {
        let [project, user] = [id("projects", "service"), id("users", "nova")];
        format!(
            "/v3/projects/{project}/users/{user}/roles/{}",
            id("roles", name)
        )
    };
    let endpoint = || {
        let service = id("services", "image");
        let mut all = items(&world, "endpoints").into_iter();
        let found = all.find(|it| it["service_id"] == service.as_str());
        format!("/v3/endpoints/{}", text(&found.unwrap(), "id"))
    };
    type Drift<'a> = (&'a str, Box<dyn Fn() -> String + 'a>, Value);
    let drifts: Vec<Drift<'_>> = vec![
        (
            "PATCH",
            Box::new(of_nova),
            json!({"user": {"password": "other"}}),
        ),
        (
            "PATCH",
            Box::new(of_nova),
            json!({"user": {"enabled": false}}),
        ),
        (
            "PATCH",
            Box::new(of_nova),
            json!({"user": {"enabled": false, "password": "other"}}),
        ),
        ("DELETE", Box::new(of_nova), Value::Null),
        ("DELETE", Box::new(|| role("admin")), Value::Null),
        ("DELETE", Box::new(|| role("service")), Value::Null),
        ("PUT", Box::new(|| role("member")), Value::Null),
        (
            "PATCH",
            Box::new(endpoint),
            json!({"endpoint": {"url": "http://other"}}),
        ),
        (
            "PATCH",
            Box::new(endpoint),
            json!({"endpoint": {"enabled": false}}),
        ),
        ("DELETE", Box::new(endpoint), Value::Null),
        ("DELETE", Box::new(compute), Value::Null),
        (
            "POST",
            Box::new(|| "/v3/users".to_owned()),
            json!({"user": {"name": "old", "domain_id": "default", "description": mark}}),
        ),
        (
            "POST",
            Box::new(|| "/v3/services".to_owned()),
            json!({"service": {"name": "old", "type": "old", "description": mark}}),
        ),
    ];
    for (method, path, body) in drifts {
        world.change_identity(method, &path(), &body);
        let running = world.controller();
        complete(&world).await;
        world.ready().await;
        running.kill().await;
    }
    // Objects in the desired state are not written.
    let fuse = Fuse::recorder();
    let running = world.controller_with(&fuse);
    world.ready().await;
    tokio::time::sleep(MINUTE).await;
    running.kill().await;
    assert_eq!(fuse.writes(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_changed_password_of_a_service_is_passed_on_to_keystone() {
    let world = World::open().await;
    let _controller = world.controller();
    world.create(json!({"release": RELEASE})).await;
    world.ready().await;
    let secrets: Api<Secret> = world.management.api();
    let patch = Patch::Merge(json!({"stringData": {"identity-nova": "another-password"}}));
    let params = PatchParams::default();
    secrets
        .patch("openstack-accounts", &params, &patch)
        .await
        .unwrap();
    complete(&world).await;
    world.ready().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_of_others_in_keystone_is_a_conflict_and_is_neither_changed_nor_adopted() {
    let user = json!({"user": {"name": "nova", "domain_id": "default", "password": "x"}});
    let service =
        json!({"service": {"type": "image", "name": "glance", "description": "of another"}});
    let project = json!({"project": {"name": "service", "domain_id": "default"}});
    for (kind, words, body) in [
        ("users", "user nova", user),
        ("services", "service image (glance)", service),
        ("projects", "project service", project),
    ] {
        let world = World::open().await;
        world.programs.guard(silent());
        let _controller = world.running();
        world.create(json!({"release": RELEASE})).await;
        eventually("Keystone", || async {
            let there = !items(&world, "roles").is_empty();
            there.then_some(()).ok_or("it is not there".to_owned())
        })
        .await;
        world.change_identity("POST", &format!("/v3/{kind}"), &body);
        let before = items(&world, kind);
        world.programs.guard(None);
        eventually("the conflict", || async {
            let message = world.condition(Type::AccountsWritten, "False").await;
            let named = message.contains(words) && message.contains("is not of this cloud");
            named.then_some(()).ok_or(message)
        })
        .await;
        assert_eq!(items(&world, kind), before);
        assert!(!items(&world, "endpoints").iter().any(is_ours));
        // Writes continue after the removal of the foreign object.
        let foreign = before.iter().find(|it| {
            ["nova", "glance", "service"]
                .iter()
                .any(|name| it["name"] == *name)
        });
        let id = text(foreign.unwrap(), "id");
        world.change_identity("DELETE", &format!("/v3/{kind}/{id}"), &Value::Null);
        world.ready().await;
        complete(&world).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_password_that_keystone_does_not_accept_is_named_with_what_to_do() {
    let world = World::open().await;
    let running = world.controller();
    world.create(json!({"release": RELEASE})).await;
    world.ready().await;
    running.kill().await;
    let admin = format!("/v3/users/{}", text(&one(&world, "users", "admin"), "id"));
    world.change_identity("PATCH", &admin, &json!({"user": {"password": "other"}}));
    let _controller = world.controller();
    let message = world.condition(Type::AccountsWritten, "False").await;
    for part in [
        "401",
        "identity-admin",
        "openstack-accounts",
        "keystone-bootstrap",
    ] {
        assert!(message.contains(part), "{part}: {message}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_keystone_that_repeats_a_password_is_quoted_without_it() {
    let world = World::open().await;
    let repeating: Gate = Arc::new(|request, answering| {
        if (request.method().as_str(), request.uri().path()) != ("POST", "/v3/users") {
            return answering;
        }
        let given = String::from_utf8_lossy(request.body()).into_owned();
        let answer = json!({"error": {"code": 400, "message": given}}).to_string();
        let answer = http::Response::builder().status(400).body(answer.into());
        Box::pin(async move { answer.ok() })
    });
    world.programs.guard(Some(repeating));
    let _controller = world.running();
    world.create(json!({"release": RELEASE})).await;
    eventually("the answer", || async {
        let message = world.condition(Type::AccountsWritten, "False").await;
        let masked =
            message.contains("creating user") && message.contains(r#""password":"********""#);
        masked.then_some(()).ok_or(message)
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn what_was_lost_while_no_controller_ran_is_back_when_one_says_that_it_has_looked() {
    let world = World::open().await;
    let running = world.controller();
    world.create(json!({"release": RELEASE})).await;
    world.ready().await;
    running.kill().await;
    let endpoints = || items(&world, "endpoints").len();
    let before = endpoints();
    for endpoint in items(&world, "endpoints").iter().filter(|it| is_ours(it)) {
        let path = format!("/v3/endpoints/{}", text(endpoint, "id"));
        world.change_identity("DELETE", &path, &Value::Null);
    }
    assert!(endpoints() < before);
    // The status is that of before.
    world.ready().await;

    let _controller = looked(world.management.client.clone()).await;
    assert_eq!(endpoints(), before);
}
