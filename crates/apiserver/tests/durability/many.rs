//! Servers in memory are cheap: tests and benches have one for each simulated cluster.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use apiserver::{ApiServer, Options, Store, Synchronous};
use serde_json::{Value, json};

use crate::local::{call, open};
use crate::site::map;

/// Variable that marks the measured process.
const CHILD: &str = "APISERVER_TEST_MANY";
const SERVERS: u64 = 50;
/// A thousand are to fit in a gigabyte.
const KIBIBYTES_EACH: u64 = 1000;

#[test]
fn a_cluster_of_four_nodes_takes_less_than_a_megabyte() {
    let each = alone("many::the_process_with_many_servers", "each: ");
    let each: u64 = each.parse().unwrap();
    assert!(each < KIBIBYTES_EACH, "{each} KiB");
}

/// Output of a test of this name, alone in a process, on a line after `label`.
fn alone(test: &str, label: &str) -> String {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(CHILD, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let found = text
        .split_once(label)
        .and_then(|(_, rest)| rest.lines().next());
    found.unwrap_or_else(|| panic!("{text}")).to_owned()
}

/// Not a test of its own: other tests in the process would be part of the measurement.
#[tokio::test]
async fn the_process_with_many_servers() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    // State shared by all servers exists with the first few.
    let mut servers = Vec::new();
    for _ in 0..3 {
        servers.push(cluster().await);
    }
    let before = resident();
    for _ in 0..SERVERS {
        servers.push(cluster().await);
    }
    let each = resident().saturating_sub(before) / SERVERS;
    assert!(servers.iter().all(|server| server.stats().objects > 40));
    println!("each: {each}");
}

fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Control plane node and three workers with their workloads.
async fn cluster() -> ApiServer {
    let server = ApiServer::open(Options::default()).await.unwrap();
    let post = async |path: &str, object: Value| {
        let (code, answer) = call(&server, "POST", path, &object).await;
        assert_eq!(code, 201, "{answer}");
    };
    for node in 0..4 {
        let name = format!("node-{node}");
        let spec = json!({"providerID": format!("openstack:///{name}")});
        post(
            "/api/v1/nodes",
            json!({"metadata": {"name": name}, "spec": spec}),
        )
        .await;
        let leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
        let lease = json!({"metadata": {"name": name}, "spec": {"holderIdentity": name}});
        post(leases, lease).await;
        for pod in [
            "etcd",
            "kube-apiserver",
            "kube-scheduler",
            "kube-proxy",
            "cni",
            "coredns",
        ] {
            let containers =
                json!([{"name": pod, "image": format!("registry.k8s.io/{pod}:v1.34.2")}]);
            let object = json!({
                "metadata": {"name": format!("{pod}-{name}"), "labels": {"k8s-app": pod}},
                "spec": {"nodeName": name, "containers": containers},
            });
            post("/api/v1/namespaces/kube-system/pods", object).await;
        }
    }
    for n in 0..8 {
        let maps = "/api/v1/namespaces/kube-system/configmaps";
        post(
            maps,
            map(&format!("config-{n}"), &"setting: value\n".repeat(60)),
        )
        .await;
    }
    server
}

#[test]
fn a_small_server_starts_no_thread_for_packing() {
    let names = alone("many::the_process_with_a_small_server", "threads: ");
    let names: Vec<&str> = names.split(", ").collect();
    // The kernel keeps 15 bytes of a name.
    assert!(names.contains(&"apiserver-store"), "{names:?}");
    assert!(!names.contains(&"apiserver-packe"), "{names:?}");
}

/// Not a test of its own: the servers of other tests in the process may have such a thread.
#[tokio::test]
async fn the_process_with_a_small_server() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let server = open(&directory.path().join("objects.db")).await.unwrap();
    let maps = "/api/v1/namespaces/default/configmaps";
    for n in 0..20 {
        let map = map(&format!("map-{n}"), "text");
        assert_eq!(call(&server, "POST", maps, &map).await.0, 201);
    }
    println!("threads: {}", threads().join(", "));
}

#[test]
fn a_server_at_rest_has_no_thread_and_where_that_is_asked_for_no_open_file() {
    assert_eq!(
        alone("many::the_process_at_rest", "at rest: "),
        "20 objects"
    );
}

/// Not a test of its own: others use threads and files meanwhile.
#[tokio::test]
async fn the_process_at_rest() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let options = Options {
        store: Store::Sqlite {
            path: directory.path().join("objects.db"),
            synchronous: Synchronous::Normal,
        },
        closed_at_rest: true,
        ..Options::default()
    };
    let server = ApiServer::open(options).await.unwrap();
    let maps = "/api/v1/namespaces/default/configmaps";
    for n in 0..20 {
        let map = map(&format!("map-{n}"), "text");
        assert_eq!(call(&server, "POST", maps, &map).await.0, 201);
        if n > 0 {
            continue;
        }
        let deadline = Instant::now() + Duration::from_secs(60);
        while threads().iter().any(|name| name == "apiserver-store") || is_open(directory.path()) {
            assert!(Instant::now() < deadline, "{:?}", threads());
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
    let (_, list) = call(&server, "GET", maps, &Value::Null).await;
    println!(
        "at rest: {} objects",
        list["items"].as_array().unwrap().len()
    );
}

/// True if this process has an open file below `directory`.
fn is_open(directory: &Path) -> bool {
    let files = std::fs::read_dir("/proc/self/fd").unwrap();
    let mut targets = files.filter_map(|file| std::fs::read_link(file.ok()?.path()).ok());
    targets.any(|target| target.starts_with(directory))
}

/// The names of the threads of this process.
fn threads() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let name = |task: std::io::Result<std::fs::DirEntry>| {
        // A thread may end meanwhile.
        std::fs::read_to_string(task.ok()?.path().join("comm")).ok()
    };
    let names = tasks.filter_map(name);
    names.map(|name| name.trim_end().to_owned()).collect()
}
