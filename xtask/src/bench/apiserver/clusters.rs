//! Memory of many API servers in one process, the way of simulated workload clusters.
//!
//! Each [`ApiServer`] has the objects of a kubeadm cluster with one control plane node and three workers after a
//! quarter of an hour: objects of `kubeadm init`, nodes and leases with their heartbeats, pods, services and events of
//! the system.

use apiserver::{ApiServer, Options};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tower::Service;

/// Number of clusters filled concurrently.
const AT_ONCE: usize = 4;
const NODES: usize = 4;
/// Number of past events of each resource, as in the simulated guests.
const HISTORY: usize = 50;
/// Renewals of each lease, one every ten seconds: enough for a full history of leases.
const RENEWALS: usize = 50;
/// Updates of each node's status: one every five minutes, and some before the node is ready.
const HEARTBEATS: usize = 5;
const VERSION: &str = "v1.34.2";
const TIME: &str = "2026-01-01T10:00:00Z";
const SYSTEM: &str = "/api/v1/namespaces/kube-system";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

/// Results of a number of servers.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Figures {
    pub(super) clusters: usize,
    /// Number of objects of each server.
    pub(super) objects: usize,
    /// Size of these objects as JSON, in bytes.
    pub(super) object_bytes: usize,
    /// Number of writes to each server.
    pub(super) writes: u64,
    /// Resident memory of the process with the first server only.
    pub(super) first_megabytes: f64,
    /// Resident memory of the process with all servers.
    pub(super) megabytes: f64,
}

/// Opens `count` servers, fills them, and prints [`Figures`] as JSON.
pub(super) async fn run(count: usize) -> anyhow::Result<()> {
    let pid = std::process::id();
    // The first server includes everything that the servers share.
    let mut all = vec![cluster().await?];
    let first_megabytes = super::servers::rss(pid)?;
    let mut filling = JoinSet::new();
    for _ in 1..count {
        if filling.len() == AT_ONCE
            && let Some(filled) = filling.join_next().await
        {
            all.push(filled??);
        }
        filling.spawn(cluster());
    }
    while let Some(filled) = filling.join_next().await {
        all.push(filled??);
    }
    let stats = all.first().map(ApiServer::stats).unwrap_or_default();
    let figures = Figures {
        clusters: all.len(),
        objects: stats.objects,
        object_bytes: stats.object_bytes,
        writes: stats.revision,
        first_megabytes,
        megabytes: super::servers::rss(pid)?,
    };
    crate::print(&serde_json::to_string(&figures)?)
}

async fn cluster() -> anyhow::Result<ApiServer> {
    let server = ApiServer::open(Options {
        history: HISTORY,
        ..Options::default()
    })
    .await?;
    for (path, object) in kubeadm().into_iter().chain(addons()) {
        call(&server, "POST", &path, &object).await?;
    }
    for number in 0..NODES {
        let name = format!("node-{number}");
        join(&server, number, &name).await?;
        for (path, object) in pods(number, &name).into_iter().chain(events(&name)) {
            call(&server, "POST", &path, &object).await?;
        }
    }
    Ok(server)
}

/// Creates a node with its lease, and sends heartbeats of both.
async fn join(server: &ApiServer, number: usize, name: &str) -> anyhow::Result<()> {
    call(server, "POST", "/api/v1/nodes", &node(number, name)).await?;
    for heartbeat in 0..HEARTBEATS {
        let time = format!("2026-01-01T10:{heartbeat:02}:00Z");
        let conditions = ["MemoryPressure", "DiskPressure", "PIDPressure", "Ready"]
            .map(|kind| json!({
                "type": kind, "status": if kind == "Ready" { "True" } else { "False" },
                "reason": format!("KubeletHasSufficient{kind}"), "message": format!("kubelet has sufficient {kind} available"),
                "lastHeartbeatTime": time, "lastTransitionTime": TIME,
            }))
            ;
        let status = json!({"status": {"conditions": conditions}});
        let path = format!("/api/v1/nodes/{name}/status");
        call(server, "PATCH", &path, &status).await?;
    }
    let lease = |time: &str| {
        json!({"metadata": {"name": name}, "spec": {
            "holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": format!("2026-01-01T10:{time}.000000Z"),
        }})
    };
    call(server, "POST", LEASES, &lease("00:00")).await?;
    for renewal in 0..RENEWALS {
        let time = format!("{:02}:{:02}", renewal / 6, renewal % 6 * 10);
        let path = format!("{LEASES}/{name}");
        call(server, "PATCH", &path, &lease(&time)).await?;
    }
    Ok(())
}

fn node(number: usize, name: &str) -> Value {
    let capacity = json!({"cpu": "4", "memory": "8145472Ki", "ephemeral-storage": "20961280Ki", "hugepages-2Mi": "0", "pods": "110"});
    let mut node = json!({
        "metadata": {
            "name": name,
            "labels": {
                "beta.kubernetes.io/arch": "amd64", "beta.kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
                "kubernetes.io/os": "linux", "kubernetes.io/hostname": name,
            },
            "annotations": {
                "kubeadm.alpha.kubernetes.io/cri-socket": "unix:///var/run/containerd/containerd.sock",
                "volumes.kubernetes.io/controller-managed-attach-detach": "true",
            },
        },
        "spec": {"podCIDR": format!("10.244.{number}.0/24"), "podCIDRs": [format!("10.244.{number}.0/24")], "providerID": format!("openstack:///{name}")},
        "status": {
            "addresses": [{"type": "InternalIP", "address": format!("10.6.0.{number}")}, {"type": "Hostname", "address": name}],
            "capacity": capacity, "allocatable": capacity,
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "nodeInfo": {
                "architecture": "amd64", "operatingSystem": "linux", "osImage": "Ubuntu 24.04.1 LTS", "kernelVersion": "6.8.0-45-generic",
                "containerRuntimeVersion": "containerd://2.0.0", "kubeletVersion": VERSION, "kubeProxyVersion": VERSION,
                "machineID": "6f3c1a0d2b8e4a5f9d7c0e1b2a3f4d5c", "systemUUID": "6f3c1a0d-2b8e-4a5f-9d7c-0e1b2a3f4d5c", "bootID": "6f3c1a0d-2b8e-4a5f-9d7c-0e1b2a3f4d5c",
            },
        },
    });
    if number == 0 {
        node["spec"]["taints"] =
            json!([{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}]);
        node["metadata"]["labels"]["node-role.kubernetes.io/control-plane"] = "".into();
    }
    node
}

/// Static pods of the control plane, and the pods of each node.
fn pods(number: usize, node: &str) -> Vec<(String, Value)> {
    let control_plane: &[&str] = match number {
        0 => &[
            "etcd",
            "kube-apiserver",
            "kube-controller-manager",
            "kube-scheduler",
        ],
        _ => &[],
    };
    let everywhere: &[&str] = match number {
        1 | 2 => &["kube-proxy", "cni", "coredns"],
        _ => &["kube-proxy", "cni"],
    };
    let all = control_plane.iter().chain(everywhere);
    all.map(|component| (format!("{SYSTEM}/pods"), pod(component, node)))
        .collect()
}

fn pod(component: &str, node: &str) -> Value {
    let image = format!("registry.k8s.io/{component}:{VERSION}");
    let condition =
        |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": TIME});
    let conditions = [
        "PodReadyToStartContainers",
        "Initialized",
        "Ready",
        "ContainersReady",
        "PodScheduled",
    ]
    .map(condition);
    json!({
        "metadata": {
            "name": format!("{component}-{node}"),
            "labels": {"component": component, "k8s-app": component, "tier": "node"},
            "annotations": {
                "kubernetes.io/config.hash": "9d5ed678fe57bcca610140957afab571", "kubernetes.io/config.mirror": "9d5ed678fe57bcca610140957afab571",
                "kubernetes.io/config.seen": TIME, "kubernetes.io/config.source": "file",
            },
        },
        "spec": {
            "containers": [{
                "name": component, "image": image, "imagePullPolicy": "IfNotPresent",
                "command": [component, "--config=/etc/config.conf", "--leader-elect=true", format!("--hostname-override={node}")],
                "volumeMounts": [{"name": "config", "mountPath": "/etc/config.conf", "readOnly": true}],
                "resources": {"requests": {"cpu": "100m"}},
            }],
            "volumes": [{"name": "config", "configMap": {"name": component}}],
            "hostNetwork": true, "nodeName": node, "priorityClassName": "system-node-critical",
            "tolerations": [{"effect": "NoExecute", "operator": "Exists"}],
        },
        "status": {
            "phase": "Running", "qosClass": "Burstable", "hostIP": "10.6.0.1", "podIP": "10.6.0.1", "podIPs": [{"ip": "10.6.0.1"}], "startTime": TIME,
            "conditions": conditions,
            "containerStatuses": [{
                "name": component, "image": image, "imageID": image, "containerID": "containerd://9d5ed678fe57bcca610140957afab571",
                "ready": true, "started": true, "restartCount": 0, "state": {"running": {"startedAt": TIME}}, "lastState": {},
            }],
        },
    })
}

/// Events of a node's start.
fn events(node: &str) -> Vec<(String, Value)> {
    let reasons = [
        "Starting",
        "NodeHasSufficientMemory",
        "NodeHasNoDiskPressure",
        "NodeReady",
        "RegisteredNode",
    ];
    let event = |(n, reason): (usize, &&str)| {
        let event = json!({
            "metadata": {"name": format!("{node}.18a2b3c4d5e6f70{n}")},
            "involvedObject": {"apiVersion": "v1", "kind": "Node", "name": node, "uid": node},
            "reason": reason, "message": format!("Node {node} status is now: {reason}"), "type": "Normal", "count": 1,
            "source": {"component": "kubelet", "host": node}, "firstTimestamp": TIME, "lastTimestamp": TIME,
        });
        ("/api/v1/namespaces/default/events".to_owned(), event)
    };
    reasons.iter().enumerate().map(event).collect()
}

/// ConfigMaps, bootstrap tokens and rules.
fn kubeadm() -> Vec<(String, Value)> {
    let mut all = Vec::new();
    for (namespace, name, bytes) in [
        ("kube-public", "cluster-info", 1800),
        ("kube-system", "kubeadm-config", 900),
        ("kube-system", "kubelet-config", 600),
        ("kube-system", "kube-proxy", 1200),
        ("kube-system", "coredns", 500),
    ] {
        let data = "setting: value\n".repeat(bytes / 15);
        let map = json!({"metadata": {"name": name}, "data": {"config": data}});
        all.push((format!("/api/v1/namespaces/{namespace}/configmaps"), map));
    }
    for node in 0..NODES {
        all.push((
            format!("{SYSTEM}/secrets"),
            json!({
                "metadata": {"name": format!("bootstrap-token-abcde{node}")},
                "type": "bootstrap.kubernetes.io/token",
                "stringData": {
                    "token-id": format!("abcde{node}"), "token-secret": "0123456789abcdef", "usage-bootstrap-authentication": "true",
                    "usage-bootstrap-signing": "true", "auth-extra-groups": "system:bootstrappers:kubeadm:default-node-token",
                },
            }),
        ));
    }
    let subjects = json!([{"kind": "Group", "name": "system:bootstrappers:kubeadm:default-node-token", "apiGroup": "rbac.authorization.k8s.io"}]);
    let role = |kind: &str, name: &str| json!({"kind": kind, "name": name, "apiGroup": "rbac.authorization.k8s.io"});
    for name in ["nodes-kubeadm-config", "kubelet-config", "kube-proxy"] {
        let rules = json!([{"apiGroups": [""], "resources": ["configmaps"], "resourceNames": [name], "verbs": ["get"]}]);
        let base = format!("{RBAC}/namespaces/kube-system");
        all.push((
            format!("{base}/roles"),
            json!({"metadata": {"name": name}, "rules": rules}),
        ));
        let binding = json!({"metadata": {"name": name}, "roleRef": role("Role", name), "subjects": subjects});
        all.push((format!("{base}/rolebindings"), binding));
    }
    for name in [
        "get-nodes",
        "kubelet-bootstrap",
        "node-autoapprove-bootstrap",
        "cluster-admins",
    ] {
        let binding = json!({"metadata": {"name": name}, "roleRef": role("ClusterRole", name), "subjects": subjects});
        all.push((format!("{RBAC}/clusterrolebindings"), binding));
    }
    all
}

/// kube-proxy, a pod network and DNS.
fn addons() -> Vec<(String, Value)> {
    let mut all = Vec::new();
    for name in ["kube-proxy", "cni", "coredns"] {
        let labels = json!({"k8s-app": name});
        let account = json!({"metadata": {"name": name}});
        all.push((format!("{SYSTEM}/serviceaccounts"), account));
        let (resource, replicas) = match name {
            "coredns" => ("deployments", json!(2)),
            _ => ("daemonsets", Value::Null),
        };
        let mut object = json!({
            "metadata": {"name": name, "labels": labels},
            "spec": {
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": {
                    "serviceAccountName": name, "priorityClassName": "system-node-critical",
                    "containers": [{"name": name, "image": format!("registry.k8s.io/{name}:{VERSION}"), "command": [name, "--config=/etc/config.conf"]}],
                }},
            },
        });
        if !replicas.is_null() {
            object["spec"]["replicas"] = replicas;
        }
        all.push((
            format!("/apis/apps/v1/namespaces/kube-system/{resource}"),
            object,
        ));
    }
    for (namespace, name, port) in [
        ("default", "kubernetes", 443),
        ("kube-system", "kube-dns", 53),
    ] {
        let service = json!({
            "metadata": {"name": name, "labels": {"k8s-app": name}},
            "spec": {"selector": {"k8s-app": name}, "ports": [{"name": "first", "port": port, "protocol": "TCP"}]},
        });
        all.push((format!("/api/v1/namespaces/{namespace}/services"), service));
        let slice = json!({
            "metadata": {"name": format!("{name}-slice"), "labels": {"kubernetes.io/service-name": name}},
            "addressType": "IPv4", "ports": [{"name": "first", "port": port, "protocol": "TCP"}],
            "endpoints": [{"addresses": ["10.6.0.1"], "conditions": {"ready": true}}, {"addresses": ["10.6.0.2"], "conditions": {"ready": true}}],
        });
        let slices = format!("/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices");
        all.push((slices, slice));
    }
    all
}

async fn call(server: &ApiServer, method: &str, path: &str, body: &Value) -> anyhow::Result<()> {
    let kind = match method {
        "PATCH" => "application/merge-patch+json",
        _ => "application/json",
    };
    let request = Request::builder()
        .method(method)
        .uri(path)
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
