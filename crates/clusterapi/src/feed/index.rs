//! Index of the objects of a kind.

use std::collections::{BTreeSet, HashMap};

use api::addons::v1beta2::{ClusterResourceSet, ClusterResourceSetBinding};
use api::bootstrap::v1beta2::KubeadmConfig;
use api::controlplane::v1beta2::KubeadmControlPlane;
use api::core::v1beta2::{
    Cluster, ClusterClass, ContractReference, Machine, MachineDeployment, MachineHealthCheck,
    MachineSet,
};
use api::kube::ResourceExt;
use api::kube::api::DynamicObject;
use api::names::CLUSTER_NAME_LABEL;
use topology::names::OWNED_LABEL;

/// A key of the index, within a namespace.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Key {
    /// Objects of the Cluster with this name.
    Cluster(String),
    /// Objects whose spec refers to this object.
    Reference(ContractReference),
}

/// A kind with index keys.
pub trait Indexed {
    /// The keys of this object.
    fn keys(&self) -> Vec<Key>;
}

/// Names of objects by namespace and key.
#[derive(Debug, Default)]
pub(super) struct Index {
    names: HashMap<(String, Key), BTreeSet<String>>,
}

impl Index {
    pub(super) fn insert<K: Indexed + ResourceExt>(&mut self, object: &K) {
        let namespace = object.namespace().unwrap_or_default();
        for key in object.keys() {
            let names = self.names.entry((namespace.clone(), key)).or_default();
            names.insert(object.name_any());
        }
    }

    pub(super) fn remove<K: Indexed + ResourceExt>(&mut self, object: &K) {
        let namespace = object.namespace().unwrap_or_default();
        for key in object.keys() {
            let place = (namespace.clone(), key);
            let Some(names) = self.names.get_mut(&place) else {
                continue;
            };
            names.remove(&object.name_any());
            if names.is_empty() {
                self.names.remove(&place);
            }
        }
    }

    pub(super) fn names(&self, namespace: &str, key: Key) -> impl Iterator<Item = &str> {
        let names = self.names.get(&(namespace.to_owned(), key));
        names.into_iter().flatten().map(String::as_str)
    }
}

impl Indexed for Cluster {
    fn keys(&self) -> Vec<Key> {
        let spec = &self.spec;
        let references = spec
            .infrastructure_ref
            .iter()
            .chain(&spec.control_plane_ref);
        references.cloned().map(Key::Reference).collect()
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
        vec![Key::Cluster(self.spec.cluster_name.clone())]
    }
}

impl Indexed for MachineDeployment {
    fn keys(&self) -> Vec<Key> {
        vec![Key::Cluster(self.spec.cluster_name.clone())]
    }
}

impl Indexed for MachineHealthCheck {
    fn keys(&self) -> Vec<Key> {
        vec![Key::Cluster(self.spec.cluster_name.clone())]
    }
}

/// Sets select Clusters by labels: they are few, and all of them are looked through.
impl Indexed for ClusterResourceSet {
    fn keys(&self) -> Vec<Key> {
        Vec::new()
    }
}

/// A binding has the name of its Cluster.
impl Indexed for ClusterResourceSetBinding {
    fn keys(&self) -> Vec<Key> {
        Vec::new()
    }
}

impl Indexed for KubeadmConfig {
    fn keys(&self) -> Vec<Key> {
        by_label(self)
    }
}

impl Indexed for KubeadmControlPlane {
    fn keys(&self) -> Vec<Key> {
        by_label(self)
    }
}

/// Classes are few, and looked up by name.
impl Indexed for ClusterClass {
    fn keys(&self) -> Vec<Key> {
        Vec::new()
    }
}

/// Objects of providers are looked up by name, and those of a topology by their Cluster as well.
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
