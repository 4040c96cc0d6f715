//! Maps changes in the cloud to objects.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use api::k8s_openapi::api::core::v1::{Node, Service};
use futures::stream::{self, Stream, StreamExt};
use kube::ResourceExt;
use kube::runtime::reflector::{ObjectRef, Store};
use openstack::{Change, Kind};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use crate::node::ProviderId;
use crate::service::{self, identity::Identity};

/// The Nodes whose servers or ports changed.
pub(crate) fn nodes(
    changes: Receiver<Change>,
    store: Store<Node>,
) -> impl Stream<Item = ObjectRef<Node>> + Send + 'static {
    batches(changes).flat_map(move |batch| {
        let nodes = store.state();
        let Some(changes) = batch else {
            return stream::iter(references(nodes.iter()));
        };
        let servers: BTreeSet<&str> = changes.iter().flat_map(servers_of).collect();
        if servers.is_empty() {
            return stream::iter(Vec::new());
        }
        let by_key: HashMap<String, &Arc<Node>> =
            nodes.iter().map(|node| (key(node), node)).collect();
        let concerned = servers
            .iter()
            .filter_map(|server| by_key.get(*server).copied());
        stream::iter(references(concerned))
    })
}

fn references<'a>(nodes: impl Iterator<Item = &'a Arc<Node>>) -> Vec<ObjectRef<Node>> {
    nodes.map(|node| ObjectRef::from_obj(&**node)).collect()
}

/// The index key of a Node: the id of its server, or its name.
fn key(node: &Node) -> String {
    let id = node
        .spec
        .as_ref()
        .and_then(|spec| spec.provider_id.as_deref());
    match id.map(ProviderId::parse) {
        Some(Ok(id)) => id.server,
        _ => node.name_any(),
    }
}

/// The index keys of the Nodes to reconcile after a change.
fn servers_of(change: &Change) -> Vec<&str> {
    match change.kind {
        Kind::Servers => vec![&change.id, &change.name],
        Kind::Ports => change.parent.as_deref().into_iter().collect(),
        _ => Vec::new(),
    }
}

/// The Services to reconcile after changes: those whose names or tags are on the changed load balancer or part of it,
/// and all Services after a change of a floating IP.
pub(crate) fn services(
    changes: Receiver<Change>,
    store: Store<Service>,
    cluster_name: String,
) -> impl Stream<Item = ObjectRef<Service>> + Send + 'static {
    batches(changes).flat_map(move |batch| {
        let services = store.state();
        let concerned: Vec<&Arc<Service>> = services
            .iter()
            .filter(|service| {
                service::is_wanted(service)
                    || operator::finalizer::has(&***service, service::FINALIZER)
            })
            .filter(|service| {
                let identity = Identity::of(service, &cluster_name, "");
                batch
                    .as_ref()
                    .is_none_or(|changes| changes.iter().any(|change| concerns(change, &identity)))
            })
            .collect();
        stream::iter(
            concerned
                .into_iter()
                .map(|service| ObjectRef::from_obj(&**service))
                .collect::<Vec<_>>(),
        )
    })
}

fn concerns(change: &Change, identity: &Identity) -> bool {
    match change.kind {
        Kind::LoadBalancers | Kind::Listeners | Kind::Pools | Kind::Monitors => {
            change.name.ends_with(&identity.name) || change.tags.contains(&identity.name)
        }
        Kind::FloatingIps => true,
        _ => false,
    }
}

/// The changes in batches of all that are queued; `None` when changes were missed, so that every object must be
/// reconciled.
pub(crate) fn batches(
    changes: Receiver<Change>,
) -> impl Stream<Item = Option<Vec<Change>>> + Send + 'static {
    stream::unfold(changes, |mut changes| async move {
        let mut batch = match changes.recv().await {
            Ok(change) => vec![change],
            Err(RecvError::Lagged(_)) => return Some((None, changes)),
            Err(RecvError::Closed) => return None,
        };
        while let Ok(change) = changes.try_recv() {
            batch.push(change);
        }
        Some((Some(batch), changes))
    })
}
