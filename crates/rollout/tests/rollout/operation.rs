//! Backups and restores, on simulated nodes.

use api::openstack::conditions::Type;
use api::openstack::operation::OpenStackOperation;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use simulator::nodes::Ending;
use testbed::{NAMESPACE, eventually, killed_at_every};

use crate::world::{CLOUD, MINUTE, World, full};

/// Report of a task.
const REPORT: &str =
    r#"{"backup": "first", "digest": "0ad0", "size": 457092, "removed": ["older"]}"#;
/// Programs that go and come in a restore.
const PROGRAMS: [&str; 3] = ["keystone-api", "nova-api", "nova-compute"];
/// Programs that stay.
const STORES: [&str; 5] = ["mariadb", "rabbitmq", "memcached", "ovn-nb", "edge"];

pub(crate) fn ending(status: i32, log: &str) -> Option<Ending> {
    Some(Ending {
        status,
        log: log.to_owned(),
    })
}

/// A spec of a cloud with backups.
pub(crate) fn saved(mut spec: Value) -> Value {
    let certificate = rcgen::generate_simple_self_signed(vec!["backup".to_owned()]).unwrap();
    spec["backup"] = json!({"claimName": "backups", "certificate": certificate.cert.pem()});
    spec
}

impl World {
    /// The volume of the backups, which is the user's.
    pub(crate) async fn volume(&self) {
        let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": "backups", "namespace": NAMESPACE},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
        self.management.apply([claim]).await;
    }

    pub(crate) async fn ask(&self, name: &str, what: Value) {
        self.management.create(operation(name, what)).await;
    }

    /// Asks for a backup, and waits until the controller says why it waits.
    pub(crate) async fn ask_for_a_backup(&self) {
        self.ask("first", json!({"backup": {}})).await;
        self.operated("first", "Pending", "spec.backup").await;
    }

    pub(crate) async fn operation(&self, name: &str) -> Value {
        let api = self.management.api::<OpenStackOperation>();
        serde_json::to_value(api.get(name).await.unwrap()).unwrap()["status"].clone()
    }

    /// Waits until an operation is in a phase with this in its message, and returns its status.
    pub(crate) async fn operated(&self, name: &str, phase: &str, message: &str) -> Value {
        eventually(&format!("operation {name} to be {phase}"), || async {
            let status = self.operation(name).await;
            let text = status["message"].as_str().unwrap_or_default();
            let is_so = status["phase"] == phase && text.contains(message);
            match is_so {
                true => Ok(status),
                false => Err(status.to_string()),
            }
        })
        .await
    }

    async fn restore(&self, name: &str) {
        self.ask(name, json!({"restore": {"from": "first"}})).await;
    }

    /// Asserts that nothing of an operation is left in the cloud.
    pub(crate) async fn assert_forgotten(&self) {
        self.ready().await;
        eventually("tasks of operations to be gone", || async {
            let owned = self.owned().await;
            let left = owned.iter().find(|it| {
                ["backup", "restore-", "operation-", "rotation-"]
                    .iter()
                    .any(|word| it.contains(word))
            });
            left.map_or(Ok(()), |it| Err(it.clone()))
        })
        .await;
        self.assert_at_rest().await;
    }
}

pub(crate) fn operation(name: &str, what: Value) -> Value {
    let mut spec = json!({"openstack": CLOUD});
    spec.as_object_mut()
        .unwrap()
        .extend(what.as_object().unwrap().clone());
    json!({"apiVersion": "ferrostack.dev/v1alpha1", "kind": "OpenStackOperation",
        "metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec})
}

pub(crate) fn names(status: &Value) -> Vec<&str> {
    let steps = status["steps"].as_array().unwrap().iter();
    steps
        .inspect(|it| assert!(it["seconds"].is_i64(), "{status}"))
        .map(|it| it["name"].as_str().unwrap())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_backup_is_made_beside_the_cloud_which_stays_ready() {
    let world = World::open().await;
    let _controller = world.controller();
    world.volume().await;
    world.create(saved(full())).await;
    world.ready().await;
    let before = world.serving().await;
    world.faults.container_ends("backup", ending(0, REPORT));
    world.ask("first", json!({"backup": {}})).await;
    let status = world.operated("first", "Succeeded", "").await;
    assert_eq!(names(&status), ["Backup"]);
    for (field, expected) in [
        ("backup", json!("first")),
        ("digest", json!("0ad0")),
        ("size", json!(457_092)),
        ("removed", json!(["older"])),
    ] {
        assert_eq!(status[field], expected, "{status}");
    }
    assert!(
        status["started"].is_string() && status["finished"].is_string(),
        "{status}"
    );
    world.assert_forgotten().await;
    assert_eq!(world.serving().await, before);
}

#[tokio::test(start_paused = true)]
async fn a_backup_that_fails_is_told_by_its_operation_and_not_by_the_cloud() {
    let world = World::open().await;
    let _controller = world.controller();
    world.volume().await;
    world.create(saved(full())).await;
    world.ready().await;
    world
        .faults
        .container_ends("backup", ending(1, "No space left on device"));
    world.ask("first", json!({"backup": {}})).await;
    let status = world
        .operated("first", "Failed", "No space left on device")
        .await;
    assert!(
        status["digest"].is_null() && status["finished"].is_string(),
        "{status}"
    );
    world.condition(Type::TasksSucceeded, "True").await;
    world.assert_forgotten().await;
}

#[tokio::test(start_paused = true)]
async fn an_operation_waits_for_the_volume_and_for_those_before_it() {
    let world = World::open().await;
    let _controller = world.controller();
    world.create(full()).await;
    world.ready().await;
    world.ask("a", json!({"backup": {}})).await;
    world
        .operated("a", "Pending", "spec.backup of the cloud cloud is not set")
        .await;
    world
        .changed(json!({"spec": {"backup": saved(json!({}))["backup"]}}))
        .await;
    world
        .operated("a", "Pending", "there is no PersistentVolumeClaim backups")
        .await;
    world.ask("b", json!({"backup": {}})).await;
    world.faults.container_ends("backup", ending(0, REPORT));
    world.volume().await;
    for name in ["a", "b"] {
        world.operated(name, "Succeeded", "").await;
    }
    world.assert_forgotten().await;
}

#[tokio::test(start_paused = true)]
async fn a_restore_stops_the_programs_of_services_and_starts_them_again() {
    let world = World::open().await;
    let _controller = world.controller();
    world.volume().await;
    world.create(saved(full())).await;
    world.ready().await;
    let before = world.serving().await;
    world
        .faults
        .container_ends("restore-load", ending(0, REPORT));
    world.restore("back").await;
    let status = world.operated("back", "Succeeded", "").await;
    assert_eq!(names(&status), ["Check", "Stop", "Load", "Start"]);
    assert_eq!(status["backup"], "first", "{status}");
    world.assert_forgotten().await;
    let after = world.serving().await;
    for name in PROGRAMS {
        assert_ne!(before[name], after[name], "{name} was not stopped");
    }
    for name in STORES {
        assert_eq!(before[name], after[name], "{name} was restarted");
    }
}

#[tokio::test(start_paused = true)]
async fn a_backup_that_is_refused_changes_nothing() {
    let world = World::open().await;
    let _controller = world.controller();
    world.volume().await;
    world.create(saved(full())).await;
    world.ready().await;
    let before = world.serving().await;
    let words = "the backup first is broken: databases.sql.gz is not what was written";
    world
        .faults
        .container_ends("restore-check", ending(1, words));
    world.restore("back").await;
    let status = world.operated("back", "Failed", words).await;
    assert_eq!(names(&status), ["Check"]);
    world.assert_forgotten().await;
    assert_eq!(world.serving().await, before);
}

#[tokio::test(start_paused = true)]
async fn a_load_that_fails_keeps_the_programs_away_until_it_is_mended() {
    let world = World::open().await;
    let _controller = world.controller();
    world.volume().await;
    world.create(saved(full())).await;
    world.ready().await;
    world
        .faults
        .container_ends("restore-load", ending(1, "Lost connection to server"));
    world.restore("back").await;
    let status = world
        .operated("back", "Running", "Lost connection to server")
        .await;
    assert!(status["finished"].is_null(), "{status}");
    tokio::time::sleep(MINUTE).await;
    let serving = world.serving().await;
    assert!(
        PROGRAMS.iter().all(|it| !serving.contains_key(*it)),
        "{serving:?}"
    );
    world.condition(Type::Ready, "False").await;
    // The message has the command that runs it again.
    let status = world.operated("back", "Running", "runs it again").await;
    world.faults.container_ends("restore-load", None);
    let message = status["message"].as_str().unwrap();
    let (_, rest) = message.split_once("delete job ").unwrap();
    let (job, _) = rest.split_once('`').unwrap();
    let jobs = world.management.api::<k8s_openapi::api::batch::v1::Job>();
    jobs.delete(job, &DeleteParams::background()).await.unwrap();
    world.operated("back", "Succeeded", "").await;
    world.assert_forgotten().await;
}

#[tokio::test(start_paused = true)]
async fn no_other_work_starts_programs_on_half_of_a_backup() {
    let world = World::open().await;
    let _controller = world.controller();
    world.volume().await;
    let mut spec = saved(full());
    spec["release"] = "2025.1".into();
    let backup = spec["backup"].clone();
    world.create(spec).await;
    world.ready().await;
    world
        .faults
        .container_ends("restore-load", ending(1, "Lost connection to server"));
    world.restore("back").await;
    world.operated("back", "Running", "runs it again").await;
    let away = || async {
        tokio::time::sleep(MINUTE).await;
        let serving = world.serving().await;
        let mut programs = PROGRAMS.iter();
        assert!(programs.all(|it| !serving.contains_key(*it)), "{serving:?}");
    };
    world.changed(json!({"spec": {"backup": null}})).await;
    let why = world.condition(Type::Ready, "False").await;
    assert!(
        why.contains("Restore back has stopped the programs")
            && why.contains("spec.backup of the cloud cloud is not set"),
        "{why}"
    );
    away().await;
    world.changed(json!({"spec": {"backup": backup}})).await;
    // The upgrade begins when the restore is over.
    world.changed(json!({"spec": {"release": "2026.1"}})).await;
    away().await;
    world.operated("back", "Running", "runs it again").await;
}

#[tokio::test(start_paused = true)]
async fn an_operation_cannot_be_changed_and_is_one_thing() {
    let world = World::open().await;
    let api = world.management.api::<OpenStackOperation>();
    world.ask("first", json!({"backup": {}})).await;
    let patch = Patch::Merge(json!({"spec": {"openstack": "other"}}));
    let refused = api.patch("first", &PatchParams::default(), &patch).await;
    let refused = refused.unwrap_err().to_string();
    assert!(
        refused.contains("cannot be changed: make another one"),
        "{refused}"
    );
    for what in [
        json!({}),
        json!({"backup": {}, "restore": {"from": "first"}}),
    ] {
        let object: OpenStackOperation = serde_json::from_value(operation("b", what)).unwrap();
        let refused = api.create(&PostParams::default(), &object).await;
        let refused = refused.unwrap_err().to_string();
        assert!(
            refused.contains("an operation is a backup, a restore or a rotation"),
            "{refused}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn killed_at_every_write_a_backup_is_made_and_restored() {
    let world = World::open().await;
    world.volume().await;
    world.create(saved(full())).await;
    let controller = world.controller();
    world.ready().await;
    controller.kill().await;
    world.faults.container_ends("backup", ending(0, REPORT));
    world.ask("first", json!({"backup": {}})).await;
    let done = || async {
        world.operated("first", "Succeeded", "").await;
        world.assert_forgotten().await;
    };
    let kills = killed_at_every(1, |fuse| world.controller_with(fuse), done).await;
    assert!(kills > 5, "{kills}");
    assert_eq!(world.operation("first").await["digest"], "0ad0");
    let before = world.serving().await;
    world.restore("back").await;
    let done = || async {
        world.operated("back", "Succeeded", "").await;
        world.assert_forgotten().await;
    };
    let kills = killed_at_every(1, |fuse| world.controller_with(fuse), done).await;
    assert!(kills > 30, "{kills}");
    let status = world.operation("back").await;
    assert_eq!(names(&status), ["Check", "Stop", "Load", "Start"]);
    let after = world.serving().await;
    for name in STORES {
        assert_eq!(before[name], after[name], "{name} was restarted");
    }
}
