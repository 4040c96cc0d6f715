//! Objects of one kind by what events name: their cluster, or the mark on what was created for them.
//!
//! An event then costs a lookup, not a scan of every object. Each object is entered by its own
//! reconcile: one that is not entered yet, or whose labels have just changed, is about to be
//! reconciled anyway.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use kube::Resource;
use kube::runtime::reflector::{ObjectRef, Store};
use parking_lot::Mutex;

use crate::identity::{Identity, Mark};

/// What objects are looked up by.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Key {
    /// Namespace and name of a Cluster.
    Cluster(String, String),
    /// The mark on resources in the cloud.
    Mark(Mark),
    /// The cluster in the marks of its load balancer, for the machines that are its members.
    Members(Identity),
}

/// An index of the objects in a store.
pub(crate) struct Index<K: Resource<DynamicType = ()> + 'static> {
    store: Store<K>,
    keys: fn(&K) -> BTreeSet<Key>,
    entries: Mutex<Entries<K>>,
}

struct Entries<K: Resource<DynamicType = ()>> {
    objects: HashMap<Key, Vec<ObjectRef<K>>>,
    keys: HashMap<ObjectRef<K>, BTreeSet<Key>>,
}

impl<K> Index<K>
where
    K: Resource<DynamicType = ()> + Clone + 'static,
{
    /// An empty index of `store`, which looks objects up by `keys`.
    pub(crate) fn new(store: Store<K>, keys: fn(&K) -> BTreeSet<Key>) -> Arc<Self> {
        Arc::new(Self {
            store,
            keys,
            entries: Mutex::new(Entries {
                objects: HashMap::new(),
                keys: HashMap::new(),
            }),
        })
    }

    /// Enters an object under its present keys.
    pub(crate) fn enter(&self, object: &K) {
        let reference = ObjectRef::from_obj(object);
        let keys = (self.keys)(object);
        let mut entries = self.entries.lock();
        if entries.keys.get(&reference) == Some(&keys) {
            return;
        }
        entries.remove(&reference);
        for key in &keys {
            let objects = entries.objects.entry(key.clone()).or_default();
            objects.push(reference.clone());
        }
        entries.keys.insert(reference, keys);
        // What is deleted without a last reconcile is forgotten here.
        if entries.keys.len() > 2 * self.store.len() + 16 {
            let gone: Vec<_> = entries.keys.keys().cloned().collect();
            for reference in gone {
                if self.store.get(&reference).is_none() {
                    entries.remove(&reference);
                }
            }
        }
    }

    /// The objects with this key that are still there.
    pub(crate) fn find(&self, key: &Key) -> Vec<ObjectRef<K>> {
        let found = self.entries.lock().objects.get(key).cloned();
        let mut found = found.unwrap_or_default();
        found.retain(|reference| self.store.get(reference).is_some());
        found
    }

    /// All objects.
    pub(crate) fn all(&self) -> Vec<ObjectRef<K>> {
        let objects = self.store.state();
        objects
            .iter()
            .map(|object| ObjectRef::from_obj(object.as_ref()))
            .collect()
    }
}

impl<K: Resource<DynamicType = ()>> Entries<K> {
    fn remove(&mut self, reference: &ObjectRef<K>) {
        for key in self.keys.remove(reference).unwrap_or_default() {
            if let Some(objects) = self.objects.get_mut(&key) {
                objects.retain(|known| known != reference);
                if objects.is_empty() {
                    self.objects.remove(&key);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
