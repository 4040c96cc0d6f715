//! Watches the objects of all clusters, for progress and readiness.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::StreamExt;
use futures::stream::select_all;
use kube::Client;
use kube::api::{Api, DynamicObject};
use kube::runtime::{WatchStreamExt, watcher};
use tokio::sync::watch;
use tokio::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

use crate::snapshot::{Item, Kind, Snapshot};

/// Changes within this duration are published together.
const GATHER: Duration = Duration::from_millis(50);

/// Watches all objects of our kinds. The receiver gets a new snapshot soon after every change.
pub(crate) fn observe(
    client: &Client,
    shutdown: CancellationToken,
) -> watch::Receiver<Arc<Snapshot>> {
    let (sender, receiver) = watch::channel(Arc::new(Snapshot::default()));
    let streams = Kind::ALL.map(|kind| {
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &kind.resource());
        watcher(api, watcher::Config::default())
            .default_backoff()
            .map(move |event| (kind, event))
            .boxed()
    });
    let mut events = select_all(streams);
    tokio::spawn(async move {
        let mut known = Known::default();
        loop {
            let next = tokio::select! {
                () = shutdown.cancelled() => None,
                event = events.next() => event,
            };
            let Some((kind, event)) = next else { return };
            known.take(kind, event);
            let until = Instant::now() + GATHER;
            while let Ok(Some((kind, event))) = tokio::time::timeout_at(until, events.next()).await
            {
                known.take(kind, event);
            }
            if known.complete() && sender.send(Arc::new(known.snapshot())).is_err() {
                return;
            }
        }
    });
    receiver
}

/// The objects that the watches have reported so far.
#[derive(Default)]
struct Known {
    objects: BTreeMap<(Kind, String), Arc<DynamicObject>>,
    listing: BTreeMap<Kind, Vec<DynamicObject>>,
    listed: Vec<Kind>,
}

impl Known {
    fn take(&mut self, kind: Kind, event: watcher::Result<watcher::Event<DynamicObject>>) {
        let key = |object: &DynamicObject| (kind, object.metadata.uid.clone().unwrap_or_default());
        match event {
            Ok(watcher::Event::Init) => {
                self.listing.insert(kind, Vec::new());
            }
            Ok(watcher::Event::InitApply(object)) => {
                self.listing.entry(kind).or_default().push(object);
            }
            Ok(watcher::Event::InitDone) => {
                self.objects.retain(|(known, _), _| *known != kind);
                for object in self.listing.remove(&kind).unwrap_or_default() {
                    self.insert(key(&object), object);
                }
                self.listed.push(kind);
            }
            Ok(watcher::Event::Apply(object)) => {
                self.insert(key(&object), object);
            }
            Ok(watcher::Event::Delete(object)) => {
                self.objects.remove(&key(&object));
            }
            Err(source) => {
                let why = operator::words::chain(&source);
                tracing::warn!("watching {}: {why}", kind.as_str());
            }
        }
    }

    fn insert(&mut self, key: (Kind, String), mut object: DynamicObject) {
        // Half of an object, and never displayed.
        object.metadata.managed_fields = None;
        self.objects.insert(key, Arc::new(object));
    }

    /// Whether every kind was listed once.
    fn complete(&self) -> bool {
        Kind::ALL.iter().all(|kind| self.listed.contains(kind))
    }

    fn snapshot(&self) -> Snapshot {
        let items = self.objects.iter().map(|((kind, _), object)| Item {
            kind: *kind,
            object: Arc::clone(object),
        });
        let mut items: Vec<Item> = items.collect();
        items.sort_by(|a, b| {
            (
                a.kind,
                a.object.metadata.creation_timestamp.as_ref(),
                a.name(),
            )
                .cmp(&(
                    b.kind,
                    b.object.metadata.creation_timestamp.as_ref(),
                    b.name(),
                ))
        });
        Snapshot { items }
    }
}
