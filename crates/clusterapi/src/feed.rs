//! Watch of a kind, shared by all controllers.
//!
//! A `Controller` of kube has a watch and a cache for its kind and for each owned kind: with a dozen controllers, a
//! dozen copies of every Machine. A feed is one watch and one cache, and sends its events to the triggers and
//! mappings of all controllers.
//!
//! ```text
//!   index     the objects of a cluster, and the objects that refer to an object
//!   memory    values that a controller remembers for existing objects
//! ```

use std::fmt::Debug;
use std::hash::Hash;
use std::sync::{Arc, Weak};

use api::core::v1beta2::ContractReference;
use api::kube::api::{DynamicObject, ObjectMeta};
use api::kube::discovery::ApiResource;
use api::kube::runtime::reflector::{ObjectRef, Store, store::Writer};
use api::kube::runtime::{Controller, WatchStreamExt, watcher};
use api::kube::{Resource, ResourceExt};
use futures::channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};
use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use operator::client::Api;
use operator::decode::NotDecoded;
use operator::watch::{self, Reports, Skipped};
use parking_lot::{Mutex, RwLock};
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;
use tracing::debug;

mod index;
mod memory;

pub use index::{Indexed, Key};
pub use memory::Memory;

use index::Index;
use memory::Forget;

/// Watch of a kind and its cache.
pub struct Feed<K: Resource + 'static>
where
    K::DynamicType: Hash + Eq,
{
    store: Store<K>,
    index: Arc<RwLock<Index>>,
    memories: Arc<Mutex<Vec<Weak<dyn Forget>>>>,
    subscribers: Subscribers<K>,
    skipped: Skipped,
}

type Subscribers<K> = Arc<Mutex<Vec<UnboundedSender<Arc<K>>>>>;

impl<K: Resource + 'static> Clone for Feed<K>
where
    K::DynamicType: Hash + Eq,
{
    fn clone(&self) -> Self {
        Self {
            store: self.store.clone(),
            index: Arc::clone(&self.index),
            memories: Arc::clone(&self.memories),
            subscribers: Arc::clone(&self.subscribers),
            skipped: self.skipped.clone(),
        }
    }
}

impl<K> Feed<K>
where
    K: Resource + Indexed + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    K::DynamicType: Clone + Debug + Hash + Eq + Unpin + Send + Sync,
{
    /// Starts watching `api` until `shutdown`.
    pub fn start(
        api: Api<K>,
        kind: K::DynamicType,
        reports: Reports,
        shutdown: CancellationToken,
    ) -> Self {
        let writer = Writer::new(kind.clone());
        let (store, skipped) = (writer.as_reader(), Skipped::default());
        let config = watcher::Config::default();
        let events = watch::events(
            api,
            config,
            kind.clone(),
            store.clone(),
            skipped.clone(),
            reports,
        );
        let feed = Self {
            store,
            index: Arc::default(),
            memories: Arc::default(),
            subscribers: Subscribers::default(),
            skipped,
        };
        let watch = feed
            .clone()
            .watch(events.default_backoff().boxed(), kind, writer);
        tokio::spawn(async move { shutdown.run_until_cancelled_owned(watch).await });
        feed
    }

    /// The cache.
    pub fn store(&self) -> &Store<K> {
        &self.store
    }

    /// Cached objects, and then all created, changed or deleted objects.
    pub fn touched(&self) -> impl Stream<Item = Arc<K>> + Send + Unpin + 'static + use<K> {
        let (sender, receiver): (_, UnboundedReceiver<Arc<K>>) = unbounded();
        let mut subscribers = self.subscribers.lock();
        subscribers.push(sender);
        futures::stream::iter(self.store.state()).chain(receiver)
    }

    /// Updates the cache and the index, and notifies the subscribers; never returns.
    async fn watch(
        self,
        mut events: BoxStream<'static, watcher::Result<watcher::Event<K>>>,
        kind: K::DynamicType,
        mut writer: Writer<K>,
    ) {
        let mut known: Vec<Arc<K>> = Vec::new();
        while let Some(event) = events.next().await {
            let event = match event {
                Ok(event) => {
                    event.modify(|object| crate::inplace::reduce(object.managed_fields_mut()))
                }
                Err(source) => {
                    debug!(kind = %K::kind(&kind), "watch interrupted: {source}");
                    continue;
                }
            };
            // The cache is updated first, so that subscribers can read the object.
            self.update(&event, &kind, &mut writer);
            match event {
                watcher::Event::Apply(object) => self.notify(Arc::new(object)),
                watcher::Event::Delete(object) => {
                    self.forget(&object);
                    self.notify(Arc::new(object));
                }
                watcher::Event::Init => known = self.store.state(),
                watcher::Event::InitApply(_) => {}
                watcher::Event::InitDone => self.relisted(std::mem::take(&mut known), &kind),
            }
        }
    }

    /// Applies an event to the cache and the index, under one lock.
    fn update(&self, event: &watcher::Event<K>, kind: &K::DynamicType, writer: &mut Writer<K>) {
        let mut index = self.index.write();
        if let watcher::Event::Apply(object) | watcher::Event::Delete(object) = event {
            let key = ObjectRef::from_obj_with(object, kind.clone());
            if let Some(before) = self.store.get(&key) {
                index.remove(before.as_ref());
            }
        }
        writer.apply_watcher_event(event);
        match event {
            watcher::Event::Apply(object) => index.insert(object),
            watcher::Event::InitDone => {
                *index = Index::default();
                for object in self.store.state() {
                    index.insert(object.as_ref());
                }
            }
            _ => {}
        }
    }

    /// After a list: notifies about all objects, including objects deleted while no watch was running.
    fn relisted(&self, before: Vec<Arc<K>>, kind: &K::DynamicType) {
        for old in before {
            let now = self
                .store
                .get(&ObjectRef::from_obj_with(old.as_ref(), kind.clone()));
            if now.as_ref().is_none_or(|now| now.uid() != old.uid()) {
                self.forget(&old);
            }
            if now.is_none() {
                self.notify(old);
            }
        }
        self.store
            .state()
            .into_iter()
            .for_each(|object| self.notify(object));
    }

    fn notify(&self, object: Arc<K>) {
        self.subscribers
            .lock()
            .retain(|subscriber| subscriber.unbounded_send(Arc::clone(&object)).is_ok());
    }

    fn forget(&self, object: &K) {
        let uid = object.uid().unwrap_or_default();
        self.memories.lock().retain(|memory| {
            let memory = memory.upgrade();
            memory.inspect(|memory| memory.forget(&uid)).is_some()
        });
    }
}

impl Feed<DynamicObject> {
    /// Cached objects of `kind` in the topology of a cluster, sorted by name.
    pub fn of_topology(
        &self,
        kind: &ApiResource,
        namespace: &str,
        cluster: &str,
    ) -> Vec<Arc<DynamicObject>> {
        let index = self.index.read();
        let names = index.names(namespace, Key::Cluster(cluster.to_owned()));
        let key = |(namespace, name)| ObjectRef::new_with(name, kind.clone()).within(namespace);
        names
            .filter_map(|name| self.store.get(&key(name)))
            .collect()
    }
}

impl<K> Feed<K>
where
    K: Resource<DynamicType = ()> + Indexed + Clone + DeserializeOwned + Debug,
    K: Send + Sync + 'static,
{
    /// Controller of this kind, triggered by its own changes.
    pub fn controller(&self) -> Controller<K> {
        self.controller_of(|_| true)
    }

    /// Controller of the objects of this kind that match `predicate`, triggered by their changes.
    pub fn controller_of(&self, predicate: impl Fn(&K) -> bool + Send + 'static) -> Controller<K> {
        let touched = self
            .touched()
            .filter(move |object| std::future::ready(predicate(object)))
            .map(|object| ObjectRef::from_obj(object.as_ref()));
        Controller::for_stream(futures::stream::pending(), self.store.clone()).reconcile_on(touched)
    }

    /// Fails if an object that matches `concerns` is missing in the cache because it cannot be decoded. For callers
    /// that would act on the absence of an object.
    ///
    /// # Errors
    /// Names the object and the decoding error.
    pub fn decoded(&self, concerns: impl Fn(&ObjectMeta) -> bool) -> Result<(), NotDecoded> {
        self.skipped.check::<K>(concerns)
    }

    /// Cached object with this name.
    pub fn get(&self, namespace: &str, name: &str) -> Option<Arc<K>> {
        self.store.get(&ObjectRef::new(name).within(namespace))
    }

    /// Cached objects of a cluster that match `predicate`, sorted by name.
    pub fn in_cluster(
        &self,
        namespace: &str,
        cluster: &str,
        predicate: impl Fn(&K) -> bool,
    ) -> Vec<Arc<K>> {
        let mut found = self.find(namespace, Key::Cluster(cluster.to_owned()));
        found.retain(|object| predicate(object));
        found
    }

    /// Cached objects whose spec refers to `reference`, sorted by name.
    pub fn referring_to(&self, namespace: &str, reference: &ContractReference) -> Vec<Arc<K>> {
        self.find(namespace, Key::Reference(reference.clone()))
    }

    /// Cached objects whose spec refers to the Secret `name`, sorted by name.
    pub fn using_secret(&self, namespace: &str, name: &str) -> Vec<Arc<K>> {
        self.find(namespace, Key::Secret(name.to_owned()))
    }

    /// Cached objects of any namespace with this ClusterClass, sorted by namespace and name.
    pub fn using_class(&self, namespace: &str, name: &str) -> Vec<Arc<K>> {
        let (namespace, name) = (namespace.to_owned(), name.to_owned());
        self.find("", Key::Class { namespace, name })
    }

    /// Cached objects of a namespace that match `predicate`, sorted by name. Only of kinds with [`Key::Any`].
    pub fn in_namespace(&self, namespace: &str, predicate: impl Fn(&K) -> bool) -> Vec<Arc<K>> {
        let mut found = self.find(namespace, Key::Any);
        found.retain(|object| predicate(object));
        found
    }

    /// Empty memory of objects of this kind.
    pub fn memory<V: Clone + Send + 'static>(&self) -> Memory<K, V> {
        let memory = Memory::new(self.store.clone());
        self.memories.lock().push(memory.forgetting());
        memory
    }

    fn find(&self, namespace: &str, key: Key) -> Vec<Arc<K>> {
        let index = self.index.read();
        let names = index.names(namespace, key);
        names
            .filter_map(|(namespace, name)| self.get(namespace, name))
            .collect()
    }
}

#[cfg(test)]
mod tests;
