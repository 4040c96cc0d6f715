//! Maps changes in the cloud to objects, by the marks on the changed resources.

use std::collections::BTreeSet;
use std::sync::Arc;

use api::infra::v1alpha1::{OpenStackFloatingIPPool, OpenStackServer};
use api::infra::v1beta2::{OpenStackCluster, OpenStackMachine};
use futures::stream::{self, Stream, StreamExt};
use kube::Resource;
use kube::runtime::reflector::ObjectRef;
use openstack::inventory::batches;
use openstack::{Change, Kind};
use tokio::sync::broadcast::Receiver;

use crate::claims::Claims;
use crate::identity::{Identity, Mark};
use crate::index::{Index, Key};

/// [`OpenStackCluster`]s to reconcile after changes.
pub(crate) fn clusters(
    changes: Receiver<Change>,
    index: Arc<Index<OpenStackCluster>>,
) -> impl Stream<Item = ObjectRef<OpenStackCluster>> + Send + 'static {
    woken(changes, index, |change| {
        let mark = mark_of(change).filter(|mark| mark.is_of_bastion());
        let of_bastion = mark.map(|mark| mark.cluster);
        let cluster = cluster_of(change).filter(|_| change.kind != Kind::Servers);
        let mark = of_bastion
            .or(cluster)
            .map(|id| Key::Mark(Mark::cluster(id)));
        mark.into_iter().collect()
    })
}

/// [`OpenStackFloatingIPPool`]s to reconcile after changes of floating IPs: allocated by the pools, or named in their
/// specs.
pub(crate) fn pools(
    changes: Receiver<Change>,
    index: Arc<Index<OpenStackFloatingIPPool>>,
) -> impl Stream<Item = ObjectRef<OpenStackFloatingIPPool>> + Send + 'static {
    woken(changes, index, |change| {
        if change.kind != Kind::FloatingIps {
            return Vec::new();
        }
        let id = Identity::of_pool_in(&change.description, &change.tags);
        let address = Key::Address(change.name.clone());
        id.map(Key::Pool).into_iter().chain([address]).collect()
    })
}

/// [`OpenStackMachine`]s to reconcile after changes: machines with the mark of the change, and after a change of a load
/// balancer all control plane machines of its cluster, which wait to be added as members or removed.
pub(crate) fn machines(
    changes: Receiver<Change>,
    index: Arc<Index<OpenStackMachine>>,
) -> impl Stream<Item = ObjectRef<OpenStackMachine>> + Send + 'static {
    woken(changes, index, |change| {
        let balances = matches!(
            change.kind,
            Kind::LoadBalancers | Kind::Pools | Kind::Members
        );
        let members = cluster_of(change).filter(|_| balances).map(Key::Members);
        let of_resource = mark_of(change).map(Key::Mark);
        let of_pool = (change.kind == Kind::FloatingIps).then(|| Key::Address(change.name.clone()));
        let all = of_resource.into_iter().chain(members);
        all.chain(of_pool).collect()
    })
}

/// [`OpenStackServer`]s to reconcile after changes of resources with their mark, or of their floating IPs.
pub(crate) fn servers(
    changes: Receiver<Change>,
    index: Arc<Index<OpenStackServer>>,
) -> impl Stream<Item = ObjectRef<OpenStackServer>> + Send + 'static {
    woken(changes, index, |change| {
        let of_pool = (change.kind == Kind::FloatingIps).then(|| Key::Address(change.name.clone()));
        let mark = mark_of(change).map(Key::Mark);
        mark.into_iter().chain(of_pool).collect()
    })
}

/// [`OpenStackMachine`]s to reconcile when another object gets or gives up their identity, or their cluster's.
pub(crate) fn contested(
    claims: &Arc<Claims>,
    index: Arc<Index<OpenStackMachine>>,
) -> impl Stream<Item = ObjectRef<OpenStackMachine>> + Send + 'static {
    let of_clusters = Arc::clone(claims);
    let clusters = claims.clusters.contested().flat_map(move |object| {
        let cluster = of_clusters.clusters.cluster_of(&object);
        let namespace = object.namespace.unwrap_or_default();
        let key = cluster.map(|name| Key::Cluster(namespace, name));
        stream::iter(key.map(|key| index.find(&key)).unwrap_or_default())
    });
    stream::select(clusters, claims.machines.contested())
}

/// Objects to reconcile after changes, by the [`Key`]s of each change.
fn woken<K>(
    changes: Receiver<Change>,
    index: Arc<Index<K>>,
    keys: fn(&Change) -> Vec<Key>,
) -> impl Stream<Item = ObjectRef<K>> + Send + 'static
where
    K: Resource<DynamicType = ()> + Clone + Send + Sync + 'static,
{
    batches(changes).flat_map(move |batch| {
        let found = match batch {
            None => index.all(),
            Some(changes) => {
                let keys: BTreeSet<_> = changes.iter().flat_map(keys).collect();
                keys.iter().flat_map(|key| index.find(key)).collect()
            }
        };
        stream::iter(found)
    })
}

/// [`Mark`] on the changed resource.
pub(crate) fn mark_of(change: &Change) -> Option<Mark> {
    Mark::in_tags(&change.tags).or_else(|| Mark::in_description(&change.description))
}

fn cluster_of(change: &Change) -> Option<Identity> {
    mark_of(change)
        .filter(|mark| mark.machine.is_none())
        .map(|mark| mark.cluster)
}
