//! Watches the objects of all clusters, for progress and readiness.

mod light;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::StreamExt;
use futures::stream::select_all;
use kube::Client;
use kube::api::{ApiResource, DynamicObject};
use kube::runtime::{WatchStreamExt, watcher};
use operator::client::Api;
use tokio::sync::watch;
use tokio::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

use crate::snapshot::{Item, Kind, Snapshot};

/// Changes within this duration are published together.
const GATHER: Duration = Duration::from_millis(50);
/// At most one part in `SHARE` of a core is spent on [`Snapshot`]s, since a snapshot of many objects takes time.
const SHARE: u32 = 20;

/// Every [`Kind`] named here, for [`observe`].
pub fn ours() -> Vec<ApiResource> {
    Kind::ALL.map(Kind::resource).to_vec()
}

/// Watches all objects of these kinds. The receiver gets a new [`Snapshot`] soon after every change.
pub fn observe(
    client: &Client,
    resources: Vec<ApiResource>,
    shutdown: CancellationToken,
) -> watch::Receiver<Arc<Snapshot>> {
    let (sender, receiver) = watch::channel(Arc::new(Snapshot::default()));
    let streams = resources.iter().enumerate().map(|(index, resource)| {
        let api: Api<DynamicObject> = Api::all_with(client.clone(), resource);
        operator::watch::objects(&api, watcher::Config::default())
            .default_backoff()
            .map(move |event| (index, event))
            .boxed()
    });
    let mut events = select_all(streams);
    tokio::spawn(async move {
        let mut known = ObjectCache {
            resources,
            ..ObjectCache::default()
        };
        let mut gather = GATHER;
        loop {
            let next = tokio::select! {
                () = shutdown.cancelled() => None,
                event = events.next() => event,
            };
            let Some((index, event)) = next else { return };
            known.take(index, event);
            let until = Instant::now() + gather;
            while let Ok(Some((index, event))) = tokio::time::timeout_at(until, events.next()).await
            {
                known.take(index, event);
            }
            if !known.complete() {
                continue;
            }
            let began = Instant::now();
            if sender.send(Arc::new(known.snapshot())).is_err() {
                return;
            }
            gather = GATHER.max(began.elapsed() * SHARE);
        }
    });
    receiver
}

/// Objects reported by the watches so far. Kinds are named by their index in `resources`.
#[derive(Default)]
struct ObjectCache {
    resources: Vec<ApiResource>,
    objects: BTreeMap<(usize, String), Item>,
    listing: BTreeMap<usize, Vec<DynamicObject>>,
    listed: BTreeSet<usize>,
}

impl ObjectCache {
    fn take(&mut self, index: usize, event: watcher::Result<watcher::Event<DynamicObject>>) {
        match event {
            Ok(watcher::Event::Init) => {
                self.listing.insert(index, Vec::new());
            }
            Ok(watcher::Event::InitApply(object)) => {
                self.listing.entry(index).or_default().push(object);
            }
            Ok(watcher::Event::InitDone) => {
                self.objects.retain(|(known, _), _| *known != index);
                for object in self.listing.remove(&index).unwrap_or_default() {
                    self.insert(index, object);
                }
                self.listed.insert(index);
            }
            Ok(watcher::Event::Apply(object)) => self.insert(index, object),
            Ok(watcher::Event::Delete(object)) => {
                self.objects.remove(&(index, uid(&object)));
            }
            Err(source) => {
                let why = operator::words::chain(&source);
                let kind = self.resources.get(index).map_or("", |it| &it.kind);
                tracing::warn!("watching {kind}: {why}");
            }
        }
    }

    fn insert(&mut self, index: usize, mut object: DynamicObject) {
        if let Some(resource) = self.resources.get(index) {
            light::lighten(resource, &mut object);
            let key = (index, uid(&object));
            self.objects.insert(key, Item::new(resource, object));
        }
    }

    /// True if every kind was listed once.
    fn complete(&self) -> bool {
        self.listed.len() == self.resources.len()
    }

    fn snapshot(&self) -> Snapshot {
        let mut items: Vec<Item> = self.objects.values().cloned().collect();
        let key = |item: &Item| {
            let created = item.object.metadata.creation_timestamp.clone();
            (item.kind, created, item.name().to_owned())
        };
        items.sort_by_cached_key(key);
        Snapshot::from(items)
    }
}

fn uid(object: &DynamicObject) -> String {
    object.metadata.uid.clone().unwrap_or_default()
}
