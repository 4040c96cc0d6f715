//! Objects of clusters in the management API at a point in time.

pub mod follow;
mod index;
pub mod reference;

use std::sync::Arc;

use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ListParams, TypeMeta};
use kube::{Client, ResourceExt};
use operator::client::Api;
use serde_json::Value;

use index::Common;
pub use index::Items;

/// Kinds of a cluster's objects, in the order of display.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A cluster.
    Cluster,
    /// The infrastructure of a cluster on OpenStack.
    OpenStackCluster,
    /// A control plane of kubeadm.
    KubeadmControlPlane,
    /// A deployment of machines.
    MachineDeployment,
    /// A set of equal machines.
    MachineSet,
    /// A machine.
    Machine,
    /// A server of a machine.
    OpenStackMachine,
    /// Kind of another provider, or one shown by some commands only; the object has its name.
    Other,
}

impl Kind {
    /// All kinds with names here.
    pub const ALL: [Kind; 7] = [
        Kind::Cluster,
        Kind::OpenStackCluster,
        Kind::KubeadmControlPlane,
        Kind::MachineDeployment,
        Kind::MachineSet,
        Kind::Machine,
        Kind::OpenStackMachine,
    ];

    /// [`Kind`] of a name in a group.
    pub fn new(group: &str, name: &str) -> Self {
        let known = Self::ALL.into_iter();
        let mut known = known.filter(|kind| kind.as_str() == name && kind.group() == group);
        known.next().unwrap_or(Kind::Other)
    }

    /// [`Kind`] of a name, in any group.
    pub fn of_name(name: &str) -> Self {
        let mut known = Self::ALL.into_iter().filter(|kind| kind.as_str() == name);
        known.next().unwrap_or(Kind::Other)
    }

    /// The API group; none for [`Kind::Other`].
    pub fn group(self) -> &'static str {
        match self {
            Kind::Cluster | Kind::MachineDeployment | Kind::MachineSet | Kind::Machine => {
                "cluster.x-k8s.io"
            }
            Kind::OpenStackCluster | Kind::OpenStackMachine => "infrastructure.cluster.x-k8s.io",
            Kind::KubeadmControlPlane => "controlplane.cluster.x-k8s.io",
            Kind::Other => "",
        }
    }

    /// [`ApiResource`] for reading the objects. [`Kind::Other`] has none: discovery finds the resource of each object.
    pub fn resource(self) -> ApiResource {
        ApiResource::from_gvk(&GroupVersionKind::gvk(
            self.group(),
            "v1beta2",
            self.as_str(),
        ))
    }

    /// Name of the kind; empty for [`Kind::Other`].
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Cluster => "Cluster",
            Kind::OpenStackCluster => "OpenStackCluster",
            Kind::KubeadmControlPlane => "KubeadmControlPlane",
            Kind::MachineDeployment => "MachineDeployment",
            Kind::MachineSet => "MachineSet",
            Kind::Machine => "Machine",
            Kind::OpenStackMachine => "OpenStackMachine",
            Kind::Other => "",
        }
    }
}

/// Object with its [`Kind`].
#[derive(Clone, Debug)]
pub struct Item {
    /// Kind of the object.
    pub kind: Kind,
    /// Shared, because each change of one object makes a new [`Snapshot`] of all.
    pub object: Arc<DynamicObject>,
}

impl Item {
    /// Item for an object that was read as [`ApiResource`].
    pub fn new(resource: &ApiResource, mut object: DynamicObject) -> Self {
        // In lists of some servers objects do not say what they are.
        object.types.get_or_insert_with(|| TypeMeta {
            api_version: resource.api_version.clone(),
            kind: resource.kind.clone(),
        });
        Self {
            kind: Kind::new(&resource.group, &resource.kind),
            object: Arc::new(object),
        }
    }

    /// Namespace; empty without one.
    pub fn namespace(&self) -> &str {
        self.object
            .metadata
            .namespace
            .as_deref()
            .unwrap_or_default()
    }

    /// Name.
    pub fn name(&self) -> &str {
        self.object.metadata.name.as_deref().unwrap_or_default()
    }

    /// The name of the kind.
    pub fn kind_name(&self) -> &str {
        match (self.kind, &self.object.types) {
            (Kind::Other, Some(types)) => &types.kind,
            (kind, _) => kind.as_str(),
        }
    }

    /// `Kind/name`.
    pub fn label(&self) -> String {
        format!("{}/{}", self.kind_name(), self.name())
    }

    /// Field at a JSON pointer; null without one.
    pub fn field(&self, pointer: &str) -> &Value {
        self.object.data.pointer(pointer).unwrap_or(&Value::Null)
    }

    /// [`Condition`] of a type.
    pub fn condition(&self, type_: impl AsRef<str>) -> Option<Condition<'_>> {
        let type_ = type_.as_ref();
        self.conditions().find(|found| found.type_ == type_)
    }

    /// The [`Condition`]s, in the order of the object.
    pub fn conditions(&self) -> impl Iterator<Item = Condition<'_>> {
        let list = self.field("/status/conditions").as_array();
        list.into_iter().flatten().map(|found| {
            let text = |field: &str| found[field].as_str().unwrap_or_default();
            Condition {
                type_: text("type"),
                status: text("status"),
                reason: text("reason"),
                message: text("message"),
                since: text("lastTransitionTime"),
            }
        })
    }

    fn uid(&self) -> &str {
        self.object.metadata.uid.as_deref().unwrap_or_default()
    }

    /// True if a reference names `owner` by its uid.
    pub fn is_owned_by(&self, owner: &Item) -> bool {
        let uid = owner.uid();
        self.object
            .owner_references()
            .iter()
            .any(|reference| reference.uid == uid)
    }

    /// True if the label or an owner reference names `cluster`.
    pub fn belongs_to(&self, cluster: &Item) -> bool {
        let labels = self.object.labels();
        self.namespace() == cluster.namespace()
            && (labels
                .get(index::CLUSTER_NAME)
                .is_some_and(|name| name == cluster.name())
                || self.is_owned_by(cluster))
    }

    /// True if the object is being deleted.
    pub fn is_deleting(&self) -> bool {
        self.object.metadata.deletion_timestamp.is_some()
    }
}

/// One entry of `status.conditions`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Condition<'a> {
    /// Type, such as `Ready`.
    pub type_: &'a str,
    /// `True`, `False` or `Unknown`.
    pub status: &'a str,
    /// Reason in one word.
    pub reason: &'a str,
    /// Message for people.
    pub message: &'a str,
    /// Time of the last change of the status, RFC 3339.
    pub since: &'a str,
}

/// All objects of all clusters of a namespace, or of every namespace.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Objects, with an index.
    pub items: Items,
}

impl From<Vec<Item>> for Snapshot {
    fn from(items: Vec<Item>) -> Self {
        let items = items.into();
        Self { items }
    }
}

impl Snapshot {
    /// Lists the kinds with names here.
    ///
    /// # Errors
    /// If a list fails.
    pub async fn read(client: &Client, namespace: Option<&str>) -> kube::Result<Self> {
        let mut snapshot = Self::default();
        for kind in Kind::ALL {
            let _served = snapshot.list(client, namespace, &kind.resource()).await?;
        }
        Ok(snapshot)
    }

    /// Adds the objects of a [`Kind`]. False if the API server lacks the kind, as with other providers alone.
    async fn list(
        &mut self,
        client: &Client,
        namespace: Option<&str>,
        resource: &ApiResource,
    ) -> kube::Result<bool> {
        let api: Api<DynamicObject> = match namespace {
            Some(namespace) => Api::namespaced_with(client.clone(), namespace, resource),
            None => Api::all_with(client.clone(), resource),
        };
        let list = match api.list(&ListParams::default()).await {
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(false),
            listed => listed?,
        };
        let objects = list.items.into_iter();
        self.items
            .extend(objects.map(|object| Item::new(resource, object)));
        Ok(true)
    }

    /// [`Item`]s of a kind.
    pub fn of_kind(&self, kind: Kind) -> impl Iterator<Item = &Item> {
        self.items.iter().filter(move |item| item.kind == kind)
    }

    /// [`Item`]s of `kind` with `cluster` in their label or in a reference.
    pub fn belonging<'a>(
        &'a self,
        cluster: &'a Item,
        kind: Kind,
    ) -> impl Iterator<Item = &'a Item> {
        let candidates = self.items.with(&[
            Common::Cluster(cluster.namespace(), cluster.name()),
            Common::Owner(cluster.uid()),
        ]);
        candidates.filter(move |item| item.kind == kind && item.belongs_to(cluster))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// An object of a kind without a name here, such as `infrastructure.cluster.x-k8s.io/v1beta1`, `DockerCluster`.
    pub(crate) fn other(api_version: &str, kind: &str, mut object: Value) -> Item {
        object["apiVersion"] = api_version.into();
        object["kind"] = kind.into();
        Item {
            kind: Kind::Other,
            object: Arc::new(serde_json::from_value(object).unwrap()),
        }
    }

    #[test]
    fn only_kinds_with_names_here_have_a_kind_of_their_own() {
        for kind in Kind::ALL {
            assert_eq!(Kind::new(kind.group(), kind.as_str()), kind);
        }
        assert_eq!(Kind::new("other.x-k8s.io", "Cluster"), Kind::Other);
        let docker = other(
            "infrastructure.cluster.x-k8s.io/v1beta1",
            "DockerCluster",
            serde_json::json!({"metadata": {"name": "a"}}),
        );
        assert_eq!(docker.label(), "DockerCluster/a");
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
