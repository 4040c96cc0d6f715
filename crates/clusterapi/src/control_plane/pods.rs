//! Watches of the static Pods of workload control planes, one for each cluster that can be reached.

use std::collections::HashMap;
use std::sync::Arc;

use api::k8s_openapi::api::core::v1::Pod;
use api::kube::api::Api;
use api::kube::runtime::reflector::{Store, store::Writer};
use api::kube::runtime::{WatchStreamExt, watcher};
use api::kube::{Client, ResourceExt};
use futures::StreamExt;
use futures::channel::mpsc::{UnboundedSender, unbounded};
use futures::stream::BoxStream;
use parking_lot::Mutex;
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::debug;

use crate::remote::ClusterKey;

/// The label that kubeadm puts on the control plane's static Pods.
const SELECTOR: &str = "tier=control-plane";

/// The running watches; clones share them.
#[derive(Clone)]
pub(super) struct Watches {
    running: Arc<Mutex<HashMap<ClusterKey, Running>>>,
    changes: UnboundedSender<ClusterKey>,
    shutdown: CancellationToken,
}

/// Dropping it ends the watch.
struct Running {
    store: Store<Pod>,
    synced: Arc<Mutex<bool>>,
    _stop: DropGuard,
}

impl Watches {
    /// No watch yet, and the stream that tells whose Pods changed.
    pub(super) fn new(shutdown: CancellationToken) -> (Self, BoxStream<'static, ClusterKey>) {
        let (changes, receiver) = unbounded();
        (
            Self {
                running: Arc::default(),
                changes,
                shutdown,
            },
            receiver.boxed(),
        )
    }

    /// The static Pods of `key`; `None` until they have been listed, which is told as a change.
    pub(super) fn of(&self, key: &ClusterKey, client: &Client) -> Option<Vec<Arc<Pod>>> {
        let mut running = self.running.lock();
        let watch = running
            .entry(key.clone())
            .or_insert_with(|| self.start(key, client));
        let synced = *watch.synced.lock();
        synced.then(|| watch.store.state())
    }

    /// Ends the watch of a cluster that cannot be reached any more.
    pub(super) fn forget(&self, key: &ClusterKey) {
        self.running.lock().remove(key);
    }

    fn start(&self, key: &ClusterKey, client: &Client) -> Running {
        let writer = Writer::new(());
        let (store, synced) = (writer.as_reader(), Arc::new(Mutex::new(false)));
        let stop = self.shutdown.child_token();
        let pods = Api::namespaced(client.clone(), "kube-system");
        let tell = {
            let (changes, key) = (self.changes.clone(), key.clone());
            move || drop(changes.unbounded_send(key.clone()))
        };
        let pump = pump(pods, writer, Arc::clone(&synced), tell);
        let guard = stop.clone().drop_guard();
        tokio::spawn(async move { stop.run_until_cancelled(pump).await });
        Running {
            store,
            synced,
            _stop: guard,
        }
    }
}

/// Keeps the store current; never returns.
async fn pump(pods: Api<Pod>, mut writer: Writer<Pod>, synced: Arc<Mutex<bool>>, tell: impl Fn()) {
    let config = watcher::Config::default().labels(SELECTOR);
    let mut events = watcher(pods, config).default_backoff().boxed();
    while let Some(event) = events.next().await {
        let event = match event {
            Ok(event) => event.modify(|pod| pod.managed_fields_mut().clear()),
            Err(source) => {
                debug!("watch of static pods interrupted: {source}");
                continue;
            }
        };
        writer.apply_watcher_event(&event);
        match event {
            watcher::Event::InitDone => {
                *synced.lock() = true;
                tell();
            }
            watcher::Event::Apply(_) | watcher::Event::Delete(_) => tell(),
            watcher::Event::Init | watcher::Event::InitApply(_) => {}
        }
    }
}
