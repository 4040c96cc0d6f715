//! Index of the objects of a kind.

use std::collections::{BTreeSet, HashMap};

use api::addons::v1beta2::{ClusterResourceSet, ClusterResourceSetBinding};
use api::bootstrap::v1beta2::KubeadmConfig;
use api::controlplane::v1beta2::KubeadmControlPlane;
use api::core::v1beta2::{
    Cluster, ClusterClass, ContractReference, Machine, MachineDeployment, MachineHealthCheck,
    MachineSet, MachineSpec,
};
use api::kube::ResourceExt;
use api::kube::api::DynamicObject;
use api::names::CLUSTER_NAME_LABEL;
use topology::names::OWNED_LABEL;

use crate::references::contract;

/// Key of the index, within a namespace.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Key {
    /// All objects.
    Any,
    /// Objects of the [`Cluster`] with this name.
    Cluster(String),
    /// Objects with a reference to this object in the spec.
    Reference(ContractReference),
    /// Objects with the Secret of this name in the spec.
    Secret(String),
    /// Objects of any namespace with the ClusterClass of this name, in the namespace of the key.
    Class {
        /// Namespace of the class.
        namespace: String,
        /// Name of the class.
        name: String,
    },
}

impl Key {
    /// Namespace for the lookup: the object's own, unless the key names another one.
    fn place(self, namespace: &str) -> (String, Key) {
        let namespace = match &self {
            Key::Class { namespace, .. } => namespace.clone(),
            Key::Any | Key::Cluster(_) | Key::Reference(_) | Key::Secret(_) => namespace.to_owned(),
        };
        (namespace, self)
    }
}

/// Kind with index keys.
pub trait Indexed {
    /// Keys of this object.
    fn keys(&self) -> Vec<Key>;
}

/// Namespaces and names of objects by namespace and key.
#[derive(Debug, Default)]
pub(super) struct Index {
    names: HashMap<(String, Key), BTreeSet<(String, String)>>,
}

impl Index {
    pub(super) fn insert<K: Indexed + ResourceExt>(&mut self, object: &K) {
        let namespace = object.namespace().unwrap_or_default();
        for key in object.keys() {
            let names = self.names.entry(key.place(&namespace)).or_default();
            names.insert((namespace.clone(), object.name_any()));
        }
    }

    pub(super) fn remove<K: Indexed + ResourceExt>(&mut self, object: &K) {
        let namespace = object.namespace().unwrap_or_default();
        for key in object.keys() {
            let place = key.place(&namespace);
            let Some(names) = self.names.get_mut(&place) else {
                continue;
            };
            names.remove(&(namespace.clone(), object.name_any()));
            if names.is_empty() {
                self.names.remove(&place);
            }
        }
    }

    /// Namespaces and names of the objects with this key, sorted.
    pub(super) fn names(&self, namespace: &str, key: Key) -> impl Iterator<Item = (&str, &str)> {
        let names = self.names.get(&key.place(namespace));
        let names = names.into_iter().flatten();
        names.map(|(namespace, name)| (namespace.as_str(), name.as_str()))
    }
}

impl Indexed for Cluster {
    fn keys(&self) -> Vec<Key> {
        let spec = &self.spec;
        let references = spec
            .infrastructure_ref
            .iter()
            .chain(&spec.control_plane_ref);
        let mut keys: Vec<_> = references.cloned().map(Key::Reference).collect();
        // ClusterResourceSets select among all Clusters of their namespace.
        keys.push(Key::Any);
        let class = spec.topology.as_ref().map(|topology| &topology.class_ref);
        keys.extend(class.map(|class| {
            Key::Class {
                namespace: class
                    .namespace
                    .clone()
                    .unwrap_or_else(|| self.namespace().unwrap_or_default()),
                name: class.name.clone(),
            }
        }));
        keys
    }
}

impl Indexed for Machine {
    fn keys(&self) -> Vec<Key> {
        let config = self.spec.bootstrap.config_ref.iter();
        let references = config.chain([&self.spec.infrastructure_ref]);
        let mut keys = vec![Key::Cluster(self.spec.cluster_name.clone())];
        keys.extend(references.cloned().map(Key::Reference));
        keys
    }
}

impl Indexed for MachineSet {
    fn keys(&self) -> Vec<Key> {
        of_workers(&self.spec.cluster_name, &self.spec.template.spec)
    }
}

impl Indexed for MachineDeployment {
    fn keys(&self) -> Vec<Key> {
        of_workers(&self.spec.cluster_name, &self.spec.template.spec)
    }
}

/// Cluster of a set or deployment, and the referenced templates.
fn of_workers(cluster: &str, template: &MachineSpec) -> Vec<Key> {
    let config = template.bootstrap.config_ref.iter();
    let templates = config.chain([&template.infrastructure_ref]);
    let mut keys = vec![Key::Cluster(cluster.to_owned())];
    keys.extend(templates.cloned().map(Key::Reference));
    keys
}

impl Indexed for MachineHealthCheck {
    fn keys(&self) -> Vec<Key> {
        vec![Key::Cluster(self.spec.cluster_name.clone())]
    }
}

/// Sets select Clusters by labels: a lookup goes through the sets of a namespace.
impl Indexed for ClusterResourceSet {
    fn keys(&self) -> Vec<Key> {
        vec![Key::Any]
    }
}

/// A binding has the name of its Cluster; the deletion of a set goes through the bindings of the namespace.
impl Indexed for ClusterResourceSetBinding {
    fn keys(&self) -> Vec<Key> {
        vec![Key::Any]
    }
}

/// Keys: the cluster, and the Secrets of files and passwords.
impl Indexed for KubeadmConfig {
    fn keys(&self) -> Vec<Key> {
        let files = self.spec.files.iter();
        let files = files.filter_map(|file| Some(&file.content_from.as_ref()?.secret.name));
        let users = self.spec.users.iter();
        let users = users.filter_map(|user| Some(&user.passwd_from.as_ref()?.secret.name));
        let mut keys = by_label(self);
        keys.extend(files.chain(users).cloned().map(Key::Secret));
        keys
    }
}

/// Cluster, and the template of the machines.
impl Indexed for KubeadmControlPlane {
    fn keys(&self) -> Vec<Key> {
        let template = &self.spec.machine_template.spec.infrastructure_ref;
        let mut keys = by_label(self);
        keys.push(Key::Reference(template.clone()));
        keys
    }
}

/// Keys: the name of the class, and its templates.
impl Indexed for ClusterClass {
    fn keys(&self) -> Vec<Key> {
        let templates = self.templates().into_iter();
        let references = templates.map(|(_, reference)| contract(reference));
        references.map(Key::Reference).collect()
    }
}

/// Keys: the name of a provider's object, and for a topology also the Cluster.
impl Indexed for DynamicObject {
    fn keys(&self) -> Vec<Key> {
        match self.labels().contains_key(OWNED_LABEL) {
            true => by_label(self),
            false => Vec::new(),
        }
    }
}

fn by_label(object: &impl ResourceExt) -> Vec<Key> {
    let cluster = object.labels().get(CLUSTER_NAME_LABEL);
    cluster.cloned().map(Key::Cluster).into_iter().collect()
}
