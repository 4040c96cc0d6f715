//! Faults on request: of a test, or of a ConfigMap in the API server.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::Api;
use kube::runtime::{WatchStreamExt as _, watcher};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Namespace of [`CONFIG_MAP`].
pub const NAMESPACE: &str = "kube-system";
/// Name of the ConfigMap with the faults of a simulated cluster.
pub const CONFIG_MAP: &str = "simulated-faults";
/// Key of the [`FaultSet`] faults in the ConfigMap, as JSON.
pub const KEY: &str = "faults.json";

/// How a container ends.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ending {
    /// Exit status.
    pub status: i32,
    /// Log of the container.
    #[serde(default)]
    pub log: String,
}

/// All faults of a simulated cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FaultSet {
    /// Images that no node has.
    pub images: BTreeSet<String>,
    /// Containers that end, by name.
    pub containers: BTreeMap<String, Ending>,
    /// Nodes whose machines are off.
    pub nodes: BTreeSet<String>,
    /// Nodes that do not register: a Node object that is deleted stays away.
    pub removed: BTreeSet<String>,
}

impl FaultSet {
    /// Reads the faults of the ConfigMap; none without the key.
    ///
    /// # Errors
    /// The place and reason of JSON that is not understood.
    pub fn read(map: &ConfigMap) -> Result<Self, serde_json::Error> {
        let text = map.data.as_ref().and_then(|data| data.get(KEY));
        text.map_or_else(|| Ok(Self::default()), |text| serde_json::from_str(text))
    }
}

/// Faults of simulated nodes, shared by all clones.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    known: Arc<Mutex<FaultSet>>,
    pub(super) changed: Arc<Notify>,
}

impl Faults {
    /// Makes an image missing on all nodes, or available again. Running containers go on.
    pub fn image_is_missing(&self, image: &str, missing: bool) {
        let mut known = self.known.lock();
        match missing {
            true => known.images.insert(image.to_owned()),
            false => known.images.remove(image),
        };
        drop(known);
        self.changed.notify_one();
    }

    /// Makes the container of this name end in this way whenever it runs; `None` repairs it. A container with a status
    /// other than 0 crashes again and again, and such a task fails.
    pub fn container_ends(&self, name: &str, ending: Option<Ending>) {
        let mut known = self.known.lock();
        match ending {
            Some(ending) => known.containers.insert(name.to_owned(), ending),
            None => known.containers.remove(name),
        };
        drop(known);
        self.changed.notify_one();
    }

    /// True if the machine of a node is off.
    pub fn node_is_gone(&self, name: &str, gone: bool) {
        let mut known = self.known.lock();
        match gone {
            true => known.nodes.insert(name.to_owned()),
            false => known.nodes.remove(name),
        };
        drop(known);
        self.changed.notify_one();
    }

    /// Takes a node away for good, or brings it back: it does not register while it is away.
    pub fn node_is_removed(&self, name: &str, removed: bool) {
        let mut known = self.known.lock();
        match removed {
            true => known.removed.insert(name.to_owned()),
            false => known.removed.remove(name),
        };
        drop(known);
        self.changed.notify_one();
    }

    /// Has the faults of the ConfigMap from now on, whenever it changes, until `shutdown`. Faults that are not understood
    /// change nothing.
    pub async fn follow(self, client: Client, shutdown: CancellationToken) {
        let maps: Api<ConfigMap> = Api::namespaced(client, NAMESPACE);
        let watched = watcher::watch_object(maps, CONFIG_MAP).default_backoff();
        let mut watched = std::pin::pin!(watched);
        loop {
            let map = tokio::select! {
                () = shutdown.cancelled() => return,
                map = watched.next() => map,
            };
            match map {
                Some(Ok(map)) => match FaultSet::read(&map.unwrap_or_default()) {
                    Ok(known) => self.set(known),
                    Err(error) => {
                        tracing::warn!("ConfigMap {NAMESPACE}/{CONFIG_MAP}: {KEY}: {error}");
                    }
                },
                Some(Err(error)) => tracing::debug!("the watch begins again: {error}"),
                None => return,
            }
        }
    }

    fn set(&self, wanted: FaultSet) {
        *self.known.lock() = wanted;
        self.changed.notify_one();
    }

    pub(super) fn lacks(&self, image: &str) -> bool {
        self.known.lock().images.contains(image)
    }

    pub(super) fn ending(&self, container: &str) -> Option<Ending> {
        self.known.lock().containers.get(container).cloned()
    }

    pub(super) fn is_removed(&self, node: &str) -> bool {
        self.known.lock().removed.contains(node)
    }

    pub(super) fn is_gone(&self, node: &str) -> bool {
        self.known.lock().nodes.contains(node)
    }
}
