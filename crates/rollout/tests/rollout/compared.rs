//! A plan is compared with what RabbitMQ and Keystone have, and writes nothing there.

use serde_json::{Value, json};

use crate::world::World;

fn writes(plan: &deployer::Plan) -> Vec<String> {
    let steps = plan.steps.iter().filter(|it| it.unknown.is_none());
    steps.flat_map(|it| it.writes.clone()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_plan_names_what_would_be_written_to_the_stores_of_accounts() {
    let world = World::open().await;
    let controller = world.controller();
    world.create(json!({"release": "2026.1"})).await;
    world.ready().await;
    drop(controller);
    let plan = world.compared().await;
    assert_eq!(writes(&plan), Vec::<String>::new());
    assert!(plan.steps.iter().all(|it| it.unknown.is_none()));
    assert!(plan.is_empty());

    let users = world.identity("/v3/users?name=nova");
    let id = users["users"][0]["id"].as_str().unwrap().to_owned();
    let off = json!({"user": {"enabled": false}});
    world.change_identity("PATCH", &format!("/v3/users/{id}"), &off);
    world.change_broker("DELETE", "/api/users/neutron", &Value::Null);
    let before = (world.identity("/v3/users"), world.broker("/api/users"));
    let plan = world.compared().await;
    let found = writes(&plan);
    assert_eq!(
        found,
        [
            "RabbitMQ: creating user neutron",
            "RabbitMQ: granting user neutron all rights in virtual host neutron",
            "Keystone: changing user nova: enabled",
        ]
    );
    assert!(!plan.is_empty());
    assert_eq!(
        (world.identity("/v3/users"), world.broker("/api/users")),
        before
    );

    // Something of another is what forbids the plan.
    let other = json!({"service": {"type": "image", "name": "other"}});
    world.change_identity("POST", "/v3/services", &other);
    let plan = world.compared().await;
    assert!(
        plan.conflicts[0].contains("service image (other)"),
        "{:?}",
        plan.conflicts
    );

    // A store that does not answer is not known.
    world
        .programs
        .guard(Some(std::sync::Arc::new(|_, _| Box::pin(async { None }))));
    let plan = world.compared().await;
    let unknown = plan.steps.iter().filter(|it| it.unknown.is_some());
    let unknown: Vec<&str> = unknown.map(|it| it.name.as_str()).collect();
    assert_eq!(unknown, ["broker-accounts", "identities"]);
}
