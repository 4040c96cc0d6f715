//! Nodes of the cluster: name, labels and cordon.
//!
//! Without the permission to list nodes a controller works, except for drains.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::StreamExt as _;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use kube::runtime::watcher::Event;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Client, ResourceExt as _};
use operator::client::Api;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// Nodes by name; `None` before the first list.
#[derive(Clone, Default)]
pub(super) struct Nodes {
    known: Arc<Mutex<Option<BTreeMap<String, Value>>>>,
}

impl Nodes {
    /// Starts the watch in `tasks`. A change of a [`kept`] field sends a message to `changed`, unless one is pending.
    pub(super) fn start(
        client: &Client,
        changed: &mpsc::Sender<()>,
        tasks: &mut JoinSet<()>,
    ) -> Self {
        let nodes = Self::default();
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Node"));
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
        tasks.spawn(watch(api, nodes.clone(), changed.clone()));
        nodes
    }

    /// All nodes.
    pub(super) fn all(&self) -> Option<Vec<Value>> {
        let known = self.known.lock();
        known.as_ref().map(|it| it.values().cloned().collect())
    }

    /// Changes the known nodes. True if the result differs.
    fn change(&self, change: impl FnOnce(&mut BTreeMap<String, Value>)) -> bool {
        let mut known = self.known.lock();
        let mut after = known.clone().unwrap_or_default();
        change(&mut after);
        let differs = known.as_ref() != Some(&after);
        *known = Some(after);
        differs
    }
}

/// Name, labels and cordon of a node.
fn kept(node: &DynamicObject) -> (String, Value) {
    let name = node.name_any();
    let kept = json!({
        "metadata": {"name": name, "uid": node.metadata.uid, "labels": node.labels()},
        "spec": {"unschedulable": node.data["spec"]["unschedulable"] == true},
    });
    (name, kept)
}

async fn watch(api: Api<DynamicObject>, nodes: Nodes, changed: mpsc::Sender<()>) {
    let events = operator::watch::objects(&api, watcher::Config::default()).default_backoff();
    let mut events = std::pin::pin!(events);
    let mut listed = BTreeMap::new();
    while let Some(event) = events.next().await {
        let differs = match event {
            Ok(Event::Init) => {
                listed.clear();
                false
            }
            Ok(Event::InitApply(node)) => {
                listed.extend([kept(&node)]);
                false
            }
            Ok(Event::InitDone) => {
                let all = std::mem::take(&mut listed);
                nodes.change(|known| *known = all)
            }
            Ok(Event::Apply(node)) => nodes.change(|known| known.extend([kept(&node)])),
            Ok(Event::Delete(node)) => nodes.change(|known| {
                known.remove(&node.name_any());
            }),
            Err(error) => {
                tracing::debug!(
                    "the watch of nodes begins again: {}",
                    operator::words::chain(&error)
                );
                false
            }
        };
        if differs {
            // A full channel holds an unread message: its reader will see this change, too.
            let _ = changed.try_send(());
        }
    }
}
