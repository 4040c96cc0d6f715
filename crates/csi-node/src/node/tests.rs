use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use csi_spec::volume_capability::{self, AccessType, BlockVolume, MountVolume, access_mode};
use csi_spec::{CapacityRange, Node as _, VolumeCapability};
use parking_lot::Mutex;

use super::*;
use crate::device::{Bus, Disk, Error};
use crate::metadata::{Drives, Service, Source};

const VOLUME: &str = "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9";

/// A machine whose only disk is absent, broken, or looked for as long as a test wants.
#[derive(Default)]
struct Disks {
    broken: AtomicBool,
    gate: Mutex<Option<(Sender<()>, Receiver<()>)>>,
}

impl Devices for Disks {
    fn find(&self, volume: &str) -> Result<Option<Disk>, Error> {
        let gate = self.gate.lock().take();
        if let Some((entered, go)) = gate {
            entered.send(()).unwrap();
            go.recv().unwrap();
        }
        match self.broken.load(Ordering::Relaxed) {
            true => Err(Error::Ambiguous {
                volume: volume.to_owned(),
                disks: "vdb, vdc".to_owned(),
            }),
            false => Ok(None),
        }
    }

    fn rescan(&self, _: Option<&Disk>) {}

    fn buses(&self) -> Vec<Bus> {
        vec![Bus::Virtio, Bus::Virtio]
    }

    fn exists(&self, _: u32, _: u32) -> bool {
        true
    }
}

fn node_with(disks: Arc<Disks>, metadata: Metadata) -> Node {
    let options = Options {
        volume_limit: None,
        topology: true,
        additional_topology: [("rack".to_owned(), "7".to_owned())].into(),
        dev: "/dev".into(),
        alpha: false,
    };
    Node::new(options, disks, Arc::new(metadata))
}

fn node() -> Node {
    node_with(Arc::default(), nowhere())
}

/// No source of facts.
fn nowhere() -> Metadata {
    let service = Service::new(([127, 0, 0, 1], 1).into(), Duration::from_secs(1));
    Metadata::new(
        vec![Source::ConfigDrive],
        Drives::new("/no/sys", "/no/dev"),
        service,
    )
}

/// Without time to wait for a device.
fn now() -> Context {
    Context {
        deadline: Some(Instant::now()),
    }
}

fn capability(access_type: AccessType) -> Option<VolumeCapability> {
    Some(VolumeCapability {
        access_mode: Some(volume_capability::AccessMode {
            mode: access_mode::Mode::SingleNodeWriter.into(),
        }),
        access_type: Some(access_type),
    })
}

fn staging() -> NodeStageVolumeRequest {
    NodeStageVolumeRequest {
        volume_id: VOLUME.to_owned(),
        staging_target_path: "/no/staging".to_owned(),
        volume_capability: capability(AccessType::Mount(MountVolume::default())),
        ..Default::default()
    }
}

fn publishing(access_type: AccessType) -> NodePublishVolumeRequest {
    NodePublishVolumeRequest {
        volume_id: VOLUME.to_owned(),
        staging_target_path: "/no/staging".to_owned(),
        target_path: "/no/target".to_owned(),
        volume_capability: capability(access_type),
        ..Default::default()
    }
}

/// A failure, which names the volume.
#[track_caller]
fn failure<T>(answer: Result<T, Status>, code: Code, words: &str) {
    let Err(status) = answer else {
        panic!("it succeeded, without {words}");
    };
    assert_eq!(status.code, code, "{status}");
    assert!(status.message.contains(VOLUME), "{status}");
    assert!(status.message.contains(words), "{status}");
}

#[tokio::test]
async fn a_device_that_is_not_known_is_unavailable() {
    let disks = Arc::new(Disks::default());
    let node = node_with(Arc::clone(&disks), nowhere());
    let absent = "no disk of this machine";
    let answer = node.node_stage_volume(now(), staging()).await;
    failure(answer, Code::Unavailable, absent);
    let block = publishing(AccessType::Block(BlockVolume {}));
    let answer = node.node_publish_volume(now(), block).await;
    failure(answer, Code::Unavailable, absent);
    disks.broken.store(true, Ordering::Relaxed);
    let answer = node.node_stage_volume(now(), staging()).await;
    failure(answer, Code::Unavailable, "several disks");
}

#[tokio::test]
async fn what_is_not_staged_is_not_published() {
    let mount = publishing(AccessType::Mount(MountVolume::default()));
    let answer = node().node_publish_volume(now(), mount).await;
    failure(
        answer,
        Code::FailedPrecondition,
        "is not staged at /no/staging",
    );
}

#[tokio::test]
async fn paths_without_a_mount_are_not_found_and_are_clean() {
    let node = node();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_str().unwrap().to_owned();
    for volume_path in ["/no/such/path", &path] {
        let stats = NodeGetVolumeStatsRequest {
            volume_id: VOLUME.to_owned(),
            volume_path: volume_path.to_owned(),
            ..Default::default()
        };
        let answer = node.node_get_volume_stats(now(), stats).await;
        failure(answer, Code::NotFound, volume_path);
        let expand = NodeExpandVolumeRequest {
            volume_id: VOLUME.to_owned(),
            volume_path: volume_path.to_owned(),
            capacity_range: Some(CapacityRange::default()),
            ..Default::default()
        };
        let answer = node.node_expand_volume(now(), expand).await;
        failure(answer, Code::NotFound, volume_path);
    }
    let unpublish = |target: &str| NodeUnpublishVolumeRequest {
        volume_id: VOLUME.to_owned(),
        target_path: target.to_owned(),
    };
    let call = node.node_unpublish_volume(now(), unpublish("/no/such/path"));
    call.await.unwrap();
    let unstage = NodeUnstageVolumeRequest {
        volume_id: VOLUME.to_owned(),
        staging_target_path: "/no/such/path".to_owned(),
    };
    node.node_unstage_volume(now(), unstage).await.unwrap();
    // Data that are there without a mount are somebody's.
    std::fs::write(directory.path().join("data"), "x").unwrap();
    let answer = node.node_unpublish_volume(now(), unpublish(&path)).await;
    failure(answer, Code::Internal, "not empty");
    let file = directory.path().join("data");
    let answer = node
        .node_unpublish_volume(now(), unpublish(file.to_str().unwrap()))
        .await;
    failure(
        answer,
        Code::Internal,
        "neither an empty file nor a directory",
    );
    std::fs::write(&file, "").unwrap();
    let call = node.node_unpublish_volume(now(), unpublish(file.to_str().unwrap()));
    call.await.unwrap();
    node.node_unpublish_volume(now(), unpublish(&path))
        .await
        .unwrap();
    assert!(!directory.path().exists());
}

#[tokio::test]
async fn a_second_call_for_a_volume_is_aborted_and_the_first_outlives_its_caller() {
    let disks = Arc::new(Disks::default());
    let ((entered, waits), (go, goes)) = (channel(), channel());
    *disks.gate.lock() = Some((entered, goes));
    let node = node_with(Arc::clone(&disks), nowhere());
    let first = tokio::spawn({
        let node = node.clone();
        async move { node.node_stage_volume(now(), staging()).await }
    });
    tokio::task::spawn_blocking(move || waits.recv().unwrap())
        .await
        .unwrap();
    let answer = node.node_stage_volume(now(), staging()).await;
    failure(answer, Code::Aborted, "another call");
    // A call that only reads does not wait.
    let stats = NodeGetVolumeStatsRequest {
        volume_id: VOLUME.to_owned(),
        volume_path: "some/path".to_owned(),
        ..Default::default()
    };
    let answer = node.node_get_volume_stats(now(), stats).await;
    failure(answer, Code::NotFound, "not absolute");
    let other = NodeStageVolumeRequest {
        volume_id: format!("{VOLUME}-2"),
        ..staging()
    };
    let answer = node.node_stage_volume(now(), other).await;
    failure(answer, Code::Unavailable, "no disk");
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    // Its work still goes on.
    let answer = node.node_stage_volume(now(), staging()).await;
    failure(answer, Code::Aborted, "another call");
    go.send(()).unwrap();
    while node.0.locks.take(VOLUME).is_none() {
        tokio::task::yield_now().await;
    }
    let answer = node.node_stage_volume(now(), staging()).await;
    failure(answer, Code::Unavailable, "no disk");
}

#[tokio::test]
async fn a_node_knows_itself_by_its_metadata() {
    let answer = node().node_get_info(now(), NodeGetInfoRequest {}).await;
    let status = answer.unwrap_err();
    assert_eq!(status.code, Code::Unavailable);
    assert!(
        status.message.contains("no disk is labelled config-2"),
        "{status}"
    );

    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(root.path().join("class/block/sr0")).unwrap();
    let image = include_bytes!("../../tests/images/nova.iso.gz").as_slice();
    let mut file = std::fs::File::create(root.path().join("sr0")).unwrap();
    std::io::copy(&mut flate2::read::GzDecoder::new(image), &mut file).unwrap();
    let drives = Drives::new(root.path(), root.path());
    let metadata = Metadata::new(vec![Source::ConfigDrive], drives, Service::default());
    let node = node_with(Arc::default(), metadata);
    let info = node
        .node_get_info(now(), NodeGetInfoRequest {})
        .await
        .unwrap();
    assert_eq!(info.node_id, VOLUME);
    let segments = info.accessible_topology.unwrap().segments;
    let expected = [
        ("rack", "7"),
        ("topology.cinder.csi.openstack.org/zone", "az1"),
    ];
    let expected = expected.map(|(key, value)| (key.to_owned(), value.to_owned()));
    assert_eq!(segments, expected.into());
    assert_eq!(info.max_volumes_per_node, 24);
}

#[test]
fn volumes_that_the_kubelet_has_staged_or_published_are_counted_once() {
    let kubelet = "/var/lib/kubelet/plugins/kubernetes.io/csi";
    let lines = [
        "1 0 254:0 / / rw - ext4 /dev/vda rw".to_owned(),
        format!("2 1 254:16 / {kubelet}/cinder.csi.openstack.org/a/globalmount rw - ext4 /dev/vdb rw"),
        "3 1 254:16 / /var/lib/kubelet/pods/p/volumes/kubernetes.io~csi/a/mount rw - ext4 /dev/vdb rw".to_owned(),
        format!("4 1 0:40 / {kubelet}/cinder.csi.openstack.org/b/globalmount rw - btrfs /dev/vdc rw"),
        format!("5 1 0:6 /vdd {kubelet}/volumeDevices/publish/c/pod1 rw - devtmpfs udev rw"),
        format!("6 1 0:6 /vdd {kubelet}/volumeDevices/publish/c/pod2 rw - devtmpfs udev rw"),
        format!("7 1 254:96 / {kubelet}/other.csi.example.org/d/globalmount rw - ext4 /dev/vdg rw"),
    ];
    let mounts = mountinfo::parse(lines.join("\n").as_bytes()).unwrap();
    assert_eq!(layers::volumes_in_use(&mounts), 3);
}

/// The path of a block volume is the same for every driver.
#[test]
fn block_volumes_of_other_drivers_are_not_counted() {
    let root = tempfile::tempdir().unwrap();
    let all = root.path().join("plugins/kubernetes.io/csi/volumeDevices");
    let mut lines = Vec::new();
    for (number, (name, data)) in (0..).zip([
        ("ours", Some(r#"{"driverName":"cinder.csi.openstack.org"}"#)),
        ("theirs", Some(r#"{"driverName":"lvm.example.org"}"#)),
        ("cut", Some(r#"{"driverName":"lvm.exa"#)),
        ("silent", None),
    ]) {
        if let Some(data) = data {
            std::fs::create_dir_all(all.join(name).join("data")).unwrap();
            std::fs::write(all.join(name).join("data/vol_data.json"), data).unwrap();
        }
        let target = all.join("publish").join(name).join("pod");
        let target = target.display();
        lines.push(format!(
            "{number} 1 0:6 /vd{number} {target} rw - devtmpfs udev rw"
        ));
    }
    let mounts = mountinfo::parse(lines.join("\n").as_bytes()).unwrap();
    assert_eq!(layers::volumes_in_use(&mounts), 3);
}
