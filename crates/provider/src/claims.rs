//! Holders of identities, in all namespaces the manager may read.
//!
//! An [`Identity`] may act only while a single object has it: a copy of an object has the identity of the original, and
//! thus owns everything of the original in the cloud. Two watches of metadata, narrowed by no filter and no option,
//! keep the holders of each identity, including objects that cannot be decoded.
//!
//! A watch can lag behind the watch of a controller. Since its events are in order, the watch knows every earlier
//! holder of an identity once it knows the asking object; until then the answer is [`Denial::Behind`].

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt::Debug;
use std::time::Duration;

use api::conditions::{Reason, Type};
use api::infra::v1alpha1::{OpenStackFloatingIPPool, OpenStackServer};
use api::infra::v1beta2::{OpenStackCluster, OpenStackMachine};
use api::k8s_openapi::jiff::Timestamp;
use futures::channel::mpsc::{UnboundedSender, unbounded};
use futures::{Stream, StreamExt};
use kube::api::ListParams;
use kube::core::{NamespaceResourceScope, PartialObjectMeta};
use kube::runtime::WatchStreamExt;
use kube::runtime::reflector::ObjectRef;
use kube::runtime::watcher::{self, Event};
use kube::{Client, Resource, ResourceExt};
use operator::client::Api;
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

use crate::identity::{CLUSTER_ID, Identity, MACHINE_ID, POOL_ID};
use crate::names;
use crate::owners::{namespace, of_cluster};
use crate::problem::Problem;

/// Time of the next attempt after [`Denial::Behind`].
pub(crate) const SOON: Duration = Duration::from_millis(50);
/// Pause before the next attempt to get the first list.
const AGAIN: Duration = Duration::from_secs(5);

/// Holders of all identities.
pub(crate) struct Claims {
    /// OpenStackClusters by the annotation [`CLUSTER_ID`].
    pub(crate) clusters: Register<OpenStackCluster>,
    /// OpenStackMachines by the annotation [`MACHINE_ID`].
    pub(crate) machines: Register<OpenStackMachine>,
    /// OpenStackFloatingIPPools by the annotation [`POOL_ID`].
    pub(crate) pools: Register<OpenStackFloatingIPPool>,
    /// OpenStackServers by the annotation [`MACHINE_ID`].
    pub(crate) servers: Register<OpenStackServer>,
}

/// Objects of one kind by their [`Identity`].
pub(crate) struct Register<K: Resource<DynamicType = ()>> {
    annotation: &'static str,
    finalizer: &'static str,
    held: Mutex<ClaimIndex>,
    woken: Mutex<Vec<UnboundedSender<ObjectRef<K>>>>,
}

/// Namespace and name.
type Key = (String, String);

#[derive(Default)]
struct ClaimIndex {
    /// True after the first list of the watch.
    is_listed: bool,
    holders: HashMap<Key, Holder>,
    by_identity: HashMap<Identity, BTreeSet<Key>>,
    /// Objects in a list not yet received completely.
    listing: HashSet<Key>,
    /// Identities made by this process for objects unknown to the watch. No other object can have these.
    minted: HashSet<Identity>,
}

/// Object with an [`Identity`].
#[derive(Clone, PartialEq, Eq)]
struct Holder {
    uid: String,
    id: Identity,
    created: Option<Timestamp>,
    /// Name of its Cluster.
    cluster: Option<String>,
}

/// Reason why an object may not act with an [`Identity`].
#[derive(Debug)]
pub(crate) enum Denial {
    /// The watch does not know the object yet.
    Behind,
    /// Other objects have the identity, too.
    Shared(Box<Shared>),
}

/// Several objects with one identity.
#[derive(Debug)]
pub(crate) struct Shared {
    kind: String,
    annotation: &'static str,
    finalizer: &'static str,
    /// Other objects, and the youngest of all.
    others: Vec<Key>,
    youngest: Option<Key>,
}

impl Default for Claims {
    fn default() -> Self {
        Self {
            clusters: Register::new(CLUSTER_ID, names::CLUSTER_FINALIZER),
            machines: Register::new(MACHINE_ID, names::MACHINE_FINALIZER),
            pools: Register::new(POOL_ID, names::POOL_FINALIZER),
            servers: Register::new(MACHINE_ID, names::SERVER_FINALIZER),
        }
    }
}

impl Claims {
    /// Follows the objects of all namespaces until `shutdown`; of `namespace` alone if the role allows no more.
    pub(crate) async fn follow(
        &self,
        client: &Client,
        namespace: Option<&str>,
        shutdown: &CancellationToken,
    ) {
        tokio::join!(
            self.clusters.follow(client, namespace, shutdown),
            self.machines.follow(client, namespace, shutdown),
            self.pools.follow(client, namespace, shutdown),
            self.servers.follow(client, namespace, shutdown)
        );
    }
}

impl<K> Register<K>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + DeserializeOwned
        + Send
        + Sync
        + 'static,
{
    fn new(annotation: &'static str, finalizer: &'static str) -> Self {
        Self {
            annotation,
            finalizer,
            held: Mutex::default(),
            woken: Mutex::default(),
        }
    }

    async fn follow(&self, client: &Client, namespace: Option<&str>, shutdown: &CancellationToken) {
        let work = async {
            let api = scope::<PartialObjectMeta<K>>(client, namespace).await;
            let events =
                operator::watch::metadata(&api, watcher::Config::default()).default_backoff();
            let mut events = std::pin::pin!(events);
            while let Some(event) = events.next().await {
                match event {
                    Ok(event) => self.apply(event),
                    Err(error) => tracing::warn!(
                        "the watch of identities of {}: {}",
                        K::kind(&()),
                        operator::words::chain(&error)
                    ),
                }
            }
        };
        tokio::select! {
            () = work => {}
            () = shutdown.cancelled() => {}
        }
    }

    /// Takes in an [`Event`] of the watch.
    pub(crate) fn apply(&self, event: Event<PartialObjectMeta<K>>) {
        let contested = {
            let mut held = self.held.lock();
            match event {
                Event::Init => {
                    held.listing.clear();
                    BTreeSet::new()
                }
                Event::InitApply(object) => {
                    held.listing.insert(key(&object));
                    held.set(key(&object), self.holder(&object))
                }
                Event::InitDone => held.listed(),
                Event::Apply(object) => held.set(key(&object), self.holder(&object)),
                Event::Delete(object) => held.set(key(&object), None),
            }
        };
        for (namespace, name) in contested {
            let object = ObjectRef::<K>::new(&name).within(&namespace);
            let mut woken = self.woken.lock();
            woken.retain(|sender| sender.unbounded_send(object.clone()).is_ok());
        }
    }

    fn holder(&self, object: &PartialObjectMeta<K>) -> Option<Holder> {
        Some(Holder {
            uid: object.uid().unwrap_or_default(),
            id: Identity::for_object(object, self.annotation)?,
            created: object.creation_timestamp().map(|created| created.0),
            cluster: of_cluster(object).map(str::to_owned),
        })
    }

    /// Objects whose identity another object got or gave up, from now on.
    pub(crate) fn contested(&self) -> impl Stream<Item = ObjectRef<K>> + Send + 'static {
        let (sender, receiver) = unbounded();
        self.woken.lock().push(sender);
        receiver
    }

    /// Checks that `object` is the only holder of its identity `id`.
    pub(crate) fn sole(&self, object: &K, id: Identity) -> Result<(), Denial> {
        let held = self.held.lock();
        let asking = key(object);
        let is_known = held
            .holders
            .get(&asking)
            .is_some_and(|known| known.id == id && Some(&known.uid) == object.meta().uid.as_ref());
        if !(held.is_listed && (is_known || held.minted.contains(&id))) {
            return Err(Denial::Behind);
        }
        self.unshared(&held, &asking, id)
    }

    /// Checks that no other object has the identity `id`, lost by `object`.
    pub(crate) fn free(&self, object: &K, id: Identity) -> Result<(), Denial> {
        let held = self.held.lock();
        if !held.is_listed {
            return Err(Denial::Behind);
        }
        self.unshared(&held, &key(object), id)
    }

    fn unshared(&self, held: &ClaimIndex, asking: &Key, id: Identity) -> Result<(), Denial> {
        let all = held.by_identity.get(&id).into_iter().flatten();
        let others: Vec<_> = all.filter(|other| *other != asking).cloned().collect();
        if others.is_empty() {
            return Ok(());
        }
        let created = |key: &Key| held.holders.get(key).and_then(|holder| holder.created);
        let all = others
            .iter()
            .chain(held.holders.contains_key(asking).then_some(asking));
        let ages: BTreeMap<_, _> = all.map(|key| (created(key), key)).collect();
        // Objects of one second cannot be told apart.
        let youngest = ages.last_key_value().filter(|_| ages.len() > others.len());
        Err(Denial::Shared(Box::new(Shared {
            kind: K::kind(&()).into_owned(),
            annotation: self.annotation,
            finalizer: self.finalizer,
            youngest: youngest.map(|(_, key)| (*key).clone()),
            others,
        })))
    }

    /// New [`Identity`], held by no object.
    pub(crate) fn mint(&self) -> Identity {
        let id = Identity::new();
        self.held.lock().minted.insert(id);
        id
    }

    /// Forgets a new identity that could not be stored.
    pub(crate) fn discard(&self, id: Identity) {
        self.held.lock().minted.remove(&id);
    }

    /// [`Identity`] of an object, if any.
    pub(crate) fn identity_of(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Identity>, Denial> {
        let held = self.held.lock();
        if !held.is_listed {
            return Err(Denial::Behind);
        }
        let holder = held.holders.get(&(namespace.to_owned(), name.to_owned()));
        Ok(holder.map(|holder| holder.id))
    }

    /// Name of the Cluster of an object with an identity.
    pub(crate) fn cluster_of(&self, object: &ObjectRef<K>) -> Option<String> {
        let namespace = object.namespace.clone().unwrap_or_default();
        let held = self.held.lock();
        let holder = held.holders.get(&(namespace, object.name.clone()))?;
        holder.cluster.clone()
    }

    /// Name of a Cluster's object, if exactly one object has an identity.
    pub(crate) fn of_cluster(&self, namespace: &str, cluster: &str) -> Option<String> {
        let held = self.held.lock();
        let mut found = held.holders.iter().filter(|((of, _), holder)| {
            of == namespace && holder.cluster.as_deref() == Some(cluster)
        });
        let ((_, name), _) = found.next()?;
        found.next().is_none().then(|| name.clone())
    }
}

impl ClaimIndex {
    /// Enters or removes an object, and returns the present and former sharers of its identity.
    fn set(&mut self, key: Key, holder: Option<Holder>) -> BTreeSet<Key> {
        let before = self.holders.get(&key);
        if before == holder.as_ref() {
            return BTreeSet::new();
        }
        let (old, new) = (
            before.map(|known| known.id),
            holder.as_ref().map(|known| known.id),
        );
        let mut contested = BTreeSet::new();
        if let Some(old) = old.filter(|_| old != new)
            && let Some(keys) = self.by_identity.get_mut(&old)
        {
            keys.remove(&key);
            contested.extend(keys.iter().cloned());
            if keys.is_empty() {
                self.by_identity.remove(&old);
            }
        }
        if let Some(new) = new {
            self.minted.remove(&new);
            let keys = self.by_identity.entry(new).or_default();
            keys.insert(key.clone());
            if keys.len() > 1 {
                contested.extend(keys.iter().cloned());
            }
        }
        match holder {
            Some(holder) => self.holders.insert(key, holder),
            None => self.holders.remove(&key),
        };
        contested
    }

    /// Completes the list: objects missing in the list are gone.
    fn listed(&mut self) -> BTreeSet<Key> {
        let listing = std::mem::take(&mut self.listing);
        let gone = self.holders.keys().filter(|key| !listing.contains(*key));
        let gone: Vec<_> = gone.cloned().collect();
        self.is_listed = true;
        gone.into_iter()
            .flat_map(|key| self.set(key, None))
            .collect()
    }
}

impl Shared {
    /// [`Problem`] with what to do, for the conditions of all objects with the identity, and of their dependents.
    pub(crate) fn problem(&self) -> Problem {
        let kind = &self.kind;
        let words = |(namespace, name): &Key| format!("{namespace}/{name}");
        let others: Vec<_> = self.others.iter().map(words).collect();
        let others = crate::resolve::names(others.iter().map(String::as_str));
        let has = if self.others.len() == 1 {
            "has"
        } else {
            "have"
        };
        let hint = match &self.youngest {
            Some(key) => format!(" ({} is the youngest)", words(key)),
            None => String::new(),
        };
        let text = format!(
            "{kind} {others} {has} the same annotation {}, and nothing is created, changed or deleted \
             while several objects have it: delete the copy{hint} and remove its finalizer {}, which \
             touches nothing in the cloud; to use it as another {kind}, create it anew without this \
             annotation",
            self.annotation, self.finalizer
        );
        Problem::new(Type::Ready, Reason::IdentityShared, text)
    }
}

/// All objects of a kind, or objects of `namespace` alone if the role allows no more.
async fn scope<K>(client: &Client, namespace: Option<&str>) -> Api<K>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + DeserializeOwned,
{
    let all = Api::all(client.clone());
    let Some(namespace) = namespace else {
        return all;
    };
    loop {
        match all.list(&ListParams::default().limit(1)).await {
            Ok(_) => return all,
            Err(kube::Error::Api(status)) if status.code == 403 => {
                tracing::info!(
                    "the role allows {} in namespace {namespace} only: copies in others are not seen",
                    K::plural(&())
                );
                return Api::namespaced(client.clone(), namespace);
            }
            Err(error) => {
                tracing::warn!("listing identities: {}", operator::words::chain(&error));
                tokio::time::sleep(AGAIN).await;
            }
        }
    }
}

fn key<K: ResourceExt>(object: &K) -> Key {
    (namespace(object), object.name_any())
}

#[cfg(test)]
mod tests;
