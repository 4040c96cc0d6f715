//! Printer columns of built-in kinds (`pkg/printers/internalversion` of Kubernetes).

mod cells;
mod more;

use std::collections::HashMap;
use std::sync::LazyLock;

use serde_json::Value;

use super::{Cell, Column};

/// A column as `columns.json` tells it, which kube-apiserver 1.34 printed: name, type, format, description (none for
/// the name and the age), priority.
type Told = (String, String, String, String, i64);

static TOLD: LazyLock<HashMap<String, Vec<Told>>> = LazyLock::new(|| {
    // Part of the program; a test holds that it parses.
    serde_json::from_str(include_str!("columns.json")).unwrap_or_default()
});

/// The columns of a built-in kind, in the order and the words of kube-apiserver.
pub(super) fn of(group: &str, version: &str, kind: &str) -> Vec<Column> {
    let mut made = cells_of(group, kind);
    let Some(told) = TOLD.get(&format!("{group}/{version}, Kind={kind}")) else {
        return made;
    };
    let mut all = Vec::with_capacity(told.len());
    for (name, kind, format, description, priority) in told {
        let at = made.iter().position(|column| column.name == *name);
        let mut column = match at {
            Some(at) => made.remove(at),
            None => self::made(name, cells::nothing),
        };
        column.told = Some(kind.clone());
        column.format.clone_from(format);
        if !description.is_empty() {
            column.description.clone_from(description);
        }
        column.priority = *priority;
        all.push(column);
    }
    all
}

/// What the cells of each column are made of.
fn cells_of(group: &str, kind: &str) -> Vec<Column> {
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
            made("Volume", more::bound_volume),
            made("Capacity", more::bound_capacity),
            made("Access Modes", more::bound_modes),
            path("StorageClass", ".spec.storageClassName"),
            made("VolumeAttributesClass", more::attributes_class),
            made("VolumeMode", more::volume_mode),
            age(),
        ]),
        ("", "PersistentVolume") => all.extend([
            path("Capacity", ".spec.capacity.storage"),
            made("Access Modes", cells::access_modes),
            path("Reclaim Policy", ".spec.persistentVolumeReclaimPolicy"),
            path("Status", ".status.phase"),
            made("Claim", cells::claim),
            path("StorageClass", ".spec.storageClassName"),
            made("Reason", more::volume_reason),
            made("VolumeAttributesClass", more::attributes_class),
            made("VolumeMode", more::volume_mode),
            age(),
        ]),
        ("", "ReplicationController") => {
            workloads("ReplicaSet", &mut all);
        }
        ("", "ResourceQuota") => all.extend([
            made("Request", more::empty),
            made("Limit", more::empty),
            age(),
        ]),
        ("", "LimitRange") => all.push(path("Created At", ".metadata.creationTimestamp")),
        ("apps", "ControllerRevision") => all.extend([
            made("Controller", more::revision_controller),
            integer("Revision", ".revision"),
            age(),
        ]),
        ("apps", kind) => workloads(kind, &mut all),
        ("batch", "CronJob") => all.extend([
            path("Schedule", ".spec.schedule"),
            made("Timezone", more::cron_zone),
            made("Suspend", more::cron_suspend),
            number(made("Active", more::cron_active)),
            made("Last Schedule", more::cron_last),
            age(),
            made("Containers", more::cron_containers),
            made("Images", more::cron_images),
            made("Selector", more::cron_selector),
        ]),
        ("discovery.k8s.io", _) => all.extend([
            path("AddressType", ".addressType"),
            made("Ports", more::slice_ports),
            made("Endpoints", more::slice_endpoints),
            age(),
        ]),
        ("networking.k8s.io", "Ingress") => all.extend([
            made("Class", more::ingress_class),
            made("Hosts", more::ingress_hosts),
            made("Address", more::ingress_address),
            made("Ports", more::ingress_ports),
            age(),
        ]),
        ("networking.k8s.io", "IngressClass") => all.extend([
            path("Controller", ".spec.controller"),
            made("Parameters", more::class_parameters),
            age(),
        ]),
        ("networking.k8s.io", "NetworkPolicy") => {
            all.extend([made("Pod-Selector", more::policy_selector), age()]);
        }
        ("scheduling.k8s.io", _) => all.extend([
            integer("Value", ".value"),
            made("Global-Default", more::is_global_default),
            age(),
            path("PreemptionPolicy", ".preemptionPolicy"),
        ]),
        ("storage.k8s.io", "CSIDriver") => all.extend([
            boolean("AttachRequired", ".spec.attachRequired"),
            boolean("PodInfoOnMount", ".spec.podInfoOnMount"),
            boolean("StorageCapacity", ".spec.storageCapacity"),
            made("TokenRequests", more::token_requests),
            boolean("RequiresRepublish", ".spec.requiresRepublish"),
            made("Modes", more::life_cycles),
            age(),
        ]),
        ("storage.k8s.io", "CSIStorageCapacity") => {
            all.push(path("Created At", ".metadata.creationTimestamp"));
        }
        ("batch", "Job") => all.extend([
            made("Status", cells::job_status),
            made("Completions", cells::completions),
            made("Duration", more::job_duration),
            age(),
            made("Containers", cells::containers),
            made("Images", cells::images),
            made("Selector", cells::selector),
        ]),
        ("coordination.k8s.io", _) => all.extend([path("Holder", ".spec.holderIdentity"), age()]),
        ("policy", _) => all.extend([
            made("Min Available", cells::min_available),
            made("Max Unavailable", cells::max_unavailable),
            integer("Allowed Disruptions", ".status.disruptionsAllowed"),
            age(),
        ]),
        ("rbac.authorization.k8s.io", "ClusterRoleBinding" | "RoleBinding") => {
            all.extend([
                made("Role", cells::role_ref),
                age(),
                made("Users", more::users),
                made("Groups", more::groups),
                made("ServiceAccounts", more::accounts),
            ]);
        }
        ("rbac.authorization.k8s.io", _) | ("apiextensions.k8s.io", _) => {
            all.push(path("Created At", ".metadata.creationTimestamp"));
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
            boolean("Attached", ".status.attached"),
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
            number(made("Desired", more::replicas_wanted)),
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
        made("Subobject", more::event_subobject),
        made("Source", more::event_source),
        made("First Seen", more::event_first_seen),
        made("Count", more::event_count),
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
        description: "CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed to be set in happens-before order across separate operations. Clients may not set this value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata".to_owned(),
        ..path("Age", ".metadata.creationTimestamp")
    }
}

fn path(name: &str, path: &str) -> Column {
    Column {
        name: name.to_owned(),
        kind: "string".to_owned(),
        told: None,
        format: String::new(),
        description: String::new(),
        priority: 0,
        cell: Cell::Path(path.to_owned()),
    }
}

fn integer(name: &str, at: &str) -> Column {
    number(path(name, at))
}

fn boolean(name: &str, at: &str) -> Column {
    let mut column = path(name, at);
    "boolean".clone_into(&mut column.kind);
    column
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
