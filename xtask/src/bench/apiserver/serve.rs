//! The embedded API server in a process of its own, and a thousand of them in one.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::Context;
use apiserver::{ApiServer, Options, Store, Synchronous, server_config};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tower::Service;

/// Serves on SQLite, each write on disk before it is acknowledged, with the certificates in `directory`, until its
/// standard input ends.
pub(super) async fn one(directory: &Path) -> anyhow::Result<()> {
    let read =
        |name: &str| std::fs::read_to_string(directory.join(name)).with_context(|| name.to_owned());
    let ca = read("ca.crt")?;
    let server = ApiServer::open(Options {
        store: Store::Sqlite {
            path: directory.join("objects.db"),
            synchronous: Synchronous::Full,
        },
        client_ca: Some(ca.clone()),
        ..Options::default()
    })
    .await?;
    let tls = server_config(&read("server.crt")?, &read("server.key")?, Some(&ca))?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address: SocketAddr = listener.local_addr()?;
    crate::print(&format!("{address}\n"))?;
    let stop = CancellationToken::new();
    let stopped = stop.clone();
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        stopped.cancel();
    });
    server.serve(listener, tls, stop).await;
    server.close().await;
    Ok(())
}

/// Opens `count` servers in memory, gives each the objects of a cluster of four nodes, and prints the resident memory
/// in megabytes: before, and with all of them.
pub(super) async fn many(count: usize) -> anyhow::Result<()> {
    let pid = std::process::id();
    // What all of them share is there with the first.
    let first = cluster().await?;
    let before = super::servers::rss(pid)?;
    let mut all = vec![first];
    for _ in 1..count {
        all.push(cluster().await?);
    }
    let objects = all.first().map_or(0, |server| server.stats().objects);
    let after = super::servers::rss(pid)?;
    crate::print(&format!(
        "{}\n",
        json!({"objects": objects, "before": before, "after": after})
    ))
}

/// A cluster as kubeadm leaves it: one control plane node, three workers, each object as its writers make it.
async fn cluster() -> anyhow::Result<ApiServer> {
    let server = ApiServer::open(Options::default()).await?;
    let system = "/api/v1/namespaces/kube-system";
    for node in 0..4 {
        let name = format!("node-{node}");
        let post = |path: String, object: Value| call(&server, "POST", path, object);
        post("/api/v1/nodes".to_owned(), json!({
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}},
            "spec": {"podCIDR": format!("10.244.{node}.0/24"), "providerID": format!("openstack:///{name}")},
        })).await?;
        let status = json!({"status": {
            "addresses": [{"type": "InternalIP", "address": format!("10.6.0.{node}")}],
            "capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is posting ready status"}],
            "nodeInfo": {"kubeletVersion": "v1.34.2", "osImage": "Ubuntu 24.04", "architecture": "amd64", "operatingSystem": "linux",
                "bootID": "", "containerRuntimeVersion": "containerd://2.1", "kernelVersion": "6.8", "kubeProxyVersion": "", "machineID": "", "systemUUID": ""},
        }});
        // Heartbeats are history too.
        for _ in 0..3 {
            let path = format!("/api/v1/nodes/{name}/status");
            call(&server, "PATCH", path, status.clone()).await?;
        }
        let leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
        let lease = json!({"metadata": {"name": name}, "spec": {"holderIdentity": name, "leaseDurationSeconds": 40}});
        post(leases.to_owned(), lease).await?;
        let control_plane = [
            "etcd",
            "kube-apiserver",
            "kube-controller-manager",
            "kube-scheduler",
        ];
        let everywhere = ["kube-proxy", "cni", "coredns"];
        let pods = control_plane
            .iter()
            .filter(|_| node == 0)
            .chain(&everywhere);
        for pod in pods {
            post(format!("{system}/pods"), json!({
                "metadata": {"name": format!("{pod}-{name}"), "labels": {"k8s-app": pod, "tier": "node"}},
                "spec": {"nodeName": name, "containers": [{"name": pod, "image": format!("registry.k8s.io/{pod}:v1.34.2"), "command": [pod, "--config=/etc/config.conf"]}]},
                "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
            })).await?;
        }
    }
    for name in ["kubeadm-config", "kubelet-config", "kube-proxy", "coredns"] {
        let map =
            json!({"metadata": {"name": name}, "data": {"config": "setting: value\n".repeat(60)}});
        call(&server, "POST", format!("{system}/configmaps"), map).await?;
    }
    Ok(server)
}

async fn call(server: &ApiServer, method: &str, path: String, body: Value) -> anyhow::Result<()> {
    let kind = match method {
        "PATCH" => "application/merge-patch+json",
        _ => "application/json",
    };
    let request = Request::builder()
        .method(method)
        .uri(&path)
        .header("content-type", kind)
        .body(Full::new(Bytes::from(body.to_string())))?;
    let response = server.in_process().call(request).await?;
    let status = response.status();
    let body = response.into_body().collect().await?.to_bytes();
    anyhow::ensure!(
        status.is_success(),
        "{method} {path}: {}",
        String::from_utf8_lossy(&body)
    );
    Ok(())
}
