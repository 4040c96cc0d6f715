use std::path::Path;
use std::time::Duration;

use clap::Parser;
use csi_node::registration::InfoRequest;
use csi_spec::{
    ControllerGetCapabilitiesRequest, GetPluginCapabilitiesRequest, GetPluginInfoRequest,
    NodeGetCapabilitiesRequest, ProbeRequest,
};
use grpc::Client;
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::task::JoinHandle;

use super::*;

pub(super) mod world;

use self::world::{World, until};

/// More than anything here takes.
const LIMIT: Duration = Duration::from_secs(60);

#[derive(Debug, Parser)]
struct Command {
    #[command(flatten)]
    args: CinderCsiPlugin,
}

/// A driver that runs, with the lines that it has printed so far.
struct Running {
    directory: tempfile::TempDir,
    lines: Arc<Mutex<Vec<String>>>,
    stop: CancellationToken,
    ended: JoinHandle<anyhow::Result<()>>,
}

/// Starts the driver in a directory of its own, in which `cloud.conf` has this text.
fn start(conf: &str, flags: &[&str]) -> Running {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("cloud.conf"), conf).unwrap();
    let here = directory.path().display().to_string();
    let mut words = vec!["csi".to_owned()];
    words.extend(flags.iter().map(|flag| flag.replace("HERE", &here)));
    if !words.iter().any(|word| word.starts_with("--endpoint")) {
        words.push(format!("--endpoint=unix://{here}/csi.sock"));
    }
    let args = Command::try_parse_from(words).unwrap().args;
    let (lines, stop) = (Arc::new(Mutex::new(Vec::new())), CancellationToken::new());
    let (printed, stopped) = (Arc::clone(&lines), stop.clone());
    let ended = tokio::spawn(async move {
        let say = move |line: &str| printed.lock().push(line.to_owned());
        run(&args, &Environment::default(), stopped, say).await
    });
    Running {
        directory,
        lines,
        stop,
        ended,
    }
}

impl Running {
    fn socket(&self) -> std::path::PathBuf {
        self.directory.path().join("csi.sock")
    }

    /// The rest of the line that begins with this, once it is there.
    async fn line(&self, start: &str) -> String {
        let found = async {
            loop {
                let line = self
                    .lines
                    .lock()
                    .iter()
                    .find_map(|line| line.strip_prefix(start).map(str::to_owned));
                match line {
                    Some(line) => return line,
                    None => tokio::task::yield_now().await,
                }
            }
        };
        tokio::time::timeout(LIMIT, found).await.unwrap()
    }

    async fn client(&self) -> Client {
        self.client_of("csi.sock").await
    }

    /// A client of a socket in the directory.
    async fn client_of(&self, socket: &str) -> Client {
        self.line("CSI at ").await;
        let socket = self.directory.path().join(socket);
        let stream = UnixStream::connect(socket).await.unwrap();
        let connected = Client::connect(stream, "http://csi", LIMIT, 1 << 20).await;
        connected.unwrap()
    }

    /// Why the driver has ended.
    async fn failure(self) -> String {
        let ended = tokio::time::timeout(LIMIT, self.ended).await.unwrap();
        let error = ended.unwrap().unwrap_err();
        format!("{error:#}").replace(&self.directory.path().display().to_string(), "HERE")
    }
}

/// True if the controller and the node are served.
async fn halves(client: &Client) -> [bool; 2] {
    let controller = client.call(&ControllerGetCapabilitiesRequest {}).await;
    let node = client.call(&NodeGetCapabilitiesRequest {}).await;
    [controller.is_ok(), node.is_ok()]
}

async fn is_ready(client: &Client) -> bool {
    client.call(&ProbeRequest {}).await.unwrap().ready.unwrap()
}

/// A cloud.conf for a cloud at this address.
fn conf(address: &str) -> String {
    format!(
        "[Global]\nauth-url = http://{address}/identity/v3\nusername = demo\npassword = secret\n\
         tenant-name = demo\ndomain-name = Default\n"
    )
}

/// An address where nobody listens.
const NOWHERE: &str = "127.0.0.1:1";
const CONF: &str = "--cloud-config=HERE/cloud.conf";
const NODE: &str = "--provide-controller-service=false";

#[tokio::test]
async fn a_driver_whose_cloud_cannot_be_reached_runs_and_is_not_ready() {
    let running = start(&conf(NOWHERE), &[CONF, "--v=2"]);
    let client = running.client().await;
    let info = client.call(&GetPluginInfoRequest {}).await.unwrap();
    assert_eq!(info.name, "cinder.csi.openstack.org");
    assert!(!is_ready(&client).await);
    let capabilities = client.call(&GetPluginCapabilitiesRequest {}).await;
    assert_eq!(capabilities.unwrap().capabilities.len(), 5);
    drop(client);
    running.stop.cancel();
    let socket = running.socket();
    running.ended.await.unwrap().unwrap();
    assert!(!socket.exists());
}

#[tokio::test]
async fn a_driver_is_ready_when_its_cloud_has_answered() {
    let world = World::open().await;
    let running = start(&world.conf("secret"), &[CONF]);
    let client = running.client().await;
    until(async || is_ready(&client).await).await;
}

#[tokio::test]
async fn a_cloud_that_does_not_answer_does_not_hold_up_the_others() {
    let world = World::open().await;
    // In the order of their names, the dead one is the first.
    let text = format!(
        "{}{}",
        conf(NOWHERE),
        world.conf("secret").replace("[Global]", "[Global \"two\"]")
    );
    let running = start(&text, &[CONF, "--cloud-name=", "--cloud-name=two"]);
    let client = running.client().await;
    until(async || is_ready(&client).await).await;
}

#[tokio::test]
async fn requests_are_counted_under_the_names_of_the_go_driver_too() {
    let world = World::open().await;
    let flags = [CONF, "--http-endpoint=127.0.0.1:0"];
    let running = start(&world.conf("secret"), &flags);
    let address = running.line("health and metrics at http://").await;
    let client = running.client().await;
    until(async || is_ready(&client).await).await;
    let answer = get(&address, "/metrics").await;
    for line in [
        "openstack_api_requests_total{request=\"volume_list\"} 1",
        "openstack_api_request_duration_seconds_count{request=\"volume_list\"} 1",
    ] {
        assert!(answer.contains(line), "{line}: {answer}");
    }
    assert!(
        answer.contains("ferrostack_openstack_requests_total{"),
        "{answer}"
    );
}

#[tokio::test]
async fn a_node_needs_no_cloud_and_no_file() {
    let running = start("", &[NODE, "--cloud-config=HERE/none.conf"]);
    let client = running.client().await;
    assert!(is_ready(&client).await);
    let capabilities = client.call(&GetPluginCapabilitiesRequest {}).await;
    // CONTROLLER_SERVICE is one of the driver, not of the process.
    assert_eq!(capabilities.unwrap().capabilities.len(), 5);
    let printed = running.lines.lock().join("\n");
    assert!(printed.contains("none.conf is not there"), "{printed}");
}

#[tokio::test]
async fn what_is_wrong_at_the_start_ends_the_driver_and_is_named() {
    let good = conf(NOWHERE);
    let named = "[Global \"two\"]\nauth-url = http://k\nuser-id = u\npassword = p\n";
    for (text, flags, words) in [
        (
            good.as_str(),
            &[][..],
            "--cloud-config is missing: the controller service needs the cloud",
        ),
        (
            &good,
            &["--cloud-config=HERE/none"],
            "--cloud-config: cannot read HERE/none: No such file",
        ),
        (
            &good,
            &[NODE, "--cloud-config=HERE"],
            "--cloud-config: cannot read HERE: ",
        ),
        (
            &good,
            &[NODE, "--provide-node-service=false"],
            "there is nothing to serve",
        ),
        (
            &good,
            &[CONF, "--cloud-name=x"],
            "--cloud-name `x`: cloud.conf has no section [Global \"x\"], but [Global]",
        ),
        (
            named,
            &[CONF],
            "--cloud-name ``: cloud.conf has no section [Global], but [Global \"two\"]",
        ),
        (
            "",
            &[CONF],
            "cloud.conf has no section [Global], but no cloud",
        ),
        (
            "oops",
            &[CONF],
            "HERE/cloud.conf: line 1: a key stands before the first section",
        ),
        (
            "[BlockStorage]\nzone-map = a\n",
            &[NODE, CONF],
            "HERE/cloud.conf: line 2: [BlockStorage] zone-map: `a` is not",
        ),
        (
            "[Global]\nauth-url = http://k\n",
            &[CONF],
            "[Global] user-id: is missing, and so is username",
        ),
        (
            &good,
            &[CONF, "--endpoint=unix:///nowhere/csi.sock"],
            "--endpoint: cannot listen on unix:///nowhere/csi.sock: No such file",
        ),
        (
            &good,
            &[CONF, "--endpoint=unix://HERE/cloud.conf"],
            "HERE/cloud.conf exists and is not a socket",
        ),
        (
            &good,
            &[CONF, "--endpoint=tcp://192.0.2.1:1"],
            "--endpoint: cannot listen on tcp://192.0.2.1:1",
        ),
        (
            &good,
            &[CONF, "--http-endpoint=192.0.2.1:1"],
            "health and metrics cannot be served on 192.0.2.1:1",
        ),
    ] {
        let flags: Vec<&str> = flags.to_vec();
        let running = start(text, &flags);
        let socket = running.socket();
        let failure = running.failure().await;
        assert!(failure.contains(words), "{flags:?}: {failure}");
        assert!(!socket.exists(), "{flags:?}");
    }
}

#[tokio::test]
async fn several_files_and_several_clouds_are_served() {
    let more = "[Global \"two\"]\nauth-url = http://127.0.0.1:1\nuser-id = u\npassword = p\ntenant-id = t\n\
                [LoadBalancer]\nmonitor-delay = 5\n";
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("more.conf");
    std::fs::write(&file, more).unwrap();
    let file = format!("--cloud-config={}", file.display());
    let flags = [
        CONF,
        &file,
        "--cloud-name=",
        "--cloud-name=two",
        "--nodeid=n",
    ];
    let running = start(&conf(NOWHERE), &flags);
    running.line("CSI at ").await;
    let printed = running.lines.lock().join("\n");
    let name = Path::new(&file).file_name().unwrap().to_str().unwrap();
    for words in [
        &format!("{name}: line 7: [LoadBalancer] monitor-delay: this is not a duration"),
        "--nodeid has no effect: the id of a node is that of its server",
    ] {
        assert!(printed.contains(words), "{words}: {printed}");
    }
}

async fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn health_is_that_of_the_socket_and_metrics_are_beside_it() {
    let flags = [CONF, "--http-endpoint=127.0.0.1:0"];
    let running = start(&conf(NOWHERE), &flags);
    let address = running.line("health and metrics at http://").await;
    running.line("CSI at ").await;
    // Not ready, but a restart would not help.
    let answer = get(&address, "/healthz").await;
    assert!(
        answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("ok"),
        "{answer}"
    );
    let answer = get(&address, "/metrics").await;
    assert!(answer.contains("# EOF"), "{answer}");
    std::fs::remove_file(running.socket()).unwrap();
    let answer = get(&address, "/healthz").await;
    assert!(
        answer.starts_with("HTTP/1.1 503 ") && answer.contains("csi.sock cannot be reached"),
        "{answer}"
    );
}

#[tokio::test]
async fn each_half_is_served_alone_or_both_together() {
    let conf = conf(NOWHERE);
    for (flags, expected) in [
        (&[CONF][..], [true, true]),
        (&[CONF, NODE], [false, true]),
        (&[CONF, "--provide-node-service=false"], [true, false]),
    ] {
        let running = start(&conf, flags);
        assert_eq!(halves(&running.client().await).await, expected, "{flags:?}");
    }
}

#[tokio::test]
async fn the_kubelet_learns_where_it_finds_the_socket() {
    let flags = [
        NODE,
        "--kubelet-registration-path=/var/lib/kubelet/plugins/x/csi.sock",
        "--plugin-registration-path=HERE",
    ];
    let running = start("", &flags);
    let kubelet = running.client_of("cinder.csi.openstack.org-reg.sock").await;
    let info = kubelet.call(&InfoRequest {}).await.unwrap();
    assert_eq!(info.kind, "CSIPlugin");
    assert_eq!(info.name, "cinder.csi.openstack.org");
    assert_eq!(info.endpoint, "/var/lib/kubelet/plugins/x/csi.sock");
    running.stop.cancel();
    running.ended.await.unwrap().unwrap();
    let directory = std::fs::read_dir(running.directory.path()).unwrap();
    let left: Vec<_> = directory.map(|it| it.unwrap().file_name()).collect();
    assert_eq!(left, ["cloud.conf"]);
    let absent = "--plugin-registration-path=HERE/absent";
    let failure = start("", &[NODE, flags[1], absent]).failure().await;
    assert!(
        failure.contains("--plugin-registration-path") && failure.contains("HERE/absent/"),
        "{failure}"
    );
}
