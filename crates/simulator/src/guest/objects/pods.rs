//! Mirror pods of a control plane's static pods.
//!
//! The pod `etcd-<node>` runs the etcd member of the node. The deletion of the Node deletes the pod; the member remains
//! until its own removal (`crate::etcd`).

use serde_json::{Value, json};

use super::super::kubeadm::ClusterConfiguration;
use super::Manifest;
use super::node::Machine;
use crate::etcd::VERSION;

/// Collection of the static pods.
pub(crate) const PODS: &str = "/api/v1/namespaces/kube-system/pods";

/// Components that run as static pods, in kubeadm's order of writing their manifests.
pub(crate) const COMPONENTS: [&str; 4] = [
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
];

/// Returns the [`Manifest`]s of a control plane node's mirror pods, with the Node as owner. `host` is the address of
/// the Node, if any.
pub(crate) fn mirror_pods(
    cluster: &ClusterConfiguration,
    machine: &Machine,
    host: &str,
    node_uid: &str,
    bind_port: u16,
    now: &str,
) -> Vec<Manifest> {
    let address = machine
        .internal
        .first()
        .map(ToString::to_string)
        .unwrap_or_default();
    COMPONENTS
        .into_iter()
        .filter(|component| *component != "etcd" || cluster.etcd.external.is_none())
        .map(|component| {
            let pod = mirror_pod(
                cluster,
                machine,
                host,
                node_uid,
                component,
                (&address, bind_port),
                now,
            );
            Manifest::new(PODS, pod)
        })
        .collect()
}

/// Returns the status of a pod from the kubelet while the containers run (`ready`), or from the node lifecycle
/// controller after the kubelet became unresponsive. The addresses of the old status are kept.
pub(crate) fn status(pod: &Value, ready: bool, now: &str) -> Value {
    let text = |pointer: &str| {
        pod.pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let address = text("/status/hostIP");
    let mut status = json!({});
    if !address.is_empty() {
        status = json!({"hostIP": address, "podIP": address, "podIPs": [{"ip": address}]});
    }
    let word = if ready { "True" } else { "False" };
    let condition = |kind: &str, status: &str| json!({"type": kind, "status": status, "lastTransitionTime": now});
    let rest = json!({
        "phase": "Running",
        "conditions": [
            condition("PodReadyToStartContainers", "True"),
            condition("Initialized", "True"),
            condition("Ready", word),
            condition("ContainersReady", word),
            condition("PodScheduled", "True"),
        ],
        "containerStatuses": [{
            "name": text("/spec/containers/0/name"),
            "image": text("/spec/containers/0/image"),
            "imageID": text("/spec/containers/0/image"),
            "containerID": format!("containerd://{}", text("/metadata/annotations/kubernetes.io~1config.hash")),
            "ready": ready,
            "started": true,
            "restartCount": 0,
            "state": {"running": {"startedAt": now}},
            "lastState": {},
        }],
        "qosClass": "Burstable",
        "startTime": now,
    });
    if let (Some(status), Value::Object(rest)) = (status.as_object_mut(), rest) {
        status.extend(rest);
    }
    status
}

fn mirror_pod(
    cluster: &ClusterConfiguration,
    machine: &Machine,
    host: &str,
    node_uid: &str,
    component: &str,
    (address, port): (&str, u16),
    now: &str,
) -> Value {
    let (image, command) = container(cluster, machine, component, address, port);
    // The kubelet hashes the manifest; any deterministic value will do.
    let hash = hash(&format!("{component} {image} {}", machine.uuid));
    let mut annotations = json!({
        "kubernetes.io/config.hash": hash,
        "kubernetes.io/config.mirror": hash,
        "kubernetes.io/config.seen": now,
        "kubernetes.io/config.source": "file",
    });
    match component {
        "etcd" => {
            annotations["kubeadm.kubernetes.io/etcd.advertise-client-urls"] =
                format!("https://{}:2379", bracketed(address)).into();
        }
        "kube-apiserver" => {
            annotations["kubeadm.kubernetes.io/kube-apiserver.advertise-address.endpoint"] =
                format!("{}:{port}", bracketed(address)).into();
        }
        _ => {}
    }
    let mut pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": format!("{component}-{}", machine.name),
            "namespace": "kube-system",
            "labels": {"component": component, "tier": "control-plane"},
            "annotations": annotations,
            "ownerReferences": [{
                "apiVersion": "v1", "kind": "Node", "name": machine.name, "uid": node_uid,
                "controller": true,
            }],
        },
        "spec": {
            "containers": [{
                "name": component,
                "image": image,
                "imagePullPolicy": "IfNotPresent",
                "command": command,
            }],
            "hostNetwork": true,
            "nodeName": machine.name,
            "priority": 2_000_001_000,
            "priorityClassName": "system-node-critical",
            "restartPolicy": "Always",
            "tolerations": [{"effect": "NoExecute", "operator": "Exists"}],
        },
    });
    pod["status"] = json!({"hostIP": host});
    pod["status"] = status(&pod, true, now);
    pod
}

fn container(
    cluster: &ClusterConfiguration,
    machine: &Machine,
    component: &str,
    address: &str,
    port: u16,
) -> (String, Vec<String>) {
    let address = bracketed(address);
    let arguments = match component {
        "etcd" => vec![
            format!("--name={}", machine.name),
            format!("--advertise-client-urls=https://{address}:2379"),
            format!("--listen-client-urls=https://127.0.0.1:2379,https://{address}:2379"),
            "--data-dir=/var/lib/etcd".to_owned(),
        ],
        "kube-apiserver" => vec![
            format!("--advertise-address={}", address.trim_matches(['[', ']'])),
            format!("--secure-port={port}"),
            "--enable-bootstrap-token-auth=true".to_owned(),
        ],
        _ => vec!["--leader-elect=true".to_owned()],
    };
    let image = match component {
        "etcd" => {
            let local = cluster.etcd.local.clone().unwrap_or_default();
            let tag = local.image_tag.unwrap_or_else(|| format!("{VERSION}-0"));
            match local.image_repository {
                Some(registry) => format!("{registry}/etcd:{tag}"),
                None => super::image(cluster, "etcd", &tag),
            }
        }
        _ => super::image(cluster, component, &machine.version),
    };
    let command = [component.to_owned()]
        .into_iter()
        .chain(arguments)
        .collect();
    (image, command)
}

fn bracketed(address: &str) -> String {
    if address.contains(':') {
        format!("[{address}]")
    } else {
        address.to_owned()
    }
}

fn hash(text: &str) -> String {
    use sha2::Digest as _;
    let digest = sha2::Sha256::digest(text);
    super::super::pki::hex(digest.get(..16).unwrap_or_default())
}
