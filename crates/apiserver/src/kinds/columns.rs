//! Printer columns of built-in kinds (`pkg/printers/internalversion` of Kubernetes).

mod cells;

use serde_json::Value;

use super::{Cell, Column};

/// The columns of a built-in kind.
pub(super) fn of(group: &str, kind: &str) -> Vec<Column> {
    let mut all = vec![name()];
    match (group, kind) {
        ("", "Node") => {
            all.extend([
                made("Status", cells::node_status),
                made("Roles", cells::node_roles),
                age(),
            ]);
            all.push(path("Version", ".status.nodeInfo.kubeletVersion"));
            all.extend([
                wide(made("Internal-IP", cells::node_internal_ip)),
                wide(made("External-IP", cells::node_external_ip)),
                wide(made("OS-Image", cells::node_os)),
                wide(made("Kernel-Version", cells::node_kernel)),
                wide(made("Container-Runtime", cells::node_runtime)),
            ]);
        }
        ("", "Pod") => {
            all.extend([
                made("Ready", cells::pod_ready),
                made("Status", cells::pod_status),
                made("Restarts", cells::pod_restarts),
                age(),
                wide(made("IP", cells::pod_ip)),
                wide(made("Node", cells::pod_node)),
                wide(made("Nominated Node", cells::nominated_node)),
                wide(made("Readiness Gates", cells::readiness_gates)),
            ]);
        }
        ("", "Namespace") => all.extend([path("Status", ".status.phase"), age()]),
        ("", "ConfigMap") => all.extend([number(made("Data", cells::data_count)), age()]),
        ("", "Secret") => {
            all.extend([
                path("Type", ".type"),
                number(made("Data", cells::data_count)),
                age(),
            ]);
        }
        ("", "ServiceAccount") => {
            all.extend([number(made("Secrets", cells::secrets_count)), age()])
        }
        ("", "Service") => {
            all.extend([
                path("Type", ".spec.type"),
                made("Cluster-IP", cells::cluster_ip),
                made("External-IP", cells::external_ip),
                made("Port(s)", cells::ports),
                age(),
                wide(made("Selector", cells::selector)),
            ]);
        }
        ("", "Endpoints") => all.extend([made("Endpoints", cells::endpoints), age()]),
        ("", "Event") | ("events.k8s.io", "Event") => return events(),
        ("", "PersistentVolumeClaim") => all.extend([
            path("Status", ".status.phase"),
            path("Volume", ".spec.volumeName"),
            path("Capacity", ".status.capacity.storage"),
            made("Access Modes", cells::access_modes),
            path("StorageClass", ".spec.storageClassName"),
            age(),
        ]),
        ("", "PersistentVolume") => all.extend([
            path("Capacity", ".spec.capacity.storage"),
            made("Access Modes", cells::access_modes),
            path("Reclaim Policy", ".spec.persistentVolumeReclaimPolicy"),
            path("Status", ".status.phase"),
            made("Claim", cells::claim),
            path("StorageClass", ".spec.storageClassName"),
            path("Reason", ".status.reason"),
            age(),
        ]),
        ("apps", kind) => workloads(kind, &mut all),
        ("batch", "Job") => all.extend([
            made("Status", cells::job_status),
            made("Completions", cells::completions),
            age(),
        ]),
        ("coordination.k8s.io", _) => all.extend([path("Holder", ".spec.holderIdentity"), age()]),
        ("policy", _) => all.extend([
            made("Min Available", cells::min_available),
            made("Max Unavailable", cells::max_unavailable),
            integer("Allowed Disruptions", ".status.disruptionsAllowed"),
            age(),
        ]),
        ("rbac.authorization.k8s.io", "ClusterRoleBinding" | "RoleBinding") => {
            all.extend([made("Role", cells::role_ref), age()]);
        }
        ("rbac.authorization.k8s.io", _) | ("apiextensions.k8s.io", _) => {
            let mut created = path("Created At", ".metadata.creationTimestamp");
            "date".clone_into(&mut created.format);
            all.push(created);
        }
        ("storage.k8s.io", "StorageClass") => all.extend([
            path("Provisioner", ".provisioner"),
            path("ReclaimPolicy", ".reclaimPolicy"),
            path("VolumeBindingMode", ".volumeBindingMode"),
            made("AllowVolumeExpansion", cells::expansion),
            age(),
        ]),
        ("storage.k8s.io", "CSINode") => {
            all.extend([number(made("Drivers", cells::drivers)), age()])
        }
        ("storage.k8s.io", "VolumeAttachment") => all.extend([
            path("Attacher", ".spec.attacher"),
            path("PV", ".spec.source.persistentVolumeName"),
            path("Node", ".spec.nodeName"),
            path("Attached", ".status.attached"),
            age(),
        ]),
        ("certificates.k8s.io", _) => all.extend([
            age(),
            path("SignerName", ".spec.signerName"),
            path("Requestor", ".spec.username"),
            made("RequestedDuration", cells::no_duration),
            made("Condition", cells::csr_condition),
        ]),
        ("admissionregistration.k8s.io", _) => {
            all.extend([number(made("Webhooks", cells::webhooks)), age()]);
        }
        _ => all.push(age()),
    }
    all
}

fn workloads(kind: &str, all: &mut Vec<Column>) {
    match kind {
        "Deployment" => all.extend([
            made("Ready", cells::replicas_ready),
            number(made("Up-to-date", cells::updated)),
            number(made("Available", cells::available)),
            age(),
        ]),
        "StatefulSet" => all.extend([made("Ready", cells::replicas_ready), age()]),
        "ReplicaSet" => all.extend([
            integer("Desired", ".spec.replicas"),
            number(made("Current", cells::current)),
            number(made("Ready", cells::ready)),
            age(),
        ]),
        "DaemonSet" => all.extend([
            number(made("Desired", cells::scheduled_desired)),
            number(made("Current", cells::scheduled)),
            number(made("Ready", cells::scheduled_ready)),
            number(made("Up-to-date", cells::scheduled_updated)),
            number(made("Available", cells::scheduled_available)),
            made("Node Selector", cells::node_selector),
            age(),
        ]),
        _ => {
            all.push(age());
            return;
        }
    }
    all.extend([
        wide(made("Containers", cells::containers)),
        wide(made("Images", cells::images)),
        wide(made("Selector", cells::selector)),
    ]);
}

fn events() -> Vec<Column> {
    let mut seen = made("Last Seen", cells::last_seen);
    "string".clone_into(&mut seen.kind);
    vec![
        seen,
        path("Type", ".type"),
        path("Reason", ".reason"),
        made("Object", cells::event_object),
        made("Message", cells::event_message),
        wide(name()),
    ]
}

/// `NAME`, the first column of every kind.
pub(crate) fn name() -> Column {
    Column {
        format: "name".to_owned(),
        description: "Name must be unique within a namespace. Is required when creating resources, although some resources may allow a client to request the generation of an appropriate name automatically. Name is primarily intended for creation idempotence and configuration definition. Cannot be updated. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names".to_owned(),
        ..path("Name", ".metadata.name")
    }
}

/// `AGE`, a column of most kinds.
pub(crate) fn age() -> Column {
    Column {
        kind: "date".to_owned(),
        description: "CreationTimestamp is a timestamp representing the server time when this object was created.".to_owned(),
        ..path("Age", ".metadata.creationTimestamp")
    }
}

fn path(name: &str, path: &str) -> Column {
    Column {
        name: name.to_owned(),
        kind: "string".to_owned(),
        format: String::new(),
        description: String::new(),
        priority: 0,
        cell: Cell::Path(path.to_owned()),
    }
}

fn integer(name: &str, at: &str) -> Column {
    number(path(name, at))
}

fn made(name: &str, make: fn(&Value) -> Value) -> Column {
    Column {
        cell: Cell::Made(make),
        ..path(name, "")
    }
}

fn number(mut column: Column) -> Column {
    "integer".clone_into(&mut column.kind);
    column
}

/// Shown with `-o wide` only.
fn wide(mut column: Column) -> Column {
    column.priority = 1;
    column
}
