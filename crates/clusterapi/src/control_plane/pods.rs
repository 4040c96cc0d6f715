//! Watches of the static Pods of workload control planes, one per connected cluster.

use std::collections::HashMap;
use std::sync::Arc;

use api::k8s_openapi::api::core::v1::Pod;
use api::kube::runtime::reflector::{Store, store::Writer};
use api::kube::runtime::{WatchStreamExt, watcher};
use api::kube::{Client, ResourceExt};
use futures::StreamExt;
use futures::channel::mpsc::{UnboundedSender, unbounded};
use futures::stream::BoxStream;
use operator::client::Api;
use parking_lot::Mutex;
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::debug;

use crate::remote::ClusterKey;

/// Label of the static Pods of a control plane, set by kubeadm.
const SELECTOR: &str = "tier=control-plane";

/// Running watches, shared by clones.
#[derive(Clone)]
pub(super) struct Watches {
    running: Arc<Mutex<HashMap<ClusterKey, Running>>>,
    changes: UnboundedSender<ClusterKey>,
    shutdown: CancellationToken,
}

/// State of the first list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Listed {
    /// Not complete.
    Pending,
    /// Failed, and being retried.
    Failed,
    /// Complete.
    Done,
}

/// Running watch; the drop ends the watch.
struct Running {
    store: Store<Pod>,
    listed: Arc<Mutex<Listed>>,
    _stop: DropGuard,
}

impl Watches {
    /// Creates an empty set, and the stream of clusters with changed Pods.
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

    /// Static [`Pod`]s of `key`; `None` before the end of the first list, which is sent as a change.
    pub(super) fn of(&self, key: &ClusterKey, client: &Client) -> Option<Vec<Arc<Pod>>> {
        let mut running = self.running.lock();
        let watch = running
            .entry(key.clone())
            .or_insert_with(|| self.start(key, client));
        let listed = *watch.listed.lock();
        (listed == Listed::Done).then(|| watch.store.state())
    }

    /// True if the first list of the static Pods of `key` is neither complete nor failed.
    pub(super) fn is_listing(&self, key: &ClusterKey) -> bool {
        let running = self.running.lock();
        let watch = running.get(key);
        watch.is_none_or(|watch| *watch.listed.lock() == Listed::Pending)
    }

    /// Ends the watch of a disconnected cluster.
    pub(super) fn forget(&self, key: &ClusterKey) {
        self.running.lock().remove(key);
    }

    fn start(&self, key: &ClusterKey, client: &Client) -> Running {
        let writer = Writer::new(());
        let (store, listed) = (writer.as_reader(), Arc::new(Mutex::new(Listed::Pending)));
        let stop = self.shutdown.child_token();
        let pods = Api::namespaced(client.clone(), "kube-system");
        let tell = {
            let (changes, key) = (self.changes.clone(), key.clone());
            move || drop(changes.unbounded_send(key.clone()))
        };
        let pump = pump(pods, writer, Arc::clone(&listed), tell);
        let guard = stop.clone().drop_guard();
        tokio::spawn(async move { stop.run_until_cancelled(pump).await });
        Running {
            store,
            listed,
            _stop: guard,
        }
    }
}

/// Updates the store; never returns.
async fn pump(
    pods: Api<Pod>,
    mut writer: Writer<Pod>,
    listed: Arc<Mutex<Listed>>,
    tell: impl Fn(),
) {
    let config = watcher::Config::default().labels(SELECTOR);
    let mut events = operator::watch::objects(&pods, config)
        .default_backoff()
        .boxed();
    while let Some(event) = events.next().await {
        let event = match event {
            Ok(event) => event.modify(|pod| pod.managed_fields_mut().clear()),
            Err(source) => {
                debug!("watch of static pods interrupted: {source}");
                let is_first = {
                    let mut listed = listed.lock();
                    let is_first = *listed == Listed::Pending;
                    if is_first {
                        *listed = Listed::Failed;
                    }
                    is_first
                };
                if is_first {
                    tell();
                }
                continue;
            }
        };
        writer.apply_watcher_event(&event);
        match event {
            watcher::Event::InitDone => {
                *listed.lock() = Listed::Done;
                tell();
            }
            watcher::Event::Apply(_) | watcher::Event::Delete(_) => tell(),
            watcher::Event::Init | watcher::Event::InitApply(_) => {}
        }
    }
}
