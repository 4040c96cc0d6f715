//! The built-in kinds, as data.

use std::sync::Arc;

use super::{Origin, Resource, Scale, Traits, Version};

/// Collection of CustomResourceDefinitions.
pub const CRD_COLLECTION: &str = "apiextensions.k8s.io/customresourcedefinitions";

/// One row of the table.
struct Row {
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
    short: &'static [&'static str],
    categories: &'static [&'static str],
    has: &'static [Has],
}

/// Properties of a kind.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Has {
    /// Objects are cluster-scoped.
    Cluster,
    Status,
    Scale,
    Generation,
    /// Requests are answered, and no object is stored.
    Virtual,
    Sub(&'static str),
}

use Has::{Cluster, Generation, Scale as Scales, Status, Sub, Virtual};

const ALL: &[&str] = &["all"];
const EXT: &[&str] = &["api-extensions"];
const NO: &[&str] = &[];

const fn row(
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
    short: &'static [&'static str],
    categories: &'static [&'static str],
    has: &'static [Has],
) -> Row {
    Row {
        group,
        version,
        kind,
        plural,
        short,
        categories,
        has,
    }
}

const ROWS: &[Row] = &[
    row("", "v1", "Binding", "bindings", NO, NO, &[Virtual]),
    row("", "v1", "ConfigMap", "configmaps", &["cm"], NO, &[]),
    row("", "v1", "Endpoints", "endpoints", &["ep"], NO, &[]),
    row("", "v1", "Event", "events", &["ev"], NO, &[]),
    row("", "v1", "LimitRange", "limitranges", &["limits"], NO, &[]),
    row(
        "",
        "v1",
        "Namespace",
        "namespaces",
        &["ns"],
        NO,
        &[Cluster, Status, Sub("finalize")],
    ),
    row("", "v1", "Node", "nodes", &["no"], NO, &[Cluster, Status]),
    row(
        "",
        "v1",
        "PersistentVolumeClaim",
        "persistentvolumeclaims",
        &["pvc"],
        NO,
        &[Status],
    ),
    row(
        "",
        "v1",
        "PersistentVolume",
        "persistentvolumes",
        &["pv"],
        NO,
        &[Cluster, Status],
    ),
    row(
        "",
        "v1",
        "Pod",
        "pods",
        &["po"],
        ALL,
        &[
            Status,
            Sub("binding"),
            Sub("eviction"),
            Sub("log"),
            Sub("portforward"),
            Generation,
        ],
    ),
    row(
        "",
        "v1",
        "ReplicationController",
        "replicationcontrollers",
        &["rc"],
        ALL,
        &[Status, Scales, Generation],
    ),
    row(
        "",
        "v1",
        "ResourceQuota",
        "resourcequotas",
        &["quota"],
        NO,
        &[Status],
    ),
    row("", "v1", "Secret", "secrets", NO, NO, &[]),
    row(
        "",
        "v1",
        "ServiceAccount",
        "serviceaccounts",
        &["sa"],
        NO,
        &[Sub("token")],
    ),
    row("", "v1", "Service", "services", &["svc"], ALL, &[Status]),
    row(
        "apps",
        "v1",
        "ControllerRevision",
        "controllerrevisions",
        NO,
        NO,
        &[],
    ),
    row(
        "apps",
        "v1",
        "DaemonSet",
        "daemonsets",
        &["ds"],
        ALL,
        &[Status, Generation],
    ),
    row(
        "apps",
        "v1",
        "Deployment",
        "deployments",
        &["deploy"],
        ALL,
        &[Status, Scales, Generation],
    ),
    row(
        "apps",
        "v1",
        "ReplicaSet",
        "replicasets",
        &["rs"],
        ALL,
        &[Status, Scales, Generation],
    ),
    row(
        "apps",
        "v1",
        "StatefulSet",
        "statefulsets",
        &["sts"],
        ALL,
        &[Status, Scales, Generation],
    ),
    row(
        "batch",
        "v1",
        "CronJob",
        "cronjobs",
        &["cj"],
        ALL,
        &[Status, Generation],
    ),
    row("batch", "v1", "Job", "jobs", NO, ALL, &[Status, Generation]),
    row("coordination.k8s.io", "v1", "Lease", "leases", NO, NO, &[]),
    row(
        "discovery.k8s.io",
        "v1",
        "EndpointSlice",
        "endpointslices",
        NO,
        NO,
        &[Generation],
    ),
    row("events.k8s.io", "v1", "Event", "events", &["ev"], NO, &[]),
    row(
        "networking.k8s.io",
        "v1",
        "Ingress",
        "ingresses",
        &["ing"],
        NO,
        &[Status, Generation],
    ),
    row(
        "networking.k8s.io",
        "v1",
        "IngressClass",
        "ingressclasses",
        NO,
        NO,
        &[Cluster, Generation],
    ),
    row(
        "networking.k8s.io",
        "v1",
        "NetworkPolicy",
        "networkpolicies",
        &["netpol"],
        NO,
        &[Generation],
    ),
    row(
        "policy",
        "v1",
        "PodDisruptionBudget",
        "poddisruptionbudgets",
        &["pdb"],
        NO,
        &[Status, Generation],
    ),
    row(
        "rbac.authorization.k8s.io",
        "v1",
        "ClusterRoleBinding",
        "clusterrolebindings",
        NO,
        NO,
        &[Cluster],
    ),
    row(
        "rbac.authorization.k8s.io",
        "v1",
        "ClusterRole",
        "clusterroles",
        NO,
        NO,
        &[Cluster],
    ),
    row(
        "rbac.authorization.k8s.io",
        "v1",
        "RoleBinding",
        "rolebindings",
        NO,
        NO,
        &[],
    ),
    row(
        "rbac.authorization.k8s.io",
        "v1",
        "Role",
        "roles",
        NO,
        NO,
        &[],
    ),
    row(
        "scheduling.k8s.io",
        "v1",
        "PriorityClass",
        "priorityclasses",
        &["pc"],
        NO,
        &[Cluster, Generation],
    ),
    row(
        "storage.k8s.io",
        "v1",
        "CSIDriver",
        "csidrivers",
        NO,
        NO,
        &[Cluster],
    ),
    row(
        "storage.k8s.io",
        "v1",
        "CSINode",
        "csinodes",
        NO,
        NO,
        &[Cluster],
    ),
    row(
        "storage.k8s.io",
        "v1",
        "CSIStorageCapacity",
        "csistoragecapacities",
        NO,
        NO,
        &[],
    ),
    row(
        "storage.k8s.io",
        "v1",
        "StorageClass",
        "storageclasses",
        &["sc"],
        NO,
        &[Cluster],
    ),
    row(
        "storage.k8s.io",
        "v1",
        "VolumeAttachment",
        "volumeattachments",
        NO,
        NO,
        &[Cluster, Status],
    ),
    row(
        "admissionregistration.k8s.io",
        "v1",
        "MutatingWebhookConfiguration",
        "mutatingwebhookconfigurations",
        NO,
        EXT,
        &[Cluster, Generation],
    ),
    row(
        "admissionregistration.k8s.io",
        "v1",
        "ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations",
        NO,
        EXT,
        &[Cluster, Generation],
    ),
    row(
        "apiextensions.k8s.io",
        "v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
        &["crd", "crds"],
        EXT,
        &[Cluster, Status, Generation],
    ),
    row(
        "certificates.k8s.io",
        "v1",
        "CertificateSigningRequest",
        "certificatesigningrequests",
        &["csr"],
        NO,
        &[Cluster, Status, Sub("approval")],
    ),
    row(
        "authentication.k8s.io",
        "v1",
        "SelfSubjectReview",
        "selfsubjectreviews",
        NO,
        NO,
        &[Cluster, Virtual],
    ),
    row(
        "authentication.k8s.io",
        "v1",
        "TokenReview",
        "tokenreviews",
        NO,
        NO,
        &[Cluster, Virtual],
    ),
    row(
        "authorization.k8s.io",
        "v1",
        "LocalSubjectAccessReview",
        "localsubjectaccessreviews",
        NO,
        NO,
        &[Virtual],
    ),
    row(
        "authorization.k8s.io",
        "v1",
        "SelfSubjectAccessReview",
        "selfsubjectaccessreviews",
        NO,
        NO,
        &[Cluster, Virtual],
    ),
    row(
        "authorization.k8s.io",
        "v1",
        "SelfSubjectRulesReview",
        "selfsubjectrulesreviews",
        NO,
        NO,
        &[Cluster, Virtual],
    ),
    row(
        "authorization.k8s.io",
        "v1",
        "SubjectAccessReview",
        "subjectaccessreviews",
        NO,
        NO,
        &[Cluster, Virtual],
    ),
];

/// Returns all built-in resources, in the order of discovery.
pub(super) fn all() -> Vec<Arc<Resource>> {
    ROWS.iter().map(|row| Arc::new(resource(row))).collect()
}

fn resource(row: &Row) -> Resource {
    let has = |wanted: Has| row.has.contains(&wanted);
    let api_version = if row.group.is_empty() {
        row.version.to_owned()
    } else {
        format!("{}/{}", row.group, row.version)
    };
    // Events of both groups are stored in one collection.
    let home = if row.group == "events.k8s.io" {
        ""
    } else {
        row.group
    };
    let collection = format!("{home}/{}", row.plural);
    let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    Resource {
        group: row.group.to_owned(),
        plural: row.plural.to_owned(),
        singular: row.kind.to_lowercase(),
        kind: row.kind.to_owned(),
        list_kind: format!("{}List", row.kind),
        conversion: None,
        short_names: owned(row.short),
        categories: owned(row.categories),
        namespaced: !has(Cluster),
        stored: if row.plural == "events" {
            "v1".to_owned()
        } else {
            api_version.clone()
        },
        collection: collection.into(),
        origin: Origin::BuiltIn(Traits {
            generation: has(Generation),
            virtual_: has(Virtual),
        }),
        versions: vec![Version {
            name: row.version.to_owned(),
            api_version,
            served: true,
            status: has(Status),
            scale: has(Scales).then(|| Scale {
                spec: ".spec.replicas".to_owned(),
                status: ".status.replicas".to_owned(),
                selector: Some(".spec.selector".to_owned()),
            }),
            subresources: row
                .has
                .iter()
                .filter_map(|has| {
                    if let Sub(name) = has {
                        Some(*name)
                    } else {
                        None
                    }
                })
                .collect(),
            columns: super::columns::of(row.group, row.version, row.kind),
            schema: None,
            open_api: None,
            selectable: owned(super::selectable::labels(row.group, row.kind)),
            warning: (row.kind == "Endpoints").then(|| {
                "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"
                    .to_owned()
            }),
        }],
    }
}
