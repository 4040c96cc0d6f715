//! One watch of a kind, shared by every controller that looks at it.
//!
//! kube's `Controller` opens a watch and a cache for itself and for each kind that it owns; with a
//! dozen controllers that is a dozen copies of every Machine. A feed is one watch and one cache, and
//! hands out what it sees: to a controller's trigger, to another controller's mapping.

use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;

use api::kube::api::Api;
use api::kube::runtime::reflector::{ObjectRef, Store, store::Writer};
use api::kube::runtime::{Controller, WatchStreamExt, watcher};
use api::kube::{Resource, ResourceExt};
use futures::channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};
use futures::{Stream, StreamExt};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;
use tracing::debug;

/// One watch of a kind and the cache that it fills.
pub struct Feed<K: Resource + 'static>
where
    K::DynamicType: Hash + Eq,
{
    store: Store<K>,
    subscribers: Subscribers<K>,
}

type Subscribers<K> = Arc<Mutex<Vec<UnboundedSender<Arc<K>>>>>;

impl<K: Resource + 'static> Clone for Feed<K>
where
    K::DynamicType: Hash + Eq,
{
    fn clone(&self) -> Self {
        Self {
            store: self.store.clone(),
            subscribers: Arc::clone(&self.subscribers),
        }
    }
}

impl<K> Feed<K>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    K::DynamicType: Clone + Debug + Hash + Eq + Unpin + Send + Sync,
{
    /// Starts watching `api` until `shutdown`.
    pub fn start(api: Api<K>, kind: K::DynamicType, shutdown: CancellationToken) -> Self {
        let writer = Writer::new(kind.clone());
        let feed = Self {
            store: writer.as_reader(),
            subscribers: Subscribers::default(),
        };
        let subscribers = Arc::clone(&feed.subscribers);
        tokio::spawn(async move {
            let watch = pump(api, kind, writer, subscribers);
            shutdown.run_until_cancelled_owned(watch).await;
        });
        feed
    }

    /// The cache.
    pub fn store(&self) -> &Store<K> {
        &self.store
    }

    /// What is there now, and everything that is added, changed or deleted from now on.
    pub fn touched(&self) -> impl Stream<Item = Arc<K>> + Send + Unpin + 'static + use<K> {
        let (sender, receiver): (_, UnboundedReceiver<Arc<K>>) = unbounded();
        let mut subscribers = self.subscribers.lock();
        subscribers.push(sender);
        futures::stream::iter(self.store.state()).chain(receiver)
    }

    /// The cached objects of a namespace for which `predicate` holds.
    pub fn filter(&self, namespace: &str, predicate: impl Fn(&K) -> bool) -> Vec<Arc<K>> {
        self.store.state_filter(|object| {
            object.meta().namespace.as_deref() == Some(namespace) && predicate(object)
        })
    }
}

impl<K> Feed<K>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    /// A controller of this kind, triggered by its own changes.
    pub fn controller(&self) -> Controller<K> {
        let touched = self
            .touched()
            .map(|object| ObjectRef::from_obj(object.as_ref()));
        Controller::for_stream(futures::stream::pending(), self.store.clone()).reconcile_on(touched)
    }

    /// The cached object of this name.
    pub fn get(&self, namespace: &str, name: &str) -> Option<Arc<K>> {
        self.store.get(&ObjectRef::new(name).within(namespace))
    }
}

/// Keeps the cache current and tells the subscribers; never returns.
async fn pump<K>(api: Api<K>, kind: K::DynamicType, mut writer: Writer<K>, to: Subscribers<K>)
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    K::DynamicType: Clone + Debug + Hash + Eq + Unpin + Send + Sync,
{
    let reader = writer.as_reader();
    let mut known: Vec<Arc<K>> = Vec::new();
    let mut events = watcher(api, watcher::Config::default())
        .default_backoff()
        .boxed();
    while let Some(event) = events.next().await {
        let event = match event {
            Ok(event) => event.modify(|object| object.managed_fields_mut().clear()),
            Err(source) => {
                debug!(kind = %K::kind(&kind), "watch interrupted: {source}");
                continue;
            }
        };
        // The cache first, so that whoever is told finds what it was told of.
        writer.apply_watcher_event(&event);
        match event {
            watcher::Event::Apply(object) | watcher::Event::Delete(object) => {
                tell(&to, Arc::new(object));
            }
            watcher::Event::Init => known = reader.state(),
            watcher::Event::InitApply(_) => {}
            watcher::Event::InitDone => {
                // Whatever vanished while nobody watched counts as touched, too.
                let now = reader.state();
                let gone = known.drain(..).filter(|old| {
                    reader
                        .get(&ObjectRef::from_obj_with(old.as_ref(), kind.clone()))
                        .is_none()
                });
                gone.chain(now).for_each(|object| tell(&to, object));
            }
        }
    }
}

fn tell<K>(to: &Subscribers<K>, object: Arc<K>)
where
    K: Resource,
{
    to.lock()
        .retain(|subscriber| subscriber.unbounded_send(Arc::clone(&object)).is_ok());
}
