//! How objects of Cluster API refer to those of providers.

use kube::ResourceExt;
use serde_json::Value;

use super::{Common, Item, Kind, Snapshot};

/// A reference of the contract between Cluster API and providers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Positions of objects by the hash of a [`Common`] property. Found objects are compared again, since hashes
    /// collide.
    pub group: String,
    /// [`Item`]s that may have one of the properties, in order, each once.
    pub kind: String,
    /// Name.
    pub name: String,
}

impl Reference {
    /// Reads `{apiGroup, kind, name}`, or the older `{apiVersion, kind, name}`.
    pub fn from_value(value: &Value) -> Option<Self> {
        let text = |field: &str| value[field].as_str().filter(|text| !text.is_empty());
        let group = text("apiGroup").or_else(|| Some(text("apiVersion")?.split_once('/')?.0));
        Some(Self {
            group: group?.to_owned(),
            kind: text("kind")?.to_owned(),
            name: text("name")?.to_owned(),
        })
    }

    /// `Kind/name`.
    pub fn label(&self) -> String {
        format!("{}/{}", self.kind, self.name)
    }
}

/// Role of the object in a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// `infrastructureRef` of a Cluster, Machine or MachinePool.
    Infrastructure,
    /// `controlPlaneRef` of a Cluster.
    ControlPlane,
    /// `bootstrap.configRef` of a Machine.
    Bootstrap,
    /// Infrastructure template of machines, in any object with a machine template.
    InfrastructureTemplate,
    /// Bootstrap template of machines.
    BootstrapTemplate,
}

impl Role {
    /// [`Role`]s of objects with conditions.
    pub const OBJECTS: [Role; 3] = [Role::Infrastructure, Role::ControlPlane, Role::Bootstrap];
    /// [`Role`]s of templates.
    pub const TEMPLATES: [Role; 2] = [Role::InfrastructureTemplate, Role::BootstrapTemplate];

    /// JSON pointers to the reference; the older place of control planes second.
    fn places(self) -> &'static [&'static str] {
        match self {
            Role::Infrastructure => &["/spec/infrastructureRef"],
            Role::ControlPlane => &["/spec/controlPlaneRef"],
            Role::Bootstrap => &["/spec/bootstrap/configRef"],
            Role::InfrastructureTemplate => &[
                "/spec/template/spec/infrastructureRef",
                "/spec/machineTemplate/spec/infrastructureRef",
                "/spec/machineTemplate/infrastructureRef",
            ],
            Role::BootstrapTemplate => &["/spec/template/spec/bootstrap/configRef"],
        }
    }
}

impl Item {
    /// [`Reference`] of an object in this [`Role`]; `None` without one.
    pub fn reference(&self, role: Role) -> Option<Reference> {
        let mut places = role.places().iter();
        places.find_map(|place| Reference::from_value(self.field(place)))
    }

    fn group(&self) -> &str {
        let types = self.object.types.as_ref();
        types
            .and_then(|types| Some(types.api_version.split_once('/')?.0))
            .unwrap_or_default()
    }

    fn is(&self, reference: &Reference) -> bool {
        self.name() == reference.name
            && self.kind_name() == reference.kind
            && self.group() == reference.group
    }

    /// True if the object has the label of control planes.
    pub fn is_control_plane_machine(&self) -> bool {
        let labels = self.object.labels();
        labels.contains_key("cluster.x-k8s.io/control-plane")
    }
}

impl Snapshot {
    /// [`Item`] in this [`Role`] of `from`.
    pub fn referred(&self, from: &Item, role: Role) -> Option<&Item> {
        let reference = from.reference(role)?;
        self.named(from.namespace(), &reference.name)
            .find(|item| item.is(&reference))
    }

    /// Infrastructure of a Cluster: the referred object, or without a reference the object with the Cluster as owner.
    pub fn infrastructure<'a>(&'a self, cluster: &'a Item) -> Option<&'a Item> {
        let fallback = || self.belonging(cluster, Kind::OpenStackCluster).next();
        self.referred(cluster, Role::Infrastructure)
            .or_else(fallback)
    }

    /// Control plane of a Cluster, found like [`Snapshot::infrastructure`].
    pub fn control_plane<'a>(&'a self, cluster: &'a Item) -> Option<&'a Item> {
        let fallback = || self.belonging(cluster, Kind::KubeadmControlPlane).next();
        self.referred(cluster, Role::ControlPlane).or_else(fallback)
    }

    /// The objects of `kind` that `owner` owns.
    pub fn owned<'a>(&'a self, owner: &'a Item, kind: Kind) -> impl Iterator<Item = &'a Item> {
        let candidates = self.items.with(&[Common::Owner(owner.uid())]);
        candidates.filter(move |item| item.kind == kind && item.is_owned_by(owner))
    }

    /// Objects of the name.
    pub fn named<'a, 'b>(
        &'a self,
        namespace: &'b str,
        name: &'b str,
    ) -> impl Iterator<Item = &'a Item> + use<'a, 'b> {
        let candidates = self.items.with(&[Common::Name(namespace, name)]);
        candidates.filter(move |item| item.namespace() == namespace && item.name() == name)
    }

    /// The Cluster of an object.
    pub fn cluster_of(&self, item: &Item) -> Option<&Item> {
        let mut clusters = self.of_kind(Kind::Cluster);
        clusters.find(|cluster| {
            cluster.namespace() == item.namespace()
                && (item.object.labels().get("cluster.x-k8s.io/cluster-name")
                    == Some(&cluster.name().to_owned())
                    || item.field("/spec/clusterName").as_str() == Some(cluster.name())
                    || item.is_owned_by(cluster))
        })
    }

    /// The Machine that refers to an object.
    pub fn machine_of(&self, part: &Item) -> Option<&Item> {
        let mut machines = self.of_kind(Kind::Machine);
        machines.find(|machine| {
            machine.namespace() == part.namespace()
                && [Role::Infrastructure, Role::Bootstrap]
                    .iter()
                    .filter_map(|role| machine.reference(*role))
                    .any(|reference| part.is(&reference))
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn references_are_read_in_both_forms_and_only_when_they_are_whole() {
        let expected = Some(Reference {
            group: "infrastructure.cluster.x-k8s.io".to_owned(),
            kind: "DockerMachine".to_owned(),
            name: "a".to_owned(),
        });
        for (value, found) in [
            (
                json!({"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DockerMachine", "name": "a"}),
                &expected,
            ),
            (
                json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "DockerMachine", "name": "a"}),
                &expected,
            ),
            (
                json!({"apiVersion": "v1", "kind": "Secret", "name": "a"}),
                &None,
            ),
            (json!({"apiGroup": "x", "kind": "DockerMachine"}), &None),
            (json!(null), &None),
        ] {
            assert_eq!(&Reference::from_value(&value), found, "{value}");
        }
    }
}
