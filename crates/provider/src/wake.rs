//! From a change in the cloud to the objects concerned, by the marks on what changed.

use std::collections::BTreeSet;
use std::sync::Arc;

use api::infra::v1beta2::{OpenStackCluster, OpenStackMachine};
use futures::stream::{self, Stream, StreamExt};
use kube::ResourceExt;
use kube::runtime::reflector::{ObjectRef, Store};
use openstack::{Change, Kind};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use crate::identity::{CLUSTER_ID, Identity, MACHINE_ID, Mark};

/// The OpenStackClusters that changes concern.
pub(crate) fn clusters(
    changes: Receiver<Change>,
    store: Store<OpenStackCluster>,
) -> impl Stream<Item = ObjectRef<OpenStackCluster>> + Send + 'static {
    batches(changes).flat_map(move |batch| {
        let concerned: Option<BTreeSet<_>> = batch.map(|changes| {
            changes
                .iter()
                .filter(|c| c.kind != Kind::Servers)
                .flat_map(cluster_of)
                .collect()
        });
        let objects = store.state();
        let wakes = move |object: &Arc<OpenStackCluster>| match &concerned {
            None => true,
            Some(ids) => {
                Identity::of(object.as_ref(), CLUSTER_ID).is_some_and(|id| ids.contains(&id))
            }
        };
        let found: Vec<_> = objects
            .iter()
            .filter(|object| wakes(object))
            .map(|object| ObjectRef::from_obj(object.as_ref()))
            .collect();
        stream::iter(found)
    })
}

/// The OpenStackMachines that changes concern: by their own mark, and all of a cluster's control
/// plane when its load balancer changed, since they wait for their membership to begin or to end.
pub(crate) fn machines(
    changes: Receiver<Change>,
    store: Store<OpenStackMachine>,
) -> impl Stream<Item = ObjectRef<OpenStackMachine>> + Send + 'static {
    batches(changes).flat_map(move |batch| {
        let concerned = batch.map(|changes| {
            let marks: BTreeSet<_> = changes.iter().filter_map(mark_of).collect();
            let balanced: BTreeSet<_> = changes
                .iter()
                .filter(|change| {
                    matches!(
                        change.kind,
                        Kind::LoadBalancers | Kind::Pools | Kind::Members
                    )
                })
                .filter_map(cluster_of)
                .collect();
            (marks, balanced)
        });
        let wakes = |object: &OpenStackMachine| {
            let Some((marks, balanced)) = &concerned else {
                return true;
            };
            let machine = Identity::of(object, MACHINE_ID);
            let cluster = Identity::of(object, CLUSTER_ID);
            let (Some(machine), Some(cluster)) = (machine, cluster) else {
                return false;
            };
            let control_plane = object
                .labels()
                .contains_key(api::names::CONTROL_PLANE_LABEL);
            marks.contains(&Mark::machine(cluster, machine))
                || (control_plane && balanced.contains(&cluster))
        };
        let objects = store.state();
        let found: Vec<_> = objects
            .iter()
            .filter(|object| wakes(object))
            .map(|object| ObjectRef::from_obj(object.as_ref()))
            .collect();
        stream::iter(found)
    })
}

/// The mark on what changed.
pub(crate) fn mark_of(change: &Change) -> Option<Mark> {
    Mark::in_tags(&change.tags).or_else(|| Mark::in_description(&change.description))
}

fn cluster_of(change: &Change) -> Option<Identity> {
    mark_of(change)
        .filter(|mark| mark.machine.is_none())
        .map(|mark| mark.cluster)
}

/// Changes as they come, all that are there at once; `None` when some were missed, so that
/// everything has to be looked at.
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
