//! Passwords are in Secrets, and nowhere else.

use std::io;
use std::sync::{Arc, Mutex};

use api::openstack::conditions::Type;
use api::openstack::operation::OpenStackOperation;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::api::ListParams;
use serde_json::json;
use simulator::nodes::{Ending, Gate};

use crate::world::World;

/// Every kind whose objects are searched.
const KINDS: [(&str, &str); 11] = [
    ("", "ConfigMap"),
    ("", "Event"),
    ("", "Pod"),
    ("", "Service"),
    ("", "PersistentVolumeClaim"),
    ("apps", "Deployment"),
    ("apps", "ReplicaSet"),
    ("apps", "StatefulSet"),
    ("apps", "ControllerRevision"),
    ("batch", "Job"),
    ("events.k8s.io", "Event"),
];

#[derive(Clone, Default)]
struct Captured(Arc<Mutex<Vec<u8>>>);

impl io::Write for Captured {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Passwords and keys of a cloud: an account at a database and one at the queue for each service, whether the cloud has it or not.
const PASSWORDS: usize = 33;

/// Every password and key of the cloud, in the clear.
async fn passwords(world: &World) -> Vec<String> {
    let mut found = Vec::new();
    for secret in world.list("", "Secret").await {
        let held = [
            "openstack-accounts",
            "keystone-fernet-keys",
            "keystone-credential-keys",
        ];
        let name = secret["metadata"]["name"].as_str().unwrap();
        if held.contains(&name) {
            for value in secret["data"].as_object().unwrap().values() {
                let bytes = STANDARD.decode(value.as_str().unwrap()).unwrap();
                found.push(String::from_utf8(bytes).unwrap());
            }
        }
    }
    found
}

#[tokio::test(start_paused = true)]
async fn a_password_is_in_no_object_but_secrets_and_in_no_log() {
    let captured = Captured::default();
    let (writer, filter) = (
        captured.clone(),
        "rollout=trace,operator=trace,deployer=trace",
    );
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(move || writer.clone())
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let world = World::open().await;
    world.faults.node_is_gone("node-0", true);
    // A broker that repeats the given password.
    let repeating: Gate = Arc::new(|request, answering| {
        if request.method() == http::Method::GET || !request.uri().path().contains("/users/") {
            return answering;
        }
        let given = String::from_utf8_lossy(request.body()).into_owned();
        let answer = json!({"error": "bad_request", "reason": given}).to_string();
        let answer = http::Response::builder().status(400).body(answer.into());
        Box::pin(async move { answer.ok() })
    });
    world.programs.guard(Some(repeating));
    let _controller = world.running();
    world.create(json!({"release": "2026.1"})).await;
    let passwords = testbed::eventually("passwords", || async {
        let found = passwords(&world).await;
        (found.len() == PASSWORDS)
            .then_some(())
            .ok_or(found.len().to_string())?;
        Ok(found)
    })
    .await;
    assert!(
        passwords.iter().all(|it| it.len() >= 32),
        "they are too short"
    );
    // A program that prints the given password.
    let log = format!("cannot connect with password {}", passwords.join(" or "));
    let ending = Ending { status: 1, log };
    world.faults.container_ends("keystone-schema", Some(ending));
    world.faults.node_is_gone("node-0", false);
    let message = world.condition(Type::TasksSucceeded, "False").await;
    assert!(
        message.contains("cannot connect with password ********"),
        "it is not masked"
    );
    world.faults.container_ends("keystone-schema", None);
    let message = world.condition(Type::AccountsWritten, "False").await;
    assert!(
        message.contains(r#""password":"********""#),
        "it is not masked"
    );
    assert_hidden(&world, &captured, &passwords, "cannot connect").await;
}

/// Asserts that no object but Secrets and no log has one of these passwords. Programs have printed them after `quoted`.
async fn assert_hidden(world: &World, captured: &Captured, passwords: &[String], quoted: &str) {
    let mut texts = vec![serde_json::to_string(&world.cloud().await).unwrap()];
    texts.push(String::from_utf8_lossy(&captured.0.lock().unwrap()).into_owned());
    let operations = world.management.api::<OpenStackOperation>();
    for operation in operations.list(&ListParams::default()).await.unwrap() {
        texts.push(serde_json::to_string(&operation).unwrap());
    }
    for (group, kind) in KINDS {
        for mut object in world.list(group, kind).await {
            // The status of the Pod quotes the program's output.
            if kind == "Pod" && object.to_string().contains(quoted) {
                object.as_object_mut().unwrap().remove("status");
            }
            texts.push(object.to_string());
        }
    }
    for password in passwords {
        let encoded = STANDARD.encode(password);
        for text in &texts {
            let found = text.find(password.as_str()).or_else(|| text.find(&encoded));
            let near = found.map(|at| &text[at.saturating_sub(100)..at]);
            assert_eq!(near, None, "a password follows this text");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_rotation_tells_neither_former_nor_new_passwords() {
    let captured = Captured::default();
    let writer = captured.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter("rollout=trace,operator=trace,deployer=trace")
        .with_writer(move || writer.clone())
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let world = World::open().await;
    let _controller = world.controller();
    world.create(json!({"release": "2026.1"})).await;
    world.ready().await;
    let former = passwords(&world).await;
    let log = format!("cannot log in with {}", former.join(" or "));
    let ending = Ending { status: 1, log };
    world
        .faults
        .container_ends("databases", Some(ending.clone()));
    world.faults.container_ends("rotation-check", Some(ending));
    let only = ["database", "messaging", "identity"];
    let rotate = json!({"rotate": {"only": only}});
    world.ask("first", rotate).await;
    let quoted = "cannot log in with ********";
    world.operated("first", "Running", quoted).await;
    let mut all = former;
    all.extend(passwords(&world).await);
    world.tried_again("first", "databases").await;
    let quoted = format!("ended with exit status 1: {quoted}");
    world
        .operated("first", "Running", "rotation-check: Job")
        .await;
    testbed::eventually("the end of the log, masked", || async {
        let why = world.condition(Type::Ready, "False").await;
        let is_so = why.contains("rotation-check: Job") && why.contains(&quoted);
        is_so.then_some(()).ok_or("it is not there".to_owned())
    })
    .await;
    all.extend(passwords(&world).await);
    all.retain(|it| it.len() >= 32);
    assert_hidden(&world, &captured, &all, "cannot log in").await;
}
