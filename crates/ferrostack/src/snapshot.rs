//! The objects of clusters in the management API at a point in time.

use std::sync::Arc;

use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, ListParams};
use kube::{Client, ResourceExt};
use serde_json::Value;

/// The kinds of a cluster's objects, in the order in which they are displayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Cluster,
    OpenStackCluster,
    KubeadmControlPlane,
    MachineDeployment,
    MachineSet,
    Machine,
    OpenStackMachine,
}

impl Kind {
    pub(crate) const ALL: [Kind; 7] = [
        Kind::Cluster,
        Kind::OpenStackCluster,
        Kind::KubeadmControlPlane,
        Kind::MachineDeployment,
        Kind::MachineSet,
        Kind::Machine,
        Kind::OpenStackMachine,
    ];

    pub(crate) fn resource(self) -> ApiResource {
        let group = match self {
            Kind::Cluster | Kind::MachineDeployment | Kind::MachineSet | Kind::Machine => {
                "cluster.x-k8s.io"
            }
            Kind::OpenStackCluster | Kind::OpenStackMachine => "infrastructure.cluster.x-k8s.io",
            Kind::KubeadmControlPlane => "controlplane.cluster.x-k8s.io",
        };
        ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1beta2", self.as_str()))
    }

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Kind::Cluster => "Cluster",
            Kind::OpenStackCluster => "OpenStackCluster",
            Kind::KubeadmControlPlane => "KubeadmControlPlane",
            Kind::MachineDeployment => "MachineDeployment",
            Kind::MachineSet => "MachineSet",
            Kind::Machine => "Machine",
            Kind::OpenStackMachine => "OpenStackMachine",
        }
    }
}

/// A number of objects: `1 Machine`, `2 Machines`, `2 NetworkPolicies`.
pub(crate) fn counted(count: usize, kind: &str) -> String {
    let plural = match (count, kind.strip_suffix('y')) {
        (1, _) => kind.to_owned(),
        (_, Some(stem)) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{stem}ies"),
        // `Endpoints` has the form of a plural already.
        _ if kind.ends_with("ss") => format!("{kind}es"),
        _ if kind.ends_with('s') => kind.to_owned(),
        _ => format!("{kind}s"),
    };
    format!("{count} {plural}")
}

/// An object and its kind.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) kind: Kind,
    /// Shared, because each change of one object makes a new snapshot of all.
    pub(crate) object: Arc<DynamicObject>,
}

impl Item {
    pub(crate) fn namespace(&self) -> &str {
        self.object
            .metadata
            .namespace
            .as_deref()
            .unwrap_or_default()
    }

    pub(crate) fn name(&self) -> &str {
        self.object.metadata.name.as_deref().unwrap_or_default()
    }

    /// `Kind/name`.
    pub(crate) fn label(&self) -> String {
        format!("{}/{}", self.kind.as_str(), self.name())
    }

    pub(crate) fn field(&self, pointer: &str) -> &Value {
        self.object.data.pointer(pointer).unwrap_or(&Value::Null)
    }

    pub(crate) fn condition(&self, type_: &str) -> Option<Condition<'_>> {
        let list = self.field("/status/conditions").as_array()?;
        let found = list.iter().find(|c| c["type"] == type_)?;
        let text = |field: &str| found[field].as_str().unwrap_or_default();
        Some(Condition {
            type_: text("type"),
            status: text("status"),
            reason: text("reason"),
            message: text("message"),
            since: text("lastTransitionTime"),
        })
    }

    pub(crate) fn is_owned_by(&self, owner: &Item) -> bool {
        let uid = owner.object.metadata.uid.as_deref().unwrap_or_default();
        self.object
            .owner_references()
            .iter()
            .any(|reference| reference.uid == uid)
    }

    pub(crate) fn is_deleting(&self) -> bool {
        self.object.metadata.deletion_timestamp.is_some()
    }
}

/// One entry of `status.conditions`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Condition<'a> {
    pub(crate) type_: &'a str,
    pub(crate) status: &'a str,
    pub(crate) reason: &'a str,
    pub(crate) message: &'a str,
    pub(crate) since: &'a str,
}

/// All objects of all clusters of a namespace, or of every namespace.
#[derive(Clone, Debug, Default)]
pub(crate) struct Snapshot {
    pub(crate) items: Vec<Item>,
}

impl Snapshot {
    pub(crate) async fn read(client: &Client, namespace: Option<&str>) -> kube::Result<Self> {
        let mut items = Vec::new();
        for kind in Kind::ALL {
            let resource = kind.resource();
            let api: Api<DynamicObject> = match namespace {
                Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
                None => Api::all_with(client.clone(), &resource),
            };
            let list = api.list(&ListParams::default()).await?;
            items.extend(list.items.into_iter().map(|object| Item {
                kind,
                object: Arc::new(object),
            }));
        }
        Ok(Self { items })
    }

    pub(crate) fn of_kind(&self, kind: Kind) -> impl Iterator<Item = &Item> {
        self.items.iter().filter(move |item| item.kind == kind)
    }

    /// The objects of `kind` that belong to `cluster` by label or reference.
    pub(crate) fn belonging<'a>(
        &'a self,
        cluster: &'a Item,
        kind: Kind,
    ) -> impl Iterator<Item = &'a Item> {
        self.of_kind(kind).filter(move |item| {
            item.namespace() == cluster.namespace()
                && (item
                    .object
                    .labels()
                    .get("cluster.x-k8s.io/cluster-name")
                    .is_some_and(|name| name == cluster.name())
                    || item.is_owned_by(cluster))
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    #[test]
    fn several_objects_are_counted_in_the_plural() {
        for (count, kind, expected) in [
            (1, "Machine", "1 Machine"),
            (2, "Machine", "2 Machines"),
            (0, "ConfigMap", "0 ConfigMaps"),
            (2, "NetworkPolicy", "2 NetworkPolicies"),
            (2, "Ingress", "2 Ingresses"),
            (2, "Endpoints", "2 Endpoints"),
        ] {
            assert_eq!(counted(count, kind), expected);
        }
    }

    /// An item of `kind` from its JSON.
    pub(crate) fn item(kind: Kind, mut object: Value) -> Item {
        object["apiVersion"] = kind.resource().api_version.into();
        object["kind"] = kind.as_str().into();
        Item {
            kind,
            object: Arc::new(serde_json::from_value(object).unwrap()),
        }
    }
}
