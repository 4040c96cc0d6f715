//! Values that a controller remembers for objects while they exist.

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::{Arc, Weak};

use api::kube::Resource;
use api::kube::ResourceExt;
use api::kube::runtime::reflector::{ObjectRef, Store};
use parking_lot::Mutex;

/// Value for each object of a kind; dropped when the object leaves its feed.
#[derive(Debug)]
pub struct Memory<K: Resource<DynamicType = ()> + 'static, V> {
    values: Arc<Mutex<HashMap<String, V>>>,
    store: Store<K>,
}

/// Map of values by the UID of an object.
pub(super) trait Forget: Send + Sync {
    fn forget(&self, uid: &str);
}

impl<V: Send> Forget for Mutex<HashMap<String, V>> {
    fn forget(&self, uid: &str) {
        self.lock().remove(uid);
    }
}

impl<K, V> Memory<K, V>
where
    K: Resource<DynamicType = ()> + Clone + Debug + 'static,
    V: Clone + Send + 'static,
{
    pub(super) fn new(store: Store<K>) -> Self {
        Self {
            values: Arc::default(),
            store,
        }
    }

    /// Handle of the feed for the removal of values.
    pub(super) fn forgetting(&self) -> Weak<dyn Forget> {
        let weak: Weak<Mutex<HashMap<String, V>>> = Arc::downgrade(&self.values);
        weak
    }

    /// Value of `object`.
    pub fn get(&self, object: &K) -> Option<V> {
        let uid = object.uid()?;
        self.values.lock().get(&uid).cloned()
    }

    /// Stores `value`, unless the object is gone.
    pub fn insert(&self, object: &K, value: V) {
        // The feed removes the object from its store first and the value afterwards, so that a running reconcile
        // leaves no value behind.
        let mut values = self.values.lock();
        let current = self.store.get(&ObjectRef::from_obj(object));
        if let Some(uid) = object.uid()
            && current.is_some_and(|current| current.uid().as_ref() == Some(&uid))
        {
            values.insert(uid, value);
        }
    }

    /// Number of values.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.values.lock().len()
    }
}
