//! Changes of Nodes with an effect on other objects.

use std::collections::{HashMap, HashSet};

use api::k8s_openapi::api::core::v1::Node;
use futures::future;
use futures::stream::{Stream, StreamExt};
use kube::ResourceExt;
use kube::runtime::watcher::{self, Event};

#[cfg(test)]
mod tests;

/// New [`Node`]s, Nodes with changed `aspects`, and deleted Nodes, by an [`Event`] or by their absence from a new list.
/// Heartbeats of kubelets are left out.
pub(crate) fn changed(
    events: impl Stream<Item = watcher::Result<Event<Node>>> + Send,
    aspects: fn(&Node) -> u64,
) -> impl Stream<Item = watcher::Result<Node>> + Send {
    let mut known = HashMap::<String, u64>::new();
    let mut listed = HashSet::<String>::new();
    events.filter_map(move |event| {
        future::ready(match event {
            Ok(Event::Init) => {
                listed.clear();
                None
            }
            Ok(Event::InitApply(node)) => {
                listed.insert(node.name_any());
                news(&mut known, node, aspects)
            }
            Ok(Event::Apply(node)) => news(&mut known, node, aspects),
            Ok(Event::Delete(node)) => {
                known.remove(&node.name_any());
                Some(Ok(node))
            }
            Ok(Event::InitDone) => {
                let before = known.len();
                known.retain(|name, _| listed.contains(name));
                listed = HashSet::new();
                // The identity of the Node does not matter to readers of all Nodes.
                (known.len() < before).then(|| Ok(Node::default()))
            }
            Err(error) => Some(Err(error)),
        })
    })
}

fn news(
    known: &mut HashMap<String, u64>,
    node: Node,
    aspects: fn(&Node) -> u64,
) -> Option<watcher::Result<Node>> {
    let hash = aspects(&node);
    let before = known.insert(node.name_any(), hash);
    (before != Some(hash)).then_some(Ok(node))
}
