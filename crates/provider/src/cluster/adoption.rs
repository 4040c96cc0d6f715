//! Clusters of the Go provider are taken over: their resources get the mark of the cluster, by one write each.
//!
//! Two kinds of evidence together identify the resources of the cluster: an id in the status of an object (or an id
//! derived from it: a port of the server), and the name given by the Go provider. Neither is enough alone. A
//! contradiction is a conflict, and with a conflict nothing is written. Nothing is created, deleted or associated.
//!
//! ```text
//!   found       a resource with its evidence, and the search for one (pure)
//!   of_cluster  network, router, groups, load balancer, floating IPs and bastion (pure)
//!   of_server   servers with their ports and volumes (pure)
//!   apply       the writes: machines first, ids in the cluster's status last, then the objects
//! ```
//!
//! The identity of an adopted object is its uid, so that a second run after an interruption gives the same marks. Until
//! the [`OpenStackCluster`] has its identity, stored last, no controller acts on the resources.

pub(crate) mod apply;
mod found;
mod of_cluster;
mod of_server;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api::infra::v1alpha1::OpenStackServer;
use api::infra::v1beta2::{OpenStackCluster, OpenStackMachine};
use api::k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use api::names::ADOPT_ANNOTATION;
use kube::ResourceExt;
use openstack::inventory::Inventory;
use openstack::{Kind, Service, View};

use self::found::Search;
pub use self::found::{Found, What, Write};
use crate::context::namespace;
use crate::identity::{CLUSTER_ID, Identity, MACHINE_ID, Mark};
use crate::names::Names;

/// Objects of a cluster.
#[derive(Clone, Copy, Debug)]
pub struct Objects<'a> {
    /// Name of the Cluster.
    pub cluster: &'a str,
    /// The OpenStackCluster.
    pub infra: &'a OpenStackCluster,
    /// [`OpenStackMachine`]s of the cluster.
    pub machines: &'a [OpenStackMachine],
    /// [`OpenStackServer`]s of the cluster; the Go provider creates one for each machine and bastion.
    pub servers: &'a [OpenStackServer],
}

/// Resources to take over, in the order of the writes.
#[derive(Clone, Debug, Default)]
pub struct Adoption {
    /// [`Identity`] of the cluster.
    pub cluster: Option<Identity>,
    /// Identities of [`OpenStackMachine`]s, by name.
    pub machines: BTreeMap<String, Identity>,
    /// [`Found`] resources.
    pub found: Vec<Found>,
    /// Contradictions, for users. With any conflict nothing is taken over.
    pub conflicts: Vec<String>,
    /// Resources left unchanged, with the reason.
    pub notes: Vec<String>,
}

/// True if the annotation requests an adoption.
pub fn is_wanted(infra: &OpenStackCluster) -> bool {
    let value = infra.annotations().get(ADOPT_ANNOTATION);
    value.is_some_and(|value| value == "true")
}

/// True if the cluster has an identity, so that nothing has to be taken over.
pub fn is_done(infra: &OpenStackCluster) -> bool {
    Identity::for_object(infra, CLUSTER_ID).is_some()
}

/// Finds the resources of a cluster of the Go provider, as an [`Adoption`].
pub fn find(objects: &Objects<'_>, view: &View) -> Adoption {
    let Some(cluster) = identity(objects.infra, CLUSTER_ID) else {
        let name = objects.infra.name_any();
        return Adoption {
            conflicts: vec![format!("OpenStackCluster {name} has no uid")],
            ..Adoption::default()
        };
    };
    let names = Names::new(&namespace(objects.infra), objects.cluster);
    let mut search = Search::new(view);
    let mut machines = BTreeMap::new();
    for machine in objects.machines {
        let name = machine.name_any();
        if let Some(id) = identity(machine, MACHINE_ID) {
            of_server::machine(
                &mut search,
                objects,
                machine,
                Mark::machine(cluster, id),
                &names,
            );
            machines.insert(name, id);
        }
    }
    of_cluster::all(&mut search, objects, cluster, &names);
    Adoption {
        cluster: Some(cluster),
        machines,
        found: search.found,
        conflicts: search.conflicts,
        notes: search.notes,
    }
}

/// [`Identity`] in the annotation, or else the uid.
fn identity<K: ResourceExt>(object: &K, annotation: &str) -> Option<Identity> {
    let uid = || Identity::parse(&object.uid()?);
    Identity::for_object(object, annotation).or_else(uid)
}

/// Machine or cluster for which the Go provider has created a server.
pub(crate) fn owner(server: &OpenStackServer) -> Option<&OwnerReference> {
    server.owner_references().iter().find(|owner| {
        owner.api_version.starts_with(api::infra::GROUP)
            && matches!(owner.kind.as_str(), "OpenStackMachine" | "OpenStackCluster")
    })
}

/// [`View`] with the lists for the search.
///
/// # Errors
/// Error of a list.
pub async fn view(inventory: &Inventory) -> openstack::Result<Arc<View>> {
    let mut kinds = vec![
        Kind::Networks,
        Kind::Subnets,
        Kind::Routers,
        Kind::SecurityGroups,
        Kind::FloatingIps,
        Kind::Ports,
        Kind::Servers,
    ];
    let session = inventory.session();
    kinds.extend((session.has(Service::Volume).await?).then_some(Kind::Volumes));
    kinds.extend((session.has(Service::LoadBalancer).await?).then_some(Kind::LoadBalancers));
    inventory.view(&kinds, Duration::ZERO).await
}

#[cfg(test)]
mod tests;
