//! Rotations of passwords, on simulated nodes.

use std::collections::{BTreeMap, BTreeSet};

use api::openstack::conditions::Type;
use api::openstack::operation::OpenStackOperation;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::api::{DeleteParams, PostParams};
use serde_json::{Value, json};
use testbed::killed_at_every;

use crate::operation::{ending, names, operation};
use crate::real::account;
use crate::world::{CLOUD, MINUTE, World, full};

/// Programs that restart with other passwords.
const PROGRAMS: [&str; 4] = ["keystone-api", "glance-api", "nova-api", "nova-conductor"];
/// Programs that go on.
const STORES: [&str; 6] = [
    "mariadb",
    "rabbitmq",
    "memcached",
    "ovn-nb",
    "edge",
    "horizon",
];

impl World {
    async fn rotate(&self, name: &str, only: &[&str]) {
        self.ask(name, json!({"rotate": {"only": only}})).await;
    }

    /// Content of the Secret of the accounts.
    pub(crate) async fn accounts(&self) -> BTreeMap<String, String> {
        let secret: Secret = self
            .management
            .api()
            .get("openstack-accounts")
            .await
            .unwrap();
        let data = secret.data.unwrap().into_iter();
        data.map(|(key, value)| (key, String::from_utf8(value.0).unwrap()))
            .collect()
    }

    /// Waits until the Job of a program has failed for good, mends the program, and deletes the Job that the message names.
    pub(crate) async fn tried_again(&self, name: &str, container: &str) {
        let status = self.operated(name, "Running", "runs it again").await;
        let message = status["message"].as_str().unwrap();
        let (_, rest) = message.split_once("delete job ").unwrap();
        let (job, _) = rest.split_once('`').unwrap();
        self.faults.container_ends(container, None);
        let jobs = self.management.api::<k8s_openapi::api::batch::v1::Job>();
        jobs.delete(job, &DeleteParams::background()).await.unwrap();
    }

    /// Keys of Keystone in a Secret, by their numbers.
    async fn keys(&self, secret: &str) -> BTreeMap<String, String> {
        let secret: Secret = self.management.api().get(secret).await.unwrap();
        let data = secret.data.unwrap().into_iter();
        let keys = data.filter(|(name, _)| name.parse::<u8>().is_ok());
        keys.map(|(name, key)| (name, String::from_utf8(key.0).unwrap()))
            .collect()
    }

    /// Users of the services in RabbitMQ.
    fn broker_users(&self) -> BTreeSet<String> {
        let users = self.broker("/api/users");
        let users = users.as_array().unwrap().iter();
        users
            .map(|it| it["name"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Users of the services in Keystone.
    fn identity_users(&self) -> BTreeSet<String> {
        let users = self.identity("/v3/users");
        let users = users["users"].as_array().unwrap().iter();
        users
            .map(|it| it["name"].as_str().unwrap().to_owned())
            .collect()
    }

    /// True if Keystone accepts a login.
    fn logs_in(&self, user: &str, password: &str) -> bool {
        let user = json!({"name": user, "domain": {"id": "default"}, "password": password});
        let body =
            json!({"auth": {"identity": {"methods": ["password"], "password": {"user": user}}}});
        let answer = self.programs.identity("POST", "/v3/auth/tokens", &body);
        answer.is_some_and(|(status, _)| status == 201)
    }

    /// The SQL of the task of the databases.
    pub(crate) async fn sql(&self) -> String {
        let mut newest = (String::new(), String::new());
        for secret in self.list("", "Secret").await {
            let file = &secret["metadata"]["labels"]["ferrostack.dev/configures"];
            if file == "databases" {
                let time = secret["metadata"]["resourceVersion"].as_str().unwrap();
                let time = format!("{time:0>20}");
                let text = secret["data"]["databases.sql"].as_str().unwrap();
                let text = String::from_utf8(STANDARD.decode(text).unwrap()).unwrap();
                newest = newest.max((time, text));
            }
        }
        newest.1
    }

    /// Asserts that every account has been replaced by its half with this suffix, and that nothing of a rotation is left.
    async fn assert_rotated(&self, before: &BTreeMap<String, String>, suffix: &str) {
        let after = self.accounts().await;
        let left = after
            .keys()
            .find(|it| it.contains('.') && !it.starts_with("half."));
        assert_eq!(left, None);
        for account in api::openstack::operation::ROTATED {
            if before.contains_key(account) {
                assert_ne!(before[account], after[account], "{account}");
            }
        }
        let named = |names: &[&str]| -> BTreeSet<String> {
            names.iter().map(|it| format!("{it}{suffix}")).collect()
        };
        let mut expected = named(&["cinder", "neutron", "nova"]);
        expected.insert("ferrostack".to_owned());
        assert_eq!(self.broker_users(), expected);
        let mut expected = named(&USERS);
        expected.insert("admin".to_owned());
        assert_eq!(self.identity_users(), expected);
        for service in USERS {
            let key = format!("identity-{service}");
            assert!(self.logs_in(&format!("{service}{suffix}"), &after[&key]));
        }
        assert!(self.logs_in("admin", &after["identity-admin"]));
        assert!(!self.logs_in("admin", &before["identity-admin"]));
        self.assert_forgotten().await;
    }
}

#[tokio::test(start_paused = true)]
async fn every_account_goes_over_to_its_other_half_and_back() {
    let world = World::open().await;
    let _controller = world.controller();
    world.create(with_everything()).await;
    world.ready().await;
    for (name, suffix) in [("first", "-b"), ("second", "")] {
        let (before, serving) = (world.accounts().await, world.serving().await);
        world.rotate(name, &[]).await;
        let status = world.operated(name, "Succeeded", "").await;
        assert_eq!(names(&status), ["Make", "Use", "Drop", "Verify"]);
        assert!(status["backup"].is_null(), "{status}");
        world.assert_rotated(&before, suffix).await;
        let after = world.serving().await;
        for program in PROGRAMS {
            assert_ne!(
                serving[program], after[program],
                "{program} has not restarted"
            );
        }
        for store in STORES {
            assert_eq!(serving[store], after[store], "{store} was restarted");
        }
        let secret: Secret = world.management.api().get("cloud-admin").await.unwrap();
        let clouds = String::from_utf8(secret.data.unwrap()["clouds.yaml"].0.clone()).unwrap();
        assert!(clouds.contains(&account(&world, "identity-admin").await));
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_not_chosen_stays_as_it_is() {
    let world = World::open().await;
    let _controller = world.controller();
    world.create(full()).await;
    world.ready().await;
    let (before, serving) = (world.accounts().await, world.serving().await);
    world
        .rotate("some", &["messaging", "database-glance"])
        .await;
    world.operated("some", "Succeeded", "").await;
    let after = world.accounts().await;
    let changed: Vec<&str> = before
        .iter()
        .filter(|(key, value)| after[*key] != **value)
        .map(|(key, _)| key.as_str())
        .collect();
    assert_eq!(
        changed,
        ["database-glance", "messaging-neutron", "messaging-nova"]
    );
    let sql = world.sql().await;
    assert!(
        sql.contains("'glance-b'@'%'") && !sql.contains("'nova-b'"),
        "it has other users"
    );
    let now = world.serving().await;
    assert_eq!(serving["keystone-api"], now["keystone-api"]);
    assert_ne!(serving["glance-api"], now["glance-api"]);
    world.assert_forgotten().await;
}

#[tokio::test(start_paused = true)]
async fn a_former_password_that_is_still_accepted_keeps_the_rotation_open() {
    let world = World::open().await;
    let _controller = world.controller();
    world.create(full()).await;
    world.ready().await;
    let words = "MariaDB: nova can still log in with the former password";
    world
        .faults
        .container_ends("rotation-check", ending(1, words));
    world.rotate("open", &[]).await;
    let status = world.operated("open", "Running", words).await;
    assert_eq!(status["steps"][3]["name"], "Verify", "{status}");
    world.condition(Type::TasksSucceeded, "True").await;
    let why = world.condition(Type::Ready, "False").await;
    assert!(
        why.contains("Rotation open: Verify") && why.contains(words),
        "{why}"
    );
    world.tried_again("open", "rotation-check").await;
    world.operated("open", "Succeeded", "").await;
    world.assert_forgotten().await;
}

#[tokio::test(start_paused = true)]
async fn a_pod_with_former_passwords_is_named_and_waited_for() {
    let world = World::open().await;
    let _controller = world.controller();
    world.create(full()).await;
    world.ready().await;
    // One that hangs, on a node that is lost.
    let mut pods = world.list("", "Pod").await.into_iter();
    let program = |it: &Value| it["metadata"]["labels"]["app.kubernetes.io/name"].clone();
    let pod = pods.find(|it| program(it) == "nova-conductor").unwrap();
    let mut hanging = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "hanging", "labels": pod["metadata"]["labels"]}, "spec": pod["spec"]});
    hanging["spec"]["nodeName"] = "lost".into();
    hanging["metadata"]["labels"]["pod-template-hash"] = "none".into();
    let hanging: Pod = serde_json::from_value(hanging).unwrap();
    let api = world.management.api::<Pod>();
    api.create(&PostParams::default(), &hanging).await.unwrap();
    world.rotate("held", &["messaging"]).await;
    let words = "Pod hanging on lost has former passwords";
    let status = world.operated("held", "Running", words).await;
    assert_eq!(status["steps"][1]["name"], "Use", "{status}");
    let why = world.condition(Type::Ready, "False").await;
    assert!(why.contains(words), "{why}");
    tokio::time::sleep(MINUTE).await;
    let both = ["ferrostack", "neutron", "neutron-b", "nova", "nova-b"].map(str::to_owned);
    assert_eq!(world.broker_users(), both.into());
    let now = DeleteParams::default().grace_period(0);
    api.delete("hanging", &now).await.unwrap();
    world.operated("held", "Succeeded", "").await;
    world.assert_forgotten().await;
}

#[tokio::test(start_paused = true)]
async fn nothing_else_begins_before_the_end_of_a_rotation() {
    let world = World::open().await;
    let _controller = world.controller();
    let mut spec = full();
    spec["release"] = "2025.1".into();
    world.create(spec).await;
    world.ready().await;
    world
        .faults
        .container_ends("rotation-check", ending(1, "RabbitMQ: it is not known"));
    world.rotate("first", &["messaging"]).await;
    world.operated("first", "Running", "it is not known").await;
    world.rotate("second", &["database"]).await;
    world
        .operated("second", "Pending", "operation first comes before it")
        .await;
    world.changed(json!({"spec": {"release": "2026.1"}})).await;
    tokio::time::sleep(MINUTE).await;
    world.operated("first", "Running", "it is not known").await;
    let release = world.cloud().await.status.unwrap().release.unwrap();
    assert_eq!((release.current.as_str(), release.phase), ("2025.1", None));
    let key = "next.database-nova";
    assert!(!world.accounts().await.contains_key(key));
}

#[tokio::test(start_paused = true)]
async fn a_rotation_that_was_deleted_leaves_both_halves_and_the_next_one_ends_it() {
    let world = World::open().await;
    let _controller = world.controller();
    world.create(with_everything()).await;
    world.ready().await;
    let before = world.accounts().await;
    world
        .faults
        .container_ends("rotation-check", ending(1, "it is not known"));
    world.rotate("first", &[]).await;
    world.operated("first", "Running", "it is not known").await;
    world.management.delete::<OpenStackOperation>("first").await;
    world.ready().await;
    let left = world.accounts().await;
    assert!(left.contains_key("dropped.database-nova"));
    world.faults.container_ends("rotation-check", None);
    world.rotate("second", &[]).await;
    world.operated("second", "Succeeded", "").await;
    // The half of before again, with another password.
    world.assert_rotated(&before, "").await;
}

#[tokio::test(start_paused = true)]
async fn an_administrator_that_somebody_has_changed_is_a_condition_and_no_loop() {
    let world = World::open().await;
    let _controller = world.controller();
    world.create(full()).await;
    world.ready().await;
    let users = world.identity("/v3/users");
    let mut users = users["users"].as_array().unwrap().iter();
    let admin = users.find(|it| it["name"] == "admin").unwrap();
    let path = format!("/v3/users/{}", admin["id"].as_str().unwrap());
    let set = |password: &str| {
        let body = json!({"user": {"password": password}});
        world.change_identity("PATCH", &path, &body);
    };
    let before = world.accounts().await;
    set("of-a-person");
    world.rotate("first", &["identity"]).await;
    let words = "logging in as admin: answered with 401";
    world.operated("first", "Running", words).await;
    let why = world.condition(Type::AccountsWritten, "False").await;
    assert!(
        why.contains(words) && why.contains("identity-admin"),
        "{why}"
    );
    assert!(world.logs_in("admin", "of-a-person"));
    set(&before["identity-admin"]);
    world.operated("first", "Succeeded", "").await;
    let after = world.accounts().await;
    assert!(world.logs_in("admin", &after["identity-admin"]));
    assert!(!world.logs_in("admin", &before["identity-admin"]));
    world.assert_forgotten().await;
}

#[tokio::test(start_paused = true)]
async fn names_of_accounts_that_there_are_not_are_refused() {
    let world = World::open().await;
    let api = world.management.api::<OpenStackOperation>();
    for only in [json!(["database-swift"]), json!(["nova", "nova"])] {
        let what = json!({"rotate": {"only": only}});
        let object: OpenStackOperation = serde_json::from_value(operation("b", what)).unwrap();
        let refused = api.create(&PostParams::default(), &object).await;
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains("spec.rotate.only"), "{refused}");
    }
    let expected: Vec<&str> = deployer::operation::Stages::rotated().collect();
    assert_eq!(expected, api::openstack::operation::ROTATED);
}

#[tokio::test(start_paused = true)]
async fn killed_at_every_write_passwords_are_rotated() {
    let world = World::open().await;
    world.create(with_everything()).await;
    let controller = world.controller();
    world.ready().await;
    controller.kill().await;
    let (before, serving) = (world.accounts().await, world.serving().await);
    let (tokens, credentials) = (world.keys(TOKENS).await, world.keys(CREDENTIALS).await);
    world.rotate("first", &[]).await;
    let done = || async {
        world.operated("first", "Succeeded", "").await;
        world.assert_forgotten().await;
    };
    let kills = killed_at_every(1, |fuse| world.controller_with(fuse), done).await;
    assert!(kills > 60, "{kills}");
    world.assert_rotated(&before, "-b").await;
    let after = world.serving().await;
    for store in STORES {
        assert_eq!(serving[store], after[store], "{store} was restarted");
    }
    let (now, anew) = (world.keys(TOKENS).await, world.keys(CREDENTIALS).await);
    assert_eq!((now.len(), &now["1"]), (3, &tokens["1"]));
    assert!(
        anew.len() == 2
            && anew
                .values()
                .all(|it| !credentials.values().any(|was| was == it))
    );
    let status = world.operation("first").await;
    assert_eq!(names(&status), ["Make", "Use", "Drop", "Verify"]);
    assert_eq!(world.cloud().await.metadata.name.as_deref(), Some(CLOUD));
}

/// Services that log in to Keystone, in a cloud with everything.
const USERS: [&str; 6] = [
    "cinder",
    "glance",
    "neutron",
    "nova",
    "octavia",
    "placement",
];

/// Parameters of a cloud that has every service.
fn with_everything() -> Value {
    let mut spec = full();
    spec["storage"] = json!({"volumes": {"driver": "Fake"}});
    spec["services"] = json!({"octavia": {"enabled": true}});
    spec
}

const TOKENS: &str = "keystone-fernet-keys";
const CREDENTIALS: &str = "keystone-credential-keys";

#[tokio::test(start_paused = true)]
async fn keys_are_staged_on_every_pod_of_keystone_before_one_is_primary() {
    let world = World::open().await;
    let _controller = world.controller();
    world.create(full()).await;
    world.ready().await;
    let (tokens, credentials) = (world.keys(TOKENS).await, world.keys(CREDENTIALS).await);
    let serving = world.serving().await;
    // A new Pod of Keystone that does not start holds it.
    let pods = world.list("", "Pod").await;
    let image = pods
        .iter()
        .find_map(|it| {
            let program = &it["metadata"]["labels"]["app.kubernetes.io/name"];
            let image = it["spec"]["containers"][0]["image"].as_str();
            image.filter(|_| program == "keystone-api")
        })
        .unwrap();
    world.faults.image_is_missing(image, true);
    world.rotate("first", &["fernet", "credential"]).await;
    let words = "keystone-api: Deployment keystone-api";
    world.operated("first", "Running", words).await;
    tokio::time::sleep(MINUTE).await;
    let status = world.operation("first").await;
    assert_eq!(status["steps"].as_array().unwrap().len(), 1, "{status}");
    let staged = world.keys(TOKENS).await;
    assert_ne!(staged["0"], tokens["0"]);
    assert_eq!((staged.len(), &staged["1"]), (2, &tokens["1"]));
    world
        .faults
        .container_ends("rotation-credentials", ending(1, "held"));
    world.faults.image_is_missing(image, false);
    world.operated("first", "Running", "held").await;
    let primary = world.keys(TOKENS).await;
    assert_eq!((&primary["1"], &primary["2"]), (&tokens["1"], &staged["0"]));
    // As long as credentials may need it, the former key is there.
    let both = world.keys(CREDENTIALS).await;
    assert!(both.len() == 3 && both.values().any(|it| *it == credentials["1"]));
    world.tried_again("first", "rotation-credentials").await;
    world.operated("first", "Succeeded", "").await;
    let after = world.keys(CREDENTIALS).await;
    assert!(after.len() == 2 && after.values().all(|it| *it != credentials["1"]));
    assert_eq!(after["1"], both["2"]);
    let now = world.serving().await;
    for (program, pods) in &serving {
        let is_same = now[program] == *pods;
        assert_eq!(is_same, program != "keystone-api", "{program}");
    }
    world.ready().await;
}
