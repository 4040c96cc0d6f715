//! A machine of a test: its disks are loop devices, which it finds by links as udev makes them.

use std::collections::HashSet;
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use csi_node::context;
use csi_node::device::{Bus, Devices, Disk, Error, Search};
use csi_node::metadata::{Drives, Metadata, Service};
use csi_node::mountinfo::{self, Mount};
use csi_node::node::{Node, Options};
use csi_spec::volume_capability::{AccessMode, AccessType, BlockVolume, MountVolume, access_mode};
use csi_spec::volume_health::VolumeHealthEntry;
use csi_spec::{CapacityRange, Node as _};
use csi_spec::{
    NodeExpandVolumeRequest, NodeGetVolumeHealthRequest, NodeGetVolumeStatsRequest,
    NodePublishVolumeRequest, NodeStageVolumeRequest, NodeUnpublishVolumeRequest,
    NodeUnstageVolumeRequest, VolumeCapability, VolumeUsage,
};
use grpc::{Context, Status};

/// The directory of a test, in the process that has a mount namespace of its own.
const INSIDE: &str = "FERROSTACK_CSI_NODE_INSIDE";
pub(crate) const MIB: u64 = 1 << 20;

/// Runs a test in a mount namespace, if this machine has what it needs.
pub(crate) fn isolated(name: &str, programs: &[&str], test: fn(&Machine)) {
    if let Some(directory) = std::env::var_os(INSIDE) {
        return test(&Machine::new(Path::new(&directory)));
    }
    if !rustix::process::geteuid().is_root() {
        return skipped::because("only root has loop devices and mounts");
    }
    let absent = |program: &&&str| {
        let found = Command::new("sh")
            .args(["-c", "command -v \"$0\"", program])
            .output();
        !found.is_ok_and(|found| found.status.success())
    };
    let needed = ["unshare", "losetup"];
    if let Some(program) = needed.iter().chain(programs).find(absent) {
        return skipped::because(format!("there is no {program}"));
    }
    for (program, args) in [
        ("losetup", ["--find", "--noheadings"]),
        ("unshare", ["--mount", "true"]),
    ] {
        let tried = Command::new(program).args(args).output().unwrap();
        if !tried.status.success() {
            let why = String::from_utf8_lossy(&tried.stderr).trim().to_owned();
            return skipped::because(format!("{program} does not work here: {why}"));
        }
    }
    // It goes when the mounts in it have gone.
    let directory = tempfile::tempdir().unwrap();
    let output = Command::new("unshare")
        .args(["--mount", "--propagation", "private"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(INSIDE, directory.path())
        .output()
        .unwrap();
    detach(directory.path());
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{errors}");
    assert!(
        text.contains("1 passed"),
        "no test is called {name}: {text}"
    );
}

/// Loop devices that a test has left because it failed.
fn detach(directory: &Path) {
    let listed = Command::new("losetup")
        .args(["--noheadings", "--output", "NAME,BACK-FILE"])
        .output()
        .unwrap();
    let directory = directory.to_str().unwrap();
    for line in String::from_utf8_lossy(&listed.stdout).lines() {
        if let Some((device, file)) = line.split_once(' ')
            && file.contains(directory)
        {
            drop(Command::new("losetup").args(["-d", device]).output());
        }
    }
}

pub(crate) struct Machine {
    pub(crate) node: Node,
    pub(crate) root: PathBuf,
    gone: Arc<Gone>,
    runtime: tokio::runtime::Runtime,
}

/// A disk of a volume.
pub(crate) struct Volume {
    pub(crate) id: String,
    pub(crate) device: PathBuf,
    image: PathBuf,
    link: PathBuf,
    node: PathBuf,
}

/// Devices, of which some are gone: a loop device leaves its number behind.
struct Gone {
    search: Search,
    numbers: Mutex<HashSet<(u32, u32)>>,
    /// Holder of every disk.
    holder: Mutex<Option<String>>,
    /// After so many looks no disk is found any more.
    looks: Mutex<Option<usize>>,
    /// Of each look, whether this process had the disk open.
    open: Mutex<Vec<bool>>,
}

/// Major and minor number of a device.
fn number(device: &Path) -> (u32, u32) {
    let number = fs::metadata(device).unwrap().rdev();
    (rustix::fs::major(number), rustix::fs::minor(number))
}

/// True if this process has a file open.
fn is_open(path: &Path) -> bool {
    let Ok(path) = path.canonicalize() else {
        return false;
    };
    let open = fs::read_dir("/proc/self/fd").unwrap();
    open.flatten()
        .any(|one| fs::read_link(one.path()).is_ok_and(|it| it == path))
}

impl Devices for Gone {
    fn find(&self, volume: &str) -> Result<Option<Disk>, Error> {
        if let Some(looks) = self.looks.lock().unwrap().as_mut() {
            match looks.checked_sub(1) {
                Some(left) => *looks = left,
                None => return Ok(None),
            }
        }
        let holder = self.holder.lock().unwrap().clone();
        let found = self.search.find(volume)?;
        let open = found.as_ref().is_some_and(|disk| is_open(&disk.path));
        self.open.lock().unwrap().push(open);
        Ok(found.map(|disk| Disk { holder, ..disk }))
    }

    fn rescan(&self, disk: Option<&Disk>) {
        self.search.rescan(disk);
    }

    fn buses(&self) -> Vec<Bus> {
        self.search.buses()
    }

    fn exists(&self, major: u32, minor: u32) -> bool {
        let gone = self.numbers.lock().unwrap().contains(&(major, minor));
        !gone && self.search.exists(major, minor)
    }
}

impl Machine {
    fn new(directory: &Path) -> Self {
        let root = directory.canonicalize().unwrap();
        let dev = root.join("dev");
        fs::create_dir_all(dev.join("disk/by-id")).unwrap();
        let gone = Arc::new(Gone {
            search: Search::new("/sys", &dev),
            numbers: Mutex::default(),
            holder: Mutex::default(),
            looks: Mutex::default(),
            open: Mutex::default(),
        });
        let options = Options {
            volume_limit: None,
            topology: true,
            additional_topology: Default::default(),
            dev: dev.clone(),
            alpha: true,
        };
        let drives = Drives::new("/no/sys", &dev);
        let metadata = Metadata::new(Vec::new(), drives, Service::default());
        let devices = Arc::clone(&gone) as Arc<dyn Devices>;
        Self {
            node: Node::new(options, devices, Arc::new(metadata)),
            root,
            gone,
            runtime: tokio::runtime::Runtime::new().unwrap(),
        }
    }

    /// A disk of zeros.
    pub(crate) fn volume(&self, number: u8, size: u64) -> Volume {
        let id = format!("0a1b2c3d-4e5f-60{number:02}-8293-a4b5c6d7e8f9");
        let image = self.root.join(format!("{id}.img"));
        File::create(&image).unwrap().set_len(size).unwrap();
        let device = run("losetup", &["-f", "--show", image.to_str().unwrap()]);
        let device = PathBuf::from(device.trim());
        let name = device.file_name().unwrap();
        let node = self.root.join("dev").join(name);
        symlink(&device, &node).unwrap();
        let link = self
            .root
            .join(format!("dev/disk/by-id/virtio-{}", &id[..20]));
        symlink(&device, &link).unwrap();
        Volume {
            id,
            device,
            image,
            link,
            node,
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// The device disappears, though something may still be mounted from it.
    pub(crate) fn lose(&self, volume: &Volume) {
        let number = number(&volume.device);
        self.gone.numbers.lock().unwrap().insert(number);
        fs::remove_file(&volume.link).unwrap();
        fs::remove_file(&volume.node).unwrap();
    }

    /// The device is there again.
    pub(crate) fn regain(&self, volume: &Volume) {
        let number = number(&volume.device);
        self.gone.numbers.lock().unwrap().remove(&number);
        symlink(&volume.device, &volume.link).unwrap();
        symlink(&volume.device, &volume.node).unwrap();
    }

    /// A device of this name is on top of every disk.
    pub(crate) fn put_on_top(&self, holder: Option<&str>) {
        *self.gone.holder.lock().unwrap() = holder.map(str::to_owned);
    }

    /// Disks are found so many times more, or for ever.
    pub(crate) fn vanish_after(&self, looks: Option<usize>) {
        *self.gone.looks.lock().unwrap() = looks;
    }

    /// Of each look for a disk since the last question, whether the disk was open.
    pub(crate) fn open_at_looks(&self) -> Vec<bool> {
        std::mem::take(&mut *self.gone.open.lock().unwrap())
    }

    pub(crate) fn stage(&self, volume: &Volume, path: &str, kind: &str) -> Result<(), Status> {
        self.stage_with(volume, path, kind, |_| {})
    }

    pub(crate) fn stage_with(
        &self,
        volume: &Volume,
        path: &str,
        kind: &str,
        change: impl FnOnce(&mut NodeStageVolumeRequest),
    ) -> Result<(), Status> {
        let mut request = NodeStageVolumeRequest {
            volume_id: volume.id.clone(),
            staging_target_path: self.text(path),
            volume_capability: capability(kind),
            ..Default::default()
        };
        change(&mut request);
        let call = self.node.node_stage_volume(self.soon(), request);
        self.runtime.block_on(call).map(drop)
    }

    pub(crate) fn unstage(&self, volume: &Volume, path: &str) -> Result<(), Status> {
        let request = NodeUnstageVolumeRequest {
            volume_id: volume.id.clone(),
            staging_target_path: self.text(path),
        };
        let call = self.node.node_unstage_volume(self.soon(), request);
        self.runtime.block_on(call).map(drop)
    }

    pub(crate) fn publish(
        &self,
        volume: &Volume,
        (staging, target): (&str, &str),
        kind: &str,
        readonly: bool,
    ) -> Result<(), Status> {
        let request = NodePublishVolumeRequest {
            volume_id: volume.id.clone(),
            staging_target_path: self.text(staging),
            target_path: self.text(target),
            volume_capability: capability(kind),
            readonly,
            ..Default::default()
        };
        let call = self.node.node_publish_volume(self.soon(), request);
        self.runtime.block_on(call).map(drop)
    }

    pub(crate) fn unpublish(&self, volume: &Volume, target: &str) -> Result<(), Status> {
        let request = NodeUnpublishVolumeRequest {
            volume_id: volume.id.clone(),
            target_path: self.text(target),
        };
        let call = self.node.node_unpublish_volume(self.soon(), request);
        self.runtime.block_on(call).map(drop)
    }

    pub(crate) fn stats(&self, volume: &Volume, path: &str) -> Result<Vec<VolumeUsage>, Status> {
        let request = NodeGetVolumeStatsRequest {
            volume_id: volume.id.clone(),
            volume_path: self.text(path),
            ..Default::default()
        };
        let call = self.node.node_get_volume_stats(self.soon(), request);
        Ok(self.runtime.block_on(call)?.usage)
    }

    /// Reason and status of what is wrong with a volume that is published or staged at a path.
    pub(crate) fn health(&self, volume: &Volume, path: &str) -> Result<Vec<String>, Status> {
        let request = NodeGetVolumeHealthRequest {
            volume_id: volume.id.clone(),
            volume_publish_path: self.text(path),
            staging_target_path: String::new(),
        };
        let call = self.node.node_get_volume_health(self.soon(), request);
        let health = self.runtime.block_on(call)?.volume_health.unwrap();
        assert_eq!(health.volume_id, volume.id);
        let words = |it: VolumeHealthEntry| format!("{:?} {}", it.status(), it.reason);
        Ok(health.health_statuses.into_iter().map(words).collect())
    }

    pub(crate) fn expand(&self, volume: &Volume, path: &str, size: u64) -> Result<u64, Status> {
        self.expand_with(volume, path, size, None)
    }

    /// As the kubelet asks, with the capability of the staged volume.
    pub(crate) fn expand_staged(
        &self,
        volume: &Volume,
        path: &str,
        size: u64,
        kind: &str,
    ) -> Result<u64, Status> {
        self.expand_with(volume, path, size, capability(kind))
    }

    fn expand_with(
        &self,
        volume: &Volume,
        path: &str,
        size: u64,
        volume_capability: Option<VolumeCapability>,
    ) -> Result<u64, Status> {
        let request = NodeExpandVolumeRequest {
            volume_id: volume.id.clone(),
            volume_path: self.text(path),
            capacity_range: Some(CapacityRange {
                required_bytes: size.try_into().unwrap(),
                limit_bytes: 0,
            }),
            volume_capability,
            ..Default::default()
        };
        let call = self.node.node_expand_volume(self.soon(), request);
        let response = self.runtime.block_on(call)?;
        Ok(response.capacity_bytes.try_into().unwrap())
    }

    /// Mounts at a path.
    pub(crate) fn mounts(&self, path: &str) -> Vec<Mount> {
        let mounts = mountinfo::read().unwrap();
        let at = mountinfo::at(&mounts, &self.path(path));
        at.into_iter().cloned().collect()
    }

    fn text(&self, path: &str) -> String {
        self.path(path).to_str().unwrap().to_owned()
    }

    /// A call that hardly waits for a device.
    fn soon(&self) -> Context {
        let deadline = tokio::time::Instant::now() + Duration::from_millis(2200);
        Context {
            deadline: Some(deadline),
        }
    }
}

impl Volume {
    /// The cloud makes it larger, and the machine sees that.
    pub(crate) fn grow(&self, size: u64) {
        let image = File::options().write(true).open(&self.image).unwrap();
        image.set_len(size).unwrap();
        run("losetup", &["-c", self.device.to_str().unwrap()]);
    }

    pub(crate) fn write(&self, offset: u64, bytes: &[u8]) {
        let device = File::options().write(true).open(&self.device).unwrap();
        device.write_all_at(bytes, offset).unwrap();
        device.sync_all().unwrap();
    }

    /// It becomes a clone.
    pub(crate) fn copy(&self, source: &Self) {
        let args = [source.image.to_str(), self.device.to_str()].map(Option::unwrap);
        let [from, to] = args.map(str::to_owned);
        run(
            "dd",
            &[
                &format!("if={from}"),
                &format!("of={to}"),
                "bs=1M",
                "conv=sparse,fsync",
            ],
        );
    }

    /// All of it, as the host sees it.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        fs::read(&self.image).unwrap()
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        // Its number may be the next one's. It ends with the last mount, which ends with the namespace.
        for link in [&self.link, &self.node] {
            drop(fs::remove_file(link));
        }
        drop(Command::new("losetup").arg("-d").arg(&self.device).output());
    }
}

/// `block`, or the type of a file system with its options: `xfs`, `ext4,noatime`.
fn capability(kind: &str) -> Option<VolumeCapability> {
    let mut words = kind.split(',').map(str::to_owned);
    let first = words.next().unwrap_or_default();
    // `rwop` stands before the kind.
    let (mode, first) = match first.as_str() {
        "rwop" => (
            access_mode::Mode::SingleNodeSingleWriter,
            words.next().unwrap_or_default(),
        ),
        _ => (access_mode::Mode::SingleNodeWriter, first),
    };
    let access_type = match first.as_str() {
        "block" => AccessType::Block(BlockVolume {}),
        _ => AccessType::Mount(MountVolume {
            fs_type: first,
            mount_flags: words.collect(),
            volume_mount_group: String::new(),
        }),
    };
    Some(VolumeCapability {
        access_mode: Some(AccessMode { mode: mode.into() }),
        access_type: Some(access_type),
    })
}

/// The publish context of a volume of this size.
pub(crate) fn sized(size: u64) -> impl FnOnce(&mut NodeStageVolumeRequest) {
    move |request| {
        let context = &mut request.publish_context;
        context.insert(context::SIZE.to_owned(), size.to_string());
    }
}

/// A key of the volume context.
pub(crate) fn with(key: &str, value: &str) -> impl FnOnce(&mut NodeStageVolumeRequest) {
    let (key, value) = (key.to_owned(), value.to_owned());
    move |request| {
        request.volume_context.insert(key, value);
    }
}

#[track_caller]
pub(crate) fn run(program: &str, args: &[&str]) -> String {
    let output = Command::new(program).args(args).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

#[track_caller]
pub(crate) fn failure<T: std::fmt::Debug>(
    answer: Result<T, Status>,
    code: grpc::Code,
    words: &str,
) {
    let status = answer.unwrap_err();
    assert_eq!(status.code, code, "{status}");
    assert!(status.message.contains(words), "{status}");
}

/// True if the directory is empty.
pub(crate) fn is_empty(path: &Path) -> bool {
    fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
}
