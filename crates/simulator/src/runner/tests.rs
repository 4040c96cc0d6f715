//! Servers with runners that are shell scripts (tests/runners).

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::Value;
use tempfile::TempDir;

use super::*;
use crate::data_plane::Instance;
use crate::machine::{Address, Machine, Member, Port, Volume, VolumeAnswer};

const ID: &str = "3f2b8a54-0000-4000-8000-000000000001";

/// The reports of the machines to the cloud.
#[derive(Default)]
struct Recorder {
    machine: Mutex<Option<Machine>>,
    events: Mutex<Vec<String>>,
}

impl Servers for Recorder {
    fn machine(&self, _: &str) -> Option<Machine> {
        self.machine.lock().clone()
    }

    fn ended(&self, server: &str, boot: u64) {
        let event = format!("{server} ended in boot {boot}");
        self.events.lock().push(event);
    }

    fn failed(&self, server: &str, _: u64, fault: &str) {
        self.events.lock().push(format!("{server} failed: {fault}"));
    }

    fn answers_for_volumes(&self, _: &str, boot: u64) {
        let event = format!("answers for volumes in boot {boot}");
        self.events.lock().push(event);
    }

    fn volume_answered(&self, _: &str, volume: &str, answer: &VolumeAnswer) {
        self.events.lock().push(format!("{volume}: {answer:?}"));
    }

    fn answering(&self, _: &[Member]) {}
}

struct Bed {
    runners: Runners,
    recorder: Arc<Recorder>,
    world: watch::Sender<Arc<DataPlane>>,
    shutdown: CancellationToken,
    metadata: String,
    directory: TempDir,
}

fn runner(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/runners")
        .join(name)
}

fn instance() -> Instance {
    Instance {
        id: ID.to_owned(),
        name: "Node 1".to_owned(),
        project_id: "p".to_owned(),
        user_data: Some(Bytes::from_static(b"no cloud-config at all\n")),
        // The metadata service identifies servers by address; this test connects from the loopback.
        fixed_ips: vec![[127, 0, 0, 1].into()],
        availability_zone: "az1".to_owned(),
        metadata: BTreeMap::from([("role".to_owned(), "worker".to_owned())]),
        hostname: "node-1".to_owned(),
        running: true,
        boot: 1,
        disk: 0,
        vcpus: 2,
        memory_mib: 2048,
        disk_gib: 20,
        image: "debian".to_owned(),
    }
}

fn hardware() -> Machine {
    Machine {
        flavor: "m1.small".to_owned(),
        config_drive: true,
        ports: vec![Port {
            id: "0123456789abcdef".to_owned(),
            mac_address: "fa:16:3e:00:00:01".to_owned(),
            network_id: "n".to_owned(),
            network_name: "net".to_owned(),
            mtu: 1450,
            addresses: vec![Address {
                address: [10, 6, 0, 9].into(),
                subnet_id: "s".to_owned(),
                cidr: "10.6.0.0/24".parse().unwrap(),
                gateway: Some([10, 6, 0, 1].into()),
                dns_nameservers: vec!["9.9.9.9".to_owned()],
                routes: Vec::new(),
                dhcp: true,
            }],
            open: Vec::new(),
        }],
        ..Machine::default()
    }
}

fn world(instance: Instance) -> Arc<DataPlane> {
    Arc::new(DataPlane {
        instances: vec![instance],
        ..DataPlane::default()
    })
}

async fn bed(program: &str) -> Bed {
    // Long enough for a shell on a busy machine to handle its SIGTERM.
    bed_with_patience(program, Duration::from_secs(30)).await
}

async fn bed_with_patience(program: &str, patience: Duration) -> Bed {
    let directory = TempDir::new().unwrap();
    let recorder = Arc::new(Recorder::default());
    *recorder.machine.lock() = Some(hardware());
    let (world, receiver) = watch::channel(world(instance()));
    let shutdown = CancellationToken::new();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let metadata = format!("http://{}", listener.local_addr().unwrap());
    let options = Options {
        patience,
        probe: Duration::from_millis(20),
        ..Options::new(runner(program), directory.path().to_owned())
    };
    let runners = Runners::start(
        receiver,
        recorder.clone(),
        listener,
        options,
        shutdown.clone(),
    )
    .await
    .unwrap();
    Bed {
        runners,
        recorder,
        world,
        shutdown,
        metadata,
        directory,
    }
}

impl Bed {
    fn change(&self, change: impl FnOnce(&mut Instance)) {
        let mut next = instance();
        change(&mut next);
        self.world.send_replace(world(next));
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(ID).join(name)
    }

    fn volumes(&self, volumes: &[(&str, u64)]) {
        let volume = |(id, size_gib): &(&str, u64)| Volume {
            id: (*id).to_owned(),
            device: "/dev/vdb".to_owned(),
            size_gib: *size_gib,
        };
        let mut machine = self.recorder.machine.lock();
        machine.as_mut().unwrap().volumes = volumes.iter().map(volume).collect();
    }

    fn volume(&self, id: &str) -> Option<Value> {
        let text = std::fs::read(self.file(&format!("volumes/{id}.json"))).ok()?;
        Some(serde_json::from_slice(&text).unwrap())
    }

    async fn shows(&self, words: &str) {
        eventually(words, || self.runners.console(ID).contains(words)).await;
    }

    async fn reports(&self, words: &str) {
        eventually(words, || {
            self.recorder
                .events
                .lock()
                .iter()
                .any(|it| it.contains(words))
        })
        .await;
    }
}

async fn eventually(what: &str, mut check: impl FnMut() -> bool) {
    let started = Instant::now();
    while !check() {
        assert!(
            started.elapsed() < Duration::from_secs(120),
            "waited in vain for {what}"
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn runs(pid: &str) -> bool {
    process::started(pid.trim().parse().unwrap()).is_some()
}

#[tokio::test]
async fn a_machine_runs_as_long_as_its_server_and_keeps_its_disk_over_a_reboot() {
    let bed = bed("machine").await;
    bed.shows("started 1 times\n").await;
    let document: Value =
        serde_json::from_slice(&std::fs::read(bed.file("document.json")).unwrap()).unwrap();
    assert_eq!(document["id"], ID);
    assert_eq!(document["hostname"], "node-1");
    assert_eq!(document["flavor"]["memory_mib"], 2048);
    assert_eq!(document["metadata"]["role"], "worker");
    assert_eq!(document["ports"][0]["addresses"][0]["gateway"], "10.6.0.1");
    assert_eq!(document["metadata_service"], bed.metadata.as_str());
    assert_eq!(document["user_data"], "bm8gY2xvdWQtY29uZmlnIGF0IGFsbAo=");
    let drive = document["config_drive"].as_str().unwrap();
    let user_data = std::fs::read(Path::new(drive).join("openstack/latest/user_data")).unwrap();
    assert_eq!(user_data, b"no cloud-config at all\n");

    bed.change(|server| server.boot = 2);
    bed.shows("started 2 times\n").await;
    assert!(
        bed.runners.console(ID).contains("switched off\n"),
        "a reboot shuts down first"
    );
    bed.change(|server| (server.boot, server.running) = (2, false));
    eventually("the end", || {
        bed.runners.console(ID).matches("switched off").count() == 2
    })
    .await;
    assert_eq!(
        bed.recorder.events.lock().len(),
        0,
        "the cloud knows that it switched the server off"
    );

    *bed.recorder.machine.lock() = None;
    bed.world.send_replace(Arc::default());
    eventually("the disk to go", || !bed.file("").exists()).await;
    bed.shutdown.cancel();
    bed.runners.stopped().await;
}

#[tokio::test]
async fn a_running_machine_sees_volumes_come_grow_and_go() {
    // This one answers nothing.
    let bed = bed("machine").await;
    bed.shows("started 1 times\n").await;
    let id = "0a1b2c3d-4e5f-4000-8000-000000000009";
    bed.volumes(&[(id, 1)]);
    eventually("the volume", || bed.volume(id).is_some()).await;
    let document = serde_json::json!({"id": id, "size_gib": 1, "serial": "0a1b2c3d-4e5f-4000-8", "device": "/dev/vdb"});
    assert_eq!(bed.volume(id).unwrap(), document);
    bed.volumes(&[(id, 2)]);
    eventually("its growth", || bed.volume(id).unwrap()["size_gib"] == 2).await;
    // The volumes of a start are there when the program begins.
    bed.change(|server| server.boot = 2);
    bed.shows("started 2 times\n").await;
    assert!(bed.volume(id).is_some());
    bed.volumes(&[]);
    eventually("its end", || bed.volume(id).is_none()).await;
    assert_eq!(*bed.recorder.events.lock(), Vec::<String>::new());
}

#[tokio::test]
async fn a_runner_that_answers_says_when_it_has_a_volume_and_when_not_any_more() {
    let bed = bed("takes-volumes").await;
    bed.reports("answers for volumes in boot 1").await;
    bed.volumes(&[("a", 1)]);
    bed.reports("a: Ready").await;
    bed.volumes(&[("a", 1), ("b", 9)]);
    bed.reports("b: Failed(\"too large\")").await;
    bed.volumes(&[]);
    bed.reports("a: Gone").await;
    bed.reports("b: Gone").await;
    let events = bed.recorder.events.lock().clone();
    assert_eq!(events.len(), 5, "each is said once: {events:?}");
}

#[tokio::test]
async fn a_machine_that_ends_is_switched_off_and_not_started_again() {
    let bed = bed("ends-at-once").await;
    bed.reports(&format!("{ID} ended in boot 1")).await;
    bed.shows("nothing to do\nthe guest runner ended: exit status: 3\n")
        .await;
    // The server is still ACTIVE while the cloud has not handled the report: no second start.
    bed.change(|server| server.metadata.clear());
    bed.change(|server| server.running = false);
    bed.change(|server| server.boot = 2);
    bed.reports(&format!("{ID} ended in boot 2")).await;
    assert_eq!(bed.recorder.events.lock().len(), 2);
}

#[tokio::test]
async fn what_cannot_be_started_is_a_fault_of_the_server() {
    for (program, fault) in [
        (
            "refuses",
            "refuses: the flavor asks for more memory than there is",
        ),
        ("missing", "cannot be started: No such file or directory"),
        ("not-executable", "cannot be started: Permission denied"),
    ] {
        let bed = bed(program).await;
        bed.reports(fault).await;
        bed.shows(fault).await;
        // A server in ERROR is not in the World, but exists: its console is kept.
        bed.world.send_replace(Arc::default());
        tokio::time::sleep(Duration::from_millis(100)).await;
        bed.shows(fault).await;
        assert!(bed.file("").exists(), "{program}");
    }
}

#[tokio::test]
async fn a_runner_that_never_ends_is_killed_with_all_it_started() {
    let bed = bed_with_patience("never-ends", Duration::from_millis(200)).await;
    bed.shows("deaf").await;
    let child = std::fs::read_to_string(bed.file("child")).unwrap();
    assert!(runs(&child));
    bed.shutdown.cancel();
    bed.runners.stopped().await;
    eventually("the child's end", || !runs(&child)).await;
}

#[tokio::test]
async fn what_a_runner_leaves_in_its_group_ends_with_it() {
    let bed = bed("leaves-a-child").await;
    bed.reports("ended").await;
    let child = std::fs::read_to_string(bed.file("child")).unwrap();
    eventually("the child's end", || !runs(&child)).await;
    assert!(bed.runners.console(ID).starts_with("my child stays\n"));
}

#[tokio::test]
async fn endless_binary_output_is_a_console_of_bounded_length() {
    let bed = bed("babbles").await;
    let long = || bed.runners.console(ID).len() > 64 << 10;
    eventually("a long console", long).await;
    let text = bed.runners.console(ID);
    assert!(text.len() < 256 << 10);
    assert!(
        text.chars()
            .all(|letter| matches!(letter, '\n' | '\t') || !letter.is_control())
    );
    bed.shutdown.cancel();
    bed.runners.stopped().await;
}

#[tokio::test]
async fn what_a_killed_cloud_left_running_is_ended_by_the_next_one() {
    let first = bed("machine").await;
    first.shows("started 1 times").await;
    let left: Value =
        serde_json::from_slice(&std::fs::read(first.file("runner.json")).unwrap()).unwrap();
    let pid = left["pid"].to_string();
    // The next fleet finds the directory while the runner still runs.
    let next = TempDir::new().unwrap();
    let orphan = "3f2b8a54-0000-4000-8000-000000000002";
    std::fs::create_dir(next.path().join(orphan)).unwrap();
    std::fs::create_dir(next.path().join(ID)).unwrap();
    std::fs::copy(
        first.file("runner.json"),
        next.path().join(ID).join("runner.json"),
    )
    .unwrap();
    let options = Options::new(runner("ends-at-once"), next.path().to_owned());
    let recorder = Arc::new(Recorder::default());
    let (_world, receiver) = watch::channel(world(instance()));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let shutdown = CancellationToken::new();
    let second = Runners::start(receiver, recorder, listener, options, shutdown.clone())
        .await
        .unwrap();
    eventually("the end of the first runner", || !runs(&pid)).await;
    eventually("the disk of a server that is gone to go", || {
        !next.path().join(orphan).exists()
    })
    .await;
    shutdown.cancel();
    second.stopped().await;
}

#[tokio::test]
async fn two_clouds_do_not_share_a_directory() {
    let first = bed("machine").await;
    let options = Options::new(runner("machine"), first.directory.path().to_owned());
    let (_world, receiver) = watch::channel(Arc::default());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let second = Runners::start(
        receiver,
        first.recorder.clone(),
        listener,
        options,
        CancellationToken::new(),
    );
    let error = second.await.unwrap_err();
    assert_eq!(error.to_string(), "it is in use by another process");
}

#[tokio::test]
async fn the_metadata_service_knows_a_server_by_its_address() {
    let bed = bed("machine").await;
    let get = async |path: &str| {
        let address = bed.metadata.trim_start_matches("http://").to_owned();
        let stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let io = hyper_util::rt::TokioIo::new(stream);
        let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
        tokio::spawn(connection);
        let request = http::Request::get(path)
            .header("host", "169.254.169.254")
            .body(String::new())
            .unwrap();
        let response = sender.send_request(request).await.unwrap();
        let status = response.status().as_u16();
        let body = http_body_util::BodyExt::collect(response.into_body())
            .await
            .unwrap();
        (
            status,
            String::from_utf8_lossy(&body.to_bytes()).into_owned(),
        )
    };
    let (status, text) = get("/openstack/latest/meta_data.json").await;
    let data: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((status, &data["uuid"]), (200, &Value::from(ID)));
    assert_eq!(data["hostname"], "node-1.novalocal");
    assert_eq!(
        get("/openstack/2018-08-27/user_data").await.1,
        "no cloud-config at all\n"
    );
    assert_eq!(get("/latest/meta-data/instance-id").await.1, "i-3f2b8a54");
    assert_eq!(get("/openstack/latest/secrets").await.0, 404);

    let double = Instance {
        id: "other".to_owned(),
        ..instance()
    };
    let both = DataPlane {
        instances: vec![instance(), double],
        ..DataPlane::default()
    };
    bed.world.send_replace(Arc::new(both));
    assert_eq!(
        get("/openstack/latest/meta_data.json").await.0,
        404,
        "two servers have the address"
    );
}
