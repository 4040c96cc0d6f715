//! Node as registered by a kubelet, and its status.

use std::net::IpAddr;

use serde_json::{Map, Value, json};

use super::super::kubeadm::{NodeRegistration, Taint, minor};

/// Taint of a node that the cloud controller manager has not initialised yet.
pub(crate) const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";

/// Label and taint key of control plane nodes.
pub(crate) const CONTROL_PLANE: &str = "node-role.kubernetes.io/control-plane";

/// Collection of Nodes.
pub(crate) const NODES: &str = "/api/v1/nodes";

/// Data of a machine that its kubelet reports.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Machine {
    /// Nova's server id, also the system UUID of the guest.
    pub(crate) uuid: String,
    /// Name of the node.
    pub(crate) name: String,
    /// Fixed addresses.
    pub(crate) internal: Vec<IpAddr>,
    /// Floating addresses.
    pub(crate) external: Vec<IpAddr>,
    /// Version of the kubelet, such as `v1.34.1`.
    pub(crate) version: String,
    /// Virtual CPUs.
    pub(crate) vcpus: u32,
    /// Memory in MiB.
    pub(crate) memory_mib: u64,
    /// Root disk in GiB.
    pub(crate) disk_gib: u64,
    /// True for a control plane of kubeadm.
    pub(crate) control_plane: bool,
}

/// Returns the Node as registered by the kubelet, with the taints given by kubeadm.
pub(crate) fn node(machine: &Machine, registration: &NodeRegistration, now: &str) -> Value {
    let mut labels = Map::new();
    for (key, value) in [
        ("beta.kubernetes.io/arch", "amd64"),
        ("beta.kubernetes.io/os", "linux"),
        ("kubernetes.io/arch", "amd64"),
        ("kubernetes.io/os", "linux"),
        ("kubernetes.io/hostname", machine.name.as_str()),
    ] {
        labels.insert(key.to_owned(), value.into());
    }
    labels.extend(
        given_labels(registration)
            .into_iter()
            .map(|(key, value)| (key, value.into())),
    );
    let mut spec = Map::new();
    if let Some(id) = registration
        .kubelet_argument("provider-id")
        .filter(|id| !id.is_empty())
    {
        spec.insert("providerID".to_owned(), id.into());
    }
    let taints = taints(machine, registration, now);
    if !taints.is_empty() {
        spec.insert("taints".to_owned(), taints.into());
    }
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": machine.name,
            "labels": labels,
            "annotations": annotations(machine, registration),
        },
        "spec": spec,
        "status": status(machine, &addresses(machine, registration), now),
    })
}

/// Returns the labels of a control plane node from kubeadm; empty for other nodes.
pub(crate) fn marks(machine: &Machine) -> Map<String, Value> {
    let all = [
        CONTROL_PLANE,
        "node.kubernetes.io/exclude-from-external-load-balancers",
    ];
    let marks = all.into_iter().filter(|_| machine.control_plane);
    marks.map(|label| (label.to_owned(), "".into())).collect()
}

/// Returns the labels of `--node-labels`.
fn given_labels(registration: &NodeRegistration) -> Vec<(String, String)> {
    let given = registration.kubelet_argument("node-labels");
    let given = given.unwrap_or_default();
    let pairs = given.split(',').filter_map(|pair| pair.split_once('='));
    let trimmed = |text: &str| text.trim().to_owned();
    pairs
        .map(|(key, value)| (trimmed(key), trimmed(value)))
        .collect()
}

/// Returns the error of a kubelet that does not start: `--node-labels` has labels of Kubernetes that no kubelet may
/// set.
pub(crate) fn refused_labels(registration: &NodeRegistration) -> Option<String> {
    const SETTABLE: [&str; 11] = [
        "beta.kubernetes.io/arch",
        "beta.kubernetes.io/instance-type",
        "beta.kubernetes.io/os",
        "failure-domain.beta.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone",
        "kubernetes.io/arch",
        "kubernetes.io/hostname",
        "kubernetes.io/os",
        "node.kubernetes.io/instance-type",
        "topology.kubernetes.io/region",
        "topology.kubernetes.io/zone",
    ];
    let refused = |label: &str| {
        let prefix = label.split_once('/').map_or("", |(prefix, _)| prefix);
        let within = |domain: &str| {
            let rest = prefix.strip_suffix(domain);
            rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        (within("kubernetes.io") || within("k8s.io"))
            && !within("kubelet.kubernetes.io")
            && !within("node.kubernetes.io")
            && !SETTABLE.contains(&label)
    };
    let mut labels: Vec<String> = given_labels(registration)
        .into_iter()
        .map(|(key, _)| key)
        .filter(|key| refused(key))
        .collect();
    labels.sort();
    (!labels.is_empty()).then(|| {
        format!(
            "unknown 'kubernetes.io' or 'k8s.io' labels specified with --node-labels: [{}]",
            labels.join(" ")
        )
    })
}

/// True if the kubelet leaves addresses and providerID to a cloud controller manager (`--cloud-provider=external`).
pub(crate) fn is_external(registration: &NodeRegistration) -> bool {
    registration.kubelet_argument("cloud-provider").as_deref() == Some("external")
}

/// Returns the addresses that the kubelet reports. With an external cloud provider, these are the host name and the
/// addresses of `--node-ip`.
pub(crate) fn addresses(machine: &Machine, registration: &NodeRegistration) -> Vec<Value> {
    let of = |kind: &str, address: &dyn std::fmt::Display| json!({"type": kind, "address": address.to_string()});
    let internal: Vec<IpAddr>;
    let external: &[IpAddr];
    if is_external(registration) {
        let given = registration.kubelet_argument("node-ip").unwrap_or_default();
        internal = given
            .split(',')
            .filter_map(|address| address.trim().parse().ok())
            .filter(|address: &IpAddr| !address.is_unspecified())
            .collect();
        external = &[];
    } else {
        internal = machine.internal.clone();
        external = &machine.external;
    }
    let internal = internal.iter().map(|address| of("InternalIP", address));
    let external = external.iter().map(|address| of("ExternalIP", address));
    internal
        .chain(external)
        .chain([of("Hostname", &machine.name)])
        .collect()
}

/// Returns the annotations of a Node. kubeadm records the CRI socket there before 1.34 only.
fn annotations(machine: &Machine, registration: &NodeRegistration) -> Value {
    let mut annotations = json!({"volumes.kubernetes.io/controller-managed-attach-detach": "true"});
    if minor(&machine.version).is_none_or(|minor| minor < 34) {
        let socket = registration.cri_socket.as_deref();
        annotations["kubeadm.alpha.kubernetes.io/cri-socket"] = socket
            .unwrap_or("unix:///var/run/containerd/containerd.sock")
            .into();
    }
    if is_external(registration)
        && let Some(given) = registration.kubelet_argument("node-ip")
    {
        annotations["alpha.kubernetes.io/provided-node-ip"] = given.into();
    }
    annotations
}

/// Returns the first address of the type `InternalIP` of a Node; empty without one.
pub(crate) fn internal_address(node: &Value) -> &str {
    let addresses = node.pointer("/status/addresses").and_then(Value::as_array);
    addresses
        .into_iter()
        .flatten()
        .find(|address| address["type"] == "InternalIP")
        .and_then(|address| address["address"].as_str())
        .unwrap_or_default()
}

/// Returns the status of a healthy kubelet with these addresses.
pub(crate) fn status(machine: &Machine, addresses: &[Value], now: &str) -> Value {
    let conditions: Vec<Value> = HEALTHY
        .iter()
        .map(|(kind, status, reason, message)| {
            json!({
                "type": kind, "status": status, "reason": reason, "message": message,
                "lastHeartbeatTime": now, "lastTransitionTime": now,
            })
        })
        .collect();
    let capacity = |memory_mib: u64| {
        json!({
            "cpu": machine.vcpus.max(1).to_string(),
            "memory": format!("{}Ki", memory_mib * 1024),
            "ephemeral-storage": format!("{}Ki", machine.disk_gib.max(1) * 1024 * 1024),
            "hugepages-2Mi": "0",
            "pods": "110",
        })
    };
    let memory = machine.memory_mib.max(512);
    json!({
        "addresses": addresses,
        "capacity": capacity(memory),
        "allocatable": capacity(memory.saturating_sub(100)), // evictionHard: memory.available<100Mi
        "conditions": conditions,
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        "nodeInfo": {
            "architecture": "amd64",
            "bootID": machine.uuid,
            "containerRuntimeVersion": "containerd://2.0.0",
            "kernelVersion": "6.8.0-simulated",
            "kubeProxyVersion": machine.version,
            "kubeletVersion": machine.version,
            "machineID": machine.uuid.replace('-', ""),
            "operatingSystem": "linux",
            "osImage": "Simulated guest",
            "systemUUID": machine.uuid,
        },
    })
}

/// Type, status, reason and message of the conditions of a healthy kubelet.
const HEALTHY: [(&str, &str, &str, &str); 4] = [
    (
        "MemoryPressure",
        "False",
        "KubeletHasSufficientMemory",
        "kubelet has sufficient memory available",
    ),
    (
        "DiskPressure",
        "False",
        "KubeletHasNoDiskPressure",
        "kubelet has no disk pressure",
    ),
    (
        "PIDPressure",
        "False",
        "KubeletHasSufficientPID",
        "kubelet has sufficient PID available",
    ),
    (
        "Ready",
        "True",
        "KubeletReady",
        "kubelet is posting ready status",
    ),
];

/// True if the condition `Ready` is true.
pub(crate) fn is_ready(conditions: &[Value]) -> bool {
    conditions.iter().any(|condition| {
        condition.get("type").is_some_and(|kind| kind == "Ready")
            && condition
                .get("status")
                .is_some_and(|status| status == "True")
    })
}

/// Returns the conditions of a Node whose kubelet runs again, from the former ones. Conditions of others are kept.
pub(crate) fn recovered(conditions: &[Value], now: &str) -> Vec<Value> {
    conditions
        .iter()
        .map(|condition| {
            let mut condition = condition.clone();
            let healthy = HEALTHY.iter().find(|(kind, ..)| condition["type"] == *kind);
            if let Some((_, status, reason, message)) = healthy
                && condition["status"] != *status
            {
                condition["status"] = (*status).into();
                condition["reason"] = (*reason).into();
                condition["message"] = (*message).into();
                condition["lastHeartbeatTime"] = now.into();
                condition["lastTransitionTime"] = now.into();
            }
            condition
        })
        .collect()
}

/// Returns the conditions of a Node with an unresponsive kubelet, from the former ones, as set by the node lifecycle
/// controller.
pub(crate) fn silent(conditions: &[Value], now: &str) -> Vec<Value> {
    conditions
        .iter()
        .map(|condition| {
            let mut condition = condition.clone();
            if condition
                .get("status")
                .is_some_and(|status| status != "Unknown")
            {
                condition["status"] = "Unknown".into();
                condition["reason"] = "NodeStatusUnknown".into();
                condition["message"] = "Kubelet stopped posting node status.".into();
                condition["lastTransitionTime"] = now.into();
            }
            condition
        })
        .collect()
}

/// Returns the taints of an unreachable node, in addition to its other taints.
pub(crate) fn unreachable_taints(taints: &[Value], now: &str) -> Vec<Value> {
    let mut taints = reachable_taints(taints);
    for effect in ["NoSchedule", "NoExecute"] {
        taints.push(json!({"key": UNREACHABLE, "effect": effect, "timeAdded": now}));
    }
    taints
}

/// Returns the taints of a node without the ones of an unreachable node.
pub(crate) fn reachable_taints(taints: &[Value]) -> Vec<Value> {
    taints
        .iter()
        .filter(|taint| taint.get("key").is_none_or(|key| key != UNREACHABLE))
        .cloned()
        .collect()
}

const UNREACHABLE: &str = "node.kubernetes.io/unreachable";

fn taints(machine: &Machine, registration: &NodeRegistration, now: &str) -> Vec<Value> {
    let default = || {
        if machine.control_plane {
            vec![Taint {
                key: CONTROL_PLANE.to_owned(),
                value: String::new(),
                effect: "NoSchedule".to_owned(),
            }]
        } else {
            Vec::new()
        }
    };
    let mut taints = registration.taints.clone().unwrap_or_else(default);
    let flag = registration
        .kubelet_argument("register-with-taints")
        .unwrap_or_default();
    taints.extend(flag.split(',').filter_map(|text| {
        let (key, effect) = text.trim().rsplit_once(':')?;
        let (key, value) = key.split_once('=').unwrap_or((key, ""));
        Some(Taint {
            key: key.to_owned(),
            value: value.to_owned(),
            effect: effect.to_owned(),
        })
    }));
    if is_external(registration) {
        taints.push(Taint {
            key: UNINITIALIZED.to_owned(),
            value: "true".to_owned(),
            effect: "NoSchedule".to_owned(),
        });
    }
    taints
        .into_iter()
        .map(|taint| {
            let mut out = json!({"key": taint.key, "effect": taint.effect});
            if !taint.value.is_empty() {
                out["value"] = taint.value.into();
            }
            if out["effect"] == "NoExecute" {
                out["timeAdded"] = now.into();
            }
            out
        })
        .collect()
}
