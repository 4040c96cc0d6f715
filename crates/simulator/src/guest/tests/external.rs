//! Nodes that wait for a cloud controller manager, and the Services behind their node ports.

use std::net::SocketAddr;

use k8s_openapi::api::core::v1::{Node, Pod, Service};
use kube::Client;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::cloud::{Cloud, Machine, TOKEN, eventually};
use super::{list, quick, readiness};
use crate::guest::objects::node::UNINITIALIZED;

/// A cluster of one control plane machine whose kubelet waits for a cloud controller manager.
async fn waiting() -> (Cloud, Client) {
    let mut cloud = Cloud::start(quick());
    cloud.add(Machine::init(&cloud, "cp-0").external());
    let client = cloud.client();
    cloud.initialized(&client).await;
    cloud.create_token(&client, TOKEN, None).await;
    (cloud, client)
}

async fn node(client: &Client, name: &str) -> Value {
    let found = Api::<Node>::all(client.clone()).get(name).await.unwrap();
    serde_json::to_value(found).unwrap()
}

fn addresses(node: &Value) -> Vec<&str> {
    let addresses = node["status"]["addresses"].as_array().unwrap();
    let mut kinds: Vec<&str> = Vec::new();
    kinds.extend(addresses.iter().map(|it| it["type"].as_str().unwrap()));
    kinds
}

fn is_waiting(node: &Value) -> bool {
    let mut taints = node["spec"]["taints"].as_array().into_iter().flatten();
    taints.any(|taint| {
        taint["key"] == UNINITIALIZED && taint["value"] == "true" && taint["effect"] == "NoSchedule"
    })
}

/// Does what a cloud controller manager does to a new node.
async fn initialise(client: &Client, name: &str, address: &str) {
    let nodes = Api::<Node>::all(client.clone());
    let (params, found) = (PatchParams::default(), node(client, name).await);
    let addresses = json!({"status": {"addresses": [
        {"type": "InternalIP", "address": address}, {"type": "Hostname", "address": name},
    ]}});
    let written = nodes
        .patch_status(name, &params, &Patch::Merge(addresses))
        .await;
    written.unwrap();
    let mut taints = found["spec"]["taints"].as_array().unwrap().clone();
    taints.retain(|taint| taint["key"] != UNINITIALIZED);
    let taints = json!({"spec": {"taints": taints}});
    nodes
        .patch(name, &params, &Patch::Merge(taints))
        .await
        .unwrap();
}

async fn dns_pods(client: &Client) -> Vec<Value> {
    let pods = Api::<Pod>::namespaced(client.clone(), "kube-system");
    let pods = list(pods, &ListParams::default().labels("k8s-app=kube-dns")).await;
    let pods = pods.into_iter().map(serde_json::to_value);
    pods.collect::<Result<_, _>>().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_waits_for_its_cloud_controller_manager_and_is_not_reached_before() {
    let (mut cloud, client) = waiting().await;
    let found = node(&client, "cp-0").await;
    assert!(is_waiting(&found), "{found}");
    assert_eq!(addresses(&found), ["Hostname"]);
    assert_eq!(found["spec"]["providerID"], "openstack:///cp-0-id");
    assert_eq!(readiness(&client, "cp-0").await.as_deref(), Some("True"));

    // CoreDNS does not tolerate the taint; kube-proxy does, and has no address.
    eventually(&cloud, "two pods that wait", async || {
        let pods = dns_pods(&client).await;
        let waits = |pod: &Value| {
            let condition = &pod["status"]["conditions"][0];
            let message = condition["message"].as_str().unwrap_or_default();
            pod["status"]["phase"] == "Pending"
                && pod["spec"]["nodeName"].is_null()
                && condition["reason"] == "Unschedulable"
                && message.contains(UNINITIALIZED)
        };
        pods.len() == 2 && pods.iter().all(waits)
    })
    .await;
    let pods = Api::<Pod>::namespaced(client.clone(), "kube-system");
    let forwarded = pods.portforward("etcd-cp-0", &[2379]).await;
    assert!(forwarded.is_err(), "reached without an address");
    let refused = pods
        .logs("etcd-cp-0", &Default::default())
        .await
        .unwrap_err();
    let words = refused.to_string();
    assert!(
        words.contains("dial tcp: lookup cp-0: no such host"),
        "{words}"
    );

    initialise(&client, "cp-0", "10.6.0.10").await;
    eventually(&cloud, "the pods run and have addresses", async || {
        let dns = dns_pods(&client).await;
        let runs =
            |pod: &Value| pod["status"]["phase"] == "Running" && pod["spec"]["nodeName"] == "cp-0";
        let etcd = pods.get("etcd-cp-0").await.unwrap().status.unwrap();
        dns.len() == 2 && dns.iter().all(runs) && etcd.pod_ip.as_deref() == Some("10.6.0.10")
    })
    .await;
    let etcd = cloud.etcd(&client, "cp-0", "etcd/ca").await.unwrap();
    assert_eq!(etcd.members().await.unwrap().len(), 1);

    // After switching off and on, a machine keeps the values set by the manager.
    cloud.add(Machine::join(&cloud, "worker-0", false).external());
    let workers = Api::<Node>::all(client.clone());
    eventually(&cloud, "the worker", async || {
        workers
            .get_opt("worker-0")
            .await
            .is_ok_and(|it| it.is_some())
    })
    .await;
    initialise(&client, "worker-0", "10.6.0.11").await;
    for (running, wanted) in [(false, "Unknown"), (true, "True")] {
        cloud.change("worker-0", |machine| machine.running = running);
        eventually(&cloud, wanted, async || {
            readiness(&client, "worker-0").await.as_deref() == Some(wanted)
        })
        .await;
        let found = node(&client, "worker-0").await;
        assert!(!is_waiting(&found), "{found}");
        assert_eq!(addresses(&found), ["InternalIP", "Hostname"]);
    }
    cloud.stop().await;
}

/// The answer of an HTTP server; `None` if it does not answer.
async fn answer(at: SocketAddr) -> Option<String> {
    let mut stream = TcpStream::connect(at).await.ok()?;
    let request = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).await.ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    head.starts_with("HTTP/1.1 200").then(|| body.to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_listener_leads_to_the_node_ports_of_the_machines_that_run() {
    let (mut cloud, client) = waiting().await;
    cloud.add(Machine::join(&cloud, "worker-0", false));
    eventually(&cloud, "the worker", async || {
        readiness(&client, "worker-0").await.is_some()
    })
    .await;
    let services = Api::<Service>::default_namespaced(client.clone());
    let service = serde_json::from_value(json!({
        "metadata": {"name": "web"},
        "spec": {"type": "LoadBalancer", "ports": [{"port": 8080}], "selector": {"app": "web"}},
    }));
    let created = services
        .create(&PostParams::default(), &service.unwrap())
        .await;
    let node_port = created.unwrap().spec.unwrap().ports.unwrap()[0]
        .node_port
        .unwrap();
    let node_port = u16::try_from(node_port).unwrap();
    cloud.balance(8080, node_port);
    let at = SocketAddr::new(cloud.endpoint, 8080);
    for node in ["cp-0", "worker-0"] {
        let expected = format!(
            "Service default/web, port 8080: node {node}, node port {node_port}; simulated, no Pod runs\n"
        );
        eventually(&cloud, "an answer of each node", async || {
            answer(at).await.as_ref() == Some(&expected)
        })
        .await;
    }

    // A machine that is switched off does not answer; the others do, each time.
    cloud.change("worker-0", |machine| machine.running = false);
    eventually(&cloud, "the machine is off", async || {
        readiness(&client, "worker-0").await.as_deref() == Some("Unknown")
    })
    .await;
    for _ in 0..4 {
        let text = answer(at).await.unwrap();
        assert!(text.contains("node cp-0,"), "{text}");
    }

    services.delete("web", &Default::default()).await.unwrap();
    eventually(&cloud, "no answer", async || {
        TcpStream::connect(at).await.is_err()
    })
    .await;
    cloud.stop().await;
}
