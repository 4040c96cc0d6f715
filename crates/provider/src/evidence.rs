//! Recovers the identity of an object whose identity annotation is missing.
//!
//! Ids in status, providerID, and annotations of the machines of the cluster survive when GitOps replaces an object
//! without its annotations. The resources that they refer to have the mark of their owner. If all these marks have one
//! identity, it is the identity of the object. Otherwise the object waits: with a new identity, everything would be
//! created a second time and the first set of resources leaked.

use std::collections::BTreeSet;

use api::infra::v1beta2::{OpenStackCluster, OpenStackMachine};
use kube::ResourceExt;
use openstack::View;

use crate::cluster::desired::balancer_spec;
use crate::identity::{CLUSTER_ID, Identity, MACHINE_ID, Mark};
use crate::machine::observed::Known;

/// The references of an object to its resources, and the marks on those resources.
#[derive(Debug, Default)]
pub(crate) struct Evidence {
    /// References to resources created for the object, for messages: `network 1234`.
    references: Vec<String>,
    marks: BTreeSet<Mark>,
}

/// The conclusion from [`Evidence`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing was created for the object.
    New,
    /// The resources of the object have this mark.
    Known(Mark),
    /// Resources were created, but their marks do not identify the object; the reason, for users.
    Unknown(String),
}

impl Evidence {
    /// The evidence for an OpenStackCluster: the resources in its status, the floating IP of its endpoint, and the
    /// annotations of its machines.
    pub(crate) fn of_cluster(
        object: &OpenStackCluster,
        machines: &[OpenStackMachine],
        view: &View,
    ) -> Self {
        let mut evidence = Self::default();
        let described = |description: Option<&String>| {
            Mark::in_description(description?).filter(|mark| mark.machine.is_none())
        };
        for (collection, id) in resources(object) {
            let description = match collection {
                Collection::Network => view.networks.get(id).map(|item| &item.description),
                Collection::Router => view.routers.get(id).map(|item| &item.description),
                Collection::Group => view.security_groups.get(id).map(|item| &item.description),
                Collection::Balancer => view.load_balancers.get(id).map(|item| &item.description),
            };
            evidence
                .references
                .push(format!("{} {id}", collection.word()));
            evidence.marks.extend(described(description));
        }
        let host = object.spec.control_plane_endpoint.as_ref();
        let host = host.and_then(|endpoint| endpoint.host.as_deref());
        for ip in view.floating_ips.iter() {
            // A floating IP without a mark may be managed by somebody else.
            if Some(ip.floating_ip_address.as_str()) == host
                && let Some(mark) = described(Some(&ip.description))
            {
                evidence.references.push(format!("floating IP {}", ip.id));
                evidence.marks.insert(mark);
            }
        }
        for machine in machines {
            if let Some(id) = Identity::of(machine, CLUSTER_ID) {
                let name = machine.name_any();
                evidence.references.push(format!("OpenStackMachine {name}"));
                evidence.marks.insert(Mark::cluster(id));
            }
        }
        evidence
    }

    /// The evidence for an OpenStackMachine: its server, by the id in status or providerID, and the ports in status or
    /// of that server.
    pub(crate) fn of_machine(known: &Known, view: &View) -> Self {
        let mut evidence = Self::default();
        let of_machine = |mark: &Mark| mark.machine.is_some();
        if let Some(id) = known.server() {
            evidence.references.push(format!("server {id}"));
            let server = view.servers.get(id);
            let mark = server.and_then(|server| Mark::in_tags(&server.tags));
            evidence.marks.extend(mark.filter(of_machine));
            let ports = view.ports.of_parent(id).iter();
            let marks = ports.filter_map(|port| Mark::in_description(&port.description));
            evidence.marks.extend(marks.filter(of_machine));
        }
        for id in &known.ports {
            evidence.references.push(format!("port {id}"));
            let port = view.ports.get(id);
            let mark = port.and_then(|port| Mark::in_description(&port.description));
            evidence.marks.extend(mark.filter(of_machine));
        }
        evidence
    }

    /// The conclusion for an object without its `annotation`. `has_finalizer` is evidence, too: identity and finalizer
    /// are stored together, before anything is created.
    pub(crate) fn verdict(self, annotation: &str, has_finalizer: bool) -> Verdict {
        let marks: Vec<_> = self.marks.into_iter().collect();
        let why = match marks.as_slice() {
            [mark] => return Verdict::Known(*mark),
            [] if self.references.is_empty() && !has_finalizer => return Verdict::New,
            [] if self.references.is_empty() => {
                "its finalizer shows that the provider has worked on it".to_owned()
            }
            [] => format!(
                "none of what its status names carries an identity ({})",
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
             resources. Taking over what another provider created is not built yet; if nothing is \
             left in the cloud, delete the object, remove its finalizer and create it anew"
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

/// The resources in the status of a cluster that were created for it, without those that its spec refers to.
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

/// The OpenStackMachine other than `object` that has this identity.
pub(crate) fn same_machine<'a>(
    object: &OpenStackMachine,
    id: Identity,
    machines: &'a [OpenStackMachine],
) -> Option<&'a OpenStackMachine> {
    machines
        .iter()
        .find(|other| other.uid() != object.uid() && Identity::of(*other, MACHINE_ID) == Some(id))
}

#[cfg(test)]
mod tests;
