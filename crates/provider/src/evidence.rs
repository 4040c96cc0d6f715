//! Recovers the identity of an object whose identity annotation is missing.
//!
//! Ids in status, providerID, and annotations of the machines of the cluster survive when GitOps replaces an object
//! without its annotations. The resources of these ids have the mark of their owner. If all marks have one identity, it
//! is the identity of the object. Since anybody may have written an id, only resources with the names of the object's
//! own count: at most one object can recover an identity. Otherwise the object waits: with a new identity, everything
//! would be created a second time and the first set of resources leaked.

use std::collections::BTreeSet;

use api::infra::v1beta2::{ManagedGroup, OpenStackCluster, OpenStackMachine};
use kube::ResourceExt;
use openstack::View;
use openstack::inventory::{Resource, Table};

use crate::context::{namespace, of_cluster};
use crate::identity::{CLUSTER_ID, Identity, Mark};
use crate::names::Names;
use crate::spec::balancer_spec;

/// References of an object to its resources, and the marks on these resources.
#[derive(Debug, Default)]
pub(crate) struct Evidence {
    /// References to resources created for the object, for messages: `network 1234`.
    pub(crate) references: Vec<String>,
    /// References to resources with the names of the object's own and no mark: the Go provider's, not all taken over
    /// yet.
    unmarked: Vec<String>,
    pub(crate) marks: BTreeSet<Mark>,
}

/// The conclusion from [`Evidence`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing was created for the object.
    New,
    /// Resources of the object with this [`Mark`].
    Known(Mark),
    /// Resources were created, but the marks do not identify the object; the reason, for users.
    Unknown(String),
}

impl Evidence {
    /// [`Evidence`] for an [`OpenStackCluster`]: the resources in its status, the floating IP of its endpoint, and the
    /// annotations of its machines.
    pub(crate) fn of_cluster(
        object: &OpenStackCluster,
        machines: &[OpenStackMachine],
        view: &View,
    ) -> Self {
        let mut evidence = Self::default();
        let named = Named::from_object(object);
        for (collection, id) in resources(object) {
            let (mark, is_unmarked) = match collection {
                Collection::Network => named.mark_or_none(view.networks.get(id)),
                Collection::Router => named.mark_or_none(view.routers.get(id)),
                Collection::Group => named.mark_or_none(view.security_groups.get(id)),
                Collection::Balancer => named.mark_or_none(view.load_balancers.get(id)),
            };
            let words = format!("{} {id}", collection.word());
            evidence.unmarked.extend(is_unmarked.then(|| words.clone()));
            evidence.references.push(words);
            evidence.marks.extend(mark);
        }
        let host = object.spec.control_plane_endpoint.as_ref();
        let host = host.and_then(|endpoint| endpoint.host.as_deref());
        for ip in view.floating_ips.iter() {
            // A floating IP without a mark may be managed by somebody else.
            if Some(ip.floating_ip_address.as_str()) == host
                && let Some(mark) = named.mark(&**ip)
            {
                evidence.references.push(format!("floating IP {}", ip.id));
                evidence.marks.insert(mark);
            }
        }
        for machine in machines {
            if let Some(id) = Identity::for_object(machine, CLUSTER_ID) {
                let name = machine.name_any();
                evidence.references.push(format!("OpenStackMachine {name}"));
                // An annotation is copied as easily as an id: something in the cloud must agree.
                let mark = Mark::cluster(id);
                evidence.marks.extend(named.has(mark, view).then_some(mark));
            }
        }
        evidence
    }

    /// [`Verdict`] on an object without its `annotation`. `has_finalizer` is evidence, too: identity and finalizer are
    /// stored together, before anything is created.
    pub(crate) fn verdict(self, annotation: &str, has_finalizer: bool) -> Verdict {
        let marks: Vec<_> = self.marks.into_iter().collect();
        let why = match marks.as_slice() {
            [_] if !self.unmarked.is_empty() => format!(
                "of what its status names only a part carries an identity, and {} none",
                self.unmarked.join(", ")
            ),
            [mark] => return Verdict::Known(*mark),
            [] if self.references.is_empty() && !has_finalizer => return Verdict::New,
            [] if self.references.is_empty() => {
                "its finalizer shows that the provider has worked on it".to_owned()
            }
            [] => format!(
                "none of what its status names carries an identity and the object's own name ({})",
                self.references.join(", ")
            ),
            several => {
                let ids: BTreeSet<_> = several
                    .iter()
                    .map(|mark| mark.machine.unwrap_or(mark.cluster).to_string())
                    .collect();
                let ids: Vec<_> = ids.into_iter().collect();
                format!(
                    "what its status names carries several identities ({}: {})",
                    self.references.join(", "),
                    ids.join(", ")
                )
            }
        };
        Verdict::Unknown(format!(
            "the annotation {annotation} is gone, and {why}. Nothing is created or deleted until the \
             annotation is set to the identity at the end of the descriptions of the object's \
             resources; if nothing is left in the cloud, delete the object, remove its finalizer and create it anew"
        ))
    }
}

/// A kind of resource in the status of a cluster.
#[derive(Clone, Copy)]
enum Collection {
    Network,
    Router,
    Group,
    Balancer,
}

impl Collection {
    fn word(self) -> &'static str {
        match self {
            Collection::Network => "network",
            Collection::Router => "router",
            Collection::Group => "security group",
            Collection::Balancer => "load balancer",
        }
    }
}

/// Resources in the status of a cluster that were created for it, without resources of the spec.
fn resources(object: &OpenStackCluster) -> Vec<(Collection, &str)> {
    let spec = &object.spec;
    let Some(status) = &object.status else {
        return Vec::new();
    };
    let network = status.network.as_ref().map(|network| &network.id);
    let network = network.filter(|_| !spec.managed_subnets.is_empty());
    let router = status.router.as_ref().map(|router| &router.id);
    let router = router.filter(|_| spec.router.is_none());
    let groups = [
        &status.control_plane_security_group,
        &status.worker_security_group,
        &status.bastion_security_group,
    ];
    let groups = groups.into_iter().flatten().map(|group| &group.id);
    let balancer = status.api_server_managed_load_balancer.as_ref();
    let balancer = balancer
        .into_iter()
        .chain(&status.api_server_load_balancers);
    let balancer = balancer.filter(|_| balancer_spec(spec).is_some());
    let all = network.map(|id| (Collection::Network, id));
    let all = all.into_iter();
    let all = all.chain(router.map(|id| (Collection::Router, id)));
    let all = all.chain(groups.map(|id| (Collection::Group, id)));
    let all = all.chain(balancer.map(|balancer| (Collection::Balancer, &balancer.id)));
    all.map(|(collection, id)| (collection, id.as_str()))
        .filter(|(_, id)| !id.is_empty())
        .collect()
}

/// Names of the resources of one cluster.
struct Named {
    names: Vec<String>,
    descriptions: Vec<String>,
}

impl Named {
    fn from_object(object: &OpenStackCluster) -> Self {
        let cluster = of_cluster(object);
        let names = cluster.map(|cluster| Names::new(&namespace(object), cluster));
        let zones = balancer_spec(&object.spec).into_iter();
        let zones = zones.flat_map(|balancer| &balancer.availability_zone_subnets);
        let of_zones =
            zones.filter_map(|zone| Some(names.as_ref()?.in_zone(&zone.availability_zone)));
        let of_zones: Vec<_> = of_zones.collect();
        let groups = [
            ManagedGroup::Bastion,
            ManagedGroup::ControlPlane,
            ManagedGroup::Worker,
        ];
        let all = names.iter().flat_map(|names| {
            let groups = groups.iter().map(|role| names.group(*role));
            groups.chain([names.network(), names.balancer()])
        });
        let all = all.chain(of_zones.iter().map(Names::balancer));
        Self {
            names: all.collect(),
            descriptions: names
                .iter()
                .chain(&of_zones)
                .map(Names::description)
                .collect(),
        }
    }

    /// [`Mark`] of a resource in the status, and true for a resource with one of the names but no mark at all.
    fn mark_or_none<T: Resource>(&self, item: Option<&std::sync::Arc<T>>) -> (Option<Mark>, bool) {
        let Some(item) = item else {
            return (None, false);
        };
        let is_named = self.names.iter().any(|name| name == item.name());
        let is_unmarked = is_named && Mark::from_item(&**item).is_none();
        (self.mark(&**item), is_unmarked)
    }

    /// [`Mark`] of a resource of a cluster with one of the names, or the description.
    fn mark<T: Resource>(&self, item: &T) -> Option<Mark> {
        let mark = Mark::in_description(item.description())?;
        let described = |text: &String| mark.description(text) == item.description();
        let is_named = self.names.iter().any(|name| name == item.name())
            || self.descriptions.iter().any(described);
        (is_named && mark.machine.is_none()).then_some(mark)
    }

    /// True if any resource has this [`Mark`].
    fn has(&self, mark: Mark, view: &View) -> bool {
        fn any<T: Resource>(named: &Named, mark: Mark, table: &Table<T>) -> bool {
            table.iter().any(|item| named.mark(&**item) == Some(mark))
        }
        any(self, mark, &view.networks)
            || any(self, mark, &view.routers)
            || any(self, mark, &view.security_groups)
            || any(self, mark, &view.floating_ips)
            || any(self, mark, &view.load_balancers)
    }
}

#[cfg(test)]
mod tests;
