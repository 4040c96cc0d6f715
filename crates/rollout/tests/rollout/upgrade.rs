//! From 2025.1 to 2026.1, on simulated nodes.

use std::collections::BTreeMap;

use api::openstack::conditions::Type;
use api::openstack::v1alpha1::OpenStack;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};
use simulator::nodes::Ending;
use testbed::{eventually, killed_at_every};

use crate::operation::saved;
use crate::world::{CLOUD, MINUTE, World, full};

const OLD: &str = "ferrostack.local/openstack:2025.1";
const NEW: &str = "ferrostack.local/openstack:2026.1";
/// Programs that keep their image.
const KEPT: [&str; 8] = [
    "mariadb",
    "rabbitmq",
    "memcached",
    "ovn-nb",
    "ovn-sb",
    "ovn-northd",
    "ovn-chassis",
    "edge",
];

fn old() -> Value {
    let mut spec = full();
    spec["release"] = "2025.1".into();
    spec
}

impl World {
    /// The image of each program.
    async fn images(&self) -> BTreeMap<String, String> {
        let mut found = BTreeMap::new();
        for kind in ["Deployment", "StatefulSet"] {
            for object in self.list("apps", kind).await {
                let name = object["metadata"]["name"].as_str().unwrap().to_owned();
                let image = &object["spec"]["template"]["spec"]["containers"][0]["image"];
                found.insert(name, image.as_str().unwrap().to_owned());
            }
        }
        found
    }

    async fn release(&self) -> Value {
        let cloud = serde_json::to_value(self.cloud().await).unwrap();
        cloud["status"]["release"].clone()
    }

    async fn to(&self, release: &str) {
        self.changed(json!({"spec": {"release": release}})).await;
    }

    /// Waits until a phase is under way.
    async fn phase(&self, name: &str) {
        eventually(&format!("phase {name}"), || async {
            let release = self.release().await;
            let found = release["phase"] == name;
            found.then_some(()).ok_or(release.to_string())
        })
        .await;
    }

    /// Asserts that the services are of 2026.1, and that their dependencies kept running.
    async fn assert_upgraded(&self) {
        for (name, image) in self.images().await {
            let expected = if KEPT.contains(&name.as_str()) {
                OLD
            } else {
                NEW
            };
            assert_eq!(image, expected, "{name}");
        }
        let release = self.release().await;
        assert_eq!(release["current"], "2026.1", "{release}");
        assert!(release["phase"].is_null(), "{release}");
        let plan = self.plan().await;
        assert!(plan.is_empty() && plan.conflicts.is_empty(), "{plan:#?}");
    }
}

fn ending(status: i32, log: &str) -> Option<Ending> {
    Some(Ending {
        status,
        log: log.to_owned(),
    })
}

#[tokio::test(start_paused = true)]
async fn a_cloud_goes_up_by_one_release_and_its_databases_go_on() {
    let world = World::open().await;
    let _controller = world.controller();
    world.create(old()).await;
    world.ready().await;
    assert_eq!(world.release().await, json!({"current": "2025.1"}));
    let before = world.serving().await;
    world.to("2026.1").await;
    world.ready().await;
    world.assert_upgraded().await;
    let release = world.release().await;
    let phases = release["phases"].as_array().unwrap();
    let names: Vec<&str> = phases
        .iter()
        .map(|it| it["name"].as_str().unwrap())
        .collect();
    let expected = [
        "Check", "Backup", "Infra", "Expand", "Roll", "Migrate", "Contract", "Verify",
    ];
    assert_eq!(names, expected);
    assert!(phases.iter().all(|it| it["seconds"].is_i64()), "{release}");
    assert_eq!(
        (&release["from"], &release["to"]),
        (&json!("2025.1"), &json!("2026.1"))
    );
    let after = world.serving().await;
    for name in KEPT {
        assert_eq!(before[name], after[name], "{name} was restarted");
    }
    // A change afterwards is one like any other.
    world
        .changed(json!({"spec": {"services": {"nova": {"config": {"scheduler": {"workers": 3}}}}}}))
        .await;
    world.ready().await;
    world.assert_upgraded().await;
}

#[tokio::test(start_paused = true)]
async fn a_release_is_not_lowered_and_no_step_is_left_out() {
    let world = World::open().await;
    let _controller = world.controller();
    world.create(json!({"release": "2026.1"})).await;
    world.ready().await;
    let clouds: Api<OpenStack> = world.management.api();
    for release in ["2025.1", "zed"] {
        let patch = Patch::Merge(json!({"spec": {"release": release}}));
        let refused = clouds.patch(CLOUD, &PatchParams::default(), &patch).await;
        let refused = refused.unwrap_err().to_string();
        assert!(
            refused.contains("spec.release") && refused.contains("is never lowered"),
            "{refused}"
        );
    }
    world.assert_at_rest().await;
}

#[tokio::test(start_paused = true)]
async fn a_failed_check_changes_nothing_and_the_release_goes_back() {
    let world = World::open().await;
    let _controller = world.controller();
    world.create(old()).await;
    world.ready().await;
    let (images, serving) = (world.images().await, world.serving().await);
    world.faults.container_ends(
        "nova-check",
        ending(2, "| Check: Service User Token |\n| Result: Failure |"),
    );
    world.to("2026.1").await;
    let message = world.condition(Type::TasksSucceeded, "False").await;
    for part in [
        "nova-check",
        "`nova-status upgrade check`",
        "exit status 2",
        "Service User Token",
    ] {
        assert!(message.contains(part), "{message}");
    }
    tokio::time::sleep(MINUTE).await;
    assert_eq!(world.release().await["phase"], "Check");
    assert_eq!(
        (world.images().await, world.serving().await),
        (images.clone(), serving.clone())
    );
    let jobs = world.list("batch", "Job").await;
    let started = |part: &str| {
        jobs.iter()
            .any(|it| it["metadata"]["name"].as_str().unwrap().contains(part))
    };
    assert!(started("keystone-check-") && !started("-expand-"));
    // The way back: nothing is left of it.
    world.to("2025.1").await;
    world.ready().await;
    world.assert_at_rest().await;
    assert_eq!(
        (world.images().await, world.serving().await),
        (images, serving)
    );
    assert_eq!(world.release().await, json!({"current": "2025.1"}));
    assert!(
        !world
            .owned()
            .await
            .iter()
            .any(|it| it.contains("-check-") || it.contains("upgrade-"))
    );
}

#[tokio::test(start_paused = true)]
async fn a_check_that_warns_is_told_and_goes_on() {
    let world = World::open().await;
    let _controller = world.controller();
    world.create(old()).await;
    world.ready().await;
    let log =
        "| Check: Policy File JSON to YAML Migration |\n| Result: Warning |\n| Details: a file |";
    world.faults.container_ends("glance-check", ending(0, log));
    world.to("2026.1").await;
    world.ready().await;
    world.assert_upgraded().await;
    let warnings = &world.release().await["warnings"];
    assert_eq!(
        *warnings,
        json!([
            "backup: spec.backup is not set, so that none is made; none is known",
            "glance-check: Policy File JSON to YAML Migration: a file",
        ])
    );
}

#[tokio::test(start_paused = true)]
async fn schemas_that_do_not_expand_stop_before_any_program_and_the_release_goes_back() {
    let world = World::open().await;
    let _controller = world.controller();
    world.create(old()).await;
    world.ready().await;
    let images = world.images().await;
    world
        .faults
        .container_ends("neutron-expand", ending(1, "Table is locked"));
    world.to("2026.1").await;
    let message = world.condition(Type::TasksSucceeded, "False").await;
    assert!(
        message.contains("neutron-expand") && message.contains("Table is locked"),
        "{message}"
    );
    assert_eq!(world.release().await["phase"], "Expand");
    assert_eq!(world.images().await, images);
    world.to("2025.1").await;
    world.ready().await;
    world.assert_at_rest().await;
    assert_eq!(world.images().await, images);
    // And forward again, when it works.
    world.faults.container_ends("neutron-expand", None);
    world.to("2026.1").await;
    world.ready().await;
    world.assert_upgraded().await;
}

#[tokio::test(start_paused = true)]
async fn a_compute_that_is_down_stops_the_upgrade_before_it_begins() {
    let world = World::open().await;
    let _controller = world.controller();
    world.create(old()).await;
    world.ready().await;
    world
        .faults
        .container_ends("nova-compute", ending(1, "no broker"));
    eventually("a compute to be down", || async {
        let message = world.condition(Type::Ready, "False").await;
        message
            .contains("nova-compute")
            .then_some(())
            .ok_or(message)
    })
    .await;
    world.to("2026.1").await;
    tokio::time::sleep(MINUTE).await;
    assert_eq!(world.release().await["phase"], "Check");
    assert!(world.images().await.values().all(|it| it == OLD));
    world.faults.container_ends("nova-compute", None);
    world.ready().await;
    world.assert_upgraded().await;
}

#[tokio::test(start_paused = true)]
async fn a_program_that_does_not_start_stops_the_others_and_there_is_no_way_back() {
    let world = World::open().await;
    let _controller = world.controller();
    world.create(old()).await;
    world.ready().await;
    world.to("2026.1").await;
    world.phase("Expand").await;
    world.faults.image_is_missing(NEW, true);
    // Tasks of the phase may be there already; the first program is not.
    eventually("a task or program without an image", || async {
        let message = world.condition(Type::Ready, "False").await;
        message
            .contains("ImagePullBackOff")
            .then_some(())
            .ok_or(message)
    })
    .await;
    world.faults.image_is_missing(NEW, false);
    world.phase("Roll").await;
    world
        .faults
        .container_ends("glance-api", ending(1, "no such store"));
    eventually("Glance to fail", || async {
        let message = world.condition(Type::Ready, "False").await;
        let named = message.contains("glance-api") && message.contains("no such store");
        named.then_some(()).ok_or(message)
    })
    .await;
    tokio::time::sleep(MINUTE).await;
    let images = world.images().await;
    for (name, image) in [
        ("keystone-api", NEW),
        ("placement-api", NEW),
        ("neutron-api", OLD),
        ("nova-compute", OLD),
    ] {
        assert_eq!(images[name], image, "{name}");
    }
    let clouds: Api<OpenStack> = world.management.api();
    let patch = Patch::Merge(json!({"spec": {"release": "2025.1"}}));
    let refused = clouds.patch(CLOUD, &PatchParams::default(), &patch).await;
    let refused = refused.unwrap_err().to_string();
    assert!(
        refused.contains("until the phase Expand of an upgrade is over"),
        "{refused}"
    );
    world.faults.container_ends("glance-api", None);
    world.ready().await;
    world.assert_upgraded().await;
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_lost_in_the_middle_is_waited_for() {
    let world = World::open().await;
    let _controller = world.controller();
    world.create(old()).await;
    world.ready().await;
    world.to("2026.1").await;
    world.phase("Roll").await;
    world.faults.node_is_gone("node-0", true);
    tokio::time::sleep(MINUTE).await;
    let images = world.images().await;
    assert!(images.values().any(|it| it == OLD), "{images:?}");
    world.faults.node_is_gone("node-0", false);
    world.ready().await;
    world.assert_upgraded().await;
}

#[tokio::test(start_paused = true)]
async fn data_that_do_not_migrate_are_told_and_migrated_later() {
    let world = World::open().await;
    let _controller = world.controller();
    world.create(old()).await;
    world.ready().await;
    world
        .faults
        .container_ends("nova-migrate", ending(2, "Running batches of 1000: error"));
    world.to("2026.1").await;
    let message = world.condition(Type::TasksSucceeded, "False").await;
    assert!(
        message.contains("nova-migrate") && message.contains("kubectl -n default delete job"),
        "{message}"
    );
    assert_eq!(world.release().await["phase"], "Migrate");
    assert_eq!(world.release().await["current"], "2025.1");
    world.faults.container_ends("nova-migrate", None);
    for job in world.list("batch", "Job").await {
        let name = job["metadata"]["name"].as_str().unwrap().to_owned();
        if name.starts_with("nova-migrate-") {
            let jobs: Api<k8s_openapi::api::batch::v1::Job> = world.management.api();
            jobs.delete(&name, &kube::api::DeleteParams::background())
                .await
                .unwrap();
        }
    }
    world.ready().await;
    world.assert_upgraded().await;
}

#[tokio::test(start_paused = true)]
async fn a_check_alone_moves_nothing() {
    let world = World::open().await;
    let _controller = world.controller();
    world.create(old()).await;
    world.ready().await;
    let (images, serving, owned) = (
        world.images().await,
        world.serving().await,
        world.owned().await,
    );
    let annotation =
        |value: Value| json!({"metadata": {"annotations": {api::openstack::UPGRADE_CHECK: value}}});
    world.changed(annotation("2026.1".into())).await;
    eventually("the check to pass", || async {
        let release = world.release().await;
        let passed = release["phases"][0]["seconds"].is_i64();
        passed.then_some(()).ok_or(release.to_string())
    })
    .await;
    tokio::time::sleep(MINUTE).await;
    let release = world.release().await;
    assert_eq!(
        (&release["phase"], &release["current"]),
        (&json!("Check"), &json!("2025.1"))
    );
    assert_eq!(
        (world.images().await, world.serving().await),
        (images, serving)
    );
    world.changed(annotation(Value::Null)).await;
    eventually("the check to go", || async {
        let release = world.release().await;
        (release == json!({"current": "2025.1"}))
            .then_some(())
            .ok_or(release.to_string())
    })
    .await;
    world.ready().await;
    world.assert_at_rest().await;
    // Of each configuration file one former content stays, as after every change.
    let of_files = |it: &String| it.starts_with("ConfigMap ") || it.starts_with("Secret ");
    let left: Vec<String> = world
        .owned()
        .await
        .into_iter()
        .filter(|it| !of_files(it))
        .collect();
    let before: Vec<String> = owned.into_iter().filter(|it| !of_files(it)).collect();
    assert_eq!(left, before);
    // One that cannot be is told.
    world.changed(annotation("zed".into())).await;
    let message = world.condition(Type::Ready, "False").await;
    assert!(
        message.contains("upgrade-check: the cloud is of 2025.1, and a release is never lowered"),
        "{message}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_option_of_the_new_release_alone_waits_until_afterwards() {
    let world = World::open().await;
    let _controller = world.controller();
    world.create(old()).await;
    world.ready().await;
    let config = json!({"nova": {"config": {"DEFAULT": {"manager_shutdown_timeout": 9}}}});
    world
        .changed(json!({"spec": {"release": "2026.1", "services": config}}))
        .await;
    let message = world.condition(Type::ConfigurationValid, "False").await;
    assert!(
        message.contains("set this afterwards") && message.contains("manager_shutdown_timeout"),
        "{message}"
    );
    assert!(world.images().await.values().all(|it| it == OLD));
}

#[tokio::test(start_paused = true)]
async fn killed_at_every_write_an_upgrade_converges() {
    let world = World::open().await;
    world.create(old()).await;
    let running = world.controller();
    world.ready().await;
    running.kill().await;
    world.to("2026.1").await;
    let kills = killed_at_every(1, |fuse| world.controller_with(fuse), || world.ready()).await;
    assert!(kills > 60, "{kills}");
    world.assert_upgraded().await;
}

#[tokio::test(start_paused = true)]
async fn a_cloud_with_a_volume_for_backups_is_saved_before_it_goes_up() {
    let world = World::open().await;
    let _controller = world.controller();
    world.volume().await;
    world.create(saved(old())).await;
    world.ready().await;
    let images = world.images().await;
    world
        .faults
        .container_ends("upgrade-backup", ending(1, "No space left on device"));
    world.to("2026.1").await;
    let message = world.condition(Type::TasksSucceeded, "False").await;
    assert!(
        message.contains("upgrade-backup") && message.contains("No space left"),
        "{message}"
    );
    assert_eq!(world.release().await["phase"], "Backup");
    assert_eq!(world.images().await, images);
    world.to("2025.1").await;
    world.ready().await;
    world.assert_at_rest().await;
    world.faults.container_ends("upgrade-backup", None);
    world.to("2026.1").await;
    world.ready().await;
    world.assert_upgraded().await;
    assert!(world.release().await["warnings"].is_null());
    assert!(!world.owned().await.iter().any(|it| it.contains("backup")));
}
