//! Snapshots of several volumes at one moment.

use csi_spec::{DeleteVolumeGroupSnapshotRequest, GroupController as _, VolumeGroupSnapshot};
use grpc::{Code, Status};
use serde_json::json;
use simulator::cloud::{Latency, Options as CloudOptions};

use crate::faults::{killed_after_each_write, until_final};
use crate::world::{GIB, World, minutes, new_volume, options, pairs, refused};

/// The parameters of a class whose administrator has looked at the group type.
const CLASS: &[(&str, &str)] = &[("group-type", "consistent"), ("consistency", "declared")];

/// The requests of groups that fail here.
pub(crate) const OF_LIFE: [[&str; 3]; 9] = [
    ["volume", "POST", "/v3/{project}/groups"],
    ["volume", "PUT", "/v3/{project}/groups/{id}"],
    ["volume", "POST", "/v3/{project}/groups/{id}/action"],
    ["volume", "POST", "/v3/{project}/group_snapshots"],
    ["volume", "DELETE", "/v3/{project}/group_snapshots/{id}"],
    ["volume", "GET", "/v3/{project}/groups/detail"],
    ["volume", "GET", "/v3/{project}/group_snapshots/detail"],
    ["volume", "GET", "/v3/{project}/group_types"],
    ["volume", "GET", "/v3/{project}/snapshots/detail"],
];

/// A cloud with a type of volumes on one back end, and a type of groups.
pub(crate) async fn open() -> World {
    open_on(CloudOptions::default()).await
}

async fn open_on(cloud: CloudOptions) -> World {
    let world = World::open_on(cloud, options()).await;
    types(&world).await;
    world
}

async fn types(world: &World) {
    world
        .volume_type("ceph", json!({"volume_backend_name": "ceph"}))
        .await;
    let specs = json!({"consistent_group_snapshot_enabled": "<is> True"});
    world.group_type("consistent", specs).await;
}

/// A volume of a type.
async fn volume_of(world: &World, name: &str, kind: &str) -> String {
    let mut request = new_volume(name, 1);
    request.parameters.extend(pairs(&[("type", kind)]));
    let created = until_final(async || world.create(request.clone()).await).await;
    created.unwrap().volume_id
}

async fn volumes(world: &World, names: &[&str]) -> Vec<String> {
    let mut ids = Vec::new();
    for name in names {
        ids.push(volume_of(world, name, "ceph").await);
    }
    ids
}

/// Calls as the snapshotter does.
async fn take(world: &World, name: &str, volumes: &[&str]) -> Result<VolumeGroupSnapshot, Status> {
    until_final(async || world.together(name, volumes, CLASS).await).await
}

async fn delete(world: &World, taken: &VolumeGroupSnapshot) -> Result<(), Status> {
    let parts = parts(taken);
    until_final(async || {
        world
            .delete_together(&taken.group_snapshot_id, &parts)
            .await
    })
    .await
}

fn parts(taken: &VolumeGroupSnapshot) -> Vec<&str> {
    let parts = taken.snapshots.iter();
    parts.map(|it| it.snapshot_id.as_str()).collect()
}

/// The volumes of a group snapshot, in order.
fn of(taken: &VolumeGroupSnapshot) -> Vec<&str> {
    let parts = taken.snapshots.iter();
    let mut volumes: Vec<&str> = parts.map(|it| it.source_volume_id.as_str()).collect();
    volumes.sort_unstable();
    volumes
}

fn sorted<'a>(ids: &[&'a str]) -> Vec<&'a str> {
    let mut ids = ids.to_vec();
    ids.sort_unstable();
    ids
}

#[tokio::test(start_paused = true)]
async fn volumes_in_no_group_are_put_into_one_and_snapshotted_together() {
    let world = open_on(CloudOptions {
        latency: Latency::Real,
        ..CloudOptions::default()
    })
    .await;
    let ids = volumes(&world, &["a", "b"]).await;
    let (a, b) = (ids[0].as_str(), ids[1].as_str());
    let server = world.server("node-1").await;
    world.attach(a, &server).await.unwrap();
    world.requests();
    let taken = take(&world, "snap", &[a, b]).await.unwrap();
    let writes: u64 = world
        .requests()
        .iter()
        .filter(|(route, _)| !route.starts_with("GET"))
        .map(|(_, count)| count)
        .sum();
    assert_eq!(writes, 3, "a group, its volumes, the snapshot");
    assert!(taken.ready_to_use && taken.creation_time.is_some());
    assert_eq!(of(&taken), sorted(&[a, b]));
    for part in &taken.snapshots {
        assert!(part.ready_to_use && part.creation_time.is_some());
        assert_eq!(part.size_bytes, GIB);
        assert_eq!(part.group_snapshot_id, taken.group_snapshot_id);
    }
    // Once, however often it is asked for.
    assert_eq!(take(&world, "snap", &[b, a]).await.unwrap(), taken);
    assert_eq!(world.all("group_snapshots").await.len(), 1);
    assert_eq!(
        world
            .get_together(&taken.group_snapshot_id, &parts(&taken))
            .await
            .unwrap(),
        taken
    );
    // A part is a source, and goes with the others alone.
    let part = &taken.snapshots[0].snapshot_id;
    refused(
        world.delete_snapshot(part).await,
        Code::FailedPrecondition,
        "is part of group snapshot",
    );
    refused(
        world.delete(b).await,
        Code::FailedPrecondition,
        "delete their VolumeGroupSnapshots first",
    );
    let retyped = world.modify(b, &[("type", "fast")]).await;
    refused(
        retyped,
        Code::FailedPrecondition,
        "delete their VolumeGroupSnapshots first",
    );
    delete(&world, &taken).await.unwrap();
    delete(&world, &taken).await.unwrap();
    for kind in ["snapshots", "group_snapshots", "groups"] {
        assert!(world.all(kind).await.is_empty(), "{kind}");
    }
    assert_eq!(world.all("volumes").await.len(), 2);
    world.delete(b).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn sets_of_volumes_change_from_one_group_snapshot_to_the_next() {
    let world = open().await;
    let ids = volumes(&world, &["a", "b", "c", "d"]).await;
    let [a, b, c, d] = [0, 1, 2, 3].map(|index| ids[index].as_str());
    let mut taken = Vec::new();
    for (index, set) in [
        &[a, b][..],
        // More, fewer, others, of two groups.
        &[a, b, c],
        &[b, c],
        &[a, d],
        &[a, b, c, d],
        &[d],
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("snap-{index}");
        let one = take(&world, &name, set).await.unwrap();
        assert_eq!(of(&one), sorted(set));
        taken.push(one);
    }
    for one in &taken {
        delete(&world, one).await.unwrap();
    }
    for kind in ["snapshots", "group_snapshots", "groups"] {
        assert!(world.all(kind).await.is_empty(), "{kind}");
    }
    for id in &ids {
        world.delete(id).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_group_of_somebody_else_is_used_as_it_is() {
    let world = open().await;
    let ids = volumes(&world, &["a", "b", "c"]).await;
    let [a, b, c] = [0, 1, 2].map(|index| ids[index].as_str());
    let group =
        json!({"group": {"name": "theirs", "group_type": "consistent", "volume_types": ["ceph"]}});
    let created = world.cinder("POST", &world.volumes("/groups"), group).await;
    let group = created["group"]["id"].as_str().unwrap().to_owned();
    let put = json!({"group": {"add_volumes": format!("{a},{b}")}});
    world
        .cinder("PUT", &world.volumes(&format!("/groups/{group}")), put)
        .await;
    for set in [&[a][..], &[a, b, c], &[a, c]] {
        refused(
            take(&world, "snap", set).await,
            Code::FailedPrecondition,
            "which this driver did not make",
        );
    }
    let class = [("consistency", "declared")];
    let taken = until_final(async || world.together("snap", &[a, b], &class).await).await;
    delete(&world, &taken.unwrap()).await.unwrap();
    let left = world.all("groups").await;
    assert_eq!(
        left[0]["volumes"].as_array().unwrap().len(),
        2,
        "it is left alone"
    );
    refused(
        world.delete(a).await,
        Code::FailedPrecondition,
        "take it out first",
    );
}

#[tokio::test(start_paused = true)]
async fn volumes_of_a_type_that_is_newer_than_the_list_of_types_get_one_group() {
    let world = open().await;
    let first = volume_of(&world, "first", "fast").await;
    // The driver lists the types.
    world.modify(&first, &[("type", "fast")]).await.unwrap();
    let specs = json!({"volume_backend_name": "late"});
    world.volume_type("late", specs).await;
    let a = volume_of(&world, "a", "late").await;
    let b = volume_of(&world, "b", "late").await;
    let taken = take(&world, "snap", &[&a, &b]).await.unwrap();
    assert_eq!(of(&taken), sorted(&[&a, &b]));
    assert_eq!(world.all("groups").await.len(), 1);
    delete(&world, &taken).await.unwrap();
    assert!(world.all("groups").await.is_empty());
}

/// Both are called `kubernetes`, as every cluster whose administrator set no name.
#[tokio::test(start_paused = true)]
async fn a_group_of_a_cluster_of_the_same_name_is_left_alone() {
    let of_cluster = |uid: &str| {
        let options = options();
        options.cluster_uid.set(uid.to_owned());
        options
    };
    let world = World::open_on(CloudOptions::default(), of_cluster("one")).await;
    types(&world).await;
    let ids = volumes(&world, &["pvc-1", "pvc-2"]).await;
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    // The group, and its volumes: the snapshot comes with the next call.
    for _ in 0..2 {
        let begun = world.together("together", &ids, CLASS).await;
        assert_eq!(begun.unwrap_err().code, Code::Aborted);
    }
    let members = async || {
        let groups = world.all("groups").await;
        groups[0]["volumes"].as_array().unwrap().len()
    };
    assert_eq!(members().await, 2);
    for uid in [Some("two"), None] {
        let other = world.beside(uid.map_or_else(options, of_cluster));
        let request = DeleteVolumeGroupSnapshotRequest {
            group_snapshot_id: "absent".to_owned(),
            ..DeleteVolumeGroupSnapshotRequest::default()
        };
        let deleted = other.delete_volume_group_snapshot(minutes(3), request);
        deleted.await.unwrap();
        assert_eq!(members().await, 2, "{uid:?}");
    }
    let taken = take(&world, "together", &ids).await.unwrap();
    delete(&world, &taken).await.unwrap();
    assert!(world.all("groups").await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_type_of_groups_that_may_not_be_consistent_is_refused() {
    let world = open().await;
    let ids = volumes(&world, &["a", "b"]).await;
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    for (class, code, words) in [
        (&[][..], Code::FailedPrecondition, "name a `group-type`"),
        (
            &[("group-type", "absent")],
            Code::InvalidArgument,
            "no group type absent",
        ),
        (
            &[("group-type", "consistent")],
            Code::FailedPrecondition,
            "say so by `consistency: declared`",
        ),
        (
            &[("group-type", "consistent"), ("consistency", "yes")],
            Code::InvalidArgument,
            "is verified or declared, not `yes`",
        ),
        (
            &[("type", "backup")],
            Code::InvalidArgument,
            "`type` of the VolumeGroupSnapshotClass is unknown",
        ),
    ] {
        refused(world.together("snap", &ids, class).await, code, words);
    }
    for (name, volumes, code, words) in [
        ("", &ids[..], Code::InvalidArgument, "name is missing"),
        (
            "snap",
            &[],
            Code::InvalidArgument,
            "source_volume_ids are missing",
        ),
        (
            "snap",
            &[""],
            Code::InvalidArgument,
            "an id of source_volume_ids",
        ),
        (
            "snap",
            &[ids[0], "absent"],
            Code::NotFound,
            "volume absent does not exist",
        ),
    ] {
        refused(world.together(name, volumes, CLASS).await, code, words);
    }
    assert!(world.all("groups").await.is_empty());
    refused(
        world.get_together("", &[]).await,
        Code::InvalidArgument,
        "is missing",
    );
    refused(
        world.get_together("absent", &[]).await,
        Code::NotFound,
        "absent does not exist",
    );
    refused(
        world.delete_together("", &[]).await,
        Code::InvalidArgument,
        "is missing",
    );
    world.delete_together("absent", &[]).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn specs_of_a_group_type_are_believed_before_the_class() {
    let world = World::open_as_administrator(options()).await;
    types(&world).await;
    world.group_type("loose", json!({})).await;
    let ids = volumes(&world, &["a", "b"]).await;
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let loose = [("group-type", "loose"), ("consistency", "declared")];
    refused(
        world.together("snap", &ids, &loose).await,
        Code::FailedPrecondition,
        "are taken one after another",
    );
    let seen = [("group-type", "consistent")];
    until_final(async || world.together("snap", &ids, &seen).await)
        .await
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn volumes_that_no_group_takes_leave_no_group() {
    let world = open().await;
    world
        .volume_type("nfs", json!({"volume_backend_name": "nfs"}))
        .await;
    let (a, b) = (
        volume_of(&world, "a", "ceph").await,
        volume_of(&world, "b", "nfs").await,
    );
    // Two back ends: Cinder cannot make the group.
    refused(
        take(&world, "snap", &[&a, &b]).await,
        Code::FailedPrecondition,
        "no back end takes a group of this type",
    );
    assert!(world.all("groups").await.is_empty());
    let mut request = new_volume("c", 1);
    request
        .parameters
        .extend(pairs(&[("type", "ceph"), ("availability", "az1")]));
    let c = world.create(request).await.unwrap().volume_id;
    refused(
        take(&world, "snap", &[&a, &c]).await,
        Code::FailedPrecondition,
        "in different zones (az1, nova)",
    );
    // Of a type that is on several back ends, one volume is not on that of the group.
    let mut spread = Vec::new();
    for name in ["d", "e", "f", "g"] {
        let hints = json!({"different_host": spread});
        let body =
            json!({"volume": {"name": name, "size": 1}, "OS-SCH-HNT:scheduler_hints": hints});
        let created = world
            .request("POST", &world.volumes("/volumes"), body)
            .await;
        let id = created["volume"]["id"].as_str().unwrap().to_owned();
        if world.one("volumes", &id).await["status"] == "available" {
            spread.push(id);
        }
    }
    let spread: Vec<&str> = spread.iter().map(String::as_str).collect();
    refused(
        take(&world, "snap", &spread).await,
        Code::FailedPrecondition,
        "Volume is not local to this node",
    );
    for kind in ["groups", "group_snapshots"] {
        assert!(world.all(kind).await.is_empty(), "{kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn names_and_parts_of_others_are_refused() {
    let mut world = open().await;
    let ids = volumes(&world, &["a", "b"]).await;
    let (a, b) = (ids[0].as_str(), ids[1].as_str());
    let taken = take(&world, "snap", &[a, b]).await.unwrap();
    refused(
        take(&world, "snap", &[a]).await,
        Code::AlreadyExists,
        "of other volumes",
    );
    let alone = world.snapshot("alone", a, &[]).await.unwrap().snapshot_id;
    let id = &taken.group_snapshot_id;
    for strange in [alone.as_str(), "absent"] {
        refused(
            world.get_together(id, &[strange]).await,
            Code::InvalidArgument,
            "is not part of group snapshot",
        );
    }
    refused(
        world.delete_together(id, &[&alone]).await,
        Code::InvalidArgument,
        "is not part of group snapshot",
    );
    let group = world.all("groups").await[0]["id"].clone();
    let body = json!({"group_snapshot": {"group_id": group, "name": "theirs"}});
    world
        .cinder("POST", &world.volumes("/group_snapshots"), body)
        .await;
    world.restart();
    refused(
        take(&world, "theirs", &[a, b]).await,
        Code::AlreadyExists,
        "is not this cluster's",
    );
}

#[tokio::test(start_paused = true)]
async fn a_set_that_changed_under_the_snapshot_is_never_answered() {
    let world = open().await;
    let ids = volumes(&world, &["a", "b", "c"]).await;
    let [a, b, c] = [0, 1, 2].map(|index| ids[index].as_str());
    let first = take(&world, "snap", &[a, b]).await.unwrap();
    let group = world.all("groups").await[0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    // Another replica changes the group after this one has looked at it.
    let put = json!({"group": {"add_volumes": c, "remove_volumes": b}});
    world
        .cinder("PUT", &world.volumes(&format!("/groups/{group}")), put)
        .await;
    let early = world.together("other", &[a, b], CLASS).await;
    assert_eq!(early.unwrap_err().code, Code::Aborted);
    let second = take(&world, "other", &[a, b]).await.unwrap();
    assert_eq!(of(&second), sorted(&[a, b]));
    assert_eq!(world.all("group_snapshots").await.len(), 2);
    delete(&world, &first).await.unwrap();
    delete(&world, &second).await.unwrap();
    assert!(world.all("groups").await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_group_snapshot_that_failed_is_taken_anew() {
    let world = open().await;
    let ids = volumes(&world, &["a", "b"]).await;
    world.trouble("snapshot-fails").await;
    let taken = take(&world, "snap", &[&ids[0], &ids[1]]).await.unwrap();
    assert!(taken.ready_to_use);
    assert_eq!(world.all("group_snapshots").await.len(), 1);
    assert_eq!(world.all("snapshots").await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn quotas_of_groups_and_snapshots_are_told_and_the_volumes_stay_usable() {
    let world = open().await;
    let ids = volumes(&world, &["a", "b"]).await;
    let (a, b) = (ids[0].as_str(), ids[1].as_str());
    let project = world.project().to_owned();
    let quota = async |name: &str, most: i64| {
        let body = json!({"quota_set": {name: most}});
        let path = format!("/os-quota-sets/{project}");
        world.administrate("PUT", &path, body).await;
    };
    quota("groups", 0).await;
    refused(
        take(&world, "snap", &[a, b]).await,
        Code::ResourceExhausted,
        "groups",
    );
    quota("groups", 10).await;
    quota("snapshots", 1).await;
    refused(
        take(&world, "snap", &[a, b]).await,
        Code::ResourceExhausted,
        "snapshots",
    );
    assert!(world.all("snapshots").await.is_empty(), "all or none");
    // The group that was made stays until it is asked for again, or its volumes go.
    until_final(async || world.delete(a).await).await.unwrap();
    quota("snapshots", -1).await;
    let taken = take(&world, "snap", &[b]).await.unwrap();
    delete(&world, &taken).await.unwrap();
    assert!(world.all("groups").await.is_empty());
    until_final(async || world.delete(b).await).await.unwrap();
}

/// Two volumes that are snapshotted together, and deleted.
pub(crate) async fn life(world: &World) -> Result<(), Status> {
    let mut ids = Vec::new();
    for name in ["a", "b"] {
        let mut request = new_volume(name, 1);
        request.parameters.extend(pairs(&[("type", "ceph")]));
        let created = until_final(async || world.create(request.clone()).await).await?;
        ids.push(created.volume_id);
    }
    let set: Vec<&str> = ids.iter().map(String::as_str).collect();
    let taken = take(world, "snap", &set).await?;
    assert_eq!(of(&taken), sorted(&set));
    assert_eq!(world.all("group_snapshots").await.len(), 1);
    assert_eq!(world.all("groups").await.len(), 1);
    delete(world, &taken).await?;
    for id in &ids {
        until_final(async || world.delete(id).await).await?;
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_driver_that_is_killed_after_any_write_leaves_no_group() {
    let mut world = open().await;
    killed_after_each_write(&mut world, 10, async |world| life(world).await).await;
}

#[tokio::test(start_paused = true)]
async fn random_faults_end_in_groups_that_are_gone() {
    let world = open().await;
    for route in OF_LIFE {
        world.each_fault(route, async || life(&world).await).await;
    }
}
