//! Printer columns of built-in kinds (`pkg/printers/internalversion` of Kubernetes).

mod cells;
mod more;

use std::collections::HashMap;
use std::sync::LazyLock;

use jiff::Timestamp;
use serde_json::Value;

use super::{Cell, Column};

/// Column of `columns.json`, as declared by kube-apiserver 1.34: name, type, format, description (none for the name and
/// the age), priority.
type Declared = (String, String, String, String, i64);

static DECLARED: LazyLock<HashMap<String, Vec<Declared>>> = LazyLock::new(|| {
    // Embedded in the program; a test parses the file.
    serde_json::from_str(include_str!("columns.json")).unwrap_or_default()
});

/// Returns the columns of a built-in kind, in the order and the words of kube-apiserver.
pub(super) fn of(group: &str, version: &str, kind: &str) -> Vec<Column> {
    let mut found = cells_of(group, kind);
    let Some(declared) = DECLARED.get(&format!("{group}/{version}, Kind={kind}")) else {
        return found;
    };
    let mut all = Vec::with_capacity(declared.len());
    for (name, kind, format, description, priority) in declared {
        let at = found.iter().position(|column| column.name == *name);
        let mut column = match at {
            Some(at) => found.remove(at),
            None => computed(name, cells::nothing),
        };
        column.declared_kind = Some(kind.clone());
        column.format.clone_from(format);
        if !description.is_empty() {
            column.description.clone_from(description);
        }
        column.priority = *priority;
        all.push(column);
    }
    all
}

/// Returns the columns of a kind, with the functions that compute their [`Cell`]s.
fn cells_of(group: &str, kind: &str) -> Vec<Column> {
    let mut all = vec![name()];
    match (group, kind) {
        ("", "Node") => {
            all.extend([
                computed("Status", cells::node_status),
                computed("Roles", cells::node_roles),
                age(),
            ]);
            all.push(path("Version", ".status.nodeInfo.kubeletVersion"));
            all.extend([
                wide(computed("Internal-IP", cells::node_internal_ip)),
                wide(computed("External-IP", cells::node_external_ip)),
                wide(computed("OS-Image", cells::node_os)),
                wide(computed("Kernel-Version", cells::node_kernel)),
                wide(computed("Container-Runtime", cells::node_runtime)),
            ]);
        }
        ("", "Pod") => {
            all.extend([
                computed("Ready", cells::pod_ready),
                computed("Status", cells::pod_status),
                computed("Restarts", cells::pod_restarts),
                age(),
                wide(computed("IP", cells::pod_ip)),
                wide(computed("Node", cells::pod_node)),
                wide(computed("Nominated Node", cells::nominated_node)),
                wide(computed("Readiness Gates", cells::readiness_gates)),
            ]);
        }
        ("", "Namespace") => all.extend([path("Status", ".status.phase"), age()]),
        ("", "ConfigMap") => all.extend([number(computed("Data", cells::data_count)), age()]),
        ("", "Secret") => {
            all.extend([
                path("Type", ".type"),
                number(computed("Data", cells::data_count)),
                age(),
            ]);
        }
        ("", "ServiceAccount") => {
            all.extend([number(computed("Secrets", cells::secrets_count)), age()])
        }
        ("", "Service") => {
            all.extend([
                path("Type", ".spec.type"),
                computed("Cluster-IP", cells::cluster_ip),
                computed("External-IP", cells::external_ip),
                computed("Port(s)", cells::ports),
                age(),
                wide(computed("Selector", cells::selector)),
            ]);
        }
        ("", "Endpoints") => all.extend([computed("Endpoints", cells::endpoints), age()]),
        ("", "Event") | ("events.k8s.io", "Event") => return events(),
        ("", "PersistentVolumeClaim") => all.extend([
            path("Status", ".status.phase"),
            computed("Volume", more::bound_volume),
            computed("Capacity", more::bound_capacity),
            computed("Access Modes", more::bound_modes),
            path("StorageClass", ".spec.storageClassName"),
            computed("VolumeAttributesClass", more::attributes_class),
            computed("VolumeMode", more::volume_mode),
            age(),
        ]),
        ("", "PersistentVolume") => all.extend([
            path("Capacity", ".spec.capacity.storage"),
            computed("Access Modes", cells::access_modes),
            path("Reclaim Policy", ".spec.persistentVolumeReclaimPolicy"),
            path("Status", ".status.phase"),
            computed("Claim", cells::claim),
            path("StorageClass", ".spec.storageClassName"),
            computed("Reason", more::volume_reason),
            computed("VolumeAttributesClass", more::attributes_class),
            computed("VolumeMode", more::volume_mode),
            age(),
        ]),
        ("", "ReplicationController") => {
            workloads("ReplicaSet", &mut all);
        }
        ("", "ResourceQuota") => all.extend([
            computed("Request", more::empty),
            computed("Limit", more::empty),
            age(),
        ]),
        ("", "LimitRange") => all.push(path("Created At", ".metadata.creationTimestamp")),
        ("apps", "ControllerRevision") => all.extend([
            computed("Controller", more::revision_controller),
            integer("Revision", ".revision"),
            age(),
        ]),
        ("apps", kind) => workloads(kind, &mut all),
        ("batch", "CronJob") => all.extend([
            path("Schedule", ".spec.schedule"),
            computed("Timezone", more::cron_zone),
            computed("Suspend", more::cron_suspend),
            number(computed("Active", more::cron_active)),
            aged("Last Schedule", more::cron_last),
            age(),
            computed("Containers", more::cron_containers),
            computed("Images", more::cron_images),
            computed("Selector", more::cron_selector),
        ]),
        ("discovery.k8s.io", _) => all.extend([
            path("AddressType", ".addressType"),
            computed("Ports", more::slice_ports),
            computed("Endpoints", more::slice_endpoints),
            age(),
        ]),
        ("networking.k8s.io", "Ingress") => all.extend([
            computed("Class", more::ingress_class),
            computed("Hosts", more::ingress_hosts),
            computed("Address", more::ingress_address),
            computed("Ports", more::ingress_ports),
            age(),
        ]),
        ("networking.k8s.io", "IngressClass") => all.extend([
            path("Controller", ".spec.controller"),
            computed("Parameters", more::class_parameters),
            age(),
        ]),
        ("networking.k8s.io", "NetworkPolicy") => {
            all.extend([computed("Pod-Selector", more::policy_selector), age()]);
        }
        ("scheduling.k8s.io", _) => all.extend([
            integer("Value", ".value"),
            computed("Global-Default", more::is_global_default),
            age(),
            path("PreemptionPolicy", ".preemptionPolicy"),
        ]),
        ("storage.k8s.io", "CSIDriver") => all.extend([
            boolean("AttachRequired", ".spec.attachRequired"),
            boolean("PodInfoOnMount", ".spec.podInfoOnMount"),
            boolean("StorageCapacity", ".spec.storageCapacity"),
            computed("TokenRequests", more::token_requests),
            boolean("RequiresRepublish", ".spec.requiresRepublish"),
            computed("Modes", more::life_cycles),
            age(),
        ]),
        ("storage.k8s.io", "CSIStorageCapacity") => {
            all.push(path("Created At", ".metadata.creationTimestamp"));
        }
        ("batch", "Job") => all.extend([
            computed("Status", cells::job_status),
            computed("Completions", cells::completions),
            computed("Duration", more::job_duration),
            age(),
            computed("Containers", cells::containers),
            computed("Images", cells::images),
            computed("Selector", cells::selector),
        ]),
        ("coordination.k8s.io", _) => all.extend([path("Holder", ".spec.holderIdentity"), age()]),
        ("policy", _) => all.extend([
            computed("Min Available", cells::min_available),
            computed("Max Unavailable", cells::max_unavailable),
            integer("Allowed Disruptions", ".status.disruptionsAllowed"),
            age(),
        ]),
        ("rbac.authorization.k8s.io", "ClusterRoleBinding" | "RoleBinding") => {
            all.extend([
                computed("Role", cells::role_ref),
                age(),
                computed("Users", more::users),
                computed("Groups", more::groups),
                computed("ServiceAccounts", more::accounts),
            ]);
        }
        ("rbac.authorization.k8s.io", _) | ("apiextensions.k8s.io", _) => {
            all.push(path("Created At", ".metadata.creationTimestamp"));
        }
        ("storage.k8s.io", "StorageClass") => all.extend([
            path("Provisioner", ".provisioner"),
            path("ReclaimPolicy", ".reclaimPolicy"),
            path("VolumeBindingMode", ".volumeBindingMode"),
            computed("AllowVolumeExpansion", cells::expansion),
            age(),
        ]),
        ("storage.k8s.io", "CSINode") => {
            all.extend([number(computed("Drivers", cells::drivers)), age()])
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
            computed("RequestedDuration", cells::no_duration),
            computed("Condition", cells::csr_condition),
        ]),
        ("admissionregistration.k8s.io", _) => {
            all.extend([number(computed("Webhooks", cells::webhooks)), age()]);
        }
        _ => all.push(age()),
    }
    all
}

fn workloads(kind: &str, all: &mut Vec<Column>) {
    match kind {
        "Deployment" => all.extend([
            computed("Ready", cells::replicas_ready),
            number(computed("Up-to-date", cells::updated)),
            number(computed("Available", cells::available)),
            age(),
        ]),
        "StatefulSet" => all.extend([computed("Ready", cells::replicas_ready), age()]),
        "ReplicaSet" => all.extend([
            number(computed("Desired", more::replicas_wanted)),
            number(computed("Current", cells::current)),
            number(computed("Ready", cells::ready)),
            age(),
        ]),
        "DaemonSet" => all.extend([
            number(computed("Desired", cells::scheduled_desired)),
            number(computed("Current", cells::scheduled)),
            number(computed("Ready", cells::scheduled_ready)),
            number(computed("Up-to-date", cells::scheduled_updated)),
            number(computed("Available", cells::scheduled_available)),
            computed("Node Selector", cells::node_selector),
            age(),
        ]),
        _ => {
            all.push(age());
            return;
        }
    }
    all.extend([
        wide(computed("Containers", cells::containers)),
        wide(computed("Images", cells::images)),
        wide(computed("Selector", cells::selector)),
    ]);
}

fn events() -> Vec<Column> {
    let mut seen = aged("Last Seen", cells::last_seen);
    "string".clone_into(&mut seen.kind);
    vec![
        seen,
        path("Type", ".type"),
        path("Reason", ".reason"),
        computed("Object", cells::event_object),
        computed("Subobject", more::event_subobject),
        computed("Source", more::event_source),
        aged("First Seen", more::event_first_seen),
        computed("Count", more::event_count),
        computed("Message", cells::event_message),
        wide(name()),
    ]
}

/// Returns `NAME`, the first column of every kind.
pub(crate) fn name() -> Column {
    Column {
        format: "name".to_owned(),
        description: "Name must be unique within a namespace. Is required when creating resources, although some resources may allow a client to request the generation of an appropriate name automatically. Name is primarily intended for creation idempotence and configuration definition. Cannot be updated. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names".to_owned(),
        ..path("Name", ".metadata.name")
    }
}

/// Returns `AGE`, a column of most kinds.
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
        declared_kind: None,
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

fn computed(name: &str, compute: fn(&Value) -> Value) -> Column {
    Column {
        cell: Cell::Computed(compute),
        ..path(name, "")
    }
}

fn aged(name: &str, compute: fn(&Value, Timestamp) -> Value) -> Column {
    Column {
        cell: Cell::Aged(compute),
        ..path(name, "")
    }
}

fn number(mut column: Column) -> Column {
    "integer".clone_into(&mut column.kind);
    column
}

/// Limits a column to `-o wide`.
fn wide(mut column: Column) -> Column {
    column.priority = 1;
    column
}
