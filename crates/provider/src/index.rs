//! Indexes of the objects of one kind by the keys of events: their cluster, or the mark on their resources.
//!
//! With an index, an event costs a lookup instead of a scan of the whole store. Each reconcile enters its object: an
//! object not indexed yet, or with labels just changed, is queued for a reconcile anyway.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use kube::Resource;
use kube::runtime::reflector::{ObjectRef, Store};
use parking_lot::Mutex;

use crate::identity::{Identity, Mark};

/// A key of the index.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Key {
    /// Namespace and name of a Cluster.
    Cluster(String, String),
    /// Namespace and name of a Secret: with the credentials, or an awaited one.
    Secret(String, String),
    /// Namespace and name of an Image of ORC that is waited for.
    Image(String, String),
    /// The mark on resources in the cloud.
    Mark(Mark),
    /// The identity of a pool.
    Pool(Identity),
    /// Address of a floating IP used by the object.
    Address(String),
    /// [`Identity`] of a cluster, for the machines that are members of its load balancer.
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
    /// Empty index of a [`Store`]; `keys` returns the keys of an object.
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

    /// Enters an object with its current keys.
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
        // Removes objects that were deleted without a last reconcile.
        if entries.keys.len() > 2 * self.store.len() + 16 {
            let gone: Vec<_> = entries.keys.keys().cloned().collect();
            for reference in gone {
                if self.store.get(&reference).is_none() {
                    entries.remove(&reference);
                }
            }
        }
    }

    /// Adds a [`Key`] until the object is entered again: for the object awaited by its last reconcile.
    pub(crate) fn awaits(&self, object: &K, key: Key) {
        let reference = ObjectRef::from_obj(object);
        let mut entries = self.entries.lock();
        let keys = entries.keys.entry(reference.clone()).or_default();
        if keys.insert(key.clone()) {
            entries.objects.entry(key).or_default().push(reference);
        }
    }

    /// Existing objects with this [`Key`].
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
