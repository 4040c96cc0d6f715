//! Volumes are created, grown and deleted.

use std::time::Duration;

use csi::{Options, ZoneMap};
use csi_spec::context;
use csi_spec::volume_capability::access_mode::Mode;
use csi_spec::volume_capability::{AccessType, MountVolume};
use csi_spec::volume_content_source::{SnapshotSource, Type, VolumeSource};
use csi_spec::{
    CapacityRange, Controller, ControllerExpandVolumeRequest, CreateVolumeRequest,
    GetCapacityRequest, Topology, TopologyRequirement, ValidateVolumeCapabilitiesRequest,
    VolumeContentSource,
};
use grpc::Code;
use serde_json::json;
use simulator::cloud::{Latency, Options as CloudOptions};
use tokio_util::sync::CancellationToken;

use crate::world::{GIB, World, capability, minutes, new_volume, options, pairs, refused};

#[tokio::test(start_paused = true)]
async fn a_volume_is_available_and_has_our_mark_when_it_is_answered() {
    let world = World::open_on(real(), options()).await;
    let volume = world.volume("pvc-1", 2).await;
    assert_eq!(volume.capacity_bytes, 2 * GIB);
    let created = world.one("volumes", &volume.volume_id).await;
    assert_eq!(created["status"], "available");
    assert_eq!(created["name"], "pvc-1");
    assert_eq!(
        created["description"],
        "Created by OpenStack Cinder CSI driver"
    );
    assert_eq!(
        created["metadata"],
        json!({"cinder.csi.openstack.org/cluster": "kubernetes", "csi.storage.k8s.io/pvc/name": "data-db-0",
            "csi.storage.k8s.io/pvc/namespace": "default", "csi.storage.k8s.io/pv/name": "pvc-1"})
    );
    let zone = &volume.accessible_topology[0].segments["topology.cinder.csi.openstack.org/zone"];
    assert_eq!(zone, "nova");
}

/// Volumes take their time.
fn real() -> CloudOptions {
    CloudOptions {
        latency: Latency::Real,
        ..CloudOptions::default()
    }
}

#[tokio::test(start_paused = true)]
async fn a_volume_is_made_once_however_often_it_is_asked_for() {
    let mut world = World::open().await;
    let first = world.volume("pvc-1", 1).await;
    assert_eq!(world.volume("pvc-1", 1).await, first);
    world.restart();
    assert_eq!(world.volume("pvc-1", 1).await, first);
    assert_eq!(world.all("volumes").await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_volume_of_that_name_that_differs_is_not_answered() {
    let world = World::open().await;
    world.volume("pvc-1", 2).await;
    let create = async |change: &dyn Fn(&mut CreateVolumeRequest)| {
        let mut request = new_volume("pvc-1", 2);
        change(&mut request);
        world.create(request).await
    };
    let larger = create(&|it| it.capacity_range.as_mut().unwrap().required_bytes = 3 * GIB).await;
    refused(larger, Code::AlreadyExists, "another size: 2 GiB");
    let typed = create(&|it| it.parameters.extend(pairs(&[("type", "other")]))).await;
    refused(typed, Code::AlreadyExists, "another type: ");
    let zone = create(&|it| it.parameters.extend(pairs(&[("availability", "az1")]))).await;
    refused(zone, Code::AlreadyExists, "another zone: nova");
    let clone = create(&|it| it.volume_content_source = Some(from_volume("x"))).await;
    refused(clone, Code::AlreadyExists, "another source");
    let restored = create(&|it| it.volume_content_source = Some(from_snapshot("x"))).await;
    refused(restored, Code::AlreadyExists, "another source");
    let mut smaller = new_volume("pvc-1", 1);
    smaller.capacity_range.as_mut().unwrap().limit_bytes = 2 * GIB;
    world.create(smaller).await.unwrap();
    assert_eq!(world.all("volumes").await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_encryption_of_a_found_volume_is_that_of_its_type_or_source() {
    let world = World::open().await;
    let kind = world.volume_type("secret", json!({})).await;
    let settings = json!({"encryption": {"provider": "luks", "control_location": "front-end"}});
    let path = format!("/types/{kind}/encryption");
    world.administrate("POST", &path, settings).await;
    let of_type = |name: &str| {
        let mut request = new_volume(name, 1);
        request.parameters.extend(pairs(&[("type", "secret")]));
        request
    };
    let source = world.create(of_type("pvc-1")).await.unwrap().volume_id;
    assert_eq!(world.one("volumes", &source).await["encrypted"], true);
    world.create(of_type("pvc-1")).await.unwrap();
    // One that is not encrypted has another type.
    world.volume("pvc-2", 1).await;
    let found = world.create(of_type("pvc-2")).await;
    refused(found, Code::AlreadyExists, "another type: ");
    // A copy is as its source is, and is found at no cost of requests but the lists.
    let clone = || {
        let mut request = new_volume("pvc-3", 1);
        request.volume_content_source = Some(from_volume(&source));
        request
    };
    let copy = world.create(clone()).await.unwrap().volume_id;
    assert_eq!(world.one("volumes", &copy).await["encrypted"], true);
    world.requests();
    assert_eq!(world.create(clone()).await.unwrap().volume_id, copy);
    let asked = world.requests();
    let more = asked
        .keys()
        .find(|it| *it != "GET /v3/{project}/volumes/detail");
    assert_eq!(more, None);
}

#[tokio::test(start_paused = true)]
async fn a_volume_of_another_cluster_is_left_alone() {
    let mut world = World::open().await;
    for metadata in [
        json!({}),
        json!({"cinder.csi.openstack.org/cluster": "other"}),
    ] {
        let body = json!({"volume": {"name": "pvc-1", "size": 1, "metadata": metadata}});
        let path = world.volumes("/volumes");
        let created = world.request("POST", &path, body).await;
        world.restart();
        let id = created["volume"]["id"].as_str().unwrap();
        refused(
            world.create(new_volume("pvc-1", 1)).await,
            Code::AlreadyExists,
            id,
        );
        assert_eq!(world.all("volumes").await.len(), 1);
        // A volume named by a PV is deleted, whoever created it.
        world.delete(id).await.unwrap();
        assert_eq!(world.all("volumes").await.len(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_volume_is_made_in_the_zone_of_its_pod() {
    let world = World::open().await;
    let segment = |zone: &str| Topology {
        segments: pairs(&[("topology.cinder.csi.openstack.org/zone", zone)]),
    };
    let mut request = new_volume("pvc-1", 1);
    request.accessibility_requirements = Some(TopologyRequirement {
        requisite: vec![segment("az1"), segment("az2")],
        preferred: vec![segment("az2"), segment("az1")],
    });
    let volume = world.create(request).await.unwrap();
    let created = world.one("volumes", &volume.volume_id).await;
    assert_eq!(created["availability_zone"], "az2");
    assert_eq!(volume.accessible_topology, [segment("az2")]);
}

#[tokio::test(start_paused = true)]
async fn a_zone_that_cinder_lacks_is_not_asked_for() {
    let world = World::open().await;
    let segment = |zone: &str| Topology {
        segments: pairs(&[("topology.cinder.csi.openstack.org/zone", zone)]),
    };
    let mut request = new_volume("pvc-1", 1);
    request.accessibility_requirements = Some(TopologyRequirement {
        requisite: vec![segment("edge")],
        preferred: vec![segment("edge")],
    });
    // A cloud that falls back to its default zone would make a volume that the pod's node cannot have.
    let lacking = world.create(request.clone()).await;
    refused(
        lacking,
        Code::ResourceExhausted,
        "Cinder has no availability zone edge, it has az1, az2, nova:",
    );
    assert_eq!(world.all("volumes").await.len(), 0);
    let requirement = request.accessibility_requirements.as_mut().unwrap();
    requirement.requisite.push(segment("az2"));
    let volume = world.create(request).await.unwrap();
    assert_eq!(volume.accessible_topology, [segment("az2")]);
}

#[tokio::test(start_paused = true)]
async fn zones_of_the_map_are_compared_at_the_start_and_nothing_else_is_read_for_it() {
    const ZONES: &str = "GET /v3/{project}/os-availability-zone";
    let pair = |cinder: &str| ("az1".to_owned(), cinder.to_owned());
    for (map, ignore_volume_az, with_topology, read) in [
        (ZoneMap::default(), false, true, 0),
        (ZoneMap([pair("az2")].into()), true, true, 0),
        (ZoneMap([pair("az2")].into()), false, false, 0),
        (ZoneMap([pair("az2")].into()), false, true, 1),
        (ZoneMap([pair("none-such")].into()), false, true, 1),
    ] {
        let options = Options {
            zones: map,
            ignore_volume_az,
            with_topology,
            ..options()
        };
        let world = World::open_on(CloudOptions::default(), options).await;
        world.requests();
        world.driver.connect(CancellationToken::new()).await;
        let requests = world.requests();
        let zones = requests.get(ZONES).copied().unwrap_or_default();
        assert_eq!(zones, read, "{requests:?}");
        assert_eq!(requests.values().sum::<u64>(), 1 + read, "{requests:?}");
    }
}

fn from_volume(id: &str) -> VolumeContentSource {
    VolumeContentSource {
        r#type: Some(Type::Volume(VolumeSource {
            volume_id: id.to_owned(),
        })),
    }
}

fn from_snapshot(id: &str) -> VolumeContentSource {
    VolumeContentSource {
        r#type: Some(Type::Snapshot(SnapshotSource {
            snapshot_id: id.to_owned(),
        })),
    }
}

#[tokio::test(start_paused = true)]
async fn a_volume_is_cloned_and_restored_at_least_as_large_as_its_source() {
    let world = World::open().await;
    let source = world.volume("pvc-1", 2).await.volume_id;
    let snapshot = world
        .snapshot("snap", &source, &[])
        .await
        .unwrap()
        .snapshot_id;
    let backup = loop {
        let class = [("type", "backup")];
        match world.snapshot("backup", &source, &class).await {
            Ok(backup) if backup.ready_to_use => break backup,
            Ok(_) => {}
            Err(status) => assert_eq!(status.code, Code::Aborted, "{}", status.message),
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    };
    for (index, from) in [
        from_volume(&source),
        from_snapshot(&snapshot),
        from_snapshot(&backup.snapshot_id),
    ]
    .into_iter()
    .enumerate()
    {
        let mut small = new_volume(&format!("small-{index}"), 1);
        small.volume_content_source = Some(from.clone());
        refused(
            world.create(small).await,
            Code::OutOfRange,
            "less than the 2 GiB of the source",
        );
        let mut open = new_volume(&format!("open-{index}"), 1);
        open.capacity_range = None;
        open.volume_content_source = Some(from.clone());
        let restored = world.create(open.clone()).await.unwrap();
        assert_eq!(restored.capacity_bytes, 2 * GIB);
        assert_eq!(restored.content_source, Some(from));
        let context = pairs(&[("cinder.csi.openstack.org/resizeRequired", "true")]);
        assert_eq!(restored.volume_context, context);
        assert_eq!(world.create(open).await.unwrap(), restored);
    }
    for from in [from_volume("absent"), from_snapshot("absent")] {
        let mut request = new_volume("none", 1);
        request.volume_content_source = Some(from);
        refused(
            world.create(request).await,
            Code::NotFound,
            "absent, does not exist",
        );
    }
}

#[tokio::test(start_paused = true)]
async fn several_nodes_need_a_type_with_multiattach() {
    let world = World::open().await;
    let request = |name: &str, of_type: Option<&str>| {
        let mut request = new_volume(name, 1);
        request.volume_capabilities = vec![capability(Mode::MultiNodeMultiWriter, true)];
        request
            .parameters
            .extend(of_type.map(|it| ("type".to_owned(), it.to_owned())));
        request
    };
    let create = async |of_type| world.create(request("pvc", of_type)).await;
    refused(create(None).await, Code::InvalidArgument, "has no `type`");
    refused(
        create(Some("nothing")).await,
        Code::InvalidArgument,
        "no volume type nothing",
    );
    refused(
        create(Some("__DEFAULT__")).await,
        Code::InvalidArgument,
        "has no multiattach",
    );
    let volume = create(Some("shared")).await.unwrap();
    let single = world.volume("single", 1).await;
    for (id, confirmed) in [(&volume.volume_id, true), (&single.volume_id, false)] {
        let request = ValidateVolumeCapabilitiesRequest {
            volume_id: id.clone(),
            volume_capabilities: vec![capability(Mode::MultiNodeMultiWriter, true)],
            ..ValidateVolumeCapabilitiesRequest::default()
        };
        let answer = world
            .driver
            .validate_volume_capabilities(minutes(3), request)
            .await;
        assert_eq!(answer.unwrap().confirmed.is_some(), confirmed);
    }
}

/// Nodes report a label, and Cinder wants its name.
#[tokio::test(start_paused = true)]
async fn a_zone_whose_name_is_no_label_is_used_by_its_label() {
    let cloud = CloudOptions {
        zones: ["nova", "AZ / 1"].map(str::to_owned).into(),
        ..CloudOptions::default()
    };
    let world = World::open_on(cloud, options()).await;
    let label = Topology {
        segments: pairs(&[(context::ZONE, "AZ-1")]),
    };
    let mut request = new_volume("pvc-1", 1);
    request.accessibility_requirements = Some(TopologyRequirement {
        requisite: vec![label.clone()],
        preferred: Vec::new(),
    });
    let volume = world.create(request.clone()).await.unwrap();
    assert_eq!(volume.accessible_topology, std::slice::from_ref(&label));
    let in_cinder = world.one("volumes", &volume.volume_id).await;
    assert_eq!(in_cinder["availability_zone"], "AZ / 1");
    assert_eq!(world.create(request).await.unwrap(), volume);
    let capacity = GetCapacityRequest {
        accessible_topology: Some(label),
        ..GetCapacityRequest::default()
    };
    let left = world.driver.get_capacity(minutes(3), capacity).await;
    assert!(left.unwrap().available_capacity > 0);
}

/// A second node would mount what the first one writes, and neither sees what the other changes.
#[tokio::test(start_paused = true)]
async fn a_file_system_that_several_nodes_write_is_refused() {
    let world = World::open().await;
    let create = async |name: &str, modes: &[Mode]| {
        let mut request = new_volume(name, 1);
        request.parameters.extend(pairs(&[("type", "shared")]));
        let capabilities = modes.iter().map(|mode| capability(*mode, false));
        request.volume_capabilities = capabilities.collect();
        world.create(request).await
    };
    let writers = [Mode::MultiNodeMultiWriter, Mode::MultiNodeSingleWriter];
    let words = "one node at a time";
    for mode in writers {
        refused(create("pvc", &[mode]).await, Code::InvalidArgument, words);
    }
    // csi-attacher makes MULTI_NODE_SINGLE_WRITER of these two.
    let both = [Mode::SingleNodeWriter, Mode::MultiNodeReaderOnly];
    refused(create("pvc", &both).await, Code::InvalidArgument, words);
    assert!(world.all("volumes").await.is_empty());
    let readers = create("pvc", &[Mode::MultiNodeReaderOnly]).await.unwrap();
    let server = world.server("node-1").await;
    for mode in writers {
        let attached = world.attach_as(&readers.volume_id, &server, mode).await;
        refused(attached, Code::InvalidArgument, words);
    }
    for (mode, block, confirmed) in [
        (Mode::MultiNodeMultiWriter, false, false),
        (Mode::MultiNodeSingleWriter, false, false),
        (Mode::MultiNodeReaderOnly, false, true),
        (Mode::MultiNodeMultiWriter, true, true),
    ] {
        let request = ValidateVolumeCapabilitiesRequest {
            volume_id: readers.volume_id.clone(),
            volume_capabilities: vec![capability(mode, block)],
            ..ValidateVolumeCapabilitiesRequest::default()
        };
        let answer = world
            .driver
            .validate_volume_capabilities(minutes(3), request)
            .await
            .unwrap();
        assert_eq!(answer.confirmed.is_some(), confirmed, "{mode:?}");
        assert_eq!(answer.message.contains(words), !confirmed, "{mode:?}");
    }
}

/// Its content is that of its source, also where nothing is recognised.
#[tokio::test(start_paused = true)]
async fn a_restored_or_cloned_volume_counts_as_empty_by_no_parameter() {
    let world = World::open().await;
    let with_format = |name: &str| {
        let mut request = new_volume(name, 1);
        request
            .parameters
            .extend(pairs(&[("format", "first-attach")]));
        request
    };
    let origin = world.create(with_format("pvc-1")).await.unwrap();
    assert_eq!(origin.volume_context[context::FORMAT], "first-attach");
    let taken = world.snapshot("snap-1", &origin.volume_id, &[]).await;
    let taken = taken.unwrap().snapshot_id;
    for (name, source) in [
        ("pvc-2", from_volume(&origin.volume_id)),
        ("pvc-3", from_snapshot(&taken)),
    ] {
        let mut request = with_format(name);
        request.volume_content_source = Some(source);
        let volume = world.create(request).await.unwrap();
        assert_eq!(volume.volume_context.get(context::FORMAT), None);
        assert_eq!(volume.volume_context[context::RESIZE], "true");
    }
}

async fn expand(
    world: &World,
    id: &str,
    gib: i64,
    limit: i64,
) -> Result<(i64, bool), grpc::Status> {
    let request = ControllerExpandVolumeRequest {
        volume_id: id.to_owned(),
        capacity_range: Some(CapacityRange {
            required_bytes: gib * GIB,
            limit_bytes: limit * GIB,
        }),
        ..ControllerExpandVolumeRequest::default()
    };
    let answer = world
        .driver
        .controller_expand_volume(minutes(3), request)
        .await?;
    Ok((answer.capacity_bytes, answer.node_expansion_required))
}

#[tokio::test(start_paused = true)]
async fn a_volume_grows_detached_and_attached() {
    let world = World::open_on(real(), options()).await;
    let id = world.volume("pvc-1", 1).await.volume_id;
    assert_eq!(expand(&world, &id, 2, 0).await.unwrap(), (2 * GIB, true));
    let server = world.server("node-1").await;
    world.attach(&id, &server).await.unwrap();
    assert_eq!(expand(&world, &id, 3, 0).await.unwrap(), (3 * GIB, true));
    assert_eq!(world.one("volumes", &id).await["size"], 3);
    world.requests();
    assert_eq!(expand(&world, &id, 3, 0).await.unwrap(), (3 * GIB, true));
    assert_eq!(
        world.requests().keys().collect::<Vec<_>>(),
        ["GET /v3/{project}/volumes/detail"]
    );
    refused(
        expand(&world, &id, 2, 2).await,
        Code::OutOfRange,
        "3 GiB are more than limit_bytes",
    );
    refused(
        expand(&world, "absent", 2, 0).await,
        Code::NotFound,
        "absent does not exist",
    );
}

#[tokio::test(start_paused = true)]
async fn a_quota_is_told_as_an_exhausted_resource() {
    let cloud = CloudOptions {
        quotas: [("gigabytes".to_owned(), 5)].into(),
        ..CloudOptions::default()
    };
    let world = World::open_on(cloud, options()).await;
    let id = world.volume("pvc-1", 4).await.volume_id;
    refused(
        world.create(new_volume("pvc-2", 2)).await,
        Code::ResourceExhausted,
        "exceed",
    );
    refused(
        expand(&world, &id, 7, 0).await,
        Code::ResourceExhausted,
        "exceed",
    );
    let left = world
        .driver
        .get_capacity(minutes(3), Default::default())
        .await
        .unwrap();
    assert_eq!(left.available_capacity, GIB);
}

#[tokio::test(start_paused = true)]
async fn a_volume_that_others_need_is_not_deleted() {
    let world = World::open().await;
    let id = world.volume("pvc-1", 1).await.volume_id;
    let server = world.server("node-1").await;
    world.attach(&id, &server).await.unwrap();
    refused(world.delete(&id).await, Code::FailedPrecondition, &server);
    world.detach(&id, &server).await.unwrap();
    let snapshot = world.snapshot("snap", &id, &[]).await.unwrap().snapshot_id;
    refused(
        world.delete(&id).await,
        Code::FailedPrecondition,
        "snapshot",
    );
    world.delete_snapshot(&snapshot).await.unwrap();
    world.delete(&id).await.unwrap();
    world.delete(&id).await.unwrap();
    assert!(world.all("volumes").await.is_empty());
}

type Change = Box<dyn Fn(&mut CreateVolumeRequest)>;

#[tokio::test(start_paused = true)]
async fn wrong_requests_are_refused_before_the_cloud_is_asked() {
    let world = World::open().await;
    world.requests();
    let change: Vec<(&str, Change)> = vec![
        ("name is missing", Box::new(|it| it.name.clear())),
        (
            "volume_capabilities are missing",
            Box::new(|it| it.volume_capabilities.clear()),
        ),
        (
            "access_mode is missing or unknown",
            Box::new(|it| it.volume_capabilities[0].access_mode = None),
        ),
        (
            "access_type is missing",
            Box::new(|it| it.volume_capabilities[0].access_type = None),
        ),
        (
            "`avaliability` of the StorageClass is unknown; there are: type, availability, format",
            Box::new(|it| it.parameters.extend(pairs(&[("avaliability", "az1")]))),
        ),
        (
            "fs_type `ntfs` is none of btrfs, ext2, ext3, ext4, xfs",
            Box::new(|it| {
                let fs_type = "ntfs".to_owned();
                let mount = MountVolume {
                    fs_type,
                    ..MountVolume::default()
                };
                it.volume_capabilities[0].access_type = Some(AccessType::Mount(mount));
            }),
        ),
        (
            "name is missing",
            Box::new(|it| " \n\u{1f}".clone_into(&mut it.name)),
        ),
        (
            "the name has 1000 characters, and Cinder takes 255",
            Box::new(|it| it.name = "😀".repeat(1000)),
        ),
        (
            "a size is not negative",
            Box::new(|it| it.capacity_range.as_mut().unwrap().required_bytes = -1),
        ),
        (
            "names the cloud `nowhere`",
            Box::new(|it| it.secrets = pairs(&[("cloud", "nowhere")])),
        ),
        (
            "volume_content_source.type is missing",
            Box::new(|it| it.volume_content_source = Some(VolumeContentSource::default())),
        ),
        (
            "`iops` of the VolumeAttributesClass is unknown",
            Box::new(|it| it.mutable_parameters = pairs(&[("iops", "1")])),
        ),
    ];
    for (words, change) in change {
        let mut request = new_volume("pvc-1", 1);
        change(&mut request);
        refused(world.create(request).await, Code::InvalidArgument, words);
    }
    let mut request = new_volume("pvc-1", 1);
    request.capacity_range.as_mut().unwrap().limit_bytes = 1;
    let words = "limit_bytes 1 is less than required_bytes 1073741824";
    refused(world.create(request).await, Code::OutOfRange, words);
    let mut request = new_volume("pvc-1", 1);
    request.capacity_range.as_mut().unwrap().required_bytes = i64::MAX;
    let words = "Cinder has at most 2147483647 GiB";
    refused(world.create(request).await, Code::OutOfRange, words);
    let grown = world.driver.controller_expand_volume(
        minutes(3),
        ControllerExpandVolumeRequest {
            volume_id: "any".to_owned(),
            capacity_range: Some(CapacityRange {
                required_bytes: i64::MAX,
                limit_bytes: 0,
            }),
            ..ControllerExpandVolumeRequest::default()
        },
    );
    refused(grown.await, Code::OutOfRange, words);
    assert!(world.requests().is_empty());
}

/// Cinder cuts white space off the ends of names.
#[tokio::test(start_paused = true)]
async fn a_name_with_white_space_around_it_is_found_again() {
    let world = World::open().await;
    let id = world.volume("\u{1c}pvc-1 \n", 1).await.volume_id;
    assert_eq!(world.volume("\u{1c}pvc-1 \n", 1).await.volume_id, id);
    let snapshot = world.snapshot(" snap\t", &id, &[]).await.unwrap();
    assert_eq!(world.snapshot(" snap\t", &id, &[]).await.unwrap(), snapshot);
    assert_eq!(world.all("volumes").await.len(), 1);
    assert_eq!(world.all("snapshots").await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn names_and_metadata_of_any_kind_arrive_in_the_cloud() {
    let world = World::open().await;
    let longest = "😀".repeat(255);
    for name in ["%41%0a", "a\nb", "😀", "../../etc", "' OR 1=1 --", &longest] {
        let mut request = new_volume(name, 1);
        request.parameters = pairs(&[("csi.storage.k8s.io/pvc/name", &"x".repeat(1000))]);
        let id = world.create(request.clone()).await.unwrap().volume_id;
        let created = world.one("volumes", &id).await;
        assert_eq!(created["name"], name);
        let value = created["metadata"]["csi.storage.k8s.io/pvc/name"]
            .as_str()
            .unwrap();
        assert_eq!(value.len(), 255);
        assert_eq!(world.create(request).await.unwrap().volume_id, id);
        world.delete(&id).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn growth_that_cinder_cannot_do_is_told_in_its_words() {
    let world = World::open().await;
    let id = world.volume("pvc-1", 1).await.volume_id;
    world.trouble("extend-fails").await;
    let refusal = expand(&world, &id, 2, 0).await.unwrap_err();
    assert_eq!(
        refusal.code,
        Code::FailedPrecondition,
        "{}",
        refusal.message
    );
    let words = format!("Cinder could not extend volume {id}: ");
    assert!(refusal.message.starts_with(&words), "{}", refusal.message);
}
