//! A real etcd with three members behind an embedded API server, observed and changed by the code of the controller. It
//! also verifies the error messages of the simulated etcd.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use api::k8s_openapi::api::core::v1::{Node, Pod};
use api::k8s_openapi::jiff::Timestamp;
use api::kube::Client;
use api::kube::api::{Api, Patch, PostParams};
use apiserver::{Connection, Kubelet, Log};
use clusterapi::control_plane::etcd::{Connections, Member, Target, View};
use clusterapi::pki::KeyMaterial;
use clusterapi::remote::ClusterKey;
use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use crate::served::{authority, certificate, serve};
use crate::world::eventually;

/// etcd as built by `tests/kubernetes/build etcd`; `None`, with a notice, if not built.
fn program() -> Option<PathBuf> {
    let assets = std::env::var_os("KUBEBUILDER_ASSETS").map(PathBuf::from);
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools");
    let path = assets.unwrap_or(built).join("etcd");
    if !path.exists() {
        skipped::because("no etcd; build it with `tests/kubernetes/build etcd`");
        return None;
    }
    Some(path)
}

/// The tests choose ports in the same order, so one test at a time uses them.
static PORTS: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// Members `m0`, `m1` and so on, with their client ports.
struct Site {
    ca: KeyMaterial,
    processes: Vec<Child>,
    ports: Arc<Vec<u16>>,
    /// Node with a dead kubelet and a running member.
    silent: Arc<Mutex<Option<String>>>,
    directory: tempfile::TempDir,
    stop: CancellationToken,
}

impl Drop for Site {
    fn drop(&mut self) {
        self.stop.cancel();
        for process in &mut self.processes {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// Ports below the kernel's range of free ports, so that no other test gets them before etcd does.
fn free_ports<const N: usize>() -> [u16; N] {
    let first = 10_000 + std::process::id() % 20_000;
    let mut free = (first..32_000).map(|port| u16::try_from(port).unwrap());
    let mut next = || free.find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok());
    [(); N].map(|()| next().unwrap())
}

impl Site {
    fn start(program: &Path) -> Self {
        let (ca, key) = authority();
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("ca.crt"), &ca).unwrap();
        let ports: [u16; 6] = free_ports();
        let mut site = Self {
            processes: Vec::new(),
            ports: Arc::new(ports[..3].to_vec()),
            silent: Arc::default(),
            directory,
            stop: CancellationToken::new(),
            ca: KeyMaterial {
                public: ca.clone().into(),
                private: Some(key.clone().into()),
            },
        };
        let peer = |number: usize| format!("m{number}=https://127.0.0.1:{}", ports[3 + number]);
        let cluster = [0, 1, 2].map(peer).join(",");
        for number in 0..3 {
            let (certificate, key) = certificate(&ca, &key, "127.0.0.1");
            let process = site.member(program, number, &ports, &cluster, (&certificate, &key));
            site.processes.push(process);
        }
        site
    }

    fn member(
        &self,
        program: &Path,
        number: usize,
        ports: &[u16; 6],
        cluster: &str,
        (certificate, key): (&str, &str),
    ) -> Child {
        let path = |name: &str| self.directory.path().join(name).display().to_string();
        let (certificate_file, key_file) = (
            path(&format!("m{number}.crt")),
            path(&format!("m{number}.key")),
        );
        std::fs::write(&certificate_file, certificate).unwrap();
        std::fs::write(&key_file, key).unwrap();
        let (client, peer) = (ports[number], ports[3 + number]);
        let (client, peer) = (
            format!("https://127.0.0.1:{client}"),
            format!("https://127.0.0.1:{peer}"),
        );
        let (data, ca) = (path(&format!("m{number}")), path("ca.crt"));
        let log = std::fs::File::create(path(&format!("m{number}.log"))).unwrap();
        Command::new(program)
            .args([format!("--name=m{number}"), format!("--data-dir={data}")])
            .args([
                format!("--listen-client-urls={client}"),
                format!("--advertise-client-urls={client}"),
            ])
            .args([
                format!("--listen-peer-urls={peer}"),
                format!("--initial-advertise-peer-urls={peer}"),
            ])
            .arg(format!("--initial-cluster={cluster}"))
            .args([
                "--client-cert-auth",
                "--peer-client-cert-auth",
                "--log-level=error",
                // The leader stays the leader on a busy machine.
                "--heartbeat-interval=500",
                "--election-timeout=5000",
            ])
            .args([
                format!("--trusted-ca-file={ca}"),
                format!("--peer-trusted-ca-file={ca}"),
            ])
            .args([
                format!("--cert-file={certificate_file}"),
                format!("--peer-cert-file={certificate_file}"),
            ])
            .args([
                format!("--key-file={key_file}"),
                format!("--peer-key-file={key_file}"),
            ])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap()
    }

    /// An API server whose Pods `etcd-m0` and so on forward to the members.
    async fn api_server(&self) -> Client {
        let options = apiserver::Options {
            kubelet: Some(Arc::new(Ports {
                of_members: Arc::clone(&self.ports),
                silent: Arc::clone(&self.silent),
            })),
            ..apiserver::Options::default()
        };
        let client = serve(options, self.stop.clone()).await;
        for number in 0..self.ports.len() {
            let name = format!("m{number}");
            let node = json!({"metadata": {"name": name}});
            let nodes: Api<Node> = Api::all(client.clone());
            let node = serde_json::from_value(node).unwrap();
            nodes.create(&PostParams::default(), &node).await.unwrap();
            let status = json!({"status": {"addresses": [{"type": "Hostname", "address": name}]}});
            let patch = Patch::Merge(status);
            nodes
                .patch_status(&name, &Default::default(), &patch)
                .await
                .unwrap();
            let pod = json!({
                "metadata": {"name": format!("etcd-{name}"), "namespace": "kube-system"},
                "spec": {"nodeName": name, "hostNetwork": true, "containers": [{"name": "etcd", "image": "etcd"}]},
            });
            let pods: Api<Pod> = Api::namespaced(client.clone(), "kube-system");
            let pod = serde_json::from_value(pod).unwrap();
            pods.create(&PostParams::default(), &pod).await.unwrap();
        }
        client
    }

    /// A client connected directly to one member.
    async fn direct(&self, name: &str) -> etcd::Client {
        let (ca, key) = (&self.ca.public, self.ca.private.as_ref().unwrap());
        let (certificate, key) =
            certificate(ca, secrecy::ExposeSecret::expose_secret(key), "a-client");
        let tls = etcd::tls::Tls::client(ca, &certificate, &key.into()).unwrap();
        let stream = TcpStream::connect(("127.0.0.1", self.ports[number(name)]))
            .await
            .unwrap();
        etcd::Client::connect(stream, &tls, Duration::from_secs(60))
            .await
            .unwrap()
    }

    fn kill(&mut self, name: &str) {
        let process = &mut self.processes[number(name)];
        process.kill().unwrap();
        process.wait().unwrap();
    }
}

fn number(name: &str) -> usize {
    name.trim_start_matches('m').parse().unwrap()
}

/// Kubelets that forward the port of a Pod to a member.
struct Ports {
    of_members: Arc<Vec<u16>>,
    silent: Arc<Mutex<Option<String>>>,
}

impl Kubelet for Ports {
    fn is_reachable(&self, _: &Value) -> bool {
        true
    }

    fn log<'a>(
        &'a self,
        _: &'a Value,
        _: &'a Value,
        _: &'a str,
        _: bool,
    ) -> BoxFuture<'a, Result<Log, String>> {
        async { Err("there are no logs".to_owned()) }.boxed()
    }

    fn connect<'a>(
        &'a self,
        node: &'a Value,
        _: &'a Value,
        port: u16,
    ) -> BoxFuture<'a, Result<Box<dyn Connection>, String>> {
        assert_eq!(port, 2379);
        let name = node["metadata"]["name"].as_str().unwrap();
        let is_silent = self.silent.lock().as_deref() == Some(name);
        let port = self.of_members[number(name)];
        async move {
            if is_silent {
                return Err("connection refused".to_owned());
            }
            let stream = TcpStream::connect(("127.0.0.1", port)).await;
            let stream = stream.map_err(|error| error.to_string())?;
            Ok(Box::new(stream) as Box<dyn Connection>)
        }
        .boxed()
    }
}

/// Waits until there are `count` healthy members.
async fn settled(connections: &Connections, target: &Target<'_>, count: usize) -> Vec<Member> {
    eventually(&format!("{count} members that are well"), || async {
        match connections.query(target).await {
            View::Known(members)
                if members.len() == count
                    && members.iter().all(Member::is_healthy)
                    && members.iter().any(|member| member.leads) =>
            {
                Ok(members)
            }
            other => Err(format!("{other:?}")),
        }
    })
    .await
}

/// Waits until all members count as connected, or all but this one.
async fn connected(connections: &Connections, target: &Target<'_>, but: Option<&str>) {
    eventually("the members to be connected", || async {
        let view = connections.query(target).await;
        let members = view.members().unwrap_or_default();
        let found = connections.disconnected(target, members).await;
        match found.map(|(_, other)| other.name.as_str()) {
            found if found == but && !members.is_empty() => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
}

/// Removes a member as the controller does. etcd rejects this until all members have been connected for five seconds.
async fn remove(connections: &Connections, target: &Target<'_>, id: u64) {
    eventually("the member to be removed", || async {
        match connections.query(target).await {
            View::Known(members) => connections.remove(target, &members, id, &[]).await,
            other => Err(format!("{other:?}")),
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_real_etcd_is_judged_led_away_from_and_scaled_down() {
    let Some(program) = program() else { return };
    let _ports = PORTS.lock().await;
    let mut site = Site::start(&program);
    let client = site.api_server().await;
    let key = ClusterKey::new("default", "demo");
    let connections = Connections::default();
    connections.trust(&key, &site.ca, Timestamp::now()).unwrap();
    let nodes = ["m0", "m1", "m2"].map(str::to_owned);
    let target = Target {
        key: &key,
        client: &client,
        nodes: &nodes,
    };
    let members = settled(&connections, &target, 3).await;
    let leader = members.iter().find(|member| member.leads).unwrap();
    let mut followers = members.iter().filter(|member| !member.leads);
    let (dead, other) = (followers.next().unwrap(), followers.next().unwrap());

    connected(&connections, &target, None).await;

    // The simulated etcd has the same messages.
    let direct = site.direct(&other.name).await;
    let words = |refused: Result<(), etcd::Error>| refused.unwrap_err().to_string();
    let refused = words(direct.move_leader(dead.id).await);
    assert_eq!(refused, "etcdserver: not leader");
    let refused = words(direct.remove(1).await.map(drop));
    assert_eq!(refused, "etcdserver: member not found");
    let refused = words(direct.promote(dead.id).await.map(drop));
    assert_eq!(refused, "etcdserver: can only promote a learner member");

    // A failed member stays in the list, blocks other membership changes, and is removed.
    site.kill(&dead.name);
    eventually("the member to be missed", || async {
        let view = connections.query(&target).await;
        let problem = view
            .on(&dead.name)
            .and_then(|member| member.problem.clone());
        let others = view.members().unwrap_or_default().iter();
        let well = others.filter(|member| member.is_healthy()).count();
        match problem {
            Some(why) if why.starts_with("it does not answer") && well == 2 => Ok(()),
            _ => Err(format!("{view:?}")),
        }
    })
    .await;
    connected(&connections, &target, Some(&dead.name)).await;
    let refused = words(direct.add("https://127.0.0.1:1", true).await.map(drop));
    assert_eq!(refused, "etcdserver: unhealthy cluster");
    let refused = words(direct.remove(leader.id).await.map(drop));
    assert_eq!(refused, "etcdserver: unhealthy cluster");
    remove(&connections, &target, dead.id).await;
    settled(&connections, &target, 2).await;

    // The leader transfers its leadership, and is removed.
    let members = settled(&connections, &target, 2).await;
    let leader = members.iter().find(|member| member.leads).unwrap();
    remove(&connections, &target, leader.id).await;
    let left = settled(&connections, &target, 1).await;
    assert!(left[0].leads && left[0].name != leader.name);

    // A learner that never starts, and the rejection of a second one.
    let direct = site.direct(&left[0].name).await;
    let by = eventually("a learner to be added", || async {
        connections
            .add_learner(&target, &[&left[0]], "127.0.0.9")
            .await
    })
    .await;
    assert_eq!(by, left[0].name);
    let view = connections.query(&target).await;
    let members = view.members().unwrap_or_default().iter();
    let mut learners = members.filter(|member| member.learner && member.host == "127.0.0.9");
    let learner = learners.next().unwrap();
    let refused = words(direct.add("https://127.0.0.1:2", true).await.map(drop));
    assert_eq!(refused, "etcdserver: too many learner members in cluster");
    let refused = words(direct.promote(learner.id).await.map(drop));
    let words = "etcdserver: can only promote a learner member which is in sync with leader";
    assert_eq!(refused, words);
    remove(&connections, &target, learner.id).await;

    site.kill(&left[0].name);
    let view = connections.query(&target).await;
    assert!(
        matches!(&view, View::Unknown(why) if why.contains("no etcd member")),
        "{view:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_whose_kubelet_is_dead_is_removed_by_the_others() {
    let Some(program) = program() else { return };
    let _ports = PORTS.lock().await;
    let site = Site::start(&program);
    let client = site.api_server().await;
    let key = ClusterKey::new("default", "demo");
    let nodes = ["m0", "m1", "m2"].map(str::to_owned);
    let target = Target {
        key: &key,
        client: &client,
        nodes: &nodes,
    };
    let connect = || {
        let connections = Connections::default();
        connections.trust(&key, &site.ca, Timestamp::now()).unwrap();
        connections
    };
    let before = connect();
    let members = settled(&before, &target, 3).await;
    connected(&before, &target, None).await;
    let leader = members.iter().find(|member| member.leads).unwrap();
    *site.silent.lock() = Some(leader.name.clone());
    let connections = connect();
    let view = connections.query(&target).await;
    let found = view.on(&leader.name).unwrap();
    assert!(found.leads && !found.is_healthy(), "{view:?}");
    remove(&connections, &target, leader.id).await;
    let left = settled(&connections, &target, 2).await;
    assert!(left.iter().all(|member| member.name != leader.name));
}
