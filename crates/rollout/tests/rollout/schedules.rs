//! Scheduled backups and rotations, on simulated nodes and a clock of the test's own.

use api::openstack::operation::OpenStackOperation;
use api::openstack::v1alpha1::OpenStack;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt as _;
use kube::api::{ListParams, PostParams};
use rollout::{Clock, Options};
use serde_json::{Value, json};
use testbed::{Fuse, Running, eventually, killed_at_every};

use crate::operation::{ending, saved};
use crate::world::{MINUTE, World, full, object};

const REPORT: &str = r#"{"backup": "b", "digest": "0ad0", "size": 1, "removed": []}"#;
const LABEL: &str = "ferrostack.dev/schedule";

/// A clock that shows this time now, and goes on with the time of the test.
fn clock(text: &str) -> Clock {
    clock_from(text.parse().unwrap())
}

/// A clock that shows this time now, and goes on with the time of the test.
pub(crate) fn clock_from(begin: Timestamp) -> Clock {
    let start = tokio::time::Instant::now();
    Clock::new(move || begin + start.elapsed())
}

/// A spec with backups at the times of a schedule.
fn backed_up(schedule: &str) -> Value {
    let mut spec = saved(full());
    spec["backup"]["schedule"] = schedule.into();
    spec
}

impl World {
    /// A controller with a clock.
    pub(crate) fn scheduled(&self, clock: &Clock, fuse: Option<&Fuse>) -> Running {
        self.programs.guard(None);
        let options = Options {
            clock: clock.clone(),
            ..self.options()
        };
        let client = &self.management.client;
        let client = fuse.map_or_else(|| client.clone(), |it| it.protect(client));
        Running::start(|stop| rollout::run(client, options, stop))
    }

    /// Names of the operations, in their order.
    async fn operations(&self) -> Vec<String> {
        let api = self.management.api::<OpenStackOperation>();
        let all = api.list(&ListParams::default()).await.unwrap();
        let names = all.items.into_iter().map(|it| it.name_any());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    /// Waits until an operation is there and has succeeded.
    async fn has_operation(&self, name: &str) {
        let api = self.management.api::<OpenStackOperation>();
        eventually(&format!("{name} to be made"), || async {
            let found = api.get_opt(name).await.unwrap();
            found.map(drop).ok_or_else(|| "it is not there".to_owned())
        })
        .await;
        self.operated(name, "Succeeded", "").await;
    }

    async fn schedule(&self, name: &str) -> Value {
        let cloud = serde_json::to_value(self.cloud().await).unwrap();
        let all = cloud["status"]["schedules"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        all.into_iter()
            .find(|it| it["name"] == name)
            .unwrap_or_default()
    }

    async fn next(&self, name: &str, time: &str) {
        eventually(&format!("the next {name} to be at {time}"), || async {
            let found = self.schedule(name).await;
            (found["next"] == time)
                .then_some(())
                .ok_or(found.to_string())
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_backup_is_made_at_each_time() {
    let world = World::open().await;
    world.volume().await;
    world.faults.container_ends("backup", ending(0, REPORT));
    let _controller = world.scheduled(&clock("2026-11-29T23:40:00Z"), None);
    world.create(backed_up("0,30 0 * * *")).await;
    world.ready().await;
    world.next("backup", "2026-11-30T00:00:00Z").await;
    assert_eq!(world.operations().await, [""; 0]);
    tokio::time::sleep(MINUTE * 25).await;
    world.has_operation("cloud-backup-20261130-0000").await;
    world.next("backup", "2026-11-30T00:30:00Z").await;
    tokio::time::sleep(MINUTE * 30).await;
    world.has_operation("cloud-backup-20261130-0030").await;
    world.next("backup", "2026-12-01T00:00:00Z").await;
    assert_eq!(world.operations().await.len(), 2);
    let last = &world.schedule("backup").await["operation"];
    assert_eq!(last, "cloud-backup-20261130-0030");
    world.assert_forgotten().await;
}

#[tokio::test(start_paused = true)]
async fn times_that_passed_without_a_controller_are_one_backup() {
    let world = World::open().await;
    world.volume().await;
    world.faults.container_ends("backup", ending(0, REPORT));
    let clock = clock("2026-11-29T23:40:00Z");
    let controller = world.scheduled(&clock, None);
    world.create(backed_up("*/15 0-5 * * *")).await;
    world.ready().await;
    world.next("backup", "2026-11-30T00:00:00Z").await;
    controller.kill().await;
    tokio::time::sleep(MINUTE * 65).await;
    let _controller = world.scheduled(&clock, None);
    world.has_operation("cloud-backup-20261130-0000").await;
    world.next("backup", "2026-11-30T01:00:00Z").await;
    let names = world.operations().await;
    assert_eq!(names, ["cloud-backup-20261130-0000"]);
}

#[tokio::test(start_paused = true)]
async fn a_backup_whose_predecessor_is_not_over_is_left_out() {
    let world = World::open().await;
    // Without the volume, the first one waits.
    let _controller = world.scheduled(&clock("2026-11-29T23:40:00Z"), None);
    world.create(backed_up("*/10 0-5 * * *")).await;
    world.ready().await;
    world.next("backup", "2026-11-30T00:00:00Z").await;
    tokio::time::sleep(MINUTE * 23).await;
    world.next("backup", "2026-11-30T00:10:00Z").await;
    tokio::time::sleep(MINUTE * 10).await;
    world.next("backup", "2026-11-30T00:20:00Z").await;
    let names = world.operations().await;
    assert_eq!(names, ["cloud-backup-20261130-0000"]);
    let message = &world.schedule("backup").await["message"];
    assert_eq!(message, "cloud-backup-20261130-0000 is not over");
}

#[tokio::test(start_paused = true)]
async fn an_operation_of_somebody_else_is_not_taken_over() {
    let world = World::open().await;
    world.volume().await;
    let _controller = world.scheduled(&clock("2026-11-29T23:40:00Z"), None);
    world.create(backed_up("0 0 * * *")).await;
    world.ready().await;
    world
        .ask(
            "cloud-backup-20261130-0000",
            json!({"rotate": {"only": ["fernet"]}}),
        )
        .await;
    world.next("backup", "2026-11-30T00:00:00Z").await;
    tokio::time::sleep(MINUTE * 25).await;
    world.next("backup", "2026-12-01T00:00:00Z").await;
    let schedule = world.schedule("backup").await;
    let message = schedule["message"].as_str().unwrap();
    assert!(message.contains("is not of this schedule"), "{schedule}");
    assert!(schedule["operation"].is_null(), "{schedule}");
}

#[tokio::test(start_paused = true)]
async fn a_changed_schedule_begins_anew_and_a_removed_one_ends() {
    let world = World::open().await;
    let _controller = world.scheduled(&clock("2026-11-29T23:40:00Z"), None);
    world.create(backed_up("0 0 * * *")).await;
    world.ready().await;
    world.next("backup", "2026-11-30T00:00:00Z").await;
    // The last time of the new schedule has passed, and is not made up for.
    let patch = json!({"spec": {"backup": {"schedule": "40 23 * * *"}}});
    world.changed(patch).await;
    world.next("backup", "2026-11-30T23:40:00Z").await;
    let patch = json!({"spec": {"backup": {"schedule": "*/10 0-5 * * *"}}});
    world.changed(patch).await;
    world.next("backup", "2026-11-30T00:00:00Z").await;
    world
        .changed(json!({"spec": {"backup": {"schedule": null}}}))
        .await;
    eventually("the schedule to end", || async {
        let found = world.schedule("backup").await;
        found.is_null().then_some(()).ok_or(found.to_string())
    })
    .await;
    tokio::time::sleep(MINUTE * 20).await;
    assert_eq!(world.operations().await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn what_is_no_schedule_is_refused_with_the_field() {
    let world = World::open().await;
    let api = world.management.api::<OpenStack>();
    for (schedule, words) in [
        ("at night", "five fields"),
        ("0 0 30 2 *", "no day is in this schedule"),
    ] {
        let mut spec = full();
        spec["rotation"] = json!({"schedule": schedule});
        let cloud = serde_json::from_value(object(spec)).unwrap();
        let refused = api.create(&PostParams::default(), &cloud).await;
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains("spec.rotation.schedule"), "{refused}");
        assert!(refused.contains(words), "{refused}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_last_ten_operations_of_a_schedule_stay() {
    let world = World::open().await;
    world.volume().await;
    world.faults.container_ends("backup", ending(0, REPORT));
    let _controller = world.scheduled(&clock("2026-11-29T23:40:00Z"), None);
    world.create(backed_up("*/5 0-5 * * *")).await;
    world.ready().await;
    world.next("backup", "2026-11-30T00:00:00Z").await;
    world.ask("mine", json!({"backup": {}})).await;
    world.has_operation("mine").await;
    tokio::time::sleep(MINUTE * 88).await;
    let names = world.operations().await;
    // The ten before the last one, which was not over when they were counted.
    assert_eq!(names.len(), 12, "{names:?}");
    assert!(names.contains(&"mine".to_owned()), "{names:?}");
    let first = "cloud-backup-20261130-0000".to_owned();
    assert!(!names.contains(&first), "{names:?}");
}

#[tokio::test(start_paused = true)]
async fn killed_at_every_write_a_time_has_one_backup_and_one_rotation() {
    let world = World::open().await;
    world.volume().await;
    world.faults.container_ends("backup", ending(0, REPORT));
    let clock = clock("2026-11-29T23:40:00Z");
    let controller = world.scheduled(&clock, None);
    let mut spec = backed_up("0 0 * * *");
    spec["rotation"] = json!({"schedule": "0 0 * * *"});
    world.create(spec).await;
    world.ready().await;
    world.next("rotation", "2026-11-30T00:00:00Z").await;
    controller.kill().await;
    tokio::time::sleep(MINUTE * 25).await;
    let names = ["cloud-backup-20261130-0000", "cloud-rotation-20261130-0000"];
    let done = || async {
        for name in names {
            world.has_operation(name).await;
        }
        world.assert_forgotten().await;
    };
    let kills = killed_at_every(1, |fuse| world.scheduled(&clock, Some(fuse)), done).await;
    assert!(kills > 10, "{kills}");
    assert_eq!(world.operations().await, names);
    let api = world.management.api::<OpenStackOperation>();
    for name in names {
        let found = api.get(name).await.unwrap();
        assert!(found.metadata.labels.unwrap().contains_key(LABEL));
        assert_eq!(
            found.metadata.owner_references.unwrap()[0].kind,
            "OpenStack"
        );
    }
}
